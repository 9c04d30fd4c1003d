"""`export_library`: what a library computes is what jit computes, in processes that know nothing of
calque."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque.machine.code import image
from tests.native.libraries.shared import S, exported, needs_images, same, some

pytestmark = needs_images

W = some(64, 8, seed=9)
F = S(("n",), "float32")
FM = S(("n", "m"), "float32")
INTS = np.arange(-5, 45, dtype=np.int32)

# name -> function, what it is exported for, arguments of calls
CASES = {
    "elementwise": (lambda x: (jnp.tanh(x * 2).sum(0), x + 1), (some(30, 40),), [(some(30, 40),)]),
    "integers": (
        lambda x, y: (x // y, (x ^ y) & 3, x.astype(jnp.int8), (x > y).any(), x.astype(bool)),
        (INTS, INTS),
        [(INTS, INTS[::-1].copy() | 1)],
    ),
    "matmul": (lambda x: jax.nn.relu(x @ W), (S(("n", 64), "float32"),),
               [(some(n, 64),) for n in (1, 7, 300)]),
    "sort": (lambda x: (jnp.sort(x), jnp.argsort(-x)), (F,),
             [(some(n),) for n in (1, 100, 5000, 70_000)]),
    "scan": (
        lambda x: jax.lax.scan(lambda c, v: (c * 0.9 + v, c.sum()), jnp.zeros(3), x),
        (S(("n", 3), "float32"),),
        [(some(n, 3),) for n in (1, 10, 500)],
    ),
    "while_loop": (
        lambda x: jax.lax.while_loop(
            lambda s: s[0].sum() > 1e-3, lambda s: (s[0] * 0.5, s[1] + 1), (x * x, 0)),
        (some(7),),
        [(some(7),), (some(7) * 100,)],
    ),
    "switch": (
        lambda i, x: jax.lax.switch(i, [jnp.sin, jnp.cos, lambda v: v * 2], x),
        (jnp.int32(0), F),
        [(np.int32(k), some(200 + k)) for k in (-1, 0, 1, 5)],
    ),
    "fourier": (lambda x: jnp.fft.fft(x), (S((48,), "complex64"),),
                [((some(48) + 1j * some(48, seed=1)).astype("complex64"),)]),
    "fourier beside": (
        lambda x: jnp.fft.irfft2(jnp.fft.rfft2(x[0]) * jnp.fft.rfft2(x[1] + 1)),
        (some(2, 64, 64),),
        [(some(2, 64, 64),)],
    ),
    "memory of its own": (lambda x, w: x @ w, (some(100, 1200), some(1200, 512)),
                          [(some(100, 1200), some(1200, 512))]),
    "cholesky": (lambda x: jnp.linalg.cholesky(x @ x.T + 9 * jnp.eye(5)), (S((5, 5), "float32"),),
                 [(some(5, 5),)]),
    "convolution": (
        lambda x, w: jax.lax.conv(x, w, (1, 1), "SAME"),
        (S(("b", 3, 12, 12), "float32"), S((4, 3, 3, 3), "float32")),
        [(some(b, 3, 12, 12), some(4, 3, 3, 3)) for b in (1, 2, 5)],
    ),
    "random": (
        lambda k: jax.random.normal(jax.random.wrap_key_data(k), (9,)),
        (S((2,), "uint32"),),
        [(np.array([0, 7], np.uint32),)],
    ),
    "trees": (lambda p, x: {"loss": (p["w"] * x).sum(), "new": (p["w"] - x, p["b"])},
              ({"w": some(4), "b": some()}, some(4)), [({"w": some(4), "b": some()}, some(4))]),
    "found inside": (lambda x: x[x > 0].sum(), (F,), [(some(n),) for n in (1, 50, 3000)]),
    "two sizes": (lambda x: jnp.linalg.norm(jnp.cumsum(x, 0) @ x.T), (FM,),
                  [(some(*s),) for s in ((1, 1), (3, 200), (200, 3), (200, 150))]),
    "sums in chunks": (lambda x: x.sum(), (F,), [(some(n),) for n in (3, 16384, 16385, 300_000)]),
    "sizes decide": (lambda x, y: x[:3] if x.shape[0] > y.shape[0] else y,
                     (F, S(("k",), "float32")),
                     [(some(30), some(4)), (some(4), some(30)), (some(3), some(2))]),
    "by remainder": (lambda x: jnp.array_split(x, 3), (F,), [(some(n),) for n in (1, 2, 64, 99)]),
    "gradient": (jax.grad(lambda x: jnp.tanh(x @ W).sum()), (S(("n", 64), "float32"),),
                 [(some(n, 64),) for n in (2, 90)]),
}  # fmt: skip

CHILD = """
import importlib.util, json, sys
import numpy as np
assert not any(name.partition(".")[0] in ("calque", "llvmlite", "scipy") for name in sys.modules)
out = []
for name, loader, calls in json.load(sys.stdin):
    spec = importlib.util.spec_from_file_location(name, loader)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for k, (given, wanted) in enumerate(calls):
        with np.load(given) as x:
            got = getattr(module, name)(*[x[key] for key in x.files])
        np.savez(wanted, *(got if isinstance(got, tuple) else (got,)))
bad = [n for n in sys.modules if n.partition(".")[0] in ("calque", "llvmlite", "scipy")]
print(json.dumps(bad))
"""


def with_free_sizes(f, args, call):
    """What jit gives when the same sizes are free."""
    dynamic = {}
    for i, a in enumerate(args):
        names = [k for k, d in enumerate(getattr(a, "shape", ())) if isinstance(d, str)]
        if names:
            dynamic[i] = tuple(names)
    return jax.jit(f, dynamic=dynamic)(*call) if dynamic else jax.jit(f)(*call)


def test_a_process_without_calque_gets_the_same_bits(tmp_path):
    work, kept = [], []
    for k, (f, args, calls) in enumerate(CASES.values()):
        name = f"f{k}"
        made = jax.export_library(f, args, tmp_path / name)
        files = []
        for j, call in enumerate(calls):
            given, wanted = (str(tmp_path / f"{name}_{j}_{what}.npz") for what in ("in", "out"))
            np.savez(given, *jax.tree.leaves(call))
            files.append((given, wanted))
            kept.append((f, args, call, wanted))
        work.append((name, made.loader, files))
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "CALQUE"))}
    done = subprocess.run(
        [sys.executable, "-I", "-c", CHILD],
        input=json.dumps(work),
        capture_output=True,
        text=True,
        check=False,
        env=clean,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []
    for f, args, call, wanted in kept:
        with np.load(wanted) as x:
            same(tuple(x[key] for key in x.files), with_free_sizes(f, args, call))


@pytest.mark.parametrize("cpu", ["x86-64-v2", "x86-64-v3"])
def test_code_for_another_processor(tmp_path, cpu):
    def f(x):
        return jnp.sort(x.ravel()), jnp.exp(x).sum(0), x @ x.T

    x = some(20, 30)
    g, _ = exported(tmp_path, f, (FM,), cpu=cpu)
    for a, b in zip(g(x), jax.jit(f)(x), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    same(jax.jit(f)(x + 1), jax.jit(f)(x + 1))  # this process goes on with its own


def test_an_unknown_processor(tmp_path):
    with pytest.raises(ValueError, match="cpu='x86-64-v9' is not known to LLVM"):
        jax.export_library(jnp.sin, (some(3),), tmp_path / "f", cpu="x86-64-v9")


def test_names_of_files_and_functions(tmp_path):
    made = jax.export_library(jnp.sin, (some(3),), str(tmp_path / "model-1"), name="sine")
    assert [os.path.basename(p) for p in made] == ["libmodel-1.so", "model-1.h", "model-1.py"]
    assert made.header == str(tmp_path / "model-1.h")
    assert all(os.path.exists(p) for p in made)
    with pytest.raises(ValueError, match="'model-1' is no name of a function"):
        jax.export_library(jnp.sin, (some(3),), tmp_path / "model-1")
    for path in ("libmodel.so", "model.h", "model.py", ""):
        with pytest.raises(ValueError, match="without a suffix"):
            jax.export_library(jnp.sin, (some(3),), os.path.join(tmp_path, path), name="f")
    with pytest.raises(FileNotFoundError):
        jax.export_library(jnp.sin, (some(3),), tmp_path / "nowhere" / "f")


def test_other_systems_are_told(tmp_path, monkeypatch):
    monkeypatch.setattr(image, "on_this_system", lambda: False)
    with pytest.raises(NotImplementedError, match="libraries for Linux on x86-64"):
        jax.export_library(jnp.sin, (some(3),), tmp_path / "f")


def test_a_library_that_is_loaded_can_be_written_anew(tmp_path):
    f, _ = exported(tmp_path, lambda x: x + 1, (some(3),))
    jax.export_library(lambda x: x + 2, (some(3),), tmp_path / "f")
    same(f(np.zeros(3, np.float32)), np.ones(3, np.float32))


def test_arguments_are_a_tuple(tmp_path):
    with pytest.raises(TypeError, match=r"\(x,\) for a single one"):
        jax.export_library(jnp.sin, some(3), tmp_path / "f")


def test_jitted_functions_keep_their_static_arguments(tmp_path):
    f = jax.jit(lambda x, n: x * n, static_argnums=1)
    g, _ = exported(tmp_path, f, (F, 3))
    same(g(some(5)), f(some(5), 3))


def test_captured_arrays_are_those_of_the_export(tmp_path):
    held = {"w": jnp.arange(3.0)}
    g, _ = exported(tmp_path, lambda x: x + held["w"], (some(3),))
    held["w"] = jnp.zeros(3)
    same(g(np.ones(3, np.float32)), np.arange(1, 4, dtype=np.float32))


def test_a_size_that_is_needed_as_a_number_is_named(tmp_path):
    def f(x):
        return sum(x[i] for i in range(x.shape[0]))

    with pytest.raises(ValueError, match="f needs the size n as a number"):
        jax.export_library(f, (F,), tmp_path / "f")

    def half(x):
        return sum(x[i] for i in range(x.shape[0] // 2))

    with pytest.raises(ValueError, match=r"half needs the size floordiv\(n, 2\) as a number"):
        jax.export_library(half, (F,), tmp_path / "f")


@pytest.mark.parametrize("name", ["for", "int", "class"])
def test_a_size_is_called_as_c_can(tmp_path, name):
    with pytest.raises(ValueError, match=f"C has no variable that is called {name}"):
        jax.export_library(jnp.sin, (S((name,), "float32"),), tmp_path / "f")


def test_sizes_of_symbolic_shapes_are_free(tmp_path):
    n, m = jax.export.symbolic_shape("n, m", constraints=["n >= 1"])
    made = jax.export_library(lambda x: x * 2, (S((n, 3), "float32"),), tmp_path / "f")
    assert "f(int64_t n, const float *x, float *out)" in pathlib.Path(made.header).read_text()
    with pytest.raises(ValueError, match=r"the size n \+ m is computed of others"):
        jax.export_library(jnp.sin, (S((n + m,), "float32"),), tmp_path / "f")


@pytest.mark.parametrize("name", ["free", "exp", "main"])
def test_functions_of_c_keep_their_names(tmp_path, name):
    with pytest.raises(ValueError, match=f"C has a '{name}' of its own"):
        jax.export_library(jnp.sin, (some(3),), tmp_path / name)
    made = jax.export_library(jnp.sin, (some(3),), tmp_path / name, name="sine")
    assert made.library.endswith(f"lib{name}.so")


def test_a_struct_with_names_is_for_libraries_alone():
    struct = S(("n", 3), "float32")
    assert repr(struct) == "ShapeDtypeStruct(shape=('n', 3), dtype=float32)"
    assert struct == S(("n", 3), np.float32) and hash(struct) == hash(S(("n", 3), np.float32))
    assert struct != S(("m", 3), np.float32) and struct != S((3, 3), np.float32)
    for use in (jax.jit(jnp.sin).lower, lambda x: jax.eval_shape(jnp.sin, x)):
        with pytest.raises(TypeError, match=r"export_library takes: give a number"):
            use(struct)
    with pytest.raises(ValueError, match="'2n' is no name"):
        S(("2n",), "float32")


def test_values_of_a_function_being_traced(tmp_path):
    def outer(y):
        jax.export_library(lambda x: x + y, (some(3),), tmp_path / "f")
        return y

    with pytest.raises(ValueError, match="reads values of a function being traced"):
        jax.jit(outer)(some(3))


def test_double_precision(tmp_path):
    with jax.enable_x64(True):
        g, _ = exported(tmp_path, lambda x: jnp.cumsum(x) / 3, (S(("n",), "float64"),))
    x = some(40, dtype="float64")
    np.testing.assert_allclose(g(x), np.cumsum(x) / 3, rtol=1e-13)

"""Exported programs: written and read, called from both engines and from other programs, with their
gradients; and in JAX, where it is installed."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import export, lax
from tests.xla.mlir import needs_jaxlib

pytestmark = needs_jaxlib
X = np.arange(6, dtype=np.float32).reshape(2, 3)
W = np.ones((3, 2), np.float32) / 3


@jax.jit
def several(x: Any, rest: Any) -> Any:
    """A function of trees."""
    return {"a": jnp.sin(x) @ rest["w"], "b": (x.sum(), None)}


def round_trip(f: Any, *args: Any, order: int = 0) -> Any:
    return export.deserialize(export.export(f)(*args).serialize(vjp_order=order))


def test_a_program_comes_back_as_it_was() -> None:
    made = export.export(several)(X, {"w": W})
    found = export.deserialize(made.serialize())
    assert found.fun_name == "several" and found.platforms == ("cpu",) and found.nr_devices == 1
    assert (found.in_tree, found.out_tree) == (made.in_tree, made.out_tree)
    assert (found.in_avals, found.out_avals) == (made.in_avals, made.out_avals)
    assert found.mlir_module() == made.mlir_module() and "stablehlo.sine" in found.mlir_module()
    assert str(found) == "Exported(fun_name=several, ...)" and not found.has_vjp()
    expected = several(X, {"w": W})
    got = found.call(X, {"w": W})
    np.testing.assert_allclose(got["a"], expected["a"], rtol=1e-6)
    assert got["b"][1] is None and got["b"][0] == expected["b"][0]


@pytest.mark.parametrize("backend", [None, "xla_cpu"])
def test_calls_from_other_programs(backend: str | None) -> None:
    found = round_trip(several, X, {"w": W})

    @jax.jit
    def helper(v: Any) -> Any:
        return found.call(v, {"w": W})["a"]

    def twice(x: Any) -> Any:
        return helper(x * 2) + found.call(x, {"w": W})["a"]

    got = jax.jit(twice, backend=backend)(X)
    np.testing.assert_allclose(got, np.sin(2 * X) @ W + np.sin(X) @ W, rtol=1e-5, atol=1e-6)


def test_gradients_go_with_it() -> None:
    def total(f: Any) -> Any:
        return lambda x: f(x, {"w": W})["a"].sum()

    found = round_trip(several, X, {"w": W}, order=2)
    np.testing.assert_allclose(
        jax.grad(total(found.call))(X), jax.grad(total(several))(X), rtol=1e-5
    )

    def second(f: Any) -> Any:
        return jax.grad(lambda x: (jax.grad(total(f))(x) ** 2).sum())(X)

    np.testing.assert_allclose(second(found.call), second(several), rtol=1e-4, atol=1e-6)
    assert found.has_vjp() and found.vjp().has_vjp() and not found.vjp().vjp().has_vjp()
    with pytest.raises(ValueError, match="No VJP is available"):
        jax.grad(total(round_trip(several, X, {"w": W}).call))(X)


def test_integers_keys_and_unused_arguments() -> None:
    @jax.jit
    def f(key: Any, n: Any, unused: Any, x: Any) -> Any:
        return jax.random.split(key)[0], n * 2, jnp.linalg.cholesky(x @ x.T + jnp.eye(2)), x > 1

    args = (jax.random.key(3), 5, np.zeros(7), X)
    found = round_trip(f, *args, order=1)
    assert len(found.in_avals) == 4 and found.module_kept_var_idx == (0, 1, 3)
    for run in (found.call, jax.jit(found.call), jax.jit(found.call, backend="xla_cpu")):
        key, n, factor, mask = run(*args)
        expected = f(*args)
        np.testing.assert_array_equal(jax.random.key_data(key), jax.random.key_data(expected[0]))
        assert n == 10
        np.testing.assert_allclose(factor, expected[2], rtol=1e-5)
        np.testing.assert_array_equal(mask, X > 1)
    g = jax.grad(lambda x: found.call(*args[:3], x)[2].sum())(X)
    np.testing.assert_allclose(g, jax.grad(lambda x: f(*args[:3], x)[2].sum())(X), rtol=1e-4)


def test_what_cannot_be_exported() -> None:
    with pytest.raises(ValueError, match="must be the result of `jit`"):
        export.export(jnp.sin.__wrapped__)
    with pytest.raises(ValueError, match="it calls Python on the host"):
        export.export(jax.jit(lambda v: jax.pure_callback(np.sin, v, v)))(X)
    for platforms in ([], ["cpu", "gpu"], [3]):
        with pytest.raises(ValueError, match="for platforms such as cpu, cuda, rocm, tpu"):
            export.export(several, platforms=platforms)


def test_programs_for_other_platforms_are_written_and_not_run() -> None:
    made = export.export(jax.jit(jnp.sin), platforms=["tpu"])(X)
    found = export.deserialize(made.serialize())
    assert found.platforms == ("tpu",)
    with pytest.raises(ValueError, match=r"exported for platforms '\('tpu',\)'"):
        found.call(X)
    allowed = export.DisabledSafetyCheck.platform()
    free = export.export(jax.jit(jnp.sin), platforms=["tpu"], disabled_checks=[allowed])(X)
    loaded = export.deserialize(free.serialize())
    assert loaded.disabled_safety_checks == (allowed,)
    np.testing.assert_allclose(loaded.call(X), np.sin(X), rtol=1e-5, atol=1e-6)


def test_calls_that_do_not_fit() -> None:
    found = round_trip(several, X, {"w": W})
    with pytest.raises(ValueError, match="same pytree structure"):
        found.call(X)
    with pytest.raises(ValueError, match=r"Shape mismatch for args\[0\]\.shape\[0\]"):
        found.call(X.T, {"w": W})
    with pytest.raises(ValueError, match=r"Dtype mismatch for args\[1\]\['w'\]"):
        found.call(X, {"w": W.astype(np.int32)})
    for wrong in (b"", b"no program at all, but some bytes that are long enough"):
        with pytest.raises(ValueError, match="these bytes"):
            export.deserialize(wrong)


def free(f: Any, *texts: str, order: int = 0, **options: Any) -> Any:
    """The function exported for free sizes, written and read."""
    shapes = [[int(p) if p.strip().isdigit() else 1 for p in t.split(",")] for t in texts]
    specs = export.symbolic_args_specs(
        [jax.ShapeDtypeStruct(s, np.float32) for s in shapes], list(texts)
    )
    return export.deserialize(export.export(jax.jit(f), **options)(*specs).serialize(order))


IMAGES, KERNELS = ("NHWC", "HWIO", "NHWC"), "3, 3, 2, 4"


def convolved(x: Any, w: Any, padding: str = "VALID", stride: int = 1) -> Any:
    return lax.conv_general_dilated(x, w, (stride, stride), padding, dimension_numbers=IMAGES)


FREE: dict[str, tuple[Any, list[str], list[Any]]] = {
    "map": (lambda x: jnp.sin(x) + x.shape[0], ["a, b"], [[(2, 3)], [(1, 5)]]),
    "join": (lambda x, y: jnp.concatenate([x, y])[1:], ["2*w, h", "w, h"], [[(4, 3), (2, 3)]]),
    "reshape": (lambda x: x.reshape(-1, x.shape[1]), ["_, a, a + 8"], [[(1, 4, 12)]]),
    "products": (lambda x, w: jax.nn.relu(x @ w).mean(0), ["a, b", "b, c"], [[(3, 8), (8, 2)]]),
    "softmax": (lambda x: jax.nn.softmax(x @ x.T), ["a, b"], [[(3, 4)], [(1, 2)]]),
    "made": (lambda x: x + jnp.arange(x.shape[0] * 2.0).reshape(2, -1), ["_, a"], [[(1, 6)]]),
    "loop": (
        lambda x: lax.fori_loop(0, 3, lambda i, c: jnp.tanh(c) * 2, x),
        ["a, b"],
        [[(2, 3)]],
    ),
    "rows": (lambda x: lax.scan(lambda c, v: (c + v, c * v), x[0], x), ["a, b"], [[(4, 3)]]),
    "rows backwards": (
        lambda x: lax.scan(lambda c, v: (c + v, c * v), x[0], x, reverse=True),
        ["a, b"],
        [[(4, 3)], [(1, 1)]],
    ),
    "branch": (lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x), ["a"], [[(5,)]]),
    "lanes": (
        lambda x: jax.vmap(lambda r: (r - r.mean()) / (r.std() + 1))(x),
        ["a, b"],
        [[(3, 8)]],
    ),
    "padded": (lambda x: jnp.pad(x, ((1, 2), (0, 1))), ["a, b"], [[(3, 2)]]),
    "numbers": (
        lambda x: (
            jnp.ones(((x.shape[0] + 13) // x.shape[0], (x.shape[0] + 13) % (x.shape[0] + 1), 2))
            * x.sum()
        ),
        ["b"],
        [[(5,)], [(3,)]],
    ),
}
FREE |= {
    "sums so far": (lambda x: jnp.cumsum(x, 0), ["a, b"], [[(5, 3)], [(1, 1)]]),
    "convolution": (convolved, ["n, h, w, 2", KERNELS], [[(2, 8, 7, 2), (3, 3, 2, 4)]]),
    "padded convolution": (
        lambda x, w: convolved(x, w, "SAME"),
        ["n, h, w, 2", KERNELS],
        [[(2, 8, 7, 2), (3, 3, 2, 4)], [(1, 1, 3, 2), (3, 3, 2, 4)]],
    ),
    "strided convolution": (
        lambda x, w: convolved(x, w, "SAME", 2),
        ["n, h, w, 2", KERNELS],
        [[(2, 8, 7, 2), (3, 3, 2, 4)], [(1, 5, 6, 2), (3, 3, 2, 4)]],
    ),
    "sums of windows": (
        lambda x: lax.reduce_window(x, 0.0, lax.add, (3, 3), (2, 2), "SAME"),
        ["h, w"],
        [[(8, 7)]],
    ),
    "maxima of windows": (
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID"),
        ["h, w"],
        [[(8, 7)], [(2, 2)]],
    ),
    "noise": (
        lambda x: x * jax.random.normal(jax.random.key(3), (x.shape[0], 2 * x.shape[1]))[:, ::2],
        ["a, b"],
        [[(3, 2)], [(1, 1)]],
    ),
    "noise by row": (
        lambda x: jax.vmap(lambda k, r: r * jax.random.uniform(k, r.shape))(
            jax.random.split(jax.random.key(1), x.shape[0]), x
        ),
        ["a, b"],
        [[(3, 2)]],
    ),
}
WITHOUT_GRADIENT: dict[str, tuple[Any, list[str], list[Any]]] = {
    "sorted": (lambda x: jnp.sort(x, axis=0)[::-1], ["a, b"], [[(5, 3)]]),
    "places": (lambda x: jnp.argmax(x, axis=1), ["a, b"], [[(3, 7)]]),
    "products so far": (
        lambda x: lax.cumprod(x, axis=1, reverse=True),
        ["a, b"],
        [[(2, 3)], [(3, 1)]],
    ),
    "sums of powers so far": (lambda x: lax.cumlogsumexp(x, axis=0), ["a, 3"], [[(4, 3)]]),
    "the last digit": (
        lambda x: jax.random.bits(jax.random.key(2), x.shape) % 10,
        ["a, b"],
        [[(3, 7)], [(1, 1)]],
    ),
    "maxima so far": (lambda x: lax.cummax(x, axis=1), ["a, b"], [[(3, 7)]]),
    "taken": (
        lambda x: jnp.take_along_axis(x, jnp.argmax(x, 1)[:, None], 1),
        ["a, b"],
        [[(3, 7)], [(1, 1)]],
    ),
    "rows of a table": (lambda x: x[jnp.array([0, 1, 1])], ["a, b"], [[(3, 2)]]),
    "a window": (
        lambda x: lax.dynamic_slice(x, (x.shape[0] // 2, 0), (2, x.shape[1])),
        ["a, b"],
        [[(4, 3)]],
    ),
}


def gradient(f: Any, xs: Any) -> Any:
    """Of the sum of all results."""
    return jax.grad(lambda x: sum(map(jnp.sum, jax.tree.leaves(f(x, *xs[1:])))))(xs[0])


@pytest.mark.parametrize("name", [*FREE, *WITHOUT_GRADIENT])
def test_programs_of_free_sizes(name: str) -> None:
    f, texts, calls = (FREE | WITHOUT_GRADIENT)[name]
    found = free(f, *texts, order=int(name in FREE))
    assert found.uses_global_constants and "?x" in found.mlir_module()
    ways = [found.call, jax.jit(found.call), jax.jit(found.call, backend="xla_cpu")]
    for shapes in calls:
        xs = [np.random.default_rng(1).normal(size=s).astype(np.float32) for s in shapes]
        expected = jax.tree.leaves(f(*xs))
        for call in ways:
            got = jax.tree.leaves(call(*xs))
            assert [(g.shape, g.dtype) for g in got] == [(w.shape, w.dtype) for w in expected]
            for g, w in zip(got, expected):
                np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-5)
        if name in FREE:

            def total(run: Any, xs: Any = xs) -> Any:
                return jax.grad(lambda x: sum(map(jnp.sum, jax.tree.leaves(run(x, *xs[1:])))))(
                    xs[0]
                )

            np.testing.assert_allclose(total(found.call), total(f), rtol=1e-3, atol=1e-4)


def test_free_sizes_inside_of_other_programs() -> None:
    inner = free(lambda x: x.reshape(-1) * 2, "a, b")
    outer = free(lambda x: inner.call(x) + inner.call(x[:, ::-1]), "2*c, d")
    assert str(outer.out_avals[0].shape) == "(2*c*d,)"
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    np.testing.assert_array_equal(outer.call(x), (x * 2 + x[:, ::-1] * 2).reshape(-1))
    fixed = export.export(jax.jit(inner.call))(x)
    assert fixed.uses_global_constants and "?x" not in fixed.mlir_module()
    np.testing.assert_array_equal(fixed.call(x), x.reshape(-1) * 2)
    square = free(lambda x: x + 1, "a, a")
    with pytest.raises(ValueError, match="Found inconsistency"):
        free(square.call, "a, b")


def test_shapes_that_free_sizes_do_not_fit() -> None:
    found = free(lambda x: x * 2, "a, a + 1")
    for call in (found.call, jax.jit(found.call), jax.jit(found.call, backend="xla_cpu")):
        with pytest.raises(ValueError, match="Found inconsistency between dimension size"):
            call(np.ones((3, 5), np.float32))
        with pytest.raises(ValueError, match="Rank mismatch"):
            call(np.ones(3, np.float32))
    bounded = export.symbolic_shape("n", constraints=["n >= 3"])
    made = export.export(jax.jit(lambda x: x[2:]))(jax.ShapeDtypeStruct(bounded, np.float32))
    assert made.call(np.arange(4, dtype=np.float32)).shape == (2,)
    with pytest.raises(ValueError, match="The constraints are n >= 3"):
        made.call(np.ones(2, np.float32))


def positive(*shape: int) -> np.ndarray:
    a = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    return a @ np.swapaxes(a, -1, -2) + 3 * np.eye(shape[-1], dtype=np.float32)


@pytest.mark.parametrize(
    ("f", "shape"),
    [
        (jnp.linalg.cholesky, "a, a"),
        (jnp.linalg.cholesky, "b, 3, 3"),
        (lambda a: jnp.linalg.solve(a, a[..., 0] + 1), "a, a"),
        (jnp.linalg.inv, "b, 3, 3"),
        (jnp.linalg.inv, "b, a, a"),
        (lambda a: jnp.linalg.slogdet(a)[1], "b, a, a"),
        (lambda a: jnp.abs(jnp.linalg.qr(a)[1]), "b, 4, 4"),
        (lambda a: jnp.linalg.eigh(a)[0], "b, a, a"),
        (lambda a: jnp.linalg.svd(a, full_matrices=False)[1], "b, 4, 4"),
        (lambda a: jnp.linalg.svd(a, compute_uv=False), "a, a"),
        (jnp.linalg.pinv, "b, 4, 4"),
        (lambda a: jax.scipy.linalg.solve_triangular(a, a, lower=True), "a, a"),
        (lambda a: jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(a), a), "a, a"),
    ],
)
def test_factors_of_matrices_of_free_sizes(f: Any, shape: str) -> None:
    spec = jax.ShapeDtypeStruct(export.symbolic_shape(shape), np.float32)
    found = export.deserialize(export.export(jax.jit(f))(spec).serialize())
    fixed = [int(s) if s.strip().isdigit() else None for s in shape.split(",")]
    for n in (5, 2):
        x = positive(*[n if d is None else d for d in fixed])
        np.testing.assert_allclose(found.call(x), f(x), rtol=1e-3, atol=1e-3)


def test_matrices_with_more_rows_than_columns() -> None:
    scope = export.symbolic_shape("m, n", constraints=["m >= n"])
    found = round_trip(jax.jit(lambda a: jnp.linalg.qr(a)[1]), jax.ShapeDtypeStruct(scope, "f4"))
    for m, n in ((5, 3), (4, 4)):
        x = positive(m, m)[:, :n]
        np.testing.assert_allclose(found.call(x), jnp.linalg.qr(x)[1], rtol=1e-4, atol=1e-4)


def test_fourier_transforms_of_free_batches() -> None:
    def f(x: Any) -> Any:
        return jnp.fft.fft(x), jnp.fft.irfft2(jnp.fft.rfft2(x, axes=(1, 2)), axes=(1, 2))

    spec = jax.ShapeDtypeStruct(export.symbolic_shape("b, 4, 6"), np.float32)
    found = round_trip(jax.jit(f), spec)
    for b in (1, 3):
        x = np.random.default_rng(b).standard_normal((b, 4, 6)).astype(np.float32)
        for got, wanted in zip(found.call(x), f(x), strict=True):
            np.testing.assert_allclose(got, wanted, atol=1e-5)


def test_operations_without_a_form_for_free_sizes() -> None:
    fast = jax.random.key(0, impl="rbg")
    for f, message in (
        (lambda x: jnp.fft.fft(x), r"export: fft at .* has no form for free sizes"),
        (lambda x: jax.random.normal(fast, x.shape), "those of other generators have fixed sizes"),
    ):
        with pytest.raises(NotImplementedError, match=message):
            free(f, "a")

    def largest(x: Any) -> Any:
        return lax.reduce_window(x, -jnp.inf, lax.max, (3,), (2,), "SAME").sum()

    with pytest.raises(NotImplementedError, match="windows that select have fixed sizes"):
        free(jax.grad(largest), "a")
    one_by_one = pytest.raises(NotImplementedError, match="jax_threefry_partitionable on")
    with jax.threefry_partitionable(False), one_by_one:
        free(lambda x: jax.random.bits(KEY, x.shape), "a")
    one, other = (jax.ShapeDtypeStruct(export.symbolic_shape(s), np.float32) for s in "ab")
    with pytest.raises(ValueError, match="Invalid mixing of symbolic scopes"):
        export.export(jax.jit(jnp.add))(one, other)


KEY = jax.random.key(0)


def test_several_platforms() -> None:
    f = jax.jit(lambda x: jnp.tanh(x) @ x.T)
    for platforms in (["cpu", "tpu"], ["tpu", "cuda", "cpu"]):
        found = export.deserialize(export.export(f, platforms=platforms)(X).serialize(1))
        assert found.platforms == tuple(platforms)
        np.testing.assert_allclose(found.call(X), f(X), rtol=1e-5)
        again = export.export(jax.jit(found.call), platforms=platforms[::-1])(X)
        np.testing.assert_allclose(again.call(X), f(X), rtol=1e-5)
        g = jax.grad(lambda x, call=found.call: call(x).sum())(X)
        np.testing.assert_allclose(g, jax.grad(lambda x: f(x).sum())(X), rtol=1e-4)
        own = jax.jit(lambda x: x * lax.platform_dependent(cpu=lambda: 2.0, default=lambda: 3.0))
        inner = export.export(own, platforms=platforms)(X)
        outer = export.export(jax.jit(inner.call), platforms=platforms[::-1])(X)
        assert "stablehlo.case" in outer.mlir_module()  # it has another place among them
        np.testing.assert_allclose(outer.call(X), 2 * X)
    both = free(f, "a, b", platforms=["tpu", "cpu"])
    np.testing.assert_allclose(both.call(X), f(X), rtol=1e-5)


THERE = """
import sys, numpy as np, jax, jax.numpy as jnp
from jax import export
folder = sys.argv[1]
X, W = np.load(folder + "/x.npy"), np.load(folder + "/w.npy")
found = export.deserialize(bytearray(open(folder + "/ours", "rb").read()))
np.save(folder + "/value", found.call(X, {"w": W})["a"])
np.save(folder + "/grad", jax.grad(lambda x: found.call(x, {"w": W})["a"].sum())(X))
f = jax.jit(lambda x, k: {"a": jnp.tanh(x).sum(1), "k": jax.random.split(k)[1]})
blob = export.export(f)(X, jax.random.key(3)).serialize(vjp_order=1)
open(folder + "/theirs", "wb").write(blob)
free = export.deserialize(bytearray(open(folder + "/our free", "rb").read()))
np.save(folder + "/free value", free.call(X, W))
np.save(folder + "/free grad", jax.grad(lambda x: free.call(x, W).sum())(X))
try:
    free.call(X, W.T)
except ValueError as e:
    assert "Found inconsistency" in str(e), e
g = jax.jit(lambda x: jnp.cumsum(x, 1)[1:] * x.shape[0])
specs = export.symbolic_args_specs([X], ["a, 2*b + 1"])
blob = export.export(g, platforms=["cpu", "cuda"])(*specs).serialize(vjp_order=1)
open(folder + "/their free", "wb").write(blob)
"""


@pytest.mark.peer
def test_bytes_go_to_jax_and_come_from_it(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("jax")
    pytest.importorskip("flatbuffers")
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "w.npy", W)
    made = export.export(several)(X, {"w": W})
    (tmp_path / "ours").write_bytes(made.serialize(vjp_order=1))

    def product(x: Any, w: Any) -> Any:
        return jax.nn.softmax(jnp.sin(x) @ w) * x.shape[0]

    specs = export.symbolic_args_specs([X, W], ["a, b", "b, c"])
    free_one = export.export(jax.jit(product), platforms=["tpu", "cpu"])(*specs)
    (tmp_path / "our free").write_bytes(free_one.serialize(vjp_order=1))
    done = subprocess.run(
        [sys.executable, "-c", THERE, str(tmp_path)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.load(tmp_path / "value.npy"), np.sin(X) @ W, rtol=1e-5, atol=1e-6)
    expected = jax.grad(lambda x: several(x, {"w": W})["a"].sum())(X)
    np.testing.assert_allclose(np.load(tmp_path / "grad.npy"), expected, rtol=1e-5, atol=1e-6)
    found = export.deserialize((tmp_path / "theirs").read_bytes())
    got = found.call(X, jax.random.key(3))
    np.testing.assert_allclose(got["a"], np.tanh(X).sum(1), rtol=1e-5)
    np.testing.assert_array_equal(
        jax.random.key_data(got["k"]), jax.random.key_data(jax.random.split(jax.random.key(3))[1])
    )
    g = jax.grad(lambda x: found.call(x, jax.random.key(3))["a"].sum())(X)
    np.testing.assert_allclose(g, 1 - np.tanh(X) ** 2, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(np.load(tmp_path / "free value.npy"), product(X, W), rtol=1e-5)
    expected = jax.grad(lambda x: product(x, W).sum())(X)
    np.testing.assert_allclose(np.load(tmp_path / "free grad.npy"), expected, atol=1e-5)
    theirs = export.deserialize((tmp_path / "their free").read_bytes())
    assert str(theirs.in_avals[0].shape) == "(a, 2*b + 1)" and theirs.platforms == ("cpu", "cuda")
    for x in (X, np.ones((4, 5), np.float32)):
        np.testing.assert_allclose(theirs.call(x), np.cumsum(x, 1)[1:] * len(x), rtol=1e-5)
    g = jax.grad(lambda x: theirs.call(x).sum())(X)
    np.testing.assert_allclose(g, [[0, 0, 0], [6, 4, 2]], rtol=1e-5)


def test_functions_of_the_library_are_exported() -> None:
    found = export.deserialize(export.export(jnp.sin)(X).serialize())
    assert found.platforms == ("cpu",) and found.fun_name == "sin"
    np.testing.assert_allclose(found.call(X), np.sin(X), rtol=1e-5, atol=1e-6)


def test_programs_for_several_platforms_say_that_they_ask_which() -> None:
    f = jax.jit(lambda x: x * lax.platform_dependent(cpu=lambda: 2.0, default=lambda: 3.0))
    several = export.export(f, platforms=["abacus", "tpu", "cpu"])(X)
    assert "jax.uses_shape_polymorphism = true" in several.mlir_module()
    found = export.deserialize(several.serialize())
    assert found.platforms == ("abacus", "tpu", "cpu") and found.uses_global_constants
    np.testing.assert_allclose(found.call(X), 2 * X)
    outer = export.export(jax.jit(found.call))(X)
    assert "jax.uses_shape_polymorphism = true" in outer.mlir_module()
    np.testing.assert_allclose(export.deserialize(outer.serialize()).call(X), 2 * X)


def test_products_in_groups() -> None:
    sizes = np.array([1, 0, 3], np.int32)
    lhs = np.arange(12, dtype=np.float32).reshape(4, 3)
    rhs = np.arange(18, dtype=np.float32).reshape(3, 3, 2)
    made = export.export(jax.jit(lax.ragged_dot))(lhs, rhs, sizes)
    found = export.deserialize(made.serialize()).call(lhs, rhs, sizes)
    np.testing.assert_allclose(found, lax.ragged_dot(lhs, rhs, sizes), rtol=1e-6)


def test_shapes_of_arguments_may_be_a_list_and_sizes_be_divided_by_sums() -> None:
    specs = export.symbolic_args_specs((X, X), ["a, b", "a, _"])
    assert [str(s.shape) for s in specs] == ["(a, b)", "(a, 3)"]
    (c,) = export.symbolic_shape("c")
    spec = jax.ShapeDtypeStruct((3, c + 4, 12), np.float32)
    made = export.export(jax.jit(lambda x: x.reshape(-1, x.shape[1])))(spec)
    assert made.out_avals[0].shape == (36, c + 4)
    assert made.call(np.ones((3, 6, 12), np.float32)).shape == (36, 6)
    sized = export.export(jax.jit(lambda x: lax.shape_as_value((*x.shape, 7))))(specs[0])
    assert sized.call(X).tolist() == [2, 3, 7]


def test_larger_of_two_sizes() -> None:
    def f(x: Any) -> Any:
        return jnp.ones(jax.core.max_dim(x.shape[0] - 5, 2))

    made = export.export(jax.jit(f))(jax.ShapeDtypeStruct(export.symbolic_shape("b"), np.float32))
    assert str(made.out_avals[0].shape) == "(max(b - 5, 2),)"
    assert [made.call(np.ones(n, np.float32)).shape for n in (3, 9)] == [(2,), (4,)]


ON_EIGHT = """
import numpy as np, calque as jax
from calque import export
from calque.sharding import NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((8,), ("a",), (jax.sharding.AxisType.Auto,))
x = np.arange(64, dtype=np.float32).reshape(8, 8)
large = np.arange(640, dtype=np.float32).reshape(10, 8, 8)

@jax.jit
def f(x, y):
    return jax.lax.with_sharding_constraint(x + y + large.sum(0), NamedSharding(mesh, P("a")))

for shapes in (None, ["8, n", "8, n"]):
    specs = export.symbolic_args_specs((x, x), shapes)
    if shapes:
        where = NamedSharding(mesh, P("a"))
        f = jax.jit(lambda x, y: jax.lax.with_sharding_constraint(x + y, where))
    made = export.deserialize(export.export(f)(*specs).serialize())
    placed = [jax.device_put(x, NamedSharding(mesh, P(*p))) for p in ((None, "a"), ("a",))]
    out = jax.jit(made.call, out_shardings=NamedSharding(mesh, P("a")))(*placed)
    np.testing.assert_allclose(out, 2 * x + (0 if shapes else large.sum(0)))
    assert out.addressable_shards[0].data.shape == (1, 8)
"""


def test_arguments_of_several_devices_that_say_nothing_of_where_they_live() -> None:
    """Every device has the whole of them: nothing is left to the compiler's choice."""
    environment = {**os.environ, "CALQUE_NUM_CPU_DEVICES": "8"}
    subprocess.run([sys.executable, "-c", ON_EIGHT], env=environment, check=True)


@pytest.mark.parametrize("backend", [None, "xla_cpu"])
def test_batches_are_served_one_example_after_the_other(backend: str | None) -> None:
    def f(x: Any, w: Any) -> Any:
        return jnp.sin(x) @ w

    x = np.arange(12, dtype=np.float32).reshape(4, 3) / 7
    w = np.arange(6, dtype=np.float32).reshape(3, 2)
    blob = export.export(jax.jit(f))(x[0], w).serialize(vjp_order=1)
    found = export.deserialize(blob)
    batched = jax.jit(jax.vmap(found.call, (0, None), 1), backend=backend)(x, w)
    np.testing.assert_allclose(batched, f(x, w).T, rtol=1e-6)

    def slope(h: Any) -> Any:
        return jax.vmap(jax.grad(lambda a, b: h(a, b).sum(), (0, 1)), (0, None))(x, w)

    for own, expected in zip(slope(found.call), slope(f)):
        np.testing.assert_allclose(own, expected, rtol=1e-5, atol=1e-6)


def test_what_platforms_share_is_written_once() -> None:
    def f(x: Any) -> Any:
        return lax.platform_dependent(
            jnp.sin(x), cpu=lambda v: v + 1, tpu=lambda v: v + 2, default=lambda v: v + 3
        )

    made = export.export(jax.jit(f), platforms=["tpu", "cpu", "cuda", "rocm"])(X)
    assert made.mlir_module().count("stablehlo.sine") == 1
    np.testing.assert_allclose(made.call(X), np.sin(X) + 1, rtol=1e-6)


def test_memory_is_given_away_on_all_platforms_or_on_none() -> None:
    f = jax.jit(jnp.sin, donate_argnums=0)
    export.export(f, platforms=["cpu", "tpu"])(X)
    export.export(f, platforms=["other"])(X)
    with pytest.raises(NotImplementedError, match=r"all or no lowering platforms.*\('cpu',\) supp"):
        export.export(f, platforms=["cpu", "other"])(X)


def test_modules_know_where_operations_were_made() -> None:
    text = export.export(jax.jit(lambda angle: {"s": jnp.sin(angle)}))(X).mlir_module()
    assert 'loc("angle")' in text and "test_exported.py" in text
    assert "jax.result_info = \"result['s']\"" in text

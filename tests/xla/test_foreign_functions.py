"""A library in C++, as others build theirs: called by calque's own engine and by XLA."""

import ctypes
import pathlib
import shutil
import subprocess

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from tests.machine.foreign.handlers import handler
from tests.xla.mlir import needs_jaxlib

COMPILER = shutil.which("g++") or shutil.which("clang++")
pytestmark = [needs_jaxlib, pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("foreign") / "library.so"
    source = pathlib.Path(__file__).parent / "foreign.cc"
    include = jax.ffi.include_dir()
    command = [COMPILER, "-std=c++17", "-w", "-shared", "-fPIC", f"-I{include}", source, "-o", path]
    subprocess.run(command, check=True, capture_output=True)
    found = ctypes.CDLL(str(path))
    found.CounterId.restype = found.CounterInfo.restype = ctypes.c_void_p
    capsule = jax.ffi.pycapsule
    kind = {"type_id": capsule(found.CounterId()), "type_info": capsule(found.CounterInfo())}
    jax.ffi.register_ffi_type("Counter", kind)
    for name in ("Normalise", "AllKinds", "WithMemory"):
        jax.ffi.register_ffi_target(name, capsule(getattr(found, name)))
    counting = {"instantiate": capsule(found.CounterBegin), "execute": capsule(found.CounterNext)}
    jax.ffi.register_ffi_target("Counter", counting)
    return found


@pytest.fixture(params=["cpu", "xla_cpu"])
def on(request, library):
    """A function compiled for an engine."""
    return lambda f: jax.jit(f, backend=request.param)


def normalise(x, **options):
    call = jax.ffi.ffi_call("Normalise", jax.ShapeDtypeStruct(x.shape, x.dtype), **options)
    return call(x, eps=np.float32(1e-5))


def test_a_function_with_an_attribute(on):
    x = jnp.linspace(-1, 1, 24).reshape(2, 3, 4)
    want = x / np.sqrt((np.asarray(x) ** 2).mean(-1, keepdims=True) + np.float32(1e-5))
    np.testing.assert_allclose(on(normalise)(x), want, rtol=1e-6)
    lanes = jax.vmap(lambda x: normalise(x, vmap_method="broadcast_all"))
    np.testing.assert_allclose(on(lanes)(x), want, rtol=1e-6)
    lanes = jax.vmap(lambda x: normalise(x, vmap_method="sequential"), 1, 1)
    np.testing.assert_allclose(on(lanes)(x), want, rtol=1e-6)


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda x: normalise(x[0]), "INVALID_ARGUMENT: x must be an array"),
        (lambda x: normalise(x.astype("int32")), "INVALID_ARGUMENT: .*Failed to decode"),
        (lambda x: jax.ffi.ffi_call("Normalise", x)(x), "Wrong number of attributes"),
        (lambda x: jax.ffi.ffi_call("Normalise", x)(x, eps=1e-5), "Failed to decode"),
    ],
)
def test_errors_of_the_library(on, call, said):
    with pytest.raises(jax.errors.JaxRuntimeError, match=said):
        jax.block_until_ready(on(call)(jnp.ones(3)))


def test_each_call_in_a_program_has_its_state(on):
    number = jax.ShapeDtypeStruct((), np.int32)

    def count():
        return jax.ffi.ffi_call("Counter", number, has_side_effect=True)()

    two = on(lambda: (count(), count()))
    assert [[int(n) for n in two()] for _ in range(3)] == [[0, 0], [1, 1], [2, 2]]
    loop = on(lambda: jax.lax.fori_loop(0, 5, lambda i, c: c + count(), jnp.int32(0)))
    assert [int(loop()) for _ in range(2)] == [10, 35]


def test_calls_outside_of_programs_share_a_state(library):
    number = jax.ShapeDtypeStruct((), np.int32)

    def count():
        return int(jax.ffi.ffi_call("Counter", number)())

    first = count()
    assert [count(), count()] == [first + 1, first + 2]


def test_attributes_arguments_and_tasks(on):
    def f(*args):
        return jax.ffi.ffi_call("AllKinds", jax.ShapeDtypeStruct((9,), np.float32))(
            *args,
            text="héllo", flag=True, narrow=np.int32(-3), whole=5, real=2.5,
            row=np.arange(4), inside={"q": np.float32(1.5)},
        )  # fmt: skip

    got = on(f)(jnp.ones(3), jnp.zeros((2, 2)))
    assert got.tolist() == [6, 1, -3, 5, 2.5, 6, 1.5, 2, 45]


def test_memory_for_the_call(library):  # XLA's CPU gives none
    f = jax.jit(lambda: jax.ffi.ffi_call("WithMemory", jax.ShapeDtypeStruct((3,), np.int32))())
    assert f().tolist() == [0, 33, 66]


def test_sizes_and_no_elements(on):
    f = on(normalise)
    assert [round(float(f(jnp.ones((n, 3))).sum()), 2) for n in (1, 2, 5)] == [3, 6, 15]
    assert f(jnp.ones((0, 3))).shape == (0, 3)


def test_parts_on_several_devices(on):
    mesh = jax.make_mesh((1,), ("x",))
    split = jax.shard_map(normalise, mesh=mesh, in_specs=jax.P("x"), out_specs=jax.P("x"))
    x = jnp.linspace(0, 1, 8).reshape(2, 4)
    np.testing.assert_allclose(jax.jit(split)(x), jax.jit(normalise)(x), rtol=1e-6)


def test_a_function_that_xla_refuses_is_missing_there_alone(library, caplog):
    newer = handler(lambda frame: None, version=(1, 0))
    jax.ffi.register_ffi_target("of a later version", newer)
    on_xla = jax.jit(normalise, backend="xla_cpu")
    assert on_xla(jnp.ones((4, 2))).shape == (4, 2)
    assert "XLA refuses the foreign function 'of a later version'" in caplog.text
    call = jax.ffi.ffi_call("of a later version", jnp.ones(3))
    with pytest.raises(jax.errors.JaxRuntimeError, match="NOT_FOUND"):
        jax.jit(lambda: call(), backend="xla_cpu")()
    with pytest.raises(ValueError, match=r"version 1\.0"):
        jax.jit(lambda: call())()

"""`jax.ffi`: foreign functions called from programs."""

import ctypes
import importlib.util

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque.experimental.layout import Layout
from calque.interpreters import mlir
from tests.foreign_functions import CALLS, scaled

needs_jaxlib = pytest.mark.skipif(
    importlib.util.find_spec("jaxlib") is None, reason="needs jaxlib, an extra"
)
X = jnp.ones(3)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_results_are_those_of_the_function(wrap):
    x = jnp.arange(6.0).reshape(2, 3)
    assert wrap(scaled)(x).tolist() == (2 * x).tolist()
    assert wrap(lambda x: scaled(x + 1, x) + 1)(x).tolist() == (3 * x + 3).tolist()


def test_results_come_as_they_were_asked_for():
    x = jnp.ones(3)

    def call(results):
        return jax.ffi.ffi_call("scaled", results)(x, factor=np.float32(3))

    assert isinstance(call([x]), list) and isinstance(call((x,)), tuple)
    assert call(x).tolist() == [3, 3, 3]


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_memory_shared_by_argument_and_result_is_a_copy(wrap):
    x = jnp.arange(4)

    def call(x, pairs):
        return jax.ffi.ffi_call("in place", x, input_output_aliases=pairs)(x)

    assert wrap(lambda x: (call(x, {0: 0}), x))(x)[0].tolist() == [1, 2, 3, 4]
    assert x.tolist() == [0, 1, 2, 3]
    with pytest.raises(jax.errors.JaxRuntimeError, match="FAILED_PRECONDITION: not in place"):
        wrap(lambda x: call(x, None))(x)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_errors_of_functions(wrap):
    x = jnp.ones(3)
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"INVALID_ARGUMENT: x is wrong.*'fails'"):
        wrap(lambda x: jax.ffi.ffi_call("fails", x)(x))(x)
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"NOT_FOUND.*nobody.*register_ffi_target"):
        wrap(lambda x: jax.ffi.ffi_call("nobody", x)(x))(x)


def test_each_size_has_its_types():
    CALLS.clear()
    f = jax.jit(lambda x: scaled(x, factor=x.shape[0]))
    assert [f(jnp.ones(n)).tolist() for n in (1, 2, 5)] == [[1], [2, 2], [5] * 5]
    assert CALLS == [(1,), (2,), (5,)]
    whole = jax.jit(lambda x: jax.ffi.ffi_call("scaled", x)(x, factor=x.shape[0]))
    assert [whole(jnp.ones(n)).tolist() for n in (3, 4)] == [[3] * 3, [4] * 4]


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: jax.ffi.ffi_call("f", None), "position 0"),
        (lambda: jax.ffi.ffi_call("f", (X, ())), "position 1"),
        (lambda: jax.ffi.ffi_call("f", X, legacy_backend_config="1"), "legacy_backend_config"),
        (
            lambda: jax.ffi.ffi_call("f", X, custom_call_api_version=2)(X, a=1),
            "attributes requires",
        ),
        (lambda: jax.ffi.ffi_call("f", X, input_output_aliases={1: 0})(X), "input index 1"),
        (lambda: jax.ffi.ffi_call("f", X, input_output_aliases={0: 1})(X), "output index 1"),
        (
            lambda: jax.ffi.ffi_call("f", jnp.ones(2), input_output_aliases={0: 0})(X),
            "different abstract value",
        ),
        (
            lambda: jax.ffi.ffi_call(
                "f", jnp.ones((2, 2)), input_layouts=[(1, 0)], input_output_aliases={0: 0}
            )(jnp.ones((2, 2))),
            "different layout",
        ),
        (lambda: jax.ffi.ffi_call("f", X, input_layouts=[(0, 1)])(X), "each of 1 dimensions"),
        (lambda: jax.ffi.ffi_call("f", X, input_layouts=[])(X), "number of input arguments"),
        (lambda: jax.ffi.ffi_call("f", X, output_layouts=(0, 1))(X), "outputs 0"),
        (lambda: jax.ffi.register_ffi_target("f", {}), "has none"),
        (lambda: jax.ffi.register_ffi_type("T", {}), "has nothing"),
        (lambda: jax.ffi.register_ffi_type_id("T", None), "register_ffi_type"),
        (lambda: jax.ffi.pycapsule(0), "null"),
    ],
)
def test_what_cannot_be_is_refused(call, said):
    with pytest.raises(ValueError, match=said):
        call()


def test_functions_of_pointers():
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))

    def add_ten(out, ins):
        x = (ctypes.c_float * 3).from_address(ins[0])[:]
        (ctypes.c_float * 3).from_address(out)[:] = [v + 10 for v in x]

    function = kind(add_ten)
    capsule = jax.ffi.pycapsule(function)
    jax.ffi.register_ffi_target("ten more", capsule, api_version=0)

    def call(x, v):
        return jax.ffi.ffi_call("ten more", x, custom_call_api_version=v)(x)

    assert jax.jit(lambda x: call(x, 1))(X).tolist() == [11, 11, 11]
    with pytest.raises(NotImplementedError, match="custom_call_api_version=2"):
        call(X, 2)


@needs_jaxlib
def test_routines_that_jaxlib_brings():
    from scipy.linalg import lapack

    x = np.random.default_rng(0).standard_normal((6, 4)).astype("float32")
    outs = [jax.ShapeDtypeStruct((6, 4), x.dtype), jax.ShapeDtypeStruct((4,), x.dtype)]
    call = jax.ffi.ffi_call(
        "lapack_sgeqrf_ffi",
        outs,
        input_output_aliases={0: 0},
        input_layouts=[(1, 0)],
        output_layouts=[(1, 0), None],
    )
    qr, tau, *_ = lapack.sgeqrf(x)
    for found in (call(x), jax.jit(call)(x)):
        np.testing.assert_allclose(found[0], qr, atol=1e-5)
        np.testing.assert_allclose(found[1], tau, atol=1e-5)


@needs_jaxlib
def test_rules_that_build_the_operation():
    primitive = jax.extend.core.Primitive("of a library")
    primitive.multiple_results = True
    primitive.def_abstract_eval(lambda x: (x, jax.core.ShapedArray(x.shape[:-1], x.dtype)))

    def extra():
        return {"mhlo.frontend_attributes": mlir.ir_attribute({"num_batch_dims": "1"})}

    def rule(ctx, x):
        return jax.ffi.ffi_lowering(
            "lapack_sgeqrf_ffi",
            operand_layouts=[Layout((0, 2, 1))],
            result_layouts=[(1, 2, 0), None],
            operand_output_aliases={0: 0},
            extra_attributes=extra(),
        )(ctx, x)

    mlir.register_lowering(primitive, rule, platform="cpu")
    x = np.random.default_rng(0).standard_normal((2, 3, 3)).astype("float32")
    r = np.triu(jax.jit(primitive.bind)(x)[0])
    want = np.stack([np.linalg.qr(m)[1] for m in x])
    np.testing.assert_allclose(np.abs(r), np.abs(want), atol=1e-5)
    text = jax.jit(primitive.bind).lower(x).as_text()
    assert "@lapack_sgeqrf_ffi" in text and 'num_batch_dims = "1"' in text
    assert "operand_layouts = [dense<[1, 2, 0]>" in text


@needs_jaxlib
def test_the_headers_are_there():
    import os

    for name in ("c_api.h", "api.h", "ffi.h"):
        assert os.path.exists(os.path.join(jax.ffi.include_dir(), "xla", "ffi", "api", name))

"""Python called from programs on XLA."""

from typing import Any

import numpy as np
import pytest

import calque as jax
from calque.core.trace import trace_to_jaxpr, typeof
from calque.xla.lower.callbacks import HostFunction, call_host, custom_call, host_call, layouts
from calque.xla.text.types import TOKEN, Tensor, type_of
from tests.xla.lower.shared import blank, f32, i32, on_both, operations, text_of, written
from tests.xla.mlir import needs_jaxlib, printed

x = np.arange(6, dtype=np.float32).reshape(2, 3)


def host_function(f: Any, *args: Any, ordered: bool = False) -> HostFunction:
    """The last equation of a program as a function of NumPy arrays."""
    closed = trace_to_jaxpr(lambda *xs: jax.tree.leaves(f(*xs)), [*map(typeof, args)])
    e = closed.eqns[-1]
    return HostFunction(e, [type_of(v.aval) for v in e.outvars], ordered=ordered)


def test_results_are_of_the_types_that_the_program_expects() -> None:
    two = (jax.ShapeDtypeStruct((2, 3), np.float32), jax.ShapeDtypeStruct((), np.int32))
    call = host_function(
        lambda x: jax.pure_callback(lambda v: (v.T.copy().T, np.int32(7)), two, x), x
    )
    found, number = call(np.asfortranarray(x))
    assert found.flags.c_contiguous and found.dtype == np.float32 and number.shape == ()
    np.testing.assert_array_equal(found, x)
    assert "pure_callback at" in repr(call)


def test_keys_come_as_records_and_go_as_words() -> None:
    keys = jax.random.split(jax.random.key(0), 2)
    call = host_function(lambda k: jax.random.split(k, 3), jax.random.key(0))
    (words,) = call(np.asarray(jax.random.key_data(jax.random.key(0))))
    assert (words.shape, words.dtype) == ((3, 2), np.uint32)
    want = jax.random.key_data(jax.random.split(jax.random.key(0), 3))
    np.testing.assert_array_equal(words, want)
    assert call.records[0] is not None and keys.shape == (2,)


def test_a_token_goes_through_where_order_is_kept() -> None:
    call = host_function(jax.numpy.sin, x, ordered=True)
    token, found = call("token", x)
    assert token == "token"
    np.testing.assert_allclose(found, np.sin(x), rtol=1e-6)


def test_errors_are_kept_for_whoever_asks() -> None:
    def fails(v: Any) -> Any:
        raise ZeroDivisionError("no such number")

    call = host_function(lambda x: jax.pure_callback(fails, x, x), x)
    with pytest.raises(ZeroDivisionError):
        call(x)
    error = call.take_error()
    assert isinstance(error, ZeroDivisionError) and call.take_error() is None


def test_layouts_of_rows_and_of_columns() -> None:
    types = [f32(), f32(4), f32(2, 3), f32(2, 3, 4), TOKEN]
    assert layouts(types) == (
        "[dense<> : tensor<0xindex>, dense<0> : tensor<1xindex>, dense<[1, 0]> : tensor<2xindex>,"
        " dense<[2, 1, 0]> : tensor<3xindex>, dense<> : tensor<0xindex>]"
    )
    assert layouts([f32(2, 3), f32(5, 2, 3), f32(4)], columns_first=True) == (
        "[dense<[0, 1]> : tensor<2xindex>, dense<[1, 2, 0]> : tensor<3xindex>,"
        " dense<0> : tensor<1xindex>]"
    )


@needs_jaxlib
def test_attributes_of_a_call() -> None:
    b, args = blank(f32(2, 3), i32())
    kinds = [Tensor((2,), np.dtype("int8"))]
    attributes = {"has_side_effect": "true", "backend_config": '"x"'}
    (out,) = custom_call(b, "routine", kinds, args, attributes)
    text = written(b, out)
    assert '@routine(%arg0, %arg1) {backend_config = "x", has_side_effect = true}' in text
    assert printed(text).strip() == text.strip()


def test_calls_are_numbered_in_the_order_of_the_program() -> None:
    b, args = blank(f32(2))
    functions = [host_function(jax.numpy.sin, np.ones(2, np.float32)) for _ in range(2)]
    for f in functions:
        call_host(b, f, [f32(2)], args)
    assert b.state.callbacks == functions
    text = written(b)
    assert "index = 0 : ui64" in text and "index = 1 : ui64" in text
    assert "has_side_effect" not in text


def test_platforms_that_cannot_call_the_host() -> None:
    b, args = blank(f32(2), platform="tpu")
    function = host_function(jax.numpy.sin, np.ones(2, np.float32))
    with pytest.raises(NotImplementedError, match=r"on tpu cannot call Python.*sin at"):
        call_host(b, function, [f32(2)], args)
    b, args = blank(f32(2), platform="cuda")
    call_host(b, function, [f32(2)], args)
    assert "xla_ffi_python_gpu_callback" in written(b)


def test_what_empty_arrays_give_is_known_beforehand() -> None:
    """Nothing is called then, also where nothing can be."""
    empty = np.ones((3, 0), np.float32)
    (e,) = trace_to_jaxpr(lambda x: list(jax.lax.linalg.qr(x)), [typeof(empty)]).eqns
    outs = [type_of(v.aval) for v in e.outvars]
    b, args = blank(f32(3, 0), platform="tpu")
    host_call(b, e, outs, args)
    assert "custom_call" not in written(b)
    q, r = on_both(jax.lax.linalg.qr, empty)
    np.testing.assert_array_equal(q, np.eye(3))
    assert r.shape == (3, 0)


def test_effects_and_their_order_are_said() -> None:
    def shown(x: Any) -> Any:
        jax.debug.print("{}", x[0, 0])
        jax.debug.print("{}", x[0, 1], ordered=True)
        return jax.pure_callback(lambda v: v, x, x)

    text = text_of(shown, x)
    lines = [line for line in text.splitlines() if "custom_call" in line]
    assert ["has_side_effect" in line for line in lines] == [True, True, False]
    assert ["token" in line for line in lines] == [False, True, False]
    assert operations(text)["create_token"] == 1


@needs_jaxlib
def test_arrays_of_any_kind_go_to_the_host_and_back() -> None:
    def there(x: Any) -> Any:
        def swapped(a: Any, n: Any) -> Any:
            return np.asarray(n) > 2, np.asarray(a).T + 1j

        kinds = (
            jax.ShapeDtypeStruct((2, 3), np.bool_),
            jax.ShapeDtypeStruct((3, 2), np.complex64),
        )
        return jax.pure_callback(swapped, kinds, x, x.astype(np.int8))

    truth, complex_ = on_both(there, x)
    np.testing.assert_array_equal(truth, x > 2)
    np.testing.assert_array_equal(complex_, x.T + 1j)

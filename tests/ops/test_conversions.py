"""Constants in another dtype: floats out of the range of an integer dtype take its nearest end, in
eager calls as in compiled programs, unless an array has to hold them."""

import math

import ml_dtypes
import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.ops import conversions

ENDS = [(1e20, "max"), (-1e20, "min"), (math.inf, "max"), (-math.inf, "min"), (math.nan, None)]
INTEGERS = ["int8", "uint8", "int32", "uint32"]


def at_end(end, dtype):
    return 0 if end is None else int(getattr(jnp.iinfo(dtype), end))


def places(value, dtype):
    """The elements that a constant becomes in the functions that take one."""
    x = jnp.arange(3).astype(dtype)
    fill = jnp.full(2, value, dtype)[0], lax.full((2,), value, dtype)[0]
    like = jnp.full_like(x, value)[0], lax.full_like(x, value)[0]
    put = x.at[1].set(value)[1], jnp.pad(x, 1, constant_values=value)[0]
    return [*fill, *like, *put, lax.convert_element_type(value, dtype)]


@pytest.mark.parametrize(("value", "end"), ENDS)
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.filterwarnings("ignore:scatter inputs have incompatible types:FutureWarning")
def test_constants_saturate_in_every_function_with_and_without_jit(value, end, dtype):
    wanted = at_end(end, dtype)
    assert [int(v) for v in places(value, dtype)] == [wanted] * 7
    assert [int(v) for v in calque.jit(lambda: places(value, dtype))()] == [wanted] * 7


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
@pytest.mark.parametrize(("value", "end"), ENDS)
def test_constants_of_64_bits_saturate(value, end, dtype):
    with calque.enable_x64(True):
        assert int(jnp.full(2, value, dtype)[0]) == at_end(end, dtype)


@pytest.mark.parametrize("nested", [lambda v: v, lambda v: [1, v], lambda v: [[v]]])
def test_arrays_refuse_what_their_dtype_cannot_hold(nested):
    for value, kind, words in [
        (1e20, OverflowError, "out of the range of int8"),
        (math.inf, OverflowError, "out of the range of int8"),
        (300.7, OverflowError, "-128 to 127"),
        (300, OverflowError, "300 is out of the range of int8"),
        (math.nan, ValueError, "nan is no integer"),
        (1 + 2j, TypeError, "take its real part"),
    ]:
        with pytest.raises(kind, match=words):
            jnp.array(nested(value), "int8")
    assert jnp.array(nested(127.9), "int8").max() == 127
    with pytest.raises(OverflowError, match="out of the range of int4"):
        jnp.array(nested(8.5), ml_dtypes.int4)


def test_ints_beyond_64_bits_are_floats_where_floats_are_asked_for():
    assert jnp.array(10**30, "float32") == np.float32(1e30)
    with pytest.raises(OverflowError, match="an integer of 1329 bits"):
        jnp.array(10**400, "float32")


def test_complex_constants_take_complex_dtypes_and_bools():
    for fill in (jnp.full, lax.full):
        with pytest.raises(TypeError, match="take its real part"):
            fill((2,), 1 + 2j, "float32")
        assert fill((2,), 1 + 2j, bool).all()
    assert jnp.array(1 + 2j, bool)


def test_elements_of_lists_that_are_arrays_saturate():
    assert jnp.array([jnp.array(1e20), 1], "int32").tolist() == [2**31 - 1, 1]


def test_constants_of_less_than_a_byte_saturate():
    for value, end in ENDS:
        assert int(jnp.full(1, value, ml_dtypes.int4)[0]) == at_end(end, ml_dtypes.int4)


def test_converted_wraps_ints_of_less_than_a_byte():
    out = conversions.converted(np.array([9, -9]), np.dtype(ml_dtypes.int4))
    assert out.astype(int).tolist() == [-7, 7]


def test_constants_of_narrow_floats_and_near_the_ends():
    i32, u8 = np.dtype("int32"), np.dtype("uint8")
    assert conversions.constant_of(ml_dtypes.bfloat16(1e20), i32) == 2**31 - 1
    assert conversions.constant_of(np.float32(3e9), i32) == 2**31 - 1
    assert [int(conversions.constant_of(v, u8)) for v in (-1.5, -0.5, 254.9, 255.5)] == [
        0,
        0,
        254,
        255,
    ]


def test_complex_nan_is_0_and_other_complex_numbers_are_refused() -> None:
    for value in (complex(np.nan, 0), complex(0, np.nan), complex(np.nan, 1)):
        assert int(lax.convert_element_type(value, np.int32)) == 0
    with pytest.raises(TypeError, match="take its real part"):
        lax.convert_element_type(3 + 2j, np.int32)

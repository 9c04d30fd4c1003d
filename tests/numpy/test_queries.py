"""Questions about dtypes."""

import ml_dtypes
import numpy as np
import pytest

import calque.numpy as jnp
from tests.numpy.expressions import ARRAYS, check_jax, check_jit, check_numpy, lines

DATA = ARRAYS

CASES = lines("""
jnp.promote_types('int32','float16')
jnp.result_type('int8',2.0)
jnp.result_type(2,np.float32(1))
jnp.can_cast('int8','float32')
jnp.isscalar(3)
jnp.isscalar(np.float32(3))
jnp.isscalar('a')
jnp.isscalar([1])
jnp.size(np.ones((2,3)),1)
jnp.ndim(3.)
jnp.iscomplexobj(1j)
jnp.promote_types(float,'bfloat16')
jnp.issubdtype('bfloat16',np.floating)
jnp.issubdtype('float32',np.floating)
jnp.issubdtype(np.floating,np.inexact)
jnp.issubdtype('int4',np.integer)
jnp.issubdtype(np.int32,np.int32)
jnp.issubdtype(int,np.integer)
jnp.issubdtype('float32',float)
jnp.isdtype('int8','integral')
jnp.isdtype('int8',('bool','real floating'))
jnp.isdtype('float32',np.float32)
""")


@pytest.mark.parametrize("case", CASES)
def test_as_numpy(case):
    check_numpy(case, DATA)


@pytest.mark.parametrize("case", CASES[::3])
def test_under_jit(case):
    check_jit(case, DATA)


@pytest.mark.peer
@pytest.mark.parametrize("case", CASES)
def test_as_jax(case):
    check_jax(case, DATA)


def test_what_is_no_array_is_one_object_for_now():
    for f, found in ((jnp.shape, ()), (jnp.ndim, 0), (jnp.size, 1)):
        for x in (None, object()):
            with pytest.warns(DeprecationWarning, match="requires ndarray or scalar arguments"):
                assert f(x) == found


def test_types_without_a_common_64_bit_type():
    """Where no 64-bit type is named and they are not enabled, none is found."""
    assert jnp.promote_types("int32", "uint32") == jnp.promote_types("int8", "uint32") == "int32"
    assert jnp.promote_types("int8", "int64") == jnp.promote_types("int64", "uint32") == "int64"


def test_every_narrow_float_is_a_float():
    for name in dir(ml_dtypes):
        dtype = getattr(ml_dtypes, name)
        if name.startswith(("float", "bfloat")):
            for own in (dtype, np.dtype(dtype), name):
                assert jnp.issubdtype(own, np.floating), name
                assert jnp.issubdtype(own, jnp.inexact) and not jnp.issubdtype(own, np.float64)
    assert not jnp.issubdtype("int4", np.floating)
    assert jnp.issubdtype("int4", np.signedinteger) and jnp.issubdtype("uint4", np.integer)

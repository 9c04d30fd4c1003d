"""jnp.add.reduce and its like."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from tests.numpy.expressions import ARRAYS, check_jax, check_jit, check_numpy, lines

DATA = ARRAYS

CASES = lines("""
jnp.add.reduce(np.arange(6).reshape(2,3))
jnp.add.reduce(np.arange(6).reshape(2,3),axis=None,keepdims=True)
jnp.multiply.accumulate(np.arange(1,7).reshape(2,3))
jnp.subtract.accumulate(np.arange(1,7).reshape(2,3),axis=1)
jnp.subtract.reduce(np.arange(1,7))
jnp.add.outer(np.arange(2),np.arange(3))
jnp.add.at(np.zeros(3),np.array([0,0,2]),np.array([1.,2.,3.]),inplace=False)
jnp.add.reduceat(np.arange(8),np.array([0,4,1,5]))
jnp.maximum.reduce(np.arange(6).reshape(2,3))
jnp.logical_and.reduce(np.array([True,False]))
jnp.logical_xor.reduce(np.array([1,2,0]))
jnp.bitwise_and.reduce(np.array([7,3]))
jnp.bitwise_xor.reduce(np.array([7,3]))
jnp.logaddexp.reduce(np.array([1.,2.,3.]))
jnp.negative.at(np.arange(3),np.array([0,2]),inplace=False)
jnp.bitwise_xor.accumulate(np.array([7,3]))
jnp.bitwise_or.at(np.array([7,3]),np.array([1,1]),np.array([8,16]),inplace=False)
jnp.add.reduce(np.arange(3.),where=np.array([True,False,True]))
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


@pytest.mark.parametrize("name", ["nin", "nout", "nargs", "identity", "_func"])
def test_what_a_ufunc_says_of_itself_cannot_be_set(name):
    for f in (jnp.add, jnp.frompyfunc(lambda x, y: x, 2, 1, identity=0)):
        before = getattr(f, name)
        with pytest.raises(AttributeError):
            setattr(f, name, 7)
        assert getattr(f, name) == before
    assert not hasattr(jnp.sum, name) and not hasattr(calque.jit(lambda x: x), name)


@pytest.mark.parametrize("rows", [0, 1, 3])
@pytest.mark.parametrize(
    "name,dtype,made",
    [
        ("logical_xor", "int16", "bool"),
        ("logaddexp", "int8", "float32"),
        ("logaddexp2", "int32", "float32"),
        ("maximum", "uint8", "uint8"),
    ],
)
def test_the_dtype_of_a_fold_is_what_the_function_gives_also_of_nothing(rows, name, dtype, made):
    f, x = getattr(jnp, name), jnp.ones((rows, 2), dtype)
    folds = [f.accumulate] if f.identity is None else [f.accumulate, f.reduce]
    for fold in folds:
        for got in (fold(x), calque.jit(fold)(x)):
            assert got.dtype == made and not got.aval.weak_type
    assert f.accumulate(x).shape == (rows, 2)
    assert jnp.add.accumulate(x, dtype="float32").dtype == np.float32


def test_the_dtype_of_changed_places_is_what_the_function_gives():
    x = jnp.array([0, 2, 3])
    got = jnp.logaddexp.at(x, jnp.array([1, 1]), 0.0, inplace=False)
    assert got.dtype == np.float32 and np.allclose(got, [0, np.log(np.exp(2) + 2), 3])
    assert jnp.logical_and.at(x, 1, 2, inplace=False).tolist() == [False, True, True]
    assert jnp.logical_or.at(x, slice(0, 0), 2, inplace=False).tolist() == [False, True, True]
    for empty, place in ((jnp.zeros((2, 0), "int8"), 0), (jnp.zeros(0), slice(None))):
        got = jnp.logical_and.at(empty, place, 2, inplace=False)
        assert got.shape == empty.shape and got.dtype == np.bool_

"""pad in all modes."""

from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from tests.numpy.expressions import ARRAYS, check_jax, check_jit, check_numpy, lines

DATA = ARRAYS | {
    "I": np.arange(6).reshape(2, 3),
}

CASES = lines("""
jnp.pad(X,1,constant_values=5)
jnp.pad(X,1,constant_values=(1,2))
jnp.pad(I,((1,2),(2,1)),constant_values=((1,2),(3,4)))
jnp.pad(X,2,mode='linear_ramp',end_values=((1,2),(3,4)))
jnp.pad(X,2,mode='mean',stat_length=2)
jnp.pad(X,2,mode='maximum',stat_length=((1,2),(2,1)))
jnp.pad(X,(1,2),mode='reflect',reflect_type='odd')
jnp.pad(X,(1,2),mode='symmetric',reflect_type='odd')
jnp.pad(X,(5,9),mode='reflect',reflect_type='odd')
jnp.pad(X,-1)
jnp.pad(X,1.5)
jnp.pad(X,((1,2),),mode='edge')
jnp.pad(X,(1,2,3))
jnp.pad(X,1,mode='x')
jnp.pad(X,1,mode='edge',stat_length=1)
jnp.pad(X,((1,1),(2,2)),mode=lambda r,w,a,k: r.at[:w[0]].set(a+7.))
jnp.pad(np.zeros((0,3)),1)
jnp.pad(np.zeros((0,3)),((0,0),(1,1)),mode='edge')
jnp.pad(np.zeros((0,3)),1,mode='edge')
jnp.pad(3.0,0)
jnp.pad(X,{1:(1,2)})
jnp.pad(X,{0:1,-1:2})
jnp.pad(np.float32(3),())
jnp.pad(X[:1],3,mode='reflect')
jnp.pad(X,np.array([1,2]))
jnp.pad(X,1,mode='empty')
jnp.pad(X, (1,3), mode='constant')
jnp.pad(I, (1,3), mode='constant')
jnp.pad(X, ((1,2),(3,0)), mode='constant')
jnp.pad(I, ((1,2),(3,0)), mode='constant')
jnp.pad(X, ((5,7),(9,2)), mode='constant')
jnp.pad(I, ((5,7),(9,2)), mode='constant')
jnp.pad(X, (1,3), mode='edge')
jnp.pad(I, (1,3), mode='edge')
jnp.pad(X, ((1,2),(3,0)), mode='edge')
jnp.pad(I, ((1,2),(3,0)), mode='edge')
jnp.pad(X, ((5,7),(9,2)), mode='edge')
jnp.pad(I, ((5,7),(9,2)), mode='edge')
jnp.pad(X, (1,3), mode='wrap')
jnp.pad(I, (1,3), mode='wrap')
jnp.pad(X, ((1,2),(3,0)), mode='wrap')
jnp.pad(I, ((1,2),(3,0)), mode='wrap')
jnp.pad(X, ((5,7),(9,2)), mode='wrap')
jnp.pad(I, ((5,7),(9,2)), mode='wrap')
jnp.pad(X, (1,3), mode='reflect')
jnp.pad(I, (1,3), mode='reflect')
jnp.pad(X, ((1,2),(3,0)), mode='reflect')
jnp.pad(I, ((1,2),(3,0)), mode='reflect')
jnp.pad(X, ((5,7),(9,2)), mode='reflect')
jnp.pad(I, ((5,7),(9,2)), mode='reflect')
jnp.pad(X, (1,3), mode='symmetric')
jnp.pad(I, (1,3), mode='symmetric')
jnp.pad(X, ((1,2),(3,0)), mode='symmetric')
jnp.pad(I, ((1,2),(3,0)), mode='symmetric')
jnp.pad(X, ((5,7),(9,2)), mode='symmetric')
jnp.pad(I, ((5,7),(9,2)), mode='symmetric')
jnp.pad(X, (1,3), mode='linear_ramp')
jnp.pad(I, (1,3), mode='linear_ramp')
jnp.pad(X, ((1,2),(3,0)), mode='linear_ramp')
jnp.pad(I, ((1,2),(3,0)), mode='linear_ramp')
jnp.pad(X, ((5,7),(9,2)), mode='linear_ramp')
jnp.pad(I, ((5,7),(9,2)), mode='linear_ramp')
jnp.pad(X, (1,3), mode='maximum')
jnp.pad(I, (1,3), mode='maximum')
jnp.pad(X, ((1,2),(3,0)), mode='maximum')
jnp.pad(I, ((1,2),(3,0)), mode='maximum')
jnp.pad(X, ((5,7),(9,2)), mode='maximum')
jnp.pad(I, ((5,7),(9,2)), mode='maximum')
jnp.pad(X, (1,3), mode='minimum')
jnp.pad(I, (1,3), mode='minimum')
jnp.pad(X, ((1,2),(3,0)), mode='minimum')
jnp.pad(I, ((1,2),(3,0)), mode='minimum')
jnp.pad(X, ((5,7),(9,2)), mode='minimum')
jnp.pad(I, ((5,7),(9,2)), mode='minimum')
jnp.pad(X, (1,3), mode='mean')
jnp.pad(I, (1,3), mode='mean')
jnp.pad(X, ((1,2),(3,0)), mode='mean')
jnp.pad(I, ((1,2),(3,0)), mode='mean')
jnp.pad(X, ((5,7),(9,2)), mode='mean')
jnp.pad(I, ((5,7),(9,2)), mode='mean')
jnp.pad(X, (1,3), mode='median')
jnp.pad(I, (1,3), mode='median')
jnp.pad(X, ((1,2),(3,0)), mode='median')
jnp.pad(I, ((1,2),(3,0)), mode='median')
jnp.pad(X, ((5,7),(9,2)), mode='median')
jnp.pad(I, ((5,7),(9,2)), mode='median')
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


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "bfloat16", "int8", "float32"])
def test_ramps_of_each_dtype(name: str) -> None:
    x = jnp.asarray([1.0, 2.0, 3.0]).astype(name)
    got = jnp.pad(x, (2, 2), mode="linear_ramp", end_values=(5, -1))
    assert got.dtype == x.dtype
    want = jnp.asarray([5.0, 3.0, 1.0, 2.0, 3.0, 1.0, -1.0]).astype(name)
    np.testing.assert_array_equal(got.astype("float32"), want.astype("float32"))


def test_ramps_of_bools_and_of_large_integers() -> None:
    got = jnp.pad(jnp.array([True]), (3, 0), mode="linear_ramp")
    assert got.tolist() == [False, True, True, True]
    with calque.enable_x64(True):
        whole = 2**40 + 4
        got = jnp.pad(jnp.array([whole]), (2, 0), mode="linear_ramp", end_values=2**40)
        assert got.tolist() == [2**40, 2**40 + 2, whole]


@pytest.mark.parametrize("shape,widths", [((3, 0), ((1, 1), (0, 0))), ((0, 2), 1), ((0, 0), 0)])
def test_functions_fill_lines_of_arrays_without_elements(
    shape: tuple[int, ...], widths: Any
) -> None:
    got = jnp.pad(jnp.zeros(shape), widths, mode=lambda line, *_: line + 1)
    assert got.shape == np.pad(np.zeros(shape), widths).shape

"""Arrays with parts put in, taken out or chosen."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from tests.numpy.expressions import ARRAYS, check_jax, check_jit, check_numpy, lines

DATA = ARRAYS | {
    "I": np.array([[1, 2, 3], [4, 2, 1]]),
}

CASES = lines("""
jnp.append(A,I)
jnp.append(I,I,axis=0)
jnp.append(A,2.5)
jnp.delete(A,1)
jnp.delete(A,-1)
jnp.delete(A,np.array([0,0,3]))
jnp.delete(X,slice(0,2),axis=1)
jnp.delete(X,[0,2],axis=0)
jnp.delete(A,A>3)
jnp.delete(I,1)
jnp.delete(A,9)
jnp.delete(A,np.array([1.]))
jnp.delete(A,np.array([],int))
jnp.insert(A,2,99)
jnp.insert(A,np.array([0,2,2]),np.array([7,8,9]))
jnp.insert(X,1,5,axis=1)
jnp.insert(X,1,np.arange(3.),axis=1)
jnp.insert(X,np.array([1]),np.ones((1,4)),axis=0)
jnp.insert(X,1,np.ones((2,4)),axis=0)
jnp.insert(A,slice(0,2),np.array([1,2]))
jnp.insert(A,-1,np.array([1,2]))
jnp.insert(I,2,0)
jnp.insert(X,[0,2],9.,axis=0)
jnp.insert(A,np.array([5,0]),np.array([8,9]))
jnp.insert(X,0,np.arange(4.),axis=0)
jnp.resize(A,(2,2))
jnp.resize(A,(3,5))
jnp.resize(A,0)
jnp.resize(np.zeros(0),(2,))
jnp.resize(A,-1)
jnp.trim_zeros(np.array([0,0,1,0,2,0]))
jnp.trim_zeros(np.array([0,0,1,0,2,0]),'f')
jnp.trim_zeros(np.zeros(3))
jnp.trim_zeros(np.array([0,1,0]),'b')
jnp.trim_zeros(np.array([[0,0],[0,1]]))
jnp.trim_zeros(A,'x')
jnp.put(np.zeros((2,2)),np.array([0,3]),np.array([1.,2]),inplace=False)
jnp.put(np.zeros(3),np.array([0,7]),1.,inplace=False)
jnp.put(np.zeros(3),np.array([0,7]),1.,'clip',inplace=False)
jnp.put(np.zeros(3),np.array([0,7]),1.,'wrap',inplace=False)
jnp.put(A,0,1)
jnp.put(np.zeros(3),np.array([0,7]),1.,'drop',inplace=False)
jnp.place(A,A>2,np.array([8,9]),inplace=False)
jnp.place(I,I>2,0,inplace=False)
jnp.put_along_axis(X,np.array([[0],[1],[2]]),9.,1,inplace=False)
jnp.put_along_axis(X,np.array([[0,1,2,0]]),9.,0,inplace=False)
jnp.put_along_axis(A,np.array([0,2]),7,None,inplace=False)
jnp.argwhere(X>0)
jnp.argwhere(X>0,size=3)
jnp.argwhere(X>0,size=12,fill_value=-1)
jnp.flatnonzero(X>0)
jnp.flatnonzero(X>0,size=10,fill_value=99)
jnp.argwhere(np.array(3))
jnp.unravel_index(np.array([0,5,7]),(2,4))
jnp.unravel_index(5,(2,3))
jnp.unravel_index(np.array([-1,-9,99]),(2,4))
jnp.ravel_multi_index((np.array([0,1]),np.array([2,3])),(2,4))
jnp.ravel_multi_index((np.array([0,1]),np.array([2,3])),(2,4),order='F')
jnp.ravel_multi_index((np.array([0,1]),np.array([2,5])),(2,4))
jnp.ravel_multi_index((np.array([0,1]),np.array([2,5])),(2,4),mode='wrap')
jnp.ravel_multi_index((np.array([0,1]),np.array([2,5])),(2,4),mode='clip')
jnp.compress(np.array([True,False,True]),X,axis=0)
jnp.compress(np.array([0,1,1]),A)
jnp.compress(np.array([True,False,True]),X,axis=0,size=3,fill_value=7)
jnp.compress(np.array([0,1,1]),A,size=5)
jnp.extract(X>0,X)
jnp.extract(X>0,X,size=9)
jnp.choose(np.array([0,1,0]),[np.array([1,2,3]),np.array([4.,5,6])])
jnp.choose(np.array([0,3]),[1,2])
jnp.choose(np.array([0,3]),[1,2],mode='wrap')
jnp.choose(np.array([-1,3]),[1,2],mode='clip')
jnp.choose(X,[1,2])
jnp.select([A>4,A>2],[A,A*10])
jnp.select([A>4,A>2],[A,A*10.5],default=-1)
jnp.select([A>4],[1,2])
jnp.select([],[])
jnp.piecewise(X,[X>0,X<-1],[lambda v:v*2,lambda v:v+100,5.])
jnp.piecewise(X[0],X[0]>0,[1.])
jnp.piecewise(A,[A>3],[lambda v:v*2, lambda v:-v])
jnp.piecewise(A,[A>3],[1,2,3])
jnp.piecewise(np.float32(2.),[True],[lambda v:v+1])
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


@pytest.mark.parametrize("places", [np.array([9]), np.array([0, -4])])
def test_known_places_outside_are_refused(places):
    with pytest.raises(IndexError, match=r"delete: index -?\d is out of bounds for axis 0"):
        jnp.delete(jnp.arange(3), places)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "int64", "uint64"])
def test_a_traced_place_of_any_integer_dtype_is_deleted(dtype):
    a = np.arange(300.0, dtype=np.float32)
    with calque.enable_x64(True), calque.numpy_dtype_promotion("strict"):
        for place in (100, -100) if dtype[0] == "i" else (100,):
            got = calque.jit(lambda i: jnp.delete(a, i))(np.array(place, dtype))
            np.testing.assert_array_equal(got, np.delete(a, place))


def test_narrow_places_count_from_the_end_of_long_arrays():
    for n in (300, 70000):
        out = jnp.insert(jnp.arange(n), jnp.array(-1, jnp.int8), 7)
        assert out[-3:].tolist() == [n - 2, 7, n - 1]


def test_places_beyond_every_integer_are_the_end():
    assert jnp.insert(jnp.arange(3), np.uint64(2**63), 7).tolist() == [0, 1, 2, 7]


@pytest.mark.parametrize("trim", ["f", "b", "fb"])
def test_a_number_has_no_zeros_to_trim(trim):
    for number in (0.0, 3.0):
        for f in (jnp.trim_zeros, calque.jit(jnp.trim_zeros, static_argnums=1)):
            out = f(jnp.array(number), trim)
            assert out.shape == () and float(out) == number


def test_unique_places_in_several_axes_are_deleted_all():
    x = np.arange(18).reshape(2, 3, 3)
    for places in ([[0], [2]], [[1, 0]], [[0], [1], [2]]):
        f = calque.jit(lambda i: jnp.delete(x, i, axis=2, assume_unique_indices=True))
        want = np.delete(x, np.ravel(places), axis=2)
        np.testing.assert_array_equal(f(jnp.array(places)), want)
        got = jnp.delete(x, jnp.array(places), axis=2, assume_unique_indices=True)
        np.testing.assert_array_equal(got, want)


def test_bools_are_places_to_put_at_and_no_mask():
    out = jnp.put(jnp.arange(4), jnp.array([True, False, True, True]), 9, inplace=False)
    assert out.tolist() == [9, 9, 2, 3]
    assert jnp.put(jnp.arange(3), True, 9, inplace=False).tolist() == [0, 9, 2]

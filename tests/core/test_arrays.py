"""Concrete arrays: exchange with NumPy and others, printing, copying, refusals."""

import collections.abc
import copy
import pickle

import ml_dtypes
import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.core import arrays, dtypes
from calque.machine.call.arrays import pending_arrays


@pytest.mark.parametrize(
    "dtype",
    [d for d in dtypes.ALL if d.itemsize > 1 or d.kind in "biu" or "float8" in d.name],
    ids=str,
)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0, 4)])
def test_every_dtype_goes_in_and_out(dtype, shape):
    with calque.config.override("calque_enable_x64", True):
        size = int(np.prod(shape))
        x = (np.arange(size).reshape(shape) % 2).astype(dtype)
        y = jnp.asarray(x)
        assert (
            y.shape == shape
            and y.dtype == dtype
            and y.nbytes == x.nbytes
            and y.itemsize == dtype.itemsize
        )
        np.testing.assert_array_equal(np.asarray(y).astype(np.complex128), x.astype(np.complex128))
        z = calque.jit(lambda x: x)(y)
        assert z.dtype == dtype and z.shape == shape


def test_to_numpy_shares_memory_and_is_read_only():
    x = jnp.arange(4.0)
    a, b = np.asarray(x), np.asarray(x)
    assert np.shares_memory(a, b) and not a.flags.writeable
    with pytest.raises(ValueError):
        a[0] = 1
    c = np.array(x)
    c[0] = 9
    assert float(x[0]) == 0
    view = np.asarray(jnp.arange(5.0) * 2)  # the array is gone, its memory stays
    np.testing.assert_array_equal(view, [0, 2, 4, 6, 8])


def test_device_put_and_asarray_do_not_alias_what_the_user_may_change():
    x = np.zeros(3, np.float32)
    y, z = jnp.array(x), calque.device_put(x)
    x[0] = 1
    assert float(y[0]) == 0 and float(z[0]) == 0


def test_dlpack():
    x = jnp.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(np.from_dlpack(x), x)
    assert x.__dlpack_device__() == (1, 0)
    torch = pytest.importorskip("torch")
    t = torch.from_dlpack(x)
    assert t.shape == (2, 3) and float(t.sum()) == 15
    back = jnp.asarray(np.from_dlpack(torch.arange(3)))
    np.testing.assert_array_equal(back, [0, 1, 2])


def test_dlpack_of_what_numpy_does_not_know():
    with pytest.raises((BufferError, TypeError)):
        jnp.ones(2, jnp.float8_e4m3fn).__dlpack__()


def test_pickle_and_copy():
    for x in (
        jnp.arange(3),
        jnp.float32(2.5),
        jnp.ones((2, 0)),
        jnp.ones(2, jnp.bfloat16),
        jnp.asarray(3),
    ):
        for y in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
            assert y.dtype == x.dtype and y.shape == x.shape and y.aval is x.aval
            np.testing.assert_array_equal(np.asarray(y), np.asarray(x))


PRINTED = [
    (lambda: jnp.arange(3), "Array([0, 1, 2], dtype=int32)"),
    (lambda: jnp.float32(2), "Array(2., dtype=float32)"),
    (lambda: jnp.asarray(2.5), "Array(2.5, dtype=float32, weak_type=True)"),
    (lambda: jnp.ones((2, 2)), "Array([[1., 1.],\n       [1., 1.]], dtype=float32)"),
    (lambda: jnp.zeros((0,)), "Array([], dtype=float32)"),
    (lambda: jnp.zeros((2, 0)), "Array([], shape=(2, 0), dtype=float32)"),
    (lambda: jnp.array([True, False]), "Array([ True, False], dtype=bool)"),
    (lambda: jnp.array([1 + 2j]), "Array([1.+2.j], dtype=complex64)"),
    (lambda: jnp.ones(2, jnp.bfloat16), "Array([1, 1], dtype=bfloat16)"),
]


@pytest.mark.parametrize("make, text", PRINTED, ids=[t for _, t in PRINTED])
def test_printing(make, text):
    assert repr(make()) == text


@pytest.mark.peer
@pytest.mark.parametrize(
    "make",
    [
        lambda m: m.arange(100.0),
        lambda m: m.ones((3, 40)),
        lambda m: m.arange(2000),
        lambda m: m.zeros((2, 0, 3)),
        lambda m: m.linspace(0, 1, 5),
    ],
)
def test_printing_is_that_of_jax(make):
    jax = pytest.importorskip("jax")
    assert repr(make(jnp)) == repr(make(jax.numpy)) and str(make(jnp)) == str(make(jax.numpy))


def test_formatting():
    assert f"{jnp.float32(1.5):.2f} {jnp.arange(2)}" == "1.50 [0 1]"
    assert str(jnp.ones((2, 2))) == "[[1. 1.]\n [1. 1.]]"


def test_python_conversions():
    assert (
        int(jnp.asarray(3)) == 3
        and float(jnp.asarray(2.5)) == 2.5
        and complex(jnp.asarray(1j)) == 1j
        and bool(jnp.asarray(True))
    )
    assert [10, 20, 30][jnp.asarray(1)] == 20 and list(range(jnp.asarray(2))) == [0, 1]
    assert jnp.arange(3).tolist() == [0, 1, 2] and jnp.float32(1).item() == 1.0
    assert (
        2 in jnp.arange(3)
        and len(jnp.arange(3)) == 3
        and [int(v) for v in jnp.arange(3)] == [0, 1, 2]
    )
    assert divmod(7, jnp.asarray(2))[0] == 3 and round(jnp.float32(2.567), 1) == pytest.approx(2.6)


def test_refusals():
    x = jnp.arange(3.0)
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)
    with pytest.raises(TypeError, match="immutable"):
        x[0] = 1
    with pytest.raises(TypeError, match="immutable"):
        del x[0]
    with pytest.raises(ValueError, match="ambiguous"):
        bool(x)
    with pytest.raises(TypeError, match="scalar"):
        float(x)
    with pytest.raises(TypeError):
        [1, 2][x]
    with pytest.raises(TypeError, match="len"):
        len(jnp.float32(1))
    with pytest.raises(TypeError):
        calque.Array()
    with pytest.raises(AttributeError):
        x.shape = (1,)


def test_isinstance_holds_for_arrays_and_tracers():
    assert isinstance(jnp.ones(2), calque.Array) and not isinstance(np.ones(2), calque.Array)
    seen = []
    calque.jit(lambda x: seen.append(isinstance(x, calque.Array)) or x)(1.0)
    assert seen == [True]


def test_huge_shapes_are_memory_errors():
    for call in (
        lambda: jnp.zeros((1 << 40,)),
        lambda: jnp.ones((1 << 20, 1 << 20)),
        lambda: calque.jit(lambda x: jnp.broadcast_to(x, (1 << 24, 1 << 20)))(1.0),
    ):
        with pytest.raises(MemoryError):
            call()


def test_special_values_survive():
    x = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-45], np.float32)
    y = np.asarray(calque.jit(lambda x: x * 1)(x))
    np.testing.assert_array_equal(y[:4], x[:4])
    assert np.signbit(y[3])


def test_other_scalars():
    for scalar in (np.float64(1.5), np.int8(3), np.bool_(True), ml_dtypes.bfloat16(2)):
        x = jnp.asarray(scalar)
        assert x.shape == () and x.dtype == (
            np.float32 if scalar.dtype == np.float64 else scalar.dtype
        )
        assert float(calque.jit(lambda x: x + 0)(scalar)) == float(scalar)


def test_arrays_are_not_hashable():
    assert not isinstance(jnp.ones(1), collections.abc.Hashable)
    assert not calque.jit(lambda x: x * isinstance(x, collections.abc.Hashable))(1.0)


class Elsewhere:
    """Has the elements of arrays, and notes when it is told to give them back."""

    def __init__(self, told: list[str]) -> None:
        self.told = told

    def delete(self) -> None:
        self.told.append("delete")


def test_memory_elsewhere_is_given_back_with_the_last_of_its_arrays():
    told: list[str] = []
    avals = (jnp.ones(2).aval,) * 2
    x, y = pending_arrays(avals, [Elsewhere(told)] * 2, (None, None))
    arrays.delete(x)
    assert x.is_deleted() and not y.is_deleted() and told == []
    del x
    arrays.delete(y)
    assert y.is_deleted() and told == ["delete"]
    kept = Elsewhere(told)
    (z,) = pending_arrays(avals[:1], [kept], (None,))
    arrays.delete(z)
    assert z.is_deleted() and told == ["delete"]

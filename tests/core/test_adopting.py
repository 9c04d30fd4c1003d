"""Nobody writes an Array through NumPy: what enters is copied, what is looked at is read-only."""

import copy
import gc

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.core.adopting import adopted, from_numpy
from calque.core.arrays import to_numpy

SIZES = (1, 3, 1000, 3 << 20)


def written(x):
    x[...] = 7


ENTRIES = {
    "asarray": jnp.asarray,
    "array": jnp.array,
    "array without a copy": lambda x: jnp.array(x, copy=False),
    "asarray of the same dtype": lambda x: jnp.asarray(x, x.dtype),
    "device_put": calque.device_put,
    "device_put that may share": lambda x: calque.device_put(x, may_alias=True),
    "memoryview": lambda x: jnp.asarray(memoryview(x)),
    "frombuffer": lambda x: jnp.frombuffer(x, x.dtype),
    "a result": calque.jit(lambda x: x),
    "a second result": lambda x: calque.jit(lambda x: (x + 1, x))(x)[1],
    "reshaped": calque.jit(lambda x: x.reshape(1, -1)),
    "eager reshape": lambda x: jnp.reshape(x, (1, -1)),
    "eager operation": lambda x: lax.reshape(x, (1, x.size)),
    "atleast_2d": jnp.atleast_2d,
    "vmap": lambda x: calque.vmap(lambda x: x)(x),
    "vmap without axis": lambda x: calque.vmap(lambda y, x: x, in_axes=(0, None), out_axes=None)(
        jnp.ones(2), x
    ),
    "jvp": lambda x: calque.jvp(lambda x: x, (x,), (x,))[1],
    "residual": lambda x: calque.vjp(lambda y: y * x, jnp.ones(x.shape, x.dtype))[1](x * 0 + 1)[0],
    "scan": lambda x: lax.scan(lambda s, _: (s, None), x, None, length=1)[0],
    "cond": lambda x: lax.cond(True, lambda x: x, lambda x: x, x),
    "remat": lambda x: calque.checkpoint(lambda x: x)(x),
    "at": lambda x: jnp.asarray(x).at[0].add(0),
    "stop_gradient": lax.stop_gradient,
    "callback": lambda x: calque.pure_callback(
        lambda: x, calque.ShapeDtypeStruct(x.shape, x.dtype)
    ),
    "from_numpy": from_numpy,
    "dlpack with a copy": lambda x: jnp.from_dlpack(x, copy=True),
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_writing_the_numpy_array_later_changes_nothing(entry):
    for size in SIZES[:3]:
        x = np.ones(size, np.float32)
        got = ENTRIES[entry](x)
        written(x)
        assert (np.asarray(got) == 1).all()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", (np.int8, np.float32, np.complex64, np.dtype(">f4"), np.float64))
def test_copies_have_all_elements(size, dtype):
    plain = np.arange(size).astype(dtype)
    for x in (plain, plain[::-1], plain.reshape(-1, 1).T, np.repeat(plain, 2)[1::2]):
        got = from_numpy(x)
        assert got.dtype == calque.dtypes.canonicalize_dtype(x.dtype)
        np.testing.assert_array_equal(np.asarray(got), x.astype(got.dtype))
        assert not np.shares_memory(np.asarray(got), plain)


def test_adopted_memory_is_kept_alive():
    got = adopted(np.arange(5, dtype=np.float32))
    gc.collect()
    assert got.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("make", (jnp.arange, lambda n: from_numpy(np.arange(n)), jnp.ones))
def test_views_of_arrays_cannot_be_written(make):
    x = make(4)
    for view in (np.asarray(x), to_numpy(x), np.asarray(x)[1:], np.asarray(x).reshape(2, 2)):
        with pytest.raises(ValueError, match="read-only"):
            view[...] = 0
        with pytest.raises(ValueError):
            view.flags.writeable = True
    assert np.array(x).flags.writeable


def test_donation_does_not_write_to_numpy():
    f = calque.jit(lambda x: x + 1, donate_argnums=0)
    x = np.ones(1000, np.float32)
    assert np.asarray(f(x)).max() == 2 and x.max() == 1
    y = jnp.asarray(x)
    view = np.asarray(y)
    f(y)
    assert x.max() == 1 and view.max() == 1


def test_callbacks_keep_what_they_are_given():
    kept = []

    def look(x):
        kept.append(x)
        return x

    @calque.jit
    def f(x):
        for _ in range(4):
            x = calque.pure_callback(look, calque.ShapeDtypeStruct(x.shape, x.dtype), x) + 1
        return x

    f(jnp.zeros(1000))
    assert [float(np.max(k)) for k in kept] == [0, 1, 2, 3]


def test_copies_of_arrays_are_arrays():
    x = jnp.arange(3)
    for y in (copy.copy(x), copy.deepcopy(x), jnp.array(x), x.copy()):
        assert y.tolist() == [0, 1, 2] and type(y) is type(x)

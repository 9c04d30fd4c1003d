"""Positions far beyond arrays, and arrays longer than 32 bits count."""

import sys

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax

FAR = (2**31 - 1, 2**31, 2**31 + 3, 2**32 + 3, 2**33, 2**63 - 1)
LONG = 2**31 + 10


def plain():
    return np.arange(10, dtype=np.float32)


def clamped(start, size, length=10):
    start = start + length if start < 0 else start
    return min(max(start, 0), length - size)


SLICES = {
    "dynamic_slice": lambda x, i: lax.dynamic_slice(x, (i,), (3,)),
    "dynamic_slice_in_dim": lambda x, i: lax.dynamic_slice_in_dim(x, i, 3),
    "of a NumPy scalar": lambda x, i: lax.dynamic_slice(x, (np.int64(i),), (3,)),
    "of a NumPy array": lambda x, i: lax.dynamic_slice(x, np.array([i]), (3,)),
    "rank 0": lambda x, i: lax.dynamic_slice(x, (np.array(i),), (3,)),
}
UPDATES = {
    "dynamic_update_slice": lambda x, y, i: lax.dynamic_update_slice(x, y, (i,)),
    "dynamic_update_slice_in_dim": lambda x, y, i: lax.dynamic_update_slice_in_dim(x, y, i, 0),
}


@pytest.mark.parametrize("x64", (False, True))
@pytest.mark.parametrize("sign", (1, -1))
@pytest.mark.parametrize("jitted", (False, True))
def test_windows_far_away_are_moved_inside(x64, sign, jitted):
    with calque.enable_x64(x64):
        for far in (*FAR, 3, 12):
            i = sign * far
            for f in SLICES.values():
                got = (calque.jit(f, static_argnums=1) if jitted else f)(plain(), i)
                k = clamped(i, 3)
                assert got.tolist() == plain()[k : k + 3].tolist(), i
            for f in UPDATES.values():
                g = calque.jit(f, static_argnums=2) if jitted else f
                expected = plain()
                expected[clamped(i, 2) : clamped(i, 2) + 2] = -1
                assert g(plain(), np.full(2, -1, np.float32), i).tolist() == expected.tolist(), i
            row = lax.dynamic_index_in_dim(plain(), i, keepdims=False)
            assert float(row) == clamped(i, 1)


@pytest.mark.parametrize("x64", (False, True))
@pytest.mark.parametrize("sign", (1, -1))
def test_elements_far_away(x64, sign):
    with calque.enable_x64(x64):
        for i in (sign * far for far in FAR):
            x, where = jnp.asarray(plain()), np.array([i, 1])
            end = 9 if i > 0 else 0
            assert float(x[i]) == end and x[where].tolist() == [end, 1]
            assert np.isnan(x.at[i].get(mode="fill"))
            assert x.at[i].set(5).tolist() == plain().tolist()
            assert x.at[where].add(5).tolist() == [0, 6, 2, 3, 4, 5, 6, 7, 8, 9]
            square = x.reshape(2, 5)
            assert square[i, np.array([0, 1])].tolist() == ([5, 6] if i > 0 else [0, 1])
            assert square.at[np.array([0, 1]), i].set(7).tolist() == square.tolist()
            assert x.at[i].set(5, mode="clip").tolist()[end] == 5
            assert np.isnan(jnp.take(x, i)) and np.isnan(jnp.take(x, where)[0])
            assert jnp.take(x, where, mode="clip").tolist() == [end, 1]
            assert jnp.take(x, i, mode="wrap") == i % 10
            assert np.isnan(jnp.take_along_axis(x, where, 0)[0])
            assert jnp.roll(x, i).tolist() == np.roll(plain(), i % 10).tolist()
            assert x[i:].tolist() == plain()[i:].tolist() and x[:i].tolist() == plain()[:i].tolist()


@pytest.mark.parametrize("dtype", ("int8", "uint8", "int16", "int64", "uint64"))
def test_starts_of_narrow_types(dtype):
    with calque.enable_x64():
        x = jnp.arange(300.0)
        f = calque.jit(lambda i: lax.dynamic_slice(x, (i,), (2,)))
        assert f(np.asarray(100, dtype)).tolist() == [100, 101]
        if np.dtype(dtype).kind == "i":
            assert f(np.asarray(-3, dtype)).tolist() == [297, 298]
        both = calque.jit(lambda i, j: lax.dynamic_slice(x.reshape(1, -1), (j, i), (1, 2)))
        assert both(np.asarray(100, dtype), np.asarray(0, dtype)).tolist() == [[100, 101]]


@pytest.mark.parametrize("k", (0, 1, -1, 2, 5, -5, *FAR, *(-f for f in FAR), 2**70))
def test_diagonals_far_away(k):
    near = min(max(k, -10), 10)
    a = np.ones((3, 4), np.float32)
    assert jnp.tri(3, 4, k).tolist() == np.tri(3, 4, near).tolist()
    assert jnp.eye(3, 4, k).tolist() == np.eye(3, 4, near).tolist()
    assert jnp.tril(a, k).tolist() == np.tril(a, near).tolist()
    assert jnp.triu(a, k).tolist() == np.triu(a, near).tolist()
    assert jnp.diagonal(a, k).tolist() == np.diagonal(a, near).tolist()


@pytest.mark.parametrize("dtype", ("int8", "uint8", "int32", "uint32"))
def test_traced_diagonals(dtype):
    info = np.iinfo(dtype)
    a = np.ones((3, 200), np.float32)
    for k in (0, 1, 100, info.max, info.min):
        near = int(min(max(k, -200), 200))
        traced = np.asarray(k, dtype)
        assert (calque.jit(lambda k: jnp.tril(a, k))(traced) == np.tril(a, near)).all()
        assert (calque.jit(lambda k: jnp.triu(a, k))(traced) == np.triu(a, near)).all()
        assert (calque.jit(lambda k: jnp.eye(3, 200, k))(traced) == np.eye(3, 200, near)).all()


def test_positions_that_no_result_can_hold_are_refused():
    x = calque.ShapeDtypeStruct((LONG,), "int8")
    with pytest.raises(OverflowError, match="beyond int32"):
        calque.eval_shape(jnp.argmax, x)
    with calque.enable_x64():
        assert calque.eval_shape(jnp.argmax, x).dtype == "int64"


def test_fold_in_takes_every_word():
    key = calque.random.PRNGKey(0)
    a, b = calque.random.fold_in(key, 2**31), calque.random.fold_in(key, np.uint32(2**31))
    assert a.tolist() == b.tolist() == [917456828, 636652529]


def _free_memory():
    with open("/proc/meminfo") as f:
        known = dict(line.split(":") for line in f)
    return int(known["MemAvailable"].split()[0]) << 10


@pytest.mark.parametrize("x64", (False, True))
def test_long_arrays_have_long_places(x64):
    """Arrays of 2 GB, of which programs write and read one element."""
    if not sys.platform.startswith("linux") or _free_memory() < 8 << 30:
        pytest.skip("needs 8 GiB of free memory")
    k = 2**31 + 3
    write = calque.jit(
        lambda x: lax.dynamic_update_slice(
            x.at[np.array([k])].add(1).at[k - LONG].add(1).at[k - 4 : k + 1 : 2].add(1),
            jnp.ones(1, jnp.int8),
            (k + 1,),
        ),
        donate_argnums=0,
    )
    with calque.enable_x64(x64):
        y = write(jnp.zeros(LONG, jnp.int8))
        assert np.asarray(y)[k - 5 : k + 5].tolist() == [0, 1, 0, 1, 0, 3, 1, 0, 0, 0]
        assert not np.asarray(y)[:100].any()
        assert int(y[k]) == int(y[k - LONG]) == 3 and y[k - 1 : k + 2].tolist() == [0, 3, 1]
        assert lax.dynamic_slice(y, (k - 1,), (3,)).tolist() == [0, 3, 1]
        assert y[np.array([k, 5, k - LONG])].tolist() == [3, 0, 3]
        assert calque.jit(lambda y, i: y[i])(y, np.array([-7])).tolist() == [3]

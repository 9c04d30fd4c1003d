"""x[...] and x.at[...] against NumPy: every kind of index, alone and mixed, eager and under jit."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import errors

X = np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 4, 5)
I1, I2 = np.array([0, 2, 1]), np.array([[1], [-1]])
MASK = X[0, :, :, 0] % 2 == 0

INDICES = {
    "int": 1,
    "negative": -1,
    "slice": slice(1, 3),
    "step": (slice(None), slice(None, None, 2)),
    "reverse": (slice(None), slice(None, None, -1), slice(3, 0, -2)),
    "empty slice": slice(2, 1),
    "ellipsis": (..., 1),
    "none": (None, 0, None, ..., None),
    "ints": (1, 2, 3, 4),
    "array": (slice(None), I1),
    "array first": (np.array([1, 0, 1]),),
    "two arrays together": (0, I1, I2),
    "two arrays apart": (slice(None), I1, slice(None), I1 + 1),
    "int and array apart": (1, slice(None), I1),
    "int and array together": (slice(None), 1, I1),
    "array and slice": (slice(None), I1, slice(1, 3), slice(None, None, 2)),
    "array and none": (None, slice(None), I1, None, 2),
    "array, ellipsis": (..., I1, slice(None, None, -1)),
    "mask": (0, MASK),
    "mask whole": X > 50,
    "mask on one axis": (slice(None), np.array([True, False, True])),
    "empty array": (slice(None), np.array([], np.int32)),
    "uint8": (slice(None), np.array([2, 0], np.uint8)),
    "whole": ...,
    "nothing": (),
}


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
def test_reading(index):
    want = X[index]
    x = jnp.asarray(X)
    got = x[index]
    assert got.shape == want.shape
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(calque.jit(lambda x: x[index])(x), want)


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
@pytest.mark.parametrize("kind", ["set", "add", "multiply", "min", "max"])
def test_writing(index, kind):
    part = X[index]
    values = np.arange(part.size, dtype=np.float32).reshape(part.shape) + 0.5
    want = X.copy()
    if kind == "set":
        want[index] = values
    else:
        ufunc = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}[kind]
        ufunc.at(want, index, values)
    x = jnp.asarray(X)
    np.testing.assert_allclose(getattr(x.at[index], kind)(values), want)
    np.testing.assert_allclose(
        calque.jit(lambda x, v: getattr(x.at[index], kind)(v))(x, values), want
    )
    np.testing.assert_array_equal(x, X)


def test_values_broadcast_into_the_place():
    x = jnp.zeros((3, 4))
    np.testing.assert_array_equal(x.at[1].set(2.0)[1], np.full(4, 2.0))
    np.testing.assert_array_equal(x.at[:, 1:3].set(jnp.array([1.0, 2.0])), [[0, 1, 2, 0]] * 3)
    with pytest.raises(ValueError, match="Incompatible shapes for broadcasting"):
        x.at[0].set(jnp.ones(3))


@pytest.mark.parametrize("i", [10, -10, 3])
def test_reads_outside_clamp_and_writes_drop(i):
    x = jnp.arange(3)
    last = 2 if i > 0 else 0
    assert int(x[i]) == last
    assert int(calque.jit(lambda x, i: x[i])(x, i)) == last
    np.testing.assert_array_equal(x.at[i].set(9), [0, 1, 2])
    np.testing.assert_array_equal(calque.jit(lambda x, i: x.at[i].add(9))(x, i), [0, 1, 2])
    np.testing.assert_array_equal(x[jnp.array([0, i])], [0, last])


K, M, FAR = jnp.int32(7), jnp.int32(-9), np.array([1, 7, -9])
HERE, COLUMN = np.array([True, False, False]), np.array([[0], [9]])
# each with whether its places lie inside, or None: one block, which is moved inside
BEYOND = {
    "row": (lambda x: x[K], None),
    "row before": (lambda x: x[M], None),
    "number": (lambda x: x[7], None),
    "element": (lambda x: x[K, 1], None),
    "two traced": (lambda x: x[K, M], None),
    "column": (lambda x: x[1:, K], None),
    "last axis": (lambda x: x[..., K], None),
    "new axis": (lambda x: x[None, K], None),
    "new axis behind": (lambda x: x[K, None], None),
    "turned": (lambda x: x[K, ::-1], None),
    "get": (lambda x: x.at[K].get(), None),
    "get with a promise": (lambda x: x.at[K].get(mode="promise_in_bounds"), None),
    "get nearest": (lambda x: x.at[FAR].get(mode="clip"), None),
    "below": (lambda x: x.at[-1].get(wrap_negative_indices=False), None),
    "step": (lambda x: x[K, ::2], False),
    "step of one place": (lambda x: x[K, 0:1:2], False),
    "step before": (lambda x: x[::2, K], False),
    "rows": (lambda x: x[FAR], HERE[:, None]),
    "rows of a list": (lambda x: x[jnp.array([1, 7])], HERE[:2, None]),
    "one row in a list": (lambda x: x[K[None]], False),
    "columns": (lambda x: x[:, FAR], HERE),
    "both": (lambda x: x[FAR, K], False),
    "number and array": (lambda x: x[7, FAR], False),
    "broadcast": (lambda x: x[COLUMN, FAR], HERE & (COLUMN == 0)),
    "rows turned": (lambda x: x[FAR, ::-1], HERE[:, None]),
    "rows with a promise": (lambda x: x.at[FAR].get(mode="promise_in_bounds"), HERE[:, None]),
    "rows below": (
        lambda x: x.at[np.array([1, 7, -1])].get(wrap_negative_indices=False),
        HERE[:, None],
    ),
}


@pytest.mark.parametrize("f, inside", BEYOND.values(), ids=BEYOND)
def test_slopes_of_places_outside(f, inside):
    """The nearest element is read. A block that is moved inside has its slope there; what arrays
    and steps name outside has none."""
    x = jnp.arange(12.0).reshape(4, 3)
    read = np.asarray(f(x)).astype(int)
    weights = np.arange(1.0, 1 + read.size).reshape(read.shape)
    kept = weights if inside is None else weights * inside
    want = np.bincount(read.ravel(), kept.ravel(), 12).reshape(4, 3)

    def summed(x):
        return (f(x) * jnp.asarray(weights)).sum()

    np.testing.assert_array_equal(calque.grad(summed)(x), want)
    np.testing.assert_array_equal(calque.jit(calque.grad(summed))(x), want)
    np.testing.assert_array_equal(calque.jit(f)(x), f(x))
    lanes = calque.vmap(calque.grad(summed))(jnp.stack([x, x + 1]))
    np.testing.assert_array_equal(lanes, np.stack([want, want]))
    _, along = calque.jvp(f, (x,), (x + 1,))
    np.testing.assert_array_equal(along, f(x) + 1)


def test_slopes_of_lanes_outside():
    """The index of a lane is one place of its own row."""
    x = jnp.arange(12.0).reshape(4, 3)
    i = jnp.array([0, 5, -7, 1])
    got = calque.grad(lambda x: calque.vmap(lambda r, j: r[j])(x, i).sum())(x)
    np.testing.assert_array_equal(got, [[1, 0, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0]])


@pytest.mark.parametrize(
    "index, places",
    [((K - 5, np.s_[::2]), np.s_[2, ::2]), (np.s_[::3], np.s_[::3]), (np.s_[1, ::-2],) * 2],
    ids=str,
)
def test_slices_name_no_place_twice(index, places):
    """Products under them have slopes."""
    x, want = jnp.ones((4, 3)), np.ones((4, 3))
    want[places] = 5
    for run in (lambda f: f, calque.jit):
        slope = run(calque.grad(lambda x: x.at[index].multiply(5.0).sum()))
        np.testing.assert_array_equal(slope(x), want)


def test_modes():
    x = jnp.arange(3.0)
    i = jnp.array([1, 7])
    np.testing.assert_array_equal(x.at[i].get(mode="fill"), [1, np.nan])
    np.testing.assert_array_equal(x.at[i].get(mode="fill", fill_value=-5), [1, -5])
    np.testing.assert_array_equal(x.at[i].get(mode="clip"), [1, 2])
    np.testing.assert_array_equal(x.at[i].get(mode="wrap"), [1, 1])
    np.testing.assert_array_equal(x.at[i].set(9, mode="clip"), [0, 9, 9])
    np.testing.assert_array_equal(x.at[i].set(9, mode="drop"), [0, 9, 2])
    np.testing.assert_array_equal(x.at[7].get(mode="fill"), np.nan)
    np.testing.assert_array_equal(jnp.arange(3).at[7].get(mode="fill"), np.iinfo(np.int32).min)
    with pytest.raises(ValueError, match="mode must be one of"):
        x.at[i].get(mode="nonsense")


def test_other_updates():
    x = jnp.array([1.0, 2.0, 4.0])
    np.testing.assert_array_equal(x.at[1].subtract(5), [1, -3, 4])
    np.testing.assert_array_equal(x.at[1].divide(4), [1, 0.5, 4])
    np.testing.assert_array_equal(x.at[2].power(2), [1, 2, 16])
    np.testing.assert_allclose(x.at[jnp.array([0, 2])].apply(jnp.sqrt), [1, 2, 2])


def test_traced_indices():
    f = calque.jit(lambda x, i, j: (x[i], x[i, j], x[:, j], x[1:, None, i], x.at[i, j].set(0.0)))
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    want = x.copy()
    want[2, -1] = 0
    for got, w in zip(f(x, 2, -1), (x[2], x[2, -1], x[:, -1], x[1:, None, 2], want)):
        np.testing.assert_array_equal(got, w)


def test_bad_indices():
    x = jnp.zeros((2, 3))
    with pytest.raises(IndexError, match="Too many indices"):
        x[0, 0, 0]
    with pytest.raises(IndexError, match="single ellipsis"):
        x[..., ...]
    with pytest.raises(TypeError, match="integer or boolean type"):
        x[jnp.array([0.5])]
    with pytest.raises(TypeError, match="non-tuple sequence"):
        x[[0, 1]]
    with pytest.raises(TypeError, match="'a'"):
        x["a"]
    with pytest.raises(IndexError, match="boolean index did not match"):
        x[jnp.array([True, False, True])]
    with pytest.raises(errors.NonConcreteBooleanIndexError, match="must be concrete"):
        calque.jit(lambda x, m: x[m])(x, True)
    with pytest.raises(TypeError, match=r"x = x.at\[idx\].set"):
        x[0] = 1


def test_nothing_of_nothing() -> None:
    """Empty arrays of positions along axes of size 0."""
    none = np.zeros((2, 0), int)
    for x in (np.zeros(0), np.zeros((3, 0)), np.zeros((0, 3))):
        axis = x.shape.index(0)
        item = (slice(None),) * axis + (none,)
        assert jnp.asarray(x)[item].shape == x[item].shape
    x = np.zeros((3, 0, 4))
    assert jnp.asarray(x)[1:, none, None].shape == x[1:, none, None].shape


def test_rows_without_elements() -> None:
    """No element is read where the rows that are asked for are empty themselves."""
    i = jnp.array([[5], [-7]])
    for x in (jnp.zeros((0, 0)), jnp.zeros((0, 2, 0))):
        assert x[i].shape == x[i, ...].shape == (2, 1, *x.shape[1:])
        assert calque.jit(lambda x: x[i])(x).shape == (2, 1, *x.shape[1:])
    with pytest.raises(TypeError, match="out of bounds for axis 0 with size 0"):
        jnp.zeros((0, 3))[i]
    with pytest.raises(IndexError, match="out of bounds for axis 0 with size 0"):
        calque.jit(lambda x, i: x[i])(jnp.zeros((0, 0)), 3)


def test_places_in_nothing() -> None:
    """Every place of an empty array is outside: updates are dropped, what would have to be read is
    refused."""
    i = np.array([0, 1])
    for x in (jnp.zeros((0,)), jnp.zeros((0, 3))):
        for at in (x.at[i].set, x.at[i].add, x.at[i].multiply):
            assert at(1.0).shape == x.shape
            assert calque.jit(at)(1.0).shape == x.shape
        assert calque.grad(lambda v: x.at[i].add(v).sum())(1.0) == 0.0
        with pytest.raises(IndexError, match="empty axis"):
            jnp.take(x, i, axis=0)
        assert jnp.take(x, i[:0], axis=0).shape == x.shape


def test_modes_of_take():
    x, i = np.float32([10, 20, 30]), np.int32([-4, -1, 0, 2, 3])

    def took(mode):
        return np.asarray(jnp.take(x, i, mode=mode))

    np.testing.assert_array_equal(
        took("clip"), np.take(x, i, mode="clip")
    )  # a negative position is the first
    np.testing.assert_array_equal(took("wrap"), np.take(x, i, mode="wrap"))
    np.testing.assert_array_equal(took("fill"), np.float32([np.nan, 30, 10, 30, np.nan]))
    np.testing.assert_array_equal(jnp.take(x, np.uint8([0, 9]), mode="clip"), np.float32([10, 30]))
    assert float(jnp.take(x, -1, mode="clip")) == 10
    with pytest.raises(ValueError, match="Invalid mode 'nearest'"):
        jnp.take(x, i, mode="nearest")


@pytest.mark.parametrize(("dtype", "fill"), [("int4", -8), ("uint4", 15)])
def test_what_fills_integers_of_four_bits(dtype, fill):
    x = jnp.arange(4).astype(dtype)
    for run in (lambda f: f, calque.jit):
        got = run(lambda x, i: x.at[i].get(mode="fill"))(x, jnp.array([1, 9]))
        assert got.dtype == dtype and got.astype(int).tolist() == [1, fill]
        assert run(lambda x, i: x[i])(jnp.arange(10.0), x).tolist() == [0, 1, 2, 3]


def test_updates_of_no_elements_leave_everything():
    """Whatever the shape of the values, as in JAX; their gradient is 0."""
    x, values = jnp.arange(3.0), jnp.ones(2)
    for index in (slice(0), slice(5, None), np.zeros((0,), int), np.zeros(3, bool)):
        for how in ("set", "add", "multiply", "divide", "power", "min", "max"):
            update = lambda x, v, index=index, how=how: getattr(x.at[index], how)(v)  # noqa: E731
            for run in (update, calque.jit(update)):
                assert run(x, values).tolist() == [0, 1, 2]
    slope = calque.grad(lambda v: x.at[:0].add(v).sum())(values)
    assert slope.tolist() == [0, 0]
    with pytest.raises(ValueError, match="Incompatible shapes"):
        x.at[:1].set(values)


@pytest.mark.parametrize("dtype", ["uint64", "uint32", "int64"])
def test_places_of_several_dtypes(dtype):
    """Beside others, also where one cannot hold what the other can."""
    with calque.enable_x64(True):
        x = jnp.arange(12.0).reshape(3, 4)
        i, j = jnp.array([0, 2], dtype), jnp.array([1, -1])
        for run in (lambda f: f, calque.jit):
            assert run(lambda x, i, j: x[i, j])(x, i, j).tolist() == [1, 11]
            got = run(lambda x, i, j: x.at[i, j].set(-1))(x, i, j)
            assert got[0, 1] == got[2, 3] == -1 and got.sum() == 66 - 12 - 2
            got = run(lambda x, i: x.at[1:, i].multiply(0))(x, i[1])
            assert got.sum() == 66 - 6 - 10
        far = jnp.array([2**32 - 1, 2], dtype)
        got = calque.jit(lambda x, i, j: x.at[i, j].add(1, mode="drop"))(x, far, j)
        assert got.sum() == 67 and got[2, 3] == 12


@pytest.mark.parametrize("mode", ["clip", "fill", "wrap"])
@pytest.mark.parametrize("dtype", ["uint8", "uint32", "uint64", "int64"])
def test_places_beyond_the_indices_of_programs_do_not_come_round(dtype, mode):
    info, x = np.iinfo(dtype), np.arange(12.0).reshape(3, 4)
    with calque.enable_x64(dtype[-2:] == "64"):
        places = np.array([0, 1, info.max, info.max - 1, info.min], dtype)
        others = np.zeros(5, np.int32)
        near = places.tolist()
        near = [v % 3 for v in near] if mode == "wrap" else np.clip(near, -9, 9).astype(int)
        for f in (
            lambda x, i: x[i] if mode == "clip" else x.at[i].get(mode=mode),
            lambda x, i: x.at[i].set(99.0, mode=mode),
            lambda x, i: x.at[i, others].get(mode=mode),
            lambda x, i: jnp.take_along_axis(x[:, 0], i, 0, mode=mode),
        ):
            wanted = f(jnp.asarray(x), jnp.asarray(near))
            for g in (f, calque.jit(f)):
                got = g(jnp.asarray(x), jnp.asarray(places))
                assert np.array_equal(got, wanted, equal_nan=True)

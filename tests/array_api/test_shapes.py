"""Manipulation functions, and indexing with integers, slices, masks and arrays, over shapes that
include empty ones and rank 0."""

import itertools

import numpy as np
import pytest

import calque.numpy as jnp

X = {
    s: np.arange(np.prod(s, dtype=int)).reshape(s)
    for s in [(), (4,), (0,), (2, 3), (3, 0), (1, 1), (2, 3, 4), (1, 3, 1)]
}
D2 = [s for s in X if len(s) >= 2]

CASES = {
    "broadcast_to": [((1, 3, 1), ((2, 3, 5),)), ((), ((2, 2),)), ((4,), ((0, 4),)), ((3, 0), ((2,
    3, 0),))],
    "expand_dims": [(s, (), {"axis": a}) for s in X for a in (0, -1, len(s), -len(s) - 1)],
    "flip": [(s, (), {"axis": a}) for s in X for a in (None, *range(-len(s), len(s)),
    tuple(range(len(s))))],
    "moveaxis": [((2, 3, 4), (0, 2)), ((2, 3, 4), (-1, 0)), ((2, 3, 4), ((0, 1), (2, 0))), ((3,
    0), (0, 1))],
    "permute_dims": [((2, 3, 4), ((2, 0, 1),)), ((), ((),)), ((3, 0), ((1, 0),)), ((2, 3, 4),
    ((-1, 0, 1),))],
    "repeat": [(s, (2,), {"axis": a}) for s in X if s for a in (None, 0, -1)] + [((2, 3), (0,)),
    ((), (3,)), ((4,), (np.array([1, 0, 2, 3]),))],
    "reshape": [((2, 3, 4), ((4, 6),)), ((2, 3), ((-1,),)), ((), ((1, 1),)), ((3, 0), ((0, 7),)),
    ((1, 1), ((),)), ((2, 3), ((3, -1),))],
    "roll": [(s, (shift,), {"axis": a}) for s in X for shift in (0, 1, -5) for a in (None,
    *range(len(s)))] + [((2, 3), ((1, 2),), {"axis": (0, 1)})],
    "squeeze": [((1, 1), (0,)), ((1, 1), ((0, 1),)), ((1, 3, 1), (-1,)), ((2, 3), ((),))],
    "tile": [(s, (r,)) for s in X for r in ((), (2,), (2, 1, 3), (0,))],
    "unstack": [(s, (), {"axis": a}) for s in X if s for a in (0, -1)],
    "matrix_transpose": [(s, ()) for s in D2],
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_manipulation(name):
    for shape, args, *options in CASES[name]:
        for dtype in ("int64", "float32") if name != "unstack" else ("int64",):
            x = X[shape].astype(dtype)
            kw = options[0] if options else {}
            got, want = (
                getattr(jnp, name)(jnp.asarray(x), *args, **kw),
                getattr(np, name)(x, *args, **kw),
            )
            for g, w in zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]:
                assert (g.dtype, g.shape) == (w.dtype, w.shape), (shape, args, kw)
                np.testing.assert_array_equal(g, w)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("expand_dims", {"axis": 4}), ("expand_dims", {"axis": -5}), ("flip", {"axis": 3}),
        ("squeeze", {"axis": 0}), ("roll", {"shift": 1, "axis": 5}),
        ("permute_dims", {"axes": (0, 0, 1)}), ("permute_dims", {"axes": (0, 1)}), ("reshape",
        {"shape": (5,)}), ("reshape", {"shape": (-1, -1)}),
        ("broadcast_to", {"shape": (3, 4)}), ("repeat", {"repeats": 2, "axis": 4}), ("unstack",
        {"axis": 3}), ("take", {"indices": np.array([0]), "axis": 3}),
        ("sum", {"axis": 3}), ("sort", {"axis": -4}), ("argmax", {"axis": 3}), ("cumulative_sum",
        {"axis": 3}), ("mean", {"axis": (0, 0)}),
    ],
)  # fmt: skip
def test_wrong_axes_and_shapes_are_refused(name, args):
    with pytest.raises((ValueError, TypeError, IndexError)):
        getattr(jnp, name)(jnp.ones((2, 3, 4)), **args)


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_joining(axis):
    a, b = X[(2, 3)].astype("int8"), X[(2, 3)].astype("int32") + 9
    for name in ("concat", "stack") if axis is not None else ("concat",):
        got, want = (
            getattr(jnp, name)([jnp.asarray(a), jnp.asarray(b)], axis=axis),
            getattr(np, name)([a, b], axis=axis),
        )
        assert got.dtype == want.dtype == "int32"
        np.testing.assert_array_equal(got, want)
    assert jnp.concat((jnp.ones((0, 2)), jnp.ones((3, 2)))).shape == (3, 2)
    for name, shapes in (
        ("concat", ((2, 3), (2, 4))),
        ("stack", ((2,), (3,))),
        ("concat", ((), ())),
    ):
        with pytest.raises((ValueError, TypeError)):
            getattr(jnp, name)([jnp.ones(s) for s in shapes])


# ---------------------------------------------------------------- indexing

INTEGERS = [0, 2, -1, -3]
SLICES = [
    slice(*a)
    for a in itertools.product(
        (None, 0, 1, -1, 3, 5, -5), (None, 0, 2, -2, 3), (None, 1, 2, -1, -2)
    )
]


@pytest.mark.parametrize("index", [*INTEGERS, *SLICES], ids=str)
def test_one_axis(index):
    x = np.arange(3)
    got, want = jnp.asarray(x)[index], x[index]
    assert got.shape == want.shape
    np.testing.assert_array_equal(got, want)


BASIC = [
    (), ..., (1,), (1, 2), (1, 2, 3), (slice(None), 1), (..., 1), (1, ...), (..., None), None,
    (None, ..., None), (0, ..., -1), (slice(1, None), None, 2),
    (slice(None, None, -1), slice(0, 0), 1), (None, 1, None, slice(None), ...), (1, slice(None),
    slice(None, None, 2), ...), (..., slice(3, 1, -1)),
]  # fmt: skip


@pytest.mark.parametrize("index", BASIC, ids=str)
def test_several_axes(index):
    x = X[(2, 3, 4)]
    got, want = jnp.asarray(x)[index], x[index]
    assert got.shape == want.shape
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    "index",
    [
        (0, 0, 0, 0),
        (..., ...),
        (0, 1, 2, ..., 3),
        "text",
        1.0,
        (slice(None), 0.5),
        slice(0.5, None),
    ],
    ids=str,
)
def test_what_is_no_index(index):
    with pytest.raises((IndexError, TypeError)):
        jnp.asarray(X[(2, 3, 4)])[index]


def test_indices_out_of_bounds():
    """The standard leaves them open, NumPy refuses them, JAX clamps them."""
    x = jnp.arange(3)
    assert [x[i].tolist() for i in (3, -4, 9)] == [2, 0, 2] and x[jnp.asarray(7)] == 2


MASKS = [
    ((4,), (4,)),
    ((2, 3), (2, 3)),
    ((2, 3), (2,)),
    ((2, 3, 4), (2, 3)),
    ((), ()),
    ((0,), (0,)),
    ((3, 0), (3,)),
]


@pytest.mark.parametrize(("shape", "of_mask"), MASKS)
def test_masks(shape, of_mask):
    x = X[shape]
    for mask in (
        (
            x.reshape(shape)[(...,) + (0,) * (len(shape) - len(of_mask))] % 2 == 0
            if x.size
            else np.ones(of_mask, bool)
        ),
        np.zeros(of_mask, bool),
    ):
        got, want = jnp.asarray(x)[jnp.asarray(mask)], x[mask]
        assert got.shape == want.shape
        np.testing.assert_array_equal(got, want)


T, F = True, False
SCALARS = [T, F, (T, 0), (0, T), (F, ...), (..., T), (None, F), (0, T, np.array([0, 1])),
(slice(None), T, np.array([0, 1])), (T, T), (T, np.array([T, F])), (np.array(T), slice(0, 1)),
np.bool_(F)]  # fmt: skip


@pytest.mark.parametrize("index", SCALARS, ids=str)
def test_masks_of_rank_0(index):
    x = X[(2, 3)].copy()
    got, want = jnp.asarray(x)[index], x[index]
    assert got.shape == want.shape
    np.testing.assert_array_equal(got, want)
    updated = jnp.asarray(x).at[index].set(7)
    x[index] = 7
    np.testing.assert_array_equal(updated, x)


@pytest.mark.parametrize(
    "index",
    [
        (np.array([0, 1]),), (np.array([[0, 1], [1, 0]]),), (np.array([0, 1]), np.array([2, 0])),
        (np.array([0, -1]), 1), (1, np.array([2, 0, 0])),
        (np.array([[0], [1]]), np.array([2, 0])), (np.array([0, 1]), slice(None), np.array([0,
        3])), (np.array(1), np.array([0, 2]), np.array([1, 1])),
    ],
    ids=str,
)  # fmt: skip
def test_integer_arrays(index):
    x = X[(2, 3, 4)]
    got = jnp.asarray(x)[tuple(jnp.asarray(i) if isinstance(i, np.ndarray) else i for i in index)]
    np.testing.assert_array_equal(got, x[index])


def test_assignment_is_refused_with_the_remedy():
    x = jnp.arange(3)
    with pytest.raises(TypeError, match=r"\.at\["):
        x[0] = 1


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_take(axis):
    x = X[(2, 3)]
    index = np.array([0, 1, -1, 0])
    got = jnp.take(jnp.asarray(x), jnp.asarray(index), axis=axis)
    np.testing.assert_array_equal(got, np.take(x, index, axis=axis))
    if axis is not None:
        along = np.array([[1, 0, 0], [0, 1, 1]]) if axis == 0 else np.array([[2, 0], [-1, 1]])
        got = jnp.take_along_axis(jnp.asarray(x), jnp.asarray(along), axis=axis)
        np.testing.assert_array_equal(got, np.take_along_axis(x, along, axis=axis))
    assert jnp.take(jnp.arange(3), jnp.zeros((0,), int)).shape == (0,)

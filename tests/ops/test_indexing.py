"""gather against a loop over its definition, its rules, and JAX."""

import ml_dtypes
import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.ops import indexing as I
from calque.ops.dimension_numbers import GatherDimensionNumbers, GatherScatterMode
from tests.ops import peer
from tests.ops.helpers import (
    check_batch,
    check_fun_jvp,
    check_meaning,
    check_transpose,
    run,
    same,
    values,
)

CLIP, FILL, PROMISE = (
    GatherScatterMode.CLIP,
    GatherScatterMode.FILL_OR_DROP,
    GatherScatterMode.PROMISE_IN_BOUNDS,
)
DN = GatherDimensionNumbers


def reference(x, indices, numbers, sizes, mode, fill=None):
    """The definition, element by element of the result."""
    offset, collapsed, index_map, batching, indices_batching = numbers
    kept = [d for d in range(x.ndim) if d not in collapsed and d not in batching]
    ndim = indices.ndim - 1 + len(offset)
    batch_dims = [d for d in range(ndim) if d not in offset]
    shape = [0] * ndim
    for d, n in zip(batch_dims, indices.shape[:-1]):
        shape[d] = n
    for d, k in zip(offset, kept):
        shape[d] = sizes[k]
    out = np.zeros(shape, x.dtype)
    for i in np.ndindex(*shape):
        b = tuple(i[d] for d in batch_dims)
        start = [0] * x.ndim
        for k, d in enumerate(index_map):
            start[d] = int(indices[(*b, k)])
        for d, ib in zip(batching, indices_batching):
            start[d] = b[ib]
        inside = all(0 <= s <= n - w for s, n, w in zip(start, x.shape, sizes))
        start = [min(max(s, 0), n - w) for s, n, w in zip(start, x.shape, sizes)]
        for d, k in zip(offset, kept):
            start[k] += i[d]
        out[i] = x[tuple(start)] if inside or mode is not FILL else fill
    return out


X = values("float32", (4, 3, 5))
CASES = {
    "rows": (X, np.array([[1], [3], [1]]), DN((1, 2), (0,), (0,)), (1, 3, 5)),
    "rows at the end": (X, np.array([[1], [3], [1]]), DN((0, 1), (0,), (0,)), (1, 3, 5)),
    "columns": (X, np.array([[4, 0], [1, 2]]), DN((0, 2), (0,), (2, 0)), (1, 2, 3)),
    "windows": (X, np.array([[1, 1], [0, 0]]), DN((1, 2, 3), (), (0, 2)), (2, 3, 3)),
    "points": (X, np.array([[[1, 1, 1], [2, 2, 2]]]), DN((), (0, 1, 2), (0, 1, 2)), (1, 1, 1)),
    "one vector": (X, np.array([2]), DN((0, 1), (0,), (0,)), (1, 3, 5)),
    "no indices": (X, np.zeros((2, 0), int), DN((1, 2, 3), (), ()), (4, 3, 5)),
    "batching": (X, np.array([[1], [2], [0], [4]]), DN((1,), (2,), (2,), (0,), (0,)), (1, 3, 1)),
    "batching inside": (X, np.ones((2, 3, 1), int), DN((2,), (2,), (2,), (1,), (1,)), (4, 1, 1)),
    "outside": (X, np.array([[-1], [3], [4], [99], [-99]]), DN((1, 2), (0,), (0,)), (1, 3, 5)),
    "window outside": (
        X,
        np.array([[-1, 0], [3, 1], [2, 2], [2, 3]]),
        DN((1, 2, 3), (), (0, 2)),
        (2, 2, 3),
    ),
    "no rows": (X, np.zeros((0, 1), int), DN((1, 2), (0,), (0,)), (1, 3, 5)),
    "empty operand": (X[:, :0], np.array([[1], [9]]), DN((1, 2), (0,), (0,)), (1, 0, 5)),
    "empty window": (X, np.array([[1], [9]]), DN((1, 2, 3), (), (0,)), (0, 3, 5)),
    "scalar operand": (X[0, 0, 0], np.zeros((2, 0), int), DN((), (), ()), ()),
}


def params(numbers, sizes, mode, fill=None):
    return {
        "dimension_numbers": numbers,
        "slice_sizes": sizes,
        "unique_indices": False,
        "indices_are_sorted": False,
        "mode": mode,
        "fill_value": fill,
    }


@pytest.mark.parametrize("mode", [CLIP, FILL, PROMISE])
@pytest.mark.parametrize("name", CASES)
def test_meaning(name, mode):
    x, indices, numbers, sizes = CASES[name]
    for dtype, itype in [
        ("float32", "int32"),
        (ml_dtypes.bfloat16, "int8"),
        ("int16", "int32"),
        ("complex64", "int16"),
    ]:
        v = np.asarray(x).astype(dtype)
        check_meaning(
            I.gather_p,
            lambda v, i: reference(v, i, numbers, sizes, mode, 7),
            v,
            indices.astype(itype),
            **params(numbers, sizes, mode, 7),
        )


def test_large_unsigned_indices():
    numbers = DN((), (0,), (0,))
    got = run(
        lambda x, i: I.gather_p.bind(x, i, **params(numbers, (1,), FILL)),
        X[0, 0],
        np.array([[2], [255]], "uint8"),
    )
    same(got[0], np.array([X[0, 0, 2], np.nan], "float32"))


@pytest.mark.parametrize(
    ("dtype", "fill"), [("float32", np.nan), ("int8", -128), ("uint8", 255), ("bool", True)]
)
def test_default_fill(dtype, fill):
    x = values(dtype, (3,))
    out = run(
        lambda x, i: I.gather(x, i, DN((), (0,), (0,)), (1,), mode="fill"),
        x,
        np.array([[5]], "int32"),
    )
    same(out[0], np.array([fill]).astype(dtype))


@pytest.mark.parametrize("name", CASES)
def test_derivatives(name):
    x, indices, numbers, sizes = CASES[name]
    x, indices = x.astype("float64"), indices.astype("int32")
    for mode in (CLIP, FILL):
        p = params(numbers, sizes, mode, 0)
        check_fun_jvp(lambda x: I.gather_p.bind(x, indices, **p), x)
        check_transpose(I.gather_p, x, indices, **p)


@pytest.mark.parametrize("name", CASES)
def test_batch(name):
    x, indices, numbers, sizes = CASES[name]
    for mode in (CLIP, FILL):
        check_batch(I.gather_p, x, indices.astype("int32"), **params(numbers, sizes, mode, 3))


@pytest.mark.parametrize(
    ("numbers", "sizes", "indices", "words"),
    [
        (DN((1, 2), (0,), (0,)), (2, 3, 5), np.zeros((2, 1), "int32"), "with bound 1"),
        (
            DN((1, 2), (0,), (0,)),
            (1, 3, 6),
            np.zeros((2, 1), "int32"),
            "Slice size at index 2",
        ),
        (DN((1,), (0,), (0,)), (1, 3, 5), np.zeros((2, 1), "int32"), "offset_dims"),
        (DN((2, 1), (0,), (0,)), (1, 3, 5), np.zeros((2, 1), "int32"), "sorted"),
        (
            DN((1, 2), (0,), (0, 1)),
            (1, 3, 5),
            np.zeros((2, 1), "int32"),
            "has 2 elements in start_index_map",
        ),
        (DN((1, 2), (0,), (0,)), (1, 3, 5), np.zeros((2, 1), "float32"), "integers"),
        (
            DN((1,), (0,), (0,), (1,), (0,)),
            (1, 1, 5),
            np.zeros((2, 1), "int32"),
            "have the same shape",
        ),
        (DN((1, 2), (0,), (3,)), (1, 3, 5), np.zeros((2, 1), "int32"), "Invalid start_index_map"),
    ],
)
def test_errors(numbers, sizes, indices, words):
    with pytest.raises(TypeError, match=words):
        run(lambda x, i: I.gather(x, i, numbers, sizes), X, indices)


def test_mode_names():
    assert GatherScatterMode.from_any("clip") is CLIP and GatherScatterMode.from_any(None) is FILL
    assert (
        str(CLIP) == "GatherScatterMode.CLIP"
        and repr(FILL) == "<GatherScatterMode.FILL_OR_DROP: 2>"
    )
    with pytest.raises(ValueError, match='Unknown gather mode "wrap"'):
        GatherScatterMode.from_any("wrap")


@pytest.mark.peer
@pytest.mark.parametrize("mode", ["clip", "fill", "promise_in_bounds", None])
def test_beside_jax(mode):
    jax = pytest.importorskip("jax")
    for x, indices, numbers, sizes in CASES.values():
        theirs = jax.lax.GatherDimensionNumbers(*numbers)

        def fun(lax, x, i):
            return lax.gather(x, i, numbers if lax is peer.ours else theirs, sizes, mode=mode)

        peer.compare([(fun, np.asarray(x), indices.astype("int32"))])


@pytest.mark.peer
def test_index_take_beside_jax():
    i, j = np.array([1, -1, 7], "int32"), np.array([0, 2, 1], "int32")
    peer.compare([(lambda lax, x, i: lax.index_take(x, (i,), (1,)), X, i)], printed=False)
    peer.compare([(lambda lax, x, i, j: lax.index_take(x, (i, j), (0, 2)), X, i, j)], printed=False)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_index_take_counts_modulo_sizes_that_narrow_indices_do_not_hold(dtype):
    x, i = jnp.arange(70000), jnp.array([0, 100, -3 % 100 if dtype[0] == "u" else -3], dtype)
    wanted = [int(v) % 70000 for v in i]
    for f in (lax.index_take, calque.jit(lax.index_take, static_argnums=2)):
        assert f(x, (i,), (0,)).tolist() == wanted

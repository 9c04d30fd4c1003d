"""Scatters against a loop over their definition, their rules, and JAX."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import calque
from calque.core.jaxprs import Jaxpr
from calque.ops import scatter as S
from calque.ops.dimension_numbers import GatherScatterMode, ScatterDimensionNumbers
from calque.ops.indexing import combiner
from tests.ops import peer
from tests.ops.helpers import (
    check_batch,
    check_fun_jvp,
    check_meaning,
    check_transpose,
    run,
    values,
)

CLIP, FILL, PROMISE = (
    GatherScatterMode.CLIP,
    GatherScatterMode.FILL_OR_DROP,
    GatherScatterMode.PROMISE_IN_BOUNDS,
)
DN = ScatterDimensionNumbers

COMBINE = {
    "scatter": lambda a, b: b,
    "scatter-add": lambda a, b: a + b,
    "scatter-sub": lambda a, b: a - b,
    "scatter-mul": lambda a, b: a * b,
    "scatter-min": min,
    "scatter-max": max,
}
PRIMS = {
    p.name: p
    for p in (
        S.scatter_p,
        S.scatter_add_p,
        S.scatter_sub_p,
        S.scatter_mul_p,
        S.scatter_min_p,
        S.scatter_max_p,
    )
}


def reference(x, indices, updates, numbers, mode, combine):
    """The definition, update by update."""
    window, inserted, index_map, batching, indices_batching = numbers
    out = np.array(x)
    kept = [d for d in range(x.ndim) if d not in inserted and d not in batching]
    batch_dims = [d for d in range(updates.ndim) if d not in window]
    sizes = [1] * x.ndim
    for d, w in zip(kept, window):
        sizes[d] = updates.shape[w]
    for b in np.ndindex(*indices.shape[:-1]):
        start = [0] * x.ndim
        for k, d in enumerate(index_map):
            start[d] = int(indices[(*b, k)])
        for d, ib in zip(batching, indices_batching):
            start[d] = b[ib]
        if mode is CLIP:
            start = [min(max(s, 0), n - w) for s, n, w in zip(start, x.shape, sizes)]
        if not all(0 <= s <= n - w for s, n, w in zip(start, x.shape, sizes)):
            continue
        for o in np.ndindex(*[updates.shape[w] for w in window]):
            at, u = list(start), [0] * updates.ndim
            for d, w, i in zip(kept, window, o):
                at[d] += i
                u[w] = i
            for d, i in zip(batch_dims, b):
                u[d] = i
            out[tuple(at)] = combine(out[tuple(at)], updates[tuple(u)])
    return out


X = values("float32", (4, 3, 5))


def up(*shape):
    return values("float32", shape, seed=3)


CASES = {
    "rows": (X, np.array([[1], [3], [1]]), up(3, 3, 5), DN((1, 2), (0,), (0,))),
    "rows, window first": (X, np.array([[1], [3], [1]]), up(3, 5, 3), DN((0, 1), (0,), (0,))),
    "windows": (X, np.array([[1, 1], [0, 0], [1, 0]]), up(3, 2, 2, 3), DN((1, 2, 3), (), (0, 2))),
    "points": (X, np.array([[[1, 1, 1], [2, 2, 2]]]), up(1, 2), DN((), (0, 1, 2), (0, 1, 2))),
    "one vector": (X, np.array([2]), up(3, 5), DN((0, 1), (0,), (0,))),
    "whole": (X, np.zeros((2, 0), int), up(2, 4, 3, 5), DN((1, 2, 3), (), ())),
    "batching": (X, np.array([[1], [2], [0], [4]]), up(4, 3), DN((1,), (2,), (2,), (0,), (0,))),
    "outside": (X, np.array([[-1], [3], [4], [99], [-99]]), up(5, 3, 5), DN((1, 2), (0,), (0,))),
    "window outside": (
        X,
        np.array([[-1, 0], [3, 1], [2, 2], [2, 3]]),
        up(4, 2, 2, 3),
        DN((1, 2, 3), (), (0, 2)),
    ),
    "no updates": (X, np.zeros((0, 1), int), up(0, 3, 5), DN((1, 2), (0,), (0,))),
    "scalar": (X[0, 0, 0], np.zeros((2, 0), int), up(2), DN((), (), ())),
    "empty operand": (X[:, :0], np.array([[0], [1]]), up(2, 0, 5), DN((1, 2), (0,), (0,))),
}


def params(numbers, mode, unique=False):
    return {
        "dimension_numbers": numbers,
        "indices_are_sorted": False,
        "unique_indices": unique,
        "mode": mode,
        "update_jaxpr": None,
        "update_consts": (),
    }


@pytest.mark.parametrize("mode", [CLIP, FILL, PROMISE])
@pytest.mark.parametrize("prim", PRIMS)
def test_meaning(prim, mode):
    for x, indices, updates, numbers in CASES.values():
        for dtype in ("float32", "int8", ml_dtypes.bfloat16):
            check_meaning(
                PRIMS[prim],
                lambda x, i, u: reference(x, i, u, numbers, mode, COMBINE[prim]),
                np.asarray(x).astype(dtype),
                indices.astype("int32"),
                updates.astype(dtype),
                **params(numbers, mode),
            )


@pytest.mark.parametrize("name", CASES)
def test_linear_rules(name):
    x, indices, updates, numbers = CASES[name]
    x, indices, updates = x.astype("float64"), indices.astype("int32"), updates.astype("float64")
    for mode in (CLIP, FILL):
        for prim in (S.scatter_p, S.scatter_add_p, S.scatter_sub_p):
            check_fun_jvp(
                lambda x, u: prim.bind(x, indices, u, **params(numbers, mode)), x, updates
            )
            check_transpose(prim, x, indices, updates, linear=(0, 2), **params(numbers, mode))
        check_transpose(
            S.scatter_add_p, x * 0, indices, updates, linear=(2,), **params(numbers, mode)
        )


def test_other_derivatives():
    x, indices, updates, numbers = CASES["outside"]
    x, updates = x.astype("float64"), updates.astype("float64")
    indices = indices.astype("int32")
    for mode in (CLIP, FILL):
        for prim in (S.scatter_min_p, S.scatter_max_p):
            check_fun_jvp(
                lambda x, u: prim.bind(x, indices, u, **params(numbers, mode)), x, updates
            )
        check_fun_jvp(
            lambda x: S.scatter_mul_p.bind(x, indices, updates, **params(numbers, mode)), x, order=2
        )
    unique = np.array([[0], [3], [1], [99], [2]], "int32")
    check_fun_jvp(
        lambda x, u: S.scatter_mul_p.bind(x, unique, u, **params(numbers, FILL, True)),
        x,
        updates,
        order=2,
    )
    check_transpose(S.scatter_mul_p, x, indices, updates, **params(numbers, FILL))
    with pytest.raises(NotImplementedError, match="unique_indices=True"):
        check_fun_jvp(
            lambda x, u: S.scatter_mul_p.bind(x, indices, u, **params(numbers, FILL)), x, updates
        )


@pytest.mark.parametrize("name", CASES)
def test_batch(name):
    x, indices, updates, numbers = CASES[name]
    for prim in (S.scatter_p, S.scatter_add_p):
        check_batch(prim, x, indices.astype("int32"), updates, **params(numbers, FILL))


@pytest.mark.parametrize(
    ("numbers", "indices", "updates", "words"),
    [
        (DN((1, 2), (0,), (0,)), np.zeros((2, 1), "int32"), up(2, 3, 6), "exceed"),
        (DN((1, 2), (0,), (0,)), np.zeros((2, 1), "int32"), up(3, 3, 5), "scatter dimensions"),
        (DN((1, 2), (0,), (0,)), np.zeros((2, 1), "float32"), up(2, 3, 5), "integers"),
        (DN((1, 2), (), (0,)), np.zeros((2, 1), "int32"), up(2, 3, 5), "window of size 2"),
        (DN((2, 1), (0,), (0,)), np.zeros((2, 1), "int32"), up(2, 3, 5), "sorted"),
        (
            DN((1, 2), (0,), (0,)),
            np.zeros((2, 1), "int32"),
            up(2, 3, 5).astype("int32"),
            "same dtype",
        ),
    ],
)
def test_errors(numbers, indices, updates, words):
    with pytest.raises(TypeError, match=words):
        run(lambda x, i, u: S.scatter_p.bind(x, i, u, **params(numbers, FILL)), X, indices, updates)


def test_update_jaxpr():
    closed = combiner("add", np.dtype("float32"))
    assert isinstance(closed, Jaxpr) and closed is combiner("add", np.dtype("float32"))


@pytest.mark.peer
@pytest.mark.parametrize(
    "name", ["scatter", "scatter_add", "scatter_sub", "scatter_mul", "scatter_min", "scatter_max"]
)
def test_beside_jax(name):
    jax = pytest.importorskip("jax")
    for key, (x, indices, updates, numbers) in CASES.items():
        for mode in (None, "clip"):
            theirs = jax.lax.ScatterDimensionNumbers(*numbers)
            duplicates = name == "scatter" and key in (
                "rows",
                "rows, window first",
                "windows",
                "whole",
                "outside",
                "window outside",
                "scalar",
            )
            if (
                duplicates or key == "scalar"
            ):  # their order is not defined in JAX; JAX fails on rank 0
                continue

            def fun(lax, x, i, u):
                return getattr(lax, name)(
                    x, i, u, numbers if lax is peer.ours else theirs, mode=mode
                )

            peer.compare([(fun, np.asarray(x), indices.astype("int32"), np.asarray(updates))])


@pytest.mark.peer
def test_tied_derivative_beside_jax():
    jax = pytest.importorskip("jax")
    rows = (1,), (0,), (0,)
    zeros, i = np.zeros((3, 4), "float32"), np.array([[0], [0], [1]], "int32")
    for name in ("scatter_max", "scatter_min"):

        def theirs(o, u):
            return getattr(jax.lax, name)(o, i, u, jax.lax.ScatterDimensionNumbers(*rows))

        want = jax.jvp(theirs, (zeros, zeros), (zeros + 1, zeros + 2))[1]
        prim = PRIMS[name.replace("_", "-")]
        got = run(
            lambda *a: prim.jvp((a[0], i, a[1]), (a[2], None, a[3]), **params(DN(*rows), FILL))[1],
            zeros,
            zeros,
            zeros + 1,
            zeros + 2,
        )
        np.testing.assert_allclose(got[0], want, rtol=1e-6)


def test_updates_of_nothing_have_derivatives():
    """The windows of an operand without elements do not fit into it, so the derivative must not
    gather them."""
    x, i, u = np.zeros((0,), "float32"), np.zeros((0, 1), "int32"), np.zeros((0,), "float32")
    numbers = DN((), (0,), (0,))
    for name in ("scatter", "scatter-add", "scatter-mul", "scatter-max"):
        p = params(numbers, FILL, unique=True)

        def jvp(x, u, dx, du):
            return PRIMS[name].jvp((x, i, u), (dx, None, du), **p)[1]

        assert run(jvp, x, u, x, u)[0].shape == (0,)


@pytest.mark.parametrize("name", ["scatter", "scatter_add", "scatter_max", "scatter_mul"])
@pytest.mark.parametrize("mode", ["clip", "drop", "promise_in_bounds"])
def test_rows_into_an_array_without_rows(name: str, mode: str) -> None:
    """No update lies inside: the array stays, eagerly, compiled, and after other sizes."""
    numbers = calque.lax.ScatterDimensionNumbers((1,), (0,), (0,))

    def f(x: Any, at: Any) -> Any:
        rows = np.ones((2, 3), "float32")
        return getattr(calque.lax, name)(x, at[:, None], rows, numbers, mode=mode)

    compiled = calque.jit(f)
    for n in (4, 6, 0, 5):
        x, at = np.full((n, 3), 2.0, "float32"), np.array([0, 1], "int32")
        for g in (f, compiled):
            assert g(x, at).shape == (n, 3)
            assert n == 0 or g(x, at)[2:].tolist() == [[2.0] * 3] * (n - 2)
    with pytest.raises(TypeError, match="must not exceed"):
        calque.lax.scatter(
            np.zeros((1, 3), "float32"),
            np.zeros((2, 1), "int32"),
            np.ones((2, 4), "float32"),
            numbers,
        )

"""slice, dynamic_slice, dynamic_update_slice against NumPy, their rules, and JAX."""

import ml_dtypes
import numpy as np
import pytest

from calque.ops import slicing as S
from calque.ops import slicing_functions as F
from tests.ops import peer
from tests.ops.helpers import (
    check_batch,
    check_jvp,
    check_meaning,
    check_transpose,
    run,
    same,
    values,
)

X = values("float64", (5, 4))
U = values("float64", (2, 3), seed=1)


def sl(starts, limits, strides=None):
    return {"start_indices": starts, "limit_indices": limits, "strides": strides}


SLICES = [
    (X, sl((1, 0), (4, 2)), X[1:4, 0:2]),
    (X, sl((0, 1), (5, 4), (2, 3)), X[::2, 1::3]),
    (X, sl((0, 0), (5, 4), (3, 1)), X[::3]),
    (X, sl((2, 4), (2, 4)), X[2:2, 4:4]),
    (X[0, 0], sl((), ()), X[0, 0]),
    (X[:0], sl((0, 1), (0, 3), (2, 2)), X[:0, 1:3:2]),
]


@pytest.mark.parametrize(("x", "params", "want"), SLICES)
def test_slice(x, params, want):
    for dtype in ("float32", "int8", "bool", ml_dtypes.bfloat16):
        v = np.asarray(x).astype(dtype)
        check_meaning(S.slice_p, lambda v: np.asarray(want).astype(dtype), v, **params)
    check_jvp(S.slice_p, x, **params)
    check_transpose(S.slice_p, x, **params)
    check_batch(S.slice_p, np.asarray(x).astype("float32"), **params)


def window(i, j, sizes=(2, 3)):
    i, j = (min(max(int(k), 0), n - m) for k, n, m in zip((i, j), X.shape, sizes))
    return np.s_[i : i + sizes[0], j : j + sizes[1]]


@pytest.mark.parametrize(
    ("i", "j"), [(0, 0), (1, 1), (3, 0), (4, 2), (-1, 100), (-(2**31), 2**31 - 1)]
)
def test_dynamic(i, j):
    at = [np.int32(i), np.int32(j)]
    x, u = X.astype("float32"), U.astype("float32")
    check_meaning(S.dynamic_slice_p, lambda x, i, j: x[window(i, j)], x, *at, slice_sizes=(2, 3))

    def updated(x, u, i, j):
        out = x.copy()
        out[window(i, j)] = u
        return out

    check_meaning(S.dynamic_update_slice_p, updated, x, u, *at)
    check_jvp(S.dynamic_slice_p, X, *at, slice_sizes=(2, 3))
    check_transpose(S.dynamic_slice_p, X, *at, slice_sizes=(2, 3))
    check_jvp(S.dynamic_update_slice_p, X, U, *at)
    check_transpose(S.dynamic_update_slice_p, X, U, *at, linear=(0, 1))


@pytest.mark.parametrize("itype", ["int32", "uint8"])
def test_dynamic_batch(itype):
    x, u = X.astype("float32"), U.astype("float32")
    at = [np.asarray(1, itype), np.asarray(2, itype)]
    check_batch(S.dynamic_slice_p, x, *at, slice_sizes=(2, 3))
    check_batch(S.dynamic_update_slice_p, x, u, *at)
    moving = [np.array([0, 2, 9], itype), np.array([3, 0, 1], itype)]
    for which in [(None, 0, 0), (None, 0, None), (1, None, 0), (0, 0, 0)]:
        args = [x if which[0] is None else np.stack([x, x + 1, x * 2], which[0])]
        args += [m if d is not None else m[0] for m, d in zip(moving, which[1:])]
        dims = []

        def batched(*xs, which=which, dims=dims):
            out, d = S.dynamic_slice_p.batch(list(xs), list(which), slice_sizes=(2, 3))
            dims.append(d)
            return out

        (got,) = run(batched, *args)
        for k in range(3):
            xk = x if which[0] is None else np.take(args[0], k, which[0])
            i, j = (m[k] if d is not None else m for m, d in zip(args[1:], which[1:]))
            same(np.take(got, k, dims[0]), xk[window(i, j)])


def test_dynamic_scalar():
    x = np.float32(3)
    same(run(lambda x: F.dynamic_slice(x, (), ()), x)[0], x)
    same(run(lambda x: F.dynamic_update_slice(x, 2.0, ()), x)[0], np.float32(2))
    check_batch(S.dynamic_slice_p, x, slice_sizes=())
    check_batch(S.dynamic_update_slice_p, x, x)


@pytest.mark.peer
def test_beside_jax():
    x, u, i = X.astype("float32"), U.astype("float32"), np.int32(3)
    peer.compare(
        [
            (lambda lax, x: lax.slice(x, (1, 0), (4, 2)), x),
            (lambda lax, x: lax.slice(x, (1, 0), (4, 2), (2, 1)), x),
            (lambda lax, x: lax.slice_in_dim(x, -2, None, 1, 0), x),
            (lambda lax, x: lax.index_in_dim(x, -1, 1, keepdims=False), x),
            (lambda lax, x, i: lax.dynamic_slice(x, (i, 0), (2, 3)), x, i),
            (lambda lax, x, i: lax.dynamic_slice(x, (i, -1), (2, 3)), x, i),
            (lambda lax, x, i: lax.dynamic_slice_in_dim(x, i, 2), x, i),
            (lambda lax, x: lax.dynamic_slice_in_dim(x, -1, 2), x),
            (lambda lax, x, u, i: lax.dynamic_update_slice(x, u, (i, i)), x, u, i),
            (lambda lax, x, u, i: lax.dynamic_update_slice_in_dim(x, x, i, 0), x, u, i),
            (lambda lax, x, v: lax.dynamic_slice(x, v, (2, 2)), x, np.array([1, 2], "int32")),
        ]
    )
    peer.compare(
        [
            (lambda lax, x, i: lax.dynamic_index_in_dim(x, i, 1, False), x, i),
        ],
        printed=False,
    )

"""Reductions over windows against their definition, their rules, and JAX."""

import ml_dtypes
import numpy as np
import pytest

from calque.core.avals import ShapedArray
from calque.core.primitives import UndefinedPrimal
from calque.ops import reductions as R
from calque.ops import windows as W
from calque.ops.indexing import combiner
from tests.ops import peer
from tests.ops.helpers import (
    check_batch,
    check_fun_jvp,
    check_jvp,
    check_meaning,
    check_transpose,
    run,
    same,
    traced,
    values,
)


def windows(x, p):
    """For each window the list of its elements, None where it is on padding or in a gap."""
    sizes = []
    for n, w, s, (low, high), bd, wd in zip(x.shape, *[p[k] for k in W.WINDOW]):
        extent, reach = max((n - 1) * bd + 1, 0) + low + high, (w - 1) * wd + 1
        sizes.append((extent - reach) // s + 1 if extent >= reach else 0)
    out = {}
    for i in np.ndindex(*sizes):
        cells = []
        for k in np.ndindex(*p["window_dimensions"]):
            pos = [
                a * s + j * wd - low
                for a, j, s, (low, _), wd in zip(
                    i, k, p["window_strides"], p["padding"], p["window_dilation"]
                )
            ]
            inside = all(
                q % bd == 0 and 0 <= q // bd < n
                for q, bd, n in zip(pos, p["base_dilation"], x.shape)
            )
            cells.append(
                tuple(q // bd for q, bd in zip(pos, p["base_dilation"])) if inside else None
            )
        out[i] = cells
    return sizes, out


def reference(fold, init):
    def expected(p):
        def compute(x):
            sizes, cells = windows(x, p)
            out = np.full(sizes, init, x.dtype)
            for i, where in cells.items():
                total = out.dtype.type(init)
                for c in where:
                    total = fold(total, x[c]) if c is not None else total
                out[i] = total
            return out

        return compute

    return expected


def params(ndim, window, **changes):
    ones = (1,) * ndim
    p = {
        "window_dimensions": window,
        "window_strides": ones,
        "padding": ((0, 0),) * ndim,
        "base_dilation": ones,
        "window_dilation": ones,
    }
    return {**p, **changes}


def v(*shape, seed=0):
    return values("float64", shape, seed=seed)


CASES = {
    "plain": (v(5, 6), params(2, (2, 3))),
    "strides": (v(7, 6), params(2, (2, 3), window_strides=(2, 3))),
    "padding": (v(5), params(1, (3,), padding=((2, 1),))),
    "negative padding": (v(8), params(1, (3,), padding=((-2, 1),), window_strides=(2,))),
    "base dilation": (v(4), params(1, (3,), base_dilation=(3,), padding=((1, 0),))),
    "window dilation": (
        v(8),
        params(1, (3,), window_dilation=(2,), window_strides=(2,), padding=((0, 1),)),
    ),
    "all": (
        v(5, 4),
        params(
            2,
            (2, 2),
            window_strides=(2, 1),
            padding=((1, 2), (0, -1)),
            base_dilation=(2, 1),
            window_dilation=(3, 2),
        ),
    ),
    "side by side": (v(6, 2, 9), params(3, (2, 1, 3), window_strides=(2, 1, 3))),
    "side by side, with a rest": (v(7, 8), params(2, (2, 3), window_strides=(2, 3))),
    "one": (v(3), params(1, (1,), window_strides=(2,))),
    "scalar": (v(), params(0, ())),
    "too large": (v(2), params(1, (3,))),
    "empty": (v(0, 3), params(2, (2, 2), padding=((1, 1), (0, 0)))),
}
SIDE_BY_SIDE = ("strides", "scalar", "side by side", "side by side, with a rest")
NO_DILATION = [k for k in CASES if "dilation" not in k and k != "all"]


@pytest.mark.parametrize("name", CASES)
def test_meaning(name):
    x, p = CASES[name]
    for dtype in ("float64", "float32", "int32", "int8"):
        a = x.astype(dtype)
        tol = 1e-5 if a.dtype.kind == "f" else 0
        check_meaning(
            W.reduce_window_sum_p, reference(lambda s, e: s + e, 0)(p), a, rtol=tol, atol=tol, **p
        )
        low, high = R.smallest(a.dtype), R.largest(a.dtype)
        check_meaning(W.reduce_window_max_p, reference(max, low)(p), a, **p)
        check_meaning(W.reduce_window_min_p, reference(min, high)(p), a, **p)
    a = x.astype(ml_dtypes.bfloat16)

    def wide(a):
        return reference(lambda s, e: s + e, 0)(p)(a.astype("float32")).astype(a.dtype)

    check_meaning(W.reduce_window_sum_p, wide, a, rtol=1e-2, **p)


def test_nan_is_the_extreme():
    x = np.array([1, np.nan, 3, 0], "float32")
    p = params(1, (2,))
    same(
        run(lambda x: W.reduce_window_max_p.bind(x, **p), x)[0],
        np.array([np.nan, np.nan, 3], "float32"),
    )


@pytest.mark.parametrize("name", CASES)
def test_rules_of_sums(name):
    x, p = CASES[name]
    check_jvp(W.reduce_window_sum_p, x, **p)
    check_transpose(W.reduce_window_sum_p, x, **p)
    check_batch(W.reduce_window_sum_p, x.astype("float32"), rtol=1e-5, atol=1e-5, **p)


@pytest.mark.parametrize("name", CASES)
def test_windows_side_by_side_give_each_element_one_cotangent(name):
    """Other windows overlap or leave gaps: there cotangents are summed over windows again."""
    x, p = CASES[name]
    out = run(lambda x: W.reduce_window_sum_p.bind(x, **p), x.astype("float32"))[0]
    like = UndefinedPrimal(ShapedArray(x.shape, np.dtype("float32")))
    back = traced(lambda ct: W.reduce_window_sum_p.transpose(ct, like, **p)[0], out)
    names = [e.primitive.name for e in back.jaxpr.eqns]
    assert ("reduce_window_sum" in names) != (name in SIDE_BY_SIDE)


@pytest.mark.parametrize("name", CASES)
def test_rules_of_extremes(name):
    x, p = CASES[name]
    for prim in (W.reduce_window_max_p, W.reduce_window_min_p):
        check_batch(prim, x.astype("float32"), **p)
        # windows without any element are infinite: their differences mean nothing
        if not any(all(c is None for c in cells) for cells in windows(x, p)[1].values()):
            check_jvp(prim, x, order=1, **p)


# ---------------------------------------------------------------- any computation


@pytest.mark.parametrize("name", [k for k in CASES if k != "empty"])
def test_general(name):
    x, p = CASES[name]
    lax = peer.ours
    rest = {k: p[k] for k in W.WINDOW}

    def fun(x):
        return W.reduce_window(x, 0.5, lambda a, b: lax.add(a, lax.mul(b, b)), **rest)

    expected = reference(lambda s, e: s + e * e, 0.5)(p)
    same(run(fun, x.astype("float32"))[0], expected(x.astype("float32")), rtol=1e-5, atol=1e-5)
    if name != "too large":
        check_fun_jvp(fun, x, order=2)
    prim = {"jaxpr": combiner("mul", np.dtype("float32")), "consts": ()}
    check_batch(
        W.reduce_window_p,
        x.astype("float32"),
        np.float32(1),
        only=[(0, None), (x.ndim, None)],
        rtol=1e-5,
        atol=1e-6,
        **prim,
        **p,
    )


def test_trees():
    lax = peer.ours
    x, y = np.arange(4, dtype="float32"), np.arange(4, dtype="int32")

    def fun(x, y):
        def both(a, b):
            return (lax.add(a[0], b[0]), lax.max(a[1], b[1]))

        return list(W.reduce_window((x, y), (0.0, -1), both, (2,)))

    got = run(fun, x, y)
    same(got[0], np.array([1, 3, 5], "float32"))
    same(got[1], np.array([1, 2, 3], "int32"))


def test_shaped_computation():
    lax = peer.ours

    def odd(a, b):
        return lax.reshape(lax.broadcast(lax.mul(a, b), (1,)), ())

    x = v(4).astype("float32")
    same(run(lambda x: W.reduce_window(x, 1.0, odd, (2,)), x)[0], x[:-1] * x[1:], rtol=1e-6)


@pytest.mark.parametrize(
    ("fun", "words"),
    [
        (lambda x: W.reduce_window(x, 0.0, peer.ours.add, (2, 2)), "positive integers"),
        (lambda x: W.reduce_window(x, 0.0, peer.ours.add, (0,)), "strictly positive"),
        (lambda x: W.reduce_window(x, np.int32(2), peer.ours.add, (2,)), "is of dtype int32, the"),
        (lambda x: W.reduce_window(x, np.int32(1), peer.ours.mul, (2,)), "is of dtype int32, the"),
        (lambda x: W.reduce_window((x,), 0.0, peer.ours.add, (2,)), "one structure"),
        (lambda x: W.reduce_window(x, 0.0, peer.ours.add, (2,), (1,), "FULL"), "Unrecognized"),
    ],
)
def test_errors(fun, words):
    with pytest.raises((TypeError, ValueError, RuntimeError), match=words):
        run(fun, v(4).astype("float32"))


@pytest.mark.peer
def test_beside_jax():
    x = v(6, 5).astype("float32")
    inf = np.inf
    peer.compare(
        [
            (lambda lax, x: lax.reduce_window(x, 0.0, lax.add, (2, 3)), x),
            (lambda lax, x: lax.reduce_window(x, -inf, lax.max, (2, 3), (2, 1), "SAME"), x),
            (
                lambda lax, x: lax.reduce_window(x, inf, lax.min, (2, 3), (2, 1), ((1, 0), (0, 2))),
                x,
            ),
            (
                lambda lax, x: lax.reduce_window(
                    x, -inf, lax.max, (2, 2), (2, 1), ((1, 0), (0, 2)), (2, 1), (1, 2)
                ),
                x,
            ),
            (
                lambda lax, x: lax.reduce_window(
                    x, 0.0, lax.add, (2, 2), (2, 1), "SAME", (2, 1), (1, 2)
                ),
                x,
            ),
            (lambda lax, x: lax.reduce_window(x, 0.0, lax.add, (2, 2), (2, 1), "SAME_LOWER"), x),
            (lambda lax, x: lax.reduce_window(x, 1.0, lax.mul, (2, 2), (2, 1), "SAME"), x),
            (lambda lax, x: lax.reduce_window(x, 3.0, lax.add, (2, 2), (2, 1), "SAME"), x),
        ]
    )
    shape = W.reduce_window_shape_tuple((6, 5), (2, 2), (2, 1), ((1, 0), (0, 2)), (2, 1), (1, 2))
    assert shape == (6, 5)


def test_an_identity_of_another_dtype_is_one():
    """As in JAX: what leaves others as they are adds nothing of its dtype."""
    x = np.float32([1, 3, 2])
    for f, init in ((peer.ours.add, np.int32(0)), (peer.ours.max, np.float16(-np.inf))):
        got = W.reduce_window(x, init, f, (2,))
        want = W.reduce_window(x, init.astype("float32"), f, (2,))
        assert got.dtype == "float32"
        np.testing.assert_array_equal(got, want)

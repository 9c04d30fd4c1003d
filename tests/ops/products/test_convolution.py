"""conv_general_dilated against its definition, its rules, and JAX."""

import ml_dtypes
import numpy as np
import pytest

from calque.ops.dimension_numbers import ConvDimensionNumbers
from calque.ops.padding import padtype_to_pads
from calque.ops.products import convolution as C
from tests.ops import peer
from tests.ops.helpers import (
    check_batch,
    check_jvp,
    check_meaning,
    check_transpose,
    values,
)


def reference(x, w, p):
    """The definition, element by element, in float64."""
    numbers = p["dimension_numbers"]
    groups, batch_groups = p["feature_group_count"], p["batch_group_count"]
    wide = "complex128" if x.dtype.kind == "c" else "float64"
    x = np.transpose(x, numbers.lhs_spec).astype(wide)
    w = np.transpose(w, numbers.rhs_spec).astype(wide)
    big = [max((n - 1) * d + 1, 0) for n, d in zip(x.shape[2:], p["lhs_dilation"])]
    stretched = np.zeros((*x.shape[:2], *big), wide)
    stretched[(slice(None), slice(None), *[slice(None, None, d) for d in p["lhs_dilation"]])] = x
    reach = [max((k - 1) * d + 1, 0) for k, d in zip(w.shape[2:], p["rhs_dilation"])]
    sizes = [
        max((n + low + high - k) // s + 1, 0) if n + low + high >= k else 0
        for n, (low, high), k, s in zip(big, p["padding"], reach, p["window_strides"])
    ]
    n_out, features = x.shape[0] // batch_groups, w.shape[0]
    out = np.zeros((n_out, features, *sizes), wide)
    per_group, per_batch_group = features // groups, features // batch_groups
    for n, o, *at in np.ndindex(*out.shape):
        first = (o // per_group) * w.shape[1]
        row = x.shape[0] // batch_groups * (o // per_batch_group) + n
        for i, *k in np.ndindex(*w.shape[1:]):
            pos = [
                a * s + j * d - low
                for a, s, j, d, (low, _) in zip(
                    at, p["window_strides"], k, p["rhs_dilation"], p["padding"]
                )
            ]
            if all(0 <= q < m and q % d == 0 for q, m, d in zip(pos, big, p["lhs_dilation"])):
                out[(n, o, *at)] += stretched[(row, first + i, *pos)] * w[(o, i, *k)]
    return np.transpose(out, np.argsort(numbers.out_spec))


def params(spatial, **changes):
    same_order = tuple(range(spatial + 2))
    ones = (1,) * spatial
    p = {
        "window_strides": ones,
        "padding": ((0, 0),) * spatial,
        "lhs_dilation": ones,
        "rhs_dilation": ones,
        "dimension_numbers": ConvDimensionNumbers(same_order, same_order, same_order),
        "feature_group_count": 1,
        "batch_group_count": 1,
        "precision": None,
        "preferred_element_type": None,
        "out_sharding": None,
    }
    return {**p, **changes}


def v(*shape, seed=0):
    return values("float64", shape, seed=seed)


NHWC = ConvDimensionNumbers((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
CASES = {
    "plain": (v(2, 3, 5, 4), v(2, 3, 2, 3), params(2)),
    "none": (v(2, 3), v(4, 3), params(0)),
    "line": (v(2, 3, 6), v(2, 3, 3), params(1, padding=((1, 2),), window_strides=(2,))),
    "layout": (
        v(1, 5, 4, 2),
        v(2, 3, 2, 3),
        params(2, dimension_numbers=NHWC, padding=((1, 0), (0, 1))),
    ),
    "mixed layout": (
        v(5, 2, 3),
        v(2, 3, 2),
        params(1, dimension_numbers=ConvDimensionNumbers((2, 1, 0), (0, 2, 1), (1, 2, 0))),
    ),
    "all dilated": (
        v(2, 2, 5),
        v(3, 2, 3),
        params(1, lhs_dilation=(3,), rhs_dilation=(2,), window_strides=(2,), padding=((3, 1),)),
    ),
    "negative padding": (
        v(1, 2, 7),
        v(2, 2, 2),
        params(1, padding=((-2, -1),), window_strides=(2,)),
    ),
    "uneven stride": (v(1, 2, 8), v(2, 2, 2), params(1, window_strides=(3,))),
    "groups": (v(2, 4, 5), v(6, 2, 2), params(1, feature_group_count=2, padding=((1, 0),))),
    "depthwise": (v(1, 3, 4), v(6, 1, 2), params(1, feature_group_count=3)),
    "groups, layout": (
        v(1, 5, 4, 4),
        v(2, 2, 2, 4),
        params(2, feature_group_count=2, dimension_numbers=NHWC),
    ),
    "batch groups": (v(4, 2, 5), v(6, 2, 2), params(1, batch_group_count=2, padding=((1, 0),))),
    "batch groups, layout": (
        v(4, 3, 4, 2),
        v(2, 2, 2, 4),
        params(2, batch_group_count=2, dimension_numbers=NHWC),
    ),
    "too small": (v(1, 1, 2), v(1, 1, 4), params(1)),
    "empty batch": (v(0, 2, 4), v(3, 2, 2), params(1)),
    "empty space": (v(1, 2, 0), v(3, 2, 2), params(1, padding=((1, 2),))),
    "cut to nothing": (v(1, 2, 3), v(3, 2, 1), params(1, padding=((-2, -2),))),
    "three": (v(1, 1, 3, 3, 3), v(2, 1, 2, 2, 2), params(3)),
}


@pytest.mark.parametrize("name", CASES)
def test_meaning(name):
    x, w, p = CASES[name]
    for dtype, tol in (
        ("float64", 1e-12),
        ("float32", 1e-5),
        (ml_dtypes.bfloat16, 2e-2),
        ("int32", 0),
        ("int8", 0),
        ("complex64", 1e-5),
    ):
        a, b = x.astype(dtype), w.astype(dtype)

        def expected(a, b):
            return reference(a, b, p).astype(dtype)

        check_meaning(C.conv_general_dilated_p, expected, a, b, rtol=tol, atol=tol, **p)


def test_preferred():
    x, w, p = CASES["line"]
    p = {**p, "preferred_element_type": np.dtype("float32")}
    a, b = x.astype(ml_dtypes.bfloat16), w.astype(ml_dtypes.bfloat16)
    check_meaning(
        C.conv_general_dilated_p,
        lambda a, b: reference(a, b, p).astype("float32"),
        a,
        b,
        rtol=1e-4,
        atol=1e-4,
        **p,
    )


@pytest.mark.parametrize("name", CASES)
def test_derivatives(name):
    x, w, p = CASES[name]
    check_jvp(C.conv_general_dilated_p, x, w, order=1, rtol=1e-5, **p)
    check_transpose(C.conv_general_dilated_p, x, w, linear=(0,), **p)
    check_transpose(C.conv_general_dilated_p, x, w, linear=(1,), **p)


@pytest.mark.parametrize("name", CASES)
def test_batch(name):
    x, w, p = CASES[name]
    every = [
        (b, c) for b in (None, 0, 1, x.ndim) for c in (None, 0, 2, w.ndim) if (b, c) != (None, None)
    ]
    a, b = x.astype("float32"), w.astype("float32")
    check_batch(C.conv_general_dilated_p, a, b, rtol=1e-4, atol=1e-4, size=2, only=every, **p)


def test_padding_names():
    assert padtype_to_pads((5, 6, 1), (3, 2, 1), (1, 2, 1), "SAME") == [(1, 1), (0, 0), (0, 0)]
    assert padtype_to_pads((5,), (2,), (1,), "SAME") == [(0, 1)]
    assert padtype_to_pads((5,), (2,), (1,), "SAME_LOWER") == [(1, 0)]
    assert padtype_to_pads((5,), (2,), (1,), "valid") == [(0, 0)]
    with pytest.raises(RuntimeError, match="Unrecognized padding"):
        padtype_to_pads((5,), (2,), (1,), "FULL")


@pytest.mark.peer
@pytest.mark.parametrize("name", CASES)
def test_beside_jax(name):
    jax = pytest.importorskip("jax")
    if name in ("none", "cut to nothing"):
        pytest.skip("JAX refuses it")
    x, w, p = CASES[name]
    numbers = p["dimension_numbers"]
    rest = {
        k: v
        for k, v in p.items()
        if k not in ("window_strides", "padding", "dimension_numbers", "out_sharding")
    }

    def fun(lax, x, w):
        d = numbers if lax is peer.ours else jax.lax.ConvDimensionNumbers(*numbers)
        return lax.conv_general_dilated(
            x, w, p["window_strides"], p["padding"], dimension_numbers=d, **rest
        )

    peer.compare([(fun, x.astype("float32"), w.astype("float32"))], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_holes_meet_no_weight(bad, dtype):
    """Neither holes nor padding of a dilated input make nan of a weight that is not finite."""
    p = params(2, lhs_dilation=(2, 3), padding=((2, 1), (1, 2)), window_strides=(1, 2))
    for change in ({}, {"feature_group_count": 2}, {"batch_group_count": 2}):
        q = {**p, **change}
        x = v(2, 4, 3, 4).astype(dtype)
        w = v(4, 2 if q["feature_group_count"] > 1 else 4, 2, 3, seed=1).astype(dtype)
        x[0, 0, 0, 0], w[1, 1, 0, 0], w[3, 0, 1, 2] = -0.0, bad, bad
        with np.errstate(invalid="ignore"):
            want = reference(x, w, q)
        got = C.conv_general_dilated_p.meaning(x, w, **q)
        np.testing.assert_array_equal(np.isfinite(got), np.isfinite(want))
        assert 0 < np.isfinite(want).mean() < 1
        close = 2e-2 if dtype == "float16" else 1e-4
        ok = np.isfinite(want) if dtype == "complex64" else ...
        np.testing.assert_allclose(got[ok], want[ok], rtol=close, atol=close)


def test_meaning_of_a_kernel_as_long_as_the_line_keeps_its_digits() -> None:
    x = np.random.default_rng(0).uniform(-3, 3, 100_000).astype("float32")
    got = C.conv_general_dilated_p.meaning(
        x[None, None], x[None, None], window_strides=(1,), padding=((0, 0),), lhs_dilation=(1,),
        rhs_dilation=(1,), dimension_numbers=ConvDimensionNumbers((0, 1, 2), (0, 1, 2), (0, 1, 2)),
        feature_group_count=1, batch_group_count=1, preferred_element_type=None,
    )  # fmt: skip
    assert got.dtype == np.float32
    np.testing.assert_allclose(got.item(), np.sum(x.astype(float) ** 2), rtol=1e-7)

"""Statistics, truth, searching, sorting and sets."""

import warnings

import numpy as np
import pytest

import calque.numpy as jnp
from tests.array_api.standard import (
    CATEGORIES,
    DTYPES,
    FLOATING,
    INTEGRAL,
    NUMERIC,
    REAL,
    REAL_FLOATING,
    SIGNED,
    UNSIGNED,
)

SHAPES = [(), (5,), (2, 3), (2, 1, 3), (0, 3), (2, 0)]


def data(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    x = rng.integers(0 if dtype[0] == "u" else -4, 5, shape)
    return (x + 1j * rng.integers(-4, 5, shape) if dtype.startswith("complex") else x).astype(dtype)


def axes(shape):
    return (
        None,
        *range(-len(shape), len(shape)),
        tuple(range(len(shape))),
        *([(0, -1)] if len(shape) > 1 else []),
    )


def same(got, want, tol=1e-6):
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    np.testing.assert_allclose(got, want, rtol=tol, atol=tol)


def summed(dtype):
    """The dtype of a sum: integers become the default integer of their sign."""
    return "int64" if dtype in SIGNED else "uint64" if dtype in UNSIGNED else dtype


@pytest.mark.parametrize(
    "name", ["sum", "prod", "max", "min", "mean", "std", "var", "all", "any", "count_nonzero"]
)
def test_axes_and_shapes(name):
    for shape in SHAPES:
        x = data(shape, "float64")
        for axis in axes(shape):
            for keepdims in (False, True):
                empty = 0 in shape and np.sum(x, axis=axis).size > 0
                if empty and name in ("max", "min"):
                    with pytest.raises(ValueError):
                        getattr(jnp, name)(jnp.asarray(x), axis=axis)
                    continue
                if name in ("max", "min") and x.size == 0:
                    continue
                with np.errstate(all="ignore"), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    want = np.asarray(getattr(np, name)(x, axis=axis, keepdims=keepdims))
                got = getattr(jnp, name)(jnp.asarray(x), axis=axis, keepdims=keepdims)
                same(got, want)


@pytest.mark.parametrize("dtype", CATEGORIES[NUMERIC])
def test_sums_and_products(dtype):
    x = data((2, 3), dtype)
    for name in ("sum", "prod"):
        out = getattr(jnp, name)(jnp.asarray(x), axis=0)
        assert out.dtype == summed(dtype)
        np.testing.assert_allclose(out, getattr(np, name)(x, axis=0))
    assert jnp.sum(jnp.zeros((0,), dtype)) == 0 and jnp.prod(jnp.zeros((0,), dtype)) == 1
    for name in ("cumulative_sum", "cumulative_prod"):
        for initial in (False, True):
            out = getattr(jnp, name)(jnp.asarray(x), axis=1, include_initial=initial)
            want = getattr(np, name)(x, axis=1, include_initial=initial)
            # JAX's running product keeps its dtype, where the standard makes it a default one
            kept = np.dtype(dtype if name == "cumulative_prod" else summed(dtype))
            assert (out.dtype, out.shape) == (kept, want.shape)
            np.testing.assert_allclose(out, want.astype(kept))
    for other in ("float64", "complex128"):
        assert jnp.sum(jnp.asarray(x), dtype=getattr(jnp, other)).dtype == other
        assert jnp.cumulative_prod(jnp.asarray(x[0]), dtype=getattr(jnp, other)).dtype == other


def test_cumulative_functions_need_an_axis():
    for f in (jnp.cumulative_sum, jnp.cumulative_prod):
        with pytest.raises((ValueError, TypeError)):
            f(jnp.ones((2, 3)))
        with pytest.raises((ValueError, TypeError)):
            f(jnp.asarray(3.0))
        assert f(jnp.zeros((0,))).shape == (0,) and f(
            jnp.zeros((0,)), include_initial=True
        ).shape == (1,)


@pytest.mark.parametrize("dtype", CATEGORIES[FLOATING])
def test_moments(dtype):
    x = data((4, 3), dtype)
    same(jnp.mean(jnp.asarray(x), axis=0), np.mean(x, axis=0))
    if dtype in CATEGORIES[REAL_FLOATING]:
        for name in ("std", "var"):
            for correction in (0.0, 1, 1.0, 0.5, 2):
                same(
                    getattr(jnp, name)(jnp.asarray(x), axis=0, correction=correction),
                    getattr(np, name)(x, axis=0, correction=correction),
                )
            assert np.isnan(getattr(jnp, name)(jnp.ones(1, dtype), correction=1.0))
    assert np.isnan(jnp.mean(jnp.zeros((0,), dtype)))


@pytest.mark.parametrize("dtype", CATEGORIES[REAL])
def test_extremes(dtype):
    x = data((3, 4), dtype)
    for name in ("max", "min", "argmax", "argmin"):
        for axis in (None, 0, -1):
            got, want = (
                getattr(jnp, name)(jnp.asarray(x), axis=axis),
                np.asarray(getattr(np, name)(x, axis=axis)),
            )
            np.testing.assert_array_equal(got, want)
            assert got.dtype == ("int64" if name.startswith("arg") else dtype)
            kept = getattr(jnp, name)(jnp.asarray(x), axis=axis, keepdims=True)
            assert kept.ndim == 2
    if dtype in CATEGORIES[REAL_FLOATING]:
        y = jnp.asarray([1.0, jnp.nan, 3.0], dtype)
        assert np.isnan(jnp.max(y)) and np.isnan(jnp.min(y)) and jnp.argmax(y) == jnp.argmin(y) == 1
    for name in ("argmax", "argmin"):
        with pytest.raises(ValueError):
            getattr(jnp, name)(jnp.zeros((0,), dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_truth(dtype):
    x = data((3, 4), dtype)
    for name in ("all", "any", "count_nonzero"):
        for axis in (None, 0, (0, 1)):
            got, want = (
                getattr(jnp, name)(jnp.asarray(x), axis=axis),
                np.asarray(getattr(np, name)(x, axis=axis)),
            )
            np.testing.assert_array_equal(got, want)
            assert got.dtype == ("int64" if name == "count_nonzero" else "bool")
    assert jnp.all(jnp.zeros((0,), dtype)) and not jnp.any(jnp.zeros((0,), dtype))
    if dtype in CATEGORIES[FLOATING]:
        assert jnp.all(jnp.asarray([jnp.nan, jnp.inf], dtype)) and not jnp.any(
            jnp.asarray([-0.0], dtype)
        )
    for got, want in zip(jnp.nonzero(jnp.asarray(x)), np.nonzero(x), strict=True):
        assert got.dtype == "int64"
        np.testing.assert_array_equal(got, want)
    y = data((3, 4), dtype, 1)
    chosen = jnp.where(jnp.asarray(x) != 0, jnp.asarray(x), jnp.asarray(y))
    assert chosen.dtype == dtype
    np.testing.assert_array_equal(chosen, np.where(x != 0, x, y))


def test_where_promotes_and_broadcasts():
    out = jnp.where(
        jnp.asarray([[True], [False]]), jnp.arange(3, dtype="int8"), jnp.ones((), "int32")
    )
    assert out.dtype == "int32" and out.tolist() == [[0, 1, 2], [1, 1, 1]]
    assert jnp.where(jnp.asarray([True, False]), 1, jnp.ones(2, "float32")).dtype == "float32"
    with pytest.raises((ValueError, TypeError)):
        jnp.nonzero(jnp.asarray(3.0))


@pytest.mark.parametrize(
    "options",
    [{}, {"n": 2}, {"n": 0}, {"n": 7}, {"axis": 0}, {"prepend": 1}, {"append": 2, "axis": 0}],
    ids=str,
)
def test_differences(options):
    x = data((3, 4), "float64")
    given = {
        k: (
            np.full((3, 1) if options.get("axis") is None else (1, 4), float(v))
            if k in ("prepend", "append")
            else v
        )
        for k, v in options.items()
    }
    same(jnp.diff(jnp.asarray(x), **given), np.diff(x, **given))


# ---------------------------------------------------------------- sorting


@pytest.mark.parametrize("dtype", CATEGORIES[REAL])
def test_sorting(dtype):
    x = data((3, 6), dtype)
    for axis in (-1, 0):
        for descending in (False, True):
            ranks = -x.astype("int64") if descending else x
            order = np.argsort(ranks, axis=axis, kind="stable")
            for stable in (True, False):
                got = jnp.sort(jnp.asarray(x), axis=axis, descending=descending, stable=stable)
                assert got.dtype == dtype
                np.testing.assert_array_equal(got, np.take_along_axis(x, order, axis))
            index = jnp.argsort(jnp.asarray(x), axis=axis, descending=descending)
            assert index.dtype == "int64"
            np.testing.assert_array_equal(index, order)
    assert jnp.sort(jnp.zeros((0, 2), dtype), axis=0).shape == (0, 2) and jnp.argsort(
        jnp.zeros((2, 0), dtype)
    ).shape == (2, 0)


def test_sorting_zeros_and_nan():
    x = jnp.asarray([jnp.nan, 1.0, -jnp.inf, jnp.inf])
    assert jnp.argsort(x).tolist() == [2, 1, 3, 0]
    zeros = jnp.asarray([0.0, -0.0, 0.0])
    assert jnp.argsort(zeros).tolist() == [0, 1, 2] == jnp.argsort(zeros, descending=True).tolist()


@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted(side):
    x = np.array([1.0, 2.0, 2.0, 5.0])
    v = np.array([[0.0, 2.0], [5.0, 9.0]])
    got = jnp.searchsorted(jnp.asarray(x), jnp.asarray(v), side=side)
    assert got.dtype == "int32"  # as JAX has it, while positions fit
    np.testing.assert_array_equal(got, np.searchsorted(x, v, side=side))
    order = np.array([3, 0, 2, 1])
    shuffled = np.empty(4)
    shuffled[order] = x
    got = jnp.searchsorted(
        jnp.asarray(shuffled), jnp.asarray(v), side=side, sorter=jnp.asarray(order)
    )
    np.testing.assert_array_equal(got, np.searchsorted(x, v, side=side))


# ---------------------------------------------------------------- sets


@pytest.mark.parametrize("dtype", DTYPES)
def test_sets(dtype):
    x = data((3, 4), dtype)
    every, counts, inverse, alone = (
        getattr(jnp, f"unique_{n}")(jnp.asarray(x)) for n in ("all", "counts", "inverse", "values")
    )
    want = np.unique_all(x)
    assert every._fields == ("values", "indices", "inverse_indices", "counts")
    assert counts._fields == ("values", "counts") and inverse._fields == (
        "values",
        "inverse_indices",
    )
    for values in (every.values, counts.values, inverse.values, alone):
        assert values.dtype == dtype
        np.testing.assert_array_equal(np.sort(values), want.values)
    np.testing.assert_array_equal(np.asarray(every.values)[np.asarray(every.inverse_indices)], x)
    assert every.inverse_indices.shape == inverse.inverse_indices.shape == x.shape
    np.testing.assert_array_equal(x.ravel()[np.asarray(every.indices)], every.values)
    np.testing.assert_array_equal(every.counts, want.counts)
    np.testing.assert_array_equal(counts.counts, want.counts)
    assert all(
        i.dtype == "int64"
        for i in (every.indices, every.inverse_indices, every.counts, counts.counts)
    )


def test_sets_of_special_values():
    """NaN differ from one another, zeros of both signs are equal."""
    x = jnp.asarray([jnp.nan, 0.0, -0.0, jnp.nan])
    assert jnp.unique_values(x).shape == (3,) and jnp.unique_counts(x).counts.tolist() == [2, 1, 1]
    assert jnp.unique_all(x).counts.shape == (3,) and jnp.unique_inverse(x).values.shape == (3,)
    assert (
        jnp.unique_values(jnp.zeros((0,))).shape == (0,)
        and jnp.unique_all(jnp.asarray(2.0)).inverse_indices.shape == ()
    )


def test_dtypes_of_shifts_are_kept():
    for dtype in CATEGORIES[INTEGRAL]:
        assert (jnp.ones(2, dtype) << 1).dtype == dtype

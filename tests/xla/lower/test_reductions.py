"""Folds along dimensions on XLA, against NumPy's."""

from typing import Any

import numpy as np
import pytest

import calque.numpy as jnp
from calque import lax
from calque.core.dtypes import bfloat16
from calque.xla.lower.reductions import greatest, least, pairs
from tests.xla.lower.shared import on_both, operations, text_of
from tests.xla.mlir import needs_jaxlib

rng = np.random.default_rng(0)
x = rng.integers(-9, 10, (2, 3, 4)).astype(np.float32)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "float32", bfloat16])
def test_what_changes_no_extreme(dtype: Any) -> None:
    dtype = np.dtype(dtype)
    some = np.array([0, 1], dtype)
    for edge, fold in ((least(dtype), np.maximum), (greatest(dtype), np.minimum)):
        assert (fold(some, np.asarray(edge).astype(dtype)) == some).all()


def test_extremes_of_types_without_infinity() -> None:
    small = np.dtype(jnp.float8_e4m3fn)
    assert (float(least(small)), float(greatest(small))) == (-448, 448)
    assert np.isinf(greatest(np.dtype(jnp.float8_e5m2)))


def test_pairs_as_text() -> None:
    assert pairs([(0, 1), (2, 2)]) == "dense<[[0, 1], [2, 2]]> : tensor<2x2xi64>"
    assert pairs([(0, 0)]) == "dense<0> : tensor<1x2xi64>"
    assert pairs([]) == "dense<> : tensor<0x2xi64>"


@needs_jaxlib
@pytest.mark.parametrize("axes", [(0,), (1, 2), (0, 1, 2), ()])
def test_folds(axes: tuple[int, ...]) -> None:
    def folds(x: Any) -> Any:
        n = x.astype(np.int32)
        return (
            *(f(x, axes) for f in (lax.reduce_sum, lax.reduce_prod, lax.reduce_max)),
            *(f(n, axes) for f in (lax.reduce_min, lax.reduce_and, lax.reduce_or)),
            lax.reduce_xor(n, axes),
        )

    n = x.astype(np.int32)
    ufuncs = (np.add, np.multiply, np.maximum)
    want = [f.reduce(x, axis=axes) for f in ufuncs]
    bits = (np.minimum, np.bitwise_and, np.bitwise_or, np.bitwise_xor)
    want += [f.reduce(n, axis=axes) for f in bits]
    for a, b in zip(on_both(folds, x), want, strict=True):
        np.testing.assert_array_equal(a, b)


def test_one_operation_takes_the_short_form() -> None:
    def folded(combine: Any) -> str:
        return text_of(lambda x: lax.reduce(x, np.float32(0), combine, (0,)), x)

    assert "applies stablehlo.add across" in folded(lax.add)
    assert "applies stablehlo.add across" in folded(lambda a, b: lax.add(b, a))
    assert "reducer" in folded(lambda a, b: lax.add(lax.abs(a), b))
    assert "reducer" in folded(lambda a, b: a)
    assert "reducer" in folded(lax.sub)


@needs_jaxlib
def test_extremes_of_complex_numbers() -> None:
    z = (x + 1j * x[::-1]).astype(np.complex64)
    most, first = on_both(lambda z: (lax.reduce_max(z, (1,)), lax.reduce_min(z, (0, 1, 2))), z)
    want = np.take_along_axis(z, np.lexsort((z.imag, z.real), axis=1)[:, -1:], 1)[:, 0]
    np.testing.assert_array_equal(most, want)
    assert first == min(z.ravel(), key=lambda v: (v.real, v.imag))


@needs_jaxlib
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "int4"])
def test_places_of_extremes(dtype: str) -> None:
    data = np.array([[3, 1, 3, 1, 2], [0, 0, 0, 0, 0], [1, 0, 1, 1, 0]])

    def places(x: Any) -> Any:
        x = x.astype(dtype)
        return lax.argmax(x, 1, np.int32), lax.argmin(x, 0, np.int8)

    most, least_ = on_both(places, data.astype(np.int8))
    kept = data.astype(bool) if dtype == "bool" else data
    np.testing.assert_array_equal(most, kept.argmax(1))
    np.testing.assert_array_equal(least_, kept.argmin(0))


@needs_jaxlib
def test_the_first_nan_is_the_extreme() -> None:
    rows = np.float32([[1, np.nan, 5, np.nan], [-np.inf] * 4, [np.inf, 1, np.inf, 0]])
    most, least_ = on_both(lambda x: (lax.argmax(x, 1, np.int32), lax.argmin(x, 1, np.int32)), rows)
    assert most.tolist() == [1, 0, 0] and least_.tolist() == [1, 0, 3]


@needs_jaxlib
@pytest.mark.parametrize("reverse", [False, True])
def test_cumulative_folds(reverse: bool) -> None:
    names = ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")

    def cumulative(x: Any) -> Any:
        return [getattr(lax, n)(x, 1, reverse=reverse) for n in names]

    ufuncs = (np.add, np.multiply, np.maximum, np.minimum, np.logaddexp)
    turned = x[:, ::-1] if reverse else x
    for found, f in zip(on_both(cumulative, x, rtol=1e-5), ufuncs, strict=True):
        want = f.accumulate(turned, axis=1)
        np.testing.assert_allclose(found[:, ::-1] if reverse else found, want, rtol=1e-5)


@needs_jaxlib
def test_logarithms_of_sums_of_nothing_and_of_everything() -> None:
    rows = np.float32([[-np.inf, -np.inf, 0], [np.inf, 1, np.inf], [np.nan, 1, 2]])
    (found,) = on_both(lambda x: lax.cumlogsumexp(x, 1), rows, rtol=1e-6)
    assert found[0].tolist() == [-np.inf, -np.inf, 0] and (found[1] == np.inf).all()
    assert np.isnan(found[2]).all()


@needs_jaxlib
def test_nothing_is_folded() -> None:
    none = np.zeros((2, 0), np.float32)

    def folds(x: Any) -> Any:
        return lax.reduce_sum(x, (1,)), lax.reduce_max(x, (1,)), lax.cumsum(x, 1)

    total, most, partial = on_both(folds, none)
    assert total.tolist() == [0, 0] and (most == -np.inf).all() and partial.shape == (2, 0)
    assert "reduce_window" not in operations(text_of(lambda x: lax.cumsum(x, 1), none))

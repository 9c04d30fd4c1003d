"""Small matrices by plain loops, in double precision: against NumPy, and by what they promise."""

import numpy as np
import pytest
import scipy.linalg

from calque.machine.lang.unit import Unit, i64, ptr
from calque.machine.routines.linalg.small import (
    ElementType,
    order_of,
    small_cholesky,
    small_load,
    small_lu,
    small_solve,
    small_store,
)

unit = Unit("test_linalg_small")


@unit.function
def cholesky(u: ptr, n: i64) -> i64:
    return small_cholesky(u, n)


@unit.function
def lu(a: ptr, m: i64, n: i64, pivots: ptr) -> None:
    small_lu(a, m, n, pivots)


@unit.function
def order(pivots: ptr, count: i64, to: ptr, m: i64) -> None:
    order_of(pivots, count, to, m)


@unit.function
def solve(s: ptr, n: i64, upper: i64, unit_diagonal: i64, x: ptr) -> None:
    small_solve(s, n, upper, unit_diagonal, x)


@unit.function
def through(kind: i64, near: ptr, source: ptr, step: i64, to: ptr, to_step: i64, n: i64) -> None:
    small_load(kind, near, 1, source, step, n)
    small_store(kind, to, to_step, near, 1, n)


SIZES = (1, 2, 5, 16, 31)


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape)


@pytest.mark.parametrize("n", SIZES)
def test_cholesky(n: int) -> None:
    """Only the upper triangle is read and written."""
    x = numbers(n, n)
    a = x @ x.T + n * np.eye(n)
    u = np.triu(a) + np.tril(np.full((n, n), 99.0), -1)
    assert cholesky(u.ctypes.data, n) == 1
    np.testing.assert_allclose(np.triu(u), np.linalg.cholesky(a).T, rtol=1e-12, atol=1e-12)
    assert (u[np.tril_indices(n, -1)] == 99).all()


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_what_is_not_positive(bad: float) -> None:
    for at in range(3):
        a = np.eye(3)
        a[at, at] = bad
        assert cholesky(a.ctypes.data, 3) == 0
    indefinite = np.array([[1.0, 2.0], [2.0, 1.0]])
    assert cholesky(indefinite.ctypes.data, 2) == 0


@pytest.mark.parametrize("m, n", [(1, 1), (4, 4), (7, 3), (3, 7), (31, 32)])
def test_lu(m: int, n: int) -> None:
    """Rows change places for the largest element of a column; the product is the matrix."""
    a = numbers(m, n)
    made, count = a.copy(), min(m, n)
    pivots, rows = np.zeros(count, np.int32), np.zeros(m, np.int32)
    lu(made.ctypes.data, m, n, pivots.ctypes.data)
    order(pivots.ctypes.data, count, rows.ctypes.data, m)
    low = np.tril(made[:, :count], -1) + np.eye(m, count)
    np.testing.assert_allclose(low @ np.triu(made[:count]), a[rows], rtol=1e-11, atol=1e-12)
    assert np.abs(np.tril(made[:, :count], -1)).max(initial=0) <= 1
    assert sorted(rows.tolist()) == list(range(m))
    if m == n:
        np.testing.assert_array_equal(pivots, scipy.linalg.lu_factor(a)[1])


def test_a_column_of_zeros_has_no_pivot() -> None:
    a = np.array([[0.0, 1.0, 2.0], [0.0, 3.0, 4.0], [0.0, 5.0, 7.0]])
    pivots = np.zeros(3, np.int32)
    lu(a.ctypes.data, 3, 3, pivots.ctypes.data)
    assert np.isfinite(a).all() and pivots[0] == 0 and (a[1:, 0] == 0).all()


def test_orders_of_exchanges() -> None:
    """One after the other; from the end where they are negative; not at all outside."""
    for pivots, want in (
        ([1, 2, 2], [1, 2, 0, 3]),
        ([3, 1, 0], [2, 1, 3, 0]),
        ([-1, 1], [3, 1, 2, 0]),
        ([9, -9, 3], [0, 1, 3, 2]),
        ([], [0, 1, 2, 3]),
    ):
        given, got = np.array(pivots, np.int32), np.zeros(4, np.int32)
        order(given.ctypes.data, len(pivots), got.ctypes.data, 4)
        assert got.tolist() == want


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("unit_diagonal", [0, 1])
@pytest.mark.parametrize("n", SIZES)
def test_triangular_systems(n: int, upper: int, unit_diagonal: int) -> None:
    """x S = b, where the other triangle, and a diagonal of ones, are not read."""
    s = numbers(n, n) + 3 * np.eye(n)
    b = numbers(n, 1)[:, 0].copy()
    x = b.copy()
    whole = np.triu(s) if upper else np.tril(s)
    given = np.where(whole != 0, s, np.nan)
    if unit_diagonal:
        np.fill_diagonal(whole, 1)
        np.fill_diagonal(given, np.nan)
    solve(given.ctypes.data, n, upper, unit_diagonal, x.ctypes.data)
    np.testing.assert_allclose(x @ whole, b, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("dtype, kind", [("f4", ElementType.F32), ("f8", ElementType.F64)])
def test_elements_in_double_precision_and_back(dtype: str, kind: int) -> None:
    x = np.random.default_rng(0).standard_normal(60).astype(dtype)
    near, out = np.zeros(20), np.zeros(40, dtype)
    through(kind, near.ctypes.data, x.ctypes.data, 3, out.ctypes.data, 2, 20)
    np.testing.assert_array_equal(out[::2], x[::3])
    assert not out[1::2].any() and (near == x[::3].astype("f8")).all()

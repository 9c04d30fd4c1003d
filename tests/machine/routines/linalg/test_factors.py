"""Factors and triangular systems of batches: our own loops and LAPACK, called with words."""

import itertools
from typing import Any

import numpy as np
import pytest

from calque.machine.routines.linalg import factors
from calque.machine.routines.linalg.small import ElementType
from calque.native.library.linalg import library_function
from tests.machine.routines.shared import call, idle_run

KINDS = {
    "f4": ElementType.F32,
    "f8": ElementType.F64,
    "c8": ElementType.C64,
    "c16": ElementType.C128,
}
SIZES = (1, 3, factors.SMALL, factors.SMALL + 1, 50)


def numbers(dtype: str, *shape: int) -> np.ndarray:
    rng = np.random.default_rng(sum(shape))
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype[0] == "c" else x).astype(dtype)


def lapack(name: str, x: np.ndarray) -> int:
    return library_function(name, x.dtype)


def near(got: np.ndarray, want: np.ndarray) -> None:
    tol = 2e-3 if want.dtype.char in "fF" else 1e-9
    np.testing.assert_allclose(got, want, rtol=tol, atol=tol)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("n", SIZES)
def test_cholesky(dtype: str, n: int) -> None:
    """Lower factors with zeros above; one matrix that has none is NaN, the others are right."""
    x = numbers(dtype, 3, n, n)
    a = x @ x.conj().swapaxes(1, 2) + n * np.eye(n, dtype=dtype)
    a = a.astype(dtype)
    a[1, n - 1, n - 1] = -5
    out = np.full_like(a, 7)
    call(factors.calque_cholesky, 3, KINDS[dtype], lapack("potrf", a), n, a, out)
    for k in (0, 2):
        near(out[k], np.linalg.cholesky(a[k]))
        assert not out[k][np.triu_indices(n, 1)].any()
    assert np.isnan(out[1][np.tril_indices(n)]).all() and not out[1][np.triu_indices(n, 1)].any()


def test_only_the_lower_triangle_is_read() -> None:
    for n in (4, 40):
        x = numbers("f8", n, n)
        a = x @ x.T + n * np.eye(n)
        given = np.tril(a) + np.triu(np.full((n, n), np.nan), 1)
        out = np.zeros_like(a)
        call(factors.calque_cholesky, 1, ElementType.F64, lapack("potrf", a), n, given, out)
        near(out, np.linalg.cholesky(a))


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("m, n", [(1, 1), (5, 5), (9, 4), (4, 9), (40, 40), (50, 20), (20, 50)])
def test_lu(dtype: str, m: int, n: int) -> None:
    a = numbers(dtype, 2, m, n)
    count = min(m, n)
    out = np.zeros_like(a)
    pivots, order = np.zeros((2, count), np.int32), np.zeros((2, m), np.int32)
    head = (2, KINDS[dtype], lapack("getrf", a), m, n, a)
    call(factors.calque_lu, *head, out, pivots, order)
    for k in range(2):
        low = np.tril(out[k, :, :count], -1) + np.eye(m, count)
        near(low @ np.triu(out[k, :count]), a[k, order[k]])
    again = np.zeros_like(order)
    call(factors.calque_lu_pivots_to_permutation, 2, count, m, pivots, again)
    np.testing.assert_array_equal(again, order)
    alone = np.zeros_like(pivots)
    call(factors.calque_lu, *head, None, alone, None)  # the other results are not wanted
    np.testing.assert_array_equal(alone, pivots)
    call(factors.calque_lu, *head, None, None, again)
    np.testing.assert_array_equal(again, order)


def test_matrices_without_elements_keep_their_order() -> None:
    order = np.full((2, 3), 9, np.int32)
    call(factors.calque_lu, 2, 1, 0, 3, 0, np.zeros((2, 3, 0)), None, None, order)
    assert order.tolist() == [[0, 1, 2]] * 2


FLAGS = list(itertools.product((0, 1), repeat=5))


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("n, count", [(1, 1), (4, 3), (7, factors.FEW + 1), (40, 3)])
def test_triangular_systems(dtype: str, n: int, count: int) -> None:
    """All parameters: side, triangle, transposed, conjugated, a diagonal of ones."""
    a = (numbers(dtype, 2, n, n) / n + 2 * np.eye(n)).astype(dtype)
    for left, lower, transposed, conjugated, unit in FLAGS:
        b = numbers(dtype, 2, n, count) if left else numbers(dtype, 2, count, n)
        out = np.zeros_like(b)
        flags = (left, lower, transposed, conjugated, unit)
        head = (2, KINDS[dtype], lapack("trsm", a), n, *b.shape[1:])
        call(factors.calque_triangular, *head, a, b, out, *flags)
        for k in range(2):
            s = np.tril(a[k]) if lower else np.triu(a[k])
            if unit:
                np.fill_diagonal(s, 1)
            s = s.T if transposed else s
            s = s.conj() if conjugated else s
            near(s @ out[k] if left else out[k] @ s, b[k])


def test_the_order_of_sums_does_not_depend_on_the_batch() -> None:
    """Alone, and beside others that other threads work on: the same bits."""
    x = numbers("f4", 700, 9, 9)
    a = (x @ x.swapaxes(1, 2) + 9 * np.eye(9)).astype("f4")
    whole, alone = np.zeros_like(a), np.zeros_like(a)
    call(factors.calque_cholesky, 700, ElementType.F32, 0, 9, a, whole)
    for k in (0, 333, 699):
        call(factors.calque_cholesky, 1, ElementType.F32, 0, 9, a[k], alone[k])
        assert alone[k].tobytes() == whole[k].tobytes()


def test_a_stopped_run_ends_soon() -> None:
    a = np.broadcast_to(np.eye(4), (5000, 4, 4)).copy()
    out: Any = np.zeros_like(a)
    run = idle_run(stopped=1)
    call(factors.calque_cholesky, 5000, ElementType.F64, 0, 4, a, out, run=run)
    assert np.count_nonzero(out.any((1, 2))) < 2500
    b = np.broadcast_to(np.eye(40), (20, 40, 40)).copy()
    out = np.zeros_like(b)
    call(factors.calque_cholesky, 20, ElementType.F64, lapack("potrf", b), 40, b, out, run=run)
    assert not out.any()

"""Tridiagonal systems: called with words, against dense ones."""

import numpy as np
import pytest

from calque.machine.routines.linalg import tridiagonal
from calque.machine.routines.linalg.small import ElementType
from tests.machine.routines.shared import call, idle_run

KINDS = {"f4": ElementType.F32, "f8": ElementType.F64}
WIDE = tridiagonal._COLUMNS


def numbers(dtype: str, *shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def dense(lower: np.ndarray, main: np.ndarray, upper: np.ndarray) -> np.ndarray:
    lower, main, upper = (v.astype("f8") for v in (lower, main, upper))
    return np.diag(main) + np.diag(lower[1:], -1) + np.diag(upper[:-1], 1)


def solved(*given: np.ndarray, perturbs: int = 0) -> np.ndarray:
    batch, n, columns = given[-1].shape
    out = np.full_like(given[-1], 7)
    kind = KINDS[out.dtype.str[1:]]
    call(tridiagonal.calque_tridiagonal, batch, kind, n, columns, *given, out, perturbs)
    return out


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("columns", [1, 3, 64, WIDE, WIDE + 5])
@pytest.mark.parametrize("n", [1, 2, 3, 40])
def test_systems(n: int, columns: int, dtype: str) -> None:
    """Rows change places as often as not; the ends of the diagonals are not read."""
    lower, main, upper = (numbers(dtype, 3, n + k)[:, k:].copy() for k in range(3))
    lower[:, 0], upper[:, -1] = np.nan, np.nan
    b = numbers(dtype, 3, n, columns)
    out = solved(lower, main, upper, b)
    for k in range(3):
        matrix = dense(lower[k], main[k], upper[k])
        size = np.abs(matrix).max() * np.abs(out[k]).max() + np.abs(b[k]).max()
        assert np.abs(matrix @ out[k] - b[k]).max() <= 8 * np.finfo(dtype).eps * size


@pytest.mark.parametrize("dtype", KINDS)
def test_columns_do_not_depend_on_those_beside_them(dtype: str) -> None:
    diagonals = [numbers(dtype, 1, 30) + k for k in range(3)]
    b = numbers(dtype, 1, 30, WIDE + 9)
    whole = solved(*diagonals, b)
    for j in (0, 1, WIDE - 1, WIDE, WIDE + 8):
        alone = solved(*diagonals, b[:, :, j : j + 1].copy())
        assert alone[0, :, 0].tobytes() == whole[0, :, j].tobytes()


@pytest.mark.parametrize("dtype", KINDS)
def test_singular_systems(dtype: str) -> None:
    """They are NaN, or those of a matrix that is a little greater; others stay as they are."""
    main = np.array([[1, 0, 2], [1, 1, 2], [1, 2, 0]], dtype)
    zeros, b = np.zeros_like(main), np.ones((3, 3, 2), dtype)
    out = solved(zeros, main, zeros, b)
    assert np.isnan(out[[0, 2]]).all() and out[1].tolist() == [[1, 1], [1, 1], [0.5, 0.5]]
    out = solved(zeros, main, zeros, b, perturbs=1)
    assert np.isfinite(out).all() and (out[0, 1] > 1e6).all() and (out[2, 2] > 1e6).all()
    assert out[1].tolist() == [[1, 1], [1, 1], [0.5, 0.5]]
    assert np.isnan(solved(*[zeros[:1, :1]] * 3, b[:1, :1])).all()


def test_nothing_and_no_number() -> None:
    for shape in ((2, 0, 3), (0, 4, 3), (2, 4, 0)):
        diagonal = np.zeros(shape[:2], "f4")
        assert solved(diagonal, diagonal, diagonal, np.zeros(shape, "f4")).shape == shape
    main = np.array([[1, np.nan, 2]], "f4")
    assert np.isnan(
        solved(np.ones_like(main), main, np.ones_like(main), np.ones((1, 3, 1), "f4"))[0, 1]
    )


def test_a_run_that_was_stopped_ends() -> None:
    """It asks before each part."""
    main, b = np.ones((50, 20), "f4"), np.ones((50, 20, 3), "f4")
    out = np.full_like(b, 7)
    words = (50, ElementType.F32, 20, 3, main, main, main, b, out, 0)
    run = idle_run(stopped=1)
    call(tridiagonal.calque_tridiagonal, *words, run=run)
    assert (out == 7).all()

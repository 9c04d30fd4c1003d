"""QR, eigenvalues and singular values by LAPACK, called with words: what is wanted and what is
not, what is empty, and what is no number."""

from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.machine.routines.linalg import spectral
from calque.machine.routines.linalg.small import ElementType
from calque.native.library.linalg import library_function
from tests.machine.routines.shared import call

KINDS = {
    "f4": ElementType.F32,
    "f8": ElementType.F64,
    "c8": ElementType.C64,
    "c16": ElementType.C128,
}
SHAPES = [(1, 1), (4, 4), (9, 4), (4, 9), (40, 33)]


def numbers(dtype: str, *shape: int) -> np.ndarray:
    rng = np.random.default_rng(sum(shape))
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype[0] == "c" else x).astype(dtype)


def near(got: np.ndarray, want: np.ndarray) -> None:
    tol = 2e-4 if got.dtype.char in "fF" else 1e-10
    np.testing.assert_allclose(got, want, rtol=tol, atol=tol * max(np.abs(want).max(initial=1), 1))


def real(dtype: str) -> Any:
    return np.zeros(1, dtype).real.dtype


def qr(a: np.ndarray, full: int, pivoting: int, wanted: str = "qro") -> dict[str, np.ndarray]:
    """Those results whose letters are wanted."""
    batch, m, n = a.shape
    columns = m if full else min(m, n)
    made: dict[str, np.ndarray] = {
        "q": np.full((batch, m, columns), 7, a.dtype),
        "r": np.full((batch, columns, n), 7, a.dtype),
        "o": np.full((batch, n), 7, np.int32),
    }
    functions = [library_function(f, a.dtype) for f in ("geqp3" if pivoting else "geqrf", "orgqr")]
    outs = [made[w] if w in wanted else None for w in "qro"]
    kind = KINDS[a.dtype.str[1:]]
    call(spectral.calque_qr, batch, kind, *functions, m, n, full, pivoting, a, *outs)
    return made


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("m, n", SHAPES)
@pytest.mark.parametrize("full", [0, 1])
@pytest.mark.parametrize("pivoting", [0, 1])
def test_qr(dtype: str, m: int, n: int, full: int, pivoting: int) -> None:
    a = numbers(dtype, 2, m, n)
    made = qr(a, full, pivoting)
    q, r = made["q"], made["r"]
    near(q.conj().swapaxes(1, 2) @ q, np.broadcast_to(np.eye(q.shape[2]), (2, *(q.shape[2],) * 2)))
    for k in range(2):
        near(q[k] @ r[k], a[k][:, made["o"][k]] if pivoting else a[k])
        assert not np.tril(r[k], -1).any()
        if pivoting:
            d = np.abs(np.diagonal(r[k]))
            assert (d[:-1] >= d[1:] * (1 - 1e-3)).all()


def test_results_that_nobody_wants_are_not_written() -> None:
    a = numbers("f8", 1, 5, 3)
    whole = qr(a, 0, 0)
    for wanted in ("q", "r", ""):
        made = qr(a, 0, 0, wanted)
        for name in "qr":
            assert (made[name] == (whole[name] if name in wanted else 7)).all()


def test_qr_of_nothing() -> None:
    """Q of a matrix without columns is the identity."""
    made = qr(np.zeros((2, 3, 0)), 1, 0)
    np.testing.assert_array_equal(made["q"], np.broadcast_to(np.eye(3), (2, 3, 3)))
    made = qr(np.zeros((1, 0, 4)), 1, 1)
    assert made["o"].tolist() == [[0, 1, 2, 3]]


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("n", [1, 2, 7, 40])
@pytest.mark.parametrize("lower", [0, 1])
def test_eigh(dtype: str, n: int, lower: int) -> None:
    """One triangle is read; a matrix that holds what is no number is NaN, the others are right."""
    x = numbers(dtype, 3, n, n)
    a = ((x + x.conj().swapaxes(1, 2)) / 2).astype(dtype)
    given = a.copy()
    other = np.triu_indices(n, 1) if lower else np.tril_indices(n, -1)
    for k in range(3):
        given[k][other] = 5
    given[1, 0, 0] = np.inf
    vectors, values = np.zeros_like(a), np.zeros((3, n), real(dtype))
    f = library_function("syevd", a.dtype)
    call(spectral.calque_eigh, 3, KINDS[dtype], f, n, lower, given, vectors, values)
    for k in (0, 2):
        near(values[k], np.linalg.eigvalsh(a[k]))
        near(vectors[k] @ np.diag(values[k]) @ vectors[k].conj().T, a[k])
    assert np.isnan(values[1]).all() and np.isnan(vectors[1]).all()
    alone = np.zeros_like(values)
    call(spectral.calque_eigh, 3, KINDS[dtype], f, n, lower, given, None, alone)
    near(alone[0], values[0])


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("m, n", SHAPES)
@pytest.mark.parametrize("full", [0, 1])
def test_svd(dtype: str, m: int, n: int, full: int) -> None:
    a = numbers(dtype, 3, m, n)
    a[1, -1, -1] = np.nan
    few = min(m, n)
    left, right = (m, n) if full else (few, few)
    values = np.zeros((3, few), real(dtype))
    u, vt = np.zeros((3, m, left), dtype), np.zeros((3, right, n), dtype)
    f = library_function("gesdd", a.dtype)
    call(spectral.calque_svd, 3, KINDS[dtype], f, m, n, full, 1, a, values, u, vt)
    for k in (0, 2):
        near(values[k], np.linalg.svd(a[k], compute_uv=False))
        near(u[k][:, :few] * values[k] @ vt[k][:few], a[k])
        near(u[k].conj().T @ u[k], np.eye(left))
    assert np.isnan(values[1]).all() and np.isnan(u[1]).all() and np.isnan(vt[1]).all()
    alone = np.zeros_like(values)
    call(spectral.calque_svd, 3, KINDS[dtype], f, m, n, full, 0, a, alone, None, None)
    near(alone[0], values[0])


def test_svd_of_nothing() -> None:
    u, vt = np.full((2, 3, 3), 7.0), np.zeros((2, 0, 0))
    f = library_function("gesdd", np.dtype("f8"))
    call(spectral.calque_svd, 2, ElementType.F64, f, 3, 0, 1, 1, np.zeros((2, 3, 0)), None, u, vt)
    np.testing.assert_array_equal(u, np.broadcast_to(np.eye(3), (2, 3, 3)))


@pytest.mark.parametrize("dtype", KINDS)
def test_whether_all_are_numbers(dtype: str) -> None:
    x = numbers(dtype, 9)
    address = x.ctypes.data
    assert spectral.all_finite(KINDS[dtype], address, 9) == 1
    for bad in (np.nan, np.inf, -np.inf):
        for at in (0, 8):
            y = x.copy()
            parts = y.view(real(dtype))
            parts[-1 if at else 0] = bad
            assert spectral.all_finite(KINDS[dtype], y.ctypes.data, 9) == 0
    largest = np.array([np.finfo(real(dtype)).max] * 2, real(dtype))
    assert spectral.all_finite(KINDS[dtype], largest.ctypes.data, 1) == 1


@pytest.mark.parametrize("dtype", KINDS)
def test_written_matrices(dtype: str) -> None:
    x = np.full((3, 5), 7, dtype)
    spectral.write_identity(KINDS[dtype], x.ctypes.data, 3, 5)
    np.testing.assert_array_equal(x, np.eye(3, 5))
    spectral.fill_nan(KINDS[dtype], x.ctypes.data, 15)
    assert np.isnan(x).all()
    a = numbers(dtype, 4, 6)
    out = np.full((3, 4), 7, dtype)  # the triangle of a matrix of 6 rows and 4 columns
    spectral.store_r(a.itemsize, out.ctypes.data, a.ctypes.data, 6, 3, 3)
    np.testing.assert_array_equal(out.reshape(-1)[:9].reshape(3, 3), np.triu(a.T[:3, :3]))
    for f in (spectral.fill_nan, spectral.write_identity):
        f(KINDS[dtype], None, *((3,) if f is spectral.fill_nan else (3, 3)))  # nobody wants it


@pytest.mark.parametrize("dtype", ["f4", "c16"])
@pytest.mark.parametrize("m, n", [(3, 3), (8, 5)])
def test_threads_share_many_small_matrices(dtype: str, m: int, n: int) -> None:
    """Each with memory of its own: the bits are those of one matrix by itself."""
    a = numbers(dtype, 600, m, n)
    a[17, 0, 0] = np.nan
    together = qr(a, 0, 0)
    for k in (0, 17, 300, 599):
        alone = qr(a[k : k + 1].copy(), 0, 0)
        assert all(alone[w].tobytes() == together[w][k].tobytes() for w in "qr")
    for decompose in (np.linalg.svd, np.linalg.eigvalsh):
        name = decompose.__name__
        square = a if name == "svd" else a[:, :n, :n].copy()
        f = getattr(jnp.linalg, name)
        parts = [np.asarray(x) for x in calque.tree.leaves(f(square))]
        for k in (0, 17, 599):
            alone = calque.tree.leaves(f(square[k : k + 1]))
            assert all(np.asarray(x)[0].tobytes() == y[k].tobytes() for x, y in zip(alone, parts))
    assert spectral._GRAIN // (m * n * (min(m, n) + 8)) < 600

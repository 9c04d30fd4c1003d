"""Systems of equations by their factors, held against SciPy."""

import numpy as np
import pytest
import scipy.linalg as theirs

import calque
from calque.scipy import linalg

RNG = np.random.default_rng(0)
A = RNG.normal(size=(4, 4)).astype(np.float32) + 4 * np.eye(4, dtype=np.float32)
S = (A @ A.T).astype(np.float32)
B = RNG.normal(size=(4, 2)).astype(np.float32)


def close(got, want):
    np.testing.assert_allclose(got, want, rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize("b", [B, B[:, 0]])
def test_solutions(b):
    close(linalg.solve(A, b), theirs.solve(A, b))
    close(linalg.solve(S, b, assume_a="pos"), theirs.solve(S, b))
    close(linalg.lu_solve(linalg.lu_factor(A), b), theirs.solve(A, b))
    close(linalg.lu_solve(linalg.lu_factor(A), b, trans=1), theirs.solve(A.T, b))
    for lower in (True, False):
        close(linalg.cho_solve(linalg.cho_factor(S, lower=lower), b), theirs.solve(S, b))


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("trans", [0, 1, "C"])
@pytest.mark.parametrize("unit", [True, False])
def test_triangles(lower, trans, unit):
    got = linalg.solve_triangular(A / 8, B, trans, lower, unit)
    close(got, theirs.solve_triangular(A / 8, B, trans, lower, unit_diagonal=unit))


def test_factors():
    close(linalg.cholesky(S), theirs.cholesky(S))
    close(linalg.cholesky(S, lower=True), theirs.cholesky(S, lower=True))
    assert np.isnan(np.asarray(linalg.cholesky(-S))).any()


@pytest.mark.parametrize("method", ["schur", "eigen"])
def test_sylvester(method):
    c = RNG.normal(size=(4, 2)).astype(np.float32)
    small = A[:2, :2]
    x = np.asarray(linalg.solve_sylvester(A, small, c, method=method))
    np.testing.assert_allclose(A @ x + x @ small, c, rtol=1e-2, atol=1e-3)


def test_batches_are_loops():
    many = np.stack([A, A.T])
    close(linalg.solve(many, np.stack([B, B])), np.stack([theirs.solve(a, B) for a in many]))
    close(calque.vmap(lambda a: linalg.solve(a, B))(many), linalg.solve(many, np.stack([B, B])))


def test_what_does_not_fit():
    with pytest.raises((ValueError, TypeError)):
        linalg.solve(B, B)
    with pytest.raises((ValueError, TypeError)):
        linalg.solve_triangular(A, B[:3])
    with pytest.raises(ValueError):
        linalg.solve_triangular(A, B, trans="X")

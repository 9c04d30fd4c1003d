"""Krylov solvers: against direct solution, on trees, with preconditioners, limits and derivatives;
how they stop, against JAX."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.scipy.sparse import linalg as sparse
from calque.test_util import check_grads
from tests.ops.helpers import x64
from tests.peers import jax

_rng = np.random.default_rng(0)
N = 12
A = (_rng.normal(size=(N, N)) / 4 + np.eye(N) * 3).astype(np.float32)
S = (A @ A.T).astype(np.float32)
B = _rng.normal(size=N).astype(np.float32)
C = (A + 1j * _rng.normal(size=(N, N)) / 4).astype(np.complex64)
H = (C @ C.conj().T).astype(np.complex64)
SOLVERS: dict[str, Callable[..., Any]] = {
    "cg": sparse.cg,
    "bicgstab": sparse.bicgstab,
    "gmres": sparse.gmres,
    "incremental": lambda *args, **kw: sparse.gmres(*args, solve_method="incremental", **kw),
}
every = pytest.mark.parametrize("name", SOLVERS)


def close(got: Any, want: Any, tol: float = 1e-4) -> None:
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=tol, atol=tol)


@every
def test_solutions(name: str) -> None:
    solve = SOLVERS[name]
    for matrix in (S, H) if name == "cg" else (A, S, C):
        want = np.linalg.solve(matrix, B)
        b = jnp.asarray(B, matrix.dtype)
        x, info = solve(matrix, b, tol=1e-6)
        close(x, want)
        assert info is None and x.dtype == matrix.dtype
        inverse = jnp.asarray(np.diag(1 / np.diag(matrix)).astype(matrix.dtype))
        close(
            calque.jit(
                lambda b, m=matrix, p=inverse: solve(
                    lambda v: jnp.asarray(m) @ v, b, x0=b, tol=1e-6, M=lambda v: p @ v
                )[0]
            )(b),
            want,
        )
    close(solve(S, jnp.zeros(N))[0], np.zeros(N))
    exact = np.linalg.solve(S.astype(float), B)
    close(solve(S, B, x0=jnp.asarray(exact, "float32"), tol=1e-3, maxiter=0)[0], exact)


@every
def test_trees(name: str) -> None:
    def apply(t: dict[str, Any]) -> dict[str, Any]:
        v = jnp.asarray(S) @ jnp.concatenate([t["a"].ravel(), t["b"]])
        return {"a": v[:8].reshape(2, 4), "b": v[8:]}

    x, _ = SOLVERS[name](
        apply, {"a": jnp.asarray(B[:8]).reshape(2, 4), "b": jnp.asarray(B[8:])}, tol=1e-6
    )
    close(jnp.concatenate([x["a"].ravel(), x["b"]]), np.linalg.solve(S, B))


@every
def test_limits(name: str) -> None:
    solve = SOLVERS[name]
    few, many = (
        np.linalg.norm(
            S
            @ np.asarray(
                solve(
                    S,
                    B,
                    tol=1e-6,
                    maxiter=k,
                    **({"restart": 2} if name in ("gmres", "incremental") else {}),
                )[0]
            )
            - B
        )
        for k in (1, 40)
    )
    assert few > 10 * many
    loose = np.asarray(solve(S, B, tol=0.0, atol=0.5)[0])
    assert np.linalg.norm(S @ loose - B) <= 0.5


@every
def test_derivatives(name: str) -> None:
    with x64():
        matrix = jnp.asarray((S if name == "cg" else A)[:5, :5].astype(float))
        sym = (lambda m: (m + m.T) / 2) if name == "cg" else (lambda m: m)

        def f(m, b):
            return SOLVERS[name](lambda v: sym(m) @ v, b, tol=1e-12)[0]

        check_grads(
            f,
            (matrix, jnp.asarray(B[:5].astype(float))),
            order=2 if name == "cg" else 1,
            atol=1e-5,
            rtol=1e-5,
        )


@every
def test_batches(name: str) -> None:
    rows = jnp.stack([jnp.asarray(B), 2 * jnp.asarray(B[::-1])])
    got = calque.vmap(lambda b: SOLVERS[name](S, b, tol=1e-6)[0])(rows)
    close(got, np.linalg.solve(S, np.asarray(rows).T).T)


def test_restarts_and_breakdown() -> None:
    close(sparse.gmres(A, B, restart=3, tol=1e-6)[0], np.linalg.solve(A, B))
    # the Krylov space is used up after one step
    close(sparse.gmres(2 * np.eye(4, dtype=np.float32), B[:4])[0], B[:4] / 2)
    close(sparse.bicgstab(2 * np.eye(4, dtype=np.float32), B[:4])[0], B[:4] / 2)


def test_bad_arguments() -> None:
    for solve in (sparse.cg, sparse.bicgstab, sparse.gmres):
        with pytest.raises(ValueError, match="square matrix"):
            solve(A[:3], B)
        with pytest.raises(TypeError, match="function or ndarray"):
            solve(3.0, B)
        with pytest.raises(ValueError, match="matching tree structure"):
            solve(A, B, x0=(jnp.asarray(B),))
        with pytest.raises(ValueError, match="matching shapes"):
            solve(A, B, x0=jnp.asarray(B[:3]))
    with pytest.raises(ValueError, match="solve_method"):
        sparse.gmres(A, B, solve_method="x")


@pytest.mark.peer
def test_each_step_is_jaxs() -> None:
    def results(m: Any) -> list[Any]:
        steps = [m.cg(S, B, maxiter=k)[0] for k in (1, 3)]
        return [*steps, m.bicgstab(A, B, maxiter=2)[0], m.gmres(A, B, maxiter=1, restart=3)[0]]

    theirs = jax().scipy.sparse.linalg
    for got, want in zip(results(sparse), jax().jit(lambda: results(theirs))(), strict=True):
        close(got, want)


@pytest.mark.parametrize("name", ["cg", "bicgstab", "gmres"])
def test_solutions_for_plain_numbers(name: str) -> None:
    """Those of conjugate gradients have a dtype of their own, the others are weak as JAX's are."""
    solve = getattr(sparse, name)
    for run in (solve, calque.jit(solve, static_argnums=0)):
        x, y = run(lambda v: calque.tree.map(lambda u: 2 * u, v), [1.0, jnp.float32(3.0)])[0]
        assert (x.weak_type, y.weak_type) == (name != "cg", False)
        assert (float(x), float(y)) == pytest.approx((0.5, 1.5), rel=1e-5)


@every
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_a_right_side_of_zeros(name: str, dtype: type) -> None:
    """Its solution is 0, wherever the search begins; so is the slope of what is not used."""
    start = jnp.asarray(B, dtype)
    x, _ = SOLVERS[name](S.astype(dtype), jnp.zeros(N, dtype), x0=start)
    assert not np.any(x)
    slope = calque.grad(lambda b: 0 * SOLVERS[name](S, b, x0=B)[0].sum())(B)
    assert not np.any(slope)


@every
@pytest.mark.parametrize("size", [1e-36, 1e-21, 1e20, 1e32])
def test_right_sides_whose_squares_are_no_numbers(name: str, size: float) -> None:
    b = (B * size).astype(np.float32)
    want = np.linalg.solve(S.astype(np.float64), b.astype(np.float64))
    for options in ({}, {"x0": b}, {"atol": 1e-7 * size}):
        x, _ = SOLVERS[name](S, b, tol=1e-6, maxiter=40, **options)
        np.testing.assert_allclose(x / np.abs(want).max(), want / np.abs(want).max(), atol=1e-3)


def test_a_step_that_arrives() -> None:
    """Nothing is divided by a residual of 0."""
    x, _ = sparse.bicgstab(np.eye(3, dtype=np.float32), B[:3], tol=0.0)
    np.testing.assert_allclose(x, B[:3], rtol=1e-6)

"""Forms of square matrices on XLA: LAPACK's routines, without a call of Python."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import lax
from calque.core.config import config
from tests.xla.mlir import assert_canonical, needs_jaxlib

linalg = lax.linalg
DTYPES = ("float32", "float64", "complex64", "complex128")


@pytest.fixture(autouse=True)
def wide_types() -> Iterator[None]:
    with config.override("calque_enable_x64", True):
        yield


def elements(dtype: str, *shape: int) -> np.ndarray:
    rng = np.random.default_rng(sum(shape))
    x = rng.standard_normal(shape)
    return np.asarray(x + 1j * rng.standard_normal(shape) if dtype[0] == "c" else x, dtype)


def near(f: Callable[..., Any], *args: Any) -> None:
    """XLA's results are the native ones."""
    found, wanted = (jax.tree.leaves(g(*args)) for g in (jax.jit(f, backend="xla_cpu"), jax.jit(f)))
    for a, w in zip(found, wanted, strict=True):
        assert (a.dtype, a.shape) == (w.dtype, w.shape)
        digits = 1e-4 if a.dtype.name in ("float32", "complex64") else 1e-10
        np.testing.assert_allclose(np.asarray(a), np.asarray(w), rtol=digits, atol=digits)


def own(f: Callable[..., Any], *args: Any) -> str:
    """The program for XLA, which calls no Python."""
    text = jax.jit(f).lower(*args).as_text()
    assert "python" not in text
    return str(text)


def test_routines_stand_for_forms() -> None:
    x = elements("float32", 2, 5, 5)
    d, right = elements("float32", 2, 5), elements("float32", 2, 5, 3)
    assert "@lapack_sgeev_ffi" in own(linalg.eig, x)
    assert "@lapack_sgees_ffi" in own(linalg.schur, x)
    assert "@lapack_sgehrd_ffi" in own(linalg.hessenberg, x)
    assert "@lapack_ssytrd_ffi" in own(linalg.tridiagonal, x)
    assert "@lapack_sgtsv_ffi" in own(linalg.tridiagonal_solve, d, d, d, right)
    assert "@lapack_sgeqp3_ffi" in own(lambda x: linalg.qr(x, pivoting=True), x)
    assert "@lapack_sorgqr_ffi" in own(linalg.ormqr, x, d, right)
    assert "@lapack_spotrf_ffi" in own(linalg.cholesky_update, x, d)
    assert "dot_general" in own(linalg.symmetric_product, x, x)


@needs_jaxlib
@pytest.mark.parametrize("name", ["eig", "schur", "hessenberg", "tridiagonal"])
def test_mlir_prints_the_same(name: str) -> None:
    for dtype in ("float32", "complex128"):
        assert_canonical(own(getattr(linalg, name), elements(dtype, 2, 5, 5)))


@needs_jaxlib
@pytest.mark.parametrize("dtype", DTYPES)
def test_forms_are_those_of_the_native_engine(dtype: str) -> None:
    x = elements(dtype, 2, 5, 5)
    hermitian = x + np.conj(np.swapaxes(x, 1, 2))
    near(linalg.eig, x)
    near(lambda x: linalg.eig(x, compute_left_eigenvectors=False), x)
    near(lambda x: linalg.eig(x, compute_right_eigenvectors=False), x)
    near(linalg.schur, x)
    near(lambda x: linalg.schur(x, compute_schur_vectors=False), x)
    near(linalg.hessenberg, x)
    for lower in (True, False):
        near(lambda x, lower=lower: linalg.tridiagonal(x, lower=lower), hermitian)
    for shape in ((2, 5, 3), (2, 3, 5), (4, 4)):
        for full in (True, False):
            near(
                lambda x, full=full: linalg.qr(x, pivoting=True, full_matrices=full),
                elements(dtype, *shape),
            )


@needs_jaxlib
@pytest.mark.parametrize("dtype", DTYPES)
def test_systems_and_products_are_those_of_the_native_engine(dtype: str) -> None:
    d, zero = elements(dtype, 2, 5), np.zeros((2, 5), dtype)
    near(linalg.tridiagonal_solve, d, d + 4, d, elements(dtype, 2, 5, 3))
    near(linalg.tridiagonal_solve, zero, zero, zero, elements(dtype, 2, 5, 3))  # singular
    one = elements(dtype, 1, 1)
    near(linalg.tridiagonal_solve, one, one, one, elements(dtype, 1, 1, 3))
    near(lambda a, c: linalg.symmetric_product(a, c, alpha=2.0, beta=0.5), d, elements(dtype, 2, 2))
    for rows, columns, k in ((5, 5, 5), (5, 3, 3), (5, 3, 2), (3, 5, 3)):
        a, taus = elements(dtype, 2, rows, columns) * 0.3, elements(dtype, 2, k) * 0.3
        for left in (True, False):
            c = elements(dtype, 2, rows, 4) if left else elements(dtype, 2, 4, rows)
            for turned in (True, False):
                f = linalg.ormqr
                near(
                    lambda a, t, c, p=(left, turned): f(a, t, c, left=p[0], transpose=p[1]),
                    a,
                    taus,
                    c,
                )


@needs_jaxlib
def test_updates_of_triangular_factors() -> None:
    r = np.triu(elements("float64", 2, 5, 5)) + 4 * np.eye(5)
    near(linalg.cholesky_update, r, elements("float64", 2, 5))


@needs_jaxlib
def test_what_no_routine_takes_is_called_on_the_host() -> None:
    x = elements("float32", 3, 3)
    near(lambda x: linalg.schur(x, sort_eig_vals=True, select_callable=lambda r, i=0: r > 0)[0], x)
    near(linalg.hessenberg, elements("float32", 1, 1))
    zero = np.zeros((2,), np.float32)
    found = jax.jit(
        lambda d, b: linalg.tridiagonal_solve(d, d, d, b, perturb_singular=True), backend="xla_cpu"
    )(zero, np.ones((2, 1), np.float32))
    assert np.isfinite(found).all()


@needs_jaxlib
def test_a_matrix_that_is_not_finite_has_no_eigenvalues_and_the_others_theirs() -> None:
    two = np.stack([np.eye(2, dtype=np.float32), np.full((2, 2), np.nan, np.float32)])
    w, v = jax.jit(lambda x: linalg.eig(x, compute_left_eigenvectors=False), backend="xla_cpu")(
        jnp.asarray(two)
    )
    assert w[0].tolist() == [1, 1] and np.isnan(w[1]).all() and np.isnan(v[1]).all()


@needs_jaxlib
@pytest.mark.parametrize("dtype", DTYPES)
def test_eigenvalues_of_very_small_and_very_large_matrices(dtype: str) -> None:
    x = elements(dtype, 3, 4, 4)
    power = 160 if dtype in ("float64", "complex128") else 20
    scales = np.array([10.0**-power, 1, 10.0**power], x.real.dtype)[:, None, None]
    w, v = jax.jit(jnp.linalg.eig, backend="xla_cpu")(x * scales)
    w, v = np.asarray(w) / scales[..., 0], np.asarray(v)
    tolerance = 1e-5 if power == 20 else 1e-12
    np.testing.assert_allclose(x @ v, v * w[:, None, :], atol=tolerance)

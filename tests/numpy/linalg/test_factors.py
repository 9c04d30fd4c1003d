"""Decompositions: what the factors multiply to, their order and forms, refusals."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.numpy.linalg.factors import adjoint, matrices
from tests.ops.helpers import x64

RNG = np.random.default_rng(0)


def batch(m, n, dtype):
    a = RNG.normal(size=(2, m, n))
    return (a + 1j * RNG.normal(size=a.shape) if dtype.startswith("c") else a).astype(dtype)


def near(a, b, tol=2e-4):
    np.testing.assert_allclose(a, b, rtol=tol, atol=tol)


SHAPES = [(4, 4), (5, 3), (3, 5), (1, 1)]
DTYPES = ["float32", "complex64"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_qr(shape, dtype):
    a = batch(*shape, dtype)
    m, n = shape
    for mode, k in (("reduced", min(m, n)), ("complete", m)):
        q, r = jnp.linalg.qr(a, mode)
        assert q.shape == (2, m, k) and r.shape == (2, k, n)
        near(q @ r, a)
        near(adjoint(q) @ q, np.broadcast_to(np.eye(k), (2, k, k)))
        np.testing.assert_array_equal(r, np.triu(r))
    near(jnp.linalg.qr(a, "r"), r[:, : min(m, n)])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_reflections_as_lapack(shape, dtype):
    a = batch(*shape, dtype)
    h, tau = jnp.linalg.qr(a, "raw")
    for k in range(2):
        want = np.linalg.qr(a[k], "raw")
        near(h[k], want[0])
        near(tau[k], want[1])
    flat = np.zeros((3, 2), np.float32)
    for got, want in zip(jnp.linalg.qr(flat, "raw"), np.linalg.qr(flat, "raw")):
        near(got, want)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("full", [False, True])
def test_svd(shape, dtype, full):
    a = batch(*shape, dtype)
    u, s, vh = jnp.linalg.svd(a, full_matrices=full)
    k = min(shape)
    near((u[..., :k] * s[:, None, :]) @ vh[:, :k], a)
    near(s, np.linalg.svd(a, compute_uv=False))
    near(jnp.linalg.svdvals(a), s)
    near(adjoint(u) @ u, np.broadcast_to(np.eye(u.shape[-1]), (2, *[u.shape[-1]] * 2)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_hermitian_matrices(dtype):
    a = batch(4, 4, dtype)
    a = a + np.conj(np.swapaxes(a, 1, 2))
    w, v = jnp.linalg.eigh(a)
    assert w.dtype == np.float32 and (np.diff(w) >= 0).all()
    near(a @ np.asarray(v), v * np.asarray(w)[:, None])
    near(jnp.linalg.eigvalsh(a), np.linalg.eigvalsh(a))
    u, s, vh = jnp.linalg.svd(a, hermitian=True)
    near((u * s[:, None]) @ vh, a)
    near(s, np.linalg.svd(a, compute_uv=False))
    some = jnp.linalg.svd(a, hermitian=True, compute_uv=False, subset_by_index=(1, 3))
    near(some, s[:, 1:3])


def test_which_triangle_is_read():
    a = batch(3, 3, "float32")
    for which, triangle in (("L", np.tril), ("U", np.triu)):
        one = triangle(a)
        whole = one + np.swapaxes(one, 1, 2) - np.eye(3) * a
        w, _ = jnp.linalg.eigh(a, which, symmetrize_input=False)
        near(w, np.linalg.eigvalsh(whole))
    near(jnp.linalg.eigvalsh(a), np.linalg.eigvalsh((a + np.swapaxes(a, 1, 2)) / 2))


@pytest.mark.parametrize("dtype", DTYPES)
def test_eigenvectors_of_any_matrix(dtype):
    a = batch(4, 4, dtype)
    w, v = jnp.linalg.eig(a)
    assert w.dtype == np.complex64
    near(a @ np.asarray(v), v * np.asarray(w)[:, None])
    near(np.sort_complex(jnp.linalg.eigvals(a)), np.sort_complex(np.linalg.eigvals(a)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_cholesky(dtype):
    a = batch(4, 4, dtype)
    p = a @ np.conj(np.swapaxes(a, 1, 2)) + np.eye(4, dtype=dtype)
    lower = jnp.linalg.cholesky(p)
    near(lower, np.linalg.cholesky(p))
    near(jnp.linalg.cholesky(p, upper=True), adjoint(lower))
    failed = np.asarray(jnp.linalg.cholesky(-p))
    assert np.isnan(failed[(slice(None), *np.tril_indices(4))]).all()


def test_derivatives_of_factors_that_have_a_sign():
    """What does not depend on the choice of signs, against finite differences."""
    a = RNG.normal(size=(4, 3))
    with x64():
        for f in (
            lambda a: jnp.abs(jnp.linalg.qr(a)[1]).sum(),
            lambda a: jnp.linalg.svdvals(a).prod(),
            lambda a: jnp.linalg.eigvalsh(a.T @ a)[1],
            lambda a: jnp.linalg.svd(a.T @ a + a[:3] @ a[:3].T, hermitian=True)[1][0],
        ):
            t = RNG.normal(size=a.shape)
            want = (f(jnp.asarray(a + 1e-6 * t)) - f(jnp.asarray(a - 1e-6 * t))) / 2e-6
            np.testing.assert_allclose((calque.grad(f)(jnp.asarray(a)) * t).sum(), want, rtol=1e-5)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: matrices("qr", np.ones(3)), TypeError, r"\[..., m, n\], got shape \(3,\)"),
        (lambda: matrices("inv", np.ones(3), True), ValueError, r"square matrix or a batch"),
        (lambda: jnp.linalg.cholesky(np.ones((2, 3))), ValueError, r"\[..., n, n\]"),
        (lambda: jnp.linalg.qr(np.ones((2, 3)), "economic"), ValueError, "mode 'economic'"),
        (lambda: jnp.linalg.eigh(np.ones((2, 2)), "x"), ValueError, "UPLO"),
        (lambda: jnp.linalg.svd([[1.0]]), TypeError, "svd"),
    ],
)
def test_refusals(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_whole_numbers_are_floats():
    assert matrices("qr", np.ones((2, 2), int)).dtype == np.float32
    assert jnp.linalg.svd(jnp.zeros((0, 3)), full_matrices=False).S.shape == (0,)

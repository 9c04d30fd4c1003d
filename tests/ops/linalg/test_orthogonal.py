"""QR, Householder products, Hessenberg, tridiagonal and Schur forms, tridiagonal systems:
definitions, rules, JAX."""

import numpy as np
import pytest
from scipy.linalg import lapack

from calque.core.primitives import do
from calque.ops.linalg import orthogonal as O
from tests.ops import peer
from tests.ops.helpers import (
    check_batch,
    check_fun_jvp,
    check_jvp,
    check_meaning,
    check_transpose,
    run,
    same,
    values,
)
from tests.ops.linalg.test_factors import DTYPES, linalg, well


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def qr_params(full=False, pivoting=False):
    return {"pivoting": pivoting, "full_matrices": full, "use_magma": None}


@pytest.mark.parametrize(("dtype", "tol"), DTYPES)
@pytest.mark.parametrize("shape", [(2, 3, 3), (5, 3), (3, 5), (1, 1), (0, 2), (2, 0)])
def test_qr(dtype, tol, shape):
    x = values(dtype, shape)
    m, n = shape[-2:]
    for full in (True, False):
        q, r = run(lambda x, f=full: O.qr(x, full_matrices=f), x)
        k = m if full else min(m, n)
        assert (
            q.shape == (*shape[:-2], m, k)
            and r.shape == (*shape[:-2], k, n)
            and q.dtype == r.dtype == x.dtype
        )
        np.testing.assert_allclose(q @ r, x, rtol=tol, atol=10 * tol)
        np.testing.assert_allclose(
            adjoint(q) @ q, np.broadcast_to(np.eye(k), (*shape[:-2], k, k)), atol=10 * tol
        )
        same(np.tril(r, -1), np.zeros_like(r))
    q, r, order = run(lambda x: O.qr(x, full_matrices=False, pivoting=True), x)
    np.testing.assert_allclose(
        q @ r, np.take_along_axis(x, order[..., None, :], -1), rtol=tol, atol=10 * tol
    )
    if dtype in ("float64", "complex128") and x.size:
        a = x[0] if x.ndim == 3 else x
        check_fun_jvp(lambda x: do.qr(x, **qr_params()), a, order=2, rtol=1e-5, atol=1e-5)
        check_fun_jvp(
            lambda x: do.qr(x, **qr_params(pivoting=True))[:2], a, order=1, rtol=1e-5, atol=1e-5
        )
        if m <= n:
            check_fun_jvp(
                lambda x: do.qr(x, **qr_params(full=True)), a, order=1, rtol=1e-5, atol=1e-5
            )
        else:  # the columns that complete q are any basis: what does not depend on it

            def of_full(x):
                q, r = do.qr(x, **qr_params(full=True))
                rest = q[:, n:]
                return q[:, :n], r, rest @ rest.conj().T

            check_fun_jvp(of_full, a, order=1, rtol=1e-5, atol=1e-5)


def test_qr_edges():
    check_batch(
        O.qr_p, values("float32", (3, 2)), only=[(0,)], size=1, rtol=1e-4, atol=1e-5, **qr_params()
    )
    with pytest.raises(NotImplementedError, match="does not accept dtype"):
        run(O.qr, np.eye(2, dtype="float16"))


def reflectors(dtype, m, n):
    geqrf = lapack.get_lapack_funcs("geqrf", dtype=np.dtype(dtype))
    a, tau, *_ = geqrf(values(dtype, (m, n)))
    return a, tau


@pytest.mark.parametrize(("dtype", "tol"), DTYPES)
def test_householder(dtype, tol):
    a, tau = reflectors(dtype, 4, 3)
    full = np.eye(4, dtype=dtype)
    for i in range(3):
        v = np.concatenate([np.zeros(i), [1], a[i + 1 :, i]]).astype(dtype)
        full = full @ (np.eye(4) - tau[i] * np.outer(v, np.conj(v)))
    check_meaning(
        O.householder_product_p, lambda a, t: full[:, :3].astype(dtype), a, tau, rtol=tol, atol=tol
    )
    c = values(dtype, (4, 2), seed=3)
    for left in (True, False):
        for transpose in (True, False):
            q = adjoint(full) if transpose else full
            b = c if left else adjoint(c)
            want = (q @ b if left else b @ q).astype(dtype)
            p = {"left": left, "transpose": transpose}
            check_meaning(O.ormqr_p, lambda *_, want=want: want, a, tau, b, rtol=tol, atol=tol, **p)
            if dtype in ("float64", "complex128"):
                check_jvp(O.ormqr_p, a, tau, b, order=1, rtol=1e-5, **p)
    if dtype in ("float64", "complex128"):
        check_jvp(O.householder_product_p, a, tau, order=2, rtol=1e-5)
    check_batch(
        O.householder_product_p, a, tau, rtol=tol, atol=tol, only=[(0, None), (None, 0), (2, 1)]
    )


@pytest.mark.parametrize(("dtype", "tol"), DTYPES)
@pytest.mark.parametrize("n", [0, 1, 4])
def test_forms(dtype, tol, n):
    x = values(dtype, (2, n, n))
    h, taus = run(O.hessenberg, x)
    assert h.shape == x.shape and taus.shape == (2, max(n - 1, 0)) and taus.dtype == x.dtype
    t, z = run(O.schur, x)
    np.testing.assert_allclose(z @ t @ adjoint(z), x, rtol=tol, atol=20 * tol)
    (only,) = run(lambda x: O.schur(x, compute_schur_vectors=False), x)
    np.testing.assert_allclose(only, t, rtol=tol, atol=20 * tol)
    sym = x + adjoint(x)
    for lower in (True, False):
        out, d, e, taus = run(lambda x, w=lower: O.tridiagonal(x, lower=w), sym)
        assert d.dtype == e.dtype == x.real.dtype and taus.dtype == x.dtype and out.shape == x.shape
        if n > 1:
            dense = np.stack([np.diag(a) + np.diag(b, 1) + np.diag(b, -1) for a, b in zip(d, e)])
            np.testing.assert_allclose(
                np.linalg.eigvalsh(dense), np.linalg.eigvalsh(sym), rtol=20 * tol, atol=20 * tol
            )


def test_form_edges():
    x = values("float64", (3, 3))
    assert all(np.isnan(v[0, 0]) for v in run(O.schur, np.full((2, 2), np.nan, "float32")))
    for fun in (O.hessenberg, O.schur, O.tridiagonal):
        with pytest.raises(NotImplementedError, match="no derivative"):
            check_fun_jvp(fun, x)
    t, z = run(
        lambda x: O.schur(x, sort_eig_vals=True, select_callable=lambda r, i=0: r < 0),
        x.astype("float32"),
    )
    np.testing.assert_allclose(z @ t @ z.T, x, rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="select_callable"):
        run(lambda x: O.schur(x, sort_eig_vals=True), x.astype("float32"))
    check_batch(O.hessenberg_p, x.astype("float32"), rtol=1e-5, atol=1e-6)
    check_batch(O.tridiagonal_p, x.astype("float32"), rtol=1e-5, atol=1e-6, lower=True)


@pytest.mark.parametrize(("dtype", "tol"), DTYPES)
@pytest.mark.parametrize("n", [1, 2, 5])
def test_tridiagonal_solve(dtype, tol, n):
    dl, du, b = (values(dtype, s, seed=i) for i, s in enumerate([(2, n), (2, n), (2, n, 3)]))
    d = (values(dtype, (2, n), seed=8) + 8).astype(dtype)

    def expected(dl, d, du, b):
        dense = np.stack(
            [
                np.diag(m) + np.diag(low[1:], -1) + np.diag(up[:-1], 1)
                for low, m, up in zip(dl, d, du)
            ]
        )
        return np.linalg.solve(dense, b).astype(dtype)

    p = {"perturb_singular": False}
    check_meaning(O.tridiagonal_solve_p, expected, dl, d, du, b, rtol=tol, atol=tol, **p)
    if dtype in ("float64", "complex128"):
        one = [v[0] for v in (dl, d, du, b)]
        check_jvp(O.tridiagonal_solve_p, *one, order=2, rtol=1e-5, **p)
        check_transpose(O.tridiagonal_solve_p, *one, linear=(3,), **p)
    if dtype == "float32":
        one = [v[0] for v in (dl, d, du, b)]
        only = [(None, None, None, 0), (None, 0, None, None), (0, 1, 0, 2)]
        check_batch(O.tridiagonal_solve_p, *one, only=only, rtol=1e-5, atol=1e-6, **p)


def test_tridiagonal_edges():
    z, one = np.zeros(2, "float32"), np.ones((2, 1), "float32")
    assert np.isnan(run(lambda z, b: O.tridiagonal_solve(z, z, z, b), z, one)[0]).all()
    assert run(lambda z, b: O.tridiagonal_solve(z, z, z, b), z[:0], one[:0])[0].shape == (0, 1)
    for n in (1, 2):
        (x,) = run(
            lambda z, b: O.tridiagonal_solve(z, z, z, b, perturb_singular=True), z[:n], one[:n]
        )
        assert (x > 1e6).all() and np.isfinite(x).all()
    with pytest.raises(ValueError, match="three diagonals"):
        run(lambda z, b: O.tridiagonal_solve(z, z, z, b), z[:1], one)


@pytest.mark.peer
def test_beside_jax():
    x, tall = well("float32", 3, 3), values("float32", (4, 2))
    a, tau = reflectors("float32", 4, 3)
    c = values("float32", (4, 2), seed=3)
    v = values("float32", (3,))
    peer.compare(
        [
            (lambda lax, x: linalg(lax).qr(x), x),
            (lambda lax, x: linalg(lax).qr(x, full_matrices=False), tall),
            (lambda lax, x: linalg(lax).qr(x), tall),
            (lambda lax, x: linalg(lax).qr(x, full_matrices=False), tall.T.copy()),
            (lambda lax, x: linalg(lax).qr(x, pivoting=True), x),
            (lambda lax, a, t: linalg(lax).householder_product(a, t), a, tau),
            (lambda lax, a, t, c: linalg(lax).ormqr(a, t, c, transpose=True), a, tau, c),
            (lambda lax, a, t, c: linalg(lax).ormqr(a, t, c, left=False), a, tau, c.T.copy()),
            (lambda lax, x: linalg(lax).hessenberg(x), x),
            (lambda lax, x: linalg(lax).tridiagonal(x), x + x.T),
            (lambda lax, x: linalg(lax).tridiagonal(x, lower=False), x + x.T),
            (lambda lax, x: linalg(lax).schur(x), x),
            (
                lambda lax, d, b: linalg(lax).tridiagonal_solve(
                    lax.full_like(d, 0.5), d, lax.full_like(d, 0.25), b
                ),
                v,
                x,
            ),
        ],
        rtol=1e-3,
        atol=1e-4,
    )


@pytest.mark.peer
def test_derivatives_beside_jax():
    jax = pytest.importorskip("jax")
    x, t = values("float32", (4, 3)), values("float32", (4, 3), seed=2)
    want = jax.jvp(lambda x: jax.lax.linalg.qr(x, full_matrices=False), (x,), (t,))[1]
    got = run(lambda x, t: O.qr_p.jvp((x,), (t,), **qr_params())[1], x, t)
    for g, w in zip(got, want):
        np.testing.assert_allclose(g, w, rtol=1e-2, atol=1e-3)

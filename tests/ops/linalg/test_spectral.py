"""eigh, eig, svd: definitions, rules, JAX. Vectors are compared by what does not depend on their
signs and phases."""

import numpy as np
import pytest

from calque.core.primitives import do
from calque.ops.linalg import common as la
from calque.ops.linalg import spectral as S
from tests.ops import peer
from tests.ops.helpers import check_batch, check_fun_jvp, run, same, values
from tests.ops.linalg.test_factors import DTYPES, linalg

EIGH = {"lower": True, "sort_eigenvalues": True, "subset_by_index": None, "algorithm": None}
SVD = {"full_matrices": False, "compute_uv": True, "subset_by_index": None, "algorithm": None}
EIG = {
    "compute_left_eigenvectors": False,
    "compute_right_eigenvectors": False,
    "enable_eigvec_derivs": False,
    "implementation": None,
}


def hermitian(dtype, *shape, seed=0):
    x = values(dtype, shape, seed=seed)
    return (x + np.conj(np.swapaxes(x, -1, -2)) + np.diag(4 * np.arange(shape[-1]))).astype(dtype)


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def projector(v):
    """v_i v_i^H of each column, weighted by its number: independent of signs and phases."""
    n = v.aval.shape[-1]
    weights = do.broadcast_in_dim(
        np.arange(1.0, n + 1).astype(v.aval.dtype),
        shape=v.aval.shape,
        broadcast_dimensions=(1,),
        sharding=None,
    )
    return la.matmul(do.mul(v, weights), la.adjoint(v))


@pytest.mark.parametrize(("dtype", "tol"), DTYPES)
@pytest.mark.parametrize("lower", [True, False])
def test_eigh(dtype, tol, lower):
    x = hermitian(dtype, 2, 4, 4)
    odd = x + (np.triu if lower else np.tril)(values(dtype, (4, 4)), 1 if lower else -1)
    p = {**EIGH, "lower": lower}
    v, w = run(lambda x: S.eigh_p.bind(x, **p), odd)
    assert v.dtype == x.dtype and w.dtype == x.real.dtype
    np.testing.assert_allclose((v * w[..., None, :]) @ adjoint(v), x, rtol=tol, atol=10 * tol)
    assert (np.diff(w) > 0).all()
    if dtype in ("float64", "complex128"):
        a = odd[0]
        check_fun_jvp(
            lambda x: [do.eigh(x, **p)[1], projector(do.eigh(x, **p)[0])],
            a,
            order=2,
            rtol=1e-5,
            atol=1e-5,
        )


def test_eigh_edges():
    bad = np.stack([np.eye(2), np.full((2, 2), np.nan)]).astype("float32")
    v, w = run(lambda x: S.eigh_p.bind(x, **EIGH), bad)
    same(w[0], np.ones(2, "float32"))
    assert np.isnan(v[1]).all() and np.isnan(w[1]).all()
    v, w = run(lambda x: S.eigh_p.bind(x, **EIGH), np.zeros((0, 0), "float32"))
    assert v.shape == (0, 0) and w.shape == (0,)
    check_batch(S.eigh_p, hermitian("float32", 3, 3), only=[(0,)], size=1, rtol=1e-4, **EIGH)
    with pytest.raises(NotImplementedError, match="subset_by_index"):
        run(lambda x: S.eigh(x, subset_by_index=(0, 1)), np.eye(3, dtype="float32"))


@pytest.mark.parametrize(("dtype", "tol"), DTYPES)
def test_eig(dtype, tol):
    x = values(dtype, (2, 4, 4))
    w, vl, vr = run(lambda x: S.eig(x), x)
    assert {a.dtype for a in (w, vl, vr)} == {np.dtype("complex64" if tol > 1e-6 else "complex128")}
    np.testing.assert_allclose(x @ vr, vr * w[..., None, :], rtol=tol, atol=10 * tol)
    np.testing.assert_allclose(
        adjoint(vl) @ x, adjoint(vl) * w[..., :, None], rtol=tol, atol=10 * tol
    )
    only = run(
        lambda x: S.eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False), x
    )
    assert len(only) == 1
    if dtype in ("float64", "complex128"):
        check_fun_jvp(lambda x: do.eig(x, **EIG)[0], x[0], order=2, rtol=1e-4, atol=1e-4)
        p = {**EIG, "compute_right_eigenvectors": True, "enable_eigvec_derivs": True}

        def fun(x):
            return projector(do.eig(x, **p)[1])

        check_fun_jvp(fun, x[0], order=1, rtol=1e-5, atol=1e-5)
        for left, right in ((True, False), (False, True), (True, True)):
            q = {**p, "compute_left_eigenvectors": left, "compute_right_eigenvectors": right}

            def squares(x, q=q):  # their norm and their phase count, their sign does not
                return [v * v for v in do.eig(x, **q)]

            check_fun_jvp(squares, x[0], order=2, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_eigenvalues_of_very_small_and_very_large_matrices(dtype):
    """Builds of OpenBLAS bring such matrices to a middle size, and do not bring the values back."""
    double = dtype in ("float64", "complex128")
    x = values(dtype, (5, 5))
    for exponent in (-37, -20, -14, 14, 20, 37):
        scale = 10.0 ** (exponent * (8 if double else 1))
        w, _, v = run(lambda x: S.eig(x), x * x.real.dtype.type(scale))
        w = w.astype(complex) / scale
        tolerance = 1e-12 if double else 2e-4 if abs(exponent) == 37 else 1e-5
        np.testing.assert_allclose(x @ v, v * w, atol=tolerance)


def test_eig_edges():
    out = run(lambda x: S.eig(x), np.full((2, 2), np.nan, "float32"))
    assert all(np.isnan(o).all() for o in out)
    out = run(lambda x: S.eig(x), np.zeros((3, 0, 0), "float32"))
    assert [o.shape for o in out] == [(3, 0), (3, 0, 0), (3, 0, 0)]
    with pytest.raises(NotImplementedError, match="normalised"):
        check_fun_jvp(lambda x: S.eig(x), np.eye(2))


@pytest.mark.parametrize(("dtype", "tol"), DTYPES)
@pytest.mark.parametrize("shape", [(2, 4, 4), (5, 3), (3, 5), (1, 1), (0, 3), (3, 0)])
def test_svd(dtype, tol, shape):
    x = values(dtype, shape)
    for full in (True, False):
        s, u, vt = run(lambda x, f=full: S.svd_p.bind(x, **{**SVD, "full_matrices": f}), x)
        k = min(shape[-2:])
        np.testing.assert_allclose(
            (u[..., :k] * s[..., None, :]) @ vt[..., :k, :], x, rtol=tol, atol=10 * tol
        )
        assert u.shape[-1] == (shape[-2] if full else k) and vt.shape[-2] == (
            shape[-1] if full else k
        )
        assert s.dtype == x.real.dtype and u.dtype == vt.dtype == x.dtype
    (only,) = run(lambda x: S.svd_p.bind(x, **{**SVD, "compute_uv": False}), x)
    np.testing.assert_allclose(only, s, rtol=10 * tol, atol=tol)
    if dtype in ("float64", "complex128") and x.size:
        a = x[0] if x.ndim == 3 else x

        def invariant(x):
            s, u, vt = do.svd(x, **SVD)
            return [s, projector(u), projector(la.adjoint(vt)), la.matmul(u, vt)]

        check_fun_jvp(invariant, a, order=2, rtol=1e-4, atol=1e-4)
        check_fun_jvp(
            lambda x: do.svd(x, **{**SVD, "compute_uv": False})[0], a, order=2, rtol=1e-5, atol=1e-5
        )


def test_svd_edges():
    out = run(lambda x: S.svd(x), np.full((2, 2), np.nan, "float32"))
    assert all(np.isnan(o).all() for o in out)
    check_batch(
        S.svd_p, values("float32", (3, 2)), only=[(0,)], size=1, rtol=1e-4, atol=1e-5, **SVD
    )
    with pytest.raises(NotImplementedError, match="full_matrices=False"):
        check_fun_jvp(lambda x: S.svd(x), values("float64", (3, 2)))


@pytest.mark.peer
def test_beside_jax():
    x, h, tall = values("float32", (3, 3)), hermitian("float32", 3, 3), values("float32", (4, 2))
    peer.compare(
        [
            (lambda lax, x: linalg(lax).svd(x, compute_uv=False), x),
            (lambda lax, x: linalg(lax).svd(x, compute_uv=False), np.stack([tall, 2 * tall])),
        ],
        rtol=1e-4,
        atol=1e-4,
    )

    def typed(lax, vs):
        return [lax.abs(v) for v in vs]

    peer.compare(
        [
            (lambda lax, x: typed(lax, linalg(lax).svd(x)), tall),
            (lambda lax, x: typed(lax, linalg(lax).eigh(x)), h),
            (
                lambda lax, x: typed(lax, linalg(lax).eigh(x, lower=False, symmetrize_input=False)),
                h,
            ),
            (lambda lax, x: typed(lax, linalg(lax).eigh(x)), hermitian("complex64", 2, 3, 3)),
            (lambda lax, x: typed(lax, linalg(lax).eig(x)), x),
        ],
        rtol=1e-3,
        atol=1e-4,
        printed=False,
    )


@pytest.mark.peer
def test_derivatives_beside_jax():
    jax = pytest.importorskip("jax")
    for x in (values("float32", (3, 3)), values("float32", (4, 2)), values("float32", (2, 4))):
        t = values("float32", x.shape, seed=9)
        want = jax.jvp(lambda x: jax.lax.linalg.svd(x, full_matrices=False), (x,), (t,))[1]
        got = run(lambda x, t: S.svd_p.jvp((x,), (t,), **SVD)[1], x, t)
        for g, w in zip((got[1], got[0], got[2]), want):
            np.testing.assert_allclose(np.abs(g), np.abs(w), rtol=1e-2, atol=1e-3)
    h, t = hermitian("float32", 3, 3), hermitian("float32", 3, 3, seed=9)
    want = jax.jvp(lambda x: jax.lax.linalg.eigh(x), (h,), (t,))[1]
    got = run(lambda x, t: S.eigh_p.jvp((x,), (t,), **EIGH)[1], h, t)
    for g, w in zip(got, want):
        np.testing.assert_allclose(np.abs(g), np.abs(w), rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("case", ["identity", "orthogonal", "pairs", "tall", "wide"])
def test_what_equal_singular_values_leave_certain(dtype, case):
    """The vectors of equal singular values turn freely, but U V^H, the nearest matrix with
    orthonormal columns, has a derivative."""
    q, r = (np.linalg.qr(values(dtype, (4, 4), seed=i))[0] for i in (1, 2))
    x = {
        "identity": np.eye(4, dtype=dtype),
        "orthogonal": q,
        "pairs": (q * [3, 3, 2, 2]) @ r,
        "tall": (q * 2)[:, :3],
        "wide": (q * 2)[:3],
    }[case]

    def nearest(x):
        _, u, vt = do.svd(x, **SVD)
        return la.matmul(u, vt)

    check_fun_jvp(nearest, x, rtol=1e-6, atol=1e-6)

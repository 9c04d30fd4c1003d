"""Factors of matrices: each multiplied gives the matrix."""

import numpy as np
import pytest
import scipy.linalg

import calque.numpy as jnp
from calque.scipy import linalg as sl
from tests.scipy.linalg.shared import DATA, RNG, A, adjoint, close


@pytest.mark.parametrize(
    "a",
    [DATA["A"], DATA["C"], DATA["B"], DATA["P"][:1, :1]],
    ids=["real", "complex", "batch", "one"],
)
def test_factors_multiply_to_the_matrix(a: np.ndarray) -> None:
    q, r = sl.qr(a)
    close(q @ r, a)
    q, r, order = sl.qr(a, pivoting=True)
    close(q @ r, jnp.take_along_axis(jnp.asarray(a), order[..., None, :], -1))
    h, q = sl.hessenberg(a, calc_q=True)
    close(q @ h @ adjoint(q), a)
    close(np.tril(h, -2), 0 * h)
    t, z = sl.schur(a)
    close(z @ t @ adjoint(z), a)
    t, z = sl.rsf2csf(t, z)
    close(z @ t @ adjoint(z), a)
    close(np.tril(t, -1), 0 * t)
    t, z = sl.schur(a, output="complex")
    close(z @ t @ adjoint(z), a)
    u, s, vh = sl.svd(a)
    close(u * s[..., None, :] @ vh, a)
    p, l, u = sl.lu(a)
    close(p @ l @ u, a)
    u, p = sl.polar(a)
    close(u @ p, a)
    u, p = sl.polar(a, "left", method="svd")
    close(p @ u, a)
    x = sl.sqrtm(a)
    close(x @ x, a, 1e-4)


def test_generalised_eigenvectors() -> None:
    a, b = (jnp.asarray(x + x.conj().T) for x in (DATA["C"], DATA["P"]))
    for type, left, right in (
        (1, lambda v: a @ v, lambda v: b @ v),
        (2, lambda v: a @ b @ v, lambda v: v),
        (3, lambda v: b @ a @ v, lambda v: v),
    ):
        w, v = sl.eigh(a, b, type=type)
        close(left(v), right(v) * w, 2e-4)
    w, v = sl.eigh(a, eigvals=(1, 2))
    close(a @ v, v * w, 1e-4)
    assert v.shape == (4, 2)
    w, v = sl.eigh_tridiagonal(
        jnp.asarray(A[0]), jnp.asarray(A[1, :3]), select="i", select_range=(0, 1)
    )
    dense = np.diag(A[0]) + np.diag(A[1, :3], 1) + np.diag(A[1, :3], -1)
    close(dense @ v, v * w)
    for bad in ((2, 1), (0, 4)):
        with pytest.raises(ValueError, match="eigvals"):
            sl.eigh(a, eigvals=bad)
    with pytest.raises(ValueError, match="select_range"):
        sl.eigh_tridiagonal(A[0], A[1, :3], select="i", select_range=(0, 9))


def test_products_with_q() -> None:
    for a in (DATA["C"], DATA["C"][:, :3], DATA["C"][:3]):
        for mode in ("right", "left"):
            rows = a.shape[0] if mode == "right" else min(a.shape)
            c = RNG.normal(size=(5, rows) if mode == "right" else (rows, 5))
            for options in ({}, {"pivoting": True}, {"conjugate": True}):
                got = sl.qr_multiply(a, c.astype(np.float32), mode, **options)
                want = scipy.linalg.qr_multiply(
                    a.astype(complex), c.astype(complex), mode, **options
                )
                for g, w in zip(got, want, strict=True):
                    close(np.abs(g), np.abs(w), 1e-4)

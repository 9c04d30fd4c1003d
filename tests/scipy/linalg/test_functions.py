"""scipy.linalg: values against SciPy, types and refusals against JAX, what factors multiply to,
derivatives."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import calque
import calque.numpy as jnp
from calque.scipy import linalg as sl
from calque.test_util import check_grads
from tests.numpy.expressions import lines
from tests.ops.helpers import x64
from tests.peers import jax
from tests.scipy.expressions import check_jax, check_scipy
from tests.scipy.linalg.shared import DATA, RNG, A, adjoint, close

VALUES = lines("""
m.block_diag(A,C[:2],I,2.)
m.block_diag(Z,A)
m.cho_solve(m.cho_factor(P),A)
m.cho_solve(m.cho_factor(P,lower=True),A[0])
m.cholesky(P)
m.cholesky(P,lower=True)
m.cholesky(T)
m.circulant(C[0])
m.companion(A[0])
m.companion(C[0,:2])
m.convolution_matrix(A[0],3)
m.convolution_matrix(A[0],6,'same')
m.convolution_matrix(A[0],2,'same')
m.convolution_matrix(A[0],6,mode='valid')
m.convolution_matrix(C[0],2,'valid')
m.det(A)
m.det(C)
m.dft(4)
m.dft(5,'sqrtn')
m.dft(3,scale='n')
m.eigh(P,eigvals_only=True)
m.eigh(P,P+A@A.T,eigvals_only=True)
m.eigh(P,P+A@A.T,type=2,eigvals_only=True)
m.eigh(P,P+A@A.T,type=3,eigvals_only=True)
m.eigh_tridiagonal(A[0],A[1,:3],eigvals_only=True)
m.eigh_tridiagonal(A[0],A[1,:3],eigvals_only=True,select='i',select_range=(1,2))
m.expm(A)
m.expm(C)
m.expm(4*A)/100
m.expm(1e-3*A)
m.expm(0*A)
m.expm_frechet(A,P)
m.expm_frechet(A,P,compute_expm=False)
m.fiedler(A[0])
m.funm(A,lambda x:x*x+x)
m.hadamard(8)
m.hankel(A[0])
m.hankel(C[0],A[1,:2])
m.hankel(I[:2],I)
m.helmert(4)
m.helmert(3,full=True)
m.hessenberg(A)
m.hilbert(4)
m.inv(A)
m.invhilbert(5)
m.invpascal(4)
m.invpascal(4,'lower')
m.invpascal(4,kind='upper')
m.leslie(A[0],A[1,:3])
m.lu(A)
m.lu(C[:3])
m.lu(A[:,:2],permute_l=True)
m.lu_factor(A)
m.lu_solve(m.lu_factor(A),P)
m.lu_solve(m.lu_factor(C),A[0],trans=1)
m.lu_solve(m.lu_factor(C),A,trans=2)
m.pascal(4)
m.pascal(4,'lower')
m.pascal(4,kind='upper')
m.polar(A)
m.polar(C)
m.polar(A[:,:2])
m.solve(A,P)
m.solve(C,A[0])
m.solve(P,A,assume_a='pos')
m.solve(T.T,A[0],assume_a='pos',lower=True)
m.solve(T,A[0],assume_a='pos')
m.solve_sylvester(A,P[:3,:3],A[:,:3])
m.solve_sylvester(C,C,A)
m.solve_triangular(A,P)
m.solve_triangular(A,P[0],lower=True,unit_diagonal=True)
m.solve_triangular(C,A,trans='T')
m.solve_triangular(C,A,trans=2,lower=True)
m.sqrtm(P)
m.sqrtm(C)
m.svd(A,compute_uv=False)
m.toeplitz(C[0])
m.toeplitz(A[0],C[1,:2])
m.toeplitz(I,I[:2])
""")

TYPES = lines("""
m.block_diag()
m.block_diag(1,U,A[:2])
m.block_diag(B)
m.cholesky(I*np.eye(4,dtype=int))
m.cholesky(A[:3])
m.cholesky(Z)
m.cho_factor(P,True)
m.cho_solve((B,True),B[0])
m.cho_solve((B,True),B[:,0])
m.circulant(2.)
m.circulant(B[0])
m.circulant(H)
m.circulant(L)
m.circulant([1.])
m.companion(B[0])
m.companion(U)
m.companion(H)
m.companion(A[0,:1])
m.companion(2.)
m.convolution_matrix(I,2)
m.convolution_matrix(B[0],2,'same')
m.convolution_matrix(A[0],0)
m.convolution_matrix(N,2)
m.convolution_matrix(2.,2)
m.convolution_matrix(A[0],2,'x')
m.convolution_matrix(A[0],2.5)
m.det(A[:3])
m.det([[1.]])
m.det(Z)
m.dft(0)
m.dft(3,'x')
m.dft(3,dtype='float32')
m.dft(3,dtype='complex64')
m.eigh(C)
m.eigh(B,eigvals_only=True)
m.eigh(Z)
m.eigh_tridiagonal(A[0],A[1])
m.eigh_tridiagonal(I,I[:3])
m.eigh_tridiagonal(A[0],H,eigvals_only=True)
m.eigh_tridiagonal(C[0],C[1,:3],eigvals_only=True)
m.eigh_tridiagonal(A[0],A[1,:3])
m.eigh_tridiagonal(A[0],A[1,:3],select='v',select_range=(0,1))
m.eigh_tridiagonal(A[0],A[1,:3],select='i')
m.eigh_tridiagonal(A[0],A[1,:3],select='i',select_range=(2,1))
m.eigh_tridiagonal(A[0],A[1,:3],select='x')
m.expm(B)
m.expm(I*np.eye(4,dtype=int))
m.expm(A[:3])
m.expm(A[0])
m.expm(Z)
m.expm(B,upper_triangular=True)
m.expm_frechet(B,B)
m.expm_frechet(A,A[:3])
m.expm_frechet(A,B)
m.fiedler(B[0])
m.fiedler(U)
m.fiedler(C[0])
m.fiedler(L)
m.fiedler(2.)
m.fiedler(N)
m.fiedler_companion(B[0])
m.fiedler_companion(U)
m.fiedler_companion(2.)
m.fiedler_companion(N)
m.funm(A,abs)
m.funm(A,abs,disp=False)
m.funm(B,abs)
m.hadamard(3)
m.hadamard(0)
m.hadamard(4,dtype='int8')
m.hadamard(2,complex)
m.hankel(2.)
m.hankel(A[0],2.)
m.hankel(B[0],A[0])
m.hankel(A[0],B[0])
m.hankel(N)
m.hankel(A[0],N)
m.hankel(I,H)
m.helmert(0)
m.helmert(1)
m.hessenberg(B,calc_q=True)
m.hessenberg(C)
m.hessenberg(A[:3])
m.hessenberg(Z)
m.hilbert(0)
m.hilbert(-1)
m.inv(B)
m.inv(A[0])
m.invhilbert(0)
m.invpascal(3,'x')
m.invpascal(0)
m.leslie(A[0],A[0])
m.leslie(A[0,:1],N)
m.leslie(B[0],A[0,:2])
m.leslie(I,A[0,:3])
m.lu(C)
m.lu(Z)
m.lu_factor(B)
m.lu_factor(A[:3])
m.lu_solve(m.lu_factor(B),B)
m.lu_solve(m.lu_factor(B),B[:,0])
m.lu_solve(m.lu_factor(B),B[0,0])
m.lu_solve(m.lu_factor(A),A[0],3)
m.lu_solve(m.lu_factor(A),A[0],'N')
m.lu_solve(m.lu_factor(A),A[:3])
m.pascal(3,'x')
m.pascal(0)
m.polar(A,'left')
m.polar(A[:3])
m.polar(A[:3],'left')
m.polar(A[:3],'right',method='svd')
m.polar(B,method='svd')
m.polar(A[0])
m.polar(A,'up')
m.polar(A,method='x')
m.qr(A[:,:2])
m.qr(A[:,:2],mode='economic')
m.qr(A[:,:2],mode='r')
m.qr(A[:,:2],mode='r',pivoting=True)
m.qr(B,pivoting=True)
m.qr(A,mode='raw')
m.qr_multiply(A[:,:3],A)
m.qr_multiply(A[:,:3],A[0])
m.qr_multiply(A[:3],A[:,:3],pivoting=True)
m.qr_multiply(A[:,:3],A[:3],'left')
m.qr_multiply(A[:,:3],A[0,:3],'left')
m.qr_multiply(A[:,:3],A,'left')
m.qr_multiply(A[:3],A)
m.qr_multiply(A,A,'x')
m.qr_multiply(B,B[0])
m.rsf2csf(A,A)
m.rsf2csf(A,A[:3])
m.rsf2csf(A,A[:3,:3])
m.rsf2csf(B,B)
m.schur(B)
m.schur(A,'complex')
m.schur(C)
m.schur(A,'x')
m.schur(Z)
m.solve(B,B)
m.solve(B,B[:,0])
m.solve(A,A[0],assume_a='banded')
m.solve(B,B,assume_a='pos')
m.solve(B,B[0,0],assume_a='pos')
m.solve_sylvester(B,A[:2,:2],B[0,:,:2])
m.solve_sylvester(A,A[:3,:3],A)
m.solve_sylvester(A,A,A,method='x')
m.solve_sylvester(A[0],A,A)
m.solve_sylvester(I*np.eye(4,dtype=int),I*np.eye(4,dtype=int),I*np.eye(4,dtype=int))
m.solve_triangular(B,B[0,0])
m.solve_triangular(B,B[:,0])
m.solve_triangular(A,A[0],trans=3)
m.solve_triangular(A,A[0],'x')
m.sqrtm(I*np.eye(4,dtype=int))
m.sqrtm(A.astype('float16'))
m.sqrtm(A,blocksize=2)
m.svd(B)
m.svd(A[:3],full_matrices=False)
m.svd(A,compute_uv=False)
m.toeplitz(2.)
m.toeplitz(U)
m.toeplitz(H)
m.toeplitz(L)
m.toeplitz(N)
m.toeplitz(A[0],N)
m.toeplitz(B[0],A[0])
m.toeplitz(A[0],B[0])
m.toeplitz(2.,A[0])
m.toeplitz([1.])
""")

# what JAX refuses and we do not
REFUSED_BY_JAX = {c for c in VALUES if c.startswith("m.eigh(P,P")}


@pytest.mark.parametrize("case", VALUES)
def test_values(case: str) -> None:
    check_scipy(case, "linalg", DATA, 2e-4)


@pytest.mark.peer
@pytest.mark.parametrize("case", [*TYPES, *VALUES])
def test_types_and_refusals_of_jax(case: str) -> None:
    check_jax(case, "linalg", DATA, known=REFUSED_BY_JAX)


def test_edges() -> None:
    assert np.isnan(sl.sqrtm(jnp.array([[0.0, 1.0], [0.0, 0.0]]))).all()  # there is no root
    close(sl.sqrtm(jnp.zeros((2, 2))), np.zeros((2, 2)))
    assert (
        np.isnan(sl.expm(jnp.full((2, 2), 1e9))).all()
        and np.isnan(sl.expm(jnp.full((2, 2), np.nan))).all()
    )
    close(sl.expm(3 * jnp.eye(2), max_squarings=0), np.exp(3) * np.eye(2), 1e-4)
    close(
        sl.expm(jnp.asarray(DATA["T"]) / 4, upper_triangular=True),
        scipy.linalg.expm(DATA["T"] / 4),
        1e-4,
    )
    assert np.isnan(sl.solve_sylvester(jnp.eye(2), -jnp.eye(2), jnp.eye(2))).all()
    _, error = sl.funm(jnp.asarray(A), jnp.exp, disp=False)
    assert 0 < float(error) < 1e-3
    assert sl.cho_factor(jnp.eye(2), lower=True)[1] is True
    with pytest.warns(FutureWarning, match="batched 1D solves"):
        sl.solve_triangular(DATA["B"], DATA["B"][:, 0])
    with pytest.raises(ValueError, match="lapack_driver"):
        sl.svd(A, lapack_driver="x")


@pytest.mark.peer
def test_polar_decomposition_by_iteration() -> None:
    u, h, turns, converged = calque.lax.linalg.qdwh(A)
    their_u, their_h, their_turns, _ = jax().lax.linalg.qdwh(A)
    close(u, their_u)
    close(h, their_h)
    assert bool(converged) and abs(int(turns) - int(their_turns)) <= 1
    assert (
        int(calque.lax.linalg.qdwh(A, max_iterations=1)[2]) == 1
        and not calque.lax.linalg.qdwh(A, max_iterations=1)[3]
    )
    with pytest.raises(ValueError, match="at least as many rows"):
        calque.lax.linalg.qdwh(A[:3])


M = np.asarray(RNG.normal(size=(3, 3)))
S = M @ M.T + np.eye(3)
DERIVATIVES: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "expm": (lambda a: sl.expm(3 * a), (M,)),
    "expm_frechet": (sl.expm_frechet, (M, S)),
    "sqrtm": (lambda a: sl.sqrtm(a).real, (S,)),
    "solve_sylvester": (sl.solve_sylvester, (M, S, M)),
    "eigen": (lambda a, c: sl.solve_sylvester(a, S, c, method="eigen"), (M, M)),
    "polar": (sl.polar, (M,)),
    "polar_svd": (lambda a: sl.polar(a, "left", method="svd"), (M[:, :2],)),
    "polar_equal": (lambda a: sl.polar(a)[0], (np.eye(3),)),  # equal singular values
    "solve_pos": (lambda a, b: sl.solve(a @ a.T + np.eye(3), b, assume_a="pos"), (M, M)),
    "eigh": (lambda a, b: sl.eigh(a + a.T, b @ b.T + np.eye(3), eigvals_only=True), (M, M)),
    "qr_multiply": (lambda a, c: sl.qr_multiply(a, c), (M, M)),
    "lu": (sl.lu, (M,)),
    "lu_solve": (lambda a, b: sl.lu_solve(sl.lu_factor(a), b, 1), (M, M)),
    "cho_solve": (lambda a, b: sl.cho_solve(sl.cho_factor(a @ a.T + np.eye(3)), b), (M, M)),
    "eigh_tridiagonal": (sl.eigh_tridiagonal, (M[0], M[1, :2])),
    "toeplitz": (sl.toeplitz, (M[0], M[1])),
    "companion": (sl.companion, (M[0] + 3,)),
    "block_diag": (sl.block_diag, (M, M[0])),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives(name: str) -> None:
    f, args = DERIVATIVES[name]
    with x64():
        check_grads(f, tuple(map(jnp.asarray, args)), order=1, atol=1e-5, rtol=1e-5)


def test_complex_derivatives() -> None:
    with x64():
        c = jnp.asarray(DATA["C"].astype(complex))
        for f in (
            lambda a: sl.solve(a @ adjoint(a) + np.eye(4), a, assume_a="pos"),
            sl.sqrtm,
            sl.expm,
            lambda a: sl.solve_sylvester(a, a, a),
        ):
            check_grads(f, (c,), order=1, atol=1e-5, rtol=1e-5)


def test_batches_are_loops() -> None:
    b = jnp.asarray(DATA["B"])
    for f in (
        sl.expm,
        sl.sqrtm,
        sl.inv,
        sl.det,
        lambda x: sl.solve_sylvester(x, x, x),
        lambda x: sl.polar(x)[0],
        sl.toeplitz,
    ):
        want = jnp.stack([f(x) for x in b])
        close(f(b), want, 1e-4)
        close(calque.vmap(f)(b), want, 1e-4)


def test_methods_of_expm_frechet():
    for method in (None, "SPS", "blockEnlarge"):
        assert sl.expm_frechet(
            jnp.zeros((1, 1)), jnp.ones((1, 1)), method=method, compute_expm=False
        ).tolist() == [[1]]
    with pytest.raises(ValueError, match="other"):
        sl.expm_frechet(jnp.zeros((1, 1)), jnp.ones((1, 1)), method="other")

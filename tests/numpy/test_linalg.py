"""Linear algebra."""

import numpy as np
import pytest

from tests.numpy.expressions import ARRAYS, check_jax, check_jit, check_numpy, lines

DATA = ARRAYS | {
    "A": ARRAYS["G"][:4, :4],
    "S": ARRAYS["G"][:4] @ ARRAYS["G"][:4].T + np.eye(4, dtype=np.float32),
    "B": ARRAYS["B"],
    "X": ARRAYS["G"][:, :3],
    "C": ARRAYS["C4"],
    "H": ARRAYS["C4"] + ARRAYS["C4"].conj().T,
    "I": np.array([[1, 2], [3, 5]]),
    "Z": np.zeros((4, 4), np.float32),
    "R1": np.outer(ARRAYS["G"][0, :4], ARRAYS["G"][1, :4]),
}

CASES = lines("""
jnp.cholesky(S)
jnp.cholesky(S,upper=True)
jnp.cholesky(H+9*np.eye(4))
jnp.cholesky(X)
jnp.cholesky(I)
abs(jnp.qr(X,'r'))
jnp.qr(X,'raw')
jnp.qr(C,'raw')
jnp.qr(X.T,'raw')
jnp.qr(X,'bad')
jnp.eigh(S).eigenvalues
jnp.eigvalsh(H,'U')
jnp.eigvalsh(S,'x')
abs(jnp.eigvals(C)).sum()
jnp.svd(X,compute_uv=False)
jnp.svdvals(B)
jnp.svd(S,hermitian=True,compute_uv=False)
jnp.svd(H,hermitian=True).S
jnp.det(A)
jnp.det(B)
jnp.det(I)
jnp.det(C)
jnp.det(np.eye(5))
jnp.det(np.zeros((0,0)))
jnp.det(X)
jnp.slogdet(A)
jnp.slogdet(C)
jnp.slogdet(Z)
jnp.slogdet(A,method='qr')
jnp.slogdet(B)
jnp.inv(A)
jnp.inv(B)
jnp.inv(C)
jnp.inv(I)
jnp.inv(X)
jnp.solve(A,A[0])
jnp.solve(A,A[:,:2])
jnp.solve(B,X[:3])
jnp.solve(B,X[0])
jnp.solve(C,A)
jnp.solve(A,X)
jnp.solve(A,1.)
jnp.pinv(X)
jnp.pinv(S,hermitian=True)
jnp.pinv(B)
jnp.pinv(R1)
jnp.lstsq(X,X[:,0])
jnp.lstsq(X,X[:,:2])
jnp.lstsq(X.T,X.T)
jnp.lstsq(R1,A)
jnp.lstsq(X,A)
jnp.matrix_rank(R1)
jnp.matrix_rank(B)
jnp.matrix_rank(X,rtol=.9)
jnp.matrix_rank(X,tol=1.)
jnp.matrix_rank(X[0])
jnp.cond(A)
jnp.cond(A,1)
jnp.cond(A,'fro')
jnp.cond(A,-2)
jnp.cond(A,np.inf)
jnp.cond(Z)
jnp.matrix_power(A,3)
jnp.matrix_power(I,0)
jnp.matrix_power(A,-2)
jnp.matrix_power(X,2)
jnp.matrix_power(A,1.5)
jnp.norm(X)
jnp.norm(X,axis=0)
jnp.norm(X,1)
jnp.norm(X,'fro')
jnp.norm(X,'nuc')
jnp.norm(X,2)
jnp.norm(X,-2)
jnp.norm(X,np.inf)
jnp.norm(X,-1)
jnp.norm(X,3,axis=1,keepdims=True)
jnp.norm(X[0],0)
jnp.norm(X[0],np.inf)
jnp.norm(X[0],-np.inf)
jnp.norm(B,axis=(0,2))
jnp.norm(B,axis=(1,2),ord='nuc',keepdims=True)
jnp.norm(B)
jnp.norm(C)
jnp.norm(I)
jnp.norm(B,1)
jnp.norm(X[0],'fro')
jnp.norm(X,'bad')
jnp.vector_norm(B)
jnp.vector_norm(B,axis=(0,1),keepdims=True,ord=1)
jnp.vector_norm(C,ord=3,axis=0)
jnp.matrix_norm(B)
jnp.matrix_norm(B,ord=1,keepdims=True)
jnp.norm(3.)
jnp.cross(X[0],X[1])
jnp.cross(X[0],A[0])
jnp.outer(X[0],A[0])
jnp.trace(B)
jnp.trace(I,dtype=float)
jnp.diagonal(B,offset=1)
jnp.multi_dot([X,X.T,X[:,0]])
jnp.multi_dot([X[:,0],X,X.T,X])
jnp.multi_dot([A])
jnp.multi_dot([A,X])
jnp.tensorinv(np.eye(24).reshape(4,6,8,3))
jnp.tensorsolve(np.eye(24).reshape(6,4,2,3,4),np.ones((6,4)))
jnp.matmul(A,A)
jnp.vecdot(X,X)
jnp.matrix_transpose(B)
jnp.tensordot(X,X.T,axes=1)
""")


@pytest.mark.parametrize("case", CASES)
def test_as_numpy(case):
    check_numpy(case, DATA, tol=0.001, module="linalg")


@pytest.mark.parametrize("case", CASES[::3])
def test_under_jit(case):
    check_jit(case, DATA, tol=0.001, module="linalg")


@pytest.mark.peer
@pytest.mark.parametrize("case", CASES)
def test_as_jax(case):
    check_jax(case, DATA, tol=0.001, module="linalg")

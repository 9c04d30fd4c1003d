"""Products of arrays: shapes that do not fit, conjugates, dtypes."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(2, 3, 4)).astype(np.float32), RNG.normal(size=(2, 4, 5)).astype(np.float32)
C = (RNG.normal(size=(3, 4)) + 1j * RNG.normal(size=(3, 4))).astype(np.complex64)


@pytest.mark.parametrize(
    "name, args",
    [
        ("dot", (A, B[0])),
        ("matmul", (A, B)),
        ("matmul", (A[0, 0], B[0])),
        ("inner", (A, A[0])),
        ("tensordot", (A, B, ((0, 2), (0, 1)))),
        ("tensordot", (A, A, 0)),
        ("kron", (A[0], B[0])),
        ("outer", (A[0, 0], B[0])),
        ("vdot", (C, C)),
        ("trace", (A, 1, 1, 2)),
        ("diagonal", (A, -1, 0, 2)),
    ],
)
def test_as_numpy(name, args):
    want = getattr(np, name)(*args)
    f = getattr(jnp, name)
    np.testing.assert_allclose(f(*args), want, rtol=1e-4, atol=1e-5)
    static = (1, 2, 3) if name in ("trace", "diagonal") else tuple(range(2, len(args)))
    jitted = calque.jit(f, static_argnums=static)(*args)
    np.testing.assert_allclose(jitted, want, rtol=1e-4, atol=1e-5)


def test_vectors_are_conjugated_where_numpy_does():
    np.testing.assert_allclose(jnp.vecdot(C, C), (C.conj() * C).sum(-1), rtol=1e-5)
    np.testing.assert_allclose(jnp.vecmat(C[0], C.T), C[0].conj() @ C.T, rtol=1e-4)
    np.testing.assert_allclose(jnp.matvec(C, C[0]), C @ C[0], rtol=1e-4)
    np.testing.assert_allclose(jnp.vecdot(A, A, axis=0), (A * A).sum(0), rtol=1e-5)


def test_dtypes():
    x = jnp.ones((2, 2), jnp.int8)
    assert jnp.matmul(x, x).dtype == jnp.int8
    assert jnp.matmul(x, x, preferred_element_type=jnp.int32).dtype == jnp.int32
    assert jnp.dot(x, jnp.ones(2, jnp.float16)).dtype == jnp.float16


@pytest.mark.parametrize(
    "call",
    [
        lambda: jnp.matmul(A, A),
        lambda: jnp.dot(A, A),
        lambda: jnp.matmul(2.0, A),
        lambda: jnp.vdot(A, B),
        lambda: jnp.matvec(A[0, 0], A[0, 0]),
        lambda: jnp.vecmat(A[0, 0], A[0, 0]),
        lambda: jnp.tensordot(A, B, 2),
        lambda: jnp.trace(A[0, 0]),
    ],
)
def test_shapes_that_do_not_fit(call):
    with pytest.raises((ValueError, TypeError)):
        call()


@pytest.mark.parametrize("call", [lambda: jnp.outer(A, A, out=A), lambda: jnp.trace(A, out=A)])
def test_out_is_refused(call):
    with pytest.raises(NotImplementedError, match=r"'out' argument.*use the result"):
        call()

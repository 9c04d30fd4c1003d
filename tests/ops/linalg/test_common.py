"""Small pieces that rules of linear algebra are made of, held against NumPy."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.core.avals import ShapedArray
from calque.ops.linalg import common

RNG = np.random.default_rng(0)
A = RNG.normal(size=(2, 3, 3)).astype(np.float32) + 3 * np.eye(3, dtype=np.float32)
C = (RNG.normal(size=(2, 3)) + 1j * RNG.normal(size=(2, 3))).astype(np.complex64)
F = np.dtype("float32")


def test_turned():
    np.testing.assert_array_equal(common.transposed(A), np.swapaxes(A, -1, -2))
    np.testing.assert_array_equal(common.adjoint(C), C.conj().T)
    np.testing.assert_array_equal(common.conjugated(C), C.conj())
    assert common.conjugated(A) is A
    np.testing.assert_array_equal(common.real(C), C.real)


@pytest.mark.parametrize("k", [-1, 0, 1])
def test_triangles(k):
    np.testing.assert_array_equal(common.tril(A, k), np.tril(A, k))
    np.testing.assert_array_equal(common.triu(A, k), np.triu(A, k))


def test_pieces():
    np.testing.assert_array_equal(common.diagonal(A), np.diagonal(A, axis1=1, axis2=2))
    np.testing.assert_array_equal(common.part(A, 2, 1, top=1, left=2), A[:, 1:3, 2:3])
    wide = np.asarray(common.enlarged(A, 4, 5))
    assert wide.shape == (2, 4, 5) and not wide[:, 3:].any() and not wide[:, :, 3:].any()
    np.testing.assert_array_equal(wide[:, :3, :3], A)
    v = A[:, 0]
    np.testing.assert_array_equal(common.rows(v, 2), np.stack([v, v], 1))
    np.testing.assert_array_equal(common.columns(v, 2), np.stack([v, v], 2))
    eye = np.asarray(common.eye(ShapedArray((2, 3, 3), F), start=1))
    np.testing.assert_array_equal(eye, np.stack([np.diag([0, 1, 1])] * 2))
    order = np.array([[2, 0, 1], [1, 2, 0]], np.int32)
    np.testing.assert_array_equal(
        common.take_rows(A, order), np.stack([a[o] for a, o in zip(A, order)])
    )


def test_products_and_solutions():
    np.testing.assert_allclose(common.matmul(A, A), A @ A, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(common.solve(A, A @ A), A, rtol=1e-3, atol=1e-4)
    for lower in (True, False):
        t = np.tril(A) if lower else np.triu(A)
        np.testing.assert_allclose(
            common.solve_triangular(t, t @ A, lower=lower), A, rtol=1e-3, atol=1e-4
        )
        right = common.solve_triangular(t, A @ t, left=False, lower=lower)
        np.testing.assert_allclose(right, A, rtol=1e-3, atol=1e-4)


def test_checks_name_the_function():
    aval = ShapedArray((4, 2, 3), F)
    assert common.check_matrix("qr", aval) == ((4,), 2, 3)
    with pytest.raises((TypeError, ValueError), match="lu"):
        common.check_matrix("lu", aval, square=True)
    with pytest.raises((TypeError, ValueError), match="qr"):
        common.check_matrix("qr", ShapedArray((3,), F))
    with pytest.raises(TypeError, match="qr does not accept dtype int32"):
        common.check_dtype("qr", ShapedArray((2, 2), np.dtype("int32")))
    with pytest.raises(NotImplementedError, match="qr does not accept dtype float16"):
        common.check_dtype("qr", ShapedArray((2, 2), np.dtype("float16")))
    assert common.check_batches("solve", (aval, 2), (ShapedArray((4, 5), F), 1)) == (4,)
    with pytest.raises((TypeError, ValueError), match="solve"):
        common.check_batches("solve", (aval, 2), (ShapedArray((3, 5), F), 1))


def test_batches_are_loops():
    f = calque.vmap(calque.vmap(common.tril))
    np.testing.assert_array_equal(f(np.stack([A, A])), np.tril(np.stack([A, A])))
    out, square = common.for_each(lambda a: (a.sum(), a * 2), [(A, 2)], [((), F), ((3, 3), F)])
    np.testing.assert_allclose(out, A.sum((1, 2)), rtol=1e-6)
    np.testing.assert_array_equal(square, A * 2)


def test_products_of_derivatives_ask_for_the_highest_precision():
    text = str(calque.make_jaxpr(lambda a: calque.jvp(jnp.linalg.cholesky, (a,), (a,)))(jnp.eye(3)))
    assert text.count("dot_general") == text.count("precision=(Precision.HIGHEST") > 0

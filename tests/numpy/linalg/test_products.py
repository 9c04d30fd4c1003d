"""Vector products."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.numpy.linalg.products import cheapest
from tests.numpy.expressions import ARRAYS, check_jax, check_jit, check_numpy, lines

DATA = ARRAYS | {
    "A": ARRAYS["X"],
    "S": ARRAYS["G"][:3, :3],
    "I": np.arange(6).reshape(2, 3),
}

CASES = lines("""
jnp.cross(A[0,:3],A[1,:3])
jnp.cross(A[0,:2],A[1,:2])
jnp.cross(A[0,:2],A[1,:3])
jnp.cross(A[:,:3],S,axisc=0)
jnp.cross(S,S[0],axis=0)
jnp.cross(A,A)
jnp.cross(I,I)
""")


@pytest.mark.parametrize("case", CASES)
def test_as_numpy(case):
    check_numpy(case, DATA)


@pytest.mark.parametrize("case", CASES[::3])
def test_under_jit(case):
    check_jit(case, DATA)


@pytest.mark.peer
@pytest.mark.parametrize("case", CASES)
def test_as_jax(case):
    check_jax(case, DATA)


@pytest.mark.parametrize("axes", [(0, 1, 2), (1, 0, 0), (-1, 0, 1)])
def test_axes_of_vectors(axes):
    axisa, axisb, axisc = axes
    rng = np.random.default_rng(0)
    a, b = (np.moveaxis(rng.normal(size=(4, 2, 3)), -1, k) for k in (axisa, axisb))
    got = jnp.cross(a, b, axisa=axisa, axisb=axisb, axisc=axisc)
    want = np.cross(a, b, axisa=axisa, axisb=axisb, axisc=axisc)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def costs(sizes):
    """The least number of multiplications, by trying every order."""
    if len(sizes) <= 2:
        return 0
    return min(
        costs(sizes[: k + 1]) + costs(sizes[k:]) + sizes[0] * sizes[k] * sizes[-1]
        for k in range(1, len(sizes) - 1)
    )


def cost_of(split, sizes, i, j):
    if i == j:
        return 0
    k = split[i, j]
    own = sizes[i] * sizes[k + 1] * sizes[j + 1]
    return own + cost_of(split, sizes, i, k) + cost_of(split, sizes, k + 1, j)


@pytest.mark.parametrize("seed", range(8))
def test_the_cheapest_order(seed):
    sizes = np.random.default_rng(seed).integers(1, 50, 7).tolist()
    assert cost_of(cheapest(sizes), sizes, 0, 5) == costs(sizes)


def test_products_of_several_matrices():
    rng = np.random.default_rng(1)
    xs = [rng.normal(size=s).astype(np.float32) for s in ((7,), (7, 3), (3, 9), (9, 2), (2,))]
    for part in (xs, xs[1:], xs[:4], xs[1:4], xs[1:3]):
        got, want = jnp.linalg.multi_dot(part), np.linalg.multi_dot(part)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    closed = calque.make_jaxpr(lambda *xs: jnp.linalg.multi_dot(xs))(*xs)
    assert [e.primitive.name for e in closed.eqns].count("dot_general") == 4


@pytest.mark.parametrize("n", [-3, -1, 0, 1, 2, 5, 10])
def test_powers(n):
    a = np.array([[[2.0, 1.0], [1.0, 1.0]], [[1.0, -1.0], [0.5, 2.0]]], np.float32)
    np.testing.assert_allclose(
        jnp.linalg.matrix_power(a, n), np.linalg.matrix_power(a, n), rtol=1e-4, atol=1e-5
    )
    if n > 0:  # by squaring
        closed = calque.make_jaxpr(lambda a: jnp.linalg.matrix_power(a, n))(a)
        count = [e.primitive.name for e in closed.eqns].count("dot_general")
        assert count == n.bit_length() + n.bit_count() - 2


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: jnp.cross(np.ones(4), np.ones(3)), ValueError, "either 2 or 3"),
        (lambda: jnp.linalg.cross(np.ones(2), np.ones(2)), ValueError, "3-dimensional vectors"),
        (lambda: jnp.linalg.outer(np.ones((2, 2)), np.ones(2)), ValueError, "one-dimensional"),
        (lambda: jnp.linalg.matrix_power(np.ones(3), 2), TypeError, "at least two-dim"),
        (lambda: jnp.linalg.matrix_power(np.ones((2, 3)), 2), TypeError, "square"),
        (lambda: jnp.linalg.matrix_power(np.ones((2, 2)), 1.5), TypeError, "must be an integer"),
        (lambda: jnp.linalg.multi_dot([np.eye(2)]), ValueError, "at least two arrays"),
        (lambda: jnp.linalg.multi_dot([np.eye(2), np.ones((3, 2))]), ValueError, "must match"),
        (lambda: jnp.linalg.multi_dot([np.eye(2), np.ones((2, 2, 2))]), ValueError, "two-dim"),
    ],
)
def test_refusals(call, error, words):
    with pytest.raises(error, match=words):
        call()

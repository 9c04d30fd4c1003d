"""Library functions that are traced once for all sizes: values for every length beside NumPy, and
how often they were traced."""

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import lax

LENGTHS = (20, 33, 2, 64, 1, 100, 31, 32, 7, 257, 0)  # the first is traced as it is


def vector(n, seed=0):
    return np.random.default_rng(n + seed).normal(size=n).astype(np.float32)


def traces_of(f, expected, sizes=LENGTHS, arguments=lambda n: (vector(n),), tol=1e-4):
    """Compare with NumPy at these sizes; how often the function was traced: once for the first,
    once for any."""
    traced = []

    @jax.jit
    def g(*args):
        traced.append(None)
        return f(*args)

    for n in sizes:
        args = arguments(n)
        got, want = jax.tree.leaves(g(*args)), jax.tree.leaves(expected(*args))
        assert len(got) == len(want)
        for a, b in zip(got, want):
            assert a.shape == np.shape(b), (n, a.shape, np.shape(b))
            np.testing.assert_allclose(
                a, b, rtol=tol, atol=tol * max(1.0, float(np.abs(b).max(initial=0))), err_msg=str(n)
            )
    return len(traced)


# ---------------------------------------------------------------- convolutions

PAIRS = ((20, 5), (33, 7), (64, 9), (100, 64), (7, 3), (8, 4), (90, 2), (300, 33))


def pair(n):
    return vector(n[0]), vector(n[1], 1)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_windows_of_any_size(mode):
    f, g = lambda x, y: jnp.convolve(x, y, mode), lambda x, y: np.convolve(x, y, mode)
    assert traces_of(f, g, PAIRS, pair) == 2
    f, g = lambda x, y: jnp.correlate(x, y, mode), lambda x, y: np.correlate(x, y, mode)
    assert traces_of(f, g, PAIRS[:4], pair) == 2


def test_windows_of_one_element_and_longer_than_the_signal():
    sizes = (*PAIRS[:3], (1, 1), (5, 1), (9, 1), (1, 6), (4, 9), (30, 31), (5, 90))
    assert traces_of(jnp.convolve, np.convolve, sizes, pair) <= 6
    f = jax.jit(jnp.convolve)
    f(*pair((9, 3))), f(*pair((8, 4)))
    with pytest.raises(ValueError, match="cannot be empty"):
        f(vector(0), vector(3))


def test_gradients_of_windows():
    f = jax.grad(lambda x, y: (jnp.convolve(x, y) ** 2).sum() / 2, (0, 1))

    def expected(x, y):
        out = np.convolve(x, y)
        return np.correlate(out, y, "valid"), np.correlate(out, x, "valid")

    assert traces_of(f, expected, PAIRS, pair) == 2


# ---------------------------------------------------------------- the gradient of a product


def others(x):
    return np.array([np.prod(np.delete(x, i)) for i in range(len(x))], np.float32)


def test_gradient_of_a_product():
    f = jax.grad(lambda x: x.prod())
    assert traces_of(f, others) == 3
    assert (
        traces_of(
            f, others, (9, 8, 1, 30), lambda n: (np.where(np.arange(n) % 9 == 3, 0, vector(n)),)
        )
        == 2
    )


def test_gradient_of_a_product_keeps_zeros_apart():
    for x in ([2.0, 0.0, 5.0], [0.0, 0.0, 5.0], [0.0], [3.0], [1e30, 0.0, 1e-30, 4.0]):
        x = np.array(x, np.float32)
        np.testing.assert_allclose(jax.grad(jnp.prod)(x), others(x), rtol=1e-6)


def test_gradients_of_products_along_axes():
    x = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float32)
    for axes in ((), (1,), (0, 2), (2, 0, 1)):
        ones, step = np.ones_like(x), 1e-3
        t = np.random.default_rng(1).normal(size=x.shape)

        def f(v):
            return np.prod(v, axis=axes)

        by_differences = (f(x + step * t.astype(np.float64)) - f(x - step * t)) / (2 * step)
        got = jax.jvp(lambda v: jnp.prod(v, axis=axes), (x,), (t.astype(np.float32) * ones,))[1]
        np.testing.assert_allclose(got, by_differences, rtol=1e-2, atol=1e-3)
    second = jax.hessian(lambda v: v.prod())(x[0, 0])
    want = np.array(
        [[0 if i == j else np.prod(np.delete(x[0, 0], [i, j])) for j in range(5)] for i in range(5)]
    )
    np.testing.assert_allclose(second, want, rtol=1e-4, atol=1e-6)


# ---------------------------------------------------------------- images


def test_nearest_pixels():
    def expected(x):
        n = len(x)
        at = np.floor(
            (np.arange(2 * n, dtype=np.float32) + np.float32(0.5))
            * np.float32(n)
            / np.float32(2 * n)
        )
        return x[at.astype(int)]

    assert (
        traces_of(
            lambda x: jax.image.resize(x, (2 * x.shape[0],), "nearest"), expected, LENGTHS[:-1]
        )
        == 2
    )


def linear(n_out):
    """Weights that are worked out in float64, as of an image that is not made smaller."""

    def expected(x):
        n = len(x)
        m = n_out(n)
        centre = (np.arange(m) + 0.5) * n / m - 0.5
        return np.interp(centre, np.arange(n), x).astype(np.float32)

    return expected


def test_resized_to_a_size_that_depends_on_the_image():
    def double(x):
        return jax.image.resize(x, (2 * x.shape[0],), "linear")

    assert traces_of(double, linear(lambda n: 2 * n), LENGTHS[:-1]) <= 4


def test_images_of_any_size_to_one_size():
    def to_300(x):
        return jax.image.resize(x, (300,), "linear")

    assert traces_of(to_300, linear(lambda n: 300), LENGTHS[:-1]) <= 4
    free, fixed = (
        jax.jit(lambda x: jax.image.resize(x, (9, x.shape[1] + 1), "cubic"), dynamic=d)
        for d in ("auto", "never")
    )
    for n in (20, 30, 17, 41):
        x = np.outer(vector(12), vector(n))
        np.testing.assert_allclose(free(x), fixed(x), atol=1e-5)


# ---------------------------------------------------------------- entries taken out

DELETED = [
    (0, LENGTHS[:-1], 3),  # of one element nothing is left, by a program of its own
    (-1, LENGTHS[:-1], 3),
    (np.array([0, 5, -2, 5]), (20, 33, 7, 64, 8, 100), 4),  # 5 and -2 are the same of 7
    (np.array([], np.int32), LENGTHS[:-1], 2),
    (slice(None, None, 2), (20, 33, 7, 64, 101), 2),
    (slice(-3, None), (20, 33, 7, 64, 101), 2),
    (slice(3, 1, -1), (20, 33, 7, 64, 101), 2),
]


@pytest.mark.parametrize(("obj", "sizes", "most"), DELETED, ids=lambda x: str(x)[:20])
def test_delete(obj, sizes, most):
    assert traces_of(lambda x: jnp.delete(x, obj), lambda x: np.delete(x, obj), sizes) <= most


def test_delete_at_a_traced_place():
    f, g = lambda x: jnp.delete(x, jnp.argmax(x)), lambda x: np.delete(x, np.argmax(x))
    assert traces_of(f, g, LENGTHS[:-1]) == 3  # one for size 1, of which nothing is left


def test_delete_outside():
    f = jax.jit(lambda x: jnp.delete(x, 5))
    f(vector(9)), f(vector(10))
    with pytest.raises(ValueError, match="out of bounds"):
        f(vector(4))
    many = jax.jit(lambda x: jnp.delete(x, np.array([2, 40])))
    for n in (60, 50, 45):
        np.testing.assert_array_equal(many(vector(n)), np.delete(vector(n), [2, 40]))
    with pytest.raises(IndexError, match="index 40 is out of bounds for axis 0 with size 30"):
        many(vector(30))


def test_delete_rows():
    f = jax.jit(lambda x: jnp.delete(x, np.array([1, -1]), axis=0))
    for n in (5, 6, 9, 2):
        x = np.outer(vector(n), [1.0, 2.0]).astype(np.float32)
        np.testing.assert_array_equal(f(x), np.delete(x, [1, -1], axis=0))


def test_nonzero_of_a_free_size():
    f, g = (
        lambda x: jnp.nonzero(x > 0, size=x.shape[0], fill_value=-1)[0],
        lambda x: np.flatnonzero(x > 0),
    )

    def padded(x):
        return np.pad(g(x), (0, len(x) - len(g(x))), constant_values=-1)

    assert traces_of(f, padded, (20, 33, 7, 64, 2)) == 2


# ---------------------------------------------------------------- associative scans


def affine(a, b):
    return a[0] * b[0], a[1] * b[0] + b[1]


def in_turn(x):
    out, c = [], (np.float32(1), np.float32(0))
    for v in x:
        c = affine(c, (np.tanh(v), v))
        out.append(c)
    return tuple(np.array([o[k] for o in out], np.float32) for k in range(2))


def test_associative_scans():
    def f(x):
        return lax.associative_scan(affine, (jnp.tanh(x), x))

    assert traces_of(f, in_turn) == 3

    def backwards(x):
        return lax.associative_scan(jnp.maximum, x, reverse=True)

    assert traces_of(backwards, lambda x: np.maximum.accumulate(x[::-1])[::-1], LENGTHS[:-1]) == 2


def test_associative_scan_along_an_axis():
    def rows(n):
        return (np.random.default_rng(n).normal(size=(3, n, 2)).astype(np.float32),)

    def f(x):
        return lax.associative_scan(jnp.add, x, axis=1)

    assert traces_of(f, lambda x: np.cumsum(x, axis=1), LENGTHS[:-1], rows) == 2


def test_gradient_of_an_associative_scan():
    f = jax.grad(lambda x: (lax.associative_scan(jnp.add, x) ** 2).sum() / 2)

    def expected(x):
        return np.cumsum(np.cumsum(x)[::-1])[::-1]

    assert traces_of(f, expected, (20, 33, 7, 64, 1)) == 2


def test_associative_scan_of_what_divides():
    """What fills the last block are elements, so derivatives stay finite."""
    f = jax.grad(lambda x: lax.associative_scan(lambda a, b: a * b / (a + b), x)[-1])
    for n in (9, 8, 3):
        x = np.abs(vector(n)) + 1
        assert np.isfinite(f(x)).all()
        np.testing.assert_allclose(jax.jit(f)(x), f(x), rtol=1e-4)

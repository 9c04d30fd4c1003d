"""The series of primitives that are linear, bilinear or quotients, and of programs."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.transforms.functions.jet import jet
from tests.transforms.functions.shared import double, series_agree  # noqa: F401

pytestmark = pytest.mark.usefixtures("double")
A, B = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([[1.0, 0.2], [0.3, 4.0]])


def custom(x):
    f = calque.custom_jvp(lambda x: jnp.exp(x))
    f.defjvp(lambda p, t: (f(p[0]), f(p[0]) * t[0]))
    g = calque.custom_vjp(lambda x: jnp.sin(x) * x)
    g.defvjp(lambda x: (g(x), x), lambda x, ct: (ct * (jnp.cos(x) * x + jnp.sin(x)),))
    return f(g(x)) + calque.jit(f)(x) * calque.jit(g)(x)


def stack(x):
    return jnp.stack([x * x, x, jnp.sin(x)])


ARRAYS = {
    "products": lambda x: (A + x * B) @ (B * jnp.sin(x)) @ stack(x)[:2],
    "convolution": lambda x: jnp.convolve(stack(x), stack(jnp.cos(x))),
    "layout": lambda x: jnp.pad(stack(x)[::-1].reshape(3, 1).T, 1, constant_values=x),
    "reductions": lambda x: (stack(x).sum(), stack(x).max(), stack(x).min(), stack(x).prod(),
    stack(x).mean()),
    "running": lambda x: (jnp.cumsum(stack(x)), jnp.cumprod(stack(x)), lax.cummax(stack(x)),
    lax.cumlogsumexp(stack(x))),
    "sorting": lambda x: (jnp.sort(stack(x)), lax.top_k(stack(x), 2)[0], jnp.median(stack(x))),
    "choice": lambda x: jnp.where(stack(x) > 0.5, stack(x), stack(jnp.exp(x))),
    "indexing": lambda x: stack(x)[jnp.array([2, 0, 0])] * lax.dynamic_slice(stack(x), (1,), (1,)),
    "scatter": lambda x: jnp.zeros(3).at[1].add(x * x).at[0].set(jnp.sin(x)).at[1].multiply(x),
    "update": lambda x: lax.dynamic_update_slice(stack(x), stack(x)[:2] * x, (1,)),
    "fourier": lambda x: jnp.abs(jnp.fft.rfft(stack(x))),
    "softmax": lambda x: calque.nn.softmax(stack(x)) * calque.nn.logsumexp(stack(x)),
    "cholesky": lambda x: jnp.linalg.cholesky(A + x * np.eye(2)),
    "inverse": lambda x: jnp.linalg.inv(A + x * B) * jnp.linalg.det(A + x * B),
    "eigh": lambda x: jnp.linalg.eigh(A + x * (B + B.T)),
    "qr and svd": lambda x: (jnp.linalg.qr(A + x * B), jnp.linalg.svd(A + x * B, compute_uv=False)),
    "vmap": lambda x: calque.vmap(lambda y: jnp.sin(y) * x)(stack(x)),
    "grad": lambda x: calque.grad(lambda y: jnp.sin(y) * y**3)(x),
}  # fmt: skip


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays(name):
    series_agree(ARRAYS[name], order=4)


PROGRAMS = {
    "jit": lambda x: calque.jit(lambda y: (jnp.sin(y) * x, y, 3.0))(x * x),
    "checkpoint": calque.checkpoint(lambda x: jnp.sin(x) * x),
    "scan": lambda x: lax.scan(
        lambda c, y: ((c[0] * x + y, x), c[0] * y), (x, 0.0), jnp.arange(3.0)
    ),
    "scan over rows": lambda x: lax.scan(lambda c, y: (c + 1, (c * y, 1.0)), 0, stack(x))[1],
    "fori": lambda x: lax.fori_loop(0, 4, lambda i, v: jnp.sin(v) * x + i, 1.0),
    "while": lambda x: lax.while_loop(
        lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * jnp.exp(x)), (0, x)
    )[1],
    "cond": lambda x: lax.cond(x > 0, lambda y: (jnp.sin(y) * x, 1.0), lambda y: (y, x), x),
    "custom rules": custom,
    "linear solve": lambda x: lax.custom_linear_solve(
        lambda v: (2 + x) * v, stack(x), lambda mv, b: b / (2 + x), symmetric=True
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    series_agree(PROGRAMS[name], order=3)


@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: x - y,
        lambda x, y: x * y,
        lambda x, y: x / y,
        lambda x, y: lax.square(x) + lax.square(y),
        lambda x, y: lax.integer_pow(x, 7) + lax.integer_pow(y, -3),
        lambda x, y: lax.integer_pow(x, 0) + y,
    ],
)
def test_series_as_polynomials(f):
    """The function of two truncated polynomials, beside its values on a circle."""
    a, b = np.array([0.7, 1.3, -0.4, 0.2]), np.array([1.1, -0.5, 0.3, 0.6])
    (value,), (found,) = jet(lambda x, y: [f(x, y)], [a[0], b[0]], [list(a[1:]), list(b[1:])], 3)
    n, r = 64, 0.05
    t = r * np.exp(2j * np.pi * np.arange(n) / n)
    x, y = (np.polynomial.polynomial.polyval(t, c) for c in (a, b))
    want = (np.fft.fft(np.asarray(f(x, y))) / n).real[:4] / r ** np.arange(4)
    np.testing.assert_allclose([value, *found], want, rtol=1e-9, atol=1e-9)


def test_a_loop_carries_series_only_where_one_arises():
    closed = calque.make_jaxpr(
        lambda x: jet(
            lambda x: lax.fori_loop(0, 3, lambda i, c: (c[0] + 1, c[1] * x), (0.5, 1.0)), [x],
            [[1.0, 0.0]], 2,
        )[0]
    )(2.0)  # fmt: skip
    (loop,) = [e for e in closed.eqns if e.primitive.name in ("scan", "while")]
    counter, steady, grown, first, second = range(5)
    assert len(loop.outvars) == len((counter, steady, grown, first, second))

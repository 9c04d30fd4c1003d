"""Taylor mode beside nested forward mode, and beside JAX's."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.experimental.jet import (
    def_comp,
    def_deriv,
    deflinear,
    defzero,
    fact,
    jet,
    jet2,
    jet_rules,
)
from calque.extend.core import Primitive
from tests import peers

ORDER = 5
A, B = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([[1.0, 0.2], [0.3, 4.0]])


@pytest.fixture(autouse=True)
def _double():
    with calque.config.override("calque_enable_x64", True):
        yield


def nested(fun, x, order=ORDER):
    """The derivatives of order 1 .. order, each as one more jvp."""
    found = []
    for _ in range(order):
        fun = (lambda g: lambda x: calque.jvp(g, (x,), (1.0,))[1])(fun)
        found.append(fun(x))
    return found


def check(fun, x=0.7, order=ORDER, tol=1e-10):
    value, series = jet(fun, (x,), ((1.0,) + (0.0,) * (order - 1),))
    wants, gots = [calque.tree.leaves(t) for t in nested(fun, x, order)], calque.tree.leaves(series)
    for i, v in enumerate(calque.tree.leaves(value)):
        np.testing.assert_allclose(v, calque.tree.leaves(fun(x))[i], rtol=1e-14)
        for n, want in enumerate(wants):
            np.testing.assert_allclose(gots[i * order + n], want[i], rtol=tol, atol=tol)


def custom(x):
    f = calque.custom_jvp(lambda x: jnp.exp(x))
    f.defjvp(lambda p, t: (f(p[0]), f(p[0]) * t[0]))
    g = calque.custom_vjp(lambda x: jnp.sin(x) * x)
    g.defvjp(lambda x: (g(x), x), lambda x, ct: (ct * (jnp.cos(x) * x + jnp.sin(x)),))
    return f(g(x)) + calque.jit(f)(x) * calque.jit(g)(x)


ELEMENTWISE = {
    "circular": lambda x: jnp.sin(x) * jnp.cos(x) + jnp.tan(x),
    "exponential": lambda x: jnp.exp(x) + jnp.expm1(x) * jnp.exp2(x),
    "logarithm": lambda x: jnp.log(x) * jnp.log1p(x),
    "hyperbolic": lambda x: jnp.tanh(x) / jnp.cosh(x) + jnp.sinh(x),
    "inverses": lambda x: (
        jnp.arcsin(x) + jnp.arccos(x) + jnp.arctan(x) + jnp.arcsinh(x) + jnp.arctanh(x)
    ),
    "acosh": lambda x: jnp.arccosh(x + 1),
    "atan2": lambda x: jnp.arctan2(x, 1 + x * x),
    "powers": lambda x: x**5 + x**-3 + x**2.5 + x**x + jnp.float_power(2.0, x),
    "roots": lambda x: jnp.sqrt(x) + lax.rsqrt(x) + jnp.cbrt(x),
    "division": lambda x: jnp.sin(x) / (1 + x * x) - 3 / x + x / 2,
    "error function": lambda x: lax.erf(x) + lax.erfc(x) * lax.erf_inv(x),
    "gamma": lambda x: lax.lgamma(x) + lax.digamma(x) + lax.bessel_i0e(x),
    "logistic": lambda x: lax.logistic(x) + calque.nn.softplus(x) + calque.nn.gelu(x),
    "pieces": lambda x: (
        jnp.abs(x - 1) * jnp.maximum(x, x * x)
        + jnp.clip(x, 0.0, 2.0)
        + calque.nn.relu(x)
        + jnp.floor(x)
    ),
}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise(name):
    check(ELEMENTWISE[name])


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
    check(ARRAYS[name], order=4)


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
    check(PROGRAMS[name], order=3)


def test_curves_of_several_arguments():
    # along x(s) = 1 + 2 s + 3 s^2, y(s) = 2 - s the product is 2 + 3 s + 4 s^2 - 3 s^3
    value, series = jet(
        lambda x, y: x * y, (1.0, 2.0), ((2.0, 3.0, 0.0), (-1.0, 0.0, 0.0)), factorial_scaled=False
    )
    np.testing.assert_allclose([value, *series], [2, 3, 4, -3])
    value, series = jet(lambda x, y: x * y, (1.0, 2.0), ((2.0, 6.0, 0.0), (-1.0, 0.0, 0.0)))
    np.testing.assert_allclose([value, *series], [2, 3, 8, -18])


def test_within_other_transformations():
    def terms(x):
        return jet(jnp.sin, (x,), ((1.0, 0.0),))[1]

    x = jnp.arange(3.0)
    wanted = np.array([np.cos(x), -np.sin(x)])
    np.testing.assert_allclose(calque.vmap(terms)(x), wanted, atol=1e-15)
    np.testing.assert_allclose(calque.jit(calque.vmap(terms))(x), wanted, atol=1e-15)
    np.testing.assert_allclose(calque.vmap(calque.grad(lambda x: terms(x)[1]))(x), -np.cos(x))
    first, _ = jet(lambda x: terms(x)[1], (1.0,), ((1.0, 0.0),))[1]
    np.testing.assert_allclose(first, -np.cos(1.0))


def test_what_does_not_vary():
    value, series = jet(lambda i, x: (x * i, i, x > 0, 2), (3, 2.0), ((0, 0), (1.0, 0.0)))
    assert calque.tree.map(float, value) == (6.0, 3.0, 1.0, 2.0)
    assert calque.tree.map(float, series) == ([3.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0])
    assert jet(jnp.sin, (1.0,), ((),))[1] == []
    assert jet(lambda x: 3 * x if x > 0 else -x, (1.0,), ((1.0,),))[1] == [3.0]


@pytest.mark.parametrize("fun", [jnp.sin, jnp.tanh, lax.erf, jnp.sqrt, lambda x: x**-3, jnp.arctan])
def test_work_grows_with_the_square_of_the_order(fun):
    def size(order):
        return len(
            calque.make_jaxpr(lambda x: jet(fun, (x,), ((1.0,) + (0.0,) * (order - 1),)))(0.5).eqns
        )

    assert size(24) < 4.5 * size(12)


@pytest.mark.parametrize(
    "primals, series, error, text",
    [
        ((1.0,), ((1.0,), (1.0,)), ValueError, "given 1 primals but 2 series"),
        (
            (1.0, 2.0),
            ((1.0, 0.0), (1.0,)),
            ValueError,
            r"inconsistent lengths .* series\[0\] has 2, series\[1\] has 1",
        ),
        (
            (np.ones(3),),
            ((1.0,),),
            ValueError,
            r"series\[0\]\[0\] of f must have the shape .* \(3,\), got \(\)",
        ),
        (({"a": 1.0},), ((1.0,),), ValueError, "primal value at position 0 is not an array"),
        ((3,), ((1,),), TypeError, r"primals\[0\] of f has type int64\[\], which is constant"),
        (3.0, ((1.0,),), TypeError, "primals must be a tuple or list"),
        ((3.0,), (1.0,), TypeError, r"series\[0\] must be a tuple or list"),
    ],
)
def test_bad_input(primals, series, error, text):
    def f(*args):
        return args[0]

    with pytest.raises(error, match=text):
        jet(f, primals, series)


@pytest.mark.peer
@pytest.mark.parametrize("scaled", [True, False])
def test_beside_jax(scaled):
    peers.jax()
    theirs = pytest.importorskip("jax.experimental.jet").jet
    import jax.numpy as their_jnp

    x = np.array([0.3, 0.8], np.float32)
    for name in ("sin", "exp", "log", "tanh", "sqrt", "square", "reciprocal", "sinh"):
        series = ([x * 2, -x, x * x],)
        got = jet(getattr(jnp, name), (x,), series, factorial_scaled=scaled)
        want = theirs(getattr(their_jnp, name), (x,), series, factorial_scaled=scaled)
        peers.compare(got, want, 1e-4)


# ---------------------------------------------------------------- the table of rules


@pytest.fixture
def cube_p():
    cube_p = Primitive("cube")
    cube_p.def_impl(lambda x: x**3)
    cube_p.def_abstract_eval(lambda x: x)
    yield cube_p
    jet_rules.pop(cube_p, None)


def test_a_primitive_of_ones_own_has_the_series_of_its_rule(cube_p):
    assert cube_p not in jet_rules
    with pytest.raises(NotImplementedError, match="cube"):
        jet(cube_p.bind, (2.0,), ((1.0, 0.0),))
    for define in (
        lambda: def_deriv(cube_p, lambda x: 3 * x**2),
        lambda: def_comp(cube_p, lambda x: x * x * x),
        lambda: jet_rules.update(
            {cube_p: lambda primals, series: jet2(lambda x: x**3, primals, series)}
        ),
    ):
        define()
        assert cube_p in jet_rules and cube_p in list(jet_rules)
        for f in (cube_p.bind, calque.jit(cube_p.bind)):
            check_series = jet(lambda x: f(jnp.sin(x)), (0.7,), ((1.0, 0.5, 0.25),))
            want = jet(lambda x: jnp.sin(x) ** 3, (0.7,), ((1.0, 0.5, 0.25),))
            np.testing.assert_allclose(
                calque.tree.leaves(check_series), calque.tree.leaves(want), rtol=1e-12
            )


def test_rules_of_the_table_are_those_of_jet_and_can_be_replaced():
    x, s = [0.5, 2.0], [[1.0, 0.5], [0.25, 1.0]]
    value, series = jet_rules[lax.mul_p](
        [jnp.float64(v) for v in x], [list(map(jnp.float64, t)) for t in s]
    )
    np.testing.assert_allclose([value, *series], [1.0, 2.125, 1.0 + 0.25 + 0.5], rtol=1e-12)
    assert len(jet_rules) > 100 and lax.sin_p in jet_rules
    want = jet(jnp.exp, (0.5,), ((1.0, 0.0),))[1]
    try:
        defzero(lax.sin_p)
        assert [float(t) for t in jet(jnp.sin, (0.5,), ((1.0, 0.0),))[1]] == [0.0, 0.0]
        jet_rules[lax.mul_p] = lambda p, s, f=jet_rules[lax.mul_p]: f(
            p, s
        )  # within the recurrence of exp as well
        deflinear(lax.neg_p)
        np.testing.assert_allclose(
            jet(lambda x: -jnp.exp(x), (0.5,), ((1.0, 0.0),))[1], -np.array(want)
        )
    finally:
        for p in (lax.sin_p, lax.neg_p, lax.mul_p):
            del jet_rules[p]
    assert float(jet(jnp.sin, (0.0,), ((1.0, 0.0),))[1][0]) == 1.0
    with pytest.raises(KeyError):
        jet_rules[lax.lt_p, None]
    with pytest.raises(TypeError, match="primitive"):
        jet_rules["sin"] = len


def test_a_rule_with_too_few_terms_is_refused(cube_p):
    jet_rules[cube_p] = lambda primals, series: (primals[0] ** 3, series[0][:1])
    with pytest.raises(ValueError, match=r"jet rule of cube.* gave 1 terms where 2"):
        jet(cube_p.bind, (2.0,), ((1.0, 0.0),))


def test_factorials():
    assert [fact(n) for n in range(4)] == [1.0, 1.0, 2.0, 6.0]

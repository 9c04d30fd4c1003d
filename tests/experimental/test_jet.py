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


@pytest.fixture(autouse=True)
def _double():
    with calque.config.override("calque_enable_x64", True):
        yield


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


def test_the_series_of_the_logistic_function_has_a_name():
    x, terms = np.float32(0.3), [np.float32(1), np.float32(0.5)]
    value, series = calque.experimental.jet._logistic_taylor((x,), (terms,))
    expected, expected_series = jet(calque.nn.sigmoid, (x,), (terms,))
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    np.testing.assert_allclose(series, expected_series, rtol=1e-5)

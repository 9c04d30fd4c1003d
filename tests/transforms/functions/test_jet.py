"""Power series through functions, beside nested forward mode."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.core.trace import jaxpr_as_fun
from calque.experimental import jet as public
from calque.transforms.functions.jet import (
    by_argument,
    coefficients,
    factorials,
    jet,
    jet_jaxpr,
    times,
)
from tests.transforms.functions.shared import double, series_agree  # noqa: F401

pytestmark = pytest.mark.usefixtures("double")


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
    series_agree(ELEMENTWISE[name])


@pytest.mark.parametrize("fun", [jnp.sin, jnp.tanh, lax.erf, jnp.sqrt, lambda x: x**-3, jnp.arctan])
def test_work_grows_with_the_square_of_the_order(fun):
    def size(order):
        return len(
            calque.make_jaxpr(lambda x: public.jet(fun, (x,), ((1.0,) + (0.0,) * (order - 1),)))(
                0.5
            ).eqns
        )

    assert size(24) < 4.5 * size(12)


def test_values_without_a_series_have_none():
    outs, found = jet(lambda x, y: [x * y, y, 2.0], [3.0, 4.0], [[1.0, None], None], 2)
    assert [float(o) for o in outs] == [12.0, 4.0, 2.0]
    assert [float(found[0][0]), found[0][1], found[1], found[2]] == [4.0, None, None, None]


def test_coefficients_that_cancel_are_known_only_where_nothing_is_computed():
    (out,), (series,) = jet(lambda x: [jnp.sin(x)], [0.0], [[1.0, 0.0, 0.0]], 3)
    np.testing.assert_allclose([out, *series], [0, 1, 0, -1 / 6], atol=1e-15)


def test_rows_of_coefficients_and_back():
    flat, mask = [1.0, 2.0, 3.0, 4.0], (True, False, True)
    rows = by_argument(flat, mask, 2)
    assert rows == [[1.0, 2.0], None, [3.0, 4.0]]
    assert coefficients([0.0, 0.0, 0.0], rows) == flat
    filled = coefficients([np.ones(2)], [[None, np.ones(2)]])
    assert [v.tolist() for v in map(np.asarray, filled)] == [[0, 0], [1, 1]]


def test_programs_of_series():
    closed = calque.make_jaxpr(lambda x, y: (x * x, y))(1.0, 2.0)
    program, mask = jet_jaxpr(closed, (True, False), 2)
    assert mask == (True, False) and jet_jaxpr(closed, (True, False), 2)[0] is program
    outs = jaxpr_as_fun(program)(3.0, 5.0, 1.0, 0.0)
    np.testing.assert_allclose(outs, [9, 5, 6, 1])
    asked, mask = jet_jaxpr(closed, (True, False), 1, (False, True))
    assert mask == (True, True)
    np.testing.assert_allclose(jaxpr_as_fun(asked)(3.0, 5.0, 1.0), [9, 5, 6, 0])


def test_numbers():
    assert factorials(5) == [1, 2, 6, 24, 120] and factorials(0) == []
    x = jnp.ones(2, "bfloat16")
    assert times(x, 1) is x and times(None, 3) is None
    assert times(x, 3.0).dtype == x.dtype and times(x, 3.0).tolist() == [3, 3]


def test_a_value_that_leaves_its_trace_is_refused():
    kept = []
    jet(lambda x: [kept.append(x) or x], [1.0], [[1.0]], 1)
    with pytest.raises(calque.errors.UnexpectedTracerError):
        jnp.sin(kept[0])

"""Special functions: values and derivatives as in JAX, at ordinary points and at the edges."""

import math
from typing import Any

import numpy as np
import pytest
import scipy.special as reference

import calque
import calque.numpy as jnp
from calque.scipy import special
from tests.ops.helpers import x64
from tests.peers import compare, jax


def F(*x):
    return np.array(x, np.float32)


POINTS = F(
    -30,
    -5.5,
    -3,
    -2.5,
    -1,
    -0.5,
    -1e-3,
    0,
    1e-3,
    0.1,
    0.3,
    0.5,
    0.9,
    1,
    1.5,
    2,
    3,
    4.5,
    10,
    30,
    100,
    np.inf,
    -np.inf,
    np.nan,
)
ORDINARY = F(-5.5, -2.5, -0.5, 0.1, 0.3, 0.5, 0.9, 1.5, 3, 4.5, 10)
PROBABILITIES = F(
    0,
    1e-30,
    1e-8,
    1e-4,
    0.01,
    0.04,
    0.06,
    0.2,
    0.5,
    0.7,
    0.96,
    0.999,
    0.9999999,
    1,
    1.5,
    -0.1,
    np.nan,
)
LEFT, RIGHT = (
    F(*v)
    for v in zip(*((a, b) for a in (0.5, 1, 2, 3.5, 10, 50) for b in (0.1, 0.7, 1, 2, 5, 9, 40)))
)
UNARY = [
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfinv",
    "expit",
    "factorial",
    "gamma",
    "gammaln",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "log_ndtr",
    "logit",
    "loggamma",
    "ndtr",
]
BINARY = [
    "beta",
    "betaln",
    "boxcox",
    "boxcox1p",
    "comb",
    "gammainc",
    "gammaincc",
    "kl_div",
    "poch",
    "rel_entr",
    "xlog1py",
    "xlogy",
]


@pytest.mark.peer
@pytest.mark.parametrize("name", [*UNARY, "gammasgn"])
def test_functions_of_one_number(name: str) -> None:
    ours, peer = getattr(special, name), getattr(jax().scipy.special, name)
    compare(ours(POINTS), peer(POINTS), 2e-5)
    compare(calque.jit(ours)(POINTS), peer(POINTS), 2e-5)
    if name != "gammasgn":
        compare(
            calque.vmap(calque.grad(ours))(ORDINARY), jax().vmap(jax().grad(peer))(ORDINARY), 3e-4
        )


@pytest.mark.peer
@pytest.mark.parametrize("name", ["ndtri", "logit", "entr", "erfinv"])
def test_functions_of_probabilities(name: str) -> None:
    ours, peer = getattr(special, name), getattr(jax().scipy.special, name)
    compare(ours(PROBABILITIES), peer(PROBABILITIES), 2e-5)
    inner = PROBABILITIES[3:11]
    compare(calque.vmap(calque.grad(ours))(inner), jax().vmap(jax().grad(peer))(inner), 3e-4)


@pytest.mark.peer
@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_numbers(name: str) -> None:
    ours, peer = getattr(special, name), getattr(jax().scipy.special, name)
    for args in ((LEFT, RIGHT), (RIGHT[:8], 2)):
        got, want = ours(*args), np.asarray(peer(*args))
        if name == "poch":  # JAX divides numbers that are infinite in float32
            got = jnp.where(jnp.isfinite(want), got, want)
        compare(got, want, 1e-4)
    some = slice(0, 24)
    got = calque.vmap(calque.grad(ours, 1))(LEFT[some], RIGHT[some])
    compare(got, jax().vmap(jax().grad(peer, 1))(LEFT[some], RIGHT[some]), 1e-3)


@pytest.mark.peer
def test_the_rest() -> None:
    peer = jax().scipy.special
    cases: list[Any] = [
        lambda m: m.betainc(LEFT, 2.0, 0.3),
        lambda m: m.polygamma(2, LEFT),
        lambda m: m.zeta(LEFT + 1, 2.0),
        lambda m: m.multigammaln(LEFT + 2, 3),
        lambda m: m.bernoulli(20),
        lambda m: m.comb(5, F(0, 1, 2), repetition=True),
        lambda m: m.logsumexp(LEFT),
        lambda m: m.softmax(LEFT),
    ]
    for case in cases:
        compare(case(special), case(peer), 2e-5)


def test_zeros_of_products() -> None:
    assert (
        float(special.xlogy(0.0, 0.0))
        == float(special.xlog1py(0.0, -1.0))
        == float(special.entr(0.0))
        == 0
    )
    assert float(calque.grad(special.xlogy)(0.0, 2.0)) == pytest.approx(np.log(2))


def test_bad_arguments() -> None:
    for bad in (
        lambda: special.ndtr(1),
        lambda: special.log_ndtr(1.0, 2.5),
        lambda: special.gammaln([1.0]),
    ):
        with pytest.raises(TypeError):
            bad()
    for bad in (
        lambda: special.entr(1j),
        lambda: special.bernoulli(-1),
        lambda: special.log_ndtr(1.0, 31),
    ):
        with pytest.raises(ValueError):
            bad()


# ---------------------------------------------------------------- arguments


def test_complex_numbers():
    z = np.array([0.5 + 1j, -2.5 + 0.25j, 3 - 2j, -4.0 + 1e-3j, 12 + 0j, -0.25 - 8j], np.complex128)
    with x64():
        np.testing.assert_allclose(special.gamma(z), reference.gamma(z), rtol=1e-12)
        np.testing.assert_allclose(special.expit(z), 1 / (1 + np.exp(-z)), rtol=1e-12)
        np.testing.assert_allclose(special.logit(z), np.log(z / (1 - z)), rtol=1e-12)
        assert np.isnan(special.gamma(np.array([0, -1, -2], np.complex128))).all()
    assert special.gamma(z.astype(np.complex64)).dtype == "complex64"
    for name, error in (
        ("erf", TypeError),
        ("gammaln", TypeError),
        ("entr", ValueError),
        ("dawsn", ValueError),
    ):
        with pytest.raises(error, match="complex"):
            getattr(special, name)(z)


def test_refusals_and_weak_types():
    for f in (special.xlogy, special.betaln, special.zeta, special.gammainc):
        with pytest.raises(ValueError, match="shapes"):
            f(np.ones((3, 4), np.float32), np.ones(5, np.float32))
    with pytest.raises(ValueError, match="integer"):
        special.polygamma(0.5, 1.0)
    for f in (
        special.entr,
        lambda x: special.xlogy(x, x),
        lambda x: special.rel_entr(x, x),
        lambda x: special.kl_div(x, x),
    ):
        assert f(0.5).weak_type and not f(jnp.float32(0.5)).weak_type
    assert not special.ndtr(0.5).weak_type and not special.ndtri(0.5).weak_type


def test_logarithms_of_complex_numbers():
    z = np.array([1.5 + 2j, -2.5 - 3j, -0.5 + 0j, 0.25 + 30j, 100 - 1j], np.complex64)
    np.testing.assert_allclose(
        special.loggamma(z), reference.loggamma(z.astype(complex)), rtol=2e-6
    )
    np.testing.assert_allclose(
        special.xlogy(z, 0.5), reference.xlogy(z.astype(complex), 0.5 + 0j), rtol=2e-6
    )
    np.testing.assert_allclose(
        special.xlog1py(z, 0.5), reference.xlog1py(z.astype(complex), 0.5 + 0j), rtol=2e-6
    )
    np.testing.assert_allclose(special.boxcox(z, 0.5), (np.sqrt(z) - 1) / 0.5, rtol=2e-6)
    slope = calque.grad(special.loggamma, holomorphic=True)(3 + 1j)
    np.testing.assert_allclose(slope, reference.digamma(3 + 1j), rtol=2e-6)


@pytest.mark.parametrize("x", [0.2, 1.5, 7.0])
@pytest.mark.parametrize("power", [0.0, 1e-20, 1e-9, -1e-4, 0.3, -2.0])
def test_slopes_of_box_and_cox_by_the_power(x: float, power: float) -> None:
    """Near 0, where differences of the formula's terms have no digits left, as well."""
    log = np.log(np.float64(x))
    t = power * log
    terms = [t**k / math.factorial(k) / (k + 2) for k in range(60)]  # of g'(t), g = expm1(t) / t
    want = log**2 * sum(terms)
    bent = log**3 * sum([t**k / math.factorial(k) / (k + 3) for k in range(60)])
    with calque.enable_x64(True):
        slope = calque.grad(special.boxcox, 1)
        np.testing.assert_allclose(slope(x, power), want, rtol=1e-12)
        np.testing.assert_allclose(calque.grad(slope, 1)(x, power), bent, rtol=1e-11)
        np.testing.assert_allclose(calque.grad(special.boxcox1p, 1)(x - 1, power), want, rtol=1e-9)
        np.testing.assert_allclose(calque.grad(special.boxcox)(x, power), x ** (power - 1))
    np.testing.assert_allclose(slope(x, power), want, rtol=2e-5)


def test_slopes_of_box_and_cox_at_zero() -> None:
    assert float(calque.grad(special.boxcox, 1)(0.0, 0.5)) == 4.0
    assert float(calque.grad(special.boxcox)(2.0, 0.0)) == 0.5

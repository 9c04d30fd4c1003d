"""Special functions against series, quadrature and identities in plain Python, and JAX."""

import math

import numpy as np
import pytest
from scipy import integrate

from calque.core.primitives import REGISTRY
from calque.ops import special as S
from tests.ops.helpers import (
    call,
    check_batch,
    check_jvp,
    check_peer,
    derivative,
    same,
    specials,
    traced,
    values,
    x64,
)

X = np.abs(values("float64", (5,))) + 0.3
A = np.abs(values("float64", (5,), seed=1)) + 0.3


def quad(f, low, high):
    return integrate.quad(f, low, high, epsabs=1e-12)[0]


ONE = {
    "erf": math.erf,
    "erfc": math.erfc,
    "lgamma": math.lgamma,
    "digamma": lambda x: (math.lgamma(x + 1e-5) - math.lgamma(x - 1e-5)) / 2e-5,
    "bessel_i0e": lambda x: (
        math.exp(-x) / math.pi * quad(lambda t: math.exp(x * math.cos(t)), 0, math.pi)
    ),
    "bessel_i1e": lambda x: (
        math.exp(-x) / math.pi * quad(lambda t: math.exp(x * math.cos(t)) * math.cos(t), 0, math.pi)
    ),
}
TWO = {
    "polygamma": lambda m, x: (
        -((-1) ** m) * math.factorial(int(m)) * sum((x + k) ** -(m + 1) for k in range(200000))
    ),
    "zeta": lambda s, q: sum((q + k) ** -s for k in range(2000)),
    "igamma": lambda a, x: quad(lambda t: t ** (a - 1) * math.exp(-t), 0, x) / math.gamma(a),
    "igammac": lambda a, x: quad(lambda t: t ** (a - 1) * math.exp(-t), x, np.inf) / math.gamma(a),
}


@pytest.mark.parametrize("name", ONE)
def test_one_argument(name):
    with x64():
        same(call(REGISTRY[name], X)[0], np.array([ONE[name](v) for v in X]), rtol=1e-8)
    same(
        call(REGISTRY[name], X.astype(np.float32))[0],
        np.array([ONE[name](v) for v in X], np.float32),
        rtol=2e-6,
    )
    assert call(REGISTRY[name], X[:0].astype(np.float32))[0].shape == (0,)


@pytest.mark.parametrize("name", TWO)
def test_two_arguments(name):
    a = {"polygamma": np.array([1.0, 2.0, 3.0, 1.0, 2.0]), "zeta": A + 5}.get(name, A)
    with x64():
        same(
            call(REGISTRY[name], a, X)[0],
            np.array([TWO[name](float(u), float(v)) for u, v in zip(a, X)]),
            rtol=2e-5,
        )


def test_inverse_of_erf():
    x = np.linspace(-0.999, 0.999, 9)
    with x64():
        same(call(S.erf_p, call(S.erf_inv_p, x)[0])[0], x, rtol=1e-13, atol=1e-15)
    ends = np.array([-1, 1, 2, np.nan], np.float32)
    same(call(S.erf_inv_p, ends)[0], np.array([-np.inf, np.inf, np.nan, np.nan], np.float32))


def test_betainc():
    want = [quad(lambda t: t ** (a - 1) * (1 - t) ** (b - 1), 0, 0.3) for a, b in zip(A, X)]
    whole = [math.gamma(a) * math.gamma(b) / math.gamma(a + b) for a, b in zip(A, X)]
    with x64():
        same(
            call(S.regularized_incomplete_beta_p, A, X, np.array(0.3))[0],
            np.array(want) / whole,
            rtol=1e-6,
        )
    outside = call(S.regularized_incomplete_beta_p, np.float32(-1), np.float32(1), np.float32(0.5))[
        0
    ]
    assert np.isnan(outside)


def test_one_argument_rules():
    for name in (*ONE, "erf_inv"):
        x = X / 5 if name == "erf_inv" else X
        check_jvp(REGISTRY[name], x)
        check_batch(REGISTRY[name], x)


def test_more_arguments_rules():
    check_jvp(S.polygamma_p, np.array(2.0), X, moved=(1,))
    check_jvp(S.zeta_p, X + 1.2, A, moved=(1,))
    check_jvp(S.igamma_p, A, X, order=1)
    check_jvp(S.igamma_p, A, X, moved=(1,))
    check_jvp(S.igammac_p, A, X, order=1)
    check_jvp(S.igamma_grad_a_p, A, X, moved=(1,))
    check_jvp(S.random_gamma_grad_p, A, X, moved=(1,))
    check_jvp(S.regularized_incomplete_beta_p, A, A + 0.2, X / 5, moved=(2,))
    for name in ("polygamma", "zeta", "igamma", "igammac", "igamma_grad_a", "random_gamma_grad"):
        check_batch(REGISTRY[name], A, X)
    check_batch(
        S.regularized_incomplete_beta_p,
        A,
        X,
        np.array(0.3),
        only=[(0, 0, None), (None, 0, 0), (0, None, None)],
    )


def test_bessel_i1e_at_zero():
    out = np.asarray(S.bessel_i1e(np.array([-0.0, 0.0], np.float32)))
    assert np.signbit(out).tolist() == [True, False]
    assert derivative(S.bessel_i1e_p, np.zeros(1, np.float32)) == [0.5]


def test_derivatives_that_do_not_exist_say_so():
    for prim, args in (
        (S.zeta_p, (A + 2, X)),
        (S.polygamma_p, (A, X)),
        (S.regularized_incomplete_beta_p, (A, A, X / 5)),
    ):
        with pytest.raises(NotImplementedError, match=r"derivative|gradient"):
            derivative(prim, *args)
    with pytest.raises(TypeError, match="lgamma does not accept dtype int32"):
        traced(S.lgamma, np.ones(2, np.int32))


@pytest.mark.peer
def test_peer():
    s = specials("float32")
    for name in (*ONE, "erf_inv"):
        check_peer(name, s, rtol=3e-5, atol=1e-6)
        check_peer(
            name, X.astype(np.float32) / (5 if name == "erf_inv" else 1), rtol=1e-5, atol=1e-6
        )
    a, x = A.astype(np.float32), X.astype(np.float32)
    for name in ("igamma", "igammac", "igamma_grad_a", "random_gamma_grad"):
        check_peer(name, a, x, rtol=1e-4, atol=1e-6)
        check_peer(
            name,
            np.array([0, -1, 1, 1, np.nan], np.float32),
            np.array([1, 1, 0, -1, 1], np.float32),
            rtol=1e-5,
        )
    check_peer("zeta", a + 2, x, rtol=1e-5)
    check_peer("polygamma", np.arange(5, dtype=np.float32), x, rtol=1e-4)
    check_peer("betainc", a, x, (x / 4).clip(0, 1), rtol=1e-4)

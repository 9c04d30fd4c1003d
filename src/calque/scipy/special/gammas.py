"""The gamma and beta families, combinatorics, Bernoulli numbers."""

import math
from typing import Any, SupportsIndex

import numpy as np

from calque import numpy as jnp
from calque.core.arrays import Array, to_array
from calque.core.dims import whole
from calque.core.dtypes import is_complex, is_integer
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.types import ArrayLike
from calque.numpy.promotion import check_arraylike, promote_inexact
from calque.numpy.promotion import promote_shapes as together
from calque.transforms.functions.autodiff import jvp
from calque.transforms.functions.custom_jvp import custom_jvp

__all__ = [
    "bernoulli", "beta", "betainc", "betaln", "comb", "digamma", "factorial", "gamma", "gammainc",
    "gammaincc", "gammaln", "gammasgn", "loggamma",
    "multigammaln", "poch", "polygamma", "zeta",
]  # fmt: skip


_PRIMITIVE = frozenset(
    [
        "betaln",
        "comb",
        "digamma",
        "erf",
        "erfc",
        "erfinv",
        "factorial",
        "gammainc",
        "gammaincc",
        "gammaln",
        "hyp2f1",
        "i0",
        "i0e",
        "i1",
        "i1e",
        "zeta",
    ]
)  # JAX's primitives refuse a dtype by a TypeError, its functions by a ValueError


def inexact(name: str, *args: Any, complex_too: bool = False) -> list[Array]:
    """Operands as floats of one dtype and shape; complex numbers are refused unless asked for."""
    check_arraylike(name, *args)
    out = [to_array(x) for x in together(name, *promote_inexact(*args))]
    if is_complex(typeof(out[0]).dtype) and not complex_too:
        raise (TypeError if name in _PRIMITIVE else ValueError)(
            f"{name} does not support complex-valued inputs"
        )
    return out


def gammaln(x: ArrayLike) -> Array:
    """The logarithm of `abs(gamma(x))`.

    Args:
        x: real numbers.
    Returns:
        Floats; infinite at 0 and the negative integers.
    Differs from SciPy:
        Complex numbers are refused: `loggamma` takes them.

    >>> round(float(special.gammaln(10.0)), 4)
    12.8018"""
    return do.lgamma(*inexact("gammaln", x))


def loggamma(x: ArrayLike) -> Array:
    """The logarithm of `gamma(x)`.

    Args:
        x: numbers.
    Returns:
        Floats, nan for real numbers up to 0; for complex numbers the branch that is real on the
        positive axis and cut along the negative one.

    >>> round(float(special.loggamma(10.0)), 4)
    12.8018"""
    (x,) = inexact("loggamma", x, complex_too=True)
    if is_complex(typeof(x).dtype):
        return _loggamma_of_complex(x)
    return jnp.where(x <= 0, np.nan, do.lgamma(x))


def gammasgn(x: ArrayLike) -> Array:
    """The sign of `gamma(x)`.

    Args:
        x: real numbers.
    Returns:
        1.0 or -1.0; nan at the negative integers.

    >>> special.gammasgn(jnp.array([-0.5, 2.0]))
    Array([-1.,  1.], dtype=float32)"""
    (x,) = inexact("gammasgn", x)
    floor = jnp.floor(x)
    at_pole = jnp.where((x == floor) & (x < 0), np.nan, 1.0)
    sign = jnp.where((x < 0) & (floor % 2 != 0), -1.0, at_pole)
    sign = jnp.where((x < 0) & (x == floor), np.nan, sign)
    return jnp.where(
        x == 0, jnp.sign(1 / x), jnp.where(jnp.isnan(x) | (x == -np.inf), np.nan, sign)
    ).astype(typeof(x).dtype)


def gamma(x: ArrayLike) -> Array:
    """The gamma function: `gamma(n + 1)` is n factorial.

    Args:
        x: real numbers.
    Returns:
        Floats.
    Differs from SciPy:
        Complex numbers are refused.

    >>> special.gamma(jnp.array([5.0])).round(3)
    Array([24.], dtype=float32)"""
    (x,) = inexact("gamma", x, complex_too=True)
    if is_complex(typeof(x).dtype):
        return _gamma_of_complex(x)
    return gammasgn(x) * jnp.exp(do.lgamma(x))


# Lanczos's series for g = 7: gamma(z + 1) = sqrt(2 pi) (z + 7.5)^(z + 0.5) exp(-z - 7.5) (c0 + c1 /
# (z + 1) + ...)
_LANCZOS = (
    0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313,
    -176.61502916214059, 12.507343278686905,
    -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
)  # fmt: skip


def _gamma_of_complex(z: Any) -> Any:
    """By Lanczos's series, reflected left of 1/2; NaN at the poles."""
    left = z.real < 0.5
    w = jnp.where(left, -z, z - 1)
    series = _LANCZOS[0] + sum(c / (w + k) for k, c in enumerate(_LANCZOS[1:], 1))
    t = w + 7.5
    value = math.sqrt(2 * math.pi) * jnp.exp((w + 0.5) * jnp.log(t) - t) * series
    pole = (z.imag == 0) & (z.real <= 0) & (z.real == jnp.floor(z.real))
    reflected = math.pi / (jnp.where(pole, 1, jnp.sin(math.pi * z)) * value)
    return jnp.where(pole, np.nan * (1 + 1j), jnp.where(left, reflected, value)).astype(z.dtype)


def _loggamma_of_complex(z: Any) -> Any:
    """By Lanczos's series, reflected left of 1/2; the lower half plane mirrors the upper one."""
    below = z.imag < 0
    z = jnp.where(below, jnp.conj(z), z)
    left = z.real < 0.5
    w = jnp.where(left, -z, z - 1)
    t = w + 7.5
    series = _LANCZOS[0] + sum(c / (w + k) for k, c in enumerate(_LANCZOS[1:], 1))
    right = 0.5 * math.log(2 * math.pi) + (w + 0.5) * jnp.log(t) - t + jnp.log(series)
    safe = jnp.where(left, z, 0.5j)
    log_sine = -1j * math.pi * (safe - 0.5) - math.log(2) + jnp.log1p(-jnp.exp(2j * math.pi * safe))
    value = jnp.where(left, math.log(math.pi) - log_sine - right, right)
    return jnp.where(below, jnp.conj(value), value).astype(z.dtype)


def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """The factorial `n!`.

    Args:
        n: numbers from 0 up.
        exact: must be false: `math.factorial` has exact integers.
    Returns:
        Floats; 0 for negative numbers.
    Differs from SciPy:
        It is computed in floating point.

    >>> special.factorial(jnp.array([4])).round(3)
    Array([24.], dtype=float32)"""
    if exact:
        raise NotImplementedError(
            "factorial with exact=True: use math.factorial, whose integers have no bound"
        )
    (n,) = inexact("factorial", n)
    return jnp.where(n < 0, 0.0, jnp.exp(do.lgamma(n + 1)))


def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Array:
    """In how many ways `k` things can be chosen of `N`.

    Args:
        N: how many there are.
        k: how many are chosen.
        repetition: whether a thing may be chosen again.
    Returns:
        Floats; 0 where there is no way.
    Differs from SciPy:
        There is no `exact`: it is computed in floating point.

    >>> special.comb(jnp.array([5]), 2).round(3)
    Array([10.], dtype=float32)"""
    n, k = inexact("comb", N, k)
    one_way = (k == 0) & (n >= 0)  # to choose nothing, of nothing too
    if repetition:
        n = n + k - 1
    some = (k >= 0) & (n >= 0) & (k <= n)
    n, k = jnp.where(some, n, 1.0), jnp.where(some, k, 0.0)  # derivatives elsewhere are 0, not nan
    out = jnp.exp(do.lgamma(n + 1) - do.lgamma(k + 1) - do.lgamma(n - k + 1))
    whole = (jnp.floor(n) == n) & (jnp.floor(k) == k) & jnp.isfinite(out)
    out = out + do.stop_gradient(jnp.where(whole, jnp.round(out) - out, 0.0))  # the slope stays
    return jnp.where(some, out, jnp.where(one_way, 1.0, 0.0))


def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """The rising factorial, `gamma(z + m) / gamma(z)`.

    Args:
        z, m: real numbers that broadcast.
    Returns:
        Floats.

    >>> special.poch(jnp.array([2.0]), 3).round(3)
    Array([24.], dtype=float32)"""
    return _poch(*full("poch", z, m))


@custom_jvp
def _poch(z: Any, m: Any) -> Any:
    """The quotient of two numbers that may be too large for their dtype."""
    size = jnp.exp(do.lgamma(z + m) - do.lgamma(z))
    quotient = gammasgn(z + m) * gammasgn(z) * size
    return jnp.where(m == 0, 1.0, quotient).astype(typeof(z).dtype)


@_poch.defjvp
def _poch_jvp(primals: Any, tangents: Any) -> Any:
    (z, m), (tz, tm) = primals, tangents
    out, high = _poch(z, m), do.digamma(z + m)
    return out, tz * (high - do.digamma(z)) * out + tm * high * out


def digamma(x: ArrayLike) -> Array:
    """The derivative of `gammaln`.

    Args:
        x: real numbers.
    Returns:
        Floats; nan at 0 and the negative integers.
    Differs from SciPy:
        Complex numbers are refused.

    >>> round(float(special.digamma(1.0)), 4)
    -0.5772"""
    return do.digamma(*inexact("digamma", x))


def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """The `n`-th derivative of `digamma`.

    Args:
        n: integers from 0 up.
        x: real numbers that broadcast with `n`.
    Returns:
        Floats.

    >>> round(float(special.polygamma(1, 1.0)), 4)
    1.6449"""
    check_arraylike("polygamma", n, x)
    if not is_integer(typeof(n).dtype):
        raise ValueError(f"polygamma: n must be of integer type, got {typeof(n).dtype.name}")
    return do.polygamma(*full("polygamma", n, x))


def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """The zeta function of Hurwitz: the sum of `1 / (k + q)**x` over k = 0, 1, 2, ...

    Args:
        x: real numbers above 1.
        q: real numbers that broadcast; 1 is Riemann's zeta function. It must be given.
    Returns:
        Floats.
    Differs from SciPy:
        `q` has to be given.

    >>> round(float(special.zeta(2.0, 1.0)), 4)
    1.6449"""
    if q is None:
        raise NotImplementedError(
            "Riemann zeta function not implemented; pass q != None to compute the Hurwitz Zeta"
            " function."
        )
    return _zeta(*full("zeta", x, q))


@custom_jvp
def _zeta(x: Any, q: Any) -> Any:
    return do.zeta(x, q)


@_zeta.defjvp
def _zeta_jvp(primals: Any, tangents: Any) -> Any:
    (x, q), (tx, tq) = primals, tangents
    _, slope = jvp(lambda v: _zeta_series(v, q), (x,), (tx,))
    return _zeta(x, q), slope - tq * x * _zeta(x + 1, q)


_SUMMED = 12  # terms, before the formula of Euler and Maclaurin for what is left
# its coefficients: B(2j) / (2j)!
_LEFT = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000)


def _zeta_series(x: Any, q: Any) -> Any:
    """The Hurwitz zeta function for q > 0 and x > 1, term by term, to be differentiated by x."""
    out = sum((q + k) ** -x for k in range(_SUMMED))
    end = q + _SUMMED
    rest = end**-x
    out = out + end * rest / (x - 1) + rest / 2
    factor = x * rest / end
    for j, coefficient in enumerate(_LEFT):
        out = out + coefficient * factor
        factor = factor * (x + (2 * j + 1)) * (x + (2 * j + 2)) / (end * end)
    return out


def full(name: str, *args: Any, complex_too: bool = False) -> list[Array]:
    return list(jnp.broadcast_arrays(*inexact(name, *args, complex_too=complex_too)))


def gammainc(a: ArrayLike, x: ArrayLike) -> Array:
    """The lower incomplete gamma function, regularised: the integral of `t**(a - 1) * exp(-t)` from
    0 to `x`, over `gamma(a)`.

    Args:
        a: real numbers above 0.
        x: real numbers from 0 up that broadcast.
    Returns:
        Floats between 0 and 1.

    >>> round(float(special.gammainc(2.0, 1.0)), 4)
    0.2642"""
    return do.igamma(*full("gammainc", a, x))


def gammaincc(a: ArrayLike, x: ArrayLike) -> Array:
    """The upper incomplete gamma function, regularised: `1 - gammainc(a, x)`, precise where that is
    tiny.

    Args:
        a: real numbers above 0.
        x: real numbers from 0 up that broadcast.
    Returns:
        Floats between 0 and 1.

    >>> round(float(special.gammaincc(2.0, 1.0)), 4)
    0.7358"""
    return do.igammac(*full("gammaincc", a, x))


def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """The logarithm of `abs(beta(a, b))`, precise also where one number is much larger than the
    other.

    Args:
        a, b: real numbers that broadcast.
    Returns:
        Floats.

    >>> round(float(special.betaln(2.0, 3.0)), 4)
    -2.4849"""
    a, b = inexact("betaln", a, b)
    a, b = jnp.minimum(a, b), jnp.maximum(a, b)
    large = b >= 8
    safe = jnp.where(large, b, 8.0)
    plain = do.lgamma(a) + (do.lgamma(b) - do.lgamma(a + b))
    return jnp.where(
        large, do.lgamma(a) + _gammaln_difference(jnp.where(large, a, 1.0), safe), plain
    )


def _gammaln_difference(a: Any, b: Any) -> Any:
    """gammaln(b) - gammaln(a + b) for b >= 8, from Stirling's series, without cancellation."""
    total = a + b
    main = (0.5 - b) * jnp.log1p(a / b) - a * (jnp.log(total) - 1)
    return main + (_stirling_rest(b) - _stirling_rest(total))


def _stirling_rest(x: Any) -> Any:
    """What gammaln(x) is above (x - 1/2) log x - x + log(2 pi) / 2."""
    s = 1 / (x * x)
    return (
        1 / 12
        + s * (-1 / 360 + s * (1 / 1260 + s * (-1 / 1680 + s * (1 / 1188 - s * (691 / 360360)))))
    ) / x


def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """The beta function, `gamma(a) * gamma(b) / gamma(a + b)`.

    Args:
        a, b: real numbers that broadcast.
    Returns:
        Floats.

    >>> round(float(special.beta(2.0, 3.0)), 4)
    0.0833"""
    a, b = inexact("beta", a, b)
    return gammasgn(a) * gammasgn(b) * gammasgn(a + b) * jnp.exp(betaln(a, b))


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The incomplete beta function, regularised: the integral of `t**(a - 1) * (1 - t)**(b - 1)`
    from 0 to `x`, over `beta(a, b)`.

    Args:
        a, b: real numbers above 0.
        x: real numbers between 0 and 1. All three broadcast.
    Returns:
        Floats between 0 and 1.

    >>> round(float(special.betainc(2.0, 3.0, 0.4)), 4)
    0.5248"""
    return do.regularized_incomplete_beta(*full("betainc", a, b, x))


def multigammaln(a: ArrayLike, d: SupportsIndex) -> Array:
    """The logarithm of the multivariate gamma function.

    Args:
        a: real numbers above `(d - 1) / 2`.
        d: the dimension, an integer.
    Returns:
        Floats.

    >>> round(float(special.multigammaln(3.0, 2)), 4)
    1.5502"""
    d = whole(d, "d")
    (a,) = inexact("multigammaln", a)
    shifts = np.arange(d) / 2
    constant = np.asarray(0.25 * d * (d - 1) * math.log(math.pi)).astype(typeof(a).dtype)
    terms = do.lgamma(jnp.expand_dims(a, -1) - shifts.astype(typeof(a).dtype))
    return jnp.sum(terms, axis=-1) + constant


def _bernoulli_numbers(n: int) -> np.ndarray:
    """B_0 to B_n: from zeta values, B_2k = (-1)^(k+1) 2 (2k)! / (2 pi)^2k zeta(2k)."""
    out = np.zeros(n + 1)
    out[0] = 1.0
    if n:
        out[1] = -0.5
    for k in range(2, n + 1, 2):
        zeta_k = sum(j**-k for j in range(1, 60)) if k < 60 else 1.0
        if k == 2:
            zeta_k = math.pi**2 / 6
        elif k == 4:
            zeta_k = math.pi**4 / 90
        size = math.exp(math.log(2) + math.lgamma(k + 1) - k * math.log(2 * math.pi))
        out[k] = (1 if k % 4 == 2 else -1) * size * zeta_k
    return out


def bernoulli(n: int) -> Array:
    """The Bernoulli numbers.

    Args:
        n: the last one.
    Returns:
        An array of `n + 1` floats.

    >>> special.bernoulli(4).round(4)
    Array([ 1.    , -0.5   ,  0.1667,  0.    , -0.0333], dtype=float32)"""
    n = whole(n, "n")
    if n < 0:
        raise ValueError(f"n must be a non-negative integer, got {n}")
    return jnp.asarray(_bernoulli_numbers(n))

"""Special functions that XLA has no operation for, as programs of elementwise operations: the
incomplete gamma functions with their derivatives, the incomplete beta function, a Bessel function.

With p the density of Gamma(a), d = x^a exp(-x) / Gamma(a) and

    below: f(u) = (a - x) u + x (exp(-u) - 1 + u),    t = x exp(-u), 0 <= t <= x
    above: f(w) = (x - a) w + x (exp(w) - 1 - w),     t = x exp(w),  t >= x

the distribution function is P(a, x) = d integral of exp(-f(u)) du, and 1 - P the same above. Both
integrands are smooth and f is a sum of positive terms, for every a and x: sums over Gauss-Legendre
nodes give all digits. The derivative of P by a has the factor log(t) - digamma(a) under the
integral; the side is taken where that does not change its sign much, which also is where the
smaller one of P and 1 - P is found."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from calque.core.primitives import do
from calque.core.trace import typeof
from calque.machine.caches import memo
from calque.ops.common import filled, filled_like, polynomial
from calque.transforms.functions.loops import while_loop

SHORT: Final = np.dtype("float32")
LARGE: Final = 8.0  # Stirling's series is exact from here on
# of the series for log(gamma(a)) in 1/a^2, and for log(a) - digamma(a) - 1/(2a)
STIRLING: Final = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
DIGAMMA: Final = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)


class Rule(NamedTuple):
    """How an integral is summed: f is followed until `depth`, in panels of so many nodes."""

    depth: float
    panels: int
    nodes: int


RULES: Final = {True: Rule(20.0, 8, 8), False: Rule(42.0, 24, 16)}  # by whether the type is short


def as_wide(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function in float32 for shorter types, and with operands of one shape: some may be
    scalars."""

    def wide(*args: Any) -> Any:
        dtype = typeof(args[0]).dtype
        shape = max((typeof(x).shape for x in args), key=len)
        args = tuple([x if typeof(x).shape == shape else filled(shape, x) for x in args])
        if dtype.name in ("float32", "float64"):
            return function(*args)
        found = function(*[do.convert_element_type(x, new_dtype=SHORT) for x in args])
        return do.convert_element_type(found, new_dtype=dtype)

    return wide


def where(condition: Any, x: Any, y: Any) -> Any:
    """x where the condition holds, else y; one of them may be a number."""
    x = filled_like(y, x) if isinstance(x, float) else x
    y = filled_like(x, y) if isinstance(y, float) else y
    return do.select_n(condition, y, x)


def is_short(x: Any) -> bool:
    return bool(typeof(x).dtype == SHORT)


# ---------------------------------------------------------------- functions without cancellation


def log1p_less(t: Any) -> Any:
    """log(1 + t) - t: for small t by s = t / (2 + t), with log(1 + t) = 2 atanh(s)."""
    near = do.abs(t) < 0.5
    u = where(near, t, 0.0)
    s = u / (u + 2.0)
    series = polynomial(s * s, [2 / (2 * k + 3) for k in range(6 if is_short(t) else 16)])
    return where(near, s * s * s * series - s * u, do.log1p(t) - t)


def exp_less(t: Any) -> Any:
    """exp(t) - 1 - t."""
    near = do.abs(t) < 0.5
    u = where(near, t, 0.0)
    terms = range(2, 10 if is_short(t) else 17)
    series = u * u * polynomial(u, [1 / math.factorial(k) for k in terms])
    return where(near, series, do.expm1(t) - t)


def stirling(a: Any) -> Any:
    """log(gamma(a)) less (a - 1/2) log(a) - a + log(2 pi) / 2."""
    large = a >= LARGE
    big, small = where(large, a, LARGE), where(large, 1.0, a)
    series = polynomial(1.0 / (big * big), STIRLING) / big
    rest = do.lgamma(small) - (small - 0.5) * do.log(small) + small - math.log(2 * math.pi) / 2
    return where(large, series, rest)


# ---------------------------------------------------------------- incomplete gamma functions


class Sides(NamedTuple):
    """What all functions of the gamma distribution are made of."""

    below: Any  # is the integral over [0, x] taken?
    density: Any  # x^a exp(-x) / gamma(a)
    area: Any  # the integral of exp(-f)
    moment: Any  # that of (log(t) - digamma(a)) exp(-f)


def sides(a: Any, x: Any) -> Sides:
    """All that is needed for positive, finite a and x."""
    large = a >= LARGE
    big, small = where(large, a, LARGE), where(large, 1.0, a)
    apart = (x - big) / big
    is_near = apart > -0.5
    log_ratio = do.log(x) - do.log(big)
    log_big = big * where(is_near, log1p_less(apart), log_ratio - apart) - stirling(big)
    log_small = small * do.log(x) - x - do.lgamma(small + 1.0)
    root = where(large, do.sqrt(big * (1 / (2 * math.pi))), small)
    density = root * do.exp(where(large, log_big, log_small))
    series = polynomial(1.0 / (big * big), DIGAMMA) / (big * big) + 0.5 / big
    ahead_big = where(is_near, do.log1p(apart), log_ratio) + series
    ahead = where(large, ahead_big, do.log(x) - do.digamma(small))
    below = ahead < 0.0
    area, moment = integrals(a, x, below)
    sign = where(below, -1.0, filled_like(x, 1.0))
    return Sides(below, density, area, ahead * area + sign * moment)


def integrals(a: Any, x: Any, below: Any) -> tuple[Any, Any]:
    """Those of exp(-f(u)) and u exp(-f(u)) over u >= 0."""
    rule = RULES[is_short(x)]
    slope = where(below, a - x, x - a)
    sign = where(below, -1.0, filled_like(x, 1.0))
    end = _end(a, x, below, slope, rule.depth)
    places, weights = _nodes(rule, np.dtype(typeof(x).dtype).name)
    count = typeof(places).shape[0]

    def at(table: np.ndarray, i: Any) -> Any:
        return do.squeeze(do.dynamic_slice(table, i, slice_sizes=(1,)), dimensions=(0,))

    def body(state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        i, area, moment = state
        u = end * at(places, i)
        part = at(weights, i) * do.exp(-(slope * u + x * exp_less(sign * u)))
        return i + 1, area + part, moment + u * part

    zero = filled_like(x, 0.0)
    start = (np.int32(0), zero, zero)
    _, area, moment = while_loop(lambda state: state[0] < count, body, start)
    return end * area, end * moment


def _end(a: Any, x: Any, below: Any, slope: Any, depth: float) -> Any:
    """Where f reaches the depth, or a little behind. Below by Newton's steps on a convex function;
    above from a bound for small w, by exp(w) = 1 + (depth + a w) / x."""
    root = do.sqrt(slope * slope + 2 * depth * x)
    start = where(below, 2 * depth / (slope + root), (root - slope) / x)

    def body(state: tuple[Any, Any]) -> tuple[Any, Any]:
        i, u = state
        steeper = where(below, slope - x * do.expm1(-u), 1.0)
        newton = u - (slope * u + x * exp_less(-u) - depth) / steeper
        return i + 1, where(below, newton, do.min(u, do.log1p((depth + a * u) / x)))

    return while_loop(lambda state: state[0] < 6, body, (np.int32(0), start))[1]


@memo("nodes of integrals", 8)
def _nodes(rule: Rule, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights for [0, 1], closer together at the end, where integrands over long ranges
    fall."""
    nodes, weights = np.polynomial.legendre.leggauss(rule.nodes)
    t = (np.arange(rule.panels)[:, None] + (nodes + 1) / 2).ravel() / rule.panels
    weight = np.tile(weights / (2 * rule.panels), rule.panels)
    return (1 - (1 - t) ** 3).astype(dtype), (weight * 3 * (1 - t) ** 2).astype(dtype)


def huge(x: Any) -> float:
    """Larger numbers have squares beyond all numbers."""
    return 1e18 if is_short(x) else 1e153


def _inside(a: Any, x: Any) -> tuple[Any, Sides]:
    """Where both are positive, and their squares finite, and what holds there."""
    inside = (a > 0.0) & (x > 0.0) & (a < huge(a)) & (x < huge(x))
    return inside, sides(where(inside, a, 1.0), where(inside, x, 1.0))


def _probability(a: Any, x: Any, upper: bool) -> Any:
    inside, s = _inside(a, x)
    found = do.min(s.density * s.area, filled_like(x, 1.0))
    found = where(s.below ^ upper, found, 1.0 - found)
    whole, nothing = (0.0, 1.0) if upper else (1.0, 0.0)
    at_zero = (x == 0.0) & (a > 0.0) | (a >= huge(a)) & (x >= 0.0) & (x < a)
    at_end = (x >= huge(x)) & (a >= 0.0) & (a < x) | (a == 0.0) & (x > 0.0)
    edge = where(at_zero, nothing, where(at_end, whole, filled_like(x, math.nan)))
    return where(inside, found, edge)


@as_wide
def igamma(a: Any, x: Any) -> Any:
    """The regularised lower incomplete gamma function."""
    return _probability(a, x, upper=False)


@as_wide
def igammac(a: Any, x: Any) -> Any:
    """The regularised upper incomplete gamma function."""
    return _probability(a, x, upper=True)


@as_wide
def igamma_grad_a(a: Any, x: Any) -> Any:
    """The derivative of `igamma` by a."""
    inside, s = _inside(a, x)
    sign = where(s.below, 1.0, filled_like(x, -1.0))
    at_end = (a > 0.0) & ((x == 0.0) | (x >= huge(x)) | (a >= huge(a)) & (x > 0.0))
    edge = where(at_end, 0.0, filled_like(x, math.nan))
    return where(inside, sign * s.density * s.moment, edge)


@as_wide
def random_gamma_grad(a: Any, x: Any) -> Any:
    """The derivative by a of a random number x drawn from Gamma(a)."""
    inside, s = _inside(a, x)
    sign = where(s.below, -1.0, filled_like(x, 1.0))
    beyond = (x > 0.0) & do.is_finite(a) & do.is_finite(x)  # nobody draws such numbers
    edge = where((a > 0.0) & ((x == 0.0) | beyond), 0.0, filled_like(x, math.nan))
    return where(inside, sign * x * s.moment, edge)


# ---------------------------------------------------------------- incomplete beta function


@as_wide
def regularized_incomplete_beta(a: Any, b: Any, x: Any) -> Any:
    """By its continued fraction, of x or of 1 - x, whichever is on the near side of the mean."""
    inside = (a > 0.0) & (b > 0.0) & (x > 0.0) & (x < 1.0) & do.is_finite(a) & do.is_finite(b)
    p, q, z = where(inside, a, 1.0), where(inside, b, 1.0), where(inside, x, 0.5)
    far = z > p / (p + q)
    y = 1.0 - z
    p, q, z, y = where(far, q, p), where(far, p, q), where(far, y, z), where(far, z, y)
    found = do.min(_beta_front(p, q, z, y) / _fraction(p, q, z, y), filled_like(x, 1.0))
    found = where(far, 1.0 - found, found)
    fits = (a >= 0.0) & (b >= 0.0) & (x >= 0.0) & (x <= 1.0) & ((a > 0.0) | (b > 0.0))
    fits = fits & ((a < math.inf) | (b < math.inf))
    zero = (x == 0.0) & (a > 0.0) | (b == 0.0) & (x < 1.0) | (a == math.inf) & (x < 1.0)
    edge = where(fits, where(zero, 0.0, filled_like(x, 1.0)), math.nan)
    return where(inside, found, edge)


def _beta_front(a: Any, b: Any, x: Any, y: Any) -> Any:
    """x^a y^b / (a B(a, b)), where y = 1 - x."""
    n = a + b
    corrections = stirling(n) - stirling(a) - stirling(b)
    apart = x * b - y * a
    both = a * log1p_less(apart / a) + b * log1p_less(-apart / b) + corrections
    large = do.sqrt(b / (n * a) * (1 / (2 * math.pi))) * do.exp(both)
    log_x, log_y = do.log(x), where(x < 0.5, do.log1p(-x), do.log(y))
    low, high = do.min(a, b), do.max(a, b)
    # log(gamma(n) / gamma(high)) by Stirling's series, where lgamma of both would cancel
    by_series = (high - 0.5) * do.log1p(low / high) + low * do.log(n) - low
    by_series = by_series + stirling(n) - stirling(high)
    ratio = where(high >= LARGE, by_series, do.lgamma(n) - do.lgamma(high))
    # a B(a, b) is gamma(a + 1) gamma(b) / gamma(n)
    front = do.exp(a * log_x + b * log_y + ratio - do.lgamma(low + 1.0)) * (low / a)
    return where(low >= LARGE, large, front)


def _fraction(a: Any, b: Any, x: Any, y: Any) -> Any:
    """The even part of the continued fraction for x^a y^b / (a B(a, b) I), whose first terms are
    positive where x is below the mean; from its front, until nothing changes."""
    short = is_short(x)
    eps, tiny = (1.2e-7, 1e-30) if short else (2.3e-16, 1e-290)
    most = 5_000 if short else 50_000
    lean = a * y - b * x + 1.0

    def kept(v: Any) -> Any:
        return where(do.abs(v) < tiny, tiny, v)

    def going_on(state: Any) -> Any:
        n, _, _, _, last = state
        return (n < most) & do.reduce_or(last, axes=tuple(range(typeof(last).ndim)))

    def body(state: Any) -> Any:
        i, value, c, d, _ = state
        n = do.convert_element_type(i, new_dtype=typeof(x).dtype)
        twice = a + 2.0 * n
        odd = n * (b - n) * x / (twice - 1.0)
        top = (a + n - 1.0) / (twice - 1.0) * (a + b + n - 1.0) * x * odd
        bottom = n + odd + (a + n) / (twice + 1.0) * (lean + n * (1.0 + y))
        c, d = kept(bottom + top / c), 1.0 / kept(bottom + top * d)
        before, value = value, value * c * d
        return i + 1, value, c, d, do.abs(value - before) > eps * do.abs(value)

    first = kept(a / (a + 1.0) * lean)
    start = (np.int32(1), first, first, filled_like(x, 0.0), first == first)
    return while_loop(going_on, body, start)[1] / a


# ---------------------------------------------------------------- Bessel function


@as_wide
def bessel_i0e(x: Any) -> Any:
    """exp(-|x|) I0(x): the mean of exp(-|x| (1 - cos t)) over a circle, whose sum over equal steps
    is exact for small x; for large x by the asymptotic series. All terms are positive."""
    steps, near, terms = (16, 14.0, 12) if is_short(x) else (32, 30.0, 26)
    size = do.abs(x)
    small = do.min(size, filled_like(x, near))
    total = 0.5 + 0.5 * do.exp(small * -2.0)
    for k in range(1, steps):
        total = total + do.exp(small * -(2 * math.sin(math.pi * k / (2 * steps)) ** 2))
    series, factor = [1.0], 1.0
    for k in range(1, terms):
        factor *= (2 * k - 1) ** 2 / (8 * k)
        series.append(factor)
    large = do.max(size, filled_like(x, near))
    far = polynomial(1.0 / large, series) * (do.rsqrt(large) * (1 / math.sqrt(2 * math.pi)))
    found = where(size <= near, total * (1 / steps), far)
    return where(size == math.inf, 0.0, where(x != x, x, found))

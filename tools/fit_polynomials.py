"""Fit the polynomials of `calque.native.scalars.vmath` (an offline tool: nothing at run time needs
it, nor mpmath).

A target is a smooth function g(t) on [lo, hi] with a weight w(t); the fit minimises max |w(t) (P(t)
- g(t))| over polynomials P with a given number of coefficients, by Remez exchange on a dense grid
in high precision. Then the leading coefficients are rounded to the target type one after the other,
each time refitting the rest, which wins back most of what rounding loses.

    python tools/fit_polynomials.py exp_f32 sin_f64 ...     fits and prints the named targets
    python tools/fit_polynomials.py                         lists the targets
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import mpmath as mp
import numpy as np
from mpmath import mpf

mp.mp.dps = 50

Function = Callable[[mpf], mpf]


@dataclass(frozen=True)
class Target:
    """What to fit: `g` with weight `w` on [lo, hi] by `n` coefficients of type `dtype` ("f32" or
    "f64")."""

    g: Function
    w: Function
    lo: float
    hi: float
    n: int
    dtype: str


def rounded(x: mpf, dtype: str) -> mpf:
    """`x` rounded to nearest in `dtype`."""
    if dtype == "f64":
        return mpf(float(x))
    # the nearest f32, by way of integer scaling so that no double rounding happens
    if x == 0:
        return mpf(0)
    scale = mpf(2) ** (23 - int(mp.floor(mp.log(abs(x), 2))))
    return mp.nint(x * scale) / scale


def grid(lo: float, hi: float, count: int) -> list[mpf]:
    """Chebyshev points: dense where a minimax error oscillates most."""
    mid, half = (mpf(lo) + mpf(hi)) / 2, (mpf(hi) - mpf(lo)) / 2
    return [mid - half * mp.cos(mp.pi * (k + mpf(1) / 2) / count) for k in range(count)]


def evaluate(coefficients: Sequence[mpf], t: mpf, first: int = 0) -> mpf:
    """sum coefficients[k] t^(k + first)."""
    r = mpf(0)
    for c in reversed(coefficients):
        r = r * t + c
    return r * t**first


def extrema(errors: list[mpf], count: int) -> list[int]:
    """Indices of `count` alternating extrema of `errors` (fewer when it alternates less)."""
    out: list[int] = []
    for i, e in enumerate(errors):
        if out and (e > 0) == (errors[out[-1]] > 0):
            if abs(e) > abs(errors[out[-1]]):
                out[-1] = i
        else:
            out.append(i)
    while len(out) > count:
        if abs(errors[out[0]]) < abs(errors[out[-1]]):
            out.pop(0)
        else:
            out.pop()
    return out


def remez(ts: list[mpf], gs: list[mpf], ws: list[mpf], n: int, first: int) -> tuple[list[mpf], mpf]:
    """Coefficients of t^first .. t^(first+n-1) minimising max |w (P - g)| over the grid, and that
    maximum."""
    count = len(ts)
    at = [round((count - 1) * (1 - np.cos(np.pi * k / n)) / 2) for k in range(n + 1)]
    best, least = list[mpf](), mpf("inf")
    for _ in range(30):
        rows = mp.matrix(n + 1, n + 1)
        rhs = mp.matrix(n + 1, 1)
        for i, j in enumerate(at):
            for k in range(n):
                rows[i, k] = ws[j] * ts[j] ** (k + first)
            rows[i, n] = (-1) ** i
            rhs[i] = ws[j] * gs[j]
        solution = mp.lu_solve(rows, rhs)
        coefficients = [solution[k] for k in range(n)]
        errors = [
            w * (evaluate(coefficients, t, first) - g) for t, g, w in zip(ts, gs, ws, strict=True)
        ]
        worst = max(abs(e) for e in errors)
        if worst < least:
            best, least = coefficients, worst
        new = extrema(errors, n + 1)
        if len(new) < n + 1 or worst <= abs(solution[n]) * mpf("1.001"):
            break
        at = new
    return best, least


def fit(target: Target) -> tuple[list[float], float]:
    """Rounded coefficients, lowest first, and the largest weighted error they leave: the best of
    some numbers of refits."""
    return min([fit_in_steps(target, steps) for steps in (0, 1, 2, 4)], key=lambda found: found[1])


def fit_in_steps(target: Target, steps: int) -> tuple[list[float], float]:
    """The fit with `steps` leading coefficients rounded one by one."""
    ts = grid(target.lo, target.hi, 24 * target.n + 101)
    gs, ws = [target.g(t) for t in ts], [target.w(t) for t in ts]
    done: list[mpf] = []
    rest = gs
    for k in range(target.n):
        free, _ = remez(ts, rest, ws, target.n - k, k)
        if k >= steps:
            done += [rounded(c, target.dtype) for c in free]
            break
        done.append(rounded(free[0], target.dtype))
        rest = [g - evaluate(done, t) for g, t in zip(gs, ts, strict=True)]
    worst = max(abs(w * (evaluate(done, t) - g)) for t, g, w in zip(ts, gs, ws, strict=True))
    return [float(c) for c in done], float(worst)


LN2 = mp.log(2)
HALF_LN2 = float(LN2) / 2 * 1.0005
SQRT2 = float(mp.sqrt(2))


def exp_tail(t: mpf) -> mpf:
    return (mp.expm1(t) - t) / t**2


def exp2_tail(t: mpf) -> mpf:
    return mp.expm1(t * LN2) / t


def log_tail(t: mpf) -> mpf:
    """(log(1+t) - t + t^2/2) / t^3"""
    return (mp.log1p(t) - t + t * t / 2) / t**3


LOG2_E_F32 = mpf(1.44269502162933349609375)


def log2_tail(t: mpf) -> mpf:
    """log2(1+t) / t less log2(e) rounded to f32."""
    return mp.log(1 + t, 2) / t - LOG2_E_F32


def log2_square_tail(t: mpf) -> mpf:
    """(log2(1+t) - t log2(e)) / t^2"""
    return (mp.log(1 + t, 2) - t / LN2) / t**2


def expm1_double_tail(t: mpf) -> mpf:
    """(expm1(2 t) - 2 t) / t^2"""
    return (mp.expm1(2 * t) - 2 * t) / t**2


def cbrt_tail(h: mpf) -> mpf:
    """((1 - h)^(-1/3) - 1) / h"""
    return ((1 - h) ** (-mpf(1) / 3) - 1) / h


def sin_tail(z: mpf) -> mpf:
    r = mp.sqrt(z)
    return (mp.sin(r) - r) / r**3


def cos_tail(z: mpf) -> mpf:
    return (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2


def tan_tail(z: mpf) -> mpf:
    r = mp.sqrt(z)
    return (mp.tan(r) - r) / r**3


def odd(f: Function) -> tuple[Function, Function]:
    """For f(r) = r + r^3 P(r^2): P's function and its weight for relative error."""

    def g(z: mpf) -> mpf:
        r = mp.sqrt(z)
        return (f(r) - r) / r**3

    def w(z: mpf) -> mpf:
        r = mp.sqrt(z)
        return r**3 / f(r)

    return g, w


def odd_full(f: Function) -> tuple[Function, Function]:
    """For f(r) = r P(r^2)."""
    return (lambda z: f(mp.sqrt(z)) / mp.sqrt(z)), (lambda z: mp.sqrt(z) / f(mp.sqrt(z)))


def pow_tail(z: mpf) -> mpf:
    """(log(m) - 2 s - 2/3 s^3) / s^5 in powers of z = s^2, m = (1 + s) / (1 - s)."""
    s = mp.sqrt(z)
    return (2 * mp.atanh(s) - 2 * s - 2 * s**3 / 3) / s**5


def both(
    name: str, g: Function, w: Function, lo: float, hi: float, n32: int, n64: int
) -> dict[str, Target]:
    out = {}
    if n32:
        out[name + "_f32"] = Target(g, w, lo, hi, n32, "f32")
    if n64:
        out[name + "_f64"] = Target(g, w, lo, hi, n64, "f64")
    return out


TINY = 1e-12
TARGETS: dict[str, Target] = {
    **both("exp", exp_tail, lambda t: t * t / mp.exp(t), -HALF_LN2, HALF_LN2, 5, 10),
    **both("exp2", exp2_tail, lambda t: t / mp.power(2, t), -0.50025, 0.50025, 6, 12),
    **both("expm1", exp_tail, lambda t: abs(t * t / mp.expm1(t)), -HALF_LN2, HALF_LN2, 6, 11),
    "log_f32": Target(
        lambda t: (mp.log1p(t) - t) / t**2,
        lambda t: t * t / mp.log1p(t),
        1 / SQRT2 - 1,
        SQRT2 - 1,
        9,
        "f32",
    ),
    "log_f64": Target(log_tail, lambda t: t**3 / mp.log1p(t), 1 / SQRT2 - 1, SQRT2 - 1, 21, "f64"),
    "log2_f32": Target(
        log2_tail, lambda t: t / mp.log(1 + t, 2), 1 / SQRT2 - 1, SQRT2 - 1, 10, "f32"
    ),
    # pow: f32 works in pairs of f32, f64 in pairs of f64 with s = (m - 1) / (m + 1)
    "pow_log2": Target(
        log2_square_tail, lambda t: t * t / mp.log(1 + t, 2), -0.0196, 0.019601, 4, "f32"
    ),
    "pow_exp2": Target(exp2_tail, lambda t: t / mp.power(2, t), -0.501, 0.501, 6, "f32"),
    "pow_atanh": Target(
        pow_tail, lambda z: z * z / 2, TINY, float(3 - 2 * mp.sqrt(2)) ** 2, 8, "f64"
    ),
    **both("sin", *odd(mp.sin), TINY, (1.58) ** 2, 5, 10),
    **both("sinq", *odd(mp.sin), TINY, (0.79) ** 2, 3, 7),
    **both("cosq", cos_tail, lambda z: z * z / mp.cos(mp.sqrt(z)), TINY, (0.79) ** 2, 3, 6),
    **both("tan", *odd(mp.tan), TINY, (0.79) ** 2, 6, 14),
    **both("asin", *odd(mp.asin), TINY, 0.25, 5, 12),
    **both("atan", *odd(mp.atan), TINY, 1.0, 8, 20),
    **both("sinh", *odd(mp.sinh), TINY, HALF_LN2**2, 2, 6),
    **both(
        "cosh",
        lambda z: (mp.cosh(mp.sqrt(z)) - 1) / z,
        lambda z: z / mp.cosh(mp.sqrt(z)),
        TINY,
        HALF_LN2**2,
        3,
        6,
    ),
    "tanh_f32": Target(
        expm1_double_tail,
        lambda t: abs(t * t / mp.expm1(2 * t)),
        -HALF_LN2 / 2,
        HALF_LN2 / 2,
        5,
        "f32",
    ),
    **both("tanh", *odd(mp.tanh), TINY, 0.55**2, 0, 11),
    "cbrt_f32": Target(cbrt_tail, lambda h: h, -0.095, 0.1075, 3, "f32"),
}


def erfinv_over_x(w: mpf) -> mpf:
    """erfinv(x) / x where w = -log(1 - x^2)."""
    x = mp.sqrt(-mp.expm1(-w))
    return mp.erfinv(x) / x


def erfcx(a: mpf) -> mpf:
    return mp.exp(a * a) * mp.erfc(a)


def erfc_scaled(t: mpf, k: int) -> mpf:
    """erfcx(a) (1 + 2 a) where t = (a - k) / (a + k)."""
    a = k * (1 + t) / (1 - t)
    return (
        erfcx(a) * (1 + 2 * a)
        if a < 1000
        else (1 + 1 / (2 * a)) * (1 - 1 / (2 * a * a)) * 2 / mp.sqrt(mp.pi)
    )


def lgamma_middle(t: mpf) -> mpf:
    """lgamma(y) / ((y - 1) (y - 2)) where y = 2 + t."""
    y = 2 + t
    return mp.loggamma(y).real / ((y - 1) * (y - 2))


def stirling(z: mpf) -> mpf:
    """x (lgamma(x) - (x - 1/2) log x + x - log(2 pi) / 2) where z = 1/x^2."""
    x = 1 / mp.sqrt(z)
    return x * (mp.loggamma(x) - (x - mpf(1) / 2) * mp.log(x) + x - mp.log(2 * mp.pi) / 2)


def digamma_tail(z: mpf) -> mpf:
    """x^2 (log x - 1/(2x) - digamma(x)) where z = 1/x^2."""
    x = 1 / mp.sqrt(z)
    return x * x * (mp.log(x) - 1 / (2 * x) - mp.digamma(x))


def scaled_bessel(order: int, x: mpf) -> mpf:
    return mp.besseli(order, x) * mp.exp(-x)


def around(f: Function, centre: mpf) -> tuple[Function, Function]:
    """For f(centre + t) = f(centre) + t P(t): P's function and its weight. The constant is a sum of
    two."""
    middle = f(centre)
    return (lambda t: (f(centre + t) - middle) / t), (lambda t: abs(t / f(centre + t)))


def bessel(order: int) -> dict[str, Target]:
    """I(x) exp(-x), or that over x^order, around 1 and 5; times sqrt(x) in powers of 16 / x - 1."""

    def low(x: mpf) -> mpf:
        return scaled_bessel(order, x) / x**order

    def large(u: mpf) -> mpf:
        return scaled_bessel(order, 16 / u) * mp.sqrt(16 / u)

    parts = (
        ("low", low, 1, 1.0, 17),
        ("middle", lambda x: scaled_bessel(order, x), 5, 3.0, 25),
        ("large", large, 1, 1.0 - 1e-9, 24),
    )
    return {
        f"i{order}_{name}": Target(*around(f, mpf(centre)), -half, half, n, "f64")
        for name, f, centre, half, n in parts
    }


TARGETS |= {
    **bessel(0),
    **bessel(1),
    **both("erf_small", *odd_full(mp.erf), TINY, 0.9**2, 6, 12),
    "erf_large_f32": Target(
        lambda a: mp.log(mp.erfc(a), 2), lambda a: LN2 * mp.erfc(a) / mp.erf(a), 0.89, 4.0, 7, "f32"
    ),
    "erf_exp2": Target(
        lambda t: mp.power(2, t), lambda t: mp.power(2, -t), -0.5002, 0.5002, 6, "f32"
    ),
    "erf_large_f64": Target(
        lambda a: mp.log(mp.erfc(a)), lambda a: mp.erfc(a) / mp.erf(a), 0.89, 6.0, 20, "f64"
    ),
    "erfc_f32": Target(
        lambda t: erfc_scaled(t, 2), lambda t: 1 / erfc_scaled(t, 2), -1.0, 0.85, 12, "f32"
    ),
    "erfc_f64": Target(
        lambda t: erfc_scaled(t, 4), lambda t: 1 / erfc_scaled(t, 4), -1.0, 0.76, 27, "f64"
    ),
    "erfinv_middle_f32": Target(
        lambda t: erfinv_over_x(t + 2.5),
        lambda t: 1 / erfinv_over_x(t + 2.5),
        -2.5 + TINY,
        2.5,
        11,
        "f32",
    ),
    "erfinv_tail_f32": Target(
        lambda t: erfinv_over_x((t + 3) ** 2),
        lambda t: 1 / erfinv_over_x((t + 3) ** 2),
        -0.77,
        1.05,
        10,
        "f32",
    ),
    "erfinv_middle_f64": Target(
        lambda t: erfinv_over_x(t + 3.125),
        lambda t: 1 / erfinv_over_x(t + 3.125),
        -3.125 + TINY,
        3.125,
        25,
        "f64",
    ),
    "erfinv_tail_f64": Target(
        lambda t: erfinv_over_x((t + 4) ** 2),
        lambda t: 1 / erfinv_over_x((t + 4) ** 2),
        -1.5,
        2.1,
        29,
        "f64",
    ),
    "lgamma_middle": Target(
        lgamma_middle, lambda t: 1 / lgamma_middle(t), -1 + 1e-9, 1 + 1e-9, 28, "f64"
    ),
    "lgamma_middle_short": Target(
        lgamma_middle, lambda t: 1 / lgamma_middle(t), -1 + 1e-9, 1 + 1e-9, 14, "f64"
    ),
    "stirling": Target(stirling, lambda z: mpf(1), 1e-16, 1 / 9, 11, "f64"),
    "stirling_short": Target(stirling, lambda z: mpf(1), 1e-16, 1 / 9, 5, "f64"),
    "digamma_upper": Target(*around(mp.digamma, mpf(5.5)), -2.5, 2.5, 26, "f64"),
    "digamma": Target(digamma_tail, lambda z: mpf(1), 1e-16, 1 / 64, 8, "f64"),
}


def show(name: str) -> None:
    coefficients, worst = fit(TARGETS[name])
    bits = float(mp.log(worst, 2)) if worst else float("-inf")
    text = ", ".join(
        repr(float(np.float32(c))) if TARGETS[name].dtype == "f32" else repr(c)
        for c in coefficients
    )
    print(
        f"# {name}: {len(coefficients)} coefficients, error 2^{bits:.1f}\n{name.upper()} ="
        f" ({text})",
        flush=True,
    )


if __name__ == "__main__":
    names = sys.argv[1:]
    if not names:
        print("\n".join(TARGETS))
    for each in names:
        show(each)

#!/usr/bin/env python3
"""Measures the accuracy of every elementwise function in units of the last place (ulp), against
wider arithmetic: half types and float32 by exhaustion, float64 and complex types at random numbers
of all sizes, by mpmath.

python tools/measure_accuracy.py              prints the table
python tools/measure_accuracy.py --write      also writes it into docs/accuracy.md and docs/zh
python tools/measure_accuracy.py --stride 64  takes every 64th float32, by bits

Every float32 of a function takes 10 to 60 seconds on one core: compiled code measures it against
the function of float64, which is right to 2 ulp of its own, and the largest errors are measured
once more by mpmath.

An error is the distance from the exact result, divided by the distance of the two floats around it;
of complex results, by that of the floats around the larger part. An exact result that is no finite
float is compared as it is."""

import argparse
import pathlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import ml_dtypes
import mpmath
import numpy as np
import scipy.special as sp

import calque
import calque.numpy as jnp
from calque import lax

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
PAGES = DOCS / "accuracy.md", DOCS / "zh" / "accuracy.md"
BEGIN, END = "<!-- table -->", "<!-- end of table -->"
HALF = (np.dtype("float16"), np.dtype(ml_dtypes.bfloat16))
CHUNK = 1 << 20
SINGLES = 1 << 22  # float32 numbers that compiled code takes at once
CANDIDATES = 8  # of the largest errors that it finds, that mpmath measures


class Function(NamedTuple):
    """A function of one argument: its meaning on float64 arrays, and on numbers of mpmath."""

    array: Callable[[Any], Any]
    exact: Callable[[Any], Any]
    complex: bool = True


def _lgamma(x: Any) -> Any:
    return mpmath.inf if x <= 0 and x == mpmath.floor(x) else mpmath.log(abs(mpmath.gamma(x)))


def _scaled_bessel(order: int) -> Callable[[Any], Any]:
    return lambda x: mpmath.besseli(order, x) * mpmath.exp(-abs(x))


def _logistic(x: Any) -> Any:
    return 1 / (1 + mpmath.exp(-x))


FUNCTIONS: dict[str, Function] = {
    "acos": Function(np.arccos, mpmath.acos),
    "acosh": Function(np.arccosh, mpmath.acosh),
    "asin": Function(np.arcsin, mpmath.asin),
    "asinh": Function(np.arcsinh, mpmath.asinh),
    "atan": Function(np.arctan, mpmath.atan),
    "atanh": Function(np.arctanh, mpmath.atanh),
    "bessel_i0e": Function(sp.i0e, _scaled_bessel(0), complex=False),
    "bessel_i1e": Function(sp.i1e, _scaled_bessel(1), complex=False),
    "cbrt": Function(np.cbrt, lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), complex=False),
    "cos": Function(np.cos, mpmath.cos),
    "cosh": Function(np.cosh, mpmath.cosh),
    "digamma": Function(sp.digamma, mpmath.digamma, complex=False),
    "erf": Function(sp.erf, mpmath.erf, complex=False),
    "erf_inv": Function(sp.erfinv, lambda x: _erf_inv(x), complex=False),
    "erfc": Function(sp.erfc, mpmath.erfc, complex=False),
    "exp": Function(np.exp, mpmath.exp),
    "exp2": Function(np.exp2, lambda x: mpmath.power(2, x)),
    "expm1": Function(np.expm1, lambda x: mpmath.expm1(x)),
    "lgamma": Function(sp.gammaln, _lgamma, complex=False),
    "log": Function(np.log, mpmath.log),
    "log1p": Function(np.log1p, lambda x: mpmath.log1p(x)),
    "logistic": Function(sp.expit, _logistic),
    "rsqrt": Function(lambda x: 1 / np.sqrt(x), lambda x: 1 / mpmath.sqrt(x)),
    "sin": Function(np.sin, mpmath.sin),
    "sinh": Function(np.sinh, mpmath.sinh),
    "sqrt": Function(np.sqrt, mpmath.sqrt),
    "tan": Function(np.tan, mpmath.tan),
    "tanh": Function(np.tanh, mpmath.tanh),
}


# of functions with zeros between poles: their float64 errors count in what the last place of the
# argument changes, where that is more
SLOPES: dict[str, Callable[[Any], Any]] = {
    "lgamma": mpmath.digamma,
    "digamma": lambda x: mpmath.psi(1, x),
}


def _erf_inv(x: Any) -> Any:
    """By Newton's method from scipy's."""
    if abs(x) >= 1:
        return mpmath.sign(x) * mpmath.inf if abs(x) == 1 else mpmath.nan
    y = (
        mpmath.mpf(float(sp.erfinv(float(x))))
        if abs(x) > 1e-300
        else x * mpmath.sqrt(mpmath.pi) / 2
    )
    for _ in range(3):
        wrong = (
            mpmath.erf(y) - x
            if abs(x) < 0.5
            else (1 - x) - mpmath.erfc(y)
            if x > 0
            else (mpmath.erfc(-y) - (1 + x))
        )
        y -= wrong * mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(y * y)
    return y


def run(name: str, x: np.ndarray) -> np.ndarray:
    """What calque says; float64 only with 64 bits enabled."""
    function = getattr(lax, name)
    with calque.enable_x64(x.dtype.itemsize == 8 or x.dtype == np.complex128):
        return np.asarray(calque.jit(function)(jnp.asarray(x)))


# ---------------------------------------------------------------- errors


def real_errors(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """In ulp of the result's dtype; infinite where only one is a nan or the infinities differ."""
    info = ml_dtypes.finfo(got.dtype)
    value = np.asarray(got, np.longdouble)
    exact = np.asarray(want, np.longdouble)
    size = np.maximum(np.abs(np.where(np.isfinite(exact), exact, 1)), np.longdouble(info.tiny))
    unit = np.ldexp(np.longdouble(1), np.frexp(size)[1] - info.nmant - 1)
    with np.errstate(all="ignore"):
        distance = np.abs(value - exact) / unit
        right = (value == exact) | (np.isnan(value) & np.isnan(exact))
        # beyond the largest float the infinity is what rounding gives
        right |= (
            np.isinf(value)
            & (np.sign(value) == np.sign(exact))
            & (np.abs(exact) >= np.longdouble(info.max))
        )
    return np.where(right, 0, np.where(np.isnan(distance), np.inf, distance)).astype(float)


def worst(name: str, x: np.ndarray) -> tuple[float, float]:
    """The largest error over these floats, and where; the reference is float64."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        got, want = run(name, x), meaning(name)(x.astype(np.float64))
        if x.dtype == np.float32:
            seen = suspects(got, want)
            got, want, x = got[seen], want[seen], x[seen]
        e = real_errors(got, want)
    at = int(e.argmax())
    return float(e[at]), float(x[at])


def suspects(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Where float32 results may have the largest error: the exact measure takes many times as long
    as this one, which is by no more than a factor of two another."""
    unit = np.spacing(np.maximum(np.abs(want), np.finfo(np.float32).tiny).astype(np.float32))
    rough = np.abs(got - want) / unit
    rough[(got == want) | (np.isnan(got) & np.isnan(want))] = 0
    rough[np.isnan(rough)] = np.inf  # one is a nan, or infinities differ
    most = rough[np.isfinite(rough)].max(initial=0)  # an infinity may be what rounding gives
    return np.flatnonzero(rough >= min(most / 2, 1.0))


def meaning(name: str) -> Callable[[Any], Any]:
    """The reference on float64, right where SciPy's conventions are others."""
    f = FUNCTIONS[name].array
    if name == "lgamma":
        return lambda x: np.where(np.isinf(x), np.inf, f(x))
    if name == "digamma":
        return lambda x: np.where((x <= 0) & (x == np.floor(x)), np.nan, f(x))
    return f


# ---------------------------------------------------------------- arguments


def halves(dtype: np.dtype) -> np.ndarray:
    """Every number of a half type."""
    return np.arange(1 << 16, dtype=np.uint16).view(dtype)


def singles(stride: int, first: int = 0) -> Iterator[np.ndarray]:
    """Every `stride`-th float32, by bits."""
    for start in range(first, 1 << 32, CHUNK * stride):
        bits = np.arange(start, min(start + CHUNK * stride, 1 << 32), stride, dtype=np.int64)
        yield bits.astype(np.uint32).view(np.float32)


def doubles(n: int, seed: int = 0) -> np.ndarray:
    """Random float64 of all sizes and signs, most of them of ordinary size."""
    r = np.random.default_rng(seed)
    parts = [
        r.uniform(-1, 1, n),
        r.uniform(-40, 40, n),
        r.uniform(-1000, 1000, n // 4),
        10.0 ** r.uniform(-300, 300, n // 4) * r.choice([-1, 1], n // 4),
        1 + r.normal(size=n // 4) * 10.0 ** r.uniform(-12, 0, n // 4),
    ]
    return np.concatenate(parts)


def measured_singles(name: str) -> Callable[[Any, Any], tuple[Any, Any]]:
    """Compiled: of the float32 numbers `first`, `first + stride`, ... by bits the largest error,
    in ulp of the exact result, and its place."""
    function = getattr(lax, name)
    info = np.finfo(np.float32)
    places = (1 << 11) - 1 << 52  # of the exponent among the bits of a float64
    inverse = (2 * 1023 + info.nmant) << 52  # less a power of 2 it is one over that one's ulp

    def measure(first: Any, stride: Any) -> tuple[Any, Any]:
        bits = first + jnp.arange(SINGLES, dtype=np.uint32) * stride
        x = lax.bitcast_convert_type(bits, np.float32)
        got, want = function(x).astype(np.float64), function(x.astype(np.float64))
        size = jnp.maximum(jnp.abs(want), float(info.tiny))
        power = lax.bitcast_convert_type(size, np.uint64) & np.uint64(places)
        per_unit = lax.bitcast_convert_type(np.uint64(inverse) - power, np.float64)
        beyond = jnp.isinf(got) & (jnp.abs(want) >= float(info.max)) & (got * want > 0)
        right = (got == want) | (jnp.isnan(got) & jnp.isnan(want)) | beyond
        error = jnp.abs(got - want) * per_unit
        error = jnp.where(right, 0.0, jnp.where(jnp.isnan(error), jnp.inf, error))
        at = jnp.argmax(error)
        return error[at], bits[at]

    return calque.jit(measure)  # type: ignore[no-any-return]


def worst_single(name: str, stride: int = 1, first: int = 0) -> tuple[float, float]:
    """The largest error over all float32 numbers, or every `stride`-th, and where."""
    starts = range(first, 1 << 32, SINGLES * stride)
    with calque.enable_x64(True):
        measure = measured_singles(name)
        found = [measure(np.uint32(start), np.uint32(stride)) for start in starts]
    errors = [(float(error), int(bits)) for error, bits in found]
    largest = sorted(errors, reverse=True)[:CANDIDATES]
    x = np.array([bits for _, bits in largest], np.uint32).view(np.float32)
    return worst_exactly(name, x)


def worst_double(name: str, n: int) -> tuple[float, float]:
    """The largest error of float64 results against mpmath."""
    return worst_exactly(name, doubles(n))


def worst_exactly(name: str, x: np.ndarray) -> tuple[float, float]:
    """The largest error over these floats, and where, against mpmath."""
    got, most, at = run(name, x), -1.0, 0.0
    slope = SLOPES.get(name) if x.dtype == np.float64 else None
    with mpmath.workprec(2200 if name in ("sin", "cos", "tan") else 200):
        for a, g in zip(x.tolist(), got, strict=True):
            e = _exact_error(g, FUNCTIONS[name].exact, a, slope)
            if e > most:
                most, at = e, a
    return most, at


def _exact_error(
    got: Any, f: Callable[[Any], Any], x: float, slope: Callable[[Any], Any] | None = None
) -> float:
    """In ulp of the dtype of `got`."""
    info = np.finfo(got.dtype)
    try:
        want = f(mpmath.mpf(x))
    except (ValueError, ZeroDivisionError, OverflowError):
        return 0.0  # a pole
    if isinstance(want, mpmath.mpc):
        if want.imag != 0:  # no real value
            return 0.0 if np.isnan(got) else np.inf
        want = want.real
    if mpmath.isnan(want):
        return 0.0 if np.isnan(got) else np.inf
    if float(got) == float(want):
        return 0.0
    if not np.isfinite(got):
        return 0.0 if abs(want) >= 2 ** mpmath.mpf(info.maxexp - 1) and np.isinf(got) else np.inf
    below = mpmath.floor(mpmath.log(max(abs(want), mpmath.mpf(float(info.tiny))), 2))
    unit = mpmath.mpf(2) ** (below - info.nmant)
    if slope is not None:
        unit = max(unit, abs(slope(mpmath.mpf(x))) * np.spacing(abs(x)))
    return float(abs(mpmath.mpf(float(got)) - want) / unit)


def worst_complex(name: str, dtype: Any, n: int) -> tuple[float, complex]:
    """The largest error of complex results, in units of the larger part of the exact one."""
    r = np.random.default_rng(1)
    parts = [
        r.normal(size=2 * n) * 10.0 ** r.uniform(-3, 1, 2 * n),
        r.normal(size=2 * n) * 10.0 ** r.uniform(-15, 0, 2 * n),
    ]
    z = np.concatenate([p[:n] + 1j * p[n:] for p in parts]).astype(dtype)
    got, most, at = run(name, z), 0.0, 0j
    digits = 23 if z.dtype == np.complex64 else 52
    with mpmath.workprec(200):
        for a, g in zip(z.tolist(), got.tolist(), strict=True):
            want = FUNCTIONS[name].exact(mpmath.mpc(a))
            size = max(abs(want.real), abs(want.imag))
            unit = mpmath.mpf(2) ** (mpmath.floor(mpmath.log(size, 2)) - digits)
            wrong = mpmath.mpc(g) - want
            e = float(max(abs(wrong.real), abs(wrong.imag)) / unit) if np.isfinite(g) else np.inf
            if e > most:
                most, at = e, a
    return most, at


# ---------------------------------------------------------------- the table


def row(name: str, stride: int, first: int, doubles_of: int) -> str:
    cells = [f"{worst(name, halves(d))[0]:.2f}" for d in HALF]
    error, at = worst_single(name, stride, first)
    cells.append(f"{error:.2f}")
    cells.append(f"{worst_double(name, doubles_of)[0]:.2f}")
    for dtype in (np.complex64, np.complex128):
        known = FUNCTIONS[name].complex
        cells.append(f"{worst_complex(name, dtype, doubles_of // 2)[0]:.2f}" if known else "")
    cells.append(np.format_float_scientific(np.float32(at), trim="-"))
    return f"| `{name}` | {' | '.join(cells)} |"


def with_rows(text: str, rows: list[str]) -> str:
    """A page with these rows in its table, in place of those of the same functions."""
    before, _, rest = text.partition(BEGIN)
    table, _, after = rest.partition(END)
    first, second, *old = table.strip().splitlines()
    by_name = {line.split("|")[1]: line for line in [*old, *rows]}
    return f"{before}{BEGIN}\n" + "\n".join([first, second, *by_name.values()]) + f"\n{END}{after}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--stride", type=int, default=1, help="of float32 numbers")
    parser.add_argument("--first", type=int, default=0, help="the float32, by bits, to begin with")
    parser.add_argument("--doubles", type=int, default=1000)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    lines = [
        "| function | float16 | bfloat16 | float32 | float64 | complex64 | complex128"
        " | float32 at |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in given.names or FUNCTIONS:
        lines.append(row(name, given.stride, given.first, given.doubles))
        print(lines[-1], flush=True)
    if given.write:
        for page in PAGES:
            text = page.read_text(encoding="utf-8")
            page.write_text(with_rows(text, lines[2:]), encoding="utf-8")


if __name__ == "__main__":
    main()

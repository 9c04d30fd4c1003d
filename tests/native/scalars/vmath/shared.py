"""What the tests of the math functions share: arguments of every size, errors in units of the last
place, pi to any number of bits."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calque.native.scalars.expr import Expr
from calque.native.scalars.node import make
from calque.native.scalars.vmath import TABLE
from tests.native.evaluate import Array, apply, compiled

NUMPY: dict[str, Any] = {"f32": np.float32, "f64": np.float64}
INF, NAN = np.inf, np.nan
SPECIAL = [
    0.0,
    -0.0,
    INF,
    -INF,
    NAN,
    1.0,
    -1.0,
    5e-324,
    -1e-310,
    2.3e-308,
    1.7e308,
    -1.7e308,
    1e-45,
    1e-40,
    -1e-40,
    3.4e38,
    0.5,
    -0.5,
]


def outputs(
    function: Callable[..., Sequence[Expr]], *arrays: Array, out: Sequence[str]
) -> list[Array]:
    """What `function` of elements makes of arrays, without contraction, as in a math function."""
    dtypes = [{4: "f32", 8: "f64"}[a.dtype.itemsize] for a in arrays]
    return compiled(function, dtypes, out, exact=True)[1](*arrays)


def run(name: str, dtype: str, *arrays: Array) -> Array:
    return apply(lambda *xs: make(name, xs, dtype), *arrays, dtypes=[dtype] * len(arrays))


def errors(got: Array, want: Array) -> Array:
    """Distance in units of the last place of the result; 0 where got is want rounded, infinite
    where one of them alone is a nan."""
    info = np.finfo(got.dtype)
    wide = np.asarray(want, np.longdouble)
    exponent = np.frexp(np.maximum(np.abs(wide), np.longdouble(info.tiny)))[1]
    distance = np.abs(got.astype(np.longdouble) - wide) / np.ldexp(
        np.longdouble(1), exponent - info.nmant - 1
    )
    right = (got == wide.astype(got.dtype)) | (np.isnan(got) & np.isnan(wide))
    return np.where(right, 0, np.where(np.isnan(distance), INF, distance))


def spread(rng: np.random.Generator, n: int) -> Array:
    """Numbers of every size and sign, and special ones."""
    sizes = 10.0 ** rng.uniform(-320, 308, n) * rng.choice([-1, 1], n)
    singles = 10.0 ** rng.uniform(-44, 38, n) * rng.choice([-1, 1], n)
    return np.concatenate(
        [
            sizes,
            singles,
            rng.normal(size=n),
            1 + rng.normal(size=n) * 10.0 ** rng.uniform(-16, 0, n),
            SPECIAL,
        ]
    )


def check(
    name: str, dtype: str, f: Callable[[Any], Any], limits: tuple[float, float], most: float
) -> None:
    """At most so many units in the last place from `f` of wider arithmetic: for ordinary arguments
    between the limits, for those of every size, and special ones."""
    r = np.random.default_rng(0)
    x = np.concatenate(
        [r.uniform(*limits, 20000), r.uniform(-2, 2, 10000), spread(r, 2000)]
    ).astype(NUMPY[dtype])
    e = errors(run(name, dtype, x), f(x.astype(np.longdouble)))
    assert e.max() <= most, (e.max(), x[e.argmax()])


@functools.cache
def pi_bits(bits: int) -> int:
    """pi 2^bits by Machin's formula."""

    def arctan_inverse(k: int) -> int:
        one = (1 << (bits + 32)) // k
        total, term, n = one, one, 1
        while term:
            term //= -k * k
            n += 2
            total += term // n
        return total

    return (4 * (4 * arctan_inverse(5) - arctan_inverse(239))) >> 32


def angle(x: float, scale: int) -> tuple[int, np.longdouble]:
    """x = q pi / scale + r with |r| <= pi / (2 scale): q and r, by integers."""
    bits = 1300
    m, d = x.as_integer_ratio()
    v = (m << bits) // d
    unit = pi_bits(bits) // scale if x < 2.0**60 else pi_bits(2400) // scale
    if x >= 2.0**60:
        v, bits = (m << 2400) // d, 2400
    q = (2 * v + unit) // (2 * unit)
    rest = v - q * unit
    shift = max(rest.bit_length() - 80, 0)
    return q, np.ldexp(np.longdouble(rest >> shift), shift - bits)


def pairs(dtype: str) -> tuple[Array, Array]:
    r = np.random.default_rng(2)
    a, b = np.repeat(SPECIAL, len(SPECIAL)), np.tile(SPECIAL, len(SPECIAL))
    x = np.concatenate([r.normal(size=10000), spread(r, 2000), a])
    y = np.concatenate([r.normal(size=10000), r.permutation(spread(r, 2000)), b])
    return x.astype(NUMPY[dtype]), y.astype(NUMPY[dtype])


def check_special(
    name: str,
    f: Callable[[Any], Any],
    limits: tuple[float, float],
    extra: Sequence[float],
    most: tuple[float, float],
) -> None:
    """As `check`, for functions that wider arithmetic lacks: against SciPy's float64; of float64
    itself so many units in the last place, or of an absolute 2^-52."""
    r = np.random.default_rng(5)
    low, high = limits
    tiny = r.normal(size=2000) * 1e-5 if low < 0 else np.empty(0)
    x = np.concatenate([r.uniform(low, high, 20000), tiny, extra])
    single = x.astype(np.float32)
    e = errors(run(name, "f32", single), f(single.astype(np.float64)))
    assert e.max() <= most[0], (e.max(), single[e.argmax()])
    got, want = run(name, "f64", x), f(x)
    e = errors(got, want)
    close = (e <= most[1]) | (np.abs(got - want) <= most[1] * 2.0**-52)
    assert close.all(), (e[~close], x[~close])


# ---------------------------------------------------------------- complex numbers

COMPLEX: dict[str, Any] = {"f32": np.complex64, "f64": np.complex128}


def whole(re: Array, im: Array) -> Array:
    """A complex array of these parts, whatever they are."""
    z = np.empty(np.broadcast(re, im).shape, np.result_type(re.dtype, np.complex64))
    z.real, z.imag = re, im
    return z


def run_complex(name: str, z: Array) -> Array:
    """The parts `name_re` and `name_im` of a function, in one kernel."""
    re, im = (TABLE[f"{name}_{part}"] for part in ("re", "im"))
    dtype = "f32" if z.dtype == np.complex64 else "f64"
    x, y = np.ascontiguousarray(z.real), np.ascontiguousarray(z.imag)
    got = outputs(lambda a, b: [re(a, b), im(a, b)], x, y, out=[dtype] * 2)
    return whole(*got)


def complex_errors(got: Array, want: Array) -> Array:
    """In units of the last place of the larger part of what is finite; infinite where only one is
    no number."""
    info = np.finfo(got.real.dtype)
    size = np.maximum(np.abs(want.real), np.abs(want.imag))
    finite = size < np.longdouble(info.max) * (1 - np.longdouble(2) ** -info.nmant)
    size = np.where(finite, np.maximum(size, np.longdouble(info.tiny)), 1)
    unit = np.ldexp(np.longdouble(1), np.frexp(size)[1] - 1 - info.nmant)
    wrong = [
        np.abs(p.astype(np.longdouble) - q) for p, q in zip(parts(got), parts(want), strict=True)
    ]
    e = np.where(np.isfinite(got), np.maximum(*wrong) / unit, INF)
    return np.where(finite, e, 0).astype(float)


def parts(z: Array) -> tuple[Array, Array]:
    return z.real, z.imag


def complex_samples(dtype: str, n: int = 3000, seed: int = 0) -> dict[str, Array]:
    """Numbers of all sizes, near the axes, the unit circle, its points on the axes, and the zeros
    and poles of what is periodic, both ways; denormal ones."""
    r = np.random.default_rng(seed)
    top, least = {"f32": (37, -44.8), "f64": (300, -323.0)}[dtype]
    digits = {"f32": -9.0, "f64": -18.0}[dtype]

    def size(a: float, b: float) -> Array:
        return 10.0 ** r.uniform(a, b, n) * r.choice([-1.0, 1.0], n)

    corner, turn = r.integers(0, 4, n), r.uniform(-np.pi, np.pi, n)
    radius = 1 + size(digits, -1)
    zero = r.integers(-20, 20, n) * np.pi / 2 + size(-17, -1)
    far = {"f32": 100.0, "f64": 740.0}[dtype]
    pairs = {
        "ordinary": (r.normal(size=n), r.normal(size=n)),
        "small and large": (size(-10, 2), size(-10, 3)),
        "all sizes": (size(-top, top), size(-top, top)),
        "out of range": (r.uniform(-far, far, n), size(-3, 4)),
        "units": (
            np.array([1.0, -1, 0, 0])[corner] + size(digits, 0),
            np.array([0.0, 0, 1, -1])[corner] + size(digits, 0),
        ),
        "circle": (radius * np.cos(turn), radius * np.sin(turn)),
        "zeros": (size(digits, 0.5), zero),
        "turned zeros": (zero, size(digits, 0.5)),
        "along x": (size(-3, 2), size(-40, -3)),
        "along y": (size(-40, -3), size(-3, 2)),
        "denormal": (size(least, least + 8), size(least, least + 8)),
        "largest": (size(2, top + 1.5), size(2, top + 1.5)),
    }
    f = NUMPY[dtype]
    with np.errstate(all="ignore"):
        return {name: whole(a.astype(f), b.astype(f)) for name, (a, b) in pairs.items()}


def check_complex(name: str, dtype: str, f: Callable[[Any], Any], most: float) -> None:
    """At most so many units in the last place from `f` of wider arithmetic, wherever it is
    finite."""
    for region, z in complex_samples(dtype).items():
        e = complex_errors(run_complex(name, z), f(z.astype(np.clongdouble)))
        assert e.max() <= most, (region, e.max(), z[e.argmax()])


def check_parts(name: str, cases: list[tuple[complex, complex]]) -> None:
    """Both parts as they are in the table, with the signs of zeros; nan for nan."""
    for dtype in ("f32", "f64"):
        z = np.array([at for at, _ in cases], COMPLEX[dtype])
        for (at, want), got in zip(cases, run_complex(name, z), strict=True):
            for g, w in ((got.real, want.real), (got.imag, want.imag)):
                same = np.isnan(g) if np.isnan(w) else g == w and np.signbit(g) == np.signbit(w)
                assert same or abs(g - w) <= 1e-6 * abs(w), (name, at, got, want)

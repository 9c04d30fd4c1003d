"""The math functions against wider arithmetic: random arguments of all sizes, special ones, huge
ones; errors in units of the last place."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

from calque.native.loops.tree import For, Store
from calque.native.scalars.expr import Buffer, Expr, load, ref, var
from calque.native.scalars.node import make
from calque.native.scalars.powers import NAMES
from calque.native.scalars.vmath import TABLE
from tests.native.evaluate import Array, apply, compiled
from tests.native.run_kernel import bits, run_plain

NUMPY = {"f32": np.float32, "f64": np.float64}
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
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


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


def logistic(x: Any) -> Any:
    return np.where(x < -50, np.exp(x), 1 / (1 + np.exp(-x)))


# name: reference, range of ordinary arguments (for f32 and f64), most units in the last place
FUNCTIONS: dict[
    str, tuple[Callable[[Any], Any], tuple[float, float], tuple[float, float], float]
] = {
    "exp": (np.exp, (-105, 90), (-746, 711), 1.0),
    "exp2": (np.exp2, (-151, 129), (-1076, 1025), 1.0),
    "expm1": (np.expm1, (-20, 90), (-40, 711), 2.0),
    "logistic": (logistic, (-105, 90), (-746, 711), 2.0),
    "tanh": (np.tanh, (-10, 10), (-20, 20), 2.0),
    "sinh": (np.sinh, (-90, 90), (-711, 711), 2.0),
    "cosh": (np.cosh, (-90, 90), (-711, 711), 2.0),
    "log": (np.log, (0, 4), (0, 4), 1.0),
    "log2": (np.log2, (0, 4), (0, 4), 1.0),
    "log1p": (np.log1p, (-1, 4), (-1, 4), 1.5),
    "asinh": (np.arcsinh, (-10, 10), (-10, 10), 2.0),
    "acosh": (np.arccosh, (1, 10), (1, 10), 2.0),
    "atanh": (np.arctanh, (-1, 1), (-1, 1), 2.0),
    "asin": (np.arcsin, (-1, 1), (-1, 1), 1.5),
    "acos": (np.arccos, (-1, 1), (-1, 1), 1.5),
    "atan": (np.arctan, (-4, 4), (-4, 4), 1.5),
    "cbrt": (np.cbrt, (-4, 4), (-4, 4), 1.0),
    "rsqrt": (lambda x: 1 / np.sqrt(x), (0, 4), (0, 4), 1.5),
}


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str, dtype: str) -> None:
    f, narrow, wide, most = FUNCTIONS[name]
    r = np.random.default_rng(0)
    low, high = narrow if dtype == "f32" else wide
    x = np.concatenate(
        [r.uniform(low, high, 20000), r.uniform(-2, 2, 10000), spread(r, 2000)]
    ).astype(NUMPY[dtype])
    e = errors(run(name, dtype, x), f(x.astype(np.longdouble)))
    assert e.max() <= most, (e.max(), x[e.argmax()])


def test_signs_of_zero() -> None:
    zeros = np.array([0.0, -0.0])
    for name in (
        "sin",
        "tan",
        "asin",
        "atan",
        "sinh",
        "tanh",
        "asinh",
        "atanh",
        "expm1",
        "log1p",
        "cbrt",
        "erf",
        "erf_inv",
    ):
        for dtype, t in NUMPY.items():
            assert np.signbit(run(name, dtype, zeros.astype(t))).tolist() == [False, True], name


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


def trigonometric(name: str, x: float) -> np.longdouble:
    q, r = angle(abs(x), 2)
    s, c = np.sin(r), np.cos(r)
    sine, cosine = [(s, c), (c, -s), (-s, -c), (-c, s)][q % 4]
    sign = -1 if x < 0 else 1
    return {"sin": sign * sine, "cos": cosine, "tan": sign * sine / cosine}[name]


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_trigonometric(name: str, dtype: str) -> None:
    """Ordinary and huge arguments, those near multiples of pi/2, and the worst known for each
    type."""
    r = np.random.default_rng(1)
    t, top, huge = NUMPY[dtype], {"f32": 18, "f64": 40}[dtype], {"f32": 128, "f64": 1024}[dtype]
    near = np.rint(2.0 ** r.uniform(0, top - 2, 1000)) * np.longdouble(np.pi) / 2
    x = np.concatenate(
        [
            2.0 ** r.uniform(-3, top, 1500),
            near.astype(t),
            2.0 ** r.uniform(top, huge, 1500),
            r.normal(size=2000) * 3,
        ]
    )
    worst = (
        [16367173.0 * 2.0**72, 2.0**18, 3.4e38]
        if dtype == "f32"
        else [6381956970095103.0 * 2.0**797, 2.0**40, 1.7e308]
    )
    x = np.concatenate([x * r.choice([-1, 1], len(x)), worst]).astype(t)
    x = x[np.isfinite(x)]
    want = np.array([trigonometric(name, float(v)) for v in x], np.longdouble)
    got = run(name, dtype, x)
    e = errors(got, want)
    assert e.max() <= 2.0, (e.max(), x[e.argmax()])
    if name != "tan":
        assert np.abs(got).max() <= 1
        flat = (np.pi / 2 * r.integers(0, 1000, 20000) + r.normal(size=20000) * 1e-3).astype(t)
        assert np.abs(run(name, dtype, flat)).max() <= 1
    assert np.isnan(run(name, dtype, np.array([INF, -INF, NAN], t))).all()


def pairs(dtype: str) -> tuple[Array, Array]:
    r = np.random.default_rng(2)
    a, b = np.repeat(SPECIAL, len(SPECIAL)), np.tile(SPECIAL, len(SPECIAL))
    x = np.concatenate([r.normal(size=10000), spread(r, 2000), a])
    y = np.concatenate([r.normal(size=10000), r.permutation(spread(r, 2000)), b])
    return x.astype(NUMPY[dtype]), y.astype(NUMPY[dtype])


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_two_arguments(dtype: str) -> None:
    x, y = pairs(dtype)
    wide = [a.astype(np.longdouble) for a in (x, y)]
    assert errors(run("atan2", dtype, x, y), np.arctan2(*wide)).max() <= 2.0
    assert errors(run("hypot", dtype, x, y), np.hypot(*wide)).max() <= 1.0
    assert errors(run("rem", dtype, x, y), np.fmod(*wide)).max() == 0
    assert (
        errors(
            run("rem", dtype, x, y / NUMPY[dtype](1000)),
            np.fmod(wide[0], (y / NUMPY[dtype](1000)).astype(np.longdouble)),
        ).max()
        == 0
    )
    zeros = (x == 0) | (y == 0)
    assert (np.signbit(run("atan2", dtype, x, y)) == np.signbit(np.arctan2(x, y)))[
        zeros & ~np.isnan(x + y)
    ].all()


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_log_hypot(dtype: str) -> None:
    r = np.random.default_rng(3)
    turn = r.uniform(0, 7, 5000)
    size = np.concatenate([1 + r.normal(size=3000) * 1e-6, np.exp(r.uniform(-80, 80, 2000))])
    x, y = (size * np.cos(turn)).astype(NUMPY[dtype]), (size * np.sin(turn)).astype(NUMPY[dtype])
    a, b = x.astype(np.longdouble), y.astype(np.longdouble)
    close = np.abs(size - 1) < 0.1
    want = np.where(close, np.log1p((a - 1) * (a + 1) + b * b) / 2, np.log(np.hypot(a, b)))
    got = run("log_hypot", dtype, x, y).astype(np.longdouble)
    eps = np.finfo(NUMPY[dtype]).eps
    assert (np.abs(got - want) <= 2 * eps * np.maximum(np.abs(want), 0.5)).all()


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_pow(dtype: str) -> None:
    """Results over the whole range, bases near 1 with huge exponents, negative bases, and all of
    C's special cases."""
    r, t = np.random.default_rng(4), NUMPY[dtype]
    most = float(np.log2(float(np.finfo(t).max)) * 1.02)
    x = np.concatenate(
        [
            2.0 ** r.uniform(-most, most, 10000),
            np.exp(r.normal(size=10000) * 10.0 ** r.uniform(-8, 1, 10000)),
        ]
    ).astype(t)
    y = (r.uniform(-most * 1.05, most, 20000) / np.log2(x.astype(np.longdouble))).astype(t)
    whole = np.array(
        [
            2,
            3,
            -2,
            -3,
            0.5,
            -0.5,
            1e20,
            -1e20,
            INF,
            -INF,
            NAN,
            0,
            2.5,
            1,
            16777217,
            -16777215,
            33554432,
            1e300,
            7,
        ]
    )
    a, b = np.repeat(SPECIAL, len(whole)).astype(t), np.tile(whole, len(SPECIAL)).astype(t)
    c, d = np.repeat(SPECIAL, len(SPECIAL)).astype(t), np.tile(SPECIAL, len(SPECIAL)).astype(t)
    x, y = np.concatenate([x, a, c, -x[:2000]]), np.concatenate([y, b, d, np.rint(y[:2000])])
    got, want = run("pow", dtype, x, y), np.power(x.astype(np.longdouble), y.astype(np.longdouble))
    e = errors(got, want)
    assert e.max() <= {"f32": 2.0, "f64": 1.0}[dtype], (e.max(), x[e.argmax()], y[e.argmax()])
    zero = (got == 0) | np.isinf(got)
    assert (np.signbit(got) == np.signbit(want))[zero].all()


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("exponent", NAMES)
def test_fixed_powers(exponent: float, dtype: str) -> None:
    """What `pow` gives, with all of C's special cases."""
    x = spread(np.random.default_rng(9), 20000).astype(NUMPY[dtype])
    y = np.full(x.shape, exponent, x.dtype)
    got, want = (
        run(NAMES[exponent], dtype, x),
        np.power(x.astype(np.longdouble), y.astype(np.longdouble)),
    )
    e = errors(got, want)
    assert e.max() <= 1.5, (e.max(), x[e.argmax()])
    special = run("pow", dtype, x, y)
    edge = (special == 0) | ~np.isfinite(special)
    assert (bits(got) == bits(special))[edge].all()


SCIPY: dict[str, tuple[Any, tuple[float, float], float, float]] = {
    # most units in the last place for f32; for f64 most of them, or of an absolute 2^-52
    "erf": (scipy.special.erf, (-5, 5), 2.0, 4.0),
    "erfc": (scipy.special.erfc, (-3, 10), 2.5, 16.0),
    "erf_inv": (scipy.special.erfinv, (-1, 1), 2.0, 16.0),
    "lgamma": (scipy.special.gammaln, (0, 60), 1.0, 8.0),
    "digamma": (scipy.special.psi, (0, 60), 1.0, 8.0),
}


@pytest.mark.parametrize("name", SCIPY)
def test_special_functions(name: str) -> None:
    f, (low, high), most32, most64 = SCIPY[name]
    r = np.random.default_rng(5)
    edges = SPECIAL if name not in ("lgamma", "digamma") else [INF, NAN, 1.0, 2.0, 1e-40, 1e30]
    x = np.concatenate(
        [r.uniform(low, high, 20000), r.normal(size=2000) * 1e-5 if low < 0 else [], edges]
    )
    if name == "erf_inv":
        x = np.concatenate([x, 1 - 10.0 ** r.uniform(-16, -1, 2000)])
    single = x.astype(np.float32)
    e = errors(run(name, "f32", single), f(single.astype(np.float64)))
    assert e.max() <= most32, (e.max(), single[e.argmax()])
    got, want = run(name, "f64", x), f(x)
    e = errors(got, want)
    close = (e <= most64) | (np.abs(got - want) <= most64 * 2.0**-52)
    assert close.all(), (e[~close], x[~close])


def test_gamma_below_zero() -> None:
    r = np.random.default_rng(6)
    x = r.uniform(-20, 0, 2000).astype(np.float32)
    x = x[np.abs(x - np.rint(x)) > 1e-3]
    for name, f in (("lgamma", scipy.special.gammaln), ("digamma", scipy.special.psi)):
        got, want = run(name, "f32", x), f(x.astype(np.float64))
        assert (np.abs(got - want) <= 1e-6 * np.maximum(np.abs(want), 0.1)).all()
    poles = np.array([-1.0, -7.0, 0.0, -0.0], np.float32)
    assert (
        np.isinf(run("lgamma", "f32", poles)).all() and np.isnan(run("digamma", "f32", poles)).all()
    )


def test_lgamma_near_its_zeros() -> None:
    """float32 to the last place also there; so is float64 near those above 0."""
    zeros = [-2.4570247, -2.7476826, -3.1435809, -3.9552943, -4.0392776, -4.9918544, -5.0082183]
    near = [np.float32(z) + np.arange(-400, 400) * np.spacing(np.float32(z)) for z in zeros]
    x = np.concatenate([*near, np.linspace(-10, 0, 4001)[1:-1]]).astype(np.float32)
    x = x[x != np.rint(x)]
    e = errors(run("lgamma", "f32", x), scipy.special.gammaln(x.astype(np.float64)))
    assert e.max() <= 1.0, (e.max(), x[e.argmax()])
    d = 2.0 ** np.arange(-40, -3)
    euler, zeta2, zeta3 = 0.5772156649015329, np.pi**2 / 6, 1.2020569031595942
    few = d[d < 1e-4]
    for sign in (1, -1):  # lgamma(1 + h) = -euler h + zeta(2) h^2 / 2 - zeta(3) h^3 / 3 + ...
        h = (1 + sign * few) - 1
        want = h * (-euler + h * (zeta2 / 2 - h * (zeta3 / 3 - h * np.pi**4 / 360)))
        assert errors(run("lgamma", "f64", 1 + h), want).max() <= 4.0


def test_digamma_near_its_zero() -> None:
    zero, slope, bend = 1.4616321449683622, 0.9676720454471214, -1.1033660200000001 / 2
    h = np.arange(-50, 50) * 2.0**-40
    want = slope * (h - 9.549995429965697e-17) + bend * h * h / 1.0
    got = run("digamma", "f64", zero + h)
    assert (np.abs(got - want) <= 1e-11 * np.abs(h) + 1e-17).all()
    x = np.concatenate([np.linspace(0.05, 3, 3000), [1.2128292351122713, 0.999999, 2.9999]])
    e = errors(run("digamma", "f64", x), scipy.special.psi(x))
    assert e[np.abs(x - zero) > 0.01].max() <= 8.0


def test_same_bits_at_every_width() -> None:
    r = np.random.default_rng(7)
    x, y = (r.normal(size=1003) * 10.0 ** r.uniform(-3, 6, 1003) for _ in range(2))
    x, y = x.astype(np.float32), y.astype(np.float32)
    for name in ("exp", "log", "log1p", "sin", "tanh", "pow", "erf", "cbrt"):
        args = [x, y] if name == "pow" else [x]
        first, *others = (
            compiled(
                lambda *a, name=name: [make(name, a, "f32")], ["f32"] * len(args), ["f32"], w, exact
            )[1](*args)[0]
            for w, exact in ((16, False), (4, False), (32, True))
        )
        for other in others:
            assert first.tobytes() == other.tobytes(), name


def test_same_bits_without_a_scaling_instruction() -> None:
    n = var("n")
    i = var("i", n)
    x = np.concatenate([np.random.default_rng(8).uniform(-110, 95, 5000), SPECIAL]).astype(
        np.float32
    )
    for name, wide in (
        ("exp", x),
        ("exp2", x * 1.5),
        ("exp", x.astype(np.float64) * 7),
        ("exp2", x.astype(np.float64) * 10),
    ):
        dtype = "f32" if wide.dtype == np.float32 else "f64"
        source, to = Buffer("x", (n,), dtype), Buffer("y", (n,), dtype)
        body = (
            For(
                i,
                (Store(to, (i,), make(name, (load(source, (i,)),), dtype)),),
                kind="vector",
                width=16,
            ),
        )
        got = np.empty_like(wide)
        run_plain(body, {source: wide, to: got, "n": len(wide)}, avx512=False)
        want = run(name, dtype, wide)
        assert (bits(got) == bits(want)).all()


def usual(e: Expr) -> set[Expr]:
    """What is computed where no lane needs a seldom side."""
    seen: set[Expr] = set()
    todo = [e]
    while todo:
        x = todo.pop()
        if x not in seen:
            seen.add(x)
            todo += x.args[:2] if x.op == "rare" else x.args
    return seen


def test_same_bits_without_permutations() -> None:
    """Tables are read by gathers and loads where registers are not permuted."""
    n = var("n")
    i = var("i", n)
    x, y = pairs("f32")
    x, y = np.abs(x), y * 5
    a, b, to = Buffer("x", (n,), "f32"), Buffer("y", (n,), "f32"), Buffer("z", (n,), "f32")
    body = (
        For(
            i,
            (Store(to, (i,), make("pow", (load(a, (i,)), load(b, (i,))), "f32")),),
            kind="vector",
            width=8,
        ),
    )
    got = np.empty_like(x)
    run_plain(body, {a: x, b: y, to: got, "n": len(x)}, avx512=False)
    assert (bits(got) == bits(run("pow", "f32", x, y))).all()


def test_costs() -> None:
    """How many operations a function has is what it costs: none shall grow unseen."""
    limits = {
        "exp": (17, 22),
        "log": (24, 42),
        "log1p": (26, 46),
        "tanh": (27, 41),
        "erf": (32, 60),
        "cbrt": (25, 38),
        "atan2": (36, 48),
        "logistic": (25, 30),
        "pow": (52, 124),
    }
    for name, most in limits.items():
        for dtype, limit in zip(("f32", "f64"), most, strict=True):
            args = [ref(f"x{k}", dtype) for k in range(2 if name in ("pow", "atan2") else 1)]
            cost = sum(e.op not in ("const", "ref", "bitcast") for e in usual(TABLE[name](*args)))
            assert cost <= limit, (name, dtype, cost)

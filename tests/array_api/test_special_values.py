"""The special cases of the elementwise functions, as the standard lists them: infinities, NaN,
signed zeros, poles, edges of domains."""

import itertools
import math

import numpy as np
import pytest

import calque
import calque.numpy as jnp

inf, nan, pi = math.inf, math.nan, math.pi

# ----------------------------------------------------------- one real operand: (operands) -> result

SELF = "itself"
UNARY = {
    "abs": [((nan,), nan), ((-0.0, 0.0), 0.0), ((inf, -inf), inf)],
    "acos": [((nan, 1.5, inf, -1.5, -inf), nan), ((1.0,), 0.0)],
    "acosh": [((nan, 0.5, -1.0, -inf), nan), ((1.0,), 0.0), ((inf,), inf)],
    "asin": [((nan, 1.5, inf, -1.5, -inf), nan), ((0.0, -0.0), SELF)],
    "asinh": [((nan, 0.0, -0.0, inf, -inf), SELF)],
    "atan": [((nan, 0.0, -0.0), SELF), ((inf,), pi / 2), ((-inf,), -pi / 2)],
    "atanh": [((nan, -1.5, 1.5, inf, -inf), nan), ((-1.0,), -inf), ((1.0,), inf), ((0.0, -0.0),
    SELF)],
    "ceil": [((inf, -inf, 0.0, -0.0, nan, 3.0, -4.0), SELF), ((-0.5,), -0.0), ((1.5,), 2.0),
    ((-1.5,), -1.0)],
    "cos": [((nan, inf, -inf), nan), ((0.0, -0.0), 1.0)],
    "cosh": [((nan,), nan), ((0.0, -0.0), 1.0), ((inf, -inf), inf)],
    "exp": [((nan,), nan), ((0.0, -0.0), 1.0), ((inf,), inf), ((-inf,), 0.0)],
    "expm1": [((nan, 0.0, -0.0, inf), SELF), ((-inf,), -1.0)],
    "floor": [((inf, -inf, 0.0, -0.0, nan, 3.0, -4.0), SELF), ((0.5,), 0.0), ((-0.5,), -1.0)],
    "isfinite": [((inf, -inf, nan), 0), ((0.0, -0.0, 1.0, 3e38), 1)],
    "isinf": [((inf, -inf), 1), ((0.0, nan, 1.0), 0)],
    "isnan": [((nan,), 1), ((0.0, inf, -inf), 0)],
    "log": [((nan, -1.0, -inf), nan), ((0.0, -0.0), -inf), ((1.0,), 0.0), ((inf,), inf)],
    "log1p": [((nan, -1.5, -inf), nan), ((-1.0,), -inf), ((0.0, -0.0, inf), SELF)],
    "log2": [((nan, -1.0, -inf), nan), ((0.0, -0.0), -inf), ((1.0,), 0.0), ((inf,), inf), ((8.0,),
    3.0)],
    "log10": [((nan, -1.0, -inf), nan), ((0.0, -0.0), -inf), ((1.0,), 0.0), ((inf,), inf),
    ((1000.0,), 3.0)],
    "negative": [((inf,), -inf), ((-inf,), inf), ((0.0,), -0.0), ((-0.0,), 0.0), ((nan,), nan)],
    "positive": [((inf, -inf, 0.0, -0.0, nan), SELF)],
    "reciprocal": [((nan,), nan), ((0.0, ), inf), ((-0.0,), -inf), ((inf,), 0.0), ((-inf,), -0.0)],
    "round": [
        ((inf, -inf, 0.0, -0.0, nan, 3.0), SELF), ((0.5,), 0.0), ((-0.5,), -0.0), ((1.5, 2.5),
        2.0), ((-1.5, -2.5), -2.0),
    ],
    "sign": [((-3.0, -inf), -1.0), ((0.0, -0.0), 0.0), ((5.0, inf), 1.0), ((nan,), nan)],
    "signbit": [((0.0, inf, 2.0, nan), 0), ((-0.0, -inf, -2.0, -nan), 1)],
    "sin": [((nan, inf, -inf), nan), ((0.0, -0.0), SELF)],
    "sinh": [((nan, 0.0, -0.0, inf, -inf), SELF)],
    "sqrt": [((nan, -1.0, -inf), nan), ((0.0, -0.0, inf), SELF)],
    "square": [((nan,), nan), ((inf, -inf), inf), ((0.0, -0.0), 0.0)],
    "tan": [((nan, inf, -inf), nan), ((0.0, -0.0), SELF)],
    "tanh": [((nan, 0.0, -0.0), SELF), ((inf,), 1.0), ((-inf,), -1.0)],
    "trunc": [((inf, -inf, 0.0, -0.0, nan, 3.0, -4.0), SELF), ((0.5,), 0.0), ((-0.5,), -0.0),
    ((-1.5,), -1.0)],
}  # fmt: skip
# Zeros of either sign. The standard leaves the sign open for `sign` and `logaddexp`. For the other
# two it follows Python, and JAX what the truncated quotient or remainder has: the zero of the
# dividend's sign.
UNSIGNED_ZERO = {"sign", "logaddexp", "floor_divide", "remainder"}

# --------------------------------------------------- two real operands: (firsts, seconds) -> result

ZEROS, INFS, NAN = (0.0, -0.0), (inf, -inf), (nan,)
POSITIVE, NEGATIVE = (0.5, 1.0, 3.0, 1e30), (-0.5, -1.0, -3.0, -1e30)
FINITE = POSITIVE + NEGATIVE + ZEROS
EVERY = FINITE + INFS + NAN
FIRST, SECOND, SIGNED_ZERO, SIGNED_INF = (
    "first",
    "second",
    "signed zero",
    "signed infinity",
)  # signs: of the product of both


BINARY = {
    "add": [
        (NAN, EVERY, nan), (EVERY, NAN, nan), ((inf,), (-inf,), nan), ((-inf,), (inf,), nan),
        ((inf,), (inf, *FINITE), inf),
        ((-inf,), (-inf, *FINITE), -inf), (FINITE, INFS, SECOND), ((-0.0,), (-0.0,), -0.0),
        ((-0.0,), (0.0,), 0.0),
        ((0.0,), ZEROS, 0.0), (ZEROS, POSITIVE + NEGATIVE, SECOND), ((3.0,), (-3.0,), 0.0),
    ],
    "subtract": [
        (NAN, EVERY, nan), (EVERY, NAN, nan), ((inf,), (inf,), nan), ((-inf,), (-inf,), nan),
        ((inf,), (-inf, *FINITE), inf),
        ((-inf,), (inf, *FINITE), -inf), ((0.0,), (0.0,), 0.0), ((-0.0,), (0.0,), -0.0), ((-0.0,),
        (-0.0,), 0.0),
    ],
    "multiply": [
        (NAN, EVERY, nan), (EVERY, NAN, nan), (INFS, ZEROS, nan), (ZEROS, INFS, nan), (INFS,
        INFS + POSITIVE + NEGATIVE, SIGNED_INF),
        (POSITIVE + NEGATIVE, INFS, SIGNED_INF), (ZEROS, FINITE, SIGNED_ZERO), (FINITE, ZEROS,
        SIGNED_ZERO),
    ],
    "divide": [
        (NAN, EVERY, nan), (EVERY, NAN, nan), (INFS, INFS, nan), (ZEROS, ZEROS, nan), (ZEROS,
        POSITIVE + NEGATIVE, SIGNED_ZERO),
        (POSITIVE + NEGATIVE, ZEROS, SIGNED_INF), (INFS, FINITE, SIGNED_INF), (FINITE, INFS,
        SIGNED_ZERO),
    ],
    "floor_divide": [
        (NAN, EVERY, nan), (EVERY, NAN, nan), (INFS, INFS, nan), (ZEROS, ZEROS, nan), (ZEROS,
        POSITIVE + NEGATIVE, 0.0),
        (POSITIVE + NEGATIVE, ZEROS, SIGNED_INF), (POSITIVE, (inf,), 0.0), (POSITIVE, (-inf,),
        -1.0), (NEGATIVE, (inf,), -1.0),
        (NEGATIVE, (-inf,), 0.0), ((3.0,), (-2.0,), -2.0), ((-3.0,), (2.0,), -2.0), ((3.0,),
        (2.0,), 1.0),
    ],
    "remainder": [
        (NAN, EVERY, nan), (EVERY, NAN, nan), (INFS, EVERY, nan), (ZEROS, ZEROS, nan), ((0.0,
        -0.0), POSITIVE, 0.0),
        ((0.0, -0.0), NEGATIVE, -0.0), (POSITIVE + NEGATIVE, ZEROS, nan), (POSITIVE, (inf,),
        FIRST), (POSITIVE, (-inf,), SECOND),
        (NEGATIVE, (inf,), SECOND), (NEGATIVE, (-inf,), FIRST), ((6.0, -6.0), (3.0,), 0.0), ((6.0,
        -6.0), (-3.0,), -0.0),
        ((5.0,), (3.0,), 2.0), ((-5.0,), (3.0,), 1.0), ((5.0,), (-3.0,), -1.0),
    ],
    "pow": [
        ((0.5, 3.0, -3.0, 0.0, inf, -inf), NAN, nan), (EVERY, ZEROS, 1.0), ((1.0,), EVERY, 1.0),
        (NAN, POSITIVE + NEGATIVE + INFS, nan),
        ((1.5, -1.5, inf, -inf), (inf,), inf), ((1.5, -1.5, inf, -inf), (-inf,), 0.0), ((-1.0,),
        INFS, 1.0),
        ((0.5, -0.5, 0.0, -0.0), (inf,), 0.0), ((0.5, -0.5, 0.0, -0.0), (-inf,), inf), ((inf,),
        POSITIVE, inf), ((inf,), NEGATIVE, 0.0),
        ((-inf,), (1.0, 3.0, 5.0), -inf), ((-inf,), (0.5, 2.0, 2.5), inf), ((-inf,), (-1.0, -3.0),
        -0.0), ((-inf,), (-0.5, -2.0), 0.0),
        ((0.0,), POSITIVE, 0.0), ((0.0,), NEGATIVE, inf), ((-0.0,), (1.0, 3.0), -0.0), ((-0.0,),
        (0.5, 2.0), 0.0),
        ((-0.0,), (-1.0, -3.0), -inf), ((-0.0,), (-0.5, -2.0), inf), ((-2.0, -0.5), (0.5, -1.5,
        2.5), nan),
    ],
    "atan2": [
        (NAN, EVERY, nan), (EVERY, NAN, nan), (POSITIVE, ZEROS, pi / 2), (NEGATIVE, ZEROS,
        -pi / 2), ((0.0,), (0.0, *POSITIVE, inf), 0.0),
        ((-0.0,), (0.0, *POSITIVE, inf), -0.0), ((0.0,), (-0.0, *NEGATIVE, -inf), pi), ((-0.0,),
        (-0.0, *NEGATIVE, -inf), -pi),
        (POSITIVE, (inf,), 0.0), (POSITIVE, (-inf,), pi), (NEGATIVE, (inf,), -0.0), (NEGATIVE,
        (-inf,), -pi), ((inf,), FINITE, pi / 2),
        ((-inf,), FINITE, -pi / 2), ((inf,), (inf,), pi / 4), ((inf,), (-inf,), 3 * pi / 4),
        ((-inf,), (inf,), -pi / 4),
        ((-inf,), (-inf,), -3 * pi / 4),
    ],
    "copysign": [
        (EVERY[:-1], (0.0, 2.0, inf, nan), "magnitude"), (EVERY[:-1], (-0.0, -2.0, -inf, -nan),
        "negated magnitude"), (NAN, EVERY, nan),
    ],
    "hypot": [
        (INFS, EVERY, inf), (EVERY, INFS, inf), (NAN, FINITE + NAN, nan), (FINITE, NAN, nan),
        (ZEROS, ZEROS, 0.0), ((3.0,), (-4.0,), 5.0),
        ((3e38,), (0.0,), 3e38), ((3e-39,), (0.0,), 3e-39),
    ],
    "logaddexp": [
        (NAN, EVERY, nan), (EVERY, NAN, nan), ((inf,), FINITE + INFS, inf), (FINITE + INFS,
        (inf,), inf), ((-inf,), FINITE + (-inf,), SECOND),
        (FINITE, (-inf,), FIRST),
    ],
    "maximum": [
        (NAN, EVERY, nan), (EVERY, NAN, nan), ((inf,), FINITE + INFS, inf), ((-inf,), FINITE,
        SECOND), ((1.0,), (0.5, -3.0), FIRST),
    ],
    "minimum": [
        (NAN, EVERY, nan), (EVERY, NAN, nan), ((-inf,), FINITE + INFS, -inf), ((inf,), FINITE,
        SECOND), ((1.0,), (3.0, 1e30), FIRST),
    ],
    "nextafter": [(NAN, EVERY, nan), (EVERY, NAN, nan), (EVERY[:-1], "equal", SECOND), ((0.0,),
    (-0.0,), -0.0), ((-0.0,), (0.0,), 0.0)],
    "equal": [(NAN, EVERY, 0), (EVERY, NAN, 0), (EVERY[:-1], "equal", 1), (ZEROS, ZEROS, 1),
    ((inf,), (-inf, *FINITE), 0)],
    "not_equal": [(NAN, EVERY, 1), (EVERY, NAN, 1), (EVERY[:-1], "equal", 0), (ZEROS, ZEROS, 0)],
    "less": [(NAN, EVERY, 0), (EVERY, NAN, 0), (ZEROS, ZEROS, 0), ((-inf,), FINITE + (inf,), 1),
    ((inf,), EVERY, 0)],
    "less_equal": [(NAN, EVERY, 0), (EVERY, NAN, 0), (ZEROS, ZEROS, 1), ((-inf,), FINITE + INFS,
    1)],
    "greater": [(NAN, EVERY, 0), (EVERY, NAN, 0), (ZEROS, ZEROS, 0), ((inf,), FINITE + (-inf,), 1)],
    "greater_equal": [(NAN, EVERY, 0), (EVERY, NAN, 0), (ZEROS, ZEROS, 1), ((inf,), FINITE + INFS,
    1)],
}  # fmt: skip


def result(rule, x, y):
    sign = math.copysign(1, x) * math.copysign(1, y)
    return {
        SELF: x, FIRST: x, SECOND: y, SIGNED_ZERO: sign * 0.0, SIGNED_INF: sign * inf,
        "magnitude": abs(x), "negated magnitude": -abs(x),
    }.get(rule, rule) if isinstance(rule, str) else rule  # fmt: skip


def rows(name):
    for firsts, *rest in BINARY.get(name) or [((f,), *r) for fs, *r in UNARY[name] for f in fs]:
        if len(rest) == 1:
            yield from ((x, result(rest[0], x, 1.0)) for x in firsts)
            continue
        seconds, rule = rest
        pairs = zip(firsts, firsts) if seconds == "equal" else itertools.product(firsts, seconds)
        yield from ((x, y, result(rule, x, y)) for x, y in pairs)


@pytest.mark.parametrize("how", ["eager", "jit"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_real(name, dtype, how):
    *operands, want = (np.array(column, dtype) for column in zip(*rows(name)))
    f = getattr(jnp, name)
    got = np.asarray((calque.jit(f) if how == "jit" else f)(*map(jnp.asarray, operands)))
    assert len(got) == len(want) > 1
    for *given, g, w in zip(*operands, got, want):
        note = f"{name}{tuple(map(float, given))} = {g}, the standard has {w}"
        assert np.isclose(g, w, rtol=1e-6, atol=0, equal_nan=True), note
        if w == 0 and name not in UNSIGNED_ZERO and got.dtype != bool:
            assert np.signbit(g) == np.signbit(w), note


# ---------------------------------------------------------------- complex operands

OPEN = "either sign"  # of the part before it
CIS = "cis"  # (1, CIS): the real factor times cos + i sin of the imaginary part
PFIN, NFIN = (0.5, 3.0), (-0.5, -3.0)
NONZERO = PFIN + NFIN
ANY = NONZERO + ZEROS
COMPLEX = {
    "exp": [
        (ZEROS, (0.0,), (1, 0)), (ANY, (inf, nan), (nan, nan)), ((inf,), (0.0,), (inf, 0)),
        ((-inf,), PFIN, (0, CIS)),
        ((inf,), PFIN, (inf, CIS)), ((-inf,), (inf, nan), (0, 0, OPEN)), ((inf,), (inf, nan),
        (inf, nan, OPEN)), (NAN, (0.0,), (nan, 0)),
        (NAN, PFIN + (inf, nan), (nan, nan)),
    ],
    "expm1": [
        (ZEROS, (0.0,), (0, 0)), (ANY, (inf, nan), (nan, nan)), ((inf,), (0.0,), (inf, 0)),
        ((-inf,), PFIN, (-1, 0, OPEN)),
        ((inf,), PFIN, (inf, CIS)), ((-inf,), (inf, nan), (-1, 0, OPEN)), ((inf,), (inf, nan),
        (inf, nan, OPEN)), (NAN, (0.0,), (nan, 0)),
        (NAN, PFIN + (inf, nan), (nan, nan)),
    ],
    "log": [
        ((-0.0,), (0.0,), (-inf, pi)), ((0.0,), (0.0,), (-inf, 0)), (ANY, (inf,), (inf, pi / 2)),
        (ANY, NAN, (nan, nan)),
        ((-inf,), PFIN, (inf, pi)), ((inf,), PFIN, (inf, 0)), ((-inf,), (inf,), (inf,
        3 * pi / 4)), ((inf,), (inf,), (inf, pi / 4)),
        (INFS, NAN, (inf, nan)), (NAN, ANY, (nan, nan)), (NAN, (inf,), (inf, nan)), (NAN, NAN,
        (nan, nan)),
    ],
    "log1p": [
        ((-1.0,), (0.0,), (-inf, 0)), (ANY, (inf,), (inf, pi / 2)), (ANY, NAN, (nan, nan)),
        ((-inf,), PFIN, (inf, pi)),
        ((inf,), PFIN, (inf, 0)), ((-inf,), (inf,), (inf, 3 * pi / 4)), ((inf,), (inf,), (inf,
        pi / 4)), (INFS, NAN, (inf, nan)),
        (NAN, ANY, (nan, nan)), (NAN, (inf,), (inf, nan)), (NAN, NAN, (nan, nan)),
    ],
    "sqrt": [
        (ZEROS, (0.0,), (0, 0)), (ANY + INFS + NAN, (inf,), (inf, inf)), (ANY, NAN, (nan, nan)),
        ((-inf,), PFIN, (0, inf)),
        ((inf,), PFIN, (inf, 0)), ((-inf,), NAN, (nan, inf, OPEN)), ((inf,), NAN, (inf, nan)),
        (NAN, ANY + NAN, (nan, nan)),
    ],
    "cosh": [
        ((0.0,), (0.0,), (1, 0)), ((0.0,), (inf, nan), (nan, 0, OPEN)), (NONZERO, (inf, nan),
        (nan, nan)), ((inf,), (0.0,), (inf, 0)),
        ((inf,), PFIN, (inf, CIS)), ((inf,), (inf, nan), (inf, nan, OPEN)), (NAN, (0.0,), (nan, 0,
        OPEN)), (NAN, PFIN + (inf, nan), (nan, nan)),
    ],
    "sinh": [
        ((0.0,), (0.0,), (0, 0)), ((0.0,), (inf, nan), (0, nan, OPEN)), (PFIN, (inf, nan), (nan,
        nan)), ((inf,), (0.0,), (inf, 0)),
        ((inf,), PFIN, (inf, CIS)), ((inf,), (inf, nan), (inf, nan, OPEN)), (NAN, (0.0,), (nan,
        0)), (NAN, PFIN + (inf, nan), (nan, nan)),
    ],
    "tanh": [
        ((0.0,), (0.0,), (0, 0)), (NONZERO, (inf, nan), (nan, nan)), ((0.0,), (inf, nan), (0,
        nan)), ((inf,), PFIN + (inf, nan), (1, 0, OPEN)),
        (NAN, (0.0,), (nan, 0)), (NAN, PFIN + (inf, nan), (nan, nan)),
    ],
    "acosh": [
        (ZEROS, (0.0,), (0, pi / 2)), (ANY, (inf,), (inf, pi / 2)), (NONZERO, NAN, (nan, nan)),
        ((0.0,), NAN, (nan, pi / 2, OPEN)),
        ((-inf,), PFIN, (inf, pi)), ((inf,), PFIN, (inf, 0)), ((-inf,), (inf,), (inf,
        3 * pi / 4)), ((inf,), (inf,), (inf, pi / 4)),
        (INFS, NAN, (inf, nan)), (NAN, ANY, (nan, nan)), (NAN, (inf,), (inf, nan)), (NAN, NAN,
        (nan, nan)),
    ],
    "acos": [
        (ZEROS, (0.0,), (pi / 2, -0.0)), (ZEROS, NAN, (pi / 2, nan)), (ANY, (inf,), (pi / 2,
        -inf)), (NONZERO, NAN, (nan, nan)),
        ((-inf,), PFIN, (pi, -inf)), ((inf,), PFIN, (0, -inf)), ((-inf,), (inf,), (3 * pi / 4,
        -inf)), ((inf,), (inf,), (pi / 4, -inf)),
        (INFS, NAN, (nan, inf, OPEN)), (NAN, ANY, (nan, nan)), (NAN, (inf,), (nan, -inf)), (NAN,
        NAN, (nan, nan)),
    ],
    "asinh": [
        ((0.0,), (0.0,), (0, 0)), (PFIN, (inf,), (inf, pi / 2)), (ANY, NAN, (nan, nan)), ((inf,),
        PFIN, (inf, 0)),
        ((inf,), (inf,), (inf, pi / 4)), ((inf,), NAN, (inf, nan)), (NAN, (0.0,), (nan, 0)), (NAN,
        NONZERO, (nan, nan)),
        (NAN, (inf,), (inf, nan, OPEN)), (NAN, NAN, (nan, nan)),
    ],
    "atanh": [
        ((0.0,), (0.0,), (0, 0)), ((0.0,), NAN, (0, nan)), ((1.0,), (0.0,), (inf, 0)), (PFIN,
        (inf,), (0, pi / 2)),
        (NONZERO, NAN, (nan, nan)), ((inf,), PFIN + (inf,), (0, pi / 2)), ((inf,), NAN, (0, nan)),
        (NAN, ANY, (nan, nan)),
        (NAN, (inf,), (0, pi / 2, OPEN)), (NAN, NAN, (nan, nan)),
    ],
    "sign": [(ZEROS, ZEROS, (0, 0, OPEN)), (NAN, ANY + NAN, (nan, nan)), (ANY, NAN, (nan, nan)),
    ((3.0,), (-4.0,), (0.6, -0.8))],
    "abs": [
        (INFS, ANY + INFS + NAN, (inf, 0)), (ANY + NAN, INFS, (inf, 0)), (NAN, ANY + NAN, (nan,
        0)), (ANY, NAN, (nan, 0)), (ZEROS, ZEROS, (0, 0)),
    ],
}  # fmt: skip


def complex_rows(name):
    for reals, imags, (re, im, *sign) in COMPLEX[name]:
        for x, y in itertools.product(reals, imags):
            parts = (re * math.cos(y), re * math.sin(y)) if im == CIS else (re, im)
            yield complex(x, y), *map(float, parts), bool(sign)


def agree(got, want, any_sign):
    if math.isnan(want) or math.isnan(got):
        return math.isnan(want) and math.isnan(got)
    if any_sign:
        return math.isclose(abs(got), abs(want), rel_tol=2e-6)
    return math.isclose(got, want, rel_tol=2e-6) and (
        want != 0 or math.copysign(1, got) == math.copysign(1, want)
    )


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", COMPLEX)
def test_complex(name, dtype):
    table = list(complex_rows(name))
    x = np.array([row[0] for row in table], dtype)
    got = np.asarray(getattr(jnp, name)(jnp.asarray(x)))
    wrong = [
        f"{name}({z}) = {g}, the standard has {re}, {im}"
        for g, (z, re, im, any_sign) in zip(got, table)
        if not (agree(float(g.real), re, any_sign) and agree(float(g.imag), im, any_sign))
    ]
    assert not wrong, "\n".join(wrong)
    if name not in ("abs", "sign"):  # f(conj(z)) is conj(f(z))
        mirrored = np.asarray(getattr(jnp, name)(jnp.conj(jnp.asarray(x))))
        np.testing.assert_array_equal(mirrored, got.conj())


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", ["sin", "cos", "tan", "asin", "atan"])
def test_circular_functions_follow_the_hyperbolic_ones(name, dtype):
    parts = (*ANY, inf, -inf, nan)
    z = np.array([complex(x, y) for x in parts for y in parts], dtype)
    turned = np.array([complex(-y, x) for x in parts for y in parts], dtype)  # i z
    other = {"asin": "asinh", "atan": "atanh"}.get(name, name + "h")
    want = np.asarray(getattr(jnp, other)(jnp.asarray(turned)))
    got = np.asarray(getattr(jnp, name)(jnp.asarray(z)))
    re, im = (
        (want.real, want.imag) if name == "cos" else (want.imag, -want.real)
    )  # cos z = cosh iz; f(z) = -i g(iz)
    np.testing.assert_array_equal(got.real, re)
    np.testing.assert_array_equal(got.imag, im)

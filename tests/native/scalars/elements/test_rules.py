"""Every elementwise primitive on every kind of dtype against Python's and NumPy's own
arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.special

from calque.native.scalars.elements import ELEMENT, Cx, lower, supports
from tests.native.evaluate import Array, compiled, numpy_type

REAL_PART = {"c64": "f32", "c128": "f64"}
INTS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "int4", "uint4", "int2", "uint2")
FLOATS = ("f16", "bf16", "f32", "f64")
COMPLEX = ("c64", "c128")
SMALL = ("float8_e4m3fn", "float8_e5m2", "float8_e3m4", "float8_e4m3b11fnuz")
INF, NAN = float("inf"), float("nan")


def parts(x: Array) -> list[Array]:
    return [x.real.copy(), x.imag.copy()] if x.dtype.kind == "c" else [x]


def run(
    op: str, arrays: list[Array], dtypes: list[str], out: str, exact: bool = True, **params: Any
) -> Array:
    """The primitive on arrays."""
    inputs = [d for x in dtypes for d in ([REAL_PART[x]] * 2 if x in REAL_PART else [x])]
    outputs = [REAL_PART[out]] * 2 if out in REAL_PART else [out]

    def function(*elements: Any) -> list[Any]:
        rest = list(elements)
        args = [Cx(rest.pop(0), rest.pop(0)) if d in REAL_PART else rest.pop(0) for d in dtypes]
        r = lower(op, args, dtypes, out, params)
        return list(r) if isinstance(r, Cx) else [r]

    got = compiled(function, inputs, outputs, exact=exact)[1](
        *[p for a in arrays for p in parts(a)]
    )
    if out not in REAL_PART:
        return got[0]
    made = np.empty(got[0].shape, numpy_type(out))
    made.real, made.imag = got
    return made


def limits(dtype: str) -> tuple[int, int]:
    bits = int(dtype.lstrip("uint"))
    return (0, 2**bits - 1) if dtype[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def wrap(v: int, dtype: str) -> int:
    low, high = limits(dtype)
    return (v - low) % (high - low + 1) + low


def int_values(dtype: str, seed: int, n: int = 300) -> Array:
    low, high = limits(dtype)
    r = np.random.default_rng(seed)
    picks = [
        low,
        high,
        0,
        1,
        high - 1,
        min(2, high),
        max(low, -1),
        min(3, high),
        min(7, high),
        min(31, high),
    ]
    values = [int(picks[k]) for k in r.integers(0, len(picks), n // 2)]
    values += [int(v) for v in r.integers(max(low, -100), min(high, 100) + 1, n // 4)]
    values += [wrap(int.from_bytes(r.bytes(8), "little"), dtype) for _ in range(n // 4)]
    return np.array([values[k] for k in r.permutation(len(values))], object).astype(
        numpy_type(dtype)
    )


def quotient(a: int, b: int) -> int:
    return -1 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def bits_of(v: int, dtype: str) -> int:
    low, high = limits(dtype)
    return v % (high - low + 1)


def width(dtype: str) -> int:
    return int(dtype.lstrip("uint"))


def amount(s: int, dtype: str) -> int:
    return min(bits_of(s, dtype), width(dtype))


def shift_arithmetic(a: int, s: int, d: str) -> int:
    signed = a - (1 << width(d)) if a >> (width(d) - 1) == 1 and d[0] == "u" else a
    return signed >> min(amount(s, d), width(d) - 1)


INT_BINARY: dict[str, Callable[[int, int, str], int]] = {
    "add": lambda a, b, d: a + b,
    "sub": lambda a, b, d: a - b,
    "mul": lambda a, b, d: a * b,
    "div": lambda a, b, d: quotient(a, b),
    "rem": lambda a, b, d: a if b == 0 else a - b * quotient(a, b),
    "max": lambda a, b, d: max(a, b),
    "min": lambda a, b, d: min(a, b),
    "and": lambda a, b, d: a & b,
    "or": lambda a, b, d: a | b,
    "xor": lambda a, b, d: a ^ b,
    "shift_left": lambda a, s, d: a << amount(s, d),
    "shift_right_logical": lambda a, s, d: bits_of(a, d) >> amount(s, d),
    "shift_right_arithmetic": shift_arithmetic,
}
INT_UNARY: dict[str, Callable[[int, str], int]] = {
    "neg": lambda a, d: -a,
    "sign": lambda a, d: (a > 0) - (a < 0),
    "abs": lambda a, d: abs(a),
    "square": lambda a, d: a * a,
    "not": lambda a, d: ~a,
    "population_count": lambda a, d: bits_of(a, d).bit_count(),
    "clz": lambda a, d: width(d) - bits_of(a, d).bit_length(),
}
COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


@pytest.mark.parametrize("dtype", INTS)
def test_integers(dtype: str) -> None:
    x, y = int_values(dtype, 0), int_values(dtype, 1)
    for op, f in INT_BINARY.items():
        want = [wrap(f(int(a), int(b), dtype), dtype) for a, b in zip(x, y, strict=True)]
        assert run(op, [x, y], [dtype, dtype], dtype).astype(object).tolist() == want, op
    for op, g in INT_UNARY.items():
        want = [wrap(g(int(a), dtype), dtype) for a in x]
        assert run(op, [x], [dtype], dtype).astype(object).tolist() == want, op
    for op, c in COMPARE.items():
        want = [c(int(a), int(b)) for a, b in zip(x, y, strict=True)]
        assert run(op, [x, y], [dtype, dtype], "i1").tolist() == want, op
    for power in (0, 1, 2, 5):
        want = [wrap(int(a) ** power, dtype) for a in x]
        assert run("integer_pow", [x], [dtype], dtype, y=power).astype(object).tolist() == want
    z = int_values(dtype, 2)
    want = [min(max(int(b), int(a)), int(c)) for a, b, c in zip(x, y, z, strict=True)]
    assert run("clamp", [x, y, z], [dtype] * 3, dtype).astype(object).tolist() == want


def test_high_product() -> None:
    for dtype in ("i32", "u32", "i64", "u64"):
        x, y = int_values(dtype, 0), int_values(dtype, 1)
        want = [wrap((int(a) * int(b)) >> width(dtype), dtype) for a, b in zip(x, y, strict=True)]
        assert run("mulhi", [x, y], [dtype] * 2, dtype).astype(object).tolist() == want


def test_bools() -> None:
    x, y = np.array([False, False, True, True]), np.array([False, True, False, True])
    for op, f in {
        "and": np.logical_and,
        "or": np.logical_or,
        "xor": np.logical_xor,
        "max": np.maximum,
        "min": np.minimum,
    }.items():
        assert (run(op, [x, y], ["i1", "i1"], "i1") == f(x, y)).all()
    assert (run("not", [x], ["i1"], "i1") == ~x).all()
    for op, c in COMPARE.items():
        assert (run(op, [x, y], ["i1", "i1"], "i1") == c(x, y)).all(), op


def float_values(dtype: str, seed: int, n: int = 400) -> Array:
    r = np.random.default_rng(seed)
    edge = [
        0.0,
        -0.0,
        INF,
        -INF,
        NAN,
        1.0,
        -1.0,
        0.5,
        -0.5,
        1.5,
        2.5,
        1e-40,
        -1e-310,
        65504.0,
        3e38,
        1e300,
    ]
    x = np.concatenate(
        [
            np.array(edge)[r.integers(0, len(edge), n // 2)],
            r.normal(size=n // 4),
            r.normal(size=n // 4) * 100,
        ]
    )
    with np.errstate(all="ignore"):
        return r.permutation(x).astype(numpy_type(dtype))


def same(got: Array, want: Array, ulps: float = 0.0) -> None:
    """Equal, nans alike, zeros with their signs, up to `ulps` units in the last place."""
    assert got.dtype == want.dtype
    nan = want != want
    assert ((got != got) == nan).all()
    with np.errstate(all="ignore"):
        close = got == want
        if ulps:
            wide = got.astype(np.float64 if got.dtype != np.float64 else np.longdouble)
            target = want.astype(wide.dtype)
            step = np.abs(ml_dtypes.finfo(want.dtype).eps.astype(wide.dtype) * target)
            tiny = ml_dtypes.finfo(want.dtype).smallest_subnormal.astype(wide.dtype)
            close |= np.abs(wide - target) <= ulps * np.maximum(step, tiny)
    bad = ~(close | nan)
    assert not bad.any(), (got[bad][:5], want[bad][:5])
    zero = (want == 0) & (got == 0)
    assert (
        np.signbit(got.astype(np.float64))[zero] == np.signbit(want.astype(np.float64))[zero]
    ).all()


def reference(f: Callable[..., Any], *arrays: Array) -> Array:
    """`f` in a wider type, rounded to the type of the operands."""
    with np.errstate(all="ignore"):
        wide = np.longdouble if arrays[0].dtype == np.float64 else np.float64
        out = np.asarray(f(*[a.astype(wide) for a in arrays]))
        return out.astype(arrays[0].dtype)


def sign(x: Any) -> Any:
    return np.where(x == 0, x, np.sign(x))


def half_away(x: Any) -> Any:
    return np.where(np.isfinite(x), np.copysign(np.floor(np.abs(x) + 0.5), x), x)


FLOAT_BINARY: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "rem": np.fmod,
    "max": np.maximum, "min": np.minimum,
}  # fmt: skip
FLOAT_UNARY: dict[str, Callable[..., Any]] = {
    "neg": np.negative, "sign": sign, "abs": np.abs, "square": np.square, "sqrt": np.sqrt,
    "floor": np.floor, "ceil": np.ceil,
}  # fmt: skip
MATH: dict[str, Callable[..., Any]] = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log1p": np.log1p,
    "tanh": np.tanh, "sinh": np.sinh, "cosh": np.cosh,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "sin": np.sin, "cos": np.cos,
    "tan": np.tan, "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan, "cbrt": np.cbrt, "rsqrt": lambda x: 1 / np.sqrt(x),
    "logistic": lambda x: np.where(x < -40, np.exp(x), 1 / (1 + np.exp(-x))),
}  # fmt: skip
SPECIAL: dict[str, Callable[..., Any]] = {
    "erf": scipy.special.erf, "erfc": scipy.special.erfc, "erf_inv": scipy.special.erfinv,
    "lgamma": scipy.special.gammaln,
    "digamma": scipy.special.psi,
}  # fmt: skip
MATH_BINARY: dict[str, Callable[..., Any]] = {"pow": np.power, "atan2": np.arctan2}


@pytest.mark.parametrize("dtype", FLOATS + SMALL)
def test_floats(dtype: str) -> None:
    x, y = float_values(dtype, 0), float_values(dtype, 1)
    for op, f in FLOAT_BINARY.items():
        if op in ("max", "min"):  # of -0 and 0 either is right
            got, want = run(op, [x, y], [dtype] * 2, dtype), reference(f, x, y)
            same(got + np.zeros_like(got), want + np.zeros_like(want))
        else:
            same(run(op, [x, y], [dtype] * 2, dtype), reference(f, x, y))
    for op, f in FLOAT_UNARY.items():
        if dtype == "float8_e4m3b11fnuz" and op in ("ceil", "sign"):
            continue
        same(run(op, [x], [dtype], dtype), reference(f, x))
    for op, c in COMPARE.items():
        assert (
            run(op, [x, y], [dtype] * 2, "i1") == c(x.astype(np.float64), y.astype(np.float64))
        ).all(), op
    same(run("round", [x], [dtype], dtype, rounding_method=0), reference(half_away, x))
    same(run("round", [x], [dtype], dtype, rounding_method=1), reference(np.round, x))
    assert (run("is_finite", [x], [dtype], "i1") == np.isfinite(x.astype(np.float64))).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_math(dtype: str) -> None:
    x, y = float_values(dtype, 0), float_values(dtype, 1)
    ulps = 2.0 if dtype in ("f32", "f64") else 1.0
    for op, f in MATH.items():
        tame = x
        if dtype == "f64" and op in (
            "sin",
            "cos",
            "tan",
        ):  # longdouble's own are not right for huge arguments
            tame = np.where(np.abs(x) > 1e6, 1.0, x)
        same(run(op, [tame], [dtype], dtype), reference(f, tame), ulps)
    for op, f in SPECIAL.items():
        with np.errstate(all="ignore"):
            tame = (
                np.clip(x, -5, 5) + x.dtype.type(0)
                if op.startswith("erf")
                else np.where((x > 3) & (x < 1e30), x, np.full_like(x, 5))
            )
            tame = tame.astype(x.dtype)
            want = f(tame.astype(np.float64)).astype(x.dtype)
        same(run(op, [tame], [dtype], dtype), want, 16.0 if dtype == "f64" else 4.0)
    for op, f in MATH_BINARY.items():
        same(run(op, [x, y], [dtype] * 2, dtype), reference(f, x, y), ulps)


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_powers(dtype: str) -> None:
    x = float_values(dtype, 3)
    for y in (0, 1, 2, 3, -1, -2, 7):
        same(
            run("integer_pow", [x], [dtype], dtype, y=y),
            reference(lambda v, y=y: v ** np.float64(y), x),
            4.0,
        )
    n = (
        np.random.default_rng(0)
        .choice([0, 1, -1, 2, 3, -3, 16777217, 2**31 - 1, -(2**31)], len(x))
        .astype(np.int32)
    )
    x = np.where(np.random.default_rng(1).random(len(x)) < 0.3, -np.ones_like(x), x)
    with np.errstate(all="ignore"):
        want = np.power(x.astype(np.float64), n.astype(np.float64)).astype(x.dtype)
    same(run("pow", [x, n], [dtype, "i32"], dtype), want, 4.0)


@pytest.mark.parametrize("dtype", FLOATS)
def test_nextafter(dtype: str) -> None:
    x, y = float_values(dtype, 4), float_values(dtype, 5)
    with np.errstate(all="ignore"):
        want = np.where(x == y, y, np.nextafter(x, y))
    same(run("nextafter", [x, y], [dtype] * 2, dtype), want)


def test_nextafter_refuses_narrow_floats() -> None:
    with pytest.raises(NotImplementedError, match="nextafter"):
        run("nextafter", [np.zeros(1)] * 2, ["float8_e5m2"] * 2, "float8_e5m2")


@pytest.mark.parametrize("dtype", FLOATS)
def test_total_order(dtype: str) -> None:
    x = np.array([-INF, -1.0, -0.0, 0.0, 1.0, INF, NAN]).astype(numpy_type(dtype))
    i, j = np.meshgrid(np.arange(7), np.arange(7))
    i, j = i.ravel(), j.ravel()
    assert (run("lt_to", [x[i], x[j]], [dtype] * 2, "i1") == (i < j)).all()
    assert (run("le_to", [x[i], x[j]], [dtype] * 2, "i1") == (i <= j)).all()
    assert (run("eq_to", [x[i], x[j]], [dtype] * 2, "i1") == (i == j)).all()


def test_clamp_passes_nan() -> None:
    low, x, high = (
        np.array(v, np.float32) for v in ([1, NAN, 0, 2, 0], [NAN, 0, 0, 5, 3], [2, 1, NAN, 1, 2])
    )
    same(
        run("clamp", [low, x, high], ["f32"] * 3, "f32"),
        np.array([NAN, NAN, NAN, 1, 2], np.float32),
    )


def test_select() -> None:
    which = np.array([0, 1, 2, 3, -1, 100], np.int32)
    cases = [np.full(6, v, np.float32) for v in (1, 2, 3)]
    assert run("select_n", [which, *cases], ["i32", *["f32"] * 3], "f32").tolist() == [
        1,
        2,
        3,
        3,
        1,
        3,
    ]
    p = np.array([True, False])
    a, b = np.array([1 + 2j, 3 + 4j], np.complex64), np.array([5 + 6j, 7 + 8j], np.complex64)
    assert run("select_n", [p, a, b], ["i1", "c64", "c64"], "c64").tolist() == [5 + 6j, 3 + 4j]
    n = np.array([1, NAN], ml_dtypes.float8_e5m2)
    assert (
        run("select_n", [p, n, n], ["i1", "float8_e5m2", "float8_e5m2"], "float8_e5m2")
        .view(np.uint8)
        .tolist()
        == n.view(np.uint8).tolist()
    )


def test_reduce_precision() -> None:
    x = float_values("f32", 6, 2000)
    with np.errstate(all="ignore"):
        half = x.astype(np.float16).astype(np.float32)
        half[np.abs(half) < np.float32(2.0**-14)] *= 0  # what is denormal there becomes zero
        brain = x.astype(ml_dtypes.bfloat16).astype(np.float32)
    same(run("reduce_precision", [x], ["f32"], "f32", exponent_bits=5, mantissa_bits=10), half)
    same(run("reduce_precision", [x], ["f32"], "f32", exponent_bits=8, mantissa_bits=7), brain)
    same(run("reduce_precision", [x], ["f32"], "f32", exponent_bits=8, mantissa_bits=23), x)
    y = x.astype(np.float64)
    with np.errstate(all="ignore"):
        y += np.random.default_rng(0).normal(size=len(y)) * 1e-9
        want = y.astype(np.float32).astype(np.float64)
    want[np.abs(want) < 2.0**-126] *= 0
    same(run("reduce_precision", [y], ["f64"], "f64", exponent_bits=8, mantissa_bits=23), want)


def test_bitcasts() -> None:
    x = float_values("f32", 7)
    assert (run("bitcast_convert_type", [x], ["f32"], "i32") == x.view(np.int32)).all()
    assert (
        run("bitcast_convert_type", [x.view(np.uint32)], ["u32"], "f32").view(np.uint32)
        == x.view(np.uint32)
    ).all()
    h = np.arange(65536, dtype=np.uint16)
    with np.errstate(all="ignore"):
        finite, brain = ~np.isnan(h.view(np.float16)), ~np.isnan(h.view(ml_dtypes.bfloat16))
    assert (run("bitcast_convert_type", [h], ["u16"], "f16").view(np.uint16) == h)[finite].all()
    assert (run("bitcast_convert_type", [h], ["u16"], "bf16").view(np.uint16) == h)[brain].all()
    b = np.arange(256, dtype=np.uint8)
    assert (run("bitcast_convert_type", [b], ["u8"], "float8_e4m3fn").view(np.uint8) == b).all()
    assert (run("bitcast_convert_type", [b], ["u8"], "i8") == b.view(np.int8)).all()


def complex_values(dtype: str, seed: int, n: int = 400) -> Array:
    r = np.random.default_rng(seed)
    scale = np.exp(r.normal(size=n) * 2)
    x = np.empty(n, numpy_type(dtype))
    x.real, x.imag = r.normal(size=n) * scale, r.normal(size=n) * scale
    x.imag[: n // 8] = 0.0
    x.imag[n // 8 : n // 6] = -0.0
    x.real[n // 6 : n // 4] = 0.0
    x.real[n // 4 : n // 3] = -0.0
    return x


def near(got: Array, want: Array, tolerance: float) -> None:
    """Close relative to the size of the whole number, with the sides of the branch cuts."""
    scale = np.maximum(np.abs(want), np.finfo(want.dtype).tiny)
    bad = ~(np.abs(got - want) <= tolerance * np.finfo(want.dtype).eps * scale)
    assert not bad.any(), (got[bad][:4], want[bad][:4])


COMPLEX_UNARY: dict[str, Callable[..., Any]] = {
    **{k: MATH[k] for k in ("exp", "exp2", "expm1", "log", "log1p", "tanh", "sinh", "cosh",
    "asinh", "acosh", "atanh")},
    **{k: MATH[k] for k in ("sin", "cos", "tan", "asin", "acos", "atan", "rsqrt", "logistic")},
    "neg": np.negative, "square": np.square, "sqrt": np.sqrt, "sign": lambda x: x / np.abs(x),
}  # fmt: skip
COMPLEX_BINARY: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
}


@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex(dtype: str) -> None:
    x, y = complex_values(dtype, 0), complex_values(dtype, 1)
    wide = np.clongdouble
    with np.errstate(all="ignore"):
        for op, f in COMPLEX_UNARY.items():
            z = np.where(np.abs(x) > 20, x / 20, x) if op != "neg" else x
            near(run(op, [z], [dtype], dtype), f(z.astype(wide)).astype(x.dtype), 16)
        for op, f in COMPLEX_BINARY.items():
            near(
                run(op, [x, y], [dtype] * 2, dtype),
                f(x.astype(wide), y.astype(wide)).astype(x.dtype),
                4,
            )
        z = np.where(np.abs(y) > 4, y / np.abs(y), y)
        near(
            run("pow", [x, z], [dtype] * 2, dtype),
            np.power(x.astype(wide), z.astype(wide)).astype(x.dtype),
            128,
        )
        near(run("integer_pow", [x], [dtype], dtype, y=3), (x.astype(wide) ** 3).astype(x.dtype), 8)
        near(
            run("integer_pow", [x], [dtype], dtype, y=-2), (x.astype(wide) ** -2).astype(x.dtype), 8
        )
    part = REAL_PART[dtype]
    same(run("abs", [x], [dtype], part), np.abs(x.astype(wide)).astype(x.real.dtype), 1.0)
    same(run("real", [x], [dtype], part), x.real.copy())
    same(run("imag", [x], [dtype], part), x.imag.copy())
    assert (run("conj", [x], [dtype], dtype) == x.conj()).all()
    assert (run("complex", [x.real.copy(), x.imag.copy()], [part] * 2, dtype) == x).all()
    y[::2] = x[::2]
    assert (run("eq", [x, y], [dtype] * 2, "i1") == (x == y)).all()
    assert (run("ne", [x, y], [dtype] * 2, "i1") == (x != y)).all()
    y.real[::3] = x.real[::3]
    order = np.array([(a.real, a.imag) > (b.real, b.imag) for a, b in zip(x, y, strict=True)])
    assert (run("max", [x, y], [dtype] * 2, dtype) == np.where(order, x, y)).all()


def test_complex_edges() -> None:
    def one(op: str, z: complex) -> complex:
        return complex(run(op, [np.array([z], complex)], ["c128"], "c128")[0])

    assert one("exp", complex(INF, 0)) == complex(INF, 0)
    assert one("exp", complex(-INF, INF)) == 0
    assert one("sqrt", complex(-4, -0.0)) == complex(0, -2)
    assert one("sqrt", complex(1e300, 1e300)) == pytest.approx(
        complex(1.09868411e150, 4.55089861e149)
    )
    assert one("sqrt", complex(0, INF)) == complex(INF, INF)
    assert one("log", complex(-1, -0.0)) == complex(0, -math.pi)
    assert one("log", 0) == complex(-INF, 0)
    assert one("tanh", complex(1000, 1)).real == 1
    assert one("sign", 0) == 0
    assert complex(run("pow", [np.zeros(1, complex)] * 2, ["c128"] * 2, "c128")[0]) == 1
    assert float(run("abs", [np.array([complex(NAN, INF)])], ["c128"], "f64")[0]) == INF
    assert float(run("abs", [np.array([1e300 + 1e300j])], ["c128"], "f64")[0]) == pytest.approx(
        math.sqrt(2) * 1e300
    )
    assert complex(
        run("div", [np.ones(1, complex), np.array([1e300 + 1e300j])], ["c128"] * 2, "c128")[0]
    ) == pytest.approx(5e-301 - 5e-301j)


def test_support() -> None:
    assert supports("add") and not supports("dot_general")
    with pytest.raises(NotImplementedError, match="dot_general"):
        lower("dot_general", [], [], "f32", {})
    with pytest.raises(TypeError, match="floor does not take i32"):
        run("floor", [np.zeros(1, np.int32)], ["i32"], "i32")
    assert set(ELEMENT) >= set(INT_BINARY) | set(INT_UNARY) | set(MATH) | set(MATH_BINARY) | set(
        COMPARE
    )

"""What the tests of elements share: primitives run on arrays, and awkward values of every dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import scipy.special

from calque.native.scalars.elements import Cx, lower
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


def bits_of(v: int, dtype: str) -> int:
    low, high = limits(dtype)
    return v % (high - low + 1)


def width(dtype: str) -> int:
    return int(dtype.lstrip("uint"))


COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
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

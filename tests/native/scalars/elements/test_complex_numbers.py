"""Complex elements against wider arithmetic, C's branch cuts and signs of zero."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.native.scalars.elements import complex_numbers
from tests.native.evaluate import Array
from tests.native.scalars.elements.shared import (
    COMPARE,
    COMPLEX,
    INF,
    MATH,
    NAN,
    REAL_PART,
    complex_values,
    near,
    run,
    same,
)

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


def of(op: str, x: Array) -> Array:
    return run(op, [x], ["c128"], "c128")


def test_conjugates_and_opposites() -> None:
    """f(conj z) = conj f(z) for all; odd functions change their sign and even ones do not: also on
    the cuts, where the side is that of the sign of a zero."""
    z = complex_values("c128", 3)
    for op in complex_numbers.UNARY:
        np.testing.assert_array_equal(of(op, z.conj()), of(op, z).conj(), err_msg=op)
    odd = ("sin", "tan", "sinh", "tanh", "asin", "atan", "asinh", "atanh", "neg", "sign")
    for op in odd:
        np.testing.assert_array_equal(of(op, -z), -of(op, z), err_msg=op)
    for op in ("cos", "cosh", "square"):
        np.testing.assert_array_equal(of(op, -z), of(op, z), err_msg=op)


def test_sides_of_the_cuts() -> None:
    """Real arguments with either zero: what Python's cmath says."""
    x = np.array([-3.0, -1.5, 1.5, 3.0])
    for op in ("sqrt", "log", "asin", "acos", "acosh", "atanh"):
        for zero in (0.0, -0.0):
            z = np.empty(4, complex)
            z.real, z.imag = x, zero
            want = [getattr(cmath, op)(complex(v)) for v in z]
            np.testing.assert_allclose(of(op, z), want, rtol=1e-14, atol=1e-15, err_msg=op)
    for op in ("asinh", "atan"):
        for zero in (0.0, -0.0):
            z = np.empty(4, complex)
            z.real, z.imag = zero, x
            want = [getattr(cmath, op)(complex(v)) for v in z]
            np.testing.assert_allclose(of(op, z), want, rtol=1e-14, atol=1e-15, err_msg=op)


def test_infinities() -> None:
    """All pairs of infinities, nans and numbers, as C's annex G has them where it says which."""
    parts = [INF, -INF, 0.0, -0.0, 1.0, -1.0]
    z = np.array([complex(a, b) for a in parts for b in parts])
    for op in ("sqrt", "asin", "acos", "asinh", "acosh", "atanh", "tanh"):
        for v, got in zip(z, of(op, z), strict=True):
            try:
                want = getattr(cmath, op)(complex(v))
            except (ValueError, OverflowError):
                continue
            for g, w in ((got.real, want.real), (got.imag, want.imag)):
                assert g == pytest.approx(w, abs=1e-15, nan_ok=True), (op, v, got, want)


def test_quotients_of_large_and_small_numbers() -> None:
    """Smith's division overflows in no step of its own."""
    z = np.array([1e300 + 1e300j, 1e-300 + 2e-300j, 3e200 - 4e-200j])
    assert np.allclose(run("div", [z, z], ["c128"] * 2, "c128"), 1, rtol=1e-15, atol=1e-300)
    real = np.array([2.0 + 0j] * 3)
    np.testing.assert_array_equal(run("div", [z, real], ["c128"] * 2, "c128"), z / 2)


def test_order_is_by_the_real_parts_first() -> None:
    z = np.array([1 + 2j, 1 + 3j, 0 + 9j, 2 - 1j])
    x, y = np.repeat(z, 4), np.tile(z, 4)
    pairs = [((a.real, a.imag), (b.real, b.imag)) for a, b in zip(x, y, strict=True)]
    for op, f in COMPARE.items():
        assert run(op, [x, y], ["c128"] * 2, "i1").tolist() == [f(a, b) for a, b in pairs], op


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("name", ["sinh", "cosh", "tanh", "sin", "cos", "tan"])
def test_numbers_far_out_without_an_angle(name, dtype):
    """What is finite but so large that its real function overflows is no infinity: where the other
    part is infinite or nan, all is nan."""
    far = np.array([13, -30, 1000, -1e30], np.finfo(dtype).dtype)
    with calque.enable_x64():
        for lost in (np.inf, -np.inf, np.nan):
            turned = name in ("sin", "cos", "tan")
            x = np.array([complex(*((lost, a) if turned else (a, lost))) for a in far], dtype)
            found = np.asarray(getattr(jnp, name)(x))
            assert np.isnan(found.real).all() and np.isnan(found.imag).all()

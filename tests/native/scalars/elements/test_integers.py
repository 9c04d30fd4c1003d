"""Integer elements against Python's own arithmetic: every pair of bytes, and awkward values of
wider types."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from calque.native.scalars.elements import integers
from tests.native.evaluate import Array, apply, numpy_type
from tests.native.scalars.elements.shared import (
    COMPARE,
    INTS,
    bits_of,
    int_values,
    limits,
    run,
    width,
    wrap,
)


def quotient(a: int, b: int) -> int:
    return -1 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


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


def every_pair(dtype: str) -> tuple[Array, Array]:
    low, high = limits(dtype)
    every = np.arange(low, high + 1).astype(numpy_type(dtype))
    return np.repeat(every, len(every)), np.tile(every, len(every))


@pytest.mark.parametrize("dtype", ["i8", "u8"])
def test_every_pair_of_bytes(dtype: str) -> None:
    """Division by zero and of the smallest by -1, and shifts by any amount, have answers."""
    x, y = every_pair(dtype)
    for op in ("div", "rem", "shift_left", "shift_right_logical", "shift_right_arithmetic"):
        f = INT_BINARY[op]
        want = [wrap(f(a, b, dtype), dtype) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
        assert run(op, [x, y], [dtype] * 2, dtype).tolist() == want, op


@pytest.mark.parametrize("dtype", ["i16", "u16", "i32", "u32"])
def test_quotients_by_floats_are_exact(dtype: str) -> None:
    """Vectors divide as floats that hold every quotient; the hardest are those next to whole."""
    low, high = limits(dtype)
    r = np.random.default_rng(0)
    y = np.concatenate([r.integers(1, high, 2000), r.integers(1, 200, 2000)])
    q = r.integers(0, high // y + 1)
    x = np.clip(q * y + r.integers(-1, 2, len(y)), low, high)
    got = apply(
        integers.quotient, *[a.astype(numpy_type(dtype)) for a in (x, y)], dtypes=[dtype] * 2
    )
    assert got.tolist() == [quotient(int(a), int(b)) for a, b in zip(x, y, strict=True)]


@pytest.mark.parametrize("dtype", ["i8", "u8"])
def test_what_divides_never_traps(dtype: str) -> None:
    x, y = every_pair(dtype)
    d = apply(integers.safe_divisor, x, y, dtypes=[dtype] * 2)
    trap = (y == 0) | ((y == -1) & (x == -128) if dtype == "i8" else False)
    assert (d == np.where(trap, 1, y)).all() and trap.any()


@pytest.mark.parametrize("width", [2, 4, 8])
def test_few_bits_of_a_byte(width: int) -> None:
    """What stands above the bits that count does not count."""
    x = np.arange(256).astype(np.uint8)
    count = apply(lambda v: integers.population_count(v, width), x, dtypes=["u8"])
    zeros = apply(lambda v: integers.clz(v, width), x, dtypes=["u8"])
    few = [int(v) % (1 << width) for v in x]
    assert count.tolist() == [v.bit_count() for v in few]
    assert zeros.tolist() == [width - v.bit_length() for v in few]


def test_integers_have_no_negative_powers() -> None:
    with pytest.raises(ValueError, match="integers to the power -1"):
        run("integer_pow", [np.ones(1, np.int32)], ["i32"], "i32", y=-1)

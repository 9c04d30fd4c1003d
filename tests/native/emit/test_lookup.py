"""Tables of 32 numbers, read in one lane and in many, by permutations and by loads."""

import numpy as np
import pytest

from calque.native.emit.modules import processor
from calque.native.loops.tree import For, Store
from calque.native.scalars.expr import float_bits, load, make
from tests.native.emit.shared import array, i, n
from tests.native.run_kernel import run_plain

TABLE = np.linspace(-3, 90, 32).astype("f4")
HAS = [False, True] if processor()["avx512"] else [False]


def looked_up(kind: str, width: int, dtype: str = "f32"):  # type: ignore[no-untyped-def]
    x, y = array("x", "i32", n), array("y", dtype, n)
    bits = tuple(float_bits(float(v), dtype) for v in TABLE)
    e = make("lookup", (load(x, (i,)),), dtype, bits)
    return x, y, (For(i, (Store(y, (i,), e),), (), kind, width),)


@pytest.mark.parametrize("avx512", HAS)
@pytest.mark.parametrize("width", [1, 4, 8, 16, 32, 64])
def test_the_low_five_bits_say_which(width: int, avx512: bool) -> None:
    """Vectors narrower and wider than a register, and their rests."""
    x, y, body = looked_up("vector" if width > 1 else "serial", width)
    for size in (1, width, 3 * width + 5):
        a = np.random.default_rng(0).integers(-(2**31), 2**31, size).astype("i4")
        out = np.zeros(size, "f4")
        text = run_plain(body, {x: a, y: out, "n": size}, avx512=avx512)
        np.testing.assert_array_equal(out, TABLE[a & 31])
    assert ("vpermi2var" in text) == (avx512 and width > 1)


def test_equal_tables_are_one_constant() -> None:
    """And other ones are others, under names that their content gives."""
    x, y, body = looked_up("serial", 1)
    a, out = np.arange(4, dtype="i4"), np.zeros(4, "f4")
    names = [
        line.split(" ")[0]
        for text in (run_plain(b, {x: a, y: out, "n": 4}) for b in (body, body))
        for line in text.splitlines()
        if line.startswith("@table.")
    ]
    assert len(names) == 2 and names[0] == names[1]
    assert "private unnamed_addr constant [32 x float]" in run_plain(body, {x: a, y: out, "n": 4})

"""Instructions written by hand, run."""

import ctypes

import numpy as np
import pytest

from calque.native.emit import instructions
from calque.native.emit.writer import CodeOptions, Writer
from tests.native.emit.shared import address_of


def writer() -> Writer:
    return Writer("f", CodeOptions(), frozenset())


def over(w: Writer, t: str, r: str, x: np.ndarray) -> np.ndarray:
    """The function that replaces the vector at its argument."""
    w.put(f" store {t} {r}, ptr %x, align 1")
    out = x.copy()
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address_of(w, "define void @f(ptr %x)"))(
        out.ctypes.data
    )
    return out


def test_lanes_change_places() -> None:
    x = np.arange(8, dtype="f4")
    t = "<8 x float>"
    w = writer()
    v = w.new(f"load {t}, ptr %x, align 4")
    np.testing.assert_array_equal(over(w, t, instructions.reverse(w, v, "float", 8), x), x[::-1])
    w = writer()
    a = w.new(f"load {t}, ptr %x, align 4")
    b = w.new(f"fneg {t} {a}")
    order = [0, 8, 1, 9, 2, 10, 3, 11]
    r = instructions.shuffle(w, "float", 8, a, order, b)
    np.testing.assert_array_equal(over(w, t, r, x), np.stack([x[:4], -x[:4]], 1).reshape(-1))


@pytest.mark.parametrize("width", [1, 4, 16])
def test_a_scalar_in_every_lane(width: int) -> None:
    w = writer()
    first = w.new("load i16, ptr %x, align 2")
    r = instructions.splat(w, first, "i16", width)
    x = np.arange(7, 7 + width, dtype="i2")
    assert over(w, f"<{width} x i16>", r, x).tolist() == [7] * width


@pytest.mark.parametrize("mask", [[0, 0, 0, 0], [0, 0, 1, 0], [1, 1, 1, 1]])
def test_any_lane(mask: list[int]) -> None:
    w = writer()
    v = w.new("load <4 x i8>, ptr %x, align 1")
    some = instructions.any_lane(w, w.new(f"trunc <4 x i8> {v} to <4 x i1>"), 4)
    wide = w.new(f"zext i1 {some} to i8")
    w.put(f" store i8 {wide}, ptr %x, align 1")
    x = np.array(mask, "u1")
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address_of(w, "define void @f(ptr %x)"))(x.ctypes.data)
    assert x[0] == any(mask)


def test_functions_of_llvm_are_declared_once() -> None:
    """By name and types; equal ones share a line."""
    w = writer()
    for _ in range(2):
        instructions.of_one_type(w, "fma", "float", 8, "%a", "%b", "%c")
    instructions.of_one_type(w, "fma", "double", 0, "%a", "%b", "%c")
    assert w.declared == {
        "declare <8 x float> @llvm.fma.v8f32(<8 x float>, <8 x float>, <8 x float>)",
        "declare double @llvm.fma.f64(double, double, double)",
    }
    assert w.out.lines[0] == (
        " %t1 = call <8 x float> @llvm.fma.v8f32(<8 x float> %a, <8 x float> %b, <8 x float> %c)"
    )
    text = instructions.masked(w, "load", "v4f32.p0", "<4 x float>", "ptr %p", "ptr")
    assert text == "call <4 x float> @llvm.masked.load.v4f32.p0(ptr %p)" and len(w.declared) == 3

"""Instructions and calls of LLVM's own functions, on values whose types are given. A width of 0 is
a scalar."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from calque.native.emit.types import index_list, mangled, vector
from calque.native.emit.writer import Writer

MOST_WOVEN: Final = 4  # vectors


def intrinsic(w: Writer, name: str, suffix: str, result: str, *args: tuple[str, str]) -> str:
    """The call of an LLVM intrinsic on (type, value) operands."""
    full = f"@llvm.{name}.{suffix}" if suffix else f"@llvm.{name}"
    w.declared.add(f"declare {result} {full}({', '.join([t for t, _ in args])})")
    return w.new(f"call {result} {full}({', '.join([f'{t} {v}' for t, v in args])})")


def of_one_type(w: Writer, name: str, t: str, width: int, *values: str) -> str:
    """An intrinsic whose operands and result have one type."""
    full = f"<{width} x {t}>" if width else t
    return intrinsic(w, name, mangled(t, width), full, *[(full, v) for v in values])


def masked(w: Writer, kind: str, name: str, result: str, args: str, types: str) -> str:
    """The text of a call that touches memory in some lanes only."""
    w.declared.add(f"declare {result} @llvm.masked.{kind}.{name}({types})")
    return f"call {result} @llvm.masked.{kind}.{name}({args})"


def words(w: Writer, t: str, size: int, p: str, mask: str | None, n: int) -> str:
    """``n`` words of a type, which are aligned to so many bytes; zeros where the mask is false."""
    full = f"<{n} x {t}>"
    if mask is None:
        return w.new(f"load {full}, ptr {p}, align {size}")
    name, types = f"{mangled(t, n)}.p0", f"ptr, i32, <{n} x i1>, {full}"
    args = f"ptr {p}, i32 {size}, <{n} x i1> {mask}, {full} zeroinitializer"
    return w.new(masked(w, "load", name, full, args, types))


def words_to(w: Writer, t: str, size: int, v: str, p: str, mask: str | None, n: int) -> None:
    """Write ``n`` words of a type, which are aligned to so many bytes, where the mask is true."""
    full = f"<{n} x {t}>"
    if mask is None:
        w.put(f" store {full} {v}, ptr {p}, align {size}")
        return
    args = f"{full} {v}, ptr {p}, i32 {size}, <{n} x i1> {mask}"
    types = f"{full}, ptr, i32, <{n} x i1>"
    w.put(" " + masked(w, "store", f"{mangled(t, n)}.p0", "void", args, types))


def convert(w: Writer, op: str, src: str, v: str, dst: str, width: int) -> str:
    """``op`` from one LLVM type to another."""
    return w.new(f"{op} {vector(src, width)} {v} to {vector(dst, width)}")


def splat(w: Writer, v: str, t: str, width: int) -> str:
    """A scalar in every lane."""
    full = f"<{width} x {t}>"
    first = w.new(f"insertelement {full} poison, {t} {v}, i64 0")
    return w.new(f"shufflevector {full} {first}, {full} poison, <{width} x i32> zeroinitializer")


def shuffle(w: Writer, t: str, width: int, a: str, order: list[int], b: str = "poison") -> str:
    """Lanes of two vectors in another order."""
    full = f"<{width} x {t}>"
    return w.new(f"shufflevector {full} {a}, {full} {b}, {index_list(order)}")


def reverse(w: Writer, v: str, t: str, width: int) -> str:
    return shuffle(w, t, width, v, list(range(width))[::-1])


def interleaved(w: Writer, t: str, width: int, values: Sequence[str]) -> str:
    """The first element of each, then the second of each, and so on: of up to four vectors."""
    parts = list(values)
    order = [j * width + p for p in range(width) for j in range(len(parts))]
    if len(parts) == 2:
        return shuffle(w, t, width, parts[0], order, parts[1])
    parts += ["poison"] * (MOST_WOVEN - len(parts))
    both = list(range(2 * width))
    low, high = (shuffle(w, t, width, parts[k], both, parts[k + 1]) for k in (0, 2))
    return shuffle(w, t, 2 * width, low, order, high)


def any_lane(w: Writer, mask: str, width: int) -> str:
    """Is a mask true anywhere?"""
    return intrinsic(w, "vector.reduce.or", f"v{width}i1", "i1", (f"<{width} x i1>", mask))

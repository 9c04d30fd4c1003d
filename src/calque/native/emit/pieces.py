"""Elements one after the other: read and written in one piece, under a mask where not all are to
be touched."""

from __future__ import annotations

from calque.native.emit.addresses import align, memory_type
from calque.native.emit.instructions import masked
from calque.native.emit.types import mangled
from calque.native.emit.writer import Writer
from calque.native.scalars.expr import Buffer


def contiguous(w: Writer, buf: Buffer, p: str, mask: str | None, n: int) -> str:
    """``n`` elements from a pointer on; zeros where the mask is false."""
    return words(w, memory_type(buf), align(buf), p, mask, n)


def words(w: Writer, t: str, size: int, p: str, mask: str | None, n: int) -> str:
    """``n`` words of a type, which are aligned to so many bytes; zeros where the mask is false."""
    full = f"<{n} x {t}>"
    if mask is None:
        return w.new(f"load {full}, ptr {p}, align {size}")
    name, types = f"{mangled(t, n)}.p0", f"ptr, i32, <{n} x i1>, {full}"
    args = f"ptr {p}, i32 {size}, <{n} x i1> {mask}, {full} zeroinitializer"
    return w.new(masked(w, "load", name, full, args, types))


def store_contiguous(w: Writer, buf: Buffer, p: str, v: str, mask: str | None, n: int) -> None:
    """Write ``n`` elements from a pointer on, where the mask is true."""
    words_to(w, memory_type(buf), align(buf), v, p, mask, n)


def words_to(w: Writer, t: str, size: int, v: str, p: str, mask: str | None, n: int) -> None:
    """Write ``n`` words of a type, which are aligned to so many bytes, where the mask is true."""
    full = f"<{n} x {t}>"
    if mask is None:
        w.put(f" store {full} {v}, ptr {p}, align {size}")
        return
    args = f"{full} {v}, ptr {p}, i32 {size}, <{n} x i1> {mask}"
    types = f"{full}, ptr, i32, <{n} x i1>"
    w.put(" " + masked(w, "store", f"{mangled(t, n)}.p0", "void", args, types))

"""Elements one after the other, in one piece."""

from calque.native.emit.pieces import contiguous, store_contiguous
from calque.native.scalars.expr import Buffer, const
from tests.native.emit.test_writer import writer

X = Buffer("x", (const(64),), "f32")
HALF = "<i1 true, i1 true, i1 false, i1 false>"


def test_without_a_mask_it_is_a_plain_access() -> None:
    w = writer()
    v = contiguous(w, X, "%p", None, 4)
    store_contiguous(w, X, "%q", v, None, 4)
    assert w.out.lines[-2:] == [
        f" {v} = load <4 x float>, ptr %p, align 4",
        f" store <4 x float> {v}, ptr %q, align 4",
    ]


def test_under_a_mask_the_others_are_zeros_and_stay() -> None:
    w = writer()
    v = contiguous(w, X, "%p", HALF, 4)
    store_contiguous(w, X, "%q", v, HALF, 4)
    read, written = w.out.lines[-2:]
    assert "@llvm.masked.load.v4f32.p0" in read and HALF in read
    assert "zeroinitializer" in read and "@llvm.masked.store.v4f32.p0" in written

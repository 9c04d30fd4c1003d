"""How many bytes elements take."""

from calque.native.loops.tree import For, Store
from calque.native.lower.sizes import Sizes
from calque.native.scalars.expr import Buffer, cast, const, ex, load, var
from calque.native.schedule import elements

N = Sizes().dim(1000)
I = var("i", N)


def test_places_that_differ_from_lane_to_lane_count_as_elements() -> None:
    """A gather of bytes has vectors of places, eight bytes each."""
    x, y, p = Buffer("x", (N,), "u8"), Buffer("y", (N,), "u8"), Buffer("p", (N,), "i32")
    plain = For(I, (Store(y, (I,), load(x, (I,))),))
    gathered = For(I, (Store(y, (I,), load(x, (ex("mul", I, const(7)),))),))
    compared = For(I, (Store(y, (I,), load(x, (I,), ex("lt", ex("add", I, const(3)), N))),))
    assert elements.element_bytes(plain) == 1
    assert (
        elements.element_bytes(gathered) == elements.element_bytes(compared) == elements.PLACE_BYTES
    )
    wide = For(I, (Store(y, (I,), load(x, (cast(load(p, (I,)), "i64"),))),))
    assert elements.element_bytes(wide) == 4

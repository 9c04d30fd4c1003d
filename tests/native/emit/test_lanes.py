"""Which lanes code stands for."""

from calque.native.emit.lanes import SCALAR, Lanes
from calque.native.scalars.expr import (
    LANE,
    Buffer,
    ex,
    load,
    make,
    ref,
)
from tests.native.emit.shared import (
    c,
    i,
    n,
)


def test_lanes_are_handed_on_and_never_changed():
    lanes = Lanes(8, "i", frozenset({"i", "s"}), "%mask", None)
    part = lanes.only("%some")
    assert (lanes.active, part.active) == ("%mask", "%some")
    assert part.vary(ref("s", "f32")) and not part.vary(n)
    assert lanes.holding("s") is lanes and lanes.holding("t") is SCALAR
    inside = lanes.seeing(["l", "r"])
    assert inside.vary(ref("l", "f32")) and not inside.vary(i) and inside.exist == "%mask"
    assert not SCALAR.seeing(["l"]).varying and lanes.parts(4) == Lanes(4)


def test_what_differs_from_lane_to_lane():
    lanes = Lanes(8, "i", frozenset({"i", "s"}))
    assert lanes.vary(ex("add", i, c(1))) and lanes.vary(make("x", (ref("s", "f32"), n), "f32"))
    assert not lanes.vary(n) and not SCALAR.vary(i)
    lane_memory = load(Buffer("t", (4,), "f32", "lane"), (c(0),))
    assert Lanes(8, "i", frozenset({"i", LANE})).vary(lane_memory) and not lanes.vary(lane_memory)


def test_masks_inside_of_masks():
    """In a rest some lanes do not exist; where lanes part, those here are some of those."""
    rest = Lanes(8, "i", frozenset({"i"}), exist="%exist", rest=True)
    assert rest.active == "%exist" and rest.only("%h").active == "%h"
    assert rest.only("%h").exist == "%exist" and rest.only("%h").rest
    whole = rest.parts(4)
    assert whole.width == 4 and whole.active is None and whole.rest and not whole.varying

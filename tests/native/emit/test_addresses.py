"""Where elements are, how they move from lane to lane, and what of an address stands outside of a
loop."""

import pytest

from calque.native.emit import addresses
from calque.native.emit.lanes import SCALAR, Lanes
from calque.native.emit.writer import CodeOptions, Writer
from calque.native.scalars.expr import Buffer, ex, ref
from tests.native.emit.shared import c, i, j, m, n

X = Buffer("x", (n, m), "f32")
LANES = Lanes(8, "j", frozenset({"j"}))


def writer() -> Writer:
    """In two loops, one in the other."""
    w = Writer("k", CodeOptions(), frozenset())
    w.pointers[X] = "%x"
    for name in "nm":
        w.bind(name, f"%{name}")
    for name in "ij":
        w.open(f"b{name}")
        w.bind(name, f"%{name}")
    return w


def lines(w: Writer) -> list[int]:
    return [len(s.lines) for s in w.scopes]


@pytest.mark.parametrize(
    "idx, step",
    [
        ((i, j), 1),
        ((i, ex("sub", ex("sub", m, c(1)), j)), -1),
        ((i, ex("mul", j, c(3))), 3),
        ((i, c(5)), 0),
        ((j, i), None),
        ((i, ref("s", "i64")), None),
    ],
)
def test_how_far_lanes_are_apart(idx, step) -> None:  # type: ignore[no-untyped-def]
    lanes = LANES._replace(varying=frozenset({"j", "s"}))
    at, moved = addresses.moving_place(X, idx, lanes)
    assert moved == step and at is addresses.place(X, idx)
    assert addresses.moving_place(X, idx, SCALAR)[1] == 0


def test_the_row_of_an_address_stands_outside() -> None:
    """i m once a row, in the loop over i; what is constant beside it too; one step inside."""
    w = writer()
    addresses.address(w, X, addresses.place(X, (i, j)), LANES)
    assert lines(w) == [0, 2, 1]  # i m, its address; x[row + j]
    addresses.address(w, X, addresses.place(X, (i, ex("add", j, c(3)))), LANES)
    assert lines(w)[0] == 0 and lines(w)[2] == 2
    first = addresses.address(w, X, addresses.place(X, (c(0), c(0))), LANES)
    assert first == "%x" and lines(w)[2] == 2
    addresses.address(w, X, addresses.place(X, (c(0), c(0))), LANES, -7)
    assert w.out.lines[-1].endswith("getelementptr float, ptr %x, i64 -7")


def test_pointers_of_every_place() -> None:
    """Arguments, constants, memory of the function's own; a lane buffer for each width."""
    w = writer()
    own, lane = Buffer("s", (4, 2), "f64", "stack"), Buffer("l", (4,), "f16", "lane")
    data = Buffer("t", (2,), "u8", "const", b"ab")
    assert addresses.pointer(w, X, LANES) == "%x"
    assert addresses.pointer(w, data, SCALAR) == addresses.pointer(w, data, LANES)
    assert addresses.pointer(w, own, SCALAR) == addresses.pointer(w, own, LANES)
    wide, narrow = addresses.pointer(w, lane, LANES), addresses.pointer(w, lane, Lanes(4))
    assert len({wide, narrow, addresses.pointer(w, own, SCALAR)}) == 3
    text = w.text("define void @k()", "ret void")
    for found in ("[8 x double]", "[4 x <8 x half>]", "[4 x <4 x half>]", 'c"\\61\\62"'):
        assert found in text
    empty = Buffer("e", (0,), "f32", "stack")
    addresses.pointer(w, empty, SCALAR)
    assert "[1 x float]" in w.text("define void @k()", "ret void")


def test_elements_in_memory() -> None:
    lane = Buffer("l", (4,), "bf16", "lane")
    assert addresses.element_type(lane, LANES) == "<8 x i16>"
    assert addresses.element_type(X, LANES) == "float"
    assert addresses.memory_type(Buffer("q", (n,), "int4"), 4) == "<4 x i8>"
    sizes = {"i1": 1, "f16": 2, "f64": 8, "float8_e5m2": 1}
    assert {d: addresses.align(Buffer("b", (n,), d)) for d in sizes} == sizes


def test_which_lanes_may() -> None:
    """Those that are here and whose guard holds."""
    w = writer()
    here = LANES.only("%here")
    assert addresses.lanes_mask(w, None, LANES) is None
    assert addresses.lanes_mask(w, None, here) == "%here"
    guard = ex("lt", j, n)
    assert guard.op == "lt"
    alone = addresses.lanes_mask(w, guard, LANES)
    both = addresses.lanes_mask(w, guard, here)
    assert w.out.lines[-1] == f" {both} = and <8 x i1> {alone}, %here"

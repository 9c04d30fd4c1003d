"""Nests that read along one loop and write along another: in tiles, or rows at a time."""

from functools import partial

import numpy as np
import pytest

import calque.numpy as jnp
from calque.native.loops.tree import For, Store
from calque.native.lower.sizes import Sizes
from calque.native.scalars.expr import Buffer, const, ex, load, var
from calque.native.schedule import turned_round
from tests.native.programs import check, normal
from tests.native.schedule.shared import chosen_in

S = Sizes()
N, M = S.dim(1000), S.dim(700)
chosen = partial(chosen_in, S)
I, J = var("i", N), var("j", M)


def test_read_along_one_loop_written_along_the_other() -> None:
    square = Buffer("q", (N, N), "f32")
    k = var("k", N)
    turned = For(I, (For(k, (Store(Buffer("p", (N, N), "f32"), (I, k), load(square, (k, I))),)),))
    loops, why = chosen(turned)
    assert loops[0][1] == "tile" and loops[1][1] == "vector" and "tiles of" in why
    bytes_ = Buffer("q", (N, N), "u8")
    other = For(I, (For(k, (Store(Buffer("p", (N, N), "u8"), (I, k), load(bytes_, (k, I))),)),))
    assert chosen(other)[0][0] == ("i", "tile", turned_round.MOST_TILE)


def test_loops_change_places_for_tiles() -> None:
    """The loop that something is read along comes next to the one that it is written along."""
    few, k = S.dim(12), var("k", S.dim(12))
    source, target = Buffer("q", (M, few, N), "f32"), Buffer("p", (N, few, M), "f32")
    moved = Store(target, (I, k, J), load(source, (J, k, I)))
    loops, why = chosen(For(I, (For(k, (For(J, (moved,)),)),)))
    assert [x[:2] for x in loops] == [("k", "serial"), ("i", "tile"), ("j", "vector")]
    assert "read along it, written along j" in why


def test_loops_that_go_on_are_one_for_tiles() -> None:
    """Where the innermost loop is short, and the one around it goes on with it."""
    a, b = var("a", const(6)), var("b", const(5))
    source, target = Buffer("q", (6, 5, N), "f32"), Buffer("p", (N, 6, 5), "f32")
    moved = Store(target, (I, a, b), load(source, (a, b, I)))
    loops, _ = chosen(For(I, (For(a, (For(b, (moved,)),)),)))
    assert [x[:2] for x in loops] == [("i", "tile"), ("a", "vector")]


def test_short_rows_are_written_side_by_side() -> None:
    """before: for i: for c < 3: y[i, c] = x[c, i]      after: for i @vector: three stores"""
    k = var("k", const(3))
    moved = Store(Buffer("p", (N, 3), "f32"), (I, k), load(Buffer("q", (3, N), "f32"), (k, I)))
    loops, why = chosen(For(I, (For(k, (moved,)),)))
    assert [x[:2] for x in loops] == [("i", "vector")] and "rows of 3 elements" in why
    wide = Store(Buffer("p", (N, 5), "f32"), (I, k), load(Buffer("q", (3, N), "f32"), (k, I)))
    assert "rows of" not in chosen(For(I, (For(k, (wide,)),)))[1]


def test_rows_in_tiles() -> None:
    """Rows of three elements that are read neither along themselves nor along each other."""
    k = var("k", const(3))
    source, target = Buffer("q", (3, M, N), "f32"), Buffer("p", (N, M, 3), "f32")
    moved = Store(target, (I, J, k), load(source, (k, J, I)))
    loops, why = chosen(For(I, (For(J, (For(k, (moved,)),)),)))
    assert [x[:2] for x in loops] == [("i", "tile"), ("j", "vector")] and "tiles" in why


def test_loops_go_the_other_way_where_something_is_read_backwards() -> None:
    """before: for i: for k: p[i, k] = q[k, n - 1 - i]
    after:  for i @tile: for k: p[n - 1 - i, k] = q[k, i]"""
    square, k = Buffer("q", (N, N), "f32"), var("k", N)
    back = ex("sub", ex("sub", N, const(1)), I)
    leaf = For(k, (Store(Buffer("p", (N, N), "f32"), (I, k), load(square, (k, back))),))
    loops, why = chosen(For(I, (leaf,)))
    assert [x[:2] for x in loops] == [("i", "tile"), ("k", "vector")] and "tiles of" in why
    (_, other) = turned_round.facing([For(I, (leaf,)), leaf])
    (store,) = other.body
    assert isinstance(store, Store)
    assert store.idx == (back, k) and store.value.args == (k, I)
    along = For(k, (Store(Buffer("p", (N, N), "f32"), (k, I), load(square, (back, k))),))
    assert turned_round.facing([For(I, (along,)), along])[1] is along


@pytest.mark.parametrize("dtype", ["float32", "uint8", "complex64"])
@pytest.mark.parametrize("times", [1, 2, 3])
def test_quarter_turns(times: int, dtype: str) -> None:
    for shape in ((97, 130), (16, 16), (3, 200), (300, 5)):
        x = (normal(*shape) * 50).astype(dtype)
        check(lambda x: jnp.rot90(x, times), x)
        np.testing.assert_array_equal(np.asarray(jnp.rot90(x, times)), np.rot90(x, times))

"""Which loop becomes a vector, and why."""

from functools import partial
from typing import Any

import numpy as np
import pytest

import calque.numpy as jnp
from calque.machine.code.target import describe
from calque.machine.records import replace
from calque.native.loops.tree import Acc, Fold, For, If, LoopValue, Recurrence, Store
from calque.native.lower.sizes import Sizes
from calque.native.scalars.expr import Buffer, const, ex, load, make, ref, var
from calque.native.schedule import vectors
from tests.native.programs import check, normal
from tests.native.schedule.shared import chosen_in

S = Sizes()
N, M = S.dim(1000), S.dim(700)
chosen = partial(chosen_in, S)
I, J = var("i", N), var("j", M)
X, Y, Z = Buffer("x", (N, M), "f32"), Buffer("y", (N, M), "f32"), Buffer("z", (N,), "f32")
V = load(X, (I, J))


def test_columns_are_vectors_around_serial_sums() -> None:
    e = check(lambda x: x.sum(0), normal(300, 150), tol=1e-3)
    assert "around serial loops" in " ".join(e.calls[0].schedule.reasons)
    e = check(lambda x: x.sum(1), normal(500, 300), tol=1e-3)
    assert "around" not in " ".join(e.calls[0].schedule.reasons)


def test_transposes_run_in_tiles() -> None:
    e = check(lambda x: x.T + 1.0, normal(100, 130))
    assert "tiles" in " ".join(e.calls[0].schedule.reasons)
    check(lambda x: x.T * 2.0, normal(20, 130).astype(np.float32))


def test_the_innermost_loop_along_memory() -> None:
    loops, why = chosen(For(I, (For(J, (Store(Y, (I, J), ex("mul", V, V)),)),)))
    assert loops[0][:2] == ("i", "serial") and loops[1][:2] == ("j", "vector")
    assert why.startswith("j: vector: cost")


def test_sums_keep_their_order() -> None:
    total = Acc("s", "sum", V)
    row = (For(J, (), (total,)), Store(Z, (I,), ref("s", "f32")))
    loops, why = chosen(For(I, row))
    assert loops == [("i.far", "serial", 1), ("j", "vector", 64)]
    assert "the order of its sum" in why and "far apart" in why
    in_order = (For(J, (), (replace(total, order="sequential"),)), row[1])
    loops, why = chosen(For(I, in_order))
    lanes = describe().vector_bytes // 4
    assert loops == [("i", "vector", lanes), ("j", "serial", 1)] and "read in squares" in why
    assert "added in the order of the loop" in chosen(in_order[0])[1]
    scan = replace(total, running=True)
    loops, _ = chosen(For(I, (For(J, (Store(Y, (I, J), ref("s", "f32")),), (scan,)),)))
    assert loops[1] == ("j", "vector", 16)


@pytest.mark.parametrize("size, width", [(1, 2), (2, 2), (5, 8), (40, 64), (64, 64), (100, 64)])
def test_short_sums_take_narrow_vectors(size: int, width: int) -> None:
    k = var("k", size)
    x = Buffer("x", (size,), "f32")
    loops, _ = chosen(For(k, (), (Acc("s", "sum", load(x, (k,))),)))
    assert loops == [("k", "vector", width)]


def test_what_stays_serial() -> None:
    y = Buffer("y", (N,), "f32")
    row = Buffer("row", (8,), "f32", "stack")
    colliding = For(I, (Store(y, (const(0),), load(Z, (I,))),), colliding=True)
    assert chosen(colliding) == (
        [("i", "serial", 1)],
        "i: serial: its iterations write the same places",
    )
    shares = For(I, (Store(row, (const(0),), load(Z, (I,))),))
    assert "share a row on the stack" in chosen(shares)[1]
    done = replace(colliding, colliding=False, kind="parallel")
    assert chosen(done) == ([("i", "parallel", 1)], "")
    spread = For(I, (Store(y, (ex("mul", I, const(64)),), const(1.0, "f32")),))
    assert "serial: cost" in chosen(spread)[1]


@pytest.mark.parametrize("size", [5, 7, 48])
def test_a_loop_that_is_used_in_parts_is_two(size: int) -> None:
    """No lane divides; very short parts are rows that are written at once."""
    v = var("v", 10 * size)
    x, y = Buffer("x", (10, size), "f32"), Buffer("y", (10 * size,), "f32")
    other = load(x, (ex("floordiv", v, const(size)), const(0)))
    each = load(x, (ex("floordiv", v, const(size)), ex("mod", v, const(size))))
    loops, _ = chosen(For(v, (Store(y, (v,), ex("add", each, other)),)))
    assert [(name, kind) for name, kind, _ in loops] == [("v.q", "serial"), ("v.r", "vector")]


def test_running_folds_step_from_row_to_row() -> None:
    """Where rows are the axis; of a fold that is much code not."""
    k = var("k", M)
    c = var("c", N)
    x, y = Buffer("x", (M, N), "f32"), Buffer("y", (M, N), "f32")

    def nest(acc: Any) -> For:
        return For(c, (For(k, (Store(y, (k, c), ref("s", "f32")),), (acc,)),))

    light = Acc("s", "sum", load(x, (k, c)), running=True)
    assert "steps from row to row" in chosen(nest(light))[1]
    left, right = ref("l", "f32"), ref("r", "f32")
    dear = left
    for _ in range(4):
        dear = ex("add", make("exp", (dear,), "f32"), right)
    heavy = Fold(("s",), (const(0.0, "f32"),), (load(x, (k, c)),), (left,), (right,), (dear,),
    running=True)  # fmt: skip
    assert not vectors.is_light(heavy) and vectors.is_light(light)
    assert "steps" not in chosen(nest(heavy))[1]


def test_widths_follow_elements_and_work() -> None:
    """Bytes go more at a time than doubles; long chains fewer; loops that part, one register."""

    def width(dtype: str, steps: int = 1, around: Any = None) -> int:
        x, y = Buffer("x", (N,), dtype), Buffer("y", (N,), dtype)
        e = load(x, (I,))
        for _ in range(steps):
            e = ex("mul", e, e) if steps == 1 else make("exp", (e,), dtype)
        body: Any = (Store(y, (I,), e),)
        if around is not None:
            body = around(body, load(x, (I,)))
        return chosen(For(I, body))[0][0][2]

    assert width("u8") == 8 * width("f64") and width("f32") == 2 * width("f64")
    assert width("f32", 20) < width("f32")
    zero = const(0.0, "f32")
    parting = width("f32", around=lambda b, v: (If(ex("lt", v, zero), b),))
    rounds = width("f32", around=lambda b, v: (Recurrence((
        LoopValue("t", v, ex("sub", ref("t", "f32"), v)),
    ), b, cond=ex("gt", ref("t", "f32"), zero)),))  # fmt: skip
    assert parting < rounds < width("f32")


def test_registers_around_serial_loops_follow_the_work() -> None:
    """Eight where short sums wait for each other; half as many in long bodies, and where nothing is
    added: LLVM writes each one's part of the body."""

    rows, columns, three = S.dim(300), S.dim(150), const(3)
    x, y = Buffer("x", (rows, columns), "f32"), Buffer("y", (three, columns), "f32")
    z = Buffer("z", (columns,), "f32")
    i, j, k = var("i", columns), var("j", rows), var("k", three)

    def width(steps: int, adds: bool) -> int:
        e = load(x, (j if adds else k, i))
        for _ in range(steps):
            e = ex("mul", e, e)
        sums = (For(j, (), (Acc("s", "sum", e),)), Store(z, (i,), ref("s", "f32")))
        copies = (For(k, (Store(y, (k, i), e),)),)
        ((loop,), (why,)) = vectors.vectorized((For(i, sums if adds else copies),), S)
        assert isinstance(loop, For) and loop.kind == "vector" and "around serial loops" in why
        return loop.width

    one = vectors.describe().vector_bytes // 4
    assert width(0, adds=True) == 8 * one and width(12, adds=True) == 4 * one
    assert width(0, adds=False) == 4 * one and width(60, adds=False) == 2 * one


@pytest.mark.parametrize("extent, fits", [(1, 2), (3, 4), (16, 16), (20, 32), (40, 64), (1000, 64)])
def test_no_wider_than_the_loop(extent: int, fits: int) -> None:
    """Of what is baked just so wide; of what is a size, no less than short vectors are; and no more
    than the loop has turns, where all of it would be left over."""
    v = vectors._Vectorizer(S)
    v.vector_bytes = vectors.GATHERS
    assert v.fit(64, S.dim(extent)) == fits
    v.vector_bytes = 32
    assert v.fit(64, S.dim(extent)) == (32 if extent == 40 else fits)


def test_little_is_left_over_where_nothing_is_masked() -> None:
    """Rows of 96 bytes are three vectors of 32, not one of 64 and 32 bytes one after the other."""
    v = vectors._Vectorizer(S)
    v.vector_bytes = 32
    for dtype, fits in (("u8", 32), ("f32", 64)):
        row = var("r", S.dim(96))
        read = load(Buffer("x", (N, S.dim(96)), dtype), (I, row))
        f = For(row, (Store(Buffer("y", (S.dim(96),), dtype), (row,), read),))
        assert v.evenly(64, f, 32) == fits
    v.vector_bytes = vectors.GATHERS
    assert v.evenly(64, f, 32) == 64


def test_columns_stacked() -> None:
    """What is computed for each place of a short row is written as rows."""
    for f, x in (
        (lambda x: jnp.cross(x, x * x), normal(500, 3)),
        (lambda x: jnp.stack([x[:, 0], x[:, 1] * 2, x[:, 2]], -1), normal(500, 3)),
        (lambda x: jnp.stack([x * 2, x + 1], -1).reshape(20, 128), normal(20, 64)),
    ):
        e = check(f, x, tol=1e-5)
        assert "elements are written" in " ".join(e.calls[0].schedule.reasons)

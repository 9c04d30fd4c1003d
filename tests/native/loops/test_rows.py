"""Loops over the rows of a tile: each statement for all rows before the next one, or the rows one
after the other once their sums are there."""

import numpy as np
import pytest

from calque.native.loops.rows import has_rows, written_out
from calque.native.loops.tree import Acc, Body, For, If, Let, Store, as_fold, pretty
from calque.native.loops.verify import MalformedKernel, verify
from calque.native.scalars.expr import Buffer, Expr, const, ex, load, ref, var
from tests.native.run_kernel import run_plain

X, W = Buffer("x", (const(5), var("K")), "f32"), Buffer("w", (var("K"), const(8)), "f32")
Y = Buffer("y", (const(5), const(8)), "f32")
S, M2 = ref("s", "f32"), var("m", 2)


def tile(*after: Let | Store | If, rows: int = 5) -> Body:
    m, k, j = var("m", rows), var("k", var("K")), var("j", 8)
    value = ex("mul", load(X, (m, k)), load(W, (k, j)))
    sums = For(k, (), (Acc("s", "sum", value, order="sequential"),))
    return (For(j, (For(m, (sums, *after), kind="rows"),), kind="vector", width=8),)


def store(value: Expr, row: Expr | None = None) -> Store:
    return Store(Y, (var("m", 5) if row is None else row, var("j", 8)), value)


PLAIN = tile(store(ex("max", S, const(0.0, "f32"))))


def test_each_statement_for_all_rows() -> None:
    assert has_rows(PLAIN) and "for m < 5 @rows:" in pretty(PLAIN)
    made = written_out(tile(store(S, M2), rows=2))
    assert not has_rows(made)
    assert pretty(made).splitlines() == [
        "for j < 8 @vector(8):",
        "  for k < K:",
        "    s.0 = sequential sum((x[0, k] * w[k, j]))",
        "    s.1 = sequential sum((x[1, k] * w[k, j]))",
        "  y[0, j] = s.0",
        "  y[1, j] = s.1",
    ]


def test_rows_one_after_the_other_once_there_are_sums() -> None:
    made = pretty(written_out(PLAIN, rolled=True)).splitlines()
    assert made[7:] == [
        "  for m < 5:",
        "    let s = pick(m, s.0, s.1, s.2, s.3, s.4)",
        "    y[m, j] = max(s, 0)",
    ]
    few = tile(store(S, var("m", 3)), rows=3)
    assert written_out(few, rolled=True) == written_out(few)


def test_what_a_row_reads_is_read_before_another_one_stores_it() -> None:
    """In rounds of long sums the last rows of a tile may be one and the same."""
    one = ex("min", var("m", 5), const(3))
    before = load(Y, (one, var("j", 8)))
    body = tile(Let("t", ex("add", before, S)), store(ref("t", "f32"), one))
    verify(body)
    x, w = np.ones((5, 4), "f"), np.full((4, 8), 2, "f")
    for share in (False, True):
        y = np.ones((5, 8), "f")
        run_plain(body, {X: x, W: w, Y: y, "K": 4}, share_loops=share)
        np.testing.assert_array_equal(y, [[9.0] * 8] * 4 + [[1.0] * 8])
    assert pretty(written_out(body, rolled=True)).splitlines()[7:] == [
        "  for m < 5:",
        "    let s = pick(m, s.0, s.1, s.2, s.3, s.4)",
        "    let t = (y[min(m, 3), j] + s)",
        "    t.kept[m] = t",
        "  for m < 5:",
        "    let s = pick(m, s.0, s.1, s.2, s.3, s.4)",
        "    let t = t.kept[m]",
        "    y[min(m, 3), j] = t",
    ]


def test_conditions_that_are_the_same_for_all_rows_stand_once() -> None:
    last = ex("ge", var("K"), const(4))
    body = tile(If(last, (store(ex("neg", S), M2),), (store(S, M2),)), rows=2)
    made = pretty(written_out(body)).splitlines()
    assert made[4:] == [
        "  if (K >= 4):",
        "    y[0, j] = neg(s.0)",
        "    y[1, j] = neg(s.1)",
        "  else:",
        "    y[0, j] = s.0",
        "    y[1, j] = s.1",
    ]


@pytest.mark.parametrize("share", [False, True])
def test_both_forms_give_the_same_numbers(share: bool) -> None:
    g = np.random.default_rng(0)
    x, w, y = g.standard_normal((5, 6), "f"), g.standard_normal((6, 8), "f"), np.zeros((5, 8), "f")
    text = run_plain(PLAIN, {X: x, W: w, Y: y, "K": 6}, share_loops=share)
    assert ("call void @loop_" in text) == share
    np.testing.assert_allclose(y, np.maximum(x @ w, 0), 1e-5, 1e-6)


OUTSIDE = For(var("m", 5), (Store(Y, (var("m", 5), const(0)), const(1.0, "f32")),), kind="rows")
UNKNOWN = For(var("m", var("n")), (store(S),), kind="rows")


@pytest.mark.parametrize(
    "body",
    [
        tile(store(S), Let("t", S)),
        (OUTSIDE,),
        (For(var("j", 8), (UNKNOWN,), kind="vector", width=8),),
    ],
)
def test_what_is_no_tile_is_refused(body: Body) -> None:
    with pytest.raises(MalformedKernel):
        verify(body)


def test_sums_that_read_what_is_stored_are_refused() -> None:
    m, k, j = var("m", 5), var("k", var("K")), var("j", 8)
    sums = For(k, (), (Acc("s", "sum", load(Y, (m, j)), order="sequential"),))
    body = (For(j, (For(m, (sums, store(S)), kind="rows"),), kind="vector", width=8),)
    with pytest.raises(MalformedKernel, match="sums first"):
        verify(body)


def test_folds_of_several_values_are_refused() -> None:
    """A row has sums with one name each."""
    k, j = var("k", var("K")), var("j", 8)
    sums = For(k, (), (as_fold(Acc("s", "sum", load(W, (k, j)), order="sequential")),))
    body = (For(j, (For(var("m", 5), (sums, store(S)), kind="rows"),), kind="vector", width=8),)
    with pytest.raises(MalformedKernel, match="cannot each have"):
        verify(body)

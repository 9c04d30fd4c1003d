"""The verifier sees the order of folds and the loops whose turns collide."""

import pytest

from calque.native.loops.tree import Acc, Fold, For, Store
from calque.native.loops.verify import MalformedKernel, verify
from calque.native.scalars.expr import Buffer, const, ex, load, ref, var

n = var("n")
i = var("i", n)
X, Y, TOTAL = Buffer("x", (n,), "f32"), Buffer("y", (n,), "f32"), Buffer("total", (), "f32")


def summed(order, kind="serial", width=1, dtype="f32", extent=n):
    k = var("k", extent)
    x = Buffer("x", (extent,), dtype)
    return (For(k, (), (Acc("s", "sum", load(x, (k,)), order=order),), kind, width),)


def joined(order, kind="serial", width=1):
    """A fold of the general kind: a + b."""
    a, b = ref("a", "f32"), ref("b", "f32")
    value = load(X, (i,))
    fold = Fold(("s",), (const(0.0, "f32"),), (value,), (a,), (b,), (ex("add", a, b),), order=order)
    return (For(i, (), (fold,), kind, width),)


@pytest.mark.parametrize("make", [summed, joined])
def test_a_fold_stands_in_a_loop_of_its_order(make) -> None:
    verify(make("sequential"))
    verify(make("blocked", "vector", 64))
    with pytest.raises(MalformedKernel, match=r"in blocks, but . is serial"):
        verify(make("blocked"))
    with pytest.raises(MalformedKernel, match=r"in the order of ., which is vector"):
        verify(make("sequential", "vector", 64))
    with pytest.raises(MalformedKernel, match="no order"):
        verify(make("any"))


def test_nests_are_not_vectors_yet() -> None:
    verify(summed("blocked"), chosen="nothing")
    with pytest.raises(MalformedKernel, match="which is vector"):
        verify(summed("sequential", "vector", 64), chosen="nothing")


def test_where_the_order_shows_in_no_bit_any_loop_will_do() -> None:
    verify(summed("blocked", dtype="i32"))
    verify(summed("sequential", "vector", 8, "i32"))
    verify(summed("blocked", extent=const(1)))


@pytest.mark.parametrize("kind", ["vector", "parallel"])
def test_turns_that_collide_are_serial(kind) -> None:
    body = (Store(Y, (i,), load(X, (i,))),)
    width = 8 if kind == "vector" else 1
    verify((For(i, body, colliding=True),))
    verify((For(i, body, (), kind, width),))
    with pytest.raises(MalformedKernel, match="may write the same place"):
        verify((For(i, body, (), kind, width, colliding=True),))


def test_folds_in_rounds_are_two_loops_in_the_end() -> None:
    body = (For(i, (), (Acc("s", "sum", load(X, (i,)), order="sequential", round=16),)),)
    verify(body, chosen="nothing")
    verify(body, chosen="vectors")
    with pytest.raises(MalformedKernel, match=r"goes in rounds of ., which is one loop"):
        verify(body)

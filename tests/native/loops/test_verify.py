"""The verifier sees the order of folds and the loops whose turns collide."""

import pytest

from calque.native.loops.tree import Acc, Fold, For, LoopValue, Recurrence, Store, statements
from calque.native.loops.verify import MalformedKernel, verify
from calque.native.scalars.expr import Buffer, const, ex, load, ref, var

n, m = var("n"), var("m")
i, j = var("i", n), var("j", m)
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


def broken():
    x, y = Buffer("x", (n, m), "f32"), Buffer("y", (n,), "f32")
    s = Store(y, (i,), const(0.0, "f32"))
    yield "is used outside", (For(i, (s,)), s)
    yield "is not known", (For(i, (Store(y, (i,), ref("z", "f32")),)),)
    yield "f32 wanted", (For(i, (Store(y, (i,), const(1, "i32")),)),)
    yield "is an input", (For(i, (For(j, (Store(x, (i, j), const(0.0, "f32")),)),)),)
    yield "not the outermost", (For(i, (s,), (), "parallel"), For(i, (s,)))
    yield (
        "stands in that",
        (
            For(
                i,
                (For(j, (Store(x, (i, j), const(0.0, "f32")),), (), "vector", 4),),
                (),
                "vector",
                4,
            ),
        ),
    )
    row = Buffer("row", (const(1),), "f32", "stack")
    late = Acc("a", "max", load(row, (const(0),)), running=True)
    filled = Store(row, (const(0),), load(y, (i,)))
    yield "folded before its turn stores row", (For(i, (filled,), (late,)),)
    yield "no power of two", (For(i, (s,), (), "vector", 12),)
    yield "is its order", (For(i, (), (Acc("a", "sum", load(y, (i,))),), "vector", 32),)
    yield "is its order", (For(i, (), (Acc("a", "scan", load(y, (i,))),), "vector", 32),)
    yield "all lanes store", (For(i, (Store(y, (const(0),), load(y, (i,))),), (), "vector", 4),)
    yield "bound where", (For(i, (For(i, (s,)),)),)
    yield "no fold", (For(i, (), (Acc("a", "mean", load(y, (i,))),)),)
    yield "indices given", (For(i, (Store(y, (i, i), const(0.0, "f32")),)),)
    yield "without count", (Recurrence((), ()),)
    yield (
        "changes from",
        (
            Recurrence(
                (LoopValue("a", const(0), const(0.0, "f32")),),
                (),
                cond=ex("lt", ref("a", "i64"), const(5)),
            ),
        ),
    )


@pytest.mark.parametrize("message, body", list(broken()))
def test_the_verifier_refuses(message, body):
    x = next((s.buf for s in statements(body) if isinstance(s, Store) and s.buf.name == "x"), None)
    with pytest.raises(MalformedKernel, match=message):
        verify(body, [x] if x is not None and message == "is an input" else [])


def test_what_is_brought_near_is_an_element_inside_of_a_serial_loop() -> None:
    body = (Store(Y, (i,), load(X, (i,))),)
    verify((For(i, body, ahead=(load(X, (ex("min", ex("add", i, const(1)), n),)),)),))
    with pytest.raises(MalformedKernel, match="is no element"):
        verify((For(i, body, ahead=(ex("add", i, const(1)),)),))
    with pytest.raises(MalformedKernel, match="brings near"):
        verify((For(i, body, colliding=True, ahead=(load(X, (i,)),)),))
    with pytest.raises(MalformedKernel, match="brings near, but is vector"):
        verify((For(i, body, kind="vector", width=8, ahead=(load(X, (i,)),)),))

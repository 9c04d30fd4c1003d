"""Stores whose conditions are known."""

from calque.native.loops.decided import decided
from calque.native.loops.tree import Acc, For, If, Recurrence, Store
from calque.native.scalars.expr import FALSE, TRUE, Buffer, ex, load, ref, var

N = ref("n", "i64")
I = var("i", N)
X, Y = Buffer("x", (N,), "f32"), Buffer("y", (N,), "f32")
ASKED = ex("lt", I, ref("m", "i64"))


def test_guards_that_hold_and_those_that_never_do() -> None:
    free, asking = Store(Y, (I,), load(X, (I,))), Store(Y, (I,), load(X, (I,)), ASKED)
    always, never = Store(Y, (I,), load(X, (I,)), TRUE), Store(Y, (I,), load(X, (I,)), FALSE)
    assert decided((free, always, never, asking)) == (free, free, asking)
    assert decided((For(I, (never, always)),)) == (For(I, (free,)),)
    made = decided((If(ASKED, (always,), (never,)), Recurrence((), (never,), I)))
    assert made == (If(ASKED, (free,), ()), Recurrence((), (), I))


def test_loops_of_which_nothing_is_left() -> None:
    never = Store(Y, (I,), load(X, (I,)), FALSE)
    assert decided((For(I, (For(var("j", N), (never,)),)),)) == ()
    summing = For(I, (never,), (Acc("s", "sum", load(X, (I,))),))
    assert decided((summing,)) == (For(I, (), summing.accs),)

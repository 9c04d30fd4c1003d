"""Steps: what each reads and writes, walked and changed at any depth."""

import numpy as np

from calque.machine.records import replace
from calque.native.loops.tree import For, Store
from calque.native.lower.stages import Stage
from calque.native.plan.steps import (
    Call,
    Compute,
    Copy,
    Count,
    Host,
    Nest,
    Repeat,
    Routine,
    Step,
    Swap,
    Switch,
    WriteSize,
    changed,
    walk,
)
from calque.native.scalars.expr import Buffer, const, ex, load, var
from calque.native.schedule.nests import Schedule

N = const(8)
I = var("i", N)
A, B, C, D = (Buffer(n, (N,), "f32") for n in "abcd")
FLAG, PICK = Buffer("flag", (), "i1"), Buffer("pick", (), "i32")
OWN = Buffer("own", (8,), "f32", "stack")
NEST = (
    For(I, (Store(OWN, (I,), load(A, (I,))),)),
    For(I, (Store(B, (I,), ex("add", load(OWN, (I,)), load(C, (I,)))),)),
)


def names(buffers: frozenset[Buffer]) -> str:
    return "".join(sorted(b.name for b in buffers))


def touched(s: Step) -> tuple[str, str]:
    return names(s.reads()), names(s.writes())


def test_what_each_step_touches() -> None:
    """What lives in a kernel only is nobody's business."""
    stage = Stage(B, (I,), 1, (I,), (((), load(A, (I,))),))
    assert touched(Compute((stage, replace(stage, buf=C)))) == ("a", "bc")
    assert touched(Nest(NEST)) == touched(Call(Schedule(NEST, 1.0))) == ("ac", "b")
    assert touched(Copy(B, A)) == ("a", "b") and touched(Swap(A, B)) == ("ab", "ab")
    assert touched(Host("sin", {}, [A, C], [B], [], [])) == ("ac", "b")
    assert touched(Routine("sort", 1, [A, B], (A,), (B,))) == ("a", "b")
    assert touched(Count("n", A)) == ("a", "") and touched(WriteSize(3, A)) == ("", "a")


def test_what_holds_steps_touches_what_they_do() -> None:
    loop = Repeat([Copy(B, A)], [(C, D)], test=[Copy(FLAG, D)], flag=FLAG)
    assert touched(loop) == ("acdflag", "bcdflag")
    assert touched(replace(loop, test=(), flag=None, count=N)) == ("acd", "bcd")
    assert touched(Switch(PICK, [[Copy(B, A)], [loop]])) == ("acdflagpick", "bcdflag")
    assert touched(Switch(N, [[Copy(B, A)]])) == ("a", "b")


def test_walked_in_order_at_any_depth() -> None:
    one, two, three, four = Copy(B, A), Copy(C, A), Copy(D, A), Copy(A, D)
    inner = Switch(PICK, [[two], [three]])
    loop = Repeat([inner], [], test=[one], flag=FLAG)
    assert list(walk([loop, four])) == [loop, one, inner, two, three, four]


def test_changed_at_any_depth() -> None:
    """Those that hold others are made anew around what has become of them; none is changed
    itself."""
    one, two = Copy(B, A), Copy(C, A)
    loop = Repeat([Switch(PICK, [[one], [two]])], [(A, B)], count=N, counter="k")

    def twice(s: Step) -> list[Step]:
        return [] if s is one else [s, s]

    (made,) = changed([loop], twice)
    assert isinstance(made, Repeat) and made.swaps == loop.swaps and made.counter == "k"
    (switch,) = made.body
    assert isinstance(switch, Switch) and switch.cases == [[], [two, two]]
    (before,) = loop.body
    assert isinstance(before, Switch) and before.cases == [[one], [two]]
    assert np.array_equal([len(list(walk([x]))) for x in (loop, made)], [4, 4])

"""Homes and steps as text: a line for each."""

import numpy as np
import pytest

from calque.native.loops.tree import Acc, For, Store
from calque.native.lower.stages import Stage
from calque.native.plan import text
from calque.native.plan.steps import (
    Call,
    Compute,
    Copy,
    Count,
    Host,
    Made,
    Nest,
    Repeat,
    Routine,
    Step,
    Swap,
    Switch,
    WriteSize,
)
from calque.native.scalars.expr import Buffer, const, ex, load, ref, var
from calque.native.schedule.nests import Schedule
from tests.native.programs import compiled, normal

N = var("s100")
I, J = var("d0", N), var("d1", const(4))
A, B = Buffer("a", (N,), "f32"), Buffer("b", (N,), "f32")
M = Buffer("m", (N, const(4)), "f32")
PICK, FLAG = Buffer("pick", (), "i32"), Buffer("flag", (), "i1")
LOOP = (For(I, (Store(B, (I,), load(A, (I,))),)),)
BODY = "  for d0 < s100:\n    b[d0] = a[d0]"
STAGE = Stage(B, (I,), 1, (I,), (((), load(A, (I,))),))


@pytest.mark.parametrize(
    "step, lines",
    [
        (Copy(B, A), "copy b <- a"),
        (Swap(A, B), "swap a, b"),
        (Count("f0", PICK), "size f0 = pick"),
        (WriteSize(7, PICK), "pick = size 7"),
        (Host("sin", {}, [A], [B], [], []), "host sin(a) -> b"),
        (
            Routine("sort", 1, [A, 5, ex("mul", N, const(4)), np.zeros(2), Made(np.zeros, (3,))],
            (A,), (B,)),
            "routine sort(a, 5, (s100 * 4), table, table)",
        ),
        (Nest(LOOP), f"nest:\n{BODY}"),
        (Nest(LOOP, vectors=True), f"nest, its vectors chosen:\n{BODY}"),
        (Compute((STAGE,)), "compute:\n  stage b over d0 < s100:\n    b[d0] = a[d0]"),
        (
            Call(Schedule(LOOP, 1.0, ("d0: why",), N, 32)),
            "call, shared by threads, at least 32 of s100:\n  ; d0: why\n"
            "  for d0 < s100:\n    b[d0] = a[d0]",
        ),
        (Call(Schedule(LOOP, 1.0)), "call:\n  for d0 < s100:\n    b[d0] = a[d0]"),
        (
            Repeat([Copy(B, A)], [(A, B)], N, "t1"),
            "repeat t1 < s100:\n  copy b <- a\n  swap a, b",
        ),
        (
            Repeat([Copy(B, A)], [], None, None, [Copy(FLAG, A)], FLAG),
            "repeat:\n  copy flag <- a\n  while flag\n  copy b <- a",
        ),
        (
            Switch(PICK, [[Copy(B, A)], []]),
            "switch pick:\n  case 0:\n    copy b <- a\n  case 1:",
        ),
        (Switch(N, [[]]), "switch s100:\n  case 0:"),
    ],
)  # fmt: skip
def test_each_step(step: Step, lines: str) -> None:
    assert text.steps_text([step]) == lines


def test_stages_say_all_of_themselves() -> None:
    total = Acc("r", "sum", load(M, (I, J)))
    folded = Stage(B, (I, J), 1, (I,), (((), ref("r", "f32")),), (total,))
    assert list(text.stage_lines(folded)) == [
        "stage b over d0 < s100 folding d1 < 4:",
        "  r = sum(m[d0, d1])",
        "  b[d0] = r",
    ]
    odd = Stage(
        B, (I,), 1, (I,), (((), load(A, (I,))),), guard=ex("lt", I, const(3)), local=False,
        colliding=1, early=True,
    )  # fmt: skip
    head, store = text.stage_lines(odd)
    assert head == "stage b over d0 < s100 (1 colliding, early, apart):"
    assert store == "  b[d0] = a[d0] if (d0 < 3)"
    once = Stage(PICK, (), 0, (), (((), const(1, "i32")),))
    assert next(text.stage_lines(once)) == "stage pick over once:"


def test_homes_name_memory_and_reasons() -> None:
    x = normal(50, 60)
    e = compiled(lambda x: ((y := x * 2).sum(0), y.sum(1), x, x.at[0].set(1.0)), x)
    lines = e.as_text("homes").splitlines()
    assert lines[0] == "homes of program:"
    assert any("stored as result 0" in line for line in lines)
    assert any("inlined" in line and "(weight " in line for line in lines)
    assert any("is copied to result 2" in line for line in lines)

"""Loops that may run for long ask, every so many rounds, whether somebody wants the program to
stop; then the kernel returns at once.

The question is a call out of the loop that hardly ever happens; the word before a kernel's
arguments says whom to ask.
"""

from __future__ import annotations

from typing import Final

from calque.native.loops.asking import ASK
from calque.native.loops.tree import Body, For, If, Recurrence, statements
from calque.native.scalars.expr import is_const

FEW: Final = 1 << 12  # rounds that need no question
SHORT: Final = 1 << 16  # rounds between questions when a round has no loop inside
LONG: Final = 1 << 8
UNLIKELY: Final = '!prof !{!"branch_weights", i32 1, i32 100000}'


def may_take_long(s: Recurrence) -> bool:
    """Whether it is not known that the rounds are few."""
    return s.var is None or not (is_const(s.var.attr[1]) and s.var.attr[1].attr <= FEW)


def polls(body: Body) -> bool:
    """Whether a kernel asks."""
    return any(isinstance(s, Recurrence) and may_take_long(s) for s in statements(body))


def counter(s: Recurrence, k: int, before: str, latch: str) -> list[str]:
    """The phi that counts the rounds of a loop that does not count them itself."""
    return [] if s.var is not None else [f" %a{k}.n = phi i64 [0, %{before}], [%a{k}.m, %{latch}]"]


def latch(s: Recurrence, k: int) -> tuple[list[str], str]:
    """The end of a round of loop `k`, which goes on at `h{k}`: its lines, and the block they end
    in."""
    simple = not any(isinstance(x, (For, Recurrence, If)) for x in statements(s.body))
    rounds = SHORT if simple else LONG
    lines = [] if s.var is not None else [f" %a{k}.m = add i64 %a{k}.n, 1"]
    lines += [
        f" %a{k}.r = and i64 {f'%n{k}' if s.var is not None else f'%a{k}.m'}, {rounds - 1}",
        f" %a{k}.z = icmp eq i64 %a{k}.r, 0",
        f" br i1 %a{k}.z, label %ask{k}, label %on{k}, {UNLIKELY}\nask{k}:",
        f" %a{k}.p = getelementptr i64, ptr %args, i64 -1",
        f" %a{k}.run = load ptr, ptr %a{k}.p, align 8",
        f" %a{k}.s = call i32 @{ASK}(ptr %a{k}.run)",
        f" %a{k}.stop = icmp ne i32 %a{k}.s, 0",
        f" br i1 %a{k}.stop, label %stop{k}, label %on{k}, {UNLIKELY}\nstop{k}:\n ret void\non{k}:",
    ]
    return lines, f"on{k}"

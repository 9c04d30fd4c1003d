"""Was every number finite, in all rounds? A sum that no finite number changes knows it, for less
than a test in each round."""

from __future__ import annotations

from typing import Final

from calque.native.loops.tree import Body, LoopValue, Recurrence, map_exprs, own_exprs, statements
from calque.native.scalars.expr import FALSE, Expr, const, ex, is_const, ref, rewrite

FLOATS: Final = ("f32", "f64")


def late_checks(loop: Recurrence, after: Body) -> tuple[Recurrence, Body]:
    """A counted loop, and what stands behind it, in which such tests are sums.

    before: loop with bad = False: next bad = bad | not (abs(x) < inf)      after: y = bad
    after:  loop with bad = 0.0: next bad = bad + x * 0.0                   after: y = bad != bad"""
    if loop.cond is not None:
        return loop, after
    tests: dict[Expr, Expr] = {}
    states = []
    for s in loop.states:
        late = None if s.init is not FALSE or is_read(s, loop) else summed(s)
        if late is not None:
            s, tests[ref(s.name, "i1")] = late
        states.append(s)
    if not tests:
        return loop, after
    memo: dict[Expr, Expr] = {}
    return Recurrence(tuple(states), loop.body, loop.var), map_exprs(
        after, lambda e: rewrite(e, tests.get, memo)
    )


def summed(s: LoopValue) -> tuple[LoopValue, Expr] | None:
    """A state that becomes true when a number is not finite, as a sum; and the test of that."""
    tested = numbers_of(s)
    if tested is None:
        return None
    sum_ = ref(s.name, tested[0].dtype)
    return LoopValue(s.name, const(0.0, sum_.dtype), total(sum_, tested)), ex("ne", sum_, sum_)


def as_bool(e: Expr) -> Expr:
    """int(b) != 0 is b."""
    while (
        e.op == "ne"
        and is_const(e.args[1], 0)
        and e.args[0].op == "cast"
        and e.args[0].args[0].dtype == "i1"
    ):
        e = e.args[0].args[0]
    return e


def total(start: Expr, numbers: list[Expr]) -> Expr:
    for x in numbers:
        start = ex("add", ex("mul", x, const(0.0, x.dtype)), start)
    return start


def is_read(s: LoopValue, loop: Recurrence) -> bool:
    """Does anything else than its own next value ask for a state?"""
    others = [t.next for t in loop.states if t.name != s.name]
    others += [e for x in statements(loop.body) for e in own_exprs(x)]
    return any(s.name in e.names for e in others)


def numbers_of(s: LoopValue) -> list[Expr] | None:
    """The numbers of a state that becomes true when one of them is not finite; None where it is
    another one."""
    found = failing(s.next, s.name)
    if (
        not found
        or found[0].dtype not in FLOATS
        or any(x.dtype != found[0].dtype or s.name in x.names for x in found)
    ):
        return None
    return found if ref(s.name, "i1") in operands(s.next) else None


def operands(e: Expr) -> list[Expr]:
    """What is or-ed together."""
    return [x for a in e.args for x in operands(a)] if e.op == "or" else [e]


def failing(e: Expr, name: str) -> list[Expr] | None:
    """The numbers of which this says that one is not finite (or that the state was true before)."""
    e = as_bool(e)
    if e is ref(name, "i1"):
        return []
    if e.op == "or":
        return both(failing(e.args[0], name), failing(e.args[1], name))
    if e.op == "not":
        return finite(e.args[0])
    return None


def finite(e: Expr) -> list[Expr] | None:
    """The numbers of which this says that all are finite."""
    if e.op == "and":
        return both(finite(e.args[0]), finite(e.args[1]))
    if e.op == "lt" and e.args[0].op == "abs" and is_const(e.args[1], float("inf")):
        return [e.args[0].args[0]]
    return None


def both(a: list[Expr] | None, b: list[Expr] | None) -> list[Expr] | None:
    return None if a is None or b is None else a + b

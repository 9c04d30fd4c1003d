"""Expressions -> values: every node once, in its home scope, by the function that its operation has
in ``OPERATIONS``.

An expression that depends on the vector variable is a vector of the loop's logical width; LLVM's
type legalisation splits ``<64 x float>`` into registers, which is our unrolling. Any other is a
scalar, spread over the lanes where a vector is wanted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from calque.machine.state import process
from calque.native.emit.instructions import splat
from calque.native.emit.lanes import SCALAR, Lanes
from calque.native.emit.types import VALUE, const_text
from calque.native.emit.writer import Writer
from calque.native.scalars.expr import DEEP, FLOAT_BITS, Expr, stride

_NAMES: Final = ("var", "ref", "param")
Operation = Callable[[Writer, Expr, Lanes], str]
# Filled by the modules of their subjects; the latter two are for operands of these dtypes.
OPERATIONS: Final[dict[str, Operation]] = process.container("machine code of operations", {})
FLOAT_OPERATIONS: Final[dict[str, Operation]] = process.container(
    "machine code of operations of floats", {}
)
INTEGER_OPERATIONS: Final[dict[str, Operation]] = process.container(
    "machine code of operations of integers", {}
)


def operation(
    *names: str, table: dict[str, Operation] = OPERATIONS
) -> Callable[[Operation], Operation]:
    """Enter a function that writes the value of a node: a vector if the lanes it is given are
    many."""

    def enter(f: Operation) -> Operation:
        table.update(dict.fromkeys(names, f))
        return f

    return enter


def value(w: Writer, e: Expr, lanes: Lanes) -> str:
    """The SSA name of ``e``: a vector when it differs from lane to lane."""
    op = e.op
    if op == "const":
        return const_text(e)
    if lanes.varying.isdisjoint(e.names):
        if op in _NAMES:
            return w.bound[e.attr[0]]
        lanes = SCALAR
    key = (e, lanes.width)
    r = w.known.get(key)
    if r is None:
        if e.depth > DEEP:
            prepare(w, e, lanes)
        before, w.out = w.out, w.scopes[w.home(e)]
        write = moving if lanes.width and e.index else rule_for(e)
        r = w.keep(key, write(w, e, lanes))
        w.out = before
    return r


def prepare(w: Writer, e: Expr, lanes: Lanes) -> None:
    """Write what lies deep below, deepest first, so that no recursion is long."""
    seen: set[Expr] = set()
    found: list[Expr] = []
    todo = [e]
    while todo:
        x = todo.pop()
        if x in seen or x.depth <= DEEP or (x, lanes.width if lanes.vary(x) else 0) in w.known:
            continue
        seen.add(x)
        if x is not e and x.depth % (DEEP // 2) == 0:
            found.append(x)
        if x.op != "rare":  # its seldom side stays where it is
            todo += x.args
    for x in sorted(found, key=lambda x: x.depth):
        value(w, x, lanes)


def operand(w: Writer, e: Expr, lanes: Lanes) -> str:
    """As ``value``, spread over the lanes when a vector is wanted and the value is uniform. In one
    lane alone: what the expression is in the first one."""
    if not lanes.width:
        return value(w, e, SCALAR)
    if e.op == "const":
        return f"splat ({VALUE[e.dtype]} {const_text(e)})"
    if not lanes.varying.isdisjoint(e.names):
        return value(w, e, lanes)
    v = value(w, e, SCALAR)
    key = (e, lanes.width)
    r = w.known.get(key)
    if r is None:
        before, w.out = w.out, w.scopes[w.home(e)]
        r = w.keep(key, splat(w, v, VALUE[e.dtype], lanes.width))
        w.out = before
    return r


def rule_for(e: Expr) -> Operation:
    """The function that writes a node."""
    rule = OPERATIONS.get(e.op)
    if rule is None:
        d = e.args[0].dtype
        rule = (FLOAT_OPERATIONS if d in FLOAT_BITS else INTEGER_OPERATIONS).get(e.op)
        if rule is None:
            raise TypeError(f"no code for {e.op} of {d}")
    return rule


def moving(w: Writer, e: Expr, lanes: Lanes) -> str:
    """An index that differs from lane to lane, by a constant where it can."""
    step = stride(e, lanes.variable or "")
    return rule_for(e)(w, e, lanes) if step is None else steps(w, e, step, "i64", lanes)


def steps(w: Writer, e: Expr, step: int, t: str, lanes: Lanes) -> str:
    """An index that moves by a constant from lane to lane, in an integer type."""
    first = w.bound[e.attr[0]] if e.op == "var" else value(w, e, SCALAR)
    if t != "i64":
        first = w.new(f"trunc i64 {first} to {t}")
    mask = (1 << int(t[1:])) - 1
    offsets = ", ".join([f"{t} {(i * step) & mask}" for i in range(lanes.width)])
    return w.new(f"add <{lanes.width} x {t}> {splat(w, first, t, lanes.width)}, <{offsets}>")


@operation(*_NAMES)
def name(w: Writer, e: Expr, lanes: Lanes) -> str:
    return w.bound[e.attr[0]]

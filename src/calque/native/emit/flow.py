"""The two shapes of control flow that loops are made of: code under a condition, and a counter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from calque.native.emit import scratch, shared_loops
from calque.native.emit.writer import Writer
from calque.native.scalars.expr import Buffer

Values = list[str]
Typed = list[tuple[str, str]]  # (type, initial value) of what is carried

_HINT: Final = "declare i64 @llvm.expect.i64(i64, i64)"


def guarded(
    w: Writer,
    cond: str,
    writes: frozenset[Buffer],
    initial: Typed,
    body: Callable[[], Values],
    barrier: bool = True,
    lazy: bool = False,
) -> Values:
    """Code that runs only when ``cond`` holds; its values, else the initial ones."""
    k = w.number()
    inner = w.open(f"g{k}", writes, barrier, lazy)
    new = body()
    outer = w.close()
    outer.lines.append(f" br i1 {cond}, label %g{k}, label %x{k}\ng{k}:")
    outer.lines += inner.lines
    outer.lines.append(f" br label %x{k}\nx{k}:")
    enter, outer.block = outer.block, f"x{k}"
    return [
        w.new(f"phi {t} [{v}, %{enter}], [{x}, %{inner.block}]")
        for (t, v), x in zip(initial, new, strict=True)
    ]


def one_of(
    w: Writer,
    cond: str,
    writes: frozenset[Buffer],
    types: list[str],
    then: Callable[[], Values],
    orelse: Callable[[], Values],
) -> Values:
    """One of two pieces of code, and its values."""
    k = w.number()
    sides = []
    for label, body in (("t", then), ("e", orelse)):
        scope = w.open(f"{label}{k}", writes, lazy=True)
        values = body()
        outer = w.close()
        sides.append((scope, values))
    outer.lines.append(f" br i1 {cond}, label %t{k}, label %e{k}")
    for label, (scope, _) in zip("te", sides, strict=True):
        outer.lines += [f"{label}{k}:", *scope.lines, f" br label %x{k}"]
    outer.lines.append(f"x{k}:")
    outer.block = f"x{k}"
    (a, first), (b, second) = sides
    return [
        w.new(f"phi {t} [{x}, %{a.block}], [{y}, %{b.block}]")
        for t, x, y in zip(types, first, second, strict=True)
    ]


def counted(
    w: Writer,
    name: str,
    bounds: tuple[str, str],
    step: int,
    writes: frozenset[Buffer],
    initial: Typed,
    body: Callable[[Values], Values],
) -> Values:
    """``for (name = start; ; name += step) while name < limit``, at least once, with carried
    values -> their last values."""
    start, limit = bounds
    k = w.number()
    sharing = w.options.share_loops and not w.sharing and shared_loops.is_worth_it(initial)
    w.sharing |= sharing
    inner = w.open(f"b{k}", writes)
    i, phis = f"%i{k}", [f"%c{k}_{j}" for j in range(len(initial))]
    w.bind(name, i)
    new = body(phis)
    outer = w.close()
    before, last = outer.block, inner.block
    lines = [f" br label %b{k}\nb{k}:", f" {i} = phi i64 [{start}, %{before}], [%n{k}, %{last}]"]
    for p, (t, v), x in zip(phis, initial, new, strict=True):
        lines.append(f" {p} = phi {t} [{v}, %{before}], [{x}, %{last}]")
    lines += inner.lines
    lines += _next_count(w, k, step, inner.lines)
    lines.append(f" %l{k} = icmp slt i64 %n{k}, {limit}")
    lines.append(f" br i1 %l{k}, label %b{k}, label %x{k}\nx{k}:")
    if sharing:
        w.sharing = False
        values = _values_of_call(w, lines, [(t, x) for (t, _), x in zip(initial, new, strict=True)])
        if values is not None:
            return values
    outer.lines += lines
    outer.block = f"x{k}"
    return new


def _values_of_call(w: Writer, lines: list[str], last: Typed) -> Values | None:
    """The last values of a loop that kernels share, which is called here; None where it cannot
    be."""
    t, count = last[0][0], len(last)
    call = shared_loops.call_of(lines, w.out.block, last, w.declared)
    if call is None:
        return None
    out = w.array((shared_loops, t, count), f"[{count} x {t}]")
    w.shared[call.loop.symbol] = call.loop
    w.declared.add(call.declaration)
    w.put(call.line(out))
    places = [w.new(f"getelementptr {t}, ptr {out}, i64 {j}") for j in range(count)]
    values = [w.new(f"load {t}, ptr {p}, align {scratch.alignment(t)}") for p in places]
    w.in_memory = {tuple(values): out}
    w.spare |= {*places, *values}
    return values


def stepping(
    w: Writer,
    name: str,
    bounds: tuple[str, str],
    writes: frozenset[Buffer],
    body: Callable[[], str],
) -> None:
    """``for (name = start; name < limit; name += step)``, at least once, where each round tells how
    far it has come."""
    start, limit = bounds
    k = w.number()
    inner = w.open(f"b{k}", writes)
    i = f"%i{k}"
    w.bind(name, i)
    step = body()
    outer = w.close()
    before, last = outer.block, inner.block
    outer.lines.append(f" br label %b{k}\nb{k}:")
    outer.lines.append(f" {i} = phi i64 [{start}, %{before}], [%n{k}, %{last}]")
    outer.lines += inner.lines
    outer.lines.append(f" %n{k} = add nuw nsw i64 {i}, {step}")
    outer.lines.append(f" %l{k} = icmp slt i64 %n{k}, {limit}")
    outer.lines.append(f" br i1 %l{k}, label %b{k}, label %x{k}\nx{k}:")
    outer.block = f"x{k}"


def _next_count(w: Writer, k: int, step: int, body: list[str]) -> list[str]:
    """The counter of loop ``k`` in its next round.

    Addresses are bases and indices already, as processors take them. LLVM would look for other ones
    by weighing all those of a loop against each other, and against those of the loops around it,
    which takes up to a third of its time; through a counter that passes a hint it does not see.
    Only in a short loop that multiplies its counter is there something to gain."""
    if not w.options.indexed or _multiplies(body):
        return [f" %n{k} = add nuw nsw i64 %i{k}, {step}"]
    w.declared.add(_HINT)
    return [
        f" %m{k} = add nuw nsw i64 %i{k}, {step}",
        f" %n{k} = call i64 @llvm.expect.i64(i64 %m{k}, i64 0)",
    ]


def _multiplies(body: list[str]) -> bool:
    """Whether a loop without loops inside works out an index anew in each round: what does not
    change there stands before it."""
    return any(" = mul i64 " in line for line in body) and not any(
        " = phi i64 " in line for line in body
    )

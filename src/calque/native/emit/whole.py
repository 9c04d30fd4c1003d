"""Sizes that are multiples: where it is known that whole vectors fill a loop, its rest, which is as
much code as the loop itself, is not written.

What is known of sizes is part of what a kernel is: code that was made without knowing serves all
sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from calque.native.emit.writer import Writer
from calque.native.loops.tree import Body, For, statements
from calque.native.scalars.expr import Expr, const, ex

Multiples = Mapping[str, int]  # the name of a size -> a power of two that divides it
_MOST: Final = 1 << 12  # larger powers of two make no difference


def divisor(e: Expr, known: Multiples) -> int:
    """A power of two that divides a size, whatever loop variables are."""
    if e.op == "const":
        return _power_of_two(int(e.attr))
    if e.op == "var":
        return known.get(e.attr[0], 1)
    if e.op == "mul":
        return min(divisor(e.args[0], known) * divisor(e.args[1], known), _MOST)
    if e.op in ("add", "sub", "min", "max"):
        return min([divisor(a, known) for a in e.args])
    return 1


def _power_of_two(n: int) -> int:
    return min(n & -n, _MOST) if n else _MOST


def whole_vectors(w: Writer, extent: Expr, width: int) -> Expr:
    """How far vectors of a width reach that lie wholly inside a loop: to its end where its extent
    is known to be a multiple, or is a number that is one."""
    if divisor(extent, w.options.multiples) % width == 0:
        return extent
    return ex("mul", ex("floordiv", extent, const(width)), const(width))


def multiples(body: Body, values: Mapping[str, int]) -> dict[str, int]:
    """What has to be known of sizes, of which some have these values, so that loops have no rest:
    nothing of those that have one all the same, as little as will do of the others."""
    found: dict[str, int] = {}
    for s in statements(body):
        if isinstance(s, For) and s.kind in ("vector", "tile"):
            for name, power in _needed(s.extent, s.width, values):
                found[name] = max(power, found.get(name, 1))
    return found


def _needed(extent: Expr, width: int, values: Mapping[str, int]) -> Iterable[tuple[str, int]]:
    """The sizes, the most even first, small ones before large ones, which more often change, that
    make an extent a multiple of a width; none if all together do not."""
    powers = {n: min(_power_of_two(values[n]), width) for n in extent.names if n in values}
    known: dict[str, int] = {}
    for name in sorted(powers, key=lambda n: (-powers[n], values[n], n)):
        if divisor(extent, known) % width == 0:
            break
        known[name] = powers[name]
    return known.items() if divisor(extent, known) % width == 0 else ()

"""Donated arguments: which of a call's flat arguments may be overwritten, and what is left of
them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from calque.core import pytrees
from calque.core.arrays import ArrayImpl, delete_array
from calque.core.avals import ShapedArray
from calque.core.jaxprs import ClosedJaxpr, Var


def positions(
    args: Sequence[Any], kwargs: dict[str, Any], argnums: Sequence[int], argnames: Sequence[str]
) -> tuple[int, ...]:
    """The flat arguments that belong to donated parameters; `args` and `kwargs` without statics."""
    given = [
        *[(a, i in argnums) for i, a in enumerate(args)],
        *[(kwargs[k], k in argnames) for k in sorted(kwargs)],
    ]
    out: list[int] = []
    at = 0
    for value, is_donated in given:
        n = len(pytrees.leaves(value))
        out += range(at, at + n) if is_donated else ()
        at += n
    return tuple(out)


def usable(
    closed: ClosedJaxpr, donated: Sequence[int], keep_unused: bool
) -> tuple[tuple[int, ...], list[ShapedArray]]:
    """(the donated inputs whose memory may serve a result, those that no result fits): by shape and
    dtype, then by size alone.

    An input that the program does not read stays with its owner."""
    if not keep_unused:
        read = {a for e in closed.eqns for a in e.invars if isinstance(a, Var)} | set(
            closed.jaxpr.outvars
        )
        donated = [i for i in donated if closed.jaxpr.invars[i] in read]
    results = list(closed.out_avals)
    chosen: list[int] = []
    for key in (lambda a: (a.shape, a.dtype), lambda a: a.size):
        for i in donated:
            fit = next(
                (r for r in results if i not in chosen and key(r) == key(closed.in_avals[i])), None
            )
            if fit is not None:
                results.remove(fit)
                chosen.append(i)
    return tuple(sorted(chosen)), [closed.in_avals[i] for i in donated if i not in chosen]


def warn_unusable(avals: Sequence[ShapedArray], name: str) -> None:
    """Say which donated arguments keep their memory."""
    if avals:
        which = ", ".join(f"{a.dtype}[{','.join(map(str, a.shape))}]" for a in avals)
        warnings.warn(
            f"Some donated buffers were not usable: {which}. No result of {name} that is still"
            " without memory has as many elements: these arguments are left as they are.",
            stacklevel=2,
        )


def delete_donated(leaves: Sequence[Any], donated: Sequence[int]) -> None:
    """What a backend that reuses no memory leaves to be done."""
    for i in donated:
        if isinstance(leaves[i], ArrayImpl):
            delete_array(leaves[i])

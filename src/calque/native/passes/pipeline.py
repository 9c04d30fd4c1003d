"""The passes, in order. Each says in its own words what it does and why it stands where it
stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from calque.core.config import config
from calque.core.jaxprs import ClosedJaxpr, Jaxpr
from calque.core.lazy import LazyModule
from calque.machine.spans import span
from calque.native.passes import algebra, constants, keys
from calque.native.passes.chosen_updates import chosen_updates
from calque.native.passes.common import common_subexpressions
from calque.native.passes.dead_code import dead_code, dead_parts
from calque.native.passes.float0 import without_float0
from calque.native.passes.hoisted_checks import hoisted_checks
from calque.native.passes.inline import inline_calls
from calque.native.passes.sweep import Rule, rewrite

checks = LazyModule("calque.native.passes.verify")

_TABLES: Final = (keys.RULES, constants.RULES, algebra.RULES)
RULES: Final[dict[str, tuple[Rule, ...]]] = {
    name: tuple([rule for table in _TABLES for rule in table.get(name, ())])
    for name in {**keys.RULES, **constants.RULES, **algebra.RULES}
}


def simplify(jaxpr: Jaxpr) -> Jaxpr:
    """Fold constants and apply the algebra that keeps bits, each equation until nothing matches:
    see `constants`, `algebra`; and what keys are made of, see `keys`."""
    return rewrite(jaxpr, RULES)


def on_jaxpr(f: Callable[[Jaxpr], Jaxpr]) -> Callable[[ClosedJaxpr], ClosedJaxpr]:
    def g(closed: ClosedJaxpr) -> ClosedJaxpr:
        out = f(closed.jaxpr)
        return closed if out is closed.jaxpr else ClosedJaxpr(out, closed.consts)

    g.__name__, g.__doc__ = f.__name__, f.__doc__
    return g


PASSES: tuple[Callable[[ClosedJaxpr], ClosedJaxpr], ...] = (
    on_jaxpr(dead_code),
    on_jaxpr(dead_parts),
    inline_calls,
    hoisted_checks,
    without_float0,
    on_jaxpr(simplify),
    inline_calls,  # branches whose index has turned out to be known
    on_jaxpr(common_subexpressions),
    on_jaxpr(chosen_updates),
    on_jaxpr(dead_code),
)


def run(closed: ClosedJaxpr) -> ClosedJaxpr:
    """All passes. The result is kept with the program, so that a loop body shared by many programs
    is simplified once."""
    done = closed.cache.get("native.passes")
    if done is None:
        done = closed
        with span("passes", f"{len(closed.jaxpr.eqns)} equations"):
            for p in PASSES:
                before, done = done, p(done)
                if config.verify_kernels:
                    checks.verify_pass(p.__name__, before, done)
        done.cache["native.passes"] = done
        closed.cache["native.passes"] = done
    return done

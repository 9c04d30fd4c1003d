"""All rules in one place, and what has none.

Importing this module fills the tables `RULES` and `EQUATION_RULES`."""

from __future__ import annotations

from typing import Any, Final

from calque.core.jaxprs import Eqn
from calque.xla.lower import (
    callbacks,
    collectives,
    control,
    elementwise,
    foreign_calls,
    fourier,
    indexing,
    inspecting,
    layout,
    linalg,
    partitioned,
    placing,
    products,
    random,
    reduced_forms,
    reductions,
    sorting,
    special,
    windows,
)
from calque.xla.lower.rules import EQUATION_RULES, Builder, Rule
from calque.xla.text.tree import Value

MODULES: Final = (
    callbacks,
    collectives,
    control,
    elementwise,
    foreign_calls,
    fourier,
    indexing,
    inspecting,
    layout,
    linalg,
    partitioned,
    placing,
    products,
    random,
    reduced_forms,
    reductions,
    sorting,
    special,
    windows,
)
_ALONE: Final = "it has a meaning inside shard_map alone, where the program is one of the whole"
_FIXED: Final = (
    "XLA has fixed sizes only, and this size is found in the midst of a program: give the function"
    " that finds it `size=`"
)
# Primitives that no program on XLA can have, and why.
REFUSED: Final = {
    "let_size": _FIXED,
    **dict.fromkeys(("psum_like", "pvary_like", "ragged_all_to_all", "variance_of"), _ALONE),
}


def _refusing(name: str, why: str) -> Rule:
    def lower(b: Builder, e: Eqn, outs: Any, args: Any) -> list[Value]:
        raise NotImplementedError(f"{name} on XLA: {why} ({e.source})")

    return lower


EQUATION_RULES.update({name: _refusing(name, why) for name, why in REFUSED.items()})

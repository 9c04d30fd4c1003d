"""Equations of literals become literals."""

from __future__ import annotations

from typing import Final

import numpy as np

from calque.core.jaxprs import Atom, Eqn, Literal
from calque.native.passes.sweep import Rule, Sweep

# Exactly rounded operations: NumPy's result is the machine's, bit for bit. (Not exp: the last bit
# is ours to choose.)
EXACT = frozenset(
    [
        "add",
        "sub",
        "mul",
        "neg",
        "abs",
        "max",
        "min",
        "div",
        "sqrt",
        "floor",
        "ceil",
        "lt",
        "le",
        "gt",
        "ge",
        "eq",
        "ne",
        "and",
        "or",
        "xor",
        "not",
        "select_n",
        "clamp",
        "convert_element_type",
        "is_finite",
        "shift_left",
        "shift_right_logical",
        "shift_right_arithmetic",
        "bitcast_convert_type",
        "squeeze",
        "reshape",
        "sign",
        "rem",
        "population_count",
        "clz",
    ]
)


def fold(_: Sweep, e: Eqn) -> Atom | Eqn | None:
    """before: a = mul 2.0 3.0      after: a is 6.0

    Integer division and remainder by zero, and everything that is not scalar, stay as they are."""
    if (
        len(e.outvars) != 1
        or e.outvars[0].aval.ndim
        or not isinstance(e.outvars[0].aval.dtype, np.dtype)
    ):
        return None
    for a in e.invars:
        if a.__class__ is not Literal:
            return None
    if not e.invars or (e.primitive.name in ("div", "rem") and e.outvars[0].aval.dtype.kind != "f"):
        return None
    aval = e.outvars[0].aval
    with np.errstate(all="ignore"):
        val = np.asarray(e.primitive.meaning(*(np.asarray(a.val) for a in e.invars), **e.params))  # type: ignore[union-attr]
    known = val.dtype == aval.dtype and not val.shape
    return Literal(val, aval, written=False) if known else None


RULES: Final[dict[str, tuple[Rule, ...]]] = {name: (fold,) for name in EXACT}

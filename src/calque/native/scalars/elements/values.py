"""What an element is, and how operations with plain numbers are written."""

from __future__ import annotations

from typing import Final, NamedTuple

from calque.native.scalars.expr import Expr, const, ex


class Cx(NamedTuple):
    """A complex element: the expressions of its two parts."""

    re: Expr
    im: Expr


Value = Expr | Cx

REAL_OF: Final = {"c64": "f32", "c128": "f64"}


def op2(name: str, a: Expr, b: Expr | float) -> Expr:
    """An operation on an expression and another one, or a number of the same dtype."""
    return ex(name, a, b if isinstance(b, Expr) else const(b, a.dtype))

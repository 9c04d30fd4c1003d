"""Tangents and cotangents that are known to be zero, and which of several are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from calque.core.avals import ShapedArray
from calque.core.primitives import Zero
from calque.core.trace import typeof
from calque.ops.common import (
    add_tangents,
    filled,
    instantiate,
    scalar_of,
    tangent_aval,
    zero_like,
    zeros,
)
from calque.transforms.engines.trees import handed

__all__ = [
    "SymbolicZero",
    "add_tangents",
    "as_meant",
    "as_seen",
    "has_tangent",
    "instantiate",
    "nonzero",
    "ones",
    "only_nonzero",
    "tangent_aval",
    "value_has_tangent",
    "with_zeros",
    "zero_like",
    "zeros",
]


def has_tangent(aval: ShapedArray) -> bool:
    """Whether values of this type have tangents: those of floating and complex ones."""
    return tangent_aval(aval) is aval


def ones(aval: ShapedArray) -> Any:
    return filled(aval.shape, scalar_of(aval.dtype, 1))


def value_has_tangent(x: Any) -> bool:
    return has_tangent(typeof(x))


def nonzero(tangents: Sequence[Any]) -> tuple[bool, ...]:
    """Which of these are not known to be zero."""
    return tuple([type(t) is not Zero for t in tangents])


def only_nonzero(tangents: Sequence[Any]) -> list[Any]:
    return [t for t in tangents if type(t) is not Zero]


def with_zeros(
    tangents: Sequence[Any], mask: Sequence[bool], avals: Sequence[ShapedArray]
) -> list[Any]:
    """The inverse of `only_nonzero`: Zeros of the tangent types of `avals` where `mask` is
    false."""
    rest = iter(tangents)
    return [next(rest) if m else Zero(tangent_aval(a)) for m, a in zip(mask, avals, strict=True)]


class SymbolicZero:
    """A tangent or cotangent that is known to be zero, as rules with `symbolic_zeros=True` see it.

    Args:
        aval: Its type.

    >>> aval = jax.typeof(jnp.ones(2))
    >>> jax.custom_derivatives.SymbolicZero(aval).shape
    (2,)"""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)
    size = property(lambda self: self.aval.size)

    def __repr__(self) -> str:
        return f"SymbolicZero({self.aval.str_short()})"


def as_seen(t: Any, symbolic_zeros: bool) -> Any:
    """A tangent or cotangent as the user's rule gets it."""
    if type(t) is Zero and symbolic_zeros:
        return SymbolicZero(t.aval)
    return handed(instantiate(t))


def as_meant(t: Any) -> Any:
    """What the user's rule returned, as rules inside calque know it."""
    return Zero(t.aval) if isinstance(t, SymbolicZero) else t

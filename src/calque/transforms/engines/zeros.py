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

__all__ = [
    "add_tangents",
    "has_tangent",
    "instantiate",
    "nonzero",
    "ones",
    "only_nonzero",
    "tangent_aval",
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

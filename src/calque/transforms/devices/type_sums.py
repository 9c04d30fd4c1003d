"""What is still to be added: along which axes a result is unreduced or reduced, from its
operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from calque.core.primitives import Primitive
from calque.transforms.devices.types import NO_AXES, Axes, ShardingTypeError, is_lenient

_PASSING: Final = frozenset(
    (
        "neg", "convert_element_type", "copy", "copy_p", "reshape", "transpose", "squeeze",
        "broadcast_in_dim", "reduce_sum", "reduce_precision", "slice", "pad", "sharding_constraint",
        "device_put", "expand_dims", "real", "imag", "stop_gradient", "name",
        "optimization_barrier", "concatenate", "select_n", "dynamic_slice", "dynamic_update_slice",
        "cumsum", "rev", "split",
    )
)  # fmt: skip


def sums(p: Primitive, unreduced: Sequence[Axes | None], reduced: Sequence[Axes | None]) -> Any:
    """The axes over which the result is unreduced and reduced, from those of the operands; None
    stands for an operand that goes with any. What has still to be added is not reduced, though an
    operand may be: a product of both."""
    added, together = _sums(p, unreduced, reduced)
    return added, together - added


def _sums(p: Primitive, unreduced: Sequence[Axes | None], reduced: Sequence[Axes | None]) -> Any:
    us, rs = [u or NO_AXES for u in unreduced], [r or NO_AXES for r in reduced]
    if not any(us) and not any(rs):
        return NO_AXES, NO_AXES
    if is_lenient():
        return frozenset().union(*us), frozenset().union(*rs)
    together = _reduced_together(reduced)
    if p.name in _PASSING:
        return next((u for u in us if u), NO_AXES), together
    if p.name in ("add", "sub", "add_any"):
        return _added(p.name, *us), together
    if p.name == "mul":
        return _multiplied(*us, *rs), together
    if p.name == "dot_general":
        if any(us):
            raise ShardingTypeError(
                "lhs or rhs passed to dot_general cannot be unreduced. Got lhs unreduced over"
                f" {set(us[0])} and rhs over {set(us[1])}"
            )
        return NO_AXES, NO_AXES
    if any(us):
        raise NotImplementedError(
            f"unreduced rule for {p.name} is not implemented. Add up its operands first, with"
            " jax.reshard to a type that is not unreduced"
        )
    return NO_AXES, together


def _reduced_together(reduced: Sequence[Axes | None]) -> Axes:
    named = {r for r in reduced if r}
    if len(named) > 1:
        raise ShardingTypeError(
            "All inputs should be reduced across the same mesh axes. Got specs:"
            f" {[set(r) for r in named]}"
        )
    (found,) = named or (NO_AXES,)
    return found


def _added(name: str, left: Axes, right: Axes) -> Axes:
    if left and right and left != right:
        raise ShardingTypeError(
            f"lhs and rhs to `{name}` must be unreduced along the same mesh axes. Got"
            f" lhs={set(left)}, rhs={set(right)}"
        )
    if bool(left) != bool(right):
        first, second = ("lhs", "rhs") if left else ("rhs", "lhs")
        raise ShardingTypeError(
            f"{first} is unreduced while {second} is not. `{name}` operation does not allow this"
            f" because there will be implicit communication. Please reduce {first} via `reshard`"
            f" before calling `{name}`."
        )
    return left


def _multiplied(left: Axes, right: Axes, left_reduced: Axes, right_reduced: Axes) -> Axes:
    if left and right:
        raise ShardingTypeError(
            "lhs and rhs to `mul` cannot be unreduced since mul is bilinear. Got"
            f" lhs={set(left)}, rhs={set(right)}"
        )
    for own, other, first, second in (
        (left, right_reduced, "LHS", "RHS"),
        (right, left_reduced, "RHS", "LHS"),
    ):
        if own and own != other:
            raise ShardingTypeError(
                f"{second} should be reduced along the same axes {first} is unreduced on. Got"
                f" {first} unreduced over {set(own)} and {second} reduced over {set(other)}"
            )
    return left or right


def joined_kind(p: Primitive, kinds: Sequence[str | None], constant: Sequence[bool]) -> str | None:
    """How the result of an operation relates to one axis, from how its operands do."""
    here = frozenset(("axis",))
    if "unreduced" not in kinds and ("reduced" not in kinds or "varying" in kinds):
        return "varying" if any(kinds) else None
    us = [None if c else here if k == "unreduced" else NO_AXES for k, c in zip(kinds, constant)]
    rs = [None if c else here if k == "reduced" else NO_AXES for k, c in zip(kinds, constant)]
    unreduced, reduced = sums(p, us, rs)
    return "unreduced" if unreduced else "reduced" if reduced else None

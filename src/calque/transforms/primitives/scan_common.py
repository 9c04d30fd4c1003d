"""What the rules of `scan` share: the equation, the parts of its operands, and which carries a
property spreads to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calque.core.avals import ShapedArray
from calque.core.jaxprs import ClosedJaxpr
from calque.core.primitives import do
from calque.core.trace import typing
from calque.transforms.engines.zeros import instantiate
from calque.transforms.primitives.flow import with_inputs

Mask = tuple[bool, ...]


def bind_scan(
    consts: Sequence[Any],
    init: Sequence[Any],
    xs: Sequence[Any],
    *,
    jaxpr: ClosedJaxpr,
    length: int,
    reverse: bool,
    unroll: Any,
    counted: bool = False,
) -> list[Any]:
    """A loop of `length` rounds; a counted one ends sooner, after as many as its first constant
    says (which the body does not read).

    It reads and writes the first rows of what is stacked. The other rows of its results are left as
    memory was.
    """
    return do.scan(
        *consts,
        *init,
        *xs,
        jaxpr=jaxpr,
        length=length,
        num_carry=len(init),
        num_consts=len(consts),
        reverse=reverse,
        unroll=unroll,
        **({"counted": True} if counted else {}),
    )


def bind_counted(
    count: Any,
    consts: Sequence[Any],
    init: Sequence[Any],
    xs: Sequence[Any],
    *,
    jaxpr: ClosedJaxpr,
    length: int,
    reverse: bool,
) -> list[Any]:
    """A scan of the first `count` (an int32) of `length` rounds."""
    body = with_count(jaxpr)
    return bind_scan(
        [count, *consts],
        init,
        xs,
        jaxpr=body,
        length=length,
        reverse=reverse,
        unroll=1,
        counted=True,
    )


def with_count(jaxpr: ClosedJaxpr) -> ClosedJaxpr:
    """The body with the count before its own arguments."""
    if "counted" not in jaxpr.cache:
        count = ShapedArray((), np.dtype("int32"))
        jaxpr.cache["counted"] = with_inputs(jaxpr, [count, *range(len(jaxpr.jaxpr.invars))])
    return jaxpr.cache["counted"]


def result_avals(
    *avals: ShapedArray, jaxpr: ClosedJaxpr, length: int, num_carry: int, **_: Any
) -> list[ShapedArray]:
    outs = jaxpr.out_avals
    return outs[:num_carry] + [stacked_aval(a, length) for a in outs[num_carry:]]


def stacked_aval(aval: ShapedArray, length: int) -> ShapedArray:
    if aval.place is not None:
        return typing.value.stacked(aval, length)
    return ShapedArray((length, *aval.shape), aval.dtype, aval.weak_type)


def carried_too(mask: Mask, num_consts: int, num_carry: int, outs_of: Any) -> Mask:
    """`mask` over (consts, carry, xs), with each carry that becomes true in some round."""
    while True:
        outs = outs_of(mask)
        carry = tuple(a or b for a, b in zip(mask[num_consts:], outs[:num_carry]))
        new = mask[:num_consts] + carry + mask[num_consts + num_carry :]
        if new == mask:
            return mask
        mask = new


def tangents_in(tangents: Sequence[Any], mask: Sequence[bool]) -> list[Any]:
    """The tangents in `mask`, as arrays."""
    return [instantiate(t) for t, m in zip(tangents, mask) if m]


def thirds(
    indices: Sequence[int], num_consts: int, num_carry: int
) -> tuple[list[int], list[int], list[int]]:
    end = num_consts + num_carry
    return (
        [i for i in indices if i < num_consts],
        [i for i in indices if num_consts <= i < end],
        [i for i in indices if i >= end],
    )

"""scaled_dot: products of arrays whose blocks have scales of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from calque.core.arrays import Array
from calque.core.dtypes import asked, bfloat16
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.types import ArrayLike, DTypeLike
from calque.ops.common import operand
from calque.ops.products.dot import canonical_numbers, dot_general


def scaled_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    lhs_scale: ArrayLike | None = None,
    rhs_scale: ArrayLike | None = None,
    dimension_numbers: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Multiplies two arrays whose blocks have scales of their own.

    It is `dot_general` of `lhs * lhs_scale` and `rhs * rhs_scale`.

    Args:
        lhs: The left array.
        rhs: The right array.
        lhs_scale: The scales of `lhs`, of its rank; along contracting dimensions one serves a
            block. None means 1.
        rhs_scale: The scales of `rhs`, likewise.
        dimension_numbers: As of `dot_general`; None multiplies matrices, or batches of them in
            three dimensions.
        preferred_element_type: The dtype it is computed in; None means bfloat16.

    Returns:
        An array of this dtype.

    >>> lax.scaled_dot(jnp.ones((2, 4)), jnp.ones((4, 2)), lhs_scale=jnp.full((2, 2), 0.5))
    Array([[2, 2],
           [2, 2]], dtype=bfloat16)"""
    lhs, rhs = operand(lhs), operand(rhs)
    numbers = _default_numbers(lhs, rhs) if dimension_numbers is None else dimension_numbers
    numbers = canonical_numbers(numbers, typeof(lhs), typeof(rhs))
    dtype = bfloat16 if preferred_element_type is None else asked(preferred_element_type)
    (left, right), _ = numbers
    a = _scaled("LHS", lhs, lhs_scale, left, dtype)
    b = _scaled("RHS", rhs, rhs_scale, right, dtype)
    return dot_general(a, b, numbers, preferred_element_type=dtype)


def _default_numbers(lhs: Any, rhs: Any) -> Any:
    ranks = typeof(lhs).ndim, typeof(rhs).ndim
    if ranks not in ((2, 2), (3, 3)):
        raise TypeError(
            f"scaled_dot: operands of rank {ranks[0]} and {ranks[1]} need dimension_numbers;"
            " matrices, or batches of them, do not"
        )
    return (((ranks[0] - 1,), (ranks[0] - 2,)), ((0,), (0,)) if ranks[0] == 3 else ((), ()))


def _as(x: Any, dtype: Any) -> Any:
    return do.convert_element_type(x, new_dtype=dtype)


def _scaled(side: str, x: Any, scale: Any, contracting: Sequence[int], dtype: Any) -> Any:
    """The operand times its scales, in `dtype`."""
    x = _as(x, dtype)
    if scale is None:
        return x
    shape, own = typeof(x).shape, typeof(operand(scale)).shape
    if len(shape) != len(own):
        raise TypeError(f"{side} rank {len(shape)} does not match scale rank {len(own)}.")
    for d, (n, m) in enumerate(zip(shape, own)):
        if d in contracting and (m == 0 or n % m):
            raise TypeError(
                f"{side} contracting dim {d} of size {n} must be divisible by its scale's dim size"
                f" {m}."
            )
        if d not in contracting and n != m:
            raise TypeError(f"{side} dim {d} of size {n} does not match scale dim size {m}.")
    blocks = tuple(k for n, m in zip(shape, own) for k in (m, n // m if m else 1))
    spread = do.broadcast_in_dim(
        _as(operand(scale), dtype),
        shape=blocks,
        broadcast_dimensions=tuple(range(0, len(blocks), 2)),
    )
    return do.mul(x, do.reshape(spread, new_sizes=shape))

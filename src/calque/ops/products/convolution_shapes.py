"""What a convolution is before it is computed: dimension numbers by letters, padding by name, the
shape of the result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calque.ops.dimension_numbers import ConvDimensionNumbers
from calque.ops.layout import Shape
from calque.ops.padding import dilated, padtype_to_pads, window_count

# ---------------------------------------------------------------- dimension numbers


def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: Any
) -> ConvDimensionNumbers:
    """Gives the dimension numbers of a convolution in the form that its equations carry.

    Args:
        lhs_shape: The shape of the operand.
        rhs_shape: The shape of the kernel.
        dimension_numbers: Three strings that name the dimensions of operand, kernel and result: N
            is the batch, C the feature, I and O the features of the kernel, other letters are
            spatial. None means ("NC...", "OI...", "NC...").

    Returns:
        A ConvDimensionNumbers.

    >>> lax.conv_dimension_numbers((1, 8, 8, 3), (3, 3, 3, 4), ("NHWC", "HWIO", "NHWC"))
    ConvDimensionNumbers(lhs_spec=(0, 3, 1, 2), rhs_spec=(3, 2, 0, 1), out_spec=(0, 3, 1, 2))"""
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    if len(lhs_shape) != len(rhs_shape):
        raise TypeError(
            f"convolution requires lhs and rhs ndim to be equal, got {len(lhs_shape)} and"
            f" {len(rhs_shape)}."
        )
    ndim = len(lhs_shape)
    if dimension_numbers is None:
        return ConvDimensionNumbers(*[tuple(range(ndim))] * 3)
    if not isinstance(dimension_numbers, (tuple, list)) or len(dimension_numbers) != 3:
        raise TypeError(
            "convolution dimension_numbers must be None, a ConvDimensionNumbers or a tuple of 3"
            f" strings, got {dimension_numbers!r}."
        )
    for spec in dimension_numbers:
        if len(spec) != ndim:
            raise TypeError(
                f"convolution dimension_numbers {dimension_numbers} must have one letter for each"
                f" of {ndim} dimensions"
            )
    return ConvDimensionNumbers(*conv_general_permutations(dimension_numbers))


def conv_general_permutations(dimension_numbers: Sequence[str]) -> list[Shape]:
    """Gives the positions of batch, feature and spatial dimensions that three strings name.

    Args:
        dimension_numbers: The strings, as of `conv_dimension_numbers`.

    Returns:
        A list of three tuples.

    >>> lax.conv_general_permutations(("NHWC", "HWIO", "NHWC"))
    [(0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2)]"""
    lhs, rhs, out = dimension_numbers
    for spec, (first, second) in ((lhs, "NC"), (rhs, "OI"), (out, "NC")):
        if spec.count(first) != 1 or spec.count(second) != 1 or len(set(spec)) != len(spec):
            raise TypeError(
                f'convolution dimension_numbers: "{spec}" must contain {first} and {second} once,'
                f" and no letter twice; got {dimension_numbers}"
            )
    letters = [c for c in rhs if c not in "OI"]
    if not set(lhs) - set("NC") == set(letters) == set(out) - set("NC"):
        raise TypeError(
            "convolution dimension_numbers must name the same spatial dimensions in all three, got"
            f" {dimension_numbers}"
        )
    return [
        tuple([spec.index(c) for c in (*ends, *letters)])
        for spec, ends in ((lhs, "NC"), (rhs, "OI"), (out, "NC"))
    ]


# ---------------------------------------------------------------- padding by name


def transposed_padding(k: int, s: int, padding: str) -> tuple[int, int]:
    """The padding of the dilated input for which the result has the size that the forward
    convolution took."""
    if padding == "SAME":
        total = k + s - 2
        low = k - 1 if s > k - 1 else -(-total // 2)
    elif padding == "VALID":
        total = k + s - 2 + max(k - s, 0)
        low = k - 1
    else:
        raise ValueError(f'Padding mode must be "SAME" or "VALID" (or explicit), got {padding!r}.')
    return low, total - low


# ---------------------------------------------------------------- shapes


def conv_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    strides: Sequence[int],
    pads: Any,
    batch_group_count: int = 1,
) -> Shape:
    """Gives the shape of the result of a convolution in the layout (batch, feature, *spatial).

    Args:
        lhs_shape: The shape of the operand.
        rhs_shape: The shape of the kernel.
        strides: The steps, for each spatial dimension.
        pads: "SAME", "SAME_LOWER", "VALID", or (before, after) for each spatial dimension.
        batch_group_count: Into how many groups the batch is cut.

    Returns:
        A shape.

    >>> lax.conv_shape_tuple((1, 3, 8, 8), (4, 3, 3, 3), (1, 1), "VALID")
    (1, 4, 6, 6)"""
    if isinstance(pads, str):
        pads = padtype_to_pads(lhs_shape[2:], rhs_shape[2:], strides, pads)
    if len(pads) != len(lhs_shape) - 2:
        raise TypeError(
            f"Wrong number of explicit pads for convolution: expected {len(lhs_shape) - 2}, got"
            f" {len(pads)}."
        )
    sizes = [
        window_count(n + low + high, k, s)
        for n, k, s, (low, high) in zip(lhs_shape[2:], rhs_shape[2:], strides, pads)
    ]
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *sizes)


def conv_general_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    dimension_numbers: Any,
) -> Shape:
    """Gives the shape of the result of a convolution in any layout.

    Args:
        lhs_shape: The shape of the operand.
        rhs_shape: The shape of the kernel.
        window_strides: The steps, for each spatial dimension.
        padding: "SAME", "SAME_LOWER", "VALID", or (before, after) for each spatial dimension.
        dimension_numbers: Three strings, as of `conv_dimension_numbers`.

    Returns:
        A shape.

    >>> layout = ("NHWC", "HWIO", "NHWC")
    >>> lax.conv_general_shape_tuple((1, 8, 8, 3), (3, 3, 3, 4), (1, 1), "SAME", layout)
    (1, 8, 8, 4)"""
    lhs_perm, rhs_perm, out_perm = conv_general_permutations(dimension_numbers)
    out = conv_shape_tuple(
        [lhs_shape[d] for d in lhs_perm], [rhs_shape[d] for d in rhs_perm], window_strides, padding
    )
    return tuple([out[i] for i in np.argsort(out_perm)])


def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    dimension_numbers: Any,
) -> Shape:
    """Gives the shape of the result of a transposed convolution.

    Args:
        lhs_shape: The shape of the operand.
        rhs_shape: The shape of the kernel.
        window_strides: The strides, for each spatial dimension.
        padding: "SAME", "VALID", or (before, after) for each spatial dimension.
        dimension_numbers: Three strings, as of `conv_dimension_numbers`.

    Returns:
        A shape.

    >>> layout = ("NHWC", "HWIO", "NHWC")
    >>> lax.conv_transpose_shape_tuple((1, 4, 4, 3), (3, 3, 3, 4), (2, 2), "SAME", layout)
    (1, 8, 8, 4)"""
    lhs_perm, rhs_perm, out_perm = conv_general_permutations(dimension_numbers)
    lhs, rhs = [lhs_shape[d] for d in lhs_perm], [rhs_shape[d] for d in rhs_perm]
    if isinstance(padding, str):
        padding = [transposed_padding(k, s, padding) for k, s in zip(rhs[2:], window_strides)]
    grown = [dilated(n, s) for n, s in zip(lhs[2:], window_strides)]
    out = conv_shape_tuple([*lhs[:2], *grown], rhs, (1,) * len(grown), list(padding))
    return tuple([out[i] for i in np.argsort(out_perm)])

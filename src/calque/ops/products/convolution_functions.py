"""The convolution functions of lax: padding by name, transposed and unshared ones, patches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from calque.core.arrays import Array
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.types import ArrayLike, DTypeLike
from calque.ops import common
from calque.ops.common import operand as as_operand
from calque.ops.dimension_numbers import ConvDimensionNumbers, canonical_precision, preferred_dtype
from calque.ops.layout import permuted
from calque.ops.padding import canonical_pads, dilated, padtype_to_pads, per_dimension
from calque.ops.products.convolution_shapes import conv_dimension_numbers, transposed_padding
from calque.ops.products.dot import dot_general

# ---------------------------------------------------------------- conv_general_dilated


def conv_general_dilated(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Convolves an array with a kernel, which is not reversed.

    Args:
        lhs: The operand, an array with batch, feature and spatial dimensions.
        rhs: The kernel, of the same rank and dtype.
        window_strides: The steps, for each spatial dimension.
        padding: "SAME", "SAME_LOWER", "VALID", or (before, after) for each spatial dimension.
        lhs_dilation: The distance of neighbouring elements of `lhs`, for each spatial dimension;
            None means 1.
        rhs_dilation: The distance of neighbouring elements of the kernel, likewise.
        dimension_numbers: Three strings or a `ConvDimensionNumbers`, as of
            `conv_dimension_numbers`; None means ("NC...", "OI...", "NC...").
        feature_group_count: Into how many groups features are cut; each has kernels of its own.
        batch_group_count: Into how many groups the batch is cut; each has kernels of its own.
        precision: How exact the products are, as of `dot_general`.
        preferred_element_type: The dtype of the result; None takes that of the operands.
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array.

    >>> x, kernel, layout = jnp.ones((1, 8, 8, 3)), jnp.ones((3, 3, 3, 4)), ("NHWC", "HWIO", "NHWC")
    >>> lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=layout).shape
    (1, 8, 8, 4)"""
    lhs, rhs = common.same_dtypes("conv_general_dilated", [as_operand(lhs), as_operand(rhs)])
    ls, rs = typeof(lhs).shape, typeof(rhs).shape
    numbers = conv_dimension_numbers(ls, rs, dimension_numbers)
    n = len(ls) - 2
    ld, rd = (
        per_dimension(lhs_dilation, n, "lhs_dilation"),
        per_dimension(rhs_dilation, n, "rhs_dilation"),
    )
    if not isinstance(window_strides, int) and len(window_strides) != n:
        raise ValueError(
            "conv_general_dilated window and window_strides must have the same number of"
            f" dimensions, got {n} of them and window_strides {tuple(window_strides)}"
        )
    strides = per_dimension(window_strides, n, "window_strides")
    if isinstance(padding, str):
        if any(d != 1 for d in ld):
            raise ValueError(
                "String padding is not implemented for transposed convolution using this op. Please"
                " either exactly specify the required padding or use conv_transpose."
            )
        extent = [ls[d] for d in numbers.lhs_spec[2:]]
        kernel = [dilated(rs[d], k) for d, k in zip(numbers.rhs_spec[2:], rd)]
        padding = padtype_to_pads(extent, kernel, strides, padding)
    return do.conv_general_dilated(
        lhs,
        rhs,
        window_strides=strides,
        padding=canonical_pads(padding, n, "conv_general_dilated"),
        lhs_dilation=ld,
        rhs_dilation=rd,
        dimension_numbers=numbers,
        feature_group_count=feature_group_count,
        batch_group_count=batch_group_count,
        precision=canonical_precision(precision),
        preferred_element_type=preferred_dtype(preferred_element_type),
        out_sharding=out_sharding,
    )


def conv(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Convolves in the layout (batch, feature, *spatial), with kernels (out, in, *spatial).

    Args:
        lhs: The operand, an array with batch, feature and spatial dimensions.
        rhs: The kernel, of the same rank and dtype.
        window_strides: The steps, for each spatial dimension.
        padding: "SAME", "SAME_LOWER", "VALID", or (before, after) for each spatial dimension.
        precision: How exact the products are, as of `dot_general`.
        preferred_element_type: The dtype of the result; None takes that of the operands.

    Returns:
        An array.

    >>> lax.conv(jnp.ones((1, 3, 8, 8)), jnp.ones((4, 3, 3, 3)), (1, 1), "SAME").shape
    (1, 4, 8, 8)"""
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_with_general_padding(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Convolves in the layout (batch, feature, *spatial), with padding and dilations.

    Args:
        lhs: The operand, an array with batch, feature and spatial dimensions.
        rhs: The kernel, of the same rank and dtype.
        window_strides: The steps, for each spatial dimension.
        padding: "SAME", "SAME_LOWER", "VALID", or (before, after) for each spatial dimension.
        lhs_dilation: The distance of neighbouring elements of `lhs`, for each spatial dimension;
            None means 1.
        rhs_dilation: The distance of neighbouring elements of the kernel, likewise.
        precision: How exact the products are, as of `dot_general`.
        preferred_element_type: The dtype of the result; None takes that of the operands.

    Returns:
        An array.

    >>> x, kernel = jnp.ones((1, 3, 8)), jnp.ones((4, 3, 3))
    >>> lax.conv_with_general_padding(x, kernel, (1,), [(0, 2)], None, (2,)).shape
    (1, 4, 6)"""
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


# ---------------------------------------------------------------- conv_transpose


_TRANSPOSE_LAYOUTS: Final = {
    2: ("NC", "IO", "NC"),
    3: ("NHC", "HIO", "NHC"),
    4: ("NHWC", "HWIO", "NHWC"),
    5: ("NHWDC", "HWDIO", "NHWDC"),
}


def conv_transpose(
    lhs: ArrayLike,
    rhs: ArrayLike,
    strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    transpose_kernel: bool = False,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    use_consistent_padding: bool = False,
) -> Array:
    """Convolves with fractional strides: the operand is dilated by them.

    Args:
        lhs: The operand, an array with batch, feature and spatial dimensions.
        rhs: The kernel, of the same rank and dtype.
        strides: The strides, for each spatial dimension.
        padding: "SAME", "SAME_LOWER", "VALID", or (before, after) for each spatial dimension.
        rhs_dilation: The distance of neighbouring elements of the kernel, likewise.
        dimension_numbers: Three strings, as of `conv_dimension_numbers`; None means ("N...C",
            "...IO", "N...C").
        transpose_kernel: Whether the kernel is reversed and its features exchanged, which makes
            this the gradient of a convolution.
        precision: How exact the products are, as of `dot_general`.
        preferred_element_type: The dtype of the result; None takes that of the operands.
        use_consistent_padding: Whether explicit padding is that of the convolution whose gradient
            this is.

    Returns:
        An array.

    >>> lax.conv_transpose(jnp.ones((1, 4, 4, 3)), jnp.ones((3, 3, 3, 5)), (2, 2), "SAME").shape
    (1, 8, 8, 5)"""
    lhs, rhs = as_operand(lhs), as_operand(rhs)
    ndim = typeof(lhs).ndim
    if ndim != typeof(rhs).ndim or ndim < 2:
        raise ValueError(
            f"conv_transpose needs operands of equal rank, at least 2, got {typeof(lhs)} and"
            f" {typeof(rhs)}"
        )
    if dimension_numbers is None:
        if ndim not in _TRANSPOSE_LAYOUTS:
            raise ValueError("No 4+ dimensional dimension_number defaults.")
        dimension_numbers = _TRANSPOSE_LAYOUTS[ndim]
    numbers = conv_dimension_numbers(typeof(lhs).shape, typeof(rhs).shape, dimension_numbers)
    dilation = per_dimension(rhs_dilation, ndim - 2, "rhs_dilation")
    kernel = [dilated(typeof(rhs).shape[d], k) for d, k in zip(numbers.rhs_spec[2:], dilation)]
    if isinstance(padding, str):
        padding = [transposed_padding(k, s, padding) for k, s in zip(kernel, strides, strict=True)]
    elif use_consistent_padding:
        padding = [
            (k - 1 - low, k - 1 - high) for k, (low, high) in zip(kernel, padding, strict=True)
        ]
    if transpose_kernel:
        rhs = do.rev(rhs, dimensions=tuple(numbers.rhs_spec[2:]))
        order = list(range(ndim))
        o, i = numbers.rhs_spec[:2]
        order[o], order[i] = i, o
        rhs = permuted(rhs, order)
    return conv_general_dilated(
        lhs,
        rhs,
        (1,) * (ndim - 2),
        padding,
        strides,
        dilation,
        numbers,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


# ---------------------------------------------------------------- patches and unshared kernels


def conv_general_dilated_patches(
    lhs: ArrayLike,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Gives the windows of a convolution as features.

    Args:
        lhs: The operand, an array with batch, feature and spatial dimensions.
        filter_shape: The spatial shape of a window.
        window_strides: The steps, for each spatial dimension.
        padding: "SAME", "SAME_LOWER", "VALID", or (before, after) for each spatial dimension.
        lhs_dilation: The distance of neighbouring elements of `lhs`, for each spatial dimension;
            None means 1.
        rhs_dilation: The distance of neighbouring elements of the kernel, likewise.
        dimension_numbers: Three strings or a `ConvDimensionNumbers`, as of
            `conv_dimension_numbers`; None means ("NC...", "OI...", "NC...").
        precision: How exact the products are, as of `dot_general`.
        preferred_element_type: The dtype of the result; None takes that of the operands.

    Returns:
        An array whose features are (feature, *window) in one, for each position of the result.

    >>> lax.conv_general_dilated_patches(jnp.ones((1, 2, 5, 5)), (3, 3), (1, 1), "VALID").shape
    (1, 18, 3, 3)"""
    lhs = as_operand(lhs)
    aval = typeof(lhs)
    numbers = conv_dimension_numbers(aval.shape, (0,) * aval.ndim, dimension_numbers)
    lhs_spec, rhs_spec, _ = numbers
    channels = aval.shape[lhs_spec[1]]
    window = int(np.prod(tuple(filter_shape), dtype=np.int64))
    eye = do.eq(_iota(window, 0), _iota(window, 1))
    eye = do.convert_element_type(eye, new_dtype=aval.dtype)
    kernel = do.broadcast_in_dim(eye, shape=(channels, window, window), broadcast_dimensions=(1, 2))
    # (out feature, in feature, *spatial), put where the kernel's dimensions stand
    kernel = do.reshape(kernel, new_sizes=(channels * window, 1, *filter_shape))
    kernel = permuted(kernel, np.argsort(rhs_spec).tolist())
    return conv_general_dilated(
        lhs,
        kernel,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        numbers,
        feature_group_count=channels,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def _iota(n: int, dimension: int) -> Any:
    return do.iota(dtype=np.dtype("int32"), shape=(n, n), dimension=dimension)


def conv_general_dilated_local(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: Any = None,
) -> Array:
    """Convolves with a kernel of its own for each position of the result.

    Args:
        lhs: The operand, an array with batch, feature and spatial dimensions.
        rhs: The kernels: the spatial dimensions of the result, and the window in one as input
            features.
        window_strides: The steps, for each spatial dimension.
        padding: "SAME", "SAME_LOWER", "VALID", or (before, after) for each spatial dimension.
        filter_shape: The spatial shape of a window.
        lhs_dilation: The distance of neighbouring elements of `lhs`, for each spatial dimension;
            None means 1.
        rhs_dilation: The distance of neighbouring elements of the kernel, likewise.
        dimension_numbers: Three strings or a `ConvDimensionNumbers`, as of
            `conv_dimension_numbers`; None means ("NC...", "OI...", "NC...").
        precision: How exact the products are, as of `dot_general`.

    Returns:
        An array.

    >>> x, kernels = jnp.ones((1, 2, 4)), jnp.ones((5, 6, 2))
    >>> lax.conv_general_dilated_local(x, kernels, (1,), "VALID", (3,)).shape
    (1, 5, 2)"""
    lhs, rhs = as_operand(lhs), as_operand(rhs)
    aval = typeof(lhs)
    numbers = conv_dimension_numbers(aval.shape, typeof(rhs).shape, dimension_numbers)
    lhs_spec, rhs_spec, out_spec = numbers
    patches = conv_general_dilated_patches(
        lhs, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation,
        ConvDimensionNumbers(lhs_spec, rhs_spec, out_spec), precision,
    )  # fmt: skip
    spatial = len(filter_shape)
    batch = (tuple(out_spec[2:]), tuple(rhs_spec[2:]))
    out = dot_general(patches, rhs, (((out_spec[1],), (rhs_spec[1],)), batch), precision)
    # (*spatial, batch, out feature), put in the order of the result
    place = [0] * (spatial + 2)
    for k, d in enumerate((*range(2, spatial + 2), 0, 1)):
        place[out_spec[d]] = k
    return permuted(out, place)

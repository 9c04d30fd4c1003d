"""Matrix products of block-scaled operands: each block of a row has a scale of its own, in the
formats MXFP8 and NVFP4."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from calque import numpy as jnp
from calque.core.arrays import Array
from calque.core.dtypes import as_dtype, asked, finfo, is_float
from calque.core.trace import typeof
from calque.core.types import ArrayLike, DTypeLike
from calque.numpy.promotion import check_arraylike, convert
from calque.ops.convert import stop_gradient
from calque.ops.products.dot import dot_general

_F32 = np.dtype("float32")


def scaled_matmul(
    lhs: ArrayLike,
    rhs: ArrayLike,
    lhs_scales: ArrayLike,
    rhs_scales: ArrayLike,
    preferred_element_type: DTypeLike = np.float32,
) -> Array:
    """Multiplies matrices whose rows consist of blocks, each with a scale of its own.

    Args:
        lhs: An array of shape (B, M, K).
        rhs: An array of shape (B, N, K).
        lhs_scales: The scales of the blocks of `lhs`, of shape (B, M, K / block).
        rhs_scales: The scales of the blocks of `rhs`, of shape (B, N, K / block).
        preferred_element_type: The dtype of the result.

    Returns:
        An array of shape (B, M, N).

    >>> a, s = jnp.ones((1, 1, 4)), jnp.full((1, 1, 2), 0.5)
    >>> jax.nn.scaled_matmul(a, a, s, s)
    Array([[[1.]]], dtype=float32)"""
    check_arraylike("scaled_matmul", lhs, rhs, lhs_scales, rhs_scales)
    shapes = [typeof(x).shape for x in (lhs, rhs, lhs_scales, rhs_scales)]
    if any(len(s) != 3 for s in shapes):
        raise ValueError(
            f"scaled_matmul requires all inputs to be 3-dimensional arrays, got shapes {shapes}"
        )
    if shapes[0][0] != shapes[1][0] or shapes[0][2] != shapes[1][2]:
        raise ValueError(
            "scaled_matmul requires inputs a and b to have matching batch (B) and contract (K)"
            f" dims, got shapes {shapes[:2]}"
        )
    for what, own, scales in (("lhs", shapes[0], shapes[2]), ("rhs", shapes[1], shapes[3])):
        if own[:2] != scales[:2] or scales[2] == 0 or own[2] % scales[2]:
            raise ValueError(
                f"scaled_matmul: scales of shape {scales} do not divide {what} of shape {own} into"
                " blocks"
            )
    preferred = asked(preferred_element_type)
    if not is_float(preferred):
        raise ValueError(
            f"scaled_matmul: preferred_element_type must be a float dtype, got {preferred}"
        )
    a, b = _unscaled(lhs, lhs_scales), _unscaled(rhs, rhs_scales)
    return convert(
        dot_general(a, b, (((2,), (2,)), ((0,), (0,))), preferred_element_type=_F32), preferred
    )


def _unscaled(x: Any, scales: Any) -> Any:
    """The values that the blocks of the last axis stand for, in float32."""
    shape, blocks = typeof(x).shape, typeof(scales).shape
    parts = jnp.reshape(convert(x, _F32), (*blocks, shape[-1] // blocks[-1]))
    return jnp.reshape(parts * jnp.reshape(convert(scales, _F32), (*blocks, 1)), shape)


@dataclass(frozen=True)
class BlockScaleConfig:
    """How an operand is quantised: the size of a block, the dtypes of its elements and of its
    scale."""

    mode: str
    block_size: int
    data_type: Any
    scale_type: Any
    global_scale: Any = None
    infer_only: bool = False


def get_scaled_dot_general_config(
    mode: str, global_scale: ArrayLike | None = None
) -> BlockScaleConfig:
    """Gives the configuration of a block-scaled format for `scaled_dot_general`.

    Args:
        mode: "mxfp8" or "nvfp4".
        global_scale: The scale of the whole array, for "nvfp4"; None means 1.

    Returns:
        A configuration: block size, dtypes of elements and scales.

    >>> jax.nn.get_scaled_dot_general_config("mxfp8").block_size
    32"""
    if mode == "mxfp8":
        return BlockScaleConfig(mode, 32, as_dtype("float8_e4m3fn"), as_dtype("float8_e8m0fnu"))
    if mode == "nvfp4":
        one = np.ones((1,), _F32) if global_scale is None else global_scale
        return BlockScaleConfig(mode, 16, as_dtype("float4_e2m1fn"), as_dtype("float8_e4m3fn"), one)
    raise ValueError(f"Unsupported mode: {mode}. Available modes are 'mxfp8' and 'nvfp4'")


def scaled_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: Any,
    preferred_element_type: DTypeLike = np.float32,
    configs: Any = None,
    implementation: Any = None,
) -> Array:
    """Multiplies arrays that are first rounded to a block-scaled format along the summed axis.

    Derivatives take the rounding for the identity.

    Args:
        lhs: The left array.
        rhs: The right array.
        dimension_numbers: As of `lax.dot_general`.
        preferred_element_type: The dtype of the result.
        configs: A list with the configuration of `lhs` and that of `rhs` first; None rounds
            nothing.
        implementation: None or "cudnn"; both are the same here.

    Returns:
        An array.

    >>> x, w = jnp.ones((2, 32)), jnp.ones((32, 1))
    >>> configs = [jax.nn.get_scaled_dot_general_config("mxfp8")] * 3
    >>> jax.nn.scaled_dot_general(x, w, (((1,), (0,)), ((), ())), configs=configs)
    Array([[32.],
           [32.]], dtype=float32)"""
    check_arraylike("scaled_dot_general", lhs, rhs)
    if implementation not in (None, "cudnn"):
        raise ValueError(f"Unsupported implementation option: {implementation}")
    preferred = asked(preferred_element_type)
    if configs is not None:
        (left, right), _ = dimension_numbers
        if len(left) != 1:
            raise ValueError(
                "scaled_dot_general sums over exactly one axis with configs, got"
                f" {dimension_numbers}"
            )
        lhs = _rounded(lhs, left[0], configs[0])
        rhs = _rounded(rhs, right[0], configs[1])
    return dot_general(lhs, rhs, dimension_numbers, preferred_element_type=preferred)


def _rounded(x: Any, axis: int, config: BlockScaleConfig) -> Any:
    """x as the format can hold it; its derivative is that of x."""
    shape = typeof(x).shape
    if shape[axis] % config.block_size:
        raise ValueError(
            f"scaled_dot_general: axis {axis} of shape {shape} must be a multiple of the block size"
            f" {config.block_size}"
        )
    k = axis % len(shape)
    blocks = jnp.reshape(convert(x, _F32), (*shape[:k], -1, config.block_size, *shape[k + 1 :]))
    whole = 1.0 if config.global_scale is None else jnp.reshape(config.global_scale, ())
    top = float(finfo(config.data_type).max)
    largest = jnp.max(jnp.abs(blocks), axis=k + 1, keepdims=True)
    scale = _stored_scale(largest / top / whole, config)
    stored = convert((blocks / (scale * whole)).clip(-top, top), config.data_type)
    back = jnp.reshape(convert(stored, _F32) * (scale * whole), shape)
    return x + stop_gradient(convert(back - convert(x, _F32), typeof(x).dtype))


def _stored_scale(scale: Any, config: BlockScaleConfig) -> Any:
    """The scale as its own dtype holds it: the next power of two, or the nearest value that is not
    zero."""
    safe = jnp.where(scale == 0, 1.0, scale)
    if config.mode == "mxfp8":
        safe = jnp.exp2(jnp.ceil(jnp.log2(safe)))
    else:
        info = finfo(config.scale_type)
        safe = safe.clip(float(info.smallest_subnormal), float(info.max))
    return convert(convert(safe, config.scale_type), _F32)

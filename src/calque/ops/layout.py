"""Layout: the same elements in another arrangement (broadcast_in_dim, reshape, transpose, squeeze),
constants without operands (iota, empty), and what JAX's lax writes with them (full, expand_dims,
collapse, ...)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calque.core.arrays import Array
from calque.core.avals import ShapedArray
from calque.core.dims import as_size, surely_equal, whole
from calque.core.primitives import NotApplicable, Primitive, UndefinedPrimal, Zero, do
from calque.core.trace import VALUES, typeof
from calque.core.types import ArrayLike
from calque.ops.common import instantiate, move, zero_like
from calque.ops.common import operand as as_operand

Params = Any
Shape = tuple[int, ...]

# ---------------------------------------------- shared by the rules of layout, slicing and indexing


def canonical_shape(shape: Any, what: str = "shape") -> Shape:
    """A shape as a tuple of plain ints (or symbolic sizes)."""
    if type(shape) is tuple and all(type(d) is int for d in shape):
        return shape
    try:
        return tuple([as_size(d) for d in shape])
    except TypeError:
        raise TypeError(
            f"Shapes must be 1D sequences of concrete values of integer type, got {what}={shape!r}"
        ) from None


def canonical_axis(axis: Any, ndim: int, what: str = "axis") -> int:
    """An axis counted from the front; negative ones count from the back."""
    axis = whole(axis, what)
    if not -ndim <= axis < ndim:
        raise ValueError(f"{what} {axis} is out of bounds for array of dimension {ndim}")
    return axis + ndim if axis < 0 else axis


def permuted(x: Any, permutation: Sequence[int]) -> Any:
    """`x` with its dimensions in this order; `x` itself where that is the order it has."""
    permutation = tuple(permutation)
    return (
        x
        if permutation == tuple(range(len(permutation)))
        else do.transpose(x, permutation=permutation)
    )


def linear_jvp(name: str, operands: int = 1) -> Callable[..., Any]:
    """The jvp of a primitive that is linear in its first `operands` operands (0: in all)."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Params) -> tuple[Any, Any]:
        bind = do[name]
        n = operands or len(primals)
        out = bind(*primals, **params)
        if all(type(t) is Zero for t in tangents[:n]):
            return out, [zero_like(o) for o in out] if isinstance(out, list) else zero_like(out)
        return out, bind(*map(instantiate, tangents[:n]), *primals[n:], **params)

    return jvp


def unary_transpose(rule: Callable[..., Any]) -> Callable[..., Any]:
    """The transpose of a primitive with one linear operand: `rule(ct, aval, *other_operands,
    **params)` gives its cotangent."""

    def transpose(ct: Any, operand: UndefinedPrimal, *others: Any, **params: Params) -> list[Any]:
        back = Zero(operand.aval) if type(ct) is Zero else rule(ct, operand.aval, *others, **params)
        return [back] + [None] * len(others)

    return transpose


NO_OPERANDS = NotApplicable("a primitive without operands has no transpose and no batch dimension")


def constant_jvp(name: str) -> Callable[..., Any]:
    """The jvp of a primitive that depends on nothing."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Params) -> tuple[Any, Any]:
        out = do[name](*primals, **params)
        return out, zero_like(out)

    return jvp


# ---------------------------------------------------------------- broadcast_in_dim


def _broadcast_shape(
    x: ShapedArray, *, shape: Shape, broadcast_dimensions: Shape, sharding: Any
) -> ShapedArray:
    if len(broadcast_dimensions) != x.ndim:
        raise TypeError(
            "broadcast_in_dim broadcast_dimensions must have length equal to operand ndim, got"
            f" broadcast_dimensions={broadcast_dimensions} for operand {x.str_short()}"
        )
    if len(shape) < x.ndim:
        raise TypeError(
            "broadcast_in_dim target broadcast shape must have equal or higher rank to the operand"
            f" shape, got {shape} for operand {x.str_short()}"
        )
    last = -1
    for size, d in zip(x.shape, broadcast_dimensions):
        if not 0 <= d < len(shape):
            raise TypeError(
                "broadcast_in_dim broadcast_dimensions must be a subset of output dimensions, got"
                f" {broadcast_dimensions} for rank {len(shape)}"
            )
        if d <= last:
            raise TypeError(
                "broadcast_in_dim broadcast_dimensions must not contain duplicates and must be"
                f" strictly increasing, got {broadcast_dimensions}"
            )
        if not surely_equal(size, shape[d]) and size != 1 and size != shape[d]:
            raise TypeError(
                "broadcast_in_dim operand dimension sizes must either be 1, or be equal to their"
                " corresponding dimensions in the target broadcast shape: operand"
                f" {x.str_short()} does not fit shape {shape} with"
                f" broadcast_dimensions={broadcast_dimensions}"
            )
        last = d
    return ShapedArray(shape, x.dtype, x.weak_type)


def _broadcast_meaning(
    x: np.ndarray, *, shape: Shape, broadcast_dimensions: Shape, sharding: Any
) -> np.ndarray:
    sizes = [1] * len(shape)
    for d, size in zip(broadcast_dimensions, x.shape):
        sizes[d] = size
    return np.broadcast_to(x.reshape(sizes), shape)


@unary_transpose
def _broadcast_transpose(
    ct: Any, aval: ShapedArray, *, shape: Shape, broadcast_dimensions: Shape, sharding: Any
) -> Any:
    kept = {d for size, d in zip(aval.shape, broadcast_dimensions) if size == shape[d]}
    axes = tuple([d for d in range(len(shape)) if d not in kept])
    total = do.reduce_sum(ct, axes=axes) if axes else ct
    if len(kept) == aval.ndim:
        return total
    position = tuple([i for i, d in enumerate(broadcast_dimensions) if d in kept])
    return do.broadcast_in_dim(total, shape=aval.shape, broadcast_dimensions=position)


def _broadcast_batch(
    args: Sequence[Any],
    dims: Sequence[int | None],
    *,
    shape: Shape,
    broadcast_dimensions: Shape,
    sharding: Any,
) -> tuple[Any, int]:
    (x,), (d,) = args, dims
    assert d is not None
    x = move(x, d, 0)
    at = (0, *[i + 1 for i in broadcast_dimensions])
    return (
        do.broadcast_in_dim(x, shape=(typeof(x).shape[0], *shape), broadcast_dimensions=at),
        0,
    )


def _broadcast_hidden(params: dict[str, Any]) -> list[str]:
    hidden = ["shape"] + [k for k in ("broadcast_dimensions",) if not params[k]]
    return hidden + (["sharding"] if params["sharding"] is None else [])


broadcast_in_dim_p = Primitive(
    "broadcast_in_dim",
    meaning=_broadcast_meaning,
    shape=_broadcast_shape,
    jvp=linear_jvp("broadcast_in_dim"),
    transpose=_broadcast_transpose,
    batch=_broadcast_batch,
    hidden=_broadcast_hidden,
    defaults={"sharding": None},
)


def broadcast_in_dim(
    operand: ArrayLike,
    shape: Sequence[int],
    broadcast_dimensions: Sequence[int],
    *,
    out_sharding: Any = None,
) -> Array:
    """Repeats an array so that it has a shape.

    Args:
        operand: An array.
        shape: The shape of the result.
        broadcast_dimensions: For each dimension of `operand` the one of the result that it becomes,
            and no other becomes it. Its size is that of the result, or 1.
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array of this shape.

    >>> lax.broadcast_in_dim(jnp.array([1.0, 2.0]), (2, 3), (0,))
    Array([[1., 1., 1.],
           [2., 2., 2.]], dtype=float32)"""
    shape = canonical_shape(shape)
    dims = canonical_shape(broadcast_dimensions, "broadcast_dimensions")
    operand = as_operand(operand)
    aval = typeof(operand)
    if shape == aval.shape and dims == tuple(range(len(shape))) and _is_array(operand):
        return operand
    order = sorted(range(len(dims)), key=dims.__getitem__)
    if order != list(range(len(dims))) and len(dims) == aval.ndim:
        operand = do.transpose(operand, permutation=tuple(order))
        dims = tuple(sorted(dims))
    return do.broadcast_in_dim(
        operand, shape=shape, broadcast_dimensions=dims, sharding=out_sharding
    )


def _is_array(x: Any) -> bool:
    """Whether `x` is one of our arrays or tracers, which an operation without effect can return as
    it is."""
    return isinstance(x, VALUES)


# ---------------------------------------------------------------- reshape


def size_of(shape: Sequence[int]) -> Any:
    n: Any = 1
    for d in shape:
        n = n * d
    return n


def _reshape_shape(
    x: ShapedArray, *, new_sizes: Shape, dimensions: Shape | None, sharding: Any
) -> ShapedArray:
    out = ShapedArray(new_sizes, x.dtype, x.weak_type)
    if out.size != x.size:
        raise TypeError(
            f"reshape total size must be unchanged, got new_sizes {new_sizes} (size {out.size}) for"
            f" shape {x.shape} (size {x.size})"
        )
    if dimensions is not None and sorted(dimensions) != list(range(x.ndim)):
        raise TypeError(
            "reshape dimensions must be a permutation of the operand's dimensions, got"
            f" {dimensions} for shape {x.shape}"
        )
    return out


def _reshape_meaning(
    x: np.ndarray, *, new_sizes: Shape, dimensions: Shape | None, sharding: Any
) -> np.ndarray:
    return (x if dimensions is None else np.transpose(x, dimensions)).reshape(new_sizes)


@unary_transpose
def _reshape_transpose(
    ct: Any, aval: ShapedArray, *, new_sizes: Shape, dimensions: Shape | None, sharding: Any
) -> Any:
    if dimensions is None:
        return do.reshape(ct, new_sizes=aval.shape)
    permuted_shape = tuple([aval.shape[d] for d in dimensions])
    return permuted(
        do.reshape(ct, new_sizes=permuted_shape),
        inverse(dimensions),
    )


def inverse(permutation: Sequence[int]) -> Shape:
    out = [0] * len(permutation)
    for i, d in enumerate(permutation):
        out[d] = i
    return tuple(out)


def _reshape_batch(
    args: Sequence[Any],
    dims: Sequence[int | None],
    *,
    new_sizes: Shape,
    dimensions: Shape | None,
    sharding: Any,
) -> tuple[Any, int]:
    (x,), (d,) = args, dims
    assert d is not None
    x = move(x, d, 0)
    order = None if dimensions is None else (0, *[i + 1 for i in dimensions])
    return (
        do.reshape(x, new_sizes=(typeof(x).shape[0], *new_sizes), dimensions=order),
        0,
    )


reshape_p = Primitive(
    "reshape",
    meaning=_reshape_meaning,
    shape=_reshape_shape,
    jvp=linear_jvp("reshape"),
    transpose=_reshape_transpose,
    batch=_reshape_batch,
    defaults={"dimensions": None, "sharding": None},
)


def reshape(
    operand: ArrayLike,
    new_sizes: Sequence[int],
    dimensions: Sequence[int] | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Gives the elements, in row-major order, in a new shape.

    Args:
        operand: An array.
        new_sizes: The shape of the result; no size may be -1.
        dimensions: The order in which to read the dimensions of `operand`; None reads them as they
            are.
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array of this shape.

    >>> lax.reshape(jnp.arange(6), (3, 2))
    Array([[0, 1],
           [2, 3],
           [4, 5]], dtype=int32)"""
    shape = canonical_shape(new_sizes, "new_sizes")
    if any(d < 0 for d in shape):
        raise TypeError(f"reshape new_sizes must all be positive, got {shape}.")
    operand = as_operand(operand)
    aval = typeof(operand)
    order = None if dimensions is None else canonical_shape(dimensions, "dimensions")
    if order is not None and order == tuple(range(aval.ndim)):
        order = None
    if shape == aval.shape and order is None and _is_array(operand):
        return operand
    return do.reshape(operand, new_sizes=shape, dimensions=order, sharding=out_sharding)


# ---------------------------------------------------------------- transpose


def _transpose_shape(x: ShapedArray, *, permutation: Shape) -> ShapedArray:
    if sorted(permutation) != list(range(x.ndim)):
        raise TypeError(
            "transpose permutation isn't a permutation of operand dimensions, got permutation"
            f" {permutation} for operand {x.str_short()}."
        )
    return ShapedArray(tuple([x.shape[d] for d in permutation]), x.dtype, x.weak_type)


def _transpose_batch(
    args: Sequence[Any], dims: Sequence[int | None], *, permutation: Shape
) -> tuple[Any, int]:
    (x,), (b,) = args, dims
    assert b is not None
    return do.transpose(x, permutation=(b, *[d + (d >= b) for d in permutation])), 0


transpose_p = Primitive(
    "transpose",
    meaning=lambda x, *, permutation: np.transpose(x, permutation),
    shape=_transpose_shape,
    jvp=linear_jvp("transpose"),
    transpose=unary_transpose(
        lambda ct, aval, *, permutation: do.transpose(ct, permutation=inverse(permutation))
    ),
    batch=_transpose_batch,
)


def transpose(operand: ArrayLike, permutation: Sequence[int]) -> Array:
    """Gives the array with its dimensions in another order.

    Args:
        operand: An array.
        permutation: For each dimension of the result the one of `operand` that it is.

    Returns:
        An array.

    >>> lax.transpose(jnp.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)"""
    operand, order = as_operand(operand), canonical_shape(permutation, "permutation")
    if order == tuple(range(typeof(operand).ndim)) and _is_array(operand):
        return operand
    return do.transpose(operand, permutation=order)


# ---------------------------------------------------------------- squeeze


def _squeeze_shape(x: ShapedArray, *, dimensions: Shape) -> ShapedArray:
    for d in dimensions:
        if not 0 <= d < x.ndim:
            raise ValueError(f"squeeze: axis {d} is out of bounds for array of dimension {x.ndim}")
        if x.shape[d] != 1:
            raise ValueError(
                "cannot select an axis to squeeze out which has size not equal to one, got"
                f" shape={x.shape} and dimensions={dimensions}"
            )
    if len(set(dimensions)) != len(dimensions):
        raise ValueError(f"squeeze: dimensions are not unique: {dimensions}")
    return ShapedArray(
        tuple([s for i, s in enumerate(x.shape) if i not in dimensions]), x.dtype, x.weak_type
    )


def _squeeze_batch(
    args: Sequence[Any], dims: Sequence[int | None], *, dimensions: Shape
) -> tuple[Any, int]:
    (x,), (b,) = args, dims
    assert b is not None
    dropped = tuple([d + (d >= b) for d in dimensions])
    return do.squeeze(x, dimensions=dropped), b - sum(d < b for d in dropped)


squeeze_p = Primitive(
    "squeeze",
    meaning=lambda x, *, dimensions: np.squeeze(x, dimensions),
    shape=_squeeze_shape,
    jvp=linear_jvp("squeeze"),
    transpose=unary_transpose(lambda ct, aval, *, dimensions: expand_dims(ct, dimensions)),
    batch=_squeeze_batch,
)


def squeeze(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Takes dimensions of size 1 away.

    Args:
        array: An array.
        dimensions: The dimensions; negative ones count from the end.

    Returns:
        An array.

    >>> lax.squeeze(jnp.zeros((1, 3)), (0,)).shape
    (3,)"""
    array = as_operand(array)
    ndim = typeof(array).ndim
    dims = tuple(sorted(canonical_axis(d, ndim) for d in dimensions))
    return do.squeeze(array, dimensions=dims) if dims or not _is_array(array) else array


def expand_dims(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Adds dimensions of size 1.

    Args:
        array: An array.
        dimensions: Where the new dimensions stand in the result; negative ones count from the end.

    Returns:
        An array.

    >>> lax.expand_dims(jnp.zeros(3), (0, 2)).shape
    (1, 3, 1)"""
    array = as_operand(array)
    shape = typeof(array).shape
    ndim = len(shape) + len(dimensions)
    new = {canonical_axis(d, ndim) for d in dimensions}
    if len(new) != len(dimensions):
        raise ValueError(f"repeated axis in lax.expand_dims: {tuple(dimensions)}")
    if not new and _is_array(array):
        return array
    kept = tuple([d for d in range(ndim) if d not in new])
    sizes = iter(shape)
    out = tuple([1 if d in new else next(sizes) for d in range(ndim)])
    return do.broadcast_in_dim(array, shape=out, broadcast_dimensions=kept)

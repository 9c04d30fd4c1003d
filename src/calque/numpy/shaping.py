"""Other shapes for the same elements, and other axes; where and clip."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from calque.core.arrays import Array
from calque.core.dims import as_size, surely_same
from calque.core.dtypes import is_complex
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.types import ArrayLike, Axes, ShapeLike
from calque.numpy.creation import canonical_shape, placed
from calque.numpy.indexing.found_sizes import is_traced_integer, known_extent
from calque.numpy.promotion import (
    as_operand,
    broadcast_shapes,
    canonical_axes,
    canonical_axis,
    check_arraylike,
    ensure,
    promote_dtypes,
    promote_shapes,
)
from calque.numpy.promotion import (
    broadcast_to as _broadcast_to,
)
from calque.numpy.signatures import OutSharding
from calque.ops.common import scalar_of


@placed
def reshape(
    a: ArrayLike,
    shape: ShapeLike,
    order: str = "C",
    *,
    copy: bool | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The elements of an array in another shape.

    Args:
        a: an array.
        shape: the new sizes, a sequence or one int; one of them may be -1 and follows from the
            others.
        order: "C" reads and writes the last axis fastest, "F" the first one.
        copy: True copies. False and None leave it to the compiler: an array is immutable, so
            nobody can tell.
        out_sharding: how the result lies on a mesh with explicit axes; None leaves it open.
    Returns:
        An array of that shape. It is a value, not a view to write through.
    Differs from NumPy:
        Order "A" is refused.

    >>> jnp.reshape(jnp.arange(6), (2, -1))
    Array([[0, 1, 2],
           [3, 4, 5]], dtype=int32)"""
    check_arraylike("reshape", a)
    a = as_operand(a)
    old, new = typeof(a).shape, _wanted(typeof(a).shape, shape)
    size = math.prod(old)
    unknown = sum(type(d) is int and d == -1 for d in new)
    if unknown:
        if unknown > 1:
            raise TypeError(f"can only specify one unknown axis size with a `-1` value, got {new}")
        rest = math.prod(d for d in new if not (type(d) is int and d == -1))
        if rest == 0 or size % rest:
            raise TypeError(
                f"cannot reshape array of shape {old} (size {size}) into shape {new}: {size} is not"
                f" a multiple of {rest}"
            )
        new = tuple(size // rest if type(d) is int and d == -1 else d for d in new)
    if math.prod(new) != size or any(d < 0 for d in new):
        raise TypeError(
            f"cannot reshape array of shape {old} (size {size}) into shape {new} (size"
            f" {math.prod(new)}): -1 stands for the size that is left"
        )
    if order == "F":
        out = transpose(do.reshape(transpose(a), new_sizes=new[::-1]))
    elif order == "A":
        raise NotImplementedError(
            "reshape with order='A' is not implemented: arrays have no order of their own"
        )
    elif order != "C":
        raise ValueError(f"order must be 'C' or 'F' for reshape, got {order!r}")
    elif surely_same(new, old):
        out = ensure(a)
    else:
        out = do.reshape(a, new_sizes=new)
    return do.copy(out) if copy else out


def _wanted(old: tuple[Any, ...], shape: Any) -> tuple[Any, ...]:
    """The new shape. One traced size is what the others leave, which the running program checks."""
    dims = shape if isinstance(shape, (tuple, list)) else (shape,)
    traced = [n for n in dims if is_traced_integer(n)]
    if len(traced) != 1:
        return canonical_shape(shape)
    rest = math.prod(as_size(n) for n in dims if n is not traced[0])
    size = math.prod(old)
    if (type(rest) is int and rest <= 0) or size % rest:
        return canonical_shape(shape)

    def error(n: Any) -> TypeError:
        return TypeError(
            f"cannot reshape array of shape {old} (size {size}): a size is {n},"
            f" {size // rest} is left for it"
        )

    return tuple(
        [known_extent(n, size // rest, error) if n is traced[0] else as_size(n) for n in dims]
    )


@placed
def ravel(a: ArrayLike, order: str = "C", *, out_sharding: OutSharding = None) -> Array:
    """All elements of an array along one axis.

    Args:
        a: an array.
        order: "C" reads the last axis fastest, "F" the first one.
        out_sharding: how the result lies on a mesh with explicit axes; None leaves it open.
    Returns:
        An array of one axis.
    Differs from NumPy:
        Orders "A" and "K" are refused.

    >>> jnp.ravel(jnp.array([[1, 2], [3, 4]]))
    Array([1, 2, 3, 4], dtype=int32)"""
    if order == "K":
        raise NotImplementedError(
            "ravel with order='K' is not implemented: arrays have no order of their own, use"
            " order='C'"
        )
    return reshape(a, (-1,) if typeof(a).size else (0,), order)


def transpose(a: ArrayLike, axes: Axes | None = None) -> Array:
    """An array with its axes in another order.

    Args:
        a: an array.
        axes: which axis of `a` each axis of the result is; None reverses the order.
    Returns:
        An array with `shape[i] == a.shape[axes[i]]`.

    >>> jnp.transpose(jnp.ones((2, 3, 4)), (1, 0, 2)).shape
    (3, 2, 4)"""
    check_arraylike("transpose", a)
    a = as_operand(a)
    n = typeof(a).ndim
    given: Any = range(n)[::-1] if axes is None else axes
    order = tuple([canonical_axis(i, n, "axes") for i in given])
    if sorted(order) != list(range(n)):
        raise TypeError(
            "transpose permutation isn't a permutation of operand dimensions, got permutation"
            f" {axes} for operand shape {typeof(a).shape}:"
            f" name each of its {n} axes once"
        )
    return do.transpose(a, permutation=order) if order != tuple(range(n)) else ensure(a)


def permute_dims(a: ArrayLike, /, axes: Sequence[int]) -> Array:
    """An array with its axes in another order, as `transpose`; this is the name in the array API.

    Args:
        a: an array.
        axes: which axis of `a` each axis of the result is.
    Returns:
        An array with `shape[i] == a.shape[axes[i]]`.

    >>> jnp.permute_dims(jnp.ones((2, 3)), (1, 0)).shape
    (3, 2)"""
    return transpose(a, axes)


def matrix_transpose(x: ArrayLike, /) -> Array:
    """Matrices with rows and columns exchanged.

    Args:
        x: an array with at least two axes; the last two are the matrices.
    Returns:
        An array with its last two axes exchanged.

    >>> jnp.matrix_transpose(jnp.ones((5, 2, 3))).shape
    (5, 3, 2)"""
    check_arraylike("matrix_transpose", x)
    if typeof(x).ndim < 2:
        raise ValueError(
            f"x must be at least two-dimensional for matrix_transpose; got ndim={typeof(x).ndim}"
        )
    return swapaxes(x, -1, -2)


def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """An array with two axes exchanged.

    Args:
        a: an array.
        axis1, axis2: the axes.
    Returns:
        An array with the two sizes exchanged.

    >>> jnp.swapaxes(jnp.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)"""
    check_arraylike("swapaxes", a)
    n = typeof(a).ndim
    order = list(range(n))
    i, j = canonical_axis(axis1, n), canonical_axis(axis2, n)
    order[i], order[j] = order[j], order[i]
    return transpose(a, order)


def moveaxis(a: ArrayLike, source: Axes, destination: Axes) -> Array:
    """An array with axes moved to other positions; the others keep their order.

    Args:
        a: an array.
        source: an axis, or a sequence of axes.
        destination: where they stand in the result, as many as `source`.
    Returns:
        The array with its axes in the new order.

    >>> jnp.moveaxis(jnp.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)"""
    check_arraylike("moveaxis", a)
    n = typeof(a).ndim
    sources = source if isinstance(source, (tuple, list, range)) else (source,)
    src = [canonical_axis(i, n, "source") for i in sources]
    if len(set(src)) != len(src):
        raise TypeError(f"duplicate value in 'source': {source}")
    dst = canonical_axes(
        destination if isinstance(destination, (tuple, list, range)) else (destination,),
        n,
        "destination",
    )
    if len(src) != len(dst):
        raise ValueError(f"Inconsistent number of elements: {len(src)} vs {len(dst)}")
    order = [i for i in range(n) if i not in src]
    for d, s in sorted(zip(dst, src)):
        order.insert(d, s)
    return transpose(a, order)


def expand_dims(a: ArrayLike, axis: Axes = 0) -> Array:
    """An array with new axes of size 1.

    Args:
        a: an array.
        axis: where the new axes stand in the result, an int or several.
    Returns:
        An array with the same elements.

    >>> jnp.expand_dims(jnp.arange(3), 0).shape
    (1, 3)"""
    check_arraylike("expand_dims", a)
    a = as_operand(a)
    several = isinstance(axis, (tuple, list, range)) or bool(getattr(axis, "ndim", 0))
    axes = tuple(axis) if several else (axis,)  # type: ignore[arg-type]
    shape = typeof(a).shape
    n = len(shape) + len(axes)
    new = canonical_axes(tuple(axes), n)
    dims = tuple(i for i in range(n) if i not in new)
    sizes = iter(shape)
    full = tuple(1 if i in new else next(sizes) for i in range(n))
    return do.broadcast_in_dim(a, shape=full, broadcast_dimensions=dims)


def squeeze(a: ArrayLike, axis: Axes | None = None) -> Array:
    """An array without axes of size 1.

    Args:
        a: an array.
        axis: the axes to remove, whose sizes must be 1; None removes all of size 1.
    Returns:
        An array with the same elements.

    >>> jnp.squeeze(jnp.ones((1, 3, 1))).shape
    (3,)"""
    check_arraylike("squeeze", a)
    a = as_operand(a)
    shape = typeof(a).shape
    axes = (
        tuple(i for i, d in enumerate(shape) if d == 1)
        if axis is None
        else canonical_axes(axis, len(shape))
    )
    if any(shape[i] != 1 for i in axes):
        raise ValueError(
            "cannot select an axis to squeeze out which has size not equal to one, got"
            f" shape={shape} and dimensions={axes}: only axes of size 1 can go;"
            " x[0] takes the first element of an axis"
        )
    return do.squeeze(a, dimensions=axes) if axes else ensure(a)


@placed
def broadcast_to(array: ArrayLike, shape: ShapeLike, *, out_sharding: OutSharding = None) -> Array:
    """An array repeated to a shape, by the rules of broadcasting.

    Args:
        array: an array; axes of size 1 are repeated, missing axes come first.
        shape: the shape of the result.
        out_sharding: how the result lies on a mesh with explicit axes; None leaves it open.
    Returns:
        An array of that shape.

    >>> jnp.broadcast_to(jnp.arange(2), (2, 2))
    Array([[0, 1],
           [0, 1]], dtype=int32)"""
    check_arraylike("broadcast_to", array)
    array, shape = as_operand(array), canonical_shape(shape)
    own = typeof(array).shape
    if len(own) > len(shape):
        raise ValueError(
            f"Cannot broadcast to shape with fewer dimensions: {own} and requested shape {shape}"
        )
    if any(a not in (1, b) for a, b in zip(own[::-1], shape[::-1])):
        raise ValueError(f"Incompatible shapes for broadcasting: {own} and requested shape {shape}")
    return ensure(_broadcast_to(array, shape))


def broadcast_arrays(*args: ArrayLike) -> list[Array]:
    """Several arrays, all with the shape that they broadcast to.

    Args:
        *args: arrays.
    Returns:
        A list of arrays, each with its own dtype.

    >>> [x.shape for x in jnp.broadcast_arrays(jnp.ones(3), jnp.ones((2, 1)))]
    [(2, 3), (2, 3)]"""
    check_arraylike("broadcast_arrays", *args)
    args = tuple(map(as_operand, args))
    shape = broadcast_shapes("broadcast_arrays", *[typeof(a).shape for a in args])
    return [ensure(_broadcast_to(a, shape)) for a in args]


@overload
def atleast_1d(a: ArrayLike, /) -> Array: ...
@overload
def atleast_1d(*arys: ArrayLike) -> list[Array]: ...
def atleast_1d(*arys: ArrayLike) -> Any:
    """Arrays with at least one axis.

    Args:
        *arys: arrays or numbers.
    Returns:
        The array, or a list if several were given.

    >>> jnp.atleast_1d(3.0)
    Array([3.], dtype=float32, weak_type=True)"""
    return _atleast("atleast_1d", 1, arys)


@overload
def atleast_2d(a: ArrayLike, /) -> Array: ...
@overload
def atleast_2d(*arys: ArrayLike) -> list[Array]: ...
def atleast_2d(*arys: ArrayLike) -> Any:
    """Arrays with at least two axes. A vector becomes a row.

    Args:
        *arys: arrays or numbers.
    Returns:
        The array, or a list if several were given.

    >>> jnp.atleast_2d(jnp.arange(3))
    Array([[0, 1, 2]], dtype=int32)"""
    return _atleast("atleast_2d", 2, arys)


@overload
def atleast_3d(a: ArrayLike, /) -> Array: ...
@overload
def atleast_3d(*arys: ArrayLike) -> list[Array]: ...
def atleast_3d(*arys: ArrayLike) -> Any:
    """Arrays with at least three axes. A vector of n elements gets the shape (1, n, 1), an m by n
    matrix (m, n, 1).

    Args:
        *arys: arrays or numbers.
    Returns:
        The array, or a list if several were given.

    >>> jnp.atleast_3d(jnp.arange(3)).shape
    (1, 3, 1)"""
    return _atleast("atleast_3d", 3, arys)


def _atleast(name: str, n: int, arys: tuple[Any, ...]) -> Any:
    check_arraylike(name, *arys)

    def lift(a: Any) -> Any:
        s = typeof(a).shape
        if len(s) >= n:
            return ensure(a)
        if n == 3:
            return reshape(a, {0: (1, 1, 1), 1: (1, *s, 1), 2: (*s, 1)}[len(s)])
        return reshape(a, (1,) * (n - len(s)) + s)

    out = [lift(as_operand(a)) for a in arys]
    return out[0] if len(out) == 1 else out


@overload
def where(
    condition: ArrayLike,
    /,
    *,
    size: int | None = None,
    fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None,
) -> tuple[Array, ...]: ...
@overload
def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike, /) -> Array: ...
def where(
    condition: ArrayLike,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    /,
    *,
    size: int | None = None,
    fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None,
) -> Any:
    """Elements of one array where a condition holds, of another elsewhere. With the condition
    alone, the places where it holds, as `nonzero`.

    Args:
        condition: bools; numbers count as true unless they are 0.
        x: values for where it holds. Both or none of `x` and `y` are given.
        y: values for elsewhere. All three broadcast.
        size: with the condition alone, how many places to return: more are left out, fewer filled
            up. None returns all.
        fill_value: what fills the places up: a number, or one for each axis; None is 0.
    Returns:
        An array of the common shape and dtype; with the condition alone, a tuple of an array for
        each axis.

    >>> jnp.where(jnp.array([True, False, True]), jnp.arange(3), -1)
    Array([ 0, -1,  2], dtype=int32)"""
    if x is None and y is None:
        check_arraylike("where", condition)
        return ensure(as_operand(condition)).nonzero(size=size, fill_value=fill_value)
    if x is None or y is None:
        raise TypeError(
            "Either both or neither of the x and y arguments should be provided to jnp.where, got"
            f" {x} and {y}."
        )
    if size is not None or fill_value is not None:
        raise ValueError(
            "size and fill_value arguments cannot be used in three-term where function."
        )
    check_arraylike("where", condition, x, y)
    c = as_operand(condition)
    if typeof(c).dtype != np.dtype(bool):
        c = do.ne(c, scalar_of(typeof(c).dtype, 0))
    x, y = promote_dtypes(as_operand(x), as_operand(y))
    shape = broadcast_shapes("where", typeof(c).shape, typeof(x).shape, typeof(y).shape)
    c = c if typeof(c).shape == () else _broadcast_to(c, shape)
    x, y = (_broadcast_to(v, shape) for v in (x, y))
    return do.select_n(c, y, x)


def clip(
    arr: ArrayLike | None = None, /, min: ArrayLike | None = None, max: ArrayLike | None = None
) -> Array:
    """Values brought into an interval.

    Args:
        arr: an array of real numbers.
        min: the lower limit, a number or an array that broadcasts; None is no limit.
        max: the upper limit, which wins where `min` is larger; None is no limit.
    Returns:
        An array of the dtype that the arguments have together.
    Differs from NumPy:
        Complex numbers are refused. There is no `out`.

    >>> jnp.clip(jnp.array([-1, 2, 9]), 0, 5)
    Array([0, 2, 5], dtype=int32)"""
    if arr is None:
        raise ValueError("No input was provided to the clip function.")
    check_arraylike("clip", arr, *(v for v in (min, max) if v is not None))
    if any(is_complex(typeof(v).dtype) for v in (arr, min, max) if v is not None):
        raise ValueError(
            "clip: Complex values have no ordering and cannot be clipped; clip their real and"
            " imaginary parts."
        )
    out = as_operand(arr)
    for bound, primitive in ((min, "max"), (max, "min")):
        if bound is not None:
            a, b = promote_shapes("clip", *promote_dtypes(out, as_operand(bound)))
            out = do[primitive](a, b)
    return ensure(out)

"""Elements chosen by conditions, and the places of elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calque.core import errors
from calque.core.arrays import Array, all_concrete, is_concrete
from calque.core.dims import Dim
from calque.core.dtypes import asked, canonicalize, iinfo, is_integer, is_signed
from calque.core.origins import origin
from calque.core.trace import typeof
from calque.core.types import ArrayLike, DTypeLike, ShapeLike
from calque.numpy import ufuncs
from calque.numpy.calls.marks import python_only
from calque.numpy.conversions import asarray
from calque.numpy.creation import canonical_shape, zeros
from calque.numpy.joining import concatenate
from calque.numpy.promotion import (
    array_of,
    arrays,
    broadcast_shapes,
    broadcast_to,
    canonical_axis,
    check_arraylike,
    common_type,
    convert,
    promote_dtypes,
    refuse_out,
)
from calque.numpy.shaping import broadcast_arrays, ravel, reshape, where
from calque.numpy.sorting import nonzero, take
from calque.ops.sizes import as_number
from calque.transforms.devices.several_processes import values_of
from calque.transforms.functions.branches import switch
from calque.transforms.functions.vmap import vmap
from calque.transforms.jit.decorator import jit

# ---------------------------------------------------------------- places


@python_only
def argwhere(
    a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """The places of the elements that are not 0, one row for each.

    Args:
        a: an array.
        size: how many places to return: more are left out, fewer filled up. None returns all.
        fill_value: what fills the rows up: a number, or one for each axis; None is 0.
    Returns:
        An integer array of shape (places, axes).

    >>> jnp.argwhere(jnp.array([[0, 5], [7, 0]]))
    Array([[0, 1],
           [1, 0]], dtype=int32)"""
    a = array_of("argwhere", a)
    found = nonzero(a.reshape(1) if a.ndim == 0 else a, size=size, fill_value=fill_value)
    if a.ndim == 0:
        return zeros((found[0].shape[0], 0), canonicalize(int))
    return concatenate([p[:, None] for p in found], axis=1)


@python_only
def flatnonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """The places of the elements that are not 0, in the flattened array.

    Args:
        a: an array.
        size: how many places to return: more are left out, fewer filled up. None returns all.
        fill_value: what fills them up; None is 0.
    Returns:
        An integer array of one axis.

    >>> jnp.flatnonzero(jnp.array([[0, 5], [7, 0]]))
    Array([1, 2], dtype=int32)"""
    return nonzero(ravel(array_of("flatnonzero", a)), size=size, fill_value=fill_value)[0]


def unravel_index(indices: ArrayLike, shape: ShapeLike) -> tuple[Array, ...]:
    """The position along each axis of places in the flattened array.

    Args:
        indices: places, integers of any shape; negative ones count from the end.
        shape: the shape of the array.
    Returns:
        A tuple with an array of positions for each axis.
    Differs from NumPy:
        Negative places count from the end; those outside are moved to the nearest end, and no
        error. There is no `order`.

    >>> jnp.unravel_index(jnp.array([1, 5]), (2, 3))
    (Array([0, 1], dtype=int32), Array([1, 2], dtype=int32))"""
    i = array_of("unravel_index", indices)
    if not is_integer(i.dtype):
        raise TypeError(f"unravel_index: indices must be integers, got {i.dtype.name}")
    given = shape if isinstance(shape, (tuple, list)) else (shape,)
    if not all_concrete(given):
        numbers = arrays("unravel_index", *given)
        if not all(is_integer(d.dtype) for d in numbers):
            raise TypeError("unravel_index: sizes of a shape must be integers")
        return _positions(i, [convert(d, _kind_of(i)) for d in numbers], i.dtype)
    sizes = canonical_shape(shape)
    if any(d < 0 for d in sizes):
        raise ValueError(f"unravel_index: sizes of a shape must be non-negative, got {sizes}")
    if is_signed(i.dtype) and not _within(sizes, canonicalize(int)):
        raise ValueError(
            f"unravel_index: {canonicalize(int).name} does not hold the positions of an array of"
            f" shape {sizes}: enable 64-bit types, or make its sizes smaller"
        )
    own = not is_signed(i.dtype) or _within(sizes, i.dtype)
    return _positions(i, sizes, i.dtype if own else canonicalize(int))


def _within(sizes: Sequence[Any], dtype: Any) -> bool:
    """Whether a dtype holds every position along axes of these sizes. Free ones are below 2**31."""
    most = iinfo(dtype).max
    return all(d - 1 <= most if type(d) is int else dtype.itemsize >= 4 for d in sizes)


def _kind_of(i: Any) -> Any:
    """The dtype in which positions are computed: sizes are not of the narrow ones."""
    return np.dtype("int32") if i.dtype.itemsize < 4 else i.dtype


def _positions(i: Any, sizes: Sequence[Any], dtype: Any) -> tuple[Array, ...]:
    """The positions of places. No step overflows, however large the array is; places beyond its
    ends are those of the last, or the first, element.

    A negative place `i` counts from the end: its positions are as far from their ends as those of
    the place `~i` are from their beginnings."""
    kind, weak = _kind_of(i), typeof(i).weak_type
    far, i = iinfo(kind).max, convert(i, kind)
    negative = i < 0 if is_signed(kind) else False
    rest = where(negative, ~i, i)
    found = []
    for d in reversed(sizes):
        if type(d) is int and d > far:  # every place is within the first of these
            found.append((as_number(far, kind), rest))
            rest = rest - rest
            continue
        size = as_number(d, kind) if isinstance(d, (int, Dim)) else d
        n = ufuncs.maximum(size, as_number(1, kind))
        found.append((n - 1, rest % n))
        rest = rest // n
    last = [where(rest > 0, top, at) for top, at in reversed(found)]
    tops = [top for top, _ in reversed(found)]
    counted = [where(negative, n - at, at) for n, at in zip(tops, last)]
    return tuple([convert(x, dtype, weak) for x in counted])


def ravel_multi_index(
    multi_index: Sequence[ArrayLike],
    dims: ShapeLike,
    mode: str = "raise",
    order: str = "C",
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """The places in the flattened array of positions along each axis.

    Args:
        multi_index: an integer array for each axis.
        dims: the shape of the array.
        mode: for positions outside: "raise" is an error and needs known values, "clip" takes the
            nearest end, "wrap" goes round.
        order: "C" counts the last axis fastest, "F" the first one.
        dtype: of the places; None is the default integer dtype.
    Returns:
        An integer array.
    Differs from NumPy:
        Under jit mode "raise" is refused, which is the default.

    >>> jnp.ravel_multi_index((jnp.array([0, 1]), jnp.array([1, 2])), (2, 3))
    Array([1, 5], dtype=int32)"""
    sizes = canonical_shape(dims)
    index = arrays("ravel_multi_index", *multi_index)
    if len(index) != len(sizes):
        raise ValueError(f"len(multi_index)={len(index)} != len(dims)={len(sizes)}")
    if not all(is_integer(i.dtype) for i in index):
        raise TypeError("only int indices permitted")
    kind = asked(dtype) if dtype is not None else common_type(0, *index)[0]
    if math.prod(sizes) - 1 > iinfo(kind).max:
        raise ValueError(
            f"ravel_multi_index: {kind.name} does not hold the places of an array with"
            f" dims={sizes}: give a wider dtype, dtype=jnp.int64 with 64-bit types enabled"
        )
    wide = canonicalize(int) if kind.itemsize < 4 else kind
    index = [i if i.dtype.itemsize > wide.itemsize else convert(i, wide) for i in index]
    if mode == "raise":
        if not all(map(is_concrete, index)):
            raise errors.ConcretizationTypeError(
                "The error occurred because ravel_multi_index was jit-compiled with mode='raise'."
                " Use mode='wrap' or mode='clip' instead."
            )
        if any(((values_of(i) < 0) | (values_of(i) >= d)).any() for i, d in zip(index, sizes)):
            raise ValueError("invalid entry in coordinates array")
    elif mode == "clip":
        index = [ufuncs.minimum(ufuncs.maximum(i, 0), d - 1) for i, d in zip(index, sizes)]
    elif mode == "wrap":
        index = [i % d for i, d in zip(index, sizes)]
    elif mode != "ignore":
        raise ValueError(f"invalid mode={mode!r}. Expected 'raise', 'wrap', 'clip', or 'ignore'")
    if order not in ("C", "F"):
        raise ValueError(f"invalid order={order!r}. Expected 'C' or 'F'")
    pairs = list(zip(index, sizes))
    out: Any = None
    for i, d in pairs if order == "C" else reversed(pairs):
        out = i if out is None else out * d + i
    return convert(asarray(0 if out is None else out), kind)


# ---------------------------------------------------------------- choosing


def compress(
    condition: ArrayLike,
    a: ArrayLike,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = 0,
    out: None = None,
) -> Array:
    """The slices along an axis at which a condition is true.

    Args:
        condition: an array of one axis, no longer than the axis; what is beyond it is left out.
        a: an array.
        axis: the axis; None takes from the flattened array.
        size: how many slices to return: more are left out, fewer filled up. None returns all.
        fill_value: what fills them up.
        out: must be None: arrays are immutable.
    Returns:
        An array that is shorter along the axis.

    >>> jnp.compress(jnp.array([True, False, True]), jnp.arange(3))
    Array([0, 2], dtype=int32)"""
    refuse_out("compress", out)
    condition, a, fill = arrays("compress", condition, a, fill_value)
    if condition.ndim != 1:
        raise ValueError(f"condition must be a 1D array, got shape {condition.shape}")
    condition = condition != 0
    if axis is None:
        a, k = ravel(a), 0
    else:
        k = canonical_axis(axis, a.ndim)
    n = min(condition.shape[0], a.shape[k])
    if is_concrete(condition) and condition.shape[0] > n and values_of(condition)[n:].any():
        raise ValueError("condition contains entries that are out of bounds")
    condition = condition[:n]
    if size is not None and not 0 <= size <= n:
        raise ValueError(
            "size must be positive and not greater than the size of the array axis; got"
            f" size={size} for a.shape[axis]={n}"
        )
    (places,) = nonzero(condition, size=size, fill_value=n)
    if size is None:
        return take(a, places, axis=k, mode="clip")
    if n == 0:
        return broadcast_to(
            convert(fill, a.dtype), tuple(size if i == k else d for i, d in enumerate(a.shape))
        )
    found = take(a, ufuncs.minimum(places, n - 1), axis=k, mode="clip")
    there = reshape(places < n, tuple(-1 if i == k else 1 for i in range(a.ndim)))
    return where(there, found, convert(fill, a.dtype))


def extract(
    condition: ArrayLike,
    arr: ArrayLike,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = 0,
) -> Array:
    """The elements at which a condition is true, in one axis.

    Args:
        condition: an array, which is flattened.
        arr: an array, which is flattened.
        size: how many elements to return: more are left out, fewer filled up. None returns all.
        fill_value: what fills them up.
    Returns:
        An array of one axis.

    >>> jnp.extract(jnp.array([True, False, True]), jnp.arange(3))
    Array([0, 2], dtype=int32)"""
    return compress(ravel(condition), ravel(arr), size=size, fill_value=fill_value)


def choose(
    a: ArrayLike, choices: ArrayLike | Sequence[ArrayLike], out: None = None, mode: str = "raise"
) -> Array:
    """Elements from several arrays, by the number of the array.

    Args:
        a: integers: which array each element comes from.
        choices: a sequence of arrays, which broadcast with `a`; or one array, which stands for its
            slices.
        out: must be None: arrays are immutable.
        mode: for numbers outside: "raise" is an error and needs known values, "clip" takes the
            first or the last array, "wrap" goes round.
    Returns:
        An array of the common shape.
    Differs from NumPy:
        Under jit mode "raise" is refused, which is the default.

    >>> jnp.choose(jnp.array([0, 1]), [jnp.array([1, 2]), jnp.array([3, 4])])
    Array([1, 4], dtype=int32)"""
    refuse_out("choose", out)
    given = (
        list(choices) if isinstance(choices, (list, tuple)) else list(array_of("choose", choices))
    )
    a, *options = arrays("choose", a, *given)
    if not is_integer(a.dtype):
        raise ValueError("`a` array must be integer typed")
    n = len(options)
    if mode == "raise":
        if not is_concrete(a):
            raise errors.ConcretizationTypeError(
                "The error occurred because jnp.choose was jit-compiled with mode='raise'. Use"
                f" mode='wrap' or mode='clip' instead.{origin(a)}"
            )
        if ((values_of(a) < 0) | (values_of(a) >= n)).any():
            raise ValueError("invalid entry in choice array")
    elif mode == "wrap":
        a = a % n
    elif mode == "clip":
        a = ufuncs.minimum(ufuncs.maximum(a, 0), n - 1)
    else:
        raise ValueError(f"mode={mode!r} not understood. Must be 'raise', 'wrap', or 'clip'")
    a, *options = broadcast_arrays(
        a, *[convert(o, typeof(o).dtype) for o in promote_dtypes(*options)]
    )
    stacked = concatenate([asarray(o)[None] for o in options])
    places = tuple(
        np.arange(d, dtype=np.int32).reshape(tuple(-1 if j == i else 1 for j in range(a.ndim)))
        for i, d in enumerate(a.shape)
    )
    return stacked[(a, *places)]


def select(
    condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0
) -> Array:
    """Elements from several arrays, by the first condition that is true.

    Args:
        condlist: bool arrays.
        choicelist: as many arrays; all broadcast.
        default: a number or an array for where no condition is true.
    Returns:
        An array of the common shape and dtype.

    >>> x = jnp.arange(5)
    >>> jnp.select([x < 2, x > 3], [-x, 10 * x], default=0)
    Array([ 0, -1,  0,  0, 40], dtype=int32)"""
    if len(condlist) != len(choicelist):
        raise ValueError(
            f"condlist must have length equal to choicelist ({len(condlist)} vs {len(choicelist)})"
        )
    if len(condlist) == 0:
        raise ValueError("condlist must be non-empty")
    check_arraylike("select", *condlist, *choicelist, default)
    conditions = [array_of("select", c) for c in condlist]
    *choices, out = promote_dtypes(
        *[array_of("select", c) for c in choicelist], array_of("select", default)
    )
    shape = broadcast_shapes("select", *[typeof(x).shape for x in (*conditions, *choices, out)])
    out = broadcast_to(out, shape)
    for c, x in zip(reversed(conditions), reversed(choices)):
        out = where(c, x, out)
    return asarray(out)


@python_only
def piecewise(
    x: ArrayLike,
    condlist: ArrayLike | Sequence[ArrayLike],
    funclist: Sequence[Callable[..., Any] | ArrayLike],
    *args: Any,
    **kw: Any,
) -> Array:
    """A function made of pieces: each element goes to the function of the last condition that is
    true for it.

    Args:
        x: an array.
        condlist: bool arrays, or one.
        funclist: as many functions of arrays, or numbers; one more is for where no condition is
            true, else 0.
        *args: handed to every function after the elements.
        **kw: handed to every function.
    Returns:
        An array of the shape and dtype of `x`.
    Differs from NumPy:
        Every function sees all elements, and must be traceable.

    >>> x = jnp.array([-2.0, 3.0])
    >>> jnp.piecewise(x, [x < 0, x >= 0], [lambda v: -v, lambda v: v * v])
    Array([2., 9.], dtype=float32)"""
    x = array_of("piecewise", x)
    given = condlist if isinstance(condlist, (list, tuple)) else array_of("piecewise", condlist)
    conditions = (
        [asarray(list(given))]
        if isinstance(given, (list, tuple)) and given and np.ndim(given[0]) == 0 and x.ndim
        else list(given)
    )
    flags = [array_of("piecewise", c) != 0 for c in conditions]
    functions = list(funclist)
    if len(functions) == len(flags):
        functions.append(0)
    if len(functions) != len(flags) + 1:
        raise ValueError(
            f"with {len(flags)} condition(s), either {len(flags)} or {len(flags) + 1} functions are"
            f" expected; got {len(functions)}"
        )
    calls = tuple([f if callable(f) else None for f in functions])
    numbers = [0 if callable(f) else f for f in functions]
    named = tuple(kw.items())
    try:
        hash((calls, args, named))
    except TypeError:
        return _joined(calls, args, named, x, flags, numbers)
    made: Array = _joined_by_program(calls, args, named, x, flags, numbers)
    return made


def _joined(
    calls: Sequence[Callable[..., Any] | None],
    given: Sequence[Any],
    named: Sequence[tuple[str, Any]],
    x: Any,
    flags: Sequence[Any],
    numbers: Sequence[Any],
) -> Array:
    """The pieces of functions of these further arguments, or of numbers where there is none, side
    by side."""
    which = broadcast_to(asarray(np.int32(len(flags))), x.shape)
    for i, c in enumerate(flags):
        which = where(c, np.int32(i), which)
    further = given, dict(named)
    branches = [_branch(f, n, further, x.dtype) for f, n in zip(calls, numbers, strict=True)]

    def one(k: Any, v: Any) -> Any:
        return switch(k, branches, v)

    for _ in x.shape:
        one = vmap(one)
    made: Array = one(broadcast_to(which, x.shape), x)
    return made


def _branch(
    f: Callable[..., Any] | None, number: Any, further: tuple[Any, Any], dtype: Any
) -> Callable[[Any], Any]:
    if f is None:
        return lambda v: asarray(convert(asarray(number), dtype))
    args, kw = further
    return lambda v: asarray(convert(asarray(f(v, *args, **kw)), dtype))


# The functions are traced once, and again when what they read has changed.
_joined_by_program = jit(_joined, static_argnums=(0, 1, 2), on_stale="retrace")

"""Products of arrays: dot_general, which all others are written with, and ragged_dot_general."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calque.core.arrays import Array
from calque.core.avals import ShapedArray
from calque.core.dtypes import (
    INT4,
    UINT4,
    finfo,
    iinfo,
    is_complex,
    is_float,
    is_signed,
    promote_in_any_case,
    real_part,
)
from calque.core.primitives import Primitive, UndefinedPrimal, Zero, do
from calque.core.trace import typeof
from calque.core.types import ArrayLike, DTypeLike
from calque.ops.common import add_tangents, zero_like
from calque.ops.common import operand as as_operand
from calque.ops.dimension_numbers import canonical_precision, preferred_dtype
from calque.ops.layout import Shape, canonical_axis, inverse, permuted

DimensionNumbers = tuple[tuple[Shape, Shape], tuple[Shape, Shape]]

_F32, _F64 = np.dtype("float32"), np.dtype("float64")

# ---------------------------------------------------------------- shape


def product_dtype(lhs: ShapedArray, rhs: ShapedArray, preferred: Any) -> tuple[Any, bool]:
    """The dtype and weak type of a product of two arrays: of two dtypes the larger one."""
    if preferred is not None:
        return preferred, False
    if lhs.dtype == rhs.dtype:
        return lhs.dtype, lhs.weak_type and rhs.weak_type
    sizes = _size(lhs.dtype), _size(rhs.dtype)
    if sizes[0] == sizes[1]:
        raise TypeError(
            f"dot_general: neither of the dtypes {lhs.str_short()} and {rhs.str_short()} is the"
            " larger one: name the result's by preferred_element_type"
        )
    return (lhs.dtype if sizes[0] > sizes[1] else rhs.dtype), False


def _size(dtype: Any) -> tuple[bool, int, int, int, bool]:
    """What decides which of two dtypes is larger: complex numbers, then the largest exponent, the
    digits and, of integers, the bits and whether they have a sign."""
    own = real_part(dtype)
    digits = (int(finfo(own).maxexp), int(finfo(own).nmant)) if is_float(own) else (-1, -1)
    width = 1 if own == np.dtype(bool) else (finfo if is_float(own) else iinfo)(own).bits
    return is_complex(dtype), *digits, int(width), is_float(own) or is_signed(own)


def _dot_shape(
    lhs: ShapedArray,
    rhs: ShapedArray,
    *,
    dimension_numbers: DimensionNumbers,
    precision: Any,
    preferred_element_type: Any,
    out_sharding: Any,
) -> ShapedArray:
    (lc, rc), (lb, rb) = dimension_numbers
    ls, rs = lhs.shape, rhs.shape
    if len(lc) != len(rc) or len(lb) != len(rb):
        raise TypeError(
            f"dot_general: dimensions must pair up, got dimension_numbers {dimension_numbers}"
        )
    try:
        for i, j in zip(lc + lb, rc + rb):
            if ls[i] != rs[j] or i < 0 or j < 0:
                raise IndexError
    except IndexError:
        raise _mismatch(lhs, rhs, dimension_numbers) from None
    if len(set(lc + lb)) != len(lc + lb) or len(set(rc + rb)) != len(rc + rb):
        raise TypeError(
            f"dot_general: a dimension is used twice in dimension_numbers {dimension_numbers}"
        )
    shape = [ls[i] for i in lb]
    shape += [n for i, n in enumerate(ls) if i not in lc and i not in lb]
    shape += [n for i, n in enumerate(rs) if i not in rc and i not in rb]
    return ShapedArray(tuple(shape), *product_dtype(lhs, rhs, preferred_element_type))


def _mismatch(lhs: ShapedArray, rhs: ShapedArray, numbers: DimensionNumbers) -> TypeError:
    (lc, rc), (lb, rb) = numbers
    for i, j, kind in [(i, j, "contracting") for i, j in zip(lc, rc)] + [
        (i, j, "batch") for i, j in zip(lb, rb)
    ]:
        if not 0 <= i < lhs.ndim or not 0 <= j < rhs.ndim:
            return TypeError(
                f"dot_general: {kind} dimensions {i} of lhs {lhs.str_short()} and {j} of rhs"
                f" {rhs.str_short()} must be nonnegative and less than the number of axes of the"
                " array"
            )
        if lhs.shape[i] != rhs.shape[j]:
            break
    return TypeError(
        f"dot_general requires {kind} dimensions to have the same shape, got {lhs.shape[i]}"
        f" (dimension {i} of lhs {lhs.str_short()}) and {rhs.shape[j]} (dimension {j} of rhs"
        f" {rhs.str_short()})."
    )


# ---------------------------------------------------------------- meaning


def compute_dtype(lhs: Any, rhs: Any, out: Any) -> Any:
    """The dtype that products of these dtypes are summed in: that of the result or wider, float32
    for the narrow floats."""
    return promote_in_any_case(tuple([(_widened(d), False) for d in (lhs, rhs, out)]))[0]


def _widened(dtype: Any) -> Any:
    if is_float(dtype):
        return dtype if dtype in (_F32, _F64) else _F32
    return np.dtype("int32") if dtype in INT4 or dtype in UINT4 else dtype


def free_dims(ndim: int, *used: Shape) -> Shape:
    """The dimensions that are neither contracted nor batch dimensions."""
    return tuple([d for d in range(ndim) if not any(d in u for u in used)])


def _dot_meaning(
    lhs: np.ndarray,
    rhs: np.ndarray,
    *,
    dimension_numbers: DimensionNumbers,
    precision: Any,
    preferred_element_type: Any,
    out_sharding: Any,
) -> np.ndarray:
    """As one product of matrices [batch, lhs free, contracted] and [batch, contracted, rhs
    free]."""
    (lc, rc), (lb, rb) = dimension_numbers
    lf, rf = free_dims(lhs.ndim, lc, lb), free_dims(rhs.ndim, rc, rb)
    out, _ = product_dtype(
        ShapedArray((), lhs.dtype), ShapedArray((), rhs.dtype), preferred_element_type
    )
    dtype = compute_dtype(lhs.dtype, rhs.dtype, out)
    batch, left, right = (
        [lhs.shape[i] for i in lb],
        [lhs.shape[i] for i in lf],
        [rhs.shape[i] for i in rf],
    )
    inner = int(np.prod([lhs.shape[i] for i in lc], dtype=np.int64))
    a = np.transpose(lhs, lb + lf + lc).reshape(*batch, int(np.prod(left, dtype=np.int64)), inner)
    b = np.transpose(rhs, rb + rc + rf).reshape(*batch, inner, int(np.prod(right, dtype=np.int64)))
    product = np.matmul(a.astype(dtype, copy=False), b.astype(dtype, copy=False))
    return product.reshape((*batch, *left, *right)).astype(out, copy=False)


# ---------------------------------------------------------------- derivatives


def _dot_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    (x, y), (dx, dy) = primals, tangents
    out = do.dot_general(x, y, **params)
    a = dx if type(dx) is Zero else do.dot_general(dx, y, **params)
    b = dy if type(dy) is Zero else do.dot_general(x, dy, **params)
    total = add_tangents(a, b)
    return out, zero_like(out) if type(total) is Zero else total


def _dot_transpose(
    ct: Any, x: Any, y: Any, *, dimension_numbers: DimensionNumbers, **params: Any
) -> list[Any]:
    if type(x) is UndefinedPrimal:
        return [_operand_ct(ct, x.aval, y, dimension_numbers, params, left=True), None]
    (lc, rc), (lb, rb) = dimension_numbers
    return [None, _operand_ct(ct, y.aval, x, ((rc, lc), (rb, lb)), params, left=False)]


def _operand_ct(
    ct: Any,
    aval: ShapedArray,
    other: Any,
    numbers: DimensionNumbers,
    params: dict[str, Any],
    left: bool,
) -> Any:
    """The cotangent of one operand: the result's, contracted with the other operand over that one's
    free dimensions. `numbers` names this operand's dimensions first; `left` says whether it is the
    left one."""
    if type(ct) is Zero:
        return Zero(aval)
    (mine, theirs), (my_batch, their_batch) = numbers
    my_free = free_dims(aval.ndim, mine, my_batch)
    their_free = free_dims(typeof(other).ndim, theirs, their_batch)
    n_batch = len(my_batch)
    first = n_batch + (
        len(my_free) if left else 0
    )  # where the other operand's free dimensions stand in the result
    ct_free = tuple(range(first, first + len(their_free)))
    out = do.dot_general(
        ct,
        other,
        dimension_numbers=((ct_free, their_free), (tuple(range(n_batch)), their_batch)),
        **params,
    )
    # the result has dimensions (batch, my free, contracted in the order in which the other operand
    # has them)
    order = sorted(range(len(theirs)), key=theirs.__getitem__)
    out = permuted(out, inverse((*my_batch, *my_free, *[mine[i] for i in order])))
    if typeof(out).dtype != aval.dtype:
        out = do.convert_element_type(out, new_dtype=aval.dtype)
    return out


# ---------------------------------------------------------------- batching


def _dot_batch(
    args: Sequence[Any],
    dims: Sequence[int | None],
    *,
    dimension_numbers: DimensionNumbers,
    **params: Any,
) -> tuple[Any, int]:
    """Two batched operands get one more batch dimension; the dimension of a single one becomes
    free."""
    (x, y), (bx, by) = args, dims
    (lc, rc), (lb, rb) = dimension_numbers
    lc, lb = beside(lc, bx), beside(lb, bx)
    rc, rb = beside(rc, by), beside(rb, by)
    if bx is not None and by is not None:
        return (
            do.dot_general(x, y, dimension_numbers=((lc, rc), ((bx, *lb), (by, *rb))), **params),
            0,
        )
    out = do.dot_general(x, y, dimension_numbers=((lc, rc), (lb, rb)), **params)
    left, right = free_dims(typeof(x).ndim, lc, lb), free_dims(typeof(y).ndim, rc, rb)
    return out, len(lb) + free_place(bx, by, left, right)


def free_place(bx: int | None, by: int | None, left: Shape, right: Shape) -> int:
    """Where the batch dimension of the one operand that has it stands among the free dimensions of
    the result: those of lhs, then those of rhs."""
    if bx is not None:
        return left.index(bx)
    assert by is not None
    return len(left) + right.index(by)


def beside(dims: Shape, b: int | None) -> Shape:
    """Dimensions of an array that gets a batch dimension `b`, where they are then."""
    return dims if b is None else tuple([d + (d >= b) for d in dims])


def _dot_hidden(params: dict[str, Any]) -> list[str]:
    return [k for k in ("precision", "preferred_element_type", "out_sharding") if params[k] is None]


dot_general_p = Primitive(
    "dot_general",
    meaning=_dot_meaning,
    shape=_dot_shape,
    jvp=_dot_jvp,
    transpose=_dot_transpose,
    batch=_dot_batch,
    hidden=_dot_hidden,
    defaults={"precision": None, "preferred_element_type": None, "out_sharding": None},
)


# ---------------------------------------------------------------- lax functions


def canonical_numbers(numbers: Any, lhs: ShapedArray, rhs: ShapedArray) -> DimensionNumbers:
    """Dimension numbers as tuples of plain non-negative ints."""
    (lc, rc), (lb, rb) = numbers

    def left(ds: Sequence[int]) -> tuple[int, ...]:
        return tuple([canonical_axis(d, lhs.ndim, "dot_general: lhs dimension") for d in ds])

    def right(ds: Sequence[int]) -> tuple[int, ...]:
        return tuple([canonical_axis(d, rhs.ndim, "dot_general: rhs dimension") for d in ds])

    return (left(lc), right(rc)), (left(lb), right(rb))


def dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: Any,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Multiplies two arrays and adds over pairs of dimensions, for each index of other pairs.

    Args:
        lhs: The left array.
        rhs: The right array.
        dimension_numbers: ((contracting of lhs, contracting of rhs), (batch of lhs, batch of rhs)):
            the dimensions that are summed over, and those that are taken index by index.
        precision: How exact the product is: None, a `Precision`, its name, or a
            `DotAlgorithmPreset`. Products have the precision of their dtype with each.
        preferred_element_type: The dtype of the result; None takes that of the operands.
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array: the batch dimensions, then the others of `lhs`, then those of `rhs`.

    >>> lax.dot_general(jnp.ones((2, 3)), jnp.ones((4, 3)), (((1,), (1,)), ((), ()))).shape
    (2, 4)"""
    lhs, rhs = as_operand(lhs), as_operand(rhs)
    return do.dot_general(
        lhs,
        rhs,
        dimension_numbers=canonical_numbers(dimension_numbers, typeof(lhs), typeof(rhs)),
        precision=canonical_precision(precision),
        preferred_element_type=preferred_dtype(preferred_element_type),
        out_sharding=out_sharding,
    )


def dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    dimension_numbers: Any = None,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """Multiplies vectors and matrices.

    Args:
        lhs: A vector or a matrix.
        rhs: A vector or a matrix; its first dimension has the size of the last one of `lhs`.
        dimension_numbers: As of `dot_general`, for arrays of any rank; None sums over these two.
        precision: How exact the product is: None, a `Precision`, its name, or a
            `DotAlgorithmPreset`. Products have the precision of their dtype with each.
        preferred_element_type: The dtype of the result; None takes that of the operands.
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array.

    >>> lax.dot(jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0]))
    Array(11., dtype=float32)"""
    if dimension_numbers is None:
        a, b = typeof(lhs), typeof(rhs)
        if not (1 <= a.ndim <= 2 and 1 <= b.ndim <= 2 and a.shape[-1] == b.shape[0]):
            raise ValueError(
                f"Incompatible shapes for dot: got {a.shape} and {b.shape}; give dimension_numbers"
                " for other products."
            )
        dimension_numbers = (((a.ndim - 1,), (0,)), ((), ()))
    return dot_general(
        lhs, rhs, dimension_numbers, precision, preferred_element_type, out_sharding=out_sharding
    )


def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: Any = None) -> Array:
    """Multiplies matrices for each index of the leading dimensions.

    Args:
        lhs: An array of shape (*batch, m, k).
        rhs: An array of shape (*batch, k, n).
        precision: How exact the product is: None, a `Precision`, its name, or a
            `DotAlgorithmPreset`. Products have the precision of their dtype with each.

    Returns:
        An array of shape (*batch, m, n).

    >>> lax.batch_matmul(jnp.ones((5, 2, 3)), jnp.ones((5, 3, 4))).shape
    (5, 2, 4)"""
    a, b = typeof(lhs), typeof(rhs)
    if a.ndim < 2 or a.ndim != b.ndim:
        raise ValueError(
            f"Arguments to batch_matmul must be at least 2D and of the same rank, got {a.ndim} and"
            f" {b.ndim}"
        )
    batch = tuple(range(a.ndim - 2))
    return dot_general(lhs, rhs, (((a.ndim - 1,), (a.ndim - 2,)), (batch, batch)), precision)

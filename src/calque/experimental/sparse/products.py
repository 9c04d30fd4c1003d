"""Products of BCOO arrays with dense and sparse ones."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from calque import lax
from calque import numpy as jnp
from calque.core.arrays import Array
from calque.core.types import ArrayLike, DTypeLike
from calque.experimental.sparse.base import (
    JAXSparse,
    chosen,
    columns,
    is_sparse,
    per_batch,
    scatter_added,
)
from calque.experimental.sparse.bcoo import BCOO, checked, in_bounds
from calque.experimental.sparse.conversions import extract
from calque.experimental.sparse.layouts import (
    bcoo_sum_duplicates,
    bcoo_transpose,
    bcoo_update_layout,
)
from calque.numpy.promotion import array_of, promote_dtypes
from calque.numpy.signatures import OutSharding
from calque.transforms.functions.shapes import ShapeDtypeStruct, eval_shape
from calque.transforms.functions.vmap import vmap

Dims = tuple[tuple[tuple[int, ...], tuple[int, ...]], tuple[tuple[int, ...], tuple[int, ...]]]


def _tuples(dimension_numbers: Any) -> Dims:
    def one(d: Any) -> Any:
        return (int(d),) if np.ndim(d) == 0 else tuple(int(i) for i in d)

    (lc, rc), (lb, rb) = dimension_numbers
    return (one(lc), one(rc)), (one(lb), one(rb))


def _rest(n: int, *used: Sequence[int]) -> list[int]:
    return [i for i in range(n) if not any(i in u for u in used)]


def _result(lhs: Any, rhs: Any, dims: Dims, preferred: Any) -> Any:
    """The shape and dtype of the dense product, which also says what does not fit."""
    dtype = jnp.promote_types(lhs.dtype, rhs.dtype)
    a, b = ShapeDtypeStruct(lhs.shape, dtype), ShapeDtypeStruct(rhs.shape, dtype)
    return eval_shape(
        lambda x, y: lax.dot_general(x, y, dims, preferred_element_type=preferred), a, b
    )


def bcoo_dot_general(
    lhs: JAXSparse | ArrayLike,
    rhs: JAXSparse | ArrayLike,
    *,
    dimension_numbers: Any,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: OutSharding = None,
) -> Any:
    """Multiplies arrays of which one or both are BCOO arrays, as `lax.dot_general`.

    Args:
        lhs: A sparse or dense array.
        rhs: A sparse or dense array.
        dimension_numbers: As of `lax.dot_general`.
        precision: It changes nothing: sums are exact products in the dtype of the result.
        preferred_element_type: The dtype of the result; None takes that of the operands.
        out_sharding: Must be None.

    Returns:
        A dense array if one operand is dense, else a BCOO array.

    >>> dims = (((1,), (0,)), ((), ()))
    >>> sparse.bcoo_dot_general(sparse.eye(3), jnp.arange(3.0), dimension_numbers=dims)
    Array([0., 1., 2.], dtype=float32)"""
    if out_sharding is not None:
        raise NotImplementedError(
            "bcoo_dot_general: out_sharding is not supported for sparse operands"
        )
    dims = _tuples(dimension_numbers)
    if isinstance(lhs, BCOO) and isinstance(rhs, BCOO):
        return _sparse_sparse(lhs, rhs, dims, preferred_element_type)
    if isinstance(lhs, BCOO):
        return _sparse_dense(lhs, array_of("bcoo_dot_general", rhs), dims, preferred_element_type)
    if not isinstance(rhs, BCOO):
        x, y = array_of("bcoo_dot_general", lhs), array_of("bcoo_dot_general", rhs)
        return lax.dot_general(
            x, y, dims, precision=precision, preferred_element_type=preferred_element_type
        )
    lhs = array_of("bcoo_dot_general", lhs)
    (lc, rc), (lb, rb) = dims
    out = _sparse_dense(rhs, lhs, ((rc, lc), (rb, lb)), preferred_element_type)
    first, mine = len(lb), rhs.ndim - len(rc)
    return jnp.transpose(out, (*range(first), *range(mine, out.ndim), *range(first, mine)))


def _sparse_dense(lhs: BCOO, rhs: Any, dims: Dims, preferred: Any) -> Any:
    """Each stored element times what of the dense operand its contracted indices point at, added
    where its others point."""
    (lc, rc), (lb, rb) = dims
    result = _result(lhs, rhs, dims, preferred)
    if any(d >= lhs.n_batch for d in lb):
        raise NotImplementedError(
            "bcoo_dot_general: batch dimensions must be batch dimensions of the sparse array, got"
            f" {lb} and n_batch={lhs.n_batch}"
        )
    if any(d >= lhs.n_batch + lhs.n_sparse for d in lc):
        raise NotImplementedError(
            "bcoo_dot_general: contracting over dense dimensions; see update_layout"
        )
    free = _rest(lhs.n_batch, lb, lc)
    gone = [d for d in lc if d < lhs.n_batch]
    order = (*lb, *free, *gone, *range(lhs.n_batch, lhs.ndim))
    mat = bcoo_update_layout(bcoo_transpose(lhs, permutation=order), n_batch=len(lb) + len(free))
    pairs = sorted(zip(lc, rc), key=lambda p: order.index(p[0]))
    at = [order.index(d) - mat.n_batch for d, _ in pairs]
    out_at = _rest(mat.n_sparse, at)
    target = tuple(mat.sparse_shape[i] for i in out_at)
    rhs = jnp.transpose(rhs, (*rb, *(r for _, r in pairs), *_rest(rhs.ndim, rb, rc)))

    def one(d: Any, i: Any, r: Any) -> Any:
        where = columns(i)
        taken = r.at[tuple(where[k] for k in at)].get(mode="fill", fill_value=0) if at else r[None]
        spread = jnp.reshape(taken, taken.shape[:1] + (1,) * (d.ndim - 1) + taken.shape[1:])
        product = jnp.reshape(d, d.shape + (1,) * (taken.ndim - 1)).astype(
            result.dtype
        ) * spread.astype(result.dtype)
        if not out_at:
            return jnp.sum(product, axis=0, dtype=result.dtype)
        return scatter_added(
            (*target, *product.shape[1:]), tuple(where[k] for k in out_at), product
        )

    f: Any = one
    for _ in free:
        f = vmap(f, (0, 0, None))
    for _ in lb:
        f = vmap(f)
    data = jnp.broadcast_to(mat.data, mat.batch_shape + mat.data.shape[mat.n_batch :])
    indices = jnp.broadcast_to(mat.indices, mat.batch_shape + mat.indices.shape[mat.n_batch :])
    return f(data, indices, rhs)


def _meeting(
    left: Any,
    left_shape: tuple[int, ...],
    right: Any,
    right_shape: tuple[int, ...],
    pairs: Iterable[tuple[int, int]],
) -> Any:
    """Of every pair of stored elements, whether both are there and their indices agree in these
    pairs of dimensions."""
    same = in_bounds(left, left_shape)[:, None] & in_bounds(right, right_shape)[None, :]
    for a, b in pairs:
        same = same & (left[:, None, a] == right[None, :, b])
    return same


def _sparse_sparse(lhs: BCOO, rhs: BCOO, dims: Dims, preferred: Any) -> BCOO:
    """Every pair of stored elements whose contracted indices agree."""
    (lc, rc), (lb, rb) = dims
    result = _result(lhs, rhs, dims, preferred)
    if lhs.n_dense or rhs.n_dense:
        raise NotImplementedError(
            "bcoo_dot_general: dense dimensions in the product of two sparse arrays"
        )
    if sorted(lb) != list(range(lhs.n_batch)) or sorted(rb) != list(range(rhs.n_batch)):
        lhs, rhs = (
            bcoo_update_layout(m, n_batch=0) if not b else m for m, b in ((lhs, lb), (rhs, rb))
        )
    if sorted(lb) != list(range(lhs.n_batch)) or sorted(rb) != list(range(rhs.n_batch)):
        raise NotImplementedError(
            "bcoo_dot_general: batch dimensions of two sparse arrays must be those of the product"
        )
    lhs = bcoo_transpose(lhs, permutation=(*lb, *range(len(lb), lhs.ndim)))
    rhs = bcoo_transpose(rhs, permutation=(*rb, *range(len(rb), rhs.ndim)))
    n = len(lb)
    left, right = [d - n for d in lc], [d - n for d in rc]
    keep = [_rest(m.n_sparse, c) for m, c in ((lhs, left), (rhs, right))]
    shape = result.shape[n:]
    most = int(min(lhs.nse * rhs.nse, np.prod(shape)))

    def one(ld: Any, li: Any, rd: Any, ri: Any) -> tuple[Any, Any]:
        same = _meeting(li, lhs.sparse_shape, ri, rhs.sparse_shape, zip(left, right))
        product = jnp.where(
            same, ld.astype(result.dtype)[:, None] * rd.astype(result.dtype)[None, :], 0
        )
        pair = same.shape
        rows = [
            jnp.broadcast_to(x, (*pair, x.shape[-1]))
            for x in (chosen(li, keep[0])[:, None], chosen(ri, keep[1])[None])
        ]
        outside = jnp.array(shape, li.dtype)
        places = jnp.where(same[..., None], jnp.concatenate(rows, axis=-1), outside)
        return jnp.reshape(product, (-1,)), jnp.reshape(places, (product.size, len(shape)))

    parts = per_batch(one, n, lhs.data, lhs.indices, rhs.data, rhs.indices)
    return bcoo_sum_duplicates(BCOO(parts, shape=result.shape), nse=most)


def bcoo_dot_general_sampled(
    A: ArrayLike, B: ArrayLike, indices: ArrayLike, *, dimension_numbers: Any
) -> Array:
    """Gives the elements of a dense product at given places only.

    Args:
        A: The left array.
        B: The right array.
        indices: The places, of shape (number of them, 2).
        dimension_numbers: As of `lax.dot_general`.

    Returns:
        A vector of elements.

    >>> a, b, dims = jnp.ones((2, 3)), jnp.ones((3, 2)), (((1,), (0,)), ((), ()))
    >>> sparse.bcoo_dot_general_sampled(a, b, jnp.array([[0, 1]]), dimension_numbers=dims)
    Array([3.], dtype=float32)"""
    A, B = promote_dtypes(
        array_of("bcoo_dot_general_sampled", A), array_of("bcoo_dot_general_sampled", B)
    )
    indices = array_of("bcoo_dot_general_sampled", indices)
    dims = _tuples(dimension_numbers)
    (lc, rc), (lb, rb) = dims
    if (
        lb
        or rb
        or indices.ndim != 2
        or A.ndim != len(lc) + 1
        or B.ndim != len(rc) + 1
        or indices.shape[-1] != 2
    ):
        return extract(indices, lax.dot_general(A, B, dims, precision=lax.Precision.HIGHEST))
    _result(A, B, dims, None)
    rows, others = (
        jnp.transpose(m, (*_rest(m.ndim, c), *c)).at[indices[:, k]].get(mode="fill", fill_value=0)
        for k, (m, c) in enumerate(((A, lc), (B, rc)))
    )
    return jnp.sum(rows * others, axis=tuple(range(1, rows.ndim)))


# ---------------------------------------------------------------- element by element


def bcoo_multiply_dense(sp_mat: BCOO, v: ArrayLike) -> Array:
    """Multiplies the values of a BCOO array by those of a dense one.

    Args:
        sp_mat: The BCOO array.
        v: The dense array; it broadcasts to the shape of the other.

    Returns:
        The new values.

    >>> sparse.bcoo_multiply_dense(sparse.eye(2), jnp.array([3.0, 4.0]))
    Array([3., 4.], dtype=float32)"""
    mat = checked("bcoo_multiply_dense", sp_mat)
    return _with_dense("bcoo_multiply_dense", mat, v, jnp.multiply, 0)


def bcoo_divide_dense(mat: BCOO, v: Array) -> Array:
    """The values of a sparse array divided by those of a dense one: the new values."""
    return _with_dense("bcoo_divide_dense", mat, v, jnp.true_divide, 1)


def _with_dense(name: str, mat: BCOO, v: Any, f: Any, fill: int) -> Any:
    v = array_of(name, v)
    if v.ndim == 0:
        return f(mat.data, v)
    if jnp.broadcast_shapes(v.shape, mat.shape) != mat.shape:
        raise NotImplementedError(
            f"{name}: the dense array of shape {v.shape} must broadcast to the shape {mat.shape} of"
            " the sparse one"
        )
    v = jnp.reshape(v, (1,) * (mat.ndim - v.ndim) + v.shape)
    n, s = mat.n_batch, mat.n_sparse

    def one(d: Any, i: Any, w: Any) -> Any:
        if not s:
            return f(d, w[None])
        at = tuple(
            c if w.shape[k] > 1 else jnp.where(c < size, 0, 1)
            for k, (c, size) in enumerate(zip(columns(i), mat.sparse_shape))
        )
        return f(d, w.at[at].get(mode="fill", fill_value=fill))

    return per_batch(one, n, mat.data, mat.indices, v)


def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """Multiplies two BCOO arrays, element by element. Dimensions of size 1 are repeated.

    Args:
        lhs: The one array.
        rhs: The other array.

    Returns:
        A BCOO array.

    >>> sparse.bcoo_multiply_sparse(sparse.eye(2), sparse.eye(2)).todense().tolist()
    [[1.0, 0.0], [0.0, 1.0]]"""
    lhs, rhs = checked("bcoo_multiply_sparse", lhs), checked("bcoo_multiply_sparse", rhs)
    if lhs.ndim != rhs.ndim:
        raise TypeError(
            f"bcoo_multiply_sparse: arrays must have the same number of dimensions, got {lhs.shape}"
            f" and {rhs.shape}"
        )
    if lhs.n_dense != rhs.n_dense:
        raise NotImplementedError(
            "bcoo_multiply_sparse: arrays with differing numbers of dense dimensions"
        )
    shape = jnp.broadcast_shapes(lhs.shape, rhs.shape)
    n = min(lhs.n_batch, rhs.n_batch)
    lhs, rhs = bcoo_update_layout(lhs, n_batch=n), bcoo_update_layout(rhs, n_batch=n)
    target = shape[n : n + lhs.n_sparse]
    equal = [k for k, (a, b) in enumerate(zip(lhs.sparse_shape, rhs.sparse_shape)) if a == b]

    def one(ld: Any, li: Any, rd: Any, ri: Any) -> tuple[Any, Any]:
        same = _meeting(li, lhs.sparse_shape, ri, rhs.sparse_shape, zip(equal, equal))
        place = jnp.maximum(li[:, None], ri[None, :])
        product = ld[:, None] * rd[None, :]
        kept = jnp.reshape(same, same.shape + (1,) * (product.ndim - 2))
        place = jnp.where(same[..., None], place, jnp.array(target, place.dtype))
        product = jnp.where(kept, product, jnp.zeros((), product.dtype))
        return jnp.reshape(product, (-1, *product.shape[2:])), jnp.reshape(
            place, (same.size, place.shape[-1])
        )

    parts = per_batch(one, n, lhs.data, lhs.indices, rhs.data, rhs.indices)
    fits = lhs.sparse_shape == rhs.sparse_shape
    most = min(lhs.nse, rhs.nse) if fits else min(lhs.nse * rhs.nse, int(np.prod(target)))
    return bcoo_sum_duplicates(BCOO(parts, shape=shape), nse=most)


# ---------------------------------------------------------------- convolution


def _tuple(v: Sequence[int] | None) -> tuple[int, ...] | None:
    return None if v is None else tuple(v)


def bcoo_conv_general_dilated(
    lhs: BCOO,
    rhs: BCOO,
    *,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: OutSharding = None,
) -> BCOO:
    """Convolves sparse arrays of shape (1, 1, n), as `lax.conv_general_dilated`.

    Args:
        lhs: The operand.
        rhs: The kernel.
        window_strides: Ones: other strides are refused.
        padding: "SAME", "VALID", or (before, after) in a list.
        lhs_dilation: None or ones.
        rhs_dilation: None or ones.
        dimension_numbers: As of `lax.conv_general_dilated`; the plain layout.
        feature_group_count: 1.
        batch_group_count: 1.
        precision: It changes nothing: sums are exact products in the dtype of the result.
        preferred_element_type: The dtype of the result; None takes that of the operands.
        out_sharding: Must be None.

    Returns:
        A BCOO array.

    >>> a = sparse.BCOO.fromdense(jnp.array([[[0.0, 1.0, 0.0]]]))
    >>> b = sparse.bcoo_conv_general_dilated(a, a, window_strides=(1,), padding=[(1, 1)])
    >>> b.todense().tolist()
    [[[0.0, 1.0, 0.0]]]"""
    options: list[tuple[str, Any, tuple[Any, ...]]] = [
        ("out_sharding", out_sharding, (None,)),
        ("feature_group_count", feature_group_count, (1,)),
        ("batch_group_count", batch_group_count, (1,)),
        ("window_strides", _tuple(window_strides), (None, (1,))),
        ("lhs_dilation", _tuple(lhs_dilation), (None, (1,))),
        ("rhs_dilation", _tuple(rhs_dilation), (None, (1,))),
    ]
    for name, value, allowed in options:
        if value not in allowed:
            raise NotImplementedError(
                f"bcoo_conv_general_dilated: {name}={value} is not supported for sparse arrays"
            )
    if lhs.ndim != 3 or rhs.ndim != 3 or lhs.shape[:2] != (1, 1) or rhs.shape[:2] != (1, 1):
        raise NotImplementedError(
            f"bcoo_conv_general_dilated: shapes must be (1, 1, n), got {lhs.shape} and {rhs.shape}"
        )
    a, b = ShapeDtypeStruct(lhs.shape, lhs.dtype), ShapeDtypeStruct(rhs.shape, rhs.dtype)
    whole = eval_shape(
        lambda x, y: lax.conv_general_dilated(
            x, y, (1,), padding, dimension_numbers=dimension_numbers, precision=precision,
            preferred_element_type=preferred_element_type,
        ), a, b,
    )  # fmt: skip
    size = whole.shape[-1]
    (ld, li), (rd, ri) = _line(lhs), _line(rhs)
    before = _padding_before(padding, lhs.shape[-1], rhs.shape[-1], size)
    place = (li[:, None] + before - ri[None, :]).ravel()
    product = (ld[:, None] * rd[None, :]).ravel().astype(whole.dtype)
    inside = (place >= 0) & (place < size)
    data, place = jnp.where(inside, product, 0), jnp.where(inside, place, size)
    line = bcoo_sum_duplicates(
        BCOO((data, place[:, None]), shape=(size,)), nse=min(place.shape[0], size)
    )
    return BCOO((line.data[None, None], line.indices[None, None]), shape=whole.shape)


def _padding_before(padding: Any, n: int, k: int, size: int) -> int:
    if isinstance(padding, str):
        return (size + k - 1 - n) // 2
    return int(padding[0][0])


def _line(mat: Any) -> tuple[Any, Any]:
    """The values and places along the last dimension of an array of shape (1, 1, n)."""
    if not is_sparse(mat):
        values = jnp.reshape(array_of("bcoo_conv_general_dilated", mat), (-1,))
        return values, jnp.arange(values.shape[0], dtype=np.int32)
    whole = bcoo_update_layout(checked("bcoo_conv_general_dilated", mat), n_batch=0, n_dense=0)
    there = in_bounds(whole.indices, whole.sparse_shape)
    return jnp.where(there, whole.data, 0), whole.indices[:, 2]

"""Reductions over windows: reduce_window_sum, _max, _min, and reduce_window with any program of
scalars."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from calque.core.avals import ShapedArray
from calque.core.dims import surely_equal
from calque.core.dtypes import bool_, is_complex, is_float
from calque.core.jaxprs import Jaxpr
from calque.core.primitives import REGISTRY, NotApplicable, Primitive, UndefinedPrimal, Zero, do
from calque.core.pytrees import flatten, unflatten
from calque.core.trace import trace_to_jaxpr, typeof
from calque.core.trace_state import Tracer
from calque.ops import common
from calque.ops.common import batch_size, front, instantiate, zero_like
from calque.ops.common import operand as as_operand
from calque.ops.joining import pad_p
from calque.ops.layout import Shape, linear_jvp
from calque.ops.padding import (
    Pads,
    canonical_pads,
    dilated,
    padtype_to_pads,
    per_dimension,
    window_count,
)
from calque.ops.reductions import IDENTITY, is_identity
from calque.ops.scalar_programs import is_elementwise, jvp_scalars, run_scalars

if TYPE_CHECKING:
    from calque.core.generics import Asked

Params = dict[str, Any]
WINDOW = ("window_dimensions", "window_strides", "padding", "base_dilation", "window_dilation")

# ---------------------------------------------------------------- shape


def window_shape(name: str, shape: Shape, p: Params) -> Shape:
    """The shape of the array of windows."""
    for key in WINDOW:
        if len(p[key]) != len(shape):
            raise ValueError(
                f"{name}: {key} {p[key]} must have one entry for each dimension of operand shape"
                f" {shape}"
            )
    for key in ("window_dimensions", "window_strides", "base_dilation", "window_dilation"):
        if any(v < 1 for v in p[key]):
            raise ValueError(f"{name}: {key} must be positive, got {p[key]}")
    return tuple(
        [
            window_count(dilated(n, bd) + low + high, dilated(w, wd), s)
            for n, w, s, (low, high), bd, wd in zip(shape, *[p[k] for k in WINDOW])
        ]
    )


def _monoid_shape(name: str) -> Callable[..., ShapedArray]:
    def shape(x: ShapedArray, **p: Any) -> ShapedArray:
        if x.dtype == bool_ and name == "reduce_window_sum":
            raise TypeError(f"operand to {name} must have a number dtype, got {x.str_short()}")
        return ShapedArray(window_shape(name, x.shape, p), x.dtype, x.weak_type)

    return shape


# ---------------------------------------------------------------- meaning


def padded_for_windows(x: np.ndarray, fill: Any, p: Params) -> np.ndarray:
    """The operand dilated and padded, never cut to less than nothing."""
    config = [
        (low, max(high, -low - dilated(n, d)), d - 1)
        for n, (low, high), d in zip(x.shape, p["padding"], p["base_dilation"])
    ]
    return pad_p.meaning(x, np.asarray(fill).astype(x.dtype), padding_config=tuple(config))


def windows_of(x: np.ndarray, p: Params) -> np.ndarray:
    """A view (windows, positions in a window) of an array that is padded already."""
    counts = [
        window_count(n, dilated(w, wd), s)
        for n, w, s, wd in zip(
            x.shape, p["window_dimensions"], p["window_strides"], p["window_dilation"]
        )
    ]
    strides = [b * s for b, s in zip(x.strides, p["window_strides"])]
    strides += [b * d for b, d in zip(x.strides, p["window_dilation"])]
    raw = (
        x.view(np.uint8) if x.dtype.itemsize == 1 else x
    )  # NumPy cannot name all types of one byte
    view = np.lib.stride_tricks.as_strided(
        raw, (*counts, *p["window_dimensions"]), strides, writeable=False
    )
    return view.view(x.dtype)


def _sum_meaning(x: np.ndarray, **p: Any) -> np.ndarray:
    view = windows_of(padded_for_windows(x, 0, p), p)
    narrow = is_float(x.dtype) and x.dtype.itemsize < 4
    total = np.sum(
        view, axis=tuple(range(x.ndim, 2 * x.ndim)), dtype=np.float32 if narrow else x.dtype
    )
    return np.asarray(total).astype(x.dtype)


def _extremal_meaning(name: str, ufunc: np.ufunc) -> Callable[..., np.ndarray]:
    def meaning(x: np.ndarray, **p: Any) -> np.ndarray:
        view = windows_of(padded_for_windows(x, IDENTITY[name](x.dtype), p), p)
        return np.asarray(ufunc.reduce(view, axis=tuple(range(x.ndim, 2 * x.ndim)))).astype(x.dtype)

    return meaning


# ---------------------------------------------------------------- rules of the sums


def _sum_transpose(ct: Any, x: UndefinedPrimal, **p: Any) -> list[Any]:
    """Each element receives the cotangents of the windows that contain it: windows over the dilated
    cotangent. Where windows lie side by side that is one."""
    if type(ct) is Zero:
        return [Zero(x.aval)]
    if lie_side_by_side(p):
        return [_repeated(ct, x.aval, p["window_dimensions"])]
    pads = []
    for n, m, w, s, (low, _), bd, wd in zip(
        x.aval.shape, typeof(ct).shape, *[p[k] for k in WINDOW]
    ):
        reach = dilated(w, wd) - 1
        pads.append((reach - low, dilated(n, bd) - dilated(m, s) + low))
    return [
        do.reduce_window_sum(
            ct,
            window_dimensions=p["window_dimensions"],
            window_strides=p["base_dilation"],
            padding=tuple(pads),
            base_dilation=p["window_strides"],
            window_dilation=p["window_dilation"],
        )
    ]


def lie_side_by_side(p: Params) -> bool:
    """Does every window begin where the one before ends, the first with the first element?"""
    dense = all(d == 1 for d in (*p["base_dilation"], *p["window_dilation"]))
    unpadded = all(low == high == 0 for low, high in p["padding"])
    return dense and unpadded and tuple(p["window_dimensions"]) == tuple(p["window_strides"])


def _repeated(ct: Any, like: ShapedArray, window: Sequence[int]) -> Any:
    """Each element in all places of its window, zeros behind the last window."""
    parts, kept, whole = list[Any](), list[int](), list[Any]()
    for n, w in zip(typeof(ct).shape, window):
        kept.append(len(parts))
        parts += [n] if w == 1 else [n, w]
        whole.append(n * w)
    out = do.broadcast_in_dim(ct, shape=tuple(parts), broadcast_dimensions=tuple(kept))
    out = do.reshape(out, new_sizes=tuple(whole))
    if all(surely_equal(m, n) for m, n in zip(whole, like.shape)):
        return out
    ends = tuple([(0, n - m, 0) for m, n in zip(whole, like.shape)])
    return do.pad(out, common.scalar_of(typeof(ct).dtype, 0), padding_config=ends)


def batched_params(p: Params, at: int) -> Params:
    """Parameters for operands with one more dimension, which windows do not extend in."""
    new: Params = {k: (*p[k][:at], 1, *p[k][at:]) for k in WINDOW if k != "padding" and k in p}
    return {**p, **new, "padding": (*p["padding"][:at], (0, 0), *p["padding"][at:])}


def _monoid_batch(name: str) -> Callable[..., tuple[Any, int]]:
    def batch(args: Sequence[Any], dims: Sequence[int | None], **p: Any) -> tuple[Any, int]:
        (x,), (b,) = args, dims
        assert b is not None
        return REGISTRY[name].bind(x, **batched_params(p, b)), b

    return batch


def _extremal_jvp(name: str, select: str) -> Callable[..., tuple[Any, Any]]:
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **p: Any) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        out = REGISTRY[name].bind(x, **p)
        if type(t) is Zero:
            return out, zero_like(out)
        return out, do.select_and_gather_add(t, x, select_prim=REGISTRY[select], **p)

    return jvp


NOT_LINEAR = NotApplicable("the maximum or minimum over windows is not linear")

reduce_window_sum_p = Primitive(
    "reduce_window_sum",
    meaning=_sum_meaning,
    shape=_monoid_shape("reduce_window_sum"),
    jvp=linear_jvp("reduce_window_sum"),
    transpose=_sum_transpose,
    batch=_monoid_batch("reduce_window_sum"),
)
reduce_window_max_p = Primitive(
    "reduce_window_max",
    meaning=_extremal_meaning("max", np.maximum),
    shape=_monoid_shape("reduce_window_max"),
    jvp=_extremal_jvp("reduce_window_max", "ge"),
    transpose=NOT_LINEAR,
    batch=_monoid_batch("reduce_window_max"),
)
reduce_window_min_p = Primitive(
    "reduce_window_min",
    meaning=_extremal_meaning("min", np.minimum),
    shape=_monoid_shape("reduce_window_min"),
    jvp=_extremal_jvp("reduce_window_min", "le"),
    transpose=NOT_LINEAR,
    batch=_monoid_batch("reduce_window_min"),
)

# ---------------------------------------------------------------- reduce_window: any program


def _halves(values: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    n = len(values) // 2
    return list(values[:n]), list(values[n:])


def _general_shape(
    *avals: ShapedArray, jaxpr: Jaxpr, consts: Sequence[Any], **p: Any
) -> list[ShapedArray]:
    xs, inits = _halves(avals)
    if not xs or len(xs) != len(inits):
        raise TypeError("reduce_window needs an initial value for each operand, and at least one")
    for x, i in zip(xs, inits):
        if i.ndim or i.dtype != x.dtype or x.shape != xs[0].shape:
            raise TypeError(
                "reduce_window: operands must have one shape and scalar initial values of their"
                f" dtype, got {[a.str_short() for a in avals]}"
            )
    shape = window_shape("reduce_window", xs[0].shape, p)
    return [ShapedArray(shape, x.dtype, x.weak_type and i.weak_type) for x, i in zip(xs, inits)]


def _general_meaning(
    *args: np.ndarray, jaxpr: Jaxpr, consts: Sequence[Any], **p: Any
) -> list[np.ndarray]:
    """Position by position of the window, in row-major order, for all windows at once. Padding does
    not take part."""
    xs, inits = _halves(args)
    views = [windows_of(padded_for_windows(x, i, p), p) for x, i in zip(xs, inits)]
    ndim = xs[0].ndim
    totals = [np.full(v.shape[:ndim], i, x.dtype) for v, i, x in zip(views, inits, xs)]
    for k, real in zip(np.ndindex(*p["window_dimensions"]), _real_positions(xs[0].shape, p)):
        new = run_scalars(jaxpr, consts, *totals, *[v[(..., *k)] for v in views])
        totals = [np.where(real, n, t) for n, t in zip(new, totals)]
    return [np.array(t, x.dtype) for t, x in zip(totals, xs)]


def _real_positions(shape: Shape, p: Params) -> list[np.ndarray]:
    """For each position of a window, in which windows an element of the operand stands there."""
    real = windows_of(padded_for_windows(np.ones(shape, bool), False, p), p)
    return [real[(..., *k)] for k in np.ndindex(*p["window_dimensions"])]


def _general_jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    jaxpr: Jaxpr,
    consts: Sequence[Any],
    **p: Any,
) -> tuple[list[Any], list[Any]]:
    """The fold over the positions of a window, written out, forward by the rules of the program's
    own operations."""
    if all(type(t) is Zero for t in tangents):
        out = do.reduce_window(*primals, jaxpr=jaxpr, consts=consts, **p)
        return out, [zero_like(o) for o in out]
    if not is_elementwise(jaxpr):
        raise NotImplementedError(
            "reduce_window has a derivative only when its computation is made of elementwise"
            " operations: give it a custom_jvp rule, or compute the windows with"
            " lax.conv_general_dilated_patches and reduce those"
        )
    (xs, inits), (dxs, dinits) = _halves(primals), _halves(tangents)
    parts = [_positions(x, i, p) for x, i in zip(xs, inits)]
    dparts = [
        (
            None
            if type(d) is Zero and type(di) is Zero
            else _positions(instantiate(d), instantiate(di), p)
        )
        for d, di in zip(dxs, dinits)
    ]
    shape = typeof(parts[0][0]).shape
    totals = [common.filled(shape, i) for i in inits]
    dtotals = [
        zero_like(t) if type(di) is Zero else common.filled(shape, di)
        for t, di in zip(totals, dinits)
    ]
    real = _real_positions(typeof(xs[0]).shape, p)
    for k in range(len(parts[0])):
        values = [part[k] for part in parts]
        moved = [zero_like(v) if dp is None else dp[k] for v, dp in zip(values, dparts)]
        new, dnew = jvp_scalars(jaxpr, consts, [*totals, *values], [*dtotals, *moved])
        if real[k].all():
            totals, dtotals = new, dnew
        else:
            totals = [do.select_n(real[k], t, n) for t, n in zip(totals, new)]
            dtotals = [
                do.select_n(real[k], instantiate(t), instantiate(n)) for t, n in zip(dtotals, dnew)
            ]
    return totals, dtotals


def _positions(x: Any, init: Any, p: Params) -> list[Any]:
    """For each position of a window, the elements that stand there in all windows."""
    config = tuple([(low, high, d - 1) for (low, high), d in zip(p["padding"], p["base_dilation"])])
    counts = window_shape("reduce_window", typeof(x).shape, p)
    x = do.pad(x, init, padding_config=config)
    out = []
    for k in np.ndindex(*p["window_dimensions"]):
        starts = tuple([i * d for i, d in zip(k, p["window_dilation"])])
        limits = tuple(
            [a + max((n - 1) * s + 1, 0) for a, n, s in zip(starts, counts, p["window_strides"])]
        )
        out.append(
            do.slice(x, start_indices=starts, limit_indices=limits, strides=p["window_strides"])
        )
    return out


def _general_batch(
    args: Sequence[Any],
    dims: Sequence[int | None],
    *,
    jaxpr: Jaxpr,
    consts: Sequence[Any],
    **p: Any,
) -> tuple[list[Any], list[int]]:
    (xs, inits), (bxs, binits) = _halves(args), _halves(dims)
    if any(b is not None for b in binits):
        raise NotImplementedError(
            "reduce_window cannot be batched over its initial values; combine them with the result"
            " instead"
        )
    size = batch_size(xs, bxs)
    xs = [front(x, b, size) for x, b in zip(xs, bxs)]
    out = do.reduce_window(*xs, *inits, jaxpr=jaxpr, consts=consts, **batched_params(p, 0))
    return out, [0] * len(out)


reduce_window_p = Primitive(
    "reduce_window",
    meaning=_general_meaning,
    shape=_general_shape,
    jvp=_general_jvp,
    transpose=NotApplicable("reduce_window is transposed through the operations of its derivative"),
    batch=_general_batch,
    multiple_results=True,
)

# ---------------------------------------------------------------- lax functions

_MONOIDS: Final = {
    "add": "reduce_window_sum",
    "max": "reduce_window_max",
    "min": "reduce_window_min",
}


def monoid_of(jaxpr: Jaxpr, init: Any, dtype: Any) -> str | None:
    """The primitive for this computation, if it is a sum, maximum or minimum that starts from its
    identity."""
    if len(jaxpr.eqns) != 1 or len(jaxpr.invars) != 2:
        return None
    e = jaxpr.eqns[0]
    if (
        e.primitive.name not in _MONOIDS
        or set(e.invars) != set(jaxpr.invars)
        or jaxpr.outvars != e.outvars
    ):
        return None
    name = e.primitive.name
    if dtype == bool_ or (is_complex(dtype) and name != "add"):  # which have no order
        return None
    return _MONOIDS[name] if is_identity(name, init) else None


def window_params(
    shape: Shape,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None,
    padding: str | Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None,
    window_dilation: Sequence[int] | None,
) -> Params:
    """The parameters of windows in the form that equations carry."""
    n = len(shape)
    window, strides = (
        per_dimension(window_dimensions, n, "window_dimensions"),
        per_dimension(window_strides, n, "window_strides"),
    )
    bd, wd = (
        per_dimension(base_dilation, n, "base_dilation"),
        per_dimension(window_dilation, n, "window_dilation"),
    )
    if isinstance(padding, str):
        extents = [dilated(w, d) for w, d in zip(window, wd)]
        padding = padtype_to_pads(shape, extents, strides, padding)
    pads: Pads = canonical_pads(padding, n, "reduce_window")
    return dict(zip(WINDOW, (window, strides, pads, bd, wd)))


def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable[..., Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Asked:  # type: ignore[type-var]
    """Combines the elements of each window of an array with a function of your own.

    Args:
        operand: An array, or a tree of arrays of one shape.
        init_value: The value that the function leaves others as they are with, for each array.
        computation: An associative function of two scalars, or of two trees of them.
        window_dimensions: The size of a window, for each dimension.
        window_strides: The step from one window to the next; None means 1.
        padding: "VALID" (none), "SAME" (as many windows as steps fit), "SAME_LOWER", or (before,
            after) for each dimension.
        base_dilation: The distance of neighbouring elements of `operand`; None means 1.
        window_dilation: The distance of neighbouring elements of a window; None means 1.

    Returns:
        An array with an element for each window, or a tree of them.

    >>> lax.reduce_window(jnp.arange(5.0), 0.0, lax.add, (2,))
    Array([1., 3., 5., 7.], dtype=float32)"""
    flat, tree = flatten(operand)
    inits, init_tree = flatten(init_value)
    if not flat or tree != init_tree:
        raise ValueError(
            "reduce_window: operands and initial values must be trees of one structure, with"
            f" leaves, got {tree} and {init_tree}"
        )
    xs = [as_operand(x) for x in flat]
    inits = [common.initial_value(i, typeof(x)) for i, x in zip(inits, xs)]
    if any(typeof(i).shape for i in inits):
        raise TypeError(
            "reduce_window expected init_values to be scalars but init_values have shapes"
            f" {[typeof(i).shape for i in inits]}."
        )
    scalars = [ShapedArray((), typeof(x).dtype) for x in xs]

    def combine(*values: Any) -> list[Any]:
        left, right = _halves(values)
        out, out_tree = flatten(computation(unflatten(tree, left), unflatten(tree, right)))
        if out_tree != tree:
            raise ValueError(
                "reduce_window output must have the same tree structure as the operands: got"
                f" {out_tree} and {tree}"
            )
        return out

    closed = trace_to_jaxpr(
        combine, [*scalars, *scalars], getattr(computation, "__name__", "computation")
    )
    if any(isinstance(c, Tracer) for c in closed.consts):
        raise NotImplementedError(
            "the computation of reduce_window uses a traced value from outside: compute the"
            " windows with lax.conv_general_dilated_patches and reduce those, or give it a number"
        )
    p = window_params(
        typeof(xs[0]).shape,
        window_dimensions,
        window_strides,
        padding,
        base_dilation,
        window_dilation,
    )
    monoid = monoid_of(closed.jaxpr, inits[0], scalars[0].dtype) if len(xs) == 1 else None
    if monoid is not None:
        out = [REGISTRY[monoid].bind(xs[0], **p)]
    else:
        common.check_initial_values("reduce_window", xs, inits)
        out = reduce_window_p.bind(
            *xs, *inits, jaxpr=closed.jaxpr, consts=tuple(closed.consts), **p
        )
    return unflatten(tree, out)


def reduce_window_shape_tuple(
    operand_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Shape:
    """Gives the shape of the result of `reduce_window`.

    Args:
        operand_shape: The shape of the operand.
        window_dimensions: The size of a window, for each dimension.
        window_strides: The step from one window to the next.
        padding: (before, after) for each dimension.
        base_dilation: The distance of neighbouring elements of the operand; None means 1.
        window_dilation: The distance of neighbouring elements of a window; None means 1.

    Returns:
        A shape.

    >>> lax.reduce_window_shape_tuple((5,), (2,), (1,), [(0, 0)])
    (4,)"""
    shape = tuple(operand_shape)
    p = window_params(
        shape, window_dimensions, window_strides, padding, base_dilation, window_dilation
    )
    return window_shape("reduce_window", shape, p)

"""Python called from inside programs: pure_callback, io_callback, debug.callback, debug.print."""

import functools
import string
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calque.core import pytrees, trace_state
from calque.core.arrays import from_numpy, to_numpy
from calque.core.avals import ShapedArray
from calque.core.primitives import NotApplicable, Zero
from calque.core.trace import typeof
from calque.core.trace_state import Tracer
from calque.ops.common import front, move, repeated
from calque.transforms.engines.axes import Axis, AxisPrimitive
from calque.transforms.engines.batching import Dim
from calque.transforms.engines.trees import arrays, name_of
from calque.transforms.engines.zeros import zero_like
from calque.transforms.functions.loops import map_, stack_rows, take_row
from calque.transforms.functions.shapes import aval_of
from calque.transforms.primitives.lanes import together_rules

VMAP_METHODS = (
    "sequential",
    "sequential_unrolled",
    "expand_dims",
    "broadcast_all",
    "legacy_vectorized",
)


class FlatCallback:
    """The user's function as a function of leaves."""

    def __init__(
        self,
        callback: Callable[..., Any],
        in_tree: pytrees.PyTreeDef,
        out_tree: pytrees.PyTreeDef | None,
    ):
        self.callback, self.in_tree, self.out_tree = callback, in_tree, out_tree

    def __call__(self, *leaves: np.ndarray) -> list[np.ndarray]:
        with trace_state.evaluating():
            args, kwargs = pytrees.unflatten(
                self.in_tree, [from_numpy(np.asarray(x)) for x in leaves]
            )
            out = self.callback(*args, **kwargs)
            if self.out_tree is None:
                return []
            found, tree = pytrees.flatten(out)
            if tree != self.out_tree:
                raise RuntimeError(
                    f"the callback {name_of(self.callback)} returned a value of structure {tree},"
                    f" but its result_shape_dtypes have structure {self.out_tree}"
                )
            return [np.asarray(to_numpy(x) if hasattr(x, "aval") else x) for x in found]

    def __repr__(self) -> str:
        return f"_FlatCallback(callback_func={name_of(self.callback)}, in_tree={self.in_tree})"


def _checked(
    out: Sequence[np.ndarray], avals: Sequence[ShapedArray], callback: Any
) -> list[np.ndarray]:
    """The results in the types that were announced."""
    for i, (x, a) in enumerate(zip(out, avals, strict=True)):
        if x.shape != a.shape or not np.can_cast(x.dtype, a.dtype, "same_kind"):
            raise RuntimeError(
                f"the callback {name_of(getattr(callback, 'callback', callback))} returned at"
                f" output {i} an array of type {x.dtype}{list(x.shape)}, but its"
                f" result_shape_dtypes say {a.str_short()}"
            )
    return [np.asarray(x).astype(a.dtype) for x, a in zip(out, avals)]


def _call(
    *args: np.ndarray, callback: FlatCallback, result_avals: Sequence[ShapedArray], **_: Any
) -> list[np.ndarray]:
    return _checked(callback(*args), result_avals, callback)


def _call_shape(
    *avals: ShapedArray, result_avals: Sequence[ShapedArray], **_: Any
) -> list[ShapedArray]:
    return list(result_avals)


# ---------------------------------------------------------------- pure_callback


def _pure_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
    if any(type(t) is not Zero for t in tangents):
        raise ValueError(
            "Pure callbacks do not support JVP. Please use `calque.custom_jvp` to use callbacks"
            " while taking gradients."
        )
    outs = pure_callback_p.bind(*primals, **params)
    return outs, [zero_like(o) for o in outs]


def _pure_batch(
    axis: Axis,
    args: Sequence[Any],
    dims: Sequence[Dim],
    *,
    result_avals: Any,
    vmap_method: str | None,
    **params: Any,
) -> Any:
    if vmap_method is None and axis.devices:
        vmap_method = "sequential"  # each device calls for itself
    if vmap_method not in VMAP_METHODS:
        raise NotImplementedError(
            "vmap is only supported for the pure_callback primitive when vmap_method is one of"
            f" {', '.join(map(repr, VMAP_METHODS))}. Got vmap_method={vmap_method}."
        )
    bind = functools.partial(pure_callback_p.bind, vmap_method=vmap_method, **params)
    if vmap_method in ("sequential", "sequential_unrolled"):
        return one_by_one(
            lambda *row: bind(*row, result_avals=result_avals),
            axis,
            args,
            dims,
            vmap_method == "sequential",
        )
    whole = tuple(ShapedArray((axis.size, *a.shape), a.dtype) for a in result_avals)
    fill = {
        "expand_dims": lambda x: repeated(x, 1),
        "broadcast_all": lambda x: repeated(x, axis.size),
    }.get(vmap_method, lambda x: x)
    outs = bind(
        *[move(x, d, 0) if d is not None else fill(x) for x, d in zip(args, dims)],
        result_avals=whole,
    )
    return outs, [0] * len(outs)


def one_by_one(
    call: Callable[..., Sequence[Any]],
    axis: Axis,
    args: Sequence[Any],
    dims: Sequence[Dim],
    as_loop: bool = True,
) -> tuple[list[Any], list[Dim]]:
    """Call for each lane in turn: as a loop of the program, or written out."""
    batched = [front(x, d, axis.size) for x, d in zip(args, dims) if d is not None]

    def lane(rows: Sequence[Any]) -> list[Any]:
        given = iter(rows)
        return list(call(*[x if d is None else next(given) for x, d in zip(args, dims)]))

    if as_loop:
        outs = map_(lane, batched)
    else:
        rows = [lane([take_row(x, i) for x in batched]) for i in range(axis.size)]
        outs = [stack_rows(column) for column in zip(*rows)]
    return list(outs), [0] * len(outs)


pure_callback_p = AxisPrimitive(
    "pure_callback",
    meaning=_call,
    shape=_call_shape,
    jvp=_pure_jvp,
    transpose=NotApplicable(
        "pure callbacks do not support transpose: give the function a custom_vjp"
    ),
    batch=_pure_batch,
    multiple_results=True,
)
together_rules["pure_callback"] = lambda params: (
    params["vmap_method"] not in ("sequential", "sequential_unrolled")
)


def _results(result_shape_dtypes: Any) -> tuple[tuple[ShapedArray, ...], pytrees.PyTreeDef]:
    leaves, tree = pytrees.flatten(result_shape_dtypes)
    return tuple([aval_of(x).strip_weak_type() for x in leaves]), tree


def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> Any:
    """The result of a Python function without side effects, called while the program runs. It must
    have the shapes and dtypes of `result_shape_dtypes`; `vmap_method` says how it is called for a
    batch.

    >>> calque.pure_callback(np.sin, calque.ShapeDtypeStruct((), np.float32), 0.0)
    Array(0., dtype=float32)"""
    if vmap_method is not None and vmap_method not in VMAP_METHODS:
        raise ValueError(
            f"vmap_method must be on of the allowed methods {VMAP_METHODS}, but got: {vmap_method}"
        )
    leaves, in_tree = pytrees.flatten((args, kwargs))
    avals, out_tree = _results(result_shape_dtypes)
    outs = pure_callback_p.bind(
        *arrays(leaves, "pure_callback", callback, args, kwargs),
        callback=FlatCallback(callback, in_tree, out_tree),
        result_avals=avals,
        sharding=sharding,
        vmap_method=vmap_method,
    )
    return pytrees.unflatten(out_tree, outs)


# ---------------------------------------------------------------- io_callback


def _io_batch(
    axis: Axis, args: Sequence[Any], dims: Sequence[Dim], *, ordered: bool, **params: Any
) -> Any:
    if ordered:
        raise ValueError("Cannot `vmap` ordered IO callbacks.")
    return one_by_one(
        functools.partial(io_callback_p.bind, ordered=ordered, **params), axis, args, dims
    )


def _io_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
    if any(type(t) is not Zero for t in tangents):
        raise ValueError(
            "IO callbacks do not support JVP. Please use `calque.custom_jvp` to use callbacks while"
            " taking gradients."
        )
    outs = io_callback_p.bind(*primals, **params)
    return outs, [zero_like(o) for o in outs]


io_callback_p = AxisPrimitive(
    "io_callback",
    meaning=_call,
    shape=_call_shape,
    jvp=_io_jvp,
    transpose=NotApplicable(
        "IO callbacks do not support transpose: give the function a custom_vjp"
    ),
    batch=_io_batch,
    multiple_results=True,
    effect=True,
)
together_rules["io_callback"] = lambda params: bool(params["ordered"])


def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    ordered: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a Python function with side effects while the program runs, once for each time that the
    program gets there."""
    leaves, in_tree = pytrees.flatten((args, kwargs))
    avals, out_tree = _results(result_shape_dtypes)
    outs = io_callback_p.bind(
        *arrays(leaves, "io_callback", callback, args, kwargs),
        callback=FlatCallback(callback, in_tree, out_tree),
        ordered=ordered,
        result_avals=avals,
        sharding=sharding,
    )
    return pytrees.unflatten(out_tree, outs)


# ---------------------------------------------------------------- debugging


def _debug_primitive(
    name: str, meaning: Callable[..., Any], hidden: Sequence[str] = ()
) -> AxisPrimitive:
    """A primitive without results that shows values: under differentiation those of the function
    itself, under vmap lane by lane."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        return primitive.bind(*primals, **params), []

    def batch(axis: Axis, args: Sequence[Any], dims: Sequence[Dim], **params: Any) -> Any:
        one_by_one(functools.partial(primitive.bind, **params), axis, args, dims)
        return [], []

    def transpose(cts: Sequence[Any], *args: Any, **params: Any) -> list[Any]:
        return [None] * len(args)

    primitive = AxisPrimitive(
        name,
        meaning=meaning,
        shape=lambda *avals, **params: [],
        jvp=jvp,
        transpose=transpose,
        batch=batch,
        multiple_results=True,
        effect=True,
        hidden=hidden,
    )
    return primitive


debug_callback_p = _debug_primitive("debug_callback", lambda *args, callback, **_: callback(*args))


def debug_callback(
    callback: Callable[..., Any],
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> None:
    """Call a Python function on values of the program; what it returns is ignored.

    >>> calque.debug.callback(lambda x: print("x is", x), 3)
    x is 3"""
    if not callable(callback):
        raise TypeError(f"callback must be callable, got {callback!r}")
    leaves, in_tree = pytrees.flatten((args, kwargs))
    debug_callback_p.bind(
        *arrays(leaves, "debug.callback", callback, args, kwargs),
        callback=FlatCallback(callback, in_tree, None),
        effect="OrderedDebug" if ordered else "Debug",
        partitioned=partitioned,
    )


def _print_meaning(
    *args: np.ndarray, fmt: str, in_tree: pytrees.PyTreeDef, static_args: Sequence[Any], **_: Any
) -> list[Any]:
    values = iter(args)
    leaves = [v if static else from_numpy(np.asarray(next(values))) for static, v in static_args]
    positional, named = pytrees.unflatten(in_tree, leaves)
    with trace_state.evaluating():
        sys.stdout.write(fmt.format(*positional, **named) + "\n")
    return []


debug_print_p = _debug_primitive("debug_print", _print_meaning)


class _Formatter(string.Formatter):
    """Finds arguments that the format does not use."""

    def check_unused_args(self, used_args: Any, args: Sequence[Any], kwargs: Any) -> None:
        unused = [str(a) for i, a in enumerate(args) if i not in used_args] + [
            k for k in kwargs if k not in used_args
        ]
        if unused:
            raise ValueError(
                f"Unused arguments to `debug.print`: {', '.join(unused)}. Use placeholders such as"
                " {} or {name} in the format string instead of an f-string, which would show"
                " the placeholder of a traced value."
            )

    def format_field(self, value: Any, format_spec: str) -> Any:
        return ""


def debug_print(
    fmt: str, *args: Any, ordered: bool = False, partitioned: bool = False, **kwargs: Any
) -> None:
    """Print values of a program while it runs. `fmt` is a format string, not an f-string.

    >>> calque.debug.print("x = {x}", x=2)
    x = 2"""
    _Formatter().format(fmt, *args, **kwargs)
    leaves, in_tree = pytrees.flatten((args, kwargs))
    static = [not _is_value(x) for x in leaves]
    debug_print_p.bind(
        *[x for x, s in zip(leaves, static) if not s],
        fmt=fmt,
        has_placeholders=bool(leaves),
        in_tree=in_tree,
        logging_record=None,
        ordered=ordered,
        partitioned=partitioned,
        static_args=tuple((s, x if s else None) for x, s in zip(leaves, static)),
    )


def _is_value(x: Any) -> bool:
    if isinstance(x, Tracer):
        return True
    try:
        typeof(x)
    except TypeError:
        return False
    return True

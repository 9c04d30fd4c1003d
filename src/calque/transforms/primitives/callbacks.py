"""Python called from inside programs: the primitives `pure_callback`, `io_callback`,
`debug_callback` and `debug_print` with all their rules."""

import functools
import logging
import sys
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any, Final

import numpy as np

from calque.core import pytrees, trace_state
from calque.core.arrays import ArrayImpl, from_numpy, to_numpy
from calque.core.avals import ShapedArray
from calque.core.config import config
from calque.core.errors import CalqueRuntimeError, of_callback
from calque.core.jaxprs import ClosedJaxpr, all_equations, primitives_of
from calque.core.primitives import NotApplicable, Zero
from calque.ops.common import front, move, repeated
from calque.ops.random.keys import keys_of_records
from calque.transforms.engines.axes import Axis, AxisPrimitive
from calque.transforms.engines.batching import Dim
from calque.transforms.engines.trees import name_of
from calque.transforms.engines.zeros import zero_like
from calque.transforms.primitives.lanes import one_by_one, together_rules
from calque.transforms.primitives.rows import stack_rows, take_row

VMAP_METHODS = (
    "sequential",
    "sequential_unrolled",
    "expand_dims",
    "broadcast_all",
    "legacy_vectorized",
)


def of_elements(x: Any) -> Any:
    """An array made of what memory holds of one; random keys are keys again."""
    values = np.asarray(x)
    return from_numpy(values) if values.dtype.names is None else keys_of_records(values)


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
            args, kwargs = pytrees.unflatten(self.in_tree, list(map(of_elements, leaves)))
            try:
                out = self.callback(*args, **kwargs)
            except Exception as error:
                if isinstance(self.callback, Fail):  # it is there to raise
                    raise
                raise of_callback(error) from error.__cause__
            if self.out_tree is None:
                return []
            found, tree = pytrees.flatten(out)
            if tree.num_leaves != self.out_tree.num_leaves:
                raise CalqueRuntimeError(
                    f"the callback {name_of(self.callback)} returned a value of structure {tree},"
                    f" but its result_shape_dtypes have structure {self.out_tree}"
                )
            return [np.asarray(to_numpy(x) if isinstance(x, ArrayImpl) else x) for x in found]

    def __repr__(self) -> str:
        return f"_FlatCallback(callback_func={name_of(self.callback)}, in_tree={self.in_tree})"


_CALLING: Final = ("pure_callback", "io_callback", "debug_callback", "debug_print")


def codes_called(closed: ClosedJaxpr) -> set[CodeType]:
    """The code of the functions of the user that a program calls while it runs."""
    found: set[CodeType] = set()
    if not any([p.name in _CALLING for p in primitives_of(closed)]):
        return found
    for e in all_equations(closed.jaxpr):
        call: Any = e.params.get("callback")
        if isinstance(call, FlatCallback):
            function = call.callback
            while isinstance(function, functools.partial):
                function = function.func
            code = getattr(function, "__code__", None)  # a method has that of its function
            found |= set() if code is None else {code}
    return found


class Fail:
    """Raises the exception that is made of the values. Compilers know it: nothing else than raising
    happens."""

    __slots__ = ("error",)

    def __init__(self, error: Callable[..., Exception]) -> None:
        self.error = error

    def __call__(self, *values: Any) -> None:
        raise self.error(*map(np.asarray, values))


def _checked(
    out: Sequence[np.ndarray], avals: Sequence[ShapedArray], callback: Any
) -> list[np.ndarray]:
    """The results in the types that were announced. Where there are 64-bit types, NumPy's wide
    results are not what they are taken for elsewhere."""
    for i, (x, a) in enumerate(zip(out, avals, strict=True)):
        fits = x.dtype == a.dtype or (
            np.can_cast(x.dtype, a.dtype, "same_kind") and not config.enable_x64
        )
        if x.shape != a.shape or not fits:
            what = "shape" if x.shape != a.shape else "dtype"
            raise CalqueRuntimeError(
                f"Incorrect output {what} for return value #{i}: the callback"
                f" {name_of(getattr(callback, 'callback', callback))} returned at"
                f" output {i} an array of type {x.dtype}{list(x.shape)}, but its"
                f" result_shape_dtypes say {a.str_short()}"
            )
    return [np.asarray(x).astype(a.dtype) for x, a in zip(out, avals)]


def logger(part: str) -> logging.Logger:
    """The logger `calque.<part>`; where calque is served as `jax`, the one that programs written
    for it filter."""
    served = sys.modules.get("jax") is sys.modules["calque"]
    return logging.getLogger(f"jax._src.{part}" if served else f"calque.{part}")


def _meaning(name: str) -> Callable[..., list[np.ndarray]]:
    """The call from compiled code. A failure is logged, for it may be far from who can see it."""

    def call(
        *args: np.ndarray, callback: FlatCallback, result_avals: Sequence[ShapedArray], **_: Any
    ) -> list[np.ndarray]:
        try:
            return _checked(callback(*args), result_avals, callback)
        except Exception:
            log = logger("callback")
            log.exception("%s.%s failed", log.name.partition(".")[0], name)
            raise

    return call


def _call_shape(
    *avals: ShapedArray, result_avals: Sequence[ShapedArray], **_: Any
) -> list[ShapedArray]:
    return list(result_avals)


# ---------------------------------------------------------------- pure_callback


def _named(params: dict[str, Any]) -> str:
    return f" The callback is {name_of(getattr(params['callback'], 'callback', None))}."


def _pure_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
    if any(type(t) is not Zero for t in tangents):
        raise ValueError(
            "Pure callbacks do not support JVP. Please use `calque.custom_jvp` to use callbacks"
            f" while taking gradients.{_named(params)}"
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
    params["vmap_method"] = vmap_method
    if vmap_method in ("sequential", "sequential_unrolled"):
        of_lanes = one_by_one if vmap_method == "sequential" else written_out
        return of_lanes(pure_callback_p, axis, args, dims, {**params, "result_avals": result_avals})
    whole = tuple(ShapedArray((axis.size, *a.shape), a.dtype) for a in result_avals)
    fill = {
        "expand_dims": lambda x: repeated(x, 1),
        "broadcast_all": lambda x: repeated(x, axis.size),
    }.get(vmap_method, lambda x: x)
    outs = pure_callback_p.bind(
        *[move(x, d, 0) if d is not None else fill(x) for x, d in zip(args, dims)],
        result_avals=whole,
        **params,
    )
    return outs, [0] * len(outs)


def written_out(
    primitive: AxisPrimitive,
    axis: Axis,
    args: Sequence[Any],
    dims: Sequence[Dim],
    params: dict[str, Any],
) -> tuple[list[Any], list[Dim]]:
    """As `one_by_one`, with an equation for each lane."""
    batched = [x if d is None else front(x, d, axis.size) for x, d in zip(args, dims)]
    lanes = [
        [x if d is None else take_row(x, i) for x, d in zip(batched, dims)]
        for i in range(axis.size)
    ]
    outs = [stack_rows(column) for column in zip(*[primitive.bind(*x, **params) for x in lanes])]
    return outs, [0] * len(outs)


pure_callback_p = AxisPrimitive(
    "pure_callback",
    meaning=_meaning("pure_callback"),
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


# ---------------------------------------------------------------- io_callback


def _io_batch(
    axis: Axis, args: Sequence[Any], dims: Sequence[Dim], *, ordered: bool, **params: Any
) -> Any:
    if ordered and not axis.devices:  # of devices each has an order of its own
        raise ValueError("Cannot `vmap` ordered IO callbacks.")
    return one_by_one(io_callback_p, axis, args, dims, {"ordered": ordered, **params})


def _io_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
    if any(type(t) is not Zero for t in tangents):
        raise ValueError(
            "IO callbacks do not support JVP. Please use `calque.custom_jvp` to use callbacks while"
            " taking gradients."
        )
    outs = io_callback_p.bind(*primals, **params)
    return outs, [zero_like(o) for o in outs]


def _io_transpose(cts: Sequence[Any], *args: Any, **params: Any) -> Any:
    raise ValueError("IO callbacks do not support transpose. Give the function a custom_vjp.")


io_callback_p = AxisPrimitive(
    "io_callback",
    meaning=_meaning("io_callback"),
    shape=_call_shape,
    jvp=_io_jvp,
    transpose=_io_transpose,
    batch=_io_batch,
    multiple_results=True,
    effect=True,
)
together_rules["io_callback"] = lambda params: bool(params["ordered"])


# ---------------------------------------------------------------- debugging


def _debug_primitive(
    name: str, meaning: Callable[..., Any], hidden: Sequence[str] = ()
) -> AxisPrimitive:
    """A primitive without results that shows values: under differentiation those of the function
    itself, under vmap lane by lane."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        return primitive.bind(*primals, **params), []

    def batch(axis: Axis, args: Sequence[Any], dims: Sequence[Dim], **params: Any) -> Any:
        return one_by_one(primitive, axis, args, dims, params)

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


def bind_debug_callback(
    callback: FlatCallback, leaves: Sequence[Any], ordered: bool = False, partitioned: bool = False
) -> None:
    debug_callback_p.bind(
        *leaves,
        callback=callback,
        effect="OrderedDebug" if ordered else "Debug",
        partitioned=partitioned,
    )


def _print_meaning(
    *args: np.ndarray,
    fmt: str,
    in_tree: pytrees.PyTreeDef,
    static_args: Sequence[Any],
    logging_record: logging.LogRecord | None,
    np_printoptions: Sequence[tuple[str, Any]],
    **_: Any,
) -> list[Any]:
    values = iter(args)
    leaves = [v if static else of_elements(next(values)) for static, v in static_args]
    positional, named = pytrees.unflatten(in_tree, leaves)
    with trace_state.evaluating(), np.printoptions(**dict(np_printoptions)):
        text = fmt.format(*positional, **named)
    if logging_record is None:
        sys.stdout.write(text + "\n")
    else:
        _log(logging_record, text)
    return []


def _log(record: logging.LogRecord, text: str) -> None:
    """Hand a text to the logger of a record, as from its line and of now."""
    logger = logging.getLogger(record.name)
    if logger.isEnabledFor(record.levelno):
        logger.handle(
            logger.makeRecord(
                record.name, record.levelno, record.pathname, record.lineno, text, (), None
            )
        )


debug_print_p = _debug_primitive("debug_print", _print_meaning, ("np_printoptions",))

"""Python called from inside programs: pure_callback, io_callback, debug.callback, debug.print."""

import string
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calque.core import pytrees
from calque.core.avals import ShapedArray
from calque.core.dtypes import canonicalize
from calque.core.trace import typeof
from calque.core.trace_state import Tracer
from calque.transforms.engines.trees import arrays
from calque.transforms.functions.shapes import aval_of
from calque.transforms.primitives.callbacks import (
    VMAP_METHODS,
    FlatCallback,
    bind_debug_callback,
    debug_print_p,
    io_callback_p,
    pure_callback_p,
)


def _results(result_shape_dtypes: Any) -> tuple[tuple[ShapedArray, ...], pytrees.PyTreeDef]:
    leaves, tree = pytrees.flatten(result_shape_dtypes)
    for x in leaves:
        dtype = getattr(x, "dtype", None)
        if isinstance(dtype, np.dtype) and canonicalize(dtype) != dtype:
            raise ValueError(
                "result_shape_dtypes cannot specify 64-bit types when they are not enabled, got"
                f" {dtype}: use calque.config.update('calque_enable_x64', True) or"
                f" {canonicalize(dtype)}"
            )
    return tuple([aval_of(x).strip_weak_type() for x in leaves]), tree


def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> Any:
    """Gives the result of a Python function without side effects, called while the program runs.

    A program may leave out a call whose result is not used, or call again.

    Args:
        callback: The Python function. It gets NumPy-like arrays, in the trees that were given.
        result_shape_dtypes: What it returns, with anything that has a shape and a dtype in place of
            each array.
        *args: Positional arguments for it: arrays and trees of them.
        sharding: Where JAX would run the callback. It runs once, with whole arrays.
        vmap_method: How it is called for a batch: "sequential" calls it for each example,
            "expand_dims" and "broadcast_all" once with a leading axis for the batch (of size 1
            where an argument is not mapped, or the full size), and "sequential_unrolled" as
            "sequential" without a loop. None refuses a batch.
        **kwargs: Keyword arguments for it, likewise.

    Returns:
        Arrays of the types in `result_shape_dtypes`.

    >>> jax.pure_callback(np.sin, jax.ShapeDtypeStruct((), np.float32), 0.0)
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


def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    ordered: bool = False,
    **kwargs: Any,
) -> Any:
    """Calls a Python function with side effects, once for each time that the program gets there.

    Args:
        callback: The Python function. It gets NumPy-like arrays, in the trees that were given.
        result_shape_dtypes: What it returns, with anything that has a shape and a dtype in place of
            each array.
        *args: Positional arguments for it: arrays and trees of them.
        sharding: Where JAX would run the callback. It runs once, with whole arrays.
        ordered: Whether such calls keep the order in which they stand in the program.
        **kwargs: Keyword arguments for it, likewise.

    Returns:
        Arrays of the types in `result_shape_dtypes`.

    >>> from calque.experimental import io_callback
    >>> seen = []
    >>> io_callback(lambda x: seen.append(int(x)), None, 3)
    >>> seen
    [3]"""
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


def debug_callback(
    callback: Callable[..., Any],
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> None:
    """Calls a Python function on values of the running program; what it returns is ignored.

    Args:
        callback: The Python function. It gets NumPy-like arrays, in the trees that were given.
        *args: Positional arguments for it: arrays and trees of them.
        ordered: Whether such calls keep the order in which they stand in the program.
        partitioned: Whether each device of a split program calls it with its own part.
        **kwargs: Keyword arguments for it, likewise.

    Returns:
        None.

    >>> jax.debug.callback(lambda x: print("x is", x), 3)
    x is 3"""
    if not callable(callback):
        raise TypeError(f"callback must be callable, got {callback!r}")
    leaves, in_tree = pytrees.flatten((args, kwargs))
    bind_debug_callback(
        FlatCallback(callback, in_tree, None),
        arrays(leaves, "debug.callback", callback, args, kwargs),
        ordered,
        partitioned,
    )


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
    """Prints values of a program while it runs.

    Args:
        fmt: A format string: "x = {x}". It is no f-string, which would show the values while
            tracing.
        *args: Values for its places.
        ordered: Whether such calls keep the order in which they stand in the program.
        partitioned: Whether each device of a split program prints its own part.
        **kwargs: Values for its places, by name.

    >>> jax.debug.print("x = {x}", x=2)
    x = 2"""
    try:
        _Formatter().format(fmt, *args, **kwargs)
    except KeyError as e:
        raise KeyError(
            f"debug.print: the format {fmt!r} names {e}, and no keyword argument has that name:"
            " debug.print('{x}', x=x)"
        ) from None
    leaves, in_tree = pytrees.flatten((args, kwargs))
    static = [not is_value(x) for x in leaves]
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


def is_value(x: Any) -> bool:
    """Whether it may be a value of a program: an array, a tracer, a number."""
    if isinstance(x, Tracer):
        return True
    try:
        typeof(x)
    except TypeError:
        return False
    return True

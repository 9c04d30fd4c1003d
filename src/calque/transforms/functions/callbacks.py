"""Python called from inside programs: pure_callback, io_callback, debug.callback, debug.print."""

import logging
import string
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calque.core import pytrees
from calque.core.avals import ShapedArray
from calque.core.dtypes import canonicalize
from calque.core.primitives import do
from calque.core.source import user_frame
from calque.core.trace import typeof
from calque.core.trace_state import Tracer
from calque.ops.random.keys import KeyDType
from calque.transforms.engines.trees import arrays
from calque.transforms.functions.shapes import aval_of
from calque.transforms.primitives.callbacks import (
    VMAP_METHODS,
    FlatCallback,
    bind_debug_callback,
    debug_print_p,
    io_callback_p,
    logger,
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


def _in_words(x: Any) -> Any:
    """Random keys as the integers in them, which is what functions of NumPy know; others as they
    are."""
    return do.random_unwrap(x) if isinstance(typeof(x).dtype, KeyDType) else x


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
        *map(_in_words, arrays(leaves, "pure_callback", callback, args, kwargs)),
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
        *map(_in_words, arrays(leaves, "io_callback", callback, args, kwargs)),
        callback=FlatCallback(callback, in_tree, out_tree),
        ordered=ordered,
        result_avals=avals,
        sharding=sharding,
    )
    return pytrees.unflatten(out_tree, outs)


def debug_callback(
    callback: Callable[..., Any] | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> Any:
    """Calls a Python function on values of the running program; what it returns is ignored.

    Without a function it gives one that takes the function and its arguments, so that keywords of
    the function may have the names of the options: `debug.callback(ordered=True)(f, x)`.

    Args:
        callback: The Python function. It gets NumPy-like arrays, in the trees that were given.
        *args: Positional arguments for it: arrays and trees of them.
        ordered: Whether such calls keep the order in which they stand in the program.
        partitioned: Of no effect here: a program calls it once, with whole values. In JAX each
            device of a split program calls it with its own part.
        **kwargs: Keyword arguments for it, likewise.

    Returns:
        None; without a function, a function.

    >>> jax.debug.callback(lambda x: print("x is", x), 3)
    x is 3
    >>> jax.debug.callback(ordered=True)(lambda x: print("x is", x), 4)
    x is 4"""

    def call(callback: Callable[..., Any], /, *args: Any, **kwargs: Any) -> None:
        if not callable(callback):
            raise TypeError(f"callback must be callable, got {callback!r}")
        leaves, in_tree = pytrees.flatten((args, kwargs))
        bind_debug_callback(
            FlatCallback(callback, in_tree, None),
            arrays(leaves, "debug.callback", callback, args, kwargs),
            ordered,
            partitioned,
        )

    return _in_one_call_or_two("debug_callback", "function", call, callback, args, kwargs)


def _in_one_call_or_two(
    name: str, first: str, call: Callable[..., None], given: Any, args: Any, kwargs: Any
) -> Any:
    """Call with what was given, or, where that were options alone, give the function to call."""
    if given is not None:
        return call(given, *args, **kwargs)
    if args or kwargs:
        raise TypeError(
            f"{name} received unexpected arguments in the two-call form: without a {first} it takes"
            f" options alone, and got {[*args, *kwargs]}. The {first} and its arguments go to what"
            " it gives"
        )
    return call


class _Places(string.Formatter):
    """Looks for the value of each place of a format; values come later."""

    def format_field(self, value: Any, format_spec: str) -> Any:
        return ""


class _AllPlaces(_Places):
    """Finds arguments that the format does not use, too."""

    def check_unused_args(self, used_args: Any, args: Sequence[Any], kwargs: Any) -> None:
        by_place = [a for i, a in enumerate(args) if i not in used_args]
        by_name = [k for k in kwargs if k not in used_args]
        if by_place or by_name:
            kind = "positional" if by_place else "keyword"
            raise ValueError(
                f"Unused {kind} arguments to `calque.debug.print`: {by_place or by_name}. Use"
                " placeholders such as {} or {name} in the format string instead of an f-string,"
                " which would show the placeholder of a traced value."
            )


def debug_print(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: Any,
) -> Any:
    """Prints values of a program while it runs.

    Without a format it gives a function that takes the format and its values, so that values may
    have the names of the options: `debug.print(ordered=True)("x = {x}", x=2)`.

    Args:
        fmt: A format string: "x = {x}". It is no f-string, which would show the values while
            tracing.
        *args: Values for its places.
        ordered: Whether such calls keep the order in which they stand in the program.
        partitioned: Of no effect here: a program prints once, whole values. In JAX each device
            of a split program prints its own part.
        skip_format_check: Whether values without a place in the format are let pass.
        **kwargs: Values for its places, by name.

    Returns:
        None; without a format, a function.

    >>> jax.debug.print("x = {x}", x=2)
    x = 2
    >>> jax.debug.print(ordered=True)("x = {x}", x=3)
    x = 3"""

    def call(fmt: str, /, *args: Any, **kwargs: Any) -> None:
        _bind_print(fmt, args, kwargs, (ordered, partitioned, skip_format_check), None)

    return _in_one_call_or_two("debug_print", "format", call, fmt, args, kwargs)


def debug_log(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: Any,
) -> Any:
    """Logs values of a program while it runs, with level INFO and the line that calls it.

    The logger is "calque.debugging" of Python's `logging`.

    Args:
        fmt: A format string, as of `debug.print`; without one a function is given that takes it.
        *args: Values for its places.
        ordered: Whether such calls keep the order in which they stand in the program.
        partitioned: Of no effect here: a program logs once, whole values. In JAX each device of
            a split program logs its own part.
        skip_format_check: Whether values without a place in the format are let pass.
        **kwargs: Values for its places, by name.

    Returns:
        None; without a format, a function.

    >>> import logging, sys
    >>> logger = logging.getLogger("calque.debugging")
    >>> handler = logging.StreamHandler(sys.stdout)
    >>> logger.addHandler(handler)
    >>> logger.setLevel(logging.INFO)
    >>> jax.debug.log("x = {x}", x=2)
    x = 2
    >>> logger.removeHandler(handler)
    >>> logger.setLevel(logging.NOTSET)"""

    def call(fmt: str, /, *args: Any, **kwargs: Any) -> None:
        frame = user_frame()
        file, line = (frame.f_code.co_filename, frame.f_lineno) if frame else ("", 0)
        name = logger("debugging").name
        record = logging.LogRecord(name, logging.INFO, file, line, "", (), None)
        _bind_print(fmt, args, kwargs, (ordered, partitioned, skip_format_check), record)

    return _in_one_call_or_two("debug_log", "format", call, fmt, args, kwargs)


def _bind_print(
    fmt: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    options: tuple[bool, bool, bool],
    record: logging.LogRecord | None,
) -> None:
    ordered, partitioned, skip_format_check = options
    try:
        (_Places if skip_format_check else _AllPlaces)().format(fmt, *args, **kwargs)
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
        logging_record=record,
        np_printoptions=tuple(np.get_printoptions().items()),
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

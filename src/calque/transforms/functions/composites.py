"""Calls with a name for other compilers (`composite`), and functions that differ between
platforms, for users."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from calque.core import backends, errors, pytrees
from calque.core.avals import ShapedArray
from calque.core.config import config
from calque.core.primitives import NotApplicable, Primitive
from calque.core.trace import trace_to_jaxpr, typeof
from calque.core.trace_state import Tracer
from calque.transforms.engines.slices import hoist_all
from calque.transforms.engines.trees import FlatFunction, arrays, name_of, wrapping
from calque.transforms.functions.branches import switch
from calque.transforms.primitives.composites import composite_p

OWN: Final = frozenset(("native", "reference", "xla_cpu"))  # backends that are this CPU


def composite(decomposition: Callable[..., Any], name: str, version: int = 0) -> Callable[..., Any]:
    """Makes one operation with a name of a function, which other compilers may know by that name.

    Args:
        decomposition: The function. Keyword arguments of calls are attributes of the operation:
            values that are known.
        name: The name, with a dot: "my.tangent".
        version: The version of the operation.

    Returns:
        A function of the same arguments and results.

    >>> tangent = lax.composite(lambda x: lax.sin(x) / lax.cos(x), "my.tangent")
    >>> tangent(0.0)
    Array(0., dtype=float32, weak_type=True)"""

    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, in_tree = pytrees.flatten((args, {}))
        values = arrays(leaves, "composite", decomposition, args, {})
        attributes = []
        for key, value in sorted(kwargs.items()):
            flat, tree = pytrees.flatten(value)
            if any(isinstance(x, Tracer) for x in flat):
                raise errors.UnexpectedTracerError(
                    f"composite {name!r}: the attribute {key} is a traced value. Note: If you are"
                    " passing calque arrays as attributes, use numpy arrays instead."
                )
            attributes.append((key, tuple(flat), tree))
        flat_fun = FlatFunction(functools.partial(decomposition, **kwargs), in_tree, "composite")
        closed = trace_to_jaxpr(flat_fun, [typeof(x) for x in values], name_of(decomposition))
        if any(isinstance(c, Tracer) for c in closed.consts):
            raise errors.UnexpectedTracerError(
                "Found a JAX Tracer as a constant in the decomposition for the composite op"
                f" {name!r}. It is a value that is not known when the program is made: pass it as a"
                " positional argument."
            )
        closed, consts = hoist_all(closed)
        outs = composite_p.bind(
            *consts, *values, name=name, attributes=tuple(attributes), version=version, jaxpr=closed
        )
        return pytrees.unflatten(flat_fun.out_tree, outs)

    return wrapping(call, decomposition)


def platform_dependent(
    *args: Any, default: Callable[..., Any] | None = None, **per_platform: Callable[..., Any]
) -> Any:
    """Calls the function for the platform that the program runs on.

    A program that is exported for several platforms has all of their functions, and chooses when
    it runs.

    Args:
        *args: The arguments of the function.
        default: The function for other platforms; None refuses them.
        **per_platform: Functions by the name of the platform: "cpu", "cuda", "rocm" or "tpu".

    Returns:
        What the function returns.

    >>> lax.platform_dependent(2.0, cpu=lambda x: x * 2, default=lambda x: x * 3)
    4.0"""
    for what, fun in (*per_platform.items(), ("default", default)):
        if fun is not None and not callable(fun):
            raise TypeError(f"platform_dependent: {what} must be a function, got {fun!r}")
    platforms = config.exporting_for or (platform_here(),)
    chosen = []
    for name in platforms:
        fun = per_platform.get(name, default)
        if fun is None:
            raise NotImplementedError(
                f"platform_dependent: translation rule (function) not found for platform {name},"
                f" there is one for {', '.join(per_platform) or 'no platform'}: give one with"
                f" {name}=, or default="
            )
        chosen.append(fun)
    if all(fun is chosen[0] for fun in chosen):
        return chosen[0](*args)
    return switch(platform_index_p.bind(platforms=platforms), chosen, *args)


def platform_here() -> str:
    """The platform of programs that are placed nowhere."""
    return platform_of_engine(backends.known.chosen)


def platform_of_engine(name: str) -> str:
    """The platform of the devices of an engine."""
    return "cpu" if name in OWN else name


def _index_of_cpu(*, platforms: Sequence[str]) -> Any:
    return np.int32(platforms.index("cpu") if "cpu" in platforms else 0)


platform_index_p = Primitive(
    "platform_index",
    meaning=_index_of_cpu,
    shape=lambda **_: ShapedArray((), np.dtype("int32")),
    jvp=NotApplicable("platform_index: it has no operands"),
    transpose=NotApplicable("platform_index: it is no linear function"),
    batch=NotApplicable("platform_index: it has no operands"),
)

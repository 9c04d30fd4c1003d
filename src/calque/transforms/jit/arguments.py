"""The arguments of a call of a jitted function, and what may be one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from calque.core import pytrees
from calque.core.arrays import ArrayImpl
from calque.core.avals import ShapedArray
from calque.core.config import config
from calque.core.dtypes import PYTHON_SCALARS
from calque.core.key_paths import keystr
from calque.core.trace import HIGH_TYPES, placed_typeof, typeof
from calque.core.trace_state import Tracer
from calque.transforms.devices.mesh import meshes_here
from calque.transforms.engines import axes
from calque.transforms.engines.signatures import ArgumentNames, describe_function
from calque.transforms.primitives.high_values import HighValues, any_among


class Called(Protocol):
    """What the arguments must know of the function that is called."""

    fun: Callable[..., Any]
    name: str

    def split(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[list[Any], dict[str, Any], tuple[Any, ...]]: ...


class CallArguments:
    """The arguments of one call, and under which key its program is found."""

    __slots__ = (
        "args",
        "avals",
        "dynamic",
        "in_tree",
        "key",
        "kwargs",
        "leaves",
        "named",
        "rest",
        "settings",
        "statics",
    )

    def __init__(self, function: Called, args: tuple[Any, ...], kwargs: dict[str, Any]):
        self.args, self.kwargs = args, kwargs
        self.dynamic, self.named, self.statics = function.split(args, kwargs)
        self.leaves, self.in_tree = pytrees.flatten((self.dynamic, self.named))
        if HIGH_TYPES and any_among(self.leaves):
            raise HighValues
        self.avals = tuple([leaf_aval(x, function, self.dynamic, self.named) for x in self.leaves])
        self.settings = config.trace_key()
        self.rest = (
            self.in_tree,
            self.statics,
            self.settings,
            axes.in_scope(),
            meshes_here(),
        )
        self.key = (self.avals, self.rest)

    @property
    def family_key(self) -> tuple[Any, ...]:
        """All but the sizes."""
        return (self.rest, *[(a.ndim, a.dtype, a.weak_type) for a in self.avals])

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple([n for a in self.avals for n in a.shape])


def leaf_aval(
    x: Any, function: Called, dynamic: Sequence[Any], named: dict[str, Any]
) -> ShapedArray:
    aval = getattr(x, "aval", None)
    if aval is not None:
        return placed_typeof(x) if type(x) is ArrayImpl and x._extra is not None else aval
    if hasattr(x, "__jax_array__"):
        raise ValueError(
            "Triggering __jax_array__() during abstractification is no longer supported: the"
            f" argument of type {type(x)} of the jitted function {function.name} is no array. Give"
            " it as calque.numpy.asarray(x), or register its class as a pytree."
        )
    try:
        return typeof(x)
    except OverflowError as e:
        raise OverflowError(
            "An overflow was encountered while parsing an argument to a jitted computation,"
            f" {describe_function(function.fun, function.name)}, whose argument path is"
            f" {_path(x, function, dynamic, named)}. {e}"
        ) from None
    except TypeError:
        raise TypeError(
            f"Error interpreting argument to {describe_function(function.fun, function.name)} as an"
            f" abstract array. The problematic value is of type {type(x)} and was passed to the"
            f" function at path {_path(x, function, dynamic, named)}. Its value is {x!r}: pass an"
            " array or a number, or make the argument static with static_argnums or"
            " static_argnames."
        ) from None


def _path(x: Any, function: Called, dynamic: Sequence[Any], named: dict[str, Any]) -> str:
    """Where a leaf stands in the arguments."""
    leaves = pytrees.leaves((dynamic, named))
    at = next(i for i, v in enumerate(leaves) if v is x)
    return ArgumentNames(function.fun, dynamic, named)[at]


def check_result(x: Any, fun: Callable[..., Any], name: str, out: Any) -> None:
    """Refuse a leaf of what a function returned that is no array."""
    if HIGH_TYPES and any_among([x]):
        raise HighValues
    if isinstance(x, (ArrayImpl, Tracer, np.ndarray, np.generic, *PYTHON_SCALARS)) or hasattr(
        x, "aval"
    ):
        return
    try:
        typeof(x)
    except TypeError:
        raise TypeError(
            f"function {describe_function(fun, name)} returned a value of type {type(x)}"
            f"{_component(x, out)}, which is not a valid calque type: a jitted function returns"
            " arrays, numbers, and containers of them."
        ) from None


def _component(x: Any, out: Any) -> str:
    """Where a leaf stands in a result."""
    path = next(p for p, leaf in pytrees.flatten_with_path(out)[0] if leaf is x)
    return f" at output component {keystr(path)}" if path else ""

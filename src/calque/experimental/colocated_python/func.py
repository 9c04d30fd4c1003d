"""Functions that run beside the devices of their arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from calque.core import pytrees
from calque.core.arrays import to_array
from calque.core.devices import Device
from calque.core.trace_state import Tracer
from calque.transforms.devices.sharding_arrays import device_put
from calque.transforms.engines.signatures import check_callable
from calque.transforms.engines.trees import name_of
from calque.transforms.functions.shapes import ShapeDtypeStruct


class Specialization(NamedTuple):
    """What is known of the calls of a function beforehand."""

    in_specs: Any = None  # a pair (args, kwargs) of trees of types
    out_specs_fn: Callable[..., Any] | None = None
    devices: tuple[Device, ...] | None = None

    def refined(self, **new: Any) -> Specialization:
        """With more that is known; nothing may be said twice."""
        given = {k: v for k, v in new.items() if v is not None}
        for name in given:
            if getattr(self, name) is not None:
                raise ValueError(f"{name} already specified")
        return self._replace(**given)


class ColocatedFunction:
    """A function that is called beside the devices of its arguments: at once, in this process."""

    def __init__(self, fun: Callable[..., Any], known: Specialization) -> None:
        functools.update_wrapper(self, fun)
        self._fun, self._known = fun, known

    def specialize(
        self,
        in_specs: Any = None,
        out_specs_fn: Callable[..., Any] | None = None,
        devices: Sequence[Device] | None = None,
    ) -> ColocatedFunction:
        """The same function, of which more is known.

        Args:
            in_specs: The types of the arguments: a pair of a tuple and a dict of them.
            out_specs_fn: Gives the types of the results for those of the arguments.
            devices: Where it runs; needed for a function without arguments.

        Returns:
            A function of the same kind. Calls that do not fit are errors."""
        where = None if devices is None else tuple(devices)
        known = self._known.refined(in_specs=in_specs, out_specs_fn=out_specs_fn, devices=where)
        return ColocatedFunction(self._fun, known)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The result of the function, whose leaves are arrays."""
        leaves, tree = pytrees.flatten((args, kwargs))
        name = name_of(self._fun)
        if any(isinstance(x, Tracer) for x in leaves):
            raise ValueError(
                f"the colocated function {name} runs as plain Python and takes no traced values:"
                " call it outside of jit, or use calque.pure_callback"
            )
        if not leaves and self._known.devices is None:
            raise ValueError(
                f"No devices found. The colocated function {name} has no arguments here: say where"
                " it runs with specialize(devices=...)"
            )
        specs = pytrees.unflatten(tree, [ShapeDtypeStruct.like(to_array(x)) for x in leaves])
        if self._known.in_specs is not None:
            _check("arguments", name, specs, self._known.in_specs)
        out = pytrees.tree_map(to_array, self._fun(*args, **kwargs))
        if self._known.out_specs_fn is not None:
            expected = self._known.out_specs_fn(*specs[0], **specs[1])
            _check("results", name, pytrees.tree_map(ShapeDtypeStruct.like, out), expected)
            out = pytrees.tree_map(_placed, out, expected)
        return out


def _placed(x: Any, spec: Any) -> Any:
    return x if spec.sharding is None else device_put(x, spec.sharding)


def _check(what: str, name: str, got: Any, expected: Any) -> None:
    found, tree = pytrees.flatten(got)
    wanted, wanted_tree = pytrees.flatten(expected)
    if tree != wanted_tree:
        raise ValueError(f"the {what} of {name} are {tree}, its specialization says {wanted_tree}")
    for a, b in zip(found, wanted):
        if a.shape != tuple(b.shape) or a.dtype != b.dtype:
            raise ValueError(
                f"one of the {what} of {name} is {a.dtype.name}{list(a.shape)}, its specialization"
                f" says {b.dtype.name}{list(b.shape)}"
            )


def colocated_python(fun: Callable[..., Any]) -> ColocatedFunction:
    """Makes a function one that runs beside the devices of its arguments, as plain Python.

    Args:
        fun: A function of arrays that gives arrays.

    Returns:
        The function, with a method `specialize` that says more of its calls.

    >>> from calque.experimental import colocated_python
    >>> @colocated_python.colocated_python
    ... def double(x):
    ...     return 2 * x
    >>> double(jnp.arange(3))
    Array([0, 2, 4], dtype=int32)"""
    check_callable(fun, "colocated_python")
    return ColocatedFunction(fun, Specialization())

"""Casts between the ways in which a value inside `shard_map` can relate to a manual axis.

A value varies along the axis, is the same for all members (invariant), has still to be added over
them (unreduced), or is the same for all while its cotangent has to be added (reduced). Casts change
what is known of the value, and do nothing to it; their transposes are casts and sums the other way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from calque.core import pytrees
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.ops.common import operand, scalar_of
from calque.transforms.devices.collectives import gathered, movement, scattered
from calque.transforms.devices.mesh import ambient_mesh
from calque.transforms.devices.types import mat_of
from calque.transforms.devices.variance import Names, linear_collective, pvary_p, summed, variance
from calque.transforms.engines import axes
from calque.transforms.engines.axes import Axis, names_of

_INT = np.dtype("int32")


def _kept(x: Any, d: int | None, axis: Axis) -> tuple[Any, int | None]:
    return x, d


preduced_p = linear_collective("preduced", "unreduced_psum", _kept, "reduced")
unreduced_psum_p = linear_collective("unreduced_psum", "preduced", summed, None)
vary_unreduced_cast_p = linear_collective(
    "vary_unreduced_cast", "reduced_vary_cast", _kept, "unreduced"
)
reduced_vary_cast_p = linear_collective(
    "reduced_vary_cast", "vary_unreduced_cast", _kept, "varying"
)


def _own_part(ct: Any, *, all_gather_dimension: int, axis_name: Any, tiled: bool, **_: Any) -> Any:
    """The transpose of a gathering whose result is the same for all: each takes its own part."""
    (name,) = names_of(axis_name)
    k, shape = all_gather_dimension, list(typeof(ct).shape)
    n = axes.find(name).axis.size
    own = do.axis_index(axis_name=name)
    size = shape[k] // n if tiled else 1
    start: list[Any] = [scalar_of(_INT, 0)] * len(shape)
    start[k] = do.mul(own, scalar_of(_INT, size))
    sizes = (*shape[:k], size, *shape[k + 1 :])
    part = do.dynamic_slice(cast_from_invariant(ct, (name,)), *start, slice_sizes=sizes)
    return part if tiled else do.squeeze(part, dimensions=(k,))


def _scattered_sum(ct: Any, *, all_gather_dimension: int, **params: Any) -> Any:
    return unreduced_reduce_scatter_p.bind(
        ct, scatter_dimension=all_gather_dimension, **_without_groups(params)
    )


def _gathered_reduced(ct: Any, *, scatter_dimension: int, **params: Any) -> Any:
    return all_gather_reduced_p.bind(
        ct, all_gather_dimension=scatter_dimension, **_without_groups(params)
    )


def _without_groups(params: dict[str, Any]) -> dict[str, Any]:
    return {k: params[k] for k in ("axis_name", "axis_size", "tiled")}


all_gather_invariant_p = movement(
    "all_gather_invariant", *gathered, transpose=_own_part, becomes=None
)
all_gather_reduced_p = movement(
    "all_gather_reduced", *gathered, transpose=_scattered_sum, becomes="reduced"
)
unreduced_reduce_scatter_p = movement(
    "unreduced_reduce_scatter", *scattered, transpose=_gathered_reduced, becomes="varying"
)


# ---------------------------------------------------------------- what is known of a value


def relation(x: Any, name: Any) -> str:
    """How a value relates to a checked axis: invarying, varying, unreduced or reduced."""
    mat = mat_of(typeof(x))
    for kind in ("varying", "unreduced", "reduced"):
        if name in getattr(mat, kind):
            return kind
    known = variance(x)
    return "varying" if known is not None and name in known else "invarying"


def relation_of_all(x: Any, names: Sequence[Any], what: str) -> str:
    """How a value relates to these axes: to all in the same way."""
    found = {relation(x, n) for n in names}
    if len(found) > 1:
        raise ValueError(
            f"{what} can only accept axis_name which corresponds to one of varying, unreduced,"
            f" reduced or invarying state of the input. Got input type: {typeof(x).str_short()},"
            f" axes: {tuple(names)} and input state: {found}"
        )
    return found.pop() if found else "invarying"


def checked_names(names: Sequence[Any], what: str = "the collective") -> tuple[Any, ...]:
    """Those of these axes along which it is known what varies."""
    return tuple(n for n in names if not isinstance(n, int) and axes.find(n, what).axis.checked)


def cast_from_invariant(x: Any, names: Names) -> Any:
    """A value that is the same for all, as one that varies."""
    known = checked_names(names)
    return pvary_p.bind(x, axes=known) if known else x


# ---------------------------------------------------------------- for users

_CASTS: Final = {
    ("invarying", "varying"): pvary_p,
    ("invarying", "reduced"): preduced_p,
    ("varying", "unreduced"): vary_unreduced_cast_p,
    ("reduced", "varying"): reduced_vary_cast_p,
}
_TO: Final = ("unreduced", "reduced", "varying")


def pcast(x: Any, axis_name: Any, *, to: str) -> Any:
    """Changes what values are to a mapped axis of `shard_map`.

    `psum` makes values that vary the same everywhere, and adds up unreduced ones.

    Args:
        x: A tree of arrays.
        axis_name: The name of a mapped axis, or a tuple of names.
        to: "varying" (each member may have its own value, and a gradient of its own), "reduced" or
            "unreduced".

    Returns:
        The same values.

    >>> f = lambda x: lax.psum(lax.pcast(x, "x", to="varying"), "x")
    >>> mesh = jax.make_mesh((1,), ("x",))
    >>> jax.shard_map(f, mesh=mesh, in_specs=jax.P(), out_specs=jax.P())(1.0)
    Array(1., dtype=float32)"""
    if isinstance(axis_name, (set, frozenset)):
        raise TypeError(f"axis_name={axis_name} must be a tuple or a str. Got {axis_name}")
    if to not in _TO:
        raise ValueError(
            f"Got unexpected `to` value. Allowed `to` values are: {set(_TO)}, got to={to!r}"
        )
    of_size_one = ambient_mesh().shape
    given = [n for n in names_of(axis_name) if n not in axes.names_in_scope()]
    if given and all(of_size_one.get(n) == 1 for n in given):
        return x  # along a mesh axis of one member there is nothing to tell
    if given and all(n in of_size_one for n in given) and not ambient_mesh().manual_axes:
        raise ValueError(
            f"pvary should be called under jax.shard_map: nothing varies along {given} here"
        )
    names = checked_names(names_of(axis_name), "pcast")

    def one(leaf: Any) -> Any:
        value = operand(leaf)
        if not names:
            return value
        before = relation_of_all(value, names, "jax.lax.pcast")
        cast = _CASTS.get((before, to))
        if cast is None:
            if before == to == "varying":
                return value
            raise ValueError(f"Unsupported pcast from={before}, to={to!r}")
        return cast.bind(value, axes=names)

    return pytrees.tree_map(one, x)


def pvary(x: Any, axis_name: Any) -> Any:
    """`x`, a tree, as values that vary along the axis: each member may then have a gradient of its
    own."""
    names = checked_names(names_of(axis_name))

    def one(leaf: Any) -> Any:
        value = operand(leaf)
        missing = tuple(n for n in names if relation(value, n) != "varying")
        return pvary_p.bind(value, axes=missing) if missing else value

    return pytrees.tree_map(one, x)


def gathered_as(x: Any, names: Sequence[Any], k: int, tiled: bool, to: str) -> Any:
    """What all members have, as a value that is invariant or reduced."""
    primitive = {"invarying": all_gather_invariant_p, "reduced": all_gather_reduced_p}[to]
    known = checked_names(names)
    if to == "reduced" and relation_of_all(x, known, "jax.lax.all_gather") != "varying":
        raise ValueError(
            "all_gather_reduced is a Varying -> Reduced collective. This means that the"
            f" axis_name={tuple(names)} passed to `all_gather_reduced` must be present in"
            f" jax.typeof(x).mat.varying={set(mat_of(typeof(x)).varying)}"
        )
    shape = typeof(x).shape
    for name in reversed(names):  # as new dimensions, the last axis first
        x = primitive.bind(
            cast_from_invariant(x, (name,)) if relation(x, name) == "invarying" else x,
            all_gather_dimension=k,
            axis_name=(name,),
            axis_size=axes.find(name).axis.size,
            tiled=False,
        )
    n = axes.size_of(tuple(names))
    joined = (*shape[:k], n * shape[k], *shape[k + 1 :]) if tiled else (*shape[:k], n, *shape[k:])
    return x if typeof(x).shape == joined else do.reshape(x, new_sizes=joined)

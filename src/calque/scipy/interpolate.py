"""Interpolation on grids."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from calque import numpy as jnp
from calque.core import guards as _guards
from calque.core.arrays import Array
from calque.core.dtypes import canonicalize
from calque.core.types import ArrayLike
from calque.numpy.promotion import array_of, arrays, promote_inexact
from calque.tree_util import register_pytree_node_class

__all__ = ["RegularGridInterpolator"]

_METHODS = ("linear", "nearest")


@register_pytree_node_class
class RegularGridInterpolator:
    """A function between samples on a rectangular grid.

    Args:
        points: the coordinates along each axis, rising or falling.
        values: the samples; further axes make a function with values of more than one number.
        method: "linear" or "nearest".
        bounds_error: whether a point off the grid is an error, which needs known points.
        fill_value: the value off the grid; None extrapolates.

    >>> grid = (jnp.array([0.0, 1.0]), jnp.array([0.0, 1.0]))
    >>> f = scipy.interpolate.RegularGridInterpolator(grid, jnp.array([[0.0, 1.0], [2.0, 3.0]]))
    >>> f(jnp.array([[0.5, 0.5]]))
    Array([1.5], dtype=float32)"""

    def __init__(
        self,
        points: Sequence[Any],
        values: ArrayLike,
        method: str = "linear",
        bounds_error: bool = False,
        fill_value: Any = np.nan,
    ):
        self.method = _checked(method)
        self.bounds_error = bounds_error
        if bounds_error:
            raise NotImplementedError(
                "RegularGridInterpolator: bounds_error=True cannot raise inside compiled code; use"
                " fill_value"
            )
        values = array_of("RegularGridInterpolator", values)
        grid = tuple(arrays("RegularGridInterpolator", *points))
        if len(grid) > values.ndim:
            raise ValueError(
                f"RegularGridInterpolator: there are {len(grid)} point arrays, but values has"
                f" {values.ndim} dimensions"
            )
        for i, (g, n) in enumerate(zip(grid, values.shape)):
            if g.shape != (n,):
                raise ValueError(
                    f"RegularGridInterpolator: points {i} have shape {g.shape}, but values has {n}"
                    " along that axis"
                )
            if n < 2:
                raise ValueError(f"RegularGridInterpolator: points {i} must be at least 2, got {n}")
        self.grid = grid
        (values,) = promote_inexact(values)
        self.values = jnp.asarray(values)
        self.fill_value = None if fill_value is None else self._fill(fill_value)

    def _fill(self, fill_value: Any) -> Any:
        fill = array_of("RegularGridInterpolator", fill_value)
        if not jnp.can_cast(fill.dtype, self.values.dtype, casting="same_kind"):
            raise ValueError(
                "RegularGridInterpolator: fill_value must be either 'None' or of a type compatible"
                f" with values; got {fill.dtype.name} for {self.values.dtype.name}"
            )
        return fill

    def tree_flatten(self) -> tuple[Any, Any]:
        """The arrays of the function, as `tree.flatten` asks for them.

        Returns:
            A pair: the arrays, and what is no array."""
        return (self.grid, self.values, self.fill_value), (self.method, self.bounds_error)

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Sequence[Any]) -> "RegularGridInterpolator":
        """A function of arrays, as `tree.unflatten` asks for it.

        Args:
            aux: what is no array.
            children: the arrays.
        Returns:
            A function."""
        out = object.__new__(cls)
        out.method, out.bounds_error = aux
        out.grid, out.values, out.fill_value = children
        return out

    def __call__(self, xi: ArrayLike, method: str | None = None) -> Array:
        """The values at points: an array whose last axis has their coordinates, or a tuple of
        coordinate arrays."""
        method = self.method if method is None else _checked(method)
        n = len(self.grid)
        points = _coordinates(xi, n)
        if points.shape[-1] != n:
            raise ValueError(
                "RegularGridInterpolator: the requested sample points xi have dimension"
                f" {points.shape[-1]}, but this RegularGridInterpolator has dimension {n}"
            )
        flat = jnp.reshape(points, (-1, n)).T
        cells = [_cell(g, x) for g, x in zip(self.grid, flat)]
        result = self._linear(cells) if method == "linear" else self._nearest(cells, flat)
        if self.fill_value is not None:
            off = jnp.zeros(flat.shape[1], bool)
            for g, x in zip(self.grid, flat):
                off = off | (x < jnp.minimum(g[0], g[-1])) | (x > jnp.maximum(g[0], g[-1]))
            result = jnp.where(_beside(off, result), self.fill_value, result)
        return jnp.reshape(result, points.shape[:-1] + self.values.shape[n:])

    def _linear(self, cells: Sequence[tuple[Any, Any]]) -> Any:
        """The corners of each cell, weighted by nearness."""
        out: Any = None
        for corner in itertools.product((0, 1), repeat=len(cells)):
            weight: Any = 1.0
            for side, (_, part) in zip(corner, cells):
                weight = weight * (part if side else 1 - part)
            value = self.values[tuple(i + side for side, (i, _) in zip(corner, cells))]
            term = value * jnp.reshape(weight, (-1,) + (1,) * (value.ndim - 1))
            out = term if out is None else out + term
        return out

    def _nearest(self, cells: Sequence[tuple[Any, Any]], flat: Any) -> Any:
        """In the middle the sample at the smaller coordinate; nothing is near to nan."""
        places = tuple(
            i + jnp.where(_falls(g), part >= 0.5, part > 0.5)
            for g, (i, part) in zip(self.grid, cells)
        )
        result = self.values[places]
        unknown = jnp.any(jnp.isnan(flat), axis=0)
        return jnp.where(_beside(unknown, result), np.nan, result)


def _beside(flags: Any, values: Any) -> Any:
    """A flag for each point, in a shape that meets the values there."""
    return jnp.reshape(flags, (-1,) + (1,) * (values.ndim - 1))


def _falls(grid: Any) -> Any:
    return grid[-1] < grid[0]


def _checked(method: str) -> str:
    if method not in _METHODS:
        raise ValueError(
            f"RegularGridInterpolator: method {method!r} is not defined; the methods are linear and"
            " nearest"
        )
    return method


def _coordinates(xi: Any, n: int) -> Any:
    """Points as an array whose last axis has the coordinates."""
    if isinstance(xi, tuple) and len(xi) == 1:
        (xi,) = xi
    if isinstance(xi, tuple):
        columns = jnp.broadcast_arrays(*arrays("RegularGridInterpolator", *xi))
        return jnp.stack(columns, axis=-1).astype(canonicalize(float))
    points = array_of("RegularGridInterpolator", xi)
    return jnp.reshape(points, (-1, n)) if points.ndim == 1 else points


def _cell(grid: Any, x: Any) -> tuple[Any, Any]:
    """The interval of the grid in which x lies, the nearest one for points off the grid, and the
    place within it from 0 to 1."""
    sign = jnp.where(_falls(grid), -1.0, 1.0)
    i = jnp.clip(jnp.searchsorted(sign * grid, sign * x) - 1, 0, grid.size - 2)
    return i, (x - grid[i]) / (grid[i + 1] - grid[i])


_guards.guard_public(globals())

"""Images of many dimensions: interpolation between pixels."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final

from calque import numpy as jnp
from calque.core import guards as _guards
from calque.core.arrays import Array
from calque.core.dtypes import is_integer
from calque.core.types import ArrayLike
from calque.numpy.promotion import array_of
from calque.ops.rounding import round as round_half_away

__all__ = ["map_coordinates"]


def _mirrored(index: Any, size: int) -> Any:
    """0 1 2 3 2 1 0 1 ...: the edges are not repeated."""
    period = 2 * (size - 1)
    return jnp.abs((index + size - 1) % period - (size - 1)) if period else jnp.zeros_like(index)


def _reflected(index: Any, size: int) -> Any:
    """0 1 2 3 3 2 1 0 0 ...: the edges are repeated."""
    place = index % (2 * size)
    return jnp.minimum(place, 2 * size - 1 - place)


_MODES: Final[dict[str, Callable[[Any, int], Any]]] = {
    "constant": lambda index, size: index,
    "nearest": lambda index, size: jnp.clip(index, 0, size - 1),
    "wrap": lambda index, size: index % size,
    "mirror": _mirrored,
    "reflect": _reflected,
}


def map_coordinates(
    input: ArrayLike,
    coordinates: Sequence[Any],
    order: int,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
) -> Array:
    """The values of an array between its elements.

    Args:
        input: an array.
        coordinates: fractional positions, an array for each axis.
        order: 0 takes the nearest element, 1 interpolates linearly.
        mode: what lies outside: "constant" is `cval`, "nearest" the outermost element, "wrap" the
            other end, "mirror" and "reflect" a mirror image, without and with the outermost
            element.
        cval: the value outside, for "constant".
    Returns:
        Values in the shape of the coordinates.
    Differs from SciPy:
        Higher orders are refused; "wrap" and "constant" are SciPy's "grid-wrap" and
        "grid-constant".

    >>> scipy.ndimage.map_coordinates(jnp.array([0.0, 10.0]), [jnp.array([0.25])], order=1)
    Array([2.5], dtype=float32)"""
    image = array_of("map_coordinates", input)
    places = [array_of("map_coordinates", c) for c in coordinates]
    if len(places) != image.ndim:
        raise ValueError(
            "map_coordinates: coordinates must be a sequence of length input.ndim, but"
            f" {len(places)} != {image.ndim}"
        )
    if mode not in _MODES:
        raise NotImplementedError(
            f"map_coordinates: mode must be one of {', '.join(_MODES)}, got {mode!r}"
        )
    if order not in (0, 1):
        raise NotImplementedError(f"map_coordinates requires order<=1: 0 or 1, got {order}")
    if not places:
        return image
    corners = [_corners(x, n, order, mode) for x, n in zip(places, image.shape)]
    outside = jnp.asarray(cval, image.dtype) if mode == "constant" else None
    out = sum(_contribution(image, corner, outside) for corner in itertools.product(*corners))
    if is_integer(image.dtype):
        out = _rounded(out)
    return out.astype(image.dtype)


def _rounded(x: Any) -> Any:
    return x if is_integer(x.dtype) else round_half_away(x)


def _corners(x: Any, size: int, order: int, mode: str) -> list[tuple[Any, Any, Any]]:
    """(index, is it inside?, weight) of the pixels along one dimension that count; None where all
    are inside or the weight is 1."""
    if order == 0:
        near = [(_rounded(x).astype("int32"), None)]
    else:
        low = jnp.floor(x)
        part = x - low
        near = [(low.astype("int32"), 1 - part), (low.astype("int32") + 1, part)]
    fix = _MODES[mode]
    return [
        (fix(i, size), (i >= 0) & (i < size) if mode == "constant" else None, w) for i, w in near
    ]


def _contribution(image: Any, corner: Sequence[tuple[Any, Any, Any]], outside: Any) -> Any:
    indices, inside, weights = zip(*corner)
    value = image[tuple(indices)]
    if outside is not None:
        value = jnp.where(jnp.all(jnp.stack(jnp.broadcast_arrays(*inside)), axis=0), value, outside)
    for w in weights:
        value = value if w is None else w * value
    return value


_guards.guard_public(globals())

"""Sizes of windows over an array: padding by name, dilation, how many windows fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from calque.core.dims import as_size, is_found, whole
from calque.core.extents import larger

Pads = tuple[tuple[int, int], ...]


def dilated(size: Any, dilation: int) -> Any:
    """The extent of `size` elements with `dilation - 1` gaps between them."""
    return size if dilation == 1 else (size - 1) * dilation + 1 if size > 0 else 0


def window_count(size: Any, window: Any, stride: int) -> Any:
    """How many windows fit side by side into `size`."""
    if is_found(size):
        return larger(size - window + stride, 0) // stride
    if size < window:
        return 0
    return size - window + 1 if stride == 1 else (size - window) // stride + 1


def padtype_to_pads(
    in_shape: Sequence[int],
    window_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
) -> list[tuple[int, int]]:
    """Gives the padding that a name stands for.

    Args:
        in_shape: The size of each dimension.
        window_shape: The size of a window.
        window_strides: The step from one window to the next.
        padding: "SAME", "SAME_LOWER" or "VALID".

    Returns:
        A list with (before, after) for each dimension.

    >>> lax.padtype_to_pads((5,), (3,), (2,), "SAME")
    [(1, 1)]"""
    name = getattr(padding, "name", padding)
    name = name.upper() if isinstance(name, str) else name
    if name == "VALID":
        return [(0, 0)] * len(in_shape)
    if name not in ("SAME", "SAME_LOWER"):
        raise RuntimeError(
            "Unrecognized padding type: expected 'VALID', 'SAME', or 'SAME_LOWER', got"
            f" {padding!r}."
        )
    out = []
    for given in zip(in_shape, window_shape, window_strides, strict=True):
        size, window, stride = map(as_size, given)
        count = -(-size // stride)
        total = larger((count - 1) * stride + window - size, 0)
        less, more = total // 2, total - total // 2
        out.append((less, more) if name == "SAME" else (more, less))
    return out


def canonical_pads(padding: Any, count: int, name: str) -> Pads:
    """Explicit padding as a tuple of pairs."""
    try:
        pads = tuple([(as_size(low, "padding"), as_size(high, "padding")) for low, high in padding])
    except (TypeError, ValueError):
        raise ValueError(
            f"{name}: padding argument must be 'SAME', 'VALID' or a sequence of (low, high) pairs,"
            f" got {padding}"
        ) from None
    if len(pads) != count:
        raise ValueError(
            f"{name}: padding must have one pair for each of the {count} spatial dimensions, got"
            f" {padding}"
        )
    return pads


def per_dimension(values: Sequence[int] | int | None, count: int, name: str) -> tuple[int, ...]:
    """One positive number for each dimension; None stands for ones."""
    if values is None:
        return (1,) * count
    if isinstance(values, int):
        values = (values,) * count
    out = tuple([whole(v, "padding") for v in values])
    if len(out) != count:
        raise ValueError(f"{name} must be {count} positive integers, got {tuple(values)}")
    if any(v < 1 for v in out):
        raise TypeError(f"{name} must have every element be strictly positive, got {out}")
    return out

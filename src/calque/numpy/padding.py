"""pad, with all the modes of NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from calque.core.arrays import Array, is_concrete
from calque.core.dims import whole
from calque.core.dtypes import is_inexact, is_integer
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.types import ArrayLike
from calque.numpy import reductions
from calque.numpy.averages import median
from calque.numpy.conversions import asarray
from calque.numpy.joining import concatenate
from calque.numpy.moving import flip, section
from calque.numpy.promotion import array_of, broadcast_to, check_arraylike, convert
from calque.numpy.shaping import moveaxis, where
from calque.ops.sizes import places

__all__ = ["pad"]

Pairs = tuple[tuple[int, int], ...]

_OPTIONS: Final = {
    "constant": ("constant_values",),
    "linear_ramp": ("end_values",),
    "maximum": ("stat_length",),
    "mean": ("stat_length",),
    "median": ("stat_length",),
    "minimum": ("stat_length",),
    "reflect": ("reflect_type",),
    "symmetric": ("reflect_type",),
    "edge": (),
    "empty": (),
    "wrap": (),
}


def pad(
    array: ArrayLike, pad_width: Any, mode: str | Callable[..., Any] = "constant", **kwargs: Any
) -> Array:
    """An array with more elements before and after along its axes.

    Args:
        array: an array.
        pad_width: how many: one number, a pair (before, after), a pair for each axis, or a dict of
            axes.
        mode: "constant", "edge" (the outermost element), "wrap" (from the other end), "reflect" and
            "symmetric" (mirrored, without and with the outermost), "linear_ramp", "maximum",
            "minimum", "mean", "median", "empty" (zeros), or a function (line, widths, axis, kwargs)
            that returns the line.
        **kwargs: of the mode: `constant_values`, `end_values` of "linear_ramp", `stat_length` of
            the statistics, `reflect_type` "even" or "odd". Functions get all.
    Returns:
        A larger array of the same dtype.
    Differs from NumPy:
        A function returns its line; it cannot write into it.

    >>> jnp.pad(jnp.array([1, 2]), (1, 2))
    Array([0, 1, 2, 0, 0], dtype=int32)"""
    x = array_of("pad", array)
    widths = _widths(pad_width, x.ndim)
    if callable(mode):
        return _by_function(x, widths, mode, kwargs)
    if mode not in _OPTIONS:
        raise NotImplementedError(
            f"Unimplemented padding mode '{mode}' for np.pad. The modes are"
            f" {', '.join(map(repr, _OPTIONS))}."
        )
    unknown = set(kwargs) - set(_OPTIONS[mode])
    if unknown:
        raise ValueError(f"unsupported keyword arguments for mode '{mode}': {unknown}")
    if any(a == 0 for a in x.shape) and mode not in ("constant", "empty"):
        _check_empty(x, widths, mode)
    out = _MODES[mode](x, widths, **kwargs)
    if x.aval.weak_type and not typeof(out).weak_type and typeof(out).dtype == x.dtype:
        return do.convert_element_type(out, new_dtype=x.dtype, weak_type=True)
    return out


def _check_empty(x: Any, widths: Pairs, mode: str) -> None:
    for k, (n, w) in enumerate(zip(x.shape, widths)):
        if n == 0 and any(w):
            raise ValueError(f"Cannot apply '{mode}' padding to empty axis {k} of shape {x.shape}")


def _pairs(name: str, value: Any, ndim: int) -> list[tuple[Any, Any]]:
    """One value, (both,), (before, after), or a pair for each axis."""
    if isinstance(value, (tuple, list)):
        rows = list(value)
        if rows and all(not isinstance(r, (tuple, list)) and np.ndim(r) == 0 for r in rows):
            if len(rows) == 1:
                return [(rows[0], rows[0])] * ndim
            if len(rows) == 2:
                return [(rows[0], rows[1])] * ndim
        else:
            spread = [tuple(r) * 2 if len(r) == 1 else tuple(r) for r in rows]
            if len(spread) == 1:
                spread = spread * ndim
            if len(spread) == ndim and all(len(r) == 2 for r in spread):
                return spread  # type: ignore[return-value]
        raise ValueError(
            f"jnp.pad: {name} with {ndim=} has unsupported shape: got {value!r}. Valid shapes are"
            f" {(ndim, 2)}, (1, 2), (2,), (1,), or ()."
        )
    a = value if not hasattr(value, "ndim") or value.ndim == 0 else None
    if a is not None:
        return [(a, a)] * ndim
    return _pairs(name, [list(r) if np.ndim(r) else r for r in value], ndim)


def _widths(pad_width: Any, ndim: int) -> Pairs:
    if isinstance(pad_width, dict):
        table = [(0, 0)] * ndim
        for axis, w in pad_width.items():
            table[whole(axis, "pad_width: an axis")] = (
                tuple(w) if isinstance(w, (tuple, list)) else (w, w)
            )
        pad_width = table
    try:
        pairs = tuple(
            (whole(a, "pad_width"), whole(b, "pad_width"))
            for a, b in _pairs("pad_width", pad_width, ndim)
        )
    except TypeError as e:
        raise TypeError(f"`pad_width` must be of integral type: got {pad_width!r}") from e
    if any(w < 0 for p in pairs for w in p):
        raise ValueError(f"index can't contain negative values: pad_width={pad_width!r}")
    return pairs


# ---------------------------------------------------------------- modes that pad with numbers


def _constant(x: Any, widths: Pairs, constant_values: Any = 0) -> Any:
    if not x.ndim:
        return x
    values = _pairs("constant_values", constant_values, x.ndim)
    scalars = [[_value(v, x) for v in pair] for pair in values]
    if all(v is values[0][0] for pair in values for v in pair):
        return do.pad(x, scalars[0][0], padding_config=tuple((a, b, 0) for a, b in widths))
    for k, (pair, (before, after)) in enumerate(zip(scalars, widths)):
        for v, lengths in ((pair[0], (before, 0)), (pair[1], (0, after))):
            if any(lengths):
                config = tuple((*lengths, 0) if i == k else (0, 0, 0) for i in range(x.ndim))
                x = do.pad(x, v, padding_config=config)
    return x


def _value(v: Any, x: Any) -> Any:
    check_arraylike("pad", v)
    v = convert(v, x.dtype)
    if typeof(v).shape:
        raise ValueError(f"jnp.pad: constant values are scalars, got shape {typeof(v).shape}")
    return convert(v, x.dtype, True) if x.aval.weak_type and is_concrete(v) else v


def _ramp(x: Any, widths: Pairs, end_values: Any = 0) -> Any:
    ends = _pairs("end_values", end_values, x.ndim)
    for k, ((before, after), (low, high)) in enumerate(zip(widths, ends)):
        first, last = section(x, k, 0, 1), section(x, k, x.shape[k] - 1, x.shape[k])
        left, right = _line(low, first, before, k), flip(_line(high, last, after, k), k)
        x = concatenate([left, x, right], axis=k)
    return x


def _line(end: Any, edge: Any, n: int, k: int) -> Any:
    """n values from `end` towards the edge, which is not among them."""
    own = edge.dtype
    if not is_inexact(own) or own.itemsize == 1:
        work = np.dtype("float64" if own.itemsize == 8 else "float32")
    else:
        work = own
    a, b = (convert(array_of("pad", v), work) for v in (end, edge))
    t = np.arange(n).reshape(tuple(-1 if i == k else 1 for i in range(edge.ndim))) / max(n, 1)
    t = t.astype(work if work.kind == "f" else np.float32)
    out = a * (1 - t) + b * t
    return convert(do.floor(out) if is_integer(own) else out, own)


def _statistic(fold: Callable[..., Any]) -> Callable[..., Any]:
    def apply(x: Any, widths: Pairs, stat_length: Any = None) -> Any:
        lengths: Any = (
            [(None, None)] * x.ndim
            if stat_length is None
            else _pairs("stat_length", stat_length, x.ndim)
        )
        for k, ((before, after), (left, right)) in enumerate(zip(widths, lengths)):
            n = x.shape[k]
            for v in (left, right):
                if v is not None and whole(v, "stat_length") < 1:
                    raise ValueError(
                        f"stat_length of {whole(v, 'stat_length')} is not supported for"
                        f" mode={fold.__name__}"
                    )
            head = section(x, k, 0, n if left is None else min(whole(left, "stat_length"), n))
            tail = section(x, k, 0 if right is None else max(n - whole(right, "stat_length"), 0), n)
            parts = [
                _repeated(_folded(fold, part, k), k, w)
                for part, w in ((head, before), (tail, after))
            ]
            x = concatenate([parts[0], x, parts[1]], axis=k)
        return x

    return apply


def _folded(fold: Callable[..., Any], part: Any, k: int) -> Any:
    out = fold(part, axis=k, keepdims=True)
    if part.dtype == np.dtype(bool):
        return out != 0
    if out.dtype != part.dtype:
        out = out if is_inexact(part.dtype) else do.round(out, rounding_method=1)
    return convert(out, part.dtype)


def _repeated(x: Any, k: int, n: int) -> Any:
    return broadcast_to(x, tuple(n if i == k else d for i, d in enumerate(x.shape)))


def _edge(x: Any, widths: Pairs) -> Any:
    for k, (before, after) in enumerate(widths):
        n = x.shape[k]
        if before or after:
            x = concatenate(
                [
                    _repeated(section(x, k, 0, 1), k, before),
                    x,
                    _repeated(section(x, k, n - 1, n), k, after),
                ],
                axis=k,
            )
    return x


# ---------------------------------------------------------------- modes that repeat the array


def _taken(x: Any, k: int, at: Any) -> Any:
    return x[(slice(None),) * k + (at.astype(np.int32),)]


def chosen(condition: Any, a: Any, b: Any) -> Any:
    """`where` for places, which NumPy knows unless a size is free."""
    return (
        np.where(condition, a, b) if isinstance(condition, np.ndarray) else where(condition, a, b)
    )


def _wrap(x: Any, widths: Pairs) -> Any:
    for k, (before, after) in enumerate(widths):
        n = x.shape[k]
        if _fits(n, before, after):
            x = _between(section(x, k, n - before, n), x, section(x, k, 0, after), k)
        elif before or after:
            x = _taken(x, k, (places(before + n + after) - before) % n)
    return x


def _fits(n: Any, before: int, after: int) -> bool:
    """Is what is put before and behind so many places a piece of these?"""
    return type(n) is int and before + after > 0 and max(before, after) <= n


def _between(head: Any, x: Any, tail: Any, k: int) -> Any:
    """Pieces of an array, before and behind it."""
    return concatenate([p for p in (head, x, tail) if p.shape[k] or p is x], axis=k)


def _mirror(offset: int) -> Callable[..., Any]:
    """Reflection at the edge (offset 1: the edge itself is not repeated) or beyond it (offset
    0)."""

    def apply(x: Any, widths: Pairs, reflect_type: str = "even") -> Any:
        if reflect_type not in ("even", "odd"):
            raise ValueError(f"reflect_type must be 'even' or 'odd', got {reflect_type!r}")
        for k, (before, after) in enumerate(widths):
            n = x.shape[k]
            if not (before or after):
                continue
            if n == 1 and offset:
                x = _edge(x, tuple((before, after) if i == k else (0, 0) for i in range(x.ndim)))
            elif reflect_type == "even" and _fits(n - offset, before, after):
                head = section(x, k, offset, offset + before)
                tail = section(x, k, n - offset - after, n - offset)
                x = _between(flip(head, k), x, flip(tail, k), k)
            elif reflect_type == "even":
                period = 2 * (n - offset)
                at = (places(before + n + after) - before) % period
                x = _taken(x, k, chosen(at < n, at, period - at - 1 + offset))
            else:
                x = _odd(x, k, before, after, offset)
        return x

    return apply


def _odd(x: Any, k: int, before: int, after: int, offset: int) -> Any:
    """Reflected through the edge point as well, piece by piece."""
    while before > 0 or after > 0:
        n = x.shape[k]
        left, right = min(before, n - offset), min(after, n - offset)
        first, last = section(x, k, 0, 1), section(x, k, n - 1, n)
        head = 2 * first - flip(section(x, k, offset, offset + left), k)
        tail = 2 * last - flip(section(x, k, n - offset - right, n - offset), k)
        x = concatenate([p for p, w in ((head, left), (x, 1), (tail, right)) if w], axis=k)
        before, after = before - left, after - right
    return x


# ---------------------------------------------------------------- modes that are functions


def _by_function(
    x: Any, widths: Pairs, function: Callable[..., Any], kwargs: dict[str, Any]
) -> Any:
    """The function fills the padded lines, axis by axis. It returns the new line, or (given a NumPy
    array) writes into it."""
    x = _constant(x, widths)
    for k, w in enumerate(widths):
        moved = moveaxis(x, k, -1)
        lines = moved.reshape((math.prod(moved.shape[:-1]), moved.shape[-1]))
        rows = [_filled(function, lines[i], w, k, kwargs) for i in range(lines.shape[0])]
        if rows:
            x = moveaxis(concatenate([r[None] for r in rows]).reshape(moved.shape), -1, k)
    return x


def _filled(
    function: Callable[..., Any], line: Any, width: tuple[int, int], k: int, kwargs: dict[str, Any]
) -> Any:
    out = function(line, width, k, kwargs)
    if out is None:
        raise ValueError(
            "jnp.pad: a padding function must return the new line, as arrays are immutable; got"
            " None"
        )
    return convert(asarray(out), line.dtype)


_MODES: Final[dict[str, Callable[..., Any]]] = {
    "constant": _constant,
    "empty": _constant,
    "edge": _edge,
    "wrap": _wrap,
    "reflect": _mirror(1),
    "symmetric": _mirror(0),
    "linear_ramp": _ramp,
    "maximum": _statistic(reductions.max),
    "minimum": _statistic(reductions.min),
    "mean": _statistic(reductions.mean),
    "median": _statistic(median),
}

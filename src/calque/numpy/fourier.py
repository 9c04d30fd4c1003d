"""Fourier transforms over one axis, two or many: what `calque.numpy.fft` is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calque.core.dims import as_size, surely_less
from calque.core.dtypes import canonicalize, complex_of, is_complex, real_part
from calque.numpy import ufuncs
from calque.numpy.conversions import asarray
from calque.numpy.creation import zeros
from calque.numpy.indexing.found_sizes import refuse_empty
from calque.numpy.joining import concatenate
from calque.numpy.moving import section
from calque.numpy.promotion import (
    array_of,
    canonical_axes,
    convert,
    promote_inexact,
)
from calque.numpy.shaping import moveaxis
from calque.ops import fft as lax_fft


def _fitted(x: Any, axis: int, n: int) -> Any:
    """An axis cut, or filled up with zeros, to n."""
    size = x.shape[axis]
    if size > n:
        return section(x, axis, 0, n)
    if size < n:
        return concatenate(
            [x, zeros(tuple(n - size if i == axis else d for i, d in enumerate(x.shape)), x.dtype)],
            axis=axis,
        )
    return x


def scale_of(name: str, norm: str | None, inverse: bool, count: int) -> float:
    """What the unscaled forward, or the 1/n-scaled inverse, transform is multiplied by."""
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(
            f'Invalid norm={norm!r} for {name}; norm should be "backward","ortho" or "forward".'
        )
    if norm in (None, "backward") or not count:
        return 1.0
    if norm == "ortho":
        return float(np.sqrt(count)) if inverse else 1 / float(np.sqrt(count))
    return float(count) if inverse else 1 / count


def _transform(name: str, kind: str, a: Any, sizes: Any, axes: Any, norm: str | None) -> Any:
    """Axes are moved to the end, cut or filled to their sizes, and transformed three at most at a
    time."""
    (x,) = promote_inexact(array_of(name, a))
    x = asarray(x)
    if axes is None and sizes is not None:
        axes = tuple(range(x.ndim - len(sizes), x.ndim))
    dims = (
        canonical_axes(axes, x.ndim)
        if axes is None or len(set(axes)) == len(tuple(axes))
        else _refuse_repeats(name, axes)
    )
    if sizes is not None and len(sizes) != len(dims):
        raise ValueError(
            f"Shape and axes have different lengths: calque.numpy.fft.{name} got"
            f" s={tuple(sizes)} and axes={tuple(dims)}."
        )
    if dims and (x.dtype.itemsize < 4 or x.dtype.kind == "V"):
        x = convert(x, np.dtype("float32"))
    inverse, real = kind.startswith("I"), "RFFT" in kind
    full = [
        as_size(n, "n") if n is not None and n != -1 else x.shape[k]
        for n, k in zip(sizes or [None] * len(dims), dims)
    ]
    if kind == "IRFFT" and dims and (sizes is None or sizes[-1] in (None, -1)):
        full[-1] = 2 * (x.shape[dims[-1]] - 1)
        if type(full[-1]) is int:
            full[-1] = max(full[-1], 0)
        if (
            type(full[-1]) is int
            and full[-1] == 0
            and (sizes is None or not any(surely_less(n, 1) for n in full[:-1]))
        ):
            return _of_no_points(x, dims, full)
    if kind in ("FFT", "IFFT") and sizes is None and 0 in full:
        return convert(x, canonicalize(complex_of(x.dtype)))  # of no points there are none
    if sizes is None and 0 in full[:-1] and not surely_less(full[-1], 1):
        if kind == "IRFFT":
            return _of_no_points(x, dims, full)
        half = [*full[:-1], full[-1] // 2 + 1]
        return convert(_of_no_points(x, dims, half), canonicalize(complex_of(x.dtype)))
    if any(surely_less(n, 1) for n in full):
        raise ValueError(
            f"calque.numpy.fft.{name}: the number of points must be positive, got {tuple(full)}"
            f" for axes {dims} of shape {x.shape}"
        )
    refuse_empty(
        full, ValueError(f"calque.numpy.fft.{name}: the number of points must be positive, got 0")
    )
    if kind == "RFFT" and is_complex(x.dtype):
        raise ValueError(
            f"calque.numpy.fft.{name} only supports real valued inputs, got dtype"
            f" {x.dtype.name}: use"
            " jnp.fft.fft."
        )
    if not real or inverse:
        x = convert(x, canonicalize(complex_of(x.dtype)))
    count = 1
    for n in full:
        count *= n
    scale = scale_of(name, norm, inverse, count)
    if not dims:
        return x
    for n, k in zip(full, dims):
        x = _fitted(x, k, n // 2 + 1 if kind == "IRFFT" and k == dims[-1] else n)
    x = moveaxis(x, dims, tuple(range(-len(dims), 0)))
    x = _on_last(x, kind, full)
    if scale != 1.0:
        x = x * np.asarray(scale, real_part(x.dtype))
    return moveaxis(x, tuple(range(-len(dims), 0)), dims)


def _of_no_points(x: Any, dims: Sequence[int], full: Sequence[int]) -> Any:
    """What one point of a real transform comes back as, when nobody says of how many it was."""
    places = dict(zip(dims, full))
    return zeros(tuple(places.get(k, n) for k, n in enumerate(x.shape)), real_part(x.dtype))


def _refuse_repeats(name: str, axes: Any) -> tuple[int, ...]:
    raise ValueError(
        f"calque.numpy.fft.{name} does not support repeated axes. Got axes {list(axes)}."
    )


def _on_last(x: Any, kind: str, full: Sequence[int]) -> Any:
    """The transform over the last len(full) axes; the real one belongs to the last of them."""
    n = len(full)
    if n <= 3:
        return lax_fft.fft(x, kind, tuple(full))
    plain = "IFFT" if kind.startswith("I") else "FFT"
    head = [_one_axis(plain, -n + i, d) for i, d in enumerate(full[:-3])]

    def tail(v: Any) -> Any:
        return lax_fft.fft(v, kind, tuple(full[-3:]))

    steps = [*head, tail] if kind.startswith("I") else [tail, *head]
    for step in steps:
        x = step(x)
    return x


def _one_axis(kind: str, axis: int, n: int) -> Callable[[Any], Any]:
    return lambda x: moveaxis(lax_fft.fft(moveaxis(x, axis, -1), kind, (n,)), -1, axis)


def over_one(name: str, kind: str) -> Any:
    def transform(
        a: Any, n: int | None = None, axis: int | None = -1, norm: str | None = None
    ) -> Any:
        check_axis(name, axis)
        if n is not None and surely_less(as_size(n, "n"), 1):
            raise ValueError(
                f"calque.numpy.fft.{name}: the number of points n must be positive, got {n}"
            )
        return _transform(
            name, kind, a, None if n is None else (n,), (-1 if axis is None else axis,), norm
        )

    return ufuncs.named(transform, name, module="calque.numpy.fft")


def check_axis(name: str, axis: Any) -> None:
    if isinstance(axis, (tuple, list)):
        raise ValueError(
            f"calque.numpy.fft.{name} does not support multiple axes. Please use"
            f" calque.numpy.fft.{name}n. Got axis = {axis}."
        )


def over_two(name: str, kind: str) -> Any:
    def transform(
        a: Any, s: Any = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
    ) -> Any:
        if len(axes) != 2:
            raise ValueError(f"calque.numpy.fft.{name} only supports 2 axes. Got axes = {axes}.")
        return _transform(name, kind, a, s, axes, norm)

    return ufuncs.named(transform, name, module="calque.numpy.fft")


def over_many(name: str, kind: str) -> Any:
    def transform(
        a: Any, s: Any = None, axes: Sequence[int] | None = None, norm: str | None = None
    ) -> Any:
        return _transform(name, kind, a, s, axes, norm)

    return ufuncs.named(transform, name, module="calque.numpy.fft")

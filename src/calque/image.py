"""Images resampled: resized, scaled and moved."""

import enum
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from calque import numpy as jnp
from calque.core import guards as _guards
from calque.core.arrays import Array
from calque.core.dims import as_size, is_symbolic
from calque.core.types import ArrayLike
from calque.numpy.promotion import array_of, canonical_axis, promote_inexact
from calque.ops.dimension_numbers import Precision

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]


class ResizeMethod(enum.Enum):
    """How pixels between pixels are computed."""

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> "ResizeMethod":
        """Gives the method with a name.

        Args:
            s: The name.

        Returns:
            A ResizeMethod."""
        if s not in _NAMES:
            raise ValueError(f'Unknown resize method "{s}"; the methods are {", ".join(_NAMES)}')
        return _NAMES[s]


_NAMES: Final = {
    "nearest": ResizeMethod.NEAREST,
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), ResizeMethod.LINEAR),
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), ResizeMethod.CUBIC),
    **dict.fromkeys(("cubic-pytorch", "bicubic-pytorch"), ResizeMethod.CUBIC_PYTORCH),
    "area": ResizeMethod.AREA,
}

# --------------------------------------------------- kernels: the weight of a pixel by its distance


def _triangle(x: Any) -> Any:
    return jnp.maximum(0, 1 - x)


def _lanczos(radius: int, x: Any) -> Any:
    """sinc(x) sinc(x / radius) within the radius."""
    near = x <= 1e-3
    safe = jnp.where(near, 1.0, x) * math.pi
    wave = radius * jnp.sin(safe) * jnp.sin(safe / radius) / (safe * safe)
    return jnp.where(near, 1.0, jnp.where(x > radius, 0.0, wave))


def _cubic(a: float, x: Any) -> Any:
    """Keys' cubic convolution kernel with the slope `a` at distance 1."""
    inner = ((a + 2) * x - (a + 3)) * x * x + 1
    outer = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return jnp.where(x >= 2, 0.0, jnp.where(x >= 1, outer, inner))


_KERNELS: Final[dict[ResizeMethod, Callable[[Any], Any]]] = {
    ResizeMethod.LINEAR: _triangle,
    ResizeMethod.LANCZOS3: functools.partial(_lanczos, 3),
    ResizeMethod.LANCZOS5: functools.partial(_lanczos, 5),
    ResizeMethod.CUBIC: functools.partial(_cubic, -0.5),
    ResizeMethod.CUBIC_PYTORCH: functools.partial(_cubic, -0.75),
}
_BEYOND = 2  # pixels past an edge that the kernel of CUBIC_PYTORCH reaches

# --------------------------------------- weights: (input pixels, output pixels) along one dimension


def _weights(
    n_in: int,
    n_out: int,
    scale: Any,
    shift: Any,
    method: ResizeMethod,
    antialias: bool,
    repeat_edges: bool,
) -> Any:
    """How much of each input pixel goes into each output pixel, for out = in * scale + shift;
    columns sum to 1, or 0 outside."""
    dtype = jnp.result_type(scale, shift)
    step = 1.0 / scale
    left = (
        jnp.arange(n_out, dtype=dtype) * step - shift * step
    )  # left edge of the output pixel in input coordinates
    centre = left + 0.5 * step - 0.5
    if method is ResizeMethod.AREA:
        at = jnp.arange(n_in, dtype=dtype)[:, None]
        raw = jnp.maximum(0.0, jnp.minimum(left + step, at + 1) - jnp.maximum(left, at))
    else:
        beyond = _BEYOND if repeat_edges else 0
        at = jnp.arange(-beyond, n_in + beyond, dtype=dtype)[:, None]
        width = jnp.maximum(step, 1.0) if antialias else 1.0
        raw = _KERNELS[method](jnp.abs(centre - at) / width)
        if repeat_edges:
            return _normalised(_edges_gathered(raw, beyond))
    inside = (centre >= -0.5) & (centre <= n_in - 0.5)
    return jnp.where(inside, _normalised(raw), 0.0)


def _edges_gathered(raw: Any, beyond: int) -> Any:
    """The weights of pixels past an edge, added to those of the edge."""
    low, body, high = raw[:beyond], raw[beyond:-beyond], raw[-beyond:]
    return body.at[0].add(jnp.sum(low, axis=0)).at[-1].add(jnp.sum(high, axis=0))


def _normalised(raw: Any) -> Any:
    total = jnp.sum(raw, axis=0, keepdims=True)
    small = jnp.abs(total) <= 1000 * float(np.finfo(np.float32).eps)
    return jnp.where(small, 0.0, raw / jnp.where(small, 1.0, total))


def _resampled(
    image: Any, shape: tuple[int, ...], dims: Sequence[int], scale: Any, shift: Any,
    method: ResizeMethod,
    antialias: bool, precision: Any,
) -> Any:  # fmt: skip
    """Each dimension in turn multiplied by its weights."""
    repeat_edges = method is ResizeMethod.CUBIC_PYTORCH and not antialias
    if method is ResizeMethod.CUBIC_PYTORCH and antialias:
        method = ResizeMethod.CUBIC
    operands: list[Any] = [image, list(range(image.ndim))]
    out = list(range(image.ndim))
    for i, d in enumerate(dims):
        w = _weights(image.shape[d], shape[d], scale[i], shift[i], method, antialias, repeat_edges)
        out[d] = image.ndim + i
        operands += [w.astype(image.dtype), [d, out[d]]]
    return jnp.einsum(*operands, out, precision=precision)


# ---------------------------------------------------------------- public functions


def _shape(name: str, image: Any, shape: Sequence[int]) -> tuple[int, ...]:
    out = tuple(as_size(n, "shape") for n in shape)
    if len(out) != image.ndim:
        raise ValueError(
            f"{name}: shape must have length equal to the number of dimensions of the image: {out}"
            f" vs {image.shape}"
        )
    if any(n < 0 for n in out):
        raise ValueError(f"{name}: sizes must not be negative, got shape {out}")
    return out


def _method(name: str, method: Any) -> ResizeMethod:
    if isinstance(method, ResizeMethod):
        return method
    if not isinstance(method, str):
        raise TypeError(f"{name}: method must be a ResizeMethod or its name, got {method!r}")
    return ResizeMethod.from_string(method)


def scale_and_translate(
    image: ArrayLike,
    shape: Sequence[int],
    spatial_dims: Sequence[int],
    scale: ArrayLike,
    translation: ArrayLike,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = Precision.HIGHEST,
) -> Array:
    """Scales an image, and then moves it, on a canvas of some shape.

    Pixel i covers the interval from i to i + 1. Where there was no image, the result is 0.

    Args:
        image: An array.
        shape: The shape of the result, of as many dimensions.
        spatial_dims: The dimensions along which it is scaled and moved.
        scale: The factor of each of them.
        translation: How far it is moved along each of them, in pixels of the result.
        method: How pixels between others are found: "nearest" (for `resize` only), "linear",
            "cubic", "lanczos3", "lanczos5", ..., or a `ResizeMethod`.
        antialias: Whether the kernel is widened where the image shrinks.
        precision: How exact the products are, as of `lax.dot_general`.

    Returns:
        An array of this shape.

    >>> x, one = jnp.array([1.0, 2.0]), jnp.array([1.0])
    >>> jax.image.scale_and_translate(x, (4,), (0,), one, one, "linear")
    Array([0., 1., 2., 0.], dtype=float32)"""
    (image,) = promote_inexact(array_of("scale_and_translate", image))
    sizes = _shape("scale_and_translate", image, shape)
    chosen = _method("scale_and_translate", method)
    if chosen is ResizeMethod.NEAREST:
        raise ValueError(
            "scale_and_translate: nearest neighbour resampling is only in jax.image.resize"
        )
    scale, translation = (
        jnp.asarray(v) for v in promote_inexact(*map(jnp.asarray, (scale, translation)))
    )
    dims = [canonical_axis(d, image.ndim, "spatial dimension") for d in spatial_dims]
    for what, v in (("scale", scale), ("translation", translation)):
        if v.shape != (len(dims),):
            raise ValueError(
                f"scale_and_translate: {what} must have one number for each of the {len(dims)}"
                f" spatial_dims, got shape {v.shape}"
            )
    if not dims:
        return image
    return _resampled(image, sizes, dims, scale, translation, chosen, antialias, precision)


def resize(
    image: ArrayLike,
    shape: Sequence[int],
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = Precision.HIGHEST,
) -> Array:
    """Gives an image other sizes; every dimension whose size differs is resampled.

    Args:
        image: An array.
        shape: The shape of the result, of as many dimensions.
        method: How pixels between others are found: "nearest" (for `resize` only), "linear",
            "cubic", "lanczos3", "lanczos5", ..., or a `ResizeMethod`.
        antialias: Whether the kernel is widened where the image shrinks.
        precision: How exact the products are, as of `lax.dot_general`.

    Returns:
        An array of this shape.

    >>> jax.image.resize(jnp.array([1.0, 3.0]), (4,), "linear")
    Array([1. , 1.5, 2.5, 3. ], dtype=float32)"""
    image = array_of("resize", image)
    sizes = _shape("resize", image, shape)
    chosen = _method("resize", method)
    dims = [d for d in range(image.ndim) if image.shape[d] != sizes[d]]
    if chosen is ResizeMethod.NEAREST:
        return _nearest(image, sizes, dims)
    (image,) = promote_inexact(image)
    if not dims:
        return image
    scale = [sizes[d] / image.shape[d] if sizes[d] and image.shape[d] else 1.0 for d in dims]
    return _resampled(image, sizes, dims, scale, [0.0] * len(dims), chosen, antialias, precision)


def _nearest(image: Any, shape: tuple[int, ...], dims: Sequence[int]) -> Any:
    """For each output pixel the input pixel that holds its centre."""
    for d in dims:
        sizes = image.shape[d], shape[d]
        lib: Any = jnp if is_symbolic(sizes) else np  # known sizes make constants
        n_in, n_out = (lib.asarray(n, np.float32) for n in sizes)
        at = lib.floor(
            (lib.arange(shape[d], dtype=np.float32) + np.float32(0.5)) * n_in / n_out
        ).astype(np.int32)
        image = jnp.take(image, at, axis=d)
    return image


_guards.guard_public(globals())

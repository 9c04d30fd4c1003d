"""Initial values of parameters: each function makes an initializer, a function of (key, shape,
dtype)."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import numpy as np

from calque import numpy as jnp
from calque.core import guards as _guards
from calque.core.arrays import Array
from calque.core.dtypes import asked, canonicalize, is_complex, real_part
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.types import ArrayLike, DTypeLike, ShapeLike
from calque.numpy.creation import canonical_shape, full
from calque.numpy.creation import ones as ones_of
from calque.numpy.creation import zeros as zeros_of
from calque.numpy.promotion import convert
from calque.numpy.shaping import moveaxis, reshape
from calque.numpy.signatures import OutSharding
from calque.random.distributions import normal as normal_values
from calque.random.distributions import truncated_normal as truncated_values
from calque.random.keys import split
from calque.random.matrices import orthogonal as orthogonal_values
from calque.random.uniform import uniform as uniform_values
from calque.transforms.devices.sharding_arrays import put_as_asked

__all__ = [
    "Initializer", "constant", "delta_orthogonal", "glorot_normal", "glorot_uniform", "he_normal",
    "he_uniform", "kaiming_normal", "kaiming_uniform", "lecun_normal",
    "lecun_uniform", "normal", "ones", "orthogonal", "truncated_normal", "uniform",
    "variance_scaling", "xavier_normal", "xavier_uniform", "zeros",
]  # fmt: skip

Axes = int | Sequence[int]


class Initializer(Protocol):
    """What the functions of this module make: a function of a key and a shape that makes an array.

    Returns:
        A function of (key, shape, dtype=None, out_sharding=None) that makes an array."""

    def __call__(
        self,
        key: ArrayLike,
        shape: ShapeLike,
        dtype: DTypeLike | None = None,
        out_sharding: OutSharding = None,
    ) -> Any: ...


def _dtype(dtype: Any, default: Any) -> Any:
    chosen = default if dtype is None else dtype
    return canonicalize(float) if chosen is None else asked(chosen)


def zeros(
    key: ArrayLike,
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Makes an array of zeros.

    Args:
        key: Not used.
        shape: The shape of the array.
        dtype: The dtype; None means float32 (float64 where 64-bit types are enabled).
        out_sharding: How it is laid out over devices; None leaves it open.

    Returns:
        An array.

    >>> jax.nn.initializers.zeros(jax.random.key(0), (2,))
    Array([0., 0.], dtype=float32)"""
    return zeros_of(shape, _dtype(dtype, None), out_sharding=out_sharding)


def ones(
    key: ArrayLike,
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Makes an array of ones.

    Args:
        key: Not used.
        shape: The shape of the array.
        dtype: The dtype; None means float32 (float64 where 64-bit types are enabled).
        out_sharding: How it is laid out over devices; None leaves it open.

    Returns:
        An array.

    >>> jax.nn.initializers.ones(jax.random.key(0), (2,))
    Array([1., 1.], dtype=float32)"""
    return ones_of(shape, _dtype(dtype, None), out_sharding=out_sharding)


def _initializer(make: Callable[[Any, tuple[int, ...], Any], Any], default: Any) -> Initializer:
    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
        out = make(key, canonical_shape(shape), _dtype(dtype, default))
        return out if out_sharding is None else put_as_asked(out, out_sharding, "an initializer")

    return init


def constant(value: ArrayLike, dtype: DTypeLike | None = None) -> Initializer:
    """Makes an initializer that fills arrays with a value.

    Args:
        value: The value; it broadcasts to the shape.
        dtype: The dtype that is taken where the call gives none; None means float32 (float64 where
            64-bit types are enabled).

    Returns:
        A function of (key, shape, dtype=None, out_sharding=None) that makes an array.

    >>> jax.nn.initializers.constant(-7)(jax.random.key(0), (2,))
    Array([-7., -7.], dtype=float32)"""
    return _initializer(lambda key, shape, d: full(shape, value, d), dtype)


def uniform(scale: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """Makes an initializer that draws numbers evenly from 0 to below a limit.

    Args:
        scale: The limit.
        dtype: The dtype that is taken where the call gives none; None means float32 (float64 where
            64-bit types are enabled).

    Returns:
        A function of (key, shape, dtype=None, out_sharding=None) that makes an array.

    >>> jax.nn.initializers.uniform(10.0)(jax.random.key(0), (2, 3)).shape
    (2, 3)"""
    return _initializer(lambda key, shape, d: _times(uniform_values(key, shape, d), scale), dtype)


def normal(stddev: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """Makes an initializer that draws normal numbers of mean 0.

    Args:
        stddev: Their standard deviation.
        dtype: The dtype that is taken where the call gives none; None means float32 (float64 where
            64-bit types are enabled).

    Returns:
        A function of (key, shape, dtype=None, out_sharding=None) that makes an array.

    >>> jax.nn.initializers.normal(5.0)(jax.random.key(0), (2, 3)).shape
    (2, 3)"""
    return _initializer(lambda key, shape, d: _times(normal_values(key, shape, d), stddev), dtype)


def truncated_normal(
    stddev: ArrayLike = 1e-2,
    dtype: DTypeLike | None = None,
    lower: ArrayLike = -2.0,
    upper: ArrayLike = 2.0,
) -> Initializer:
    """Makes an initializer that draws normal numbers of mean 0, cut to an interval.

    Args:
        stddev: Their standard deviation before they are cut.
        dtype: The dtype that is taken where the call gives none; None means float32 (float64 where
            64-bit types are enabled).
        lower: The lower end, in standard deviations.
        upper: The upper end, in standard deviations.

    Returns:
        A function of (key, shape, dtype=None, out_sharding=None) that makes an array.

    >>> jax.nn.initializers.truncated_normal(5.0)(jax.random.key(0), (2, 3)).shape
    (2, 3)"""
    return _initializer(
        lambda key, shape, d: _times(truncated_values(key, lower, upper, shape, d), stddev), dtype
    )


def _times(x: Any, factor: Any) -> Any:
    return x * convert(factor, typeof(x).dtype)


# ---------------------------------------------------------------- scaled by the size of the layer


def _axes(axes: Axes) -> tuple[int, ...]:
    return (axes,) if isinstance(axes, int) else tuple(axes)


def _fans(
    shape: tuple[int, ...], in_axis: Axes, out_axis: Axes, batch_axis: Axes
) -> tuple[float, float]:
    """How many inputs and outputs each weight has: sizes of the axes, times those of a receptive
    field."""
    if in_axis == -2 and len(shape) <= 1:
        raise ValueError(
            f"Can't compute input and output sizes of a {len(shape)}-dimensional weights tensor"
            " with default in_axis. Must be at least 2D or specify in_axis explicitly."
        )
    sizes = [math.prod(shape[i] for i in _axes(a)) for a in (in_axis, out_axis, batch_axis)]
    field = math.prod(shape) / math.prod(sizes)
    return sizes[0] * field, sizes[1] * field


_MEANS: Final[dict[str, Callable[[float, float], float]]] = {
    "fan_in": lambda a, b: a,
    "fan_out": lambda a, b: b,
    "fan_avg": lambda a, b: (a + b) / 2,
    "fan_geo_avg": lambda a, b: math.sqrt(a * b),
}


def variance_scaling(
    scale: ArrayLike,
    mode: str,
    distribution: str,
    in_axis: Axes = -2,
    out_axis: Axes = -1,
    batch_axis: Axes = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """Makes an initializer whose numbers have the variance scale / n.

    Args:
        scale: The scale, positive.
        mode: What n is: "fan_in" (the inputs of each output), "fan_out" (the outputs of each
            input), "fan_avg" (their mean) or "fan_geo_avg" (their geometric mean).
        distribution: "normal", "truncated_normal" or "uniform".
        in_axis: The axis, or axes, of the inputs.
        out_axis: The axis, or axes, of the outputs.
        batch_axis: The axis, or axes, that count for neither. All others are a receptive field.
        dtype: The dtype that is taken where the call gives none; None means float32 (float64 where
            64-bit types are enabled).

    Returns:
        A function of (key, shape, dtype=None, out_sharding=None) that makes an array.

    >>> init = jax.nn.initializers.variance_scaling(1.0, "fan_avg", "uniform")
    >>> init(jax.random.key(0), (2, 3)).shape
    (2, 3)"""

    def make(key: Any, shape: tuple[int, ...], d: Any) -> Any:
        fans = _fans(shape, in_axis, out_axis, batch_axis)
        if mode not in _MEANS:
            raise ValueError(f"invalid mode for variance scaling initializer: {mode}")
        if distribution not in _DRAWS:
            raise ValueError(
                f"invalid distribution for variance scaling initializer: {distribution}"
            )
        variance = np.asarray(scale / _MEANS[mode](*fans), real_part(d))
        return _DRAWS[distribution](key, shape, d, variance)

    return _initializer(make, dtype)


def _cut_normal(key: Any, shape: tuple[int, ...], d: Any, variance: Any) -> Any:
    if is_complex(d):
        return _times(_in_disc(key, shape, d, 2), np.sqrt(variance) / 0.95311164380491208)
    return _times(
        truncated_values(key, -2, 2, shape, d),
        np.sqrt(variance) / np.asarray(0.87962566103423978, d),
    )


def _even(key: Any, shape: tuple[int, ...], d: Any, variance: Any) -> Any:
    if is_complex(d):
        return _times(_in_disc(key, shape, d, None), np.sqrt(2 * variance))
    return _times(uniform_values(key, shape, d, -1), np.sqrt(3 * variance))


def _in_disc(key: Any, shape: tuple[int, ...], d: Any, cut: float | None) -> Any:
    """Complex values, evenly distributed in the unit disc, or normal ones of variance 1 with
    modulus at most `cut`."""
    first, second = split(key)
    real = real_part(d)
    u = uniform_values(first, shape, real)
    angle = _times(uniform_values(second, shape, real), 2 * np.pi)
    if cut is not None:
        u = -jnp.log(1 - _times(u, 1 - math.exp(-(cut**2))))
    radius = jnp.sqrt(u)
    return do.complex(radius * jnp.cos(angle), radius * jnp.sin(angle))


_DRAWS: Final[dict[str, Callable[..., Any]]] = {
    "truncated_normal": _cut_normal,
    "normal": lambda key, shape, d, variance: _times(
        normal_values(key, shape, d), np.sqrt(variance)
    ),
    "uniform": _even,
}


def _family(name: str, scale: float, mode: str, distribution: str) -> Callable[..., Initializer]:
    def make(
        in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: Any = None
    ) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    make.__name__ = make.__qualname__ = name
    kind = "normal numbers, cut at two deviations," if "normal" in distribution else "even numbers"
    make.__doc__ = f"""Makes an initializer that draws {kind} of variance {scale:g} / {_FANS[mode]}.

    It is `variance_scaling({scale}, {mode!r}, {distribution!r})`.

    Args:
        in_axis: The axis, or axes, of the inputs.
        out_axis: The axis, or axes, of the outputs.
        batch_axis: The axis, or axes, that count for neither. All others are a receptive field.
        dtype: The dtype that is taken where the call gives none; None means float32 (float64
            where 64-bit types are enabled).

    Returns:
        A function of (key, shape, dtype=None, out_sharding=None) that makes an array.

    >>> jax.nn.initializers.{name}()(jax.random.key(0), (2, 3)).shape
    (2, 3)"""
    return make


_FANS: Final = {"fan_in": "inputs", "fan_avg": "mean of inputs and outputs"}
glorot_uniform = xavier_uniform = _family("glorot_uniform", 1.0, "fan_avg", "uniform")
glorot_normal = xavier_normal = _family("glorot_normal", 1.0, "fan_avg", "truncated_normal")
lecun_uniform = _family("lecun_uniform", 1.0, "fan_in", "uniform")
lecun_normal = _family("lecun_normal", 1.0, "fan_in", "truncated_normal")
he_uniform = kaiming_uniform = _family("he_uniform", 2.0, "fan_in", "uniform")
he_normal = kaiming_normal = _family("he_normal", 2.0, "fan_in", "truncated_normal")


# ---------------------------------------------------------------- orthogonal


def orthogonal(
    scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
) -> Initializer:
    """Makes an initializer that draws orthogonal matrices.

    Args:
        scale: What they are multiplied by.
        column_axis: The axis of the columns; all others together are rows. Of the longer side,
            vectors are orthonormal.
        dtype: The dtype that is taken where the call gives none; None means float32 (float64 where
            64-bit types are enabled).

    Returns:
        A function of (key, shape, dtype=None, out_sharding=None) that makes an array.

    >>> jax.nn.initializers.orthogonal()(jax.random.key(0), (2, 3)).shape
    (2, 3)"""

    def make(key: Any, shape: tuple[int, ...], d: Any) -> Any:
        if len(shape) < 2:
            raise ValueError("orthogonal initializer requires at least a 2D shape")
        columns = shape[column_axis]
        rows = math.prod(shape) // columns if columns else 0
        q = orthogonal_values(key, rows, (), d, columns)
        others = [n for i, n in enumerate(shape) if i != column_axis % len(shape)]
        return _times(moveaxis(reshape(q, (*others, columns)), -1, column_axis), scale)

    return _initializer(make, dtype)


def delta_orthogonal(
    scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
) -> Initializer:
    """Makes an initializer of kernels of convolutions: orthogonal in the middle, zero elsewhere.

    Args:
        scale: What they are multiplied by.
        column_axis: The axis of the columns in the middle.
        dtype: The dtype that is taken where the call gives none; None means float32 (float64 where
            64-bit types are enabled).

    Returns:
        A function of (key, shape, dtype=None, out_sharding=None) that makes an array.

    >>> jax.nn.initializers.delta_orthogonal()(jax.random.key(0), (3, 3, 3)).shape
    (3, 3, 3)"""

    def make(key: Any, shape: tuple[int, ...], d: Any) -> Any:
        if len(shape) not in (3, 4, 5):
            raise ValueError("Delta orthogonal initializer requires a 3D, 4D or 5D shape.")
        if shape[-1] < shape[-2]:
            raise ValueError("`fan_in` must be less or equal than `fan_out`. ")
        middle = orthogonal(scale, column_axis, d)(key, shape[-2:])
        before = [(k - 1) // 2 for k in shape[:-2]]
        padding = [(b, k - 1 - b, 0) for b, k in zip(before, shape[:-2])]
        one = reshape(middle, (1,) * len(padding) + shape[-2:])
        return do.pad(one, np.zeros((), d), padding_config=(*padding, (0, 0, 0), (0, 0, 0)))

    return _initializer(make, dtype)


_guards.guard_public(globals())

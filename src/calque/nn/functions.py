"""Activation functions, as compositions of library functions: under jit each is one kernel."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from calque import numpy as jnp
from calque.core.arrays import Array, to_array
from calque.core.dims import as_size, surely_less
from calque.core.dtypes import asked, canonicalize, is_inexact, is_integer
from calque.core.trace import typeof
from calque.core.trace_state import Tracer
from calque.core.types import ArrayLike, DTypeLike
from calque.numpy.promotion import (
    as_operand,
    canonical_axis,
    check_arraylike,
    convert,
    promote_inexact,
)
from calque.ops.math import logistic
from calque.ops.special import erfc
from calque.transforms.functions.custom_jvp import custom_jvp

__all__ = [
    "celu", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh",
    "identity", "leaky_relu", "log1mexp", "log_sigmoid",
    "mish", "one_hot", "relu", "relu6", "selu", "sigmoid", "silu", "soft_sign", "softplus",
    "sparse_plus", "sparse_sigmoid", "squareplus",
    "swish", "tanh",
]  # fmt: skip


def operand(name: str, x: ArrayLike) -> Array:
    check_arraylike(name, x)
    return to_array(as_operand(x))


def inexact(name: str, x: ArrayLike) -> Array:
    check_arraylike(name, x)
    return to_array(promote_inexact(as_operand(x))[0])


def scaled(x: Array, factor: float) -> Array:
    """x times a number of its own dtype."""
    return x * np.asarray(factor).astype(typeof(x).dtype)


def _with_slope(f: Callable[[Any], Any], slope: Callable[[Any, Any], Any]) -> Any:
    """A function of one array whose derivative is `slope(x, t)`, also where the formula of `f` has
    none."""
    g = custom_jvp(f)
    g.defjvp(lambda primals, tangents: (g(*primals), slope(*primals, *tangents)))
    return g


def _nothing(t: Any) -> Any:
    return np.zeros((), typeof(t).dtype)


_relu = _with_slope(lambda x: jnp.maximum(x, 0), lambda x, t: jnp.where(x > 0, t, _nothing(t)))
_relu6 = _with_slope(
    lambda x: jnp.minimum(jnp.maximum(x, 0), 6.0),
    lambda x, t: jnp.where((x > 0) & (x < 6), t, _nothing(t)),
)


def relu(x: ArrayLike) -> Array:
    """The rectifier: max(x, 0). Its derivative at 0 is 0.

    Args:
        x: Numbers.

    Returns:
        An array of the shape of `x`.

    >>> jax.nn.relu(jnp.array([-1.0, 0.0, 2.0]))
    Array([0., 0., 2.], dtype=float32)"""
    return _relu(operand("relu", x))


def relu6(x: ArrayLike) -> Array:
    """The rectifier with an upper limit: min(max(x, 0), 6). Its derivative at 0 and 6 is 0.

    Args:
        x: Numbers.

    Returns:
        An array of the shape of `x`.

    >>> jax.nn.relu6(jnp.array([-1.0, 2.0, 8.0]))
    Array([0., 2., 6.], dtype=float32)"""
    return _relu6(operand("relu6", x))


def sigmoid(x: ArrayLike) -> Array:
    """The sigmoid function: 1 / (1 + exp(-x)).

    Args:
        x: Numbers; integers become floats.

    Returns:
        An array of the shape of `x`.

    >>> jax.nn.sigmoid(jnp.array([0.0, 100.0]))
    Array([0.5, 1. ], dtype=float32)"""
    return logistic(operand("sigmoid", x))


def softplus(x: ArrayLike) -> Array:
    """A smooth rectifier: log(1 + exp(x)).

    Args:
        x: Numbers; integers become floats.

    Returns:
        An array of the shape of `x`.

    >>> jax.nn.softplus(jnp.array([0.0, 100.0]))
    Array([  0.69314..., 100.       ], dtype=float32)"""
    return jnp.logaddexp(operand("softplus", x), 0)


def sparse_plus(x: ArrayLike) -> Array:
    """A smooth rectifier that is 0 up to -1, (x + 1)**2 / 4 up to 1, and x beyond.

    Args:
        x: Numbers; integers become floats.

    Returns:
        An array of the shape of `x`.

    >>> jax.nn.sparse_plus(jnp.array([-1.0, 0.0, 2.0]))
    Array([0.  , 0.25, 2.  ], dtype=float32)"""
    x = operand("sparse_plus", x)
    return jnp.where(x <= -1.0, 0.0, jnp.where(x >= 1.0, x, (x + 1.0) ** 2 / 4))


def soft_sign(x: ArrayLike) -> Array:
    """A smooth sign: x / (1 + |x|).

    Args:
        x: Numbers; integers become floats.

    Returns:
        An array of the shape of `x`.

    >>> jax.nn.soft_sign(jnp.array([-1.0, 0.0, 3.0]))
    Array([-0.5 ,  0.  ,  0.75], dtype=float32)"""
    x = operand("soft_sign", x)
    return x / (jnp.abs(x) + 1)


def sparse_sigmoid(x: ArrayLike) -> Array:
    """A sigmoid of straight lines: 0 up to -1, (x + 1) / 2 up to 1, and 1 beyond.

    Args:
        x: Numbers; integers become floats.

    Returns:
        An array of the shape of `x`.

    >>> jax.nn.sparse_sigmoid(jnp.array([-1.0, 0.0, 2.0]))
    Array([0. , 0.5, 1. ], dtype=float32)"""
    return 0.5 * jnp.clip(operand("sparse_sigmoid", x) + 1.0, 0.0, 2.0)


def silu(x: ArrayLike) -> Array:
    """The sigmoid-weighted linear unit: x * sigmoid(x). `swish` is another name for it.

    Args:
        x: Numbers; integers become floats.

    Returns:
        An array of the shape of `x`.

    >>> jax.nn.silu(jnp.array([0.0, 100.0]))
    Array([  0., 100.], dtype=float32)"""
    x = operand("silu", x)
    return x * sigmoid(x)


swish = silu


def mish(x: ArrayLike) -> Array:
    """The unit x * tanh(softplus(x)).

    Args:
        x: Numbers; integers become floats.

    Returns:
        An array of the shape of `x`.

    >>> jax.nn.mish(jnp.array([0.0, 100.0]))
    Array([  0., 100.], dtype=float32)"""
    x = operand("mish", x)
    return x * jnp.tanh(softplus(x))


def log_sigmoid(x: ArrayLike) -> Array:
    """The logarithm of the sigmoid function, exact also where that is tiny.

    Args:
        x: Numbers; integers become floats.

    Returns:
        An array of the shape of `x`.

    >>> jax.nn.log_sigmoid(jnp.array([-100.0, 0.0]))
    Array([-100.       ,   -0.69314...], dtype=float32)"""
    return -softplus(-operand("log_sigmoid", x))


def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """The exponential linear unit: x where it is positive, alpha * (exp(x) - 1) elsewhere.

    Args:
        x: Numbers; integers become floats.
        alpha: The factor of the negative side.

    Returns:
        An array of the shape of `x`.

    >>> jax.nn.elu(jnp.array([-100.0, 2.0]))
    Array([-1.,  2.], dtype=float32)"""
    x = operand("elu", x)
    below = jnp.where(x > 0, 0.0, x)
    return jnp.where(x > 0, x, alpha * jnp.expm1(below))


def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 1e-2) -> Array:
    """A rectifier with a slope on the negative side: x, or negative_slope * x below 0.

    Args:
        x: Numbers; integers become floats.
        negative_slope: The slope.

    Returns:
        An array of the shape of `x`.

    >>> jax.nn.leaky_relu(jnp.array([-100.0, 2.0]))
    Array([-1.,  2.], dtype=float32)"""
    x = operand("leaky_relu", x)
    return jnp.where(x >= 0, x, negative_slope * x)


def hard_tanh(x: ArrayLike) -> Array:
    """A hyperbolic tangent of straight lines: x, limited to [-1, 1].

    Args:
        x: Numbers; integers become floats.

    Returns:
        An array of the shape of `x`.

    >>> jax.nn.hard_tanh(jnp.array([-5.0, 0.5]))
    Array([-1. ,  0.5], dtype=float32)"""
    x = operand("hard_tanh", x)
    return jnp.where(x > 1, 1, jnp.where(x < -1, -1, x))


def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """The exponential linear unit with a smooth slope: x, or alpha * (exp(x / alpha) - 1) below 0.

    Args:
        x: Numbers; integers become floats.
        alpha: The scale of the negative side.

    Returns:
        An array of the shape of `x`.

    >>> jax.nn.celu(jnp.array([-100.0, 2.0]))
    Array([-1.,  2.], dtype=float32)"""
    x = operand("celu", x)
    below = jnp.expm1(jnp.minimum(x, 0.0) / alpha)
    return jnp.maximum(x, 0.0) + alpha * below


def selu(x: ArrayLike) -> Array:
    """The exponential linear unit with the scale that keeps mean 0 and variance 1.

    Args:
        x: Numbers; integers become floats.

    Returns:
        An array of the shape of `x`.

    >>> jax.nn.selu(jnp.array([0.0, 1.0]))
    Array([0.      , 1.0507...], dtype=float32)"""
    alpha, scale = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
    return scale * elu(x, alpha)


def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """The Gaussian error linear unit: x times the normal distribution function of x.

    Args:
        x: Numbers; integers become floats.
        approximate: Whether that function is approximated by a hyperbolic tangent.

    Returns:
        An array of the shape of `x`.

    >>> jax.nn.gelu(jnp.array([0.0, 1.0]))
    Array([0.      , 0.841192], dtype=float32)"""
    x = inexact("gelu", x)
    if approximate:
        inner = scaled(x + 0.044715 * x**3, np.sqrt(2 / np.pi))
        return x * (0.5 * (1.0 + jnp.tanh(inner)))
    return scaled(x, 0.5) * erfc(scaled(-x, np.sqrt(0.5)))


def glu(x: ArrayLike, axis: int = -1) -> Array:
    """The gated linear unit: the first half of an axis times the sigmoid of the second half.

    Args:
        x: Numbers; integers become floats.
        axis: The axis; its size is even.

    Returns:
        An array in which the axis has half its size.

    >>> jax.nn.glu(jnp.array([3.0, 0.0]))
    Array([1.5], dtype=float32)"""
    x = operand("glu", x)
    k = canonical_axis(axis, typeof(x).ndim)
    if typeof(x).shape[k] % 2:
        raise AssertionError(
            f"axis size must be divisible by 2: glu got shape {typeof(x).shape}, axis {axis}"
        )
    a, b = jnp.split(x, 2, k)
    return a * sigmoid(b)


def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """A smooth rectifier: (x + sqrt(x**2 + b)) / 2.

    Args:
        x: Numbers; integers become floats.
        b: How smooth it is; at 0 it gives sqrt(b) / 2.

    Returns:
        An array of the shape of `x`.

    >>> jax.nn.squareplus(jnp.array([0.0, 3.0]), b=16.0)
    Array([2., 4.], dtype=float32)"""
    x = operand("squareplus", x)
    return (x + jnp.sqrt(jnp.square(x) + b)) / 2


def hard_sigmoid(x: ArrayLike) -> Array:
    """A sigmoid of straight lines: relu6(x + 3) / 6.

    Args:
        x: Numbers; integers become floats.

    Returns:
        An array of the shape of `x`.

    >>> jax.nn.hard_sigmoid(jnp.array([-3.0, 0.0, 3.0]))
    Array([0. , 0.5, 1. ], dtype=float32)"""
    return relu6(operand("hard_sigmoid", x) + 3.0) / 6.0


def hard_silu(x: ArrayLike) -> Array:
    """The unit x * hard_sigmoid(x). `hard_swish` is another name for it.

    Args:
        x: Numbers; integers become floats.

    Returns:
        An array of the shape of `x`.

    >>> jax.nn.hard_silu(jnp.array([-3.0, 0.0, 3.0]))
    Array([-0.,  0.,  3.], dtype=float32)"""
    x = operand("hard_silu", x)
    return x * hard_sigmoid(x)


hard_swish = hard_silu


def identity(x: ArrayLike) -> Array:
    """The argument, as an array.

    Args:
        x: Numbers.

    Returns:
        An array of the shape of `x`.

    >>> jax.nn.identity(1.0)
    Array(1., dtype=float32, weak_type=True)"""
    return operand("identity", x)


def tanh(x: ArrayLike) -> Array:
    """The hyperbolic tangent.

    Args:
        x: Numbers; integers become floats.

    Returns:
        An array of the shape of `x`.

    >>> jax.nn.tanh(jnp.array([0.0, 100.0]))
    Array([0., 1.], dtype=float32)"""
    return jnp.tanh(x)


def _log1mexp_of(x: Any) -> Any:
    near, far = jnp.log(-jnp.expm1(-x)), jnp.log1p(-jnp.exp(-x))
    return jnp.where(x < float(np.log(2.0)), near, far)


_log1mexp = _with_slope(_log1mexp_of, lambda x, t: t / jnp.expm1(x))


def log1mexp(x: ArrayLike) -> Array:
    """log(1 - exp(-x)), exact everywhere.

    Args:
        x: Positive numbers.

    Returns:
        An array of the shape of `x`.

    >>> jax.nn.log1mexp(jnp.array([1e-5, 1.0]))
    Array([-11.5129...  ,  -0.458675...], dtype=float32)"""
    x = operand("log1mexp", x)
    return _log1mexp(x if is_inexact(typeof(x).dtype) else inexact("log1mexp", jnp.positive(x) + 0))


def one_hot(
    x: ArrayLike, num_classes: int, *, dtype: DTypeLike | None = None, axis: int = -1
) -> Array:
    """Gives a 1 at the position that an integer names, and 0 elsewhere, along a new axis.

    Args:
        x: Integers. One that is not below `num_classes`, or negative, gives zeros.
        num_classes: The size of the new axis, not negative.
        dtype: The dtype of the result; None means float32 (float64 where 64-bit types are enabled).
        axis: Where the new axis stands in the result.

    Returns:
        An array with one axis more.

    >>> jax.nn.one_hot(jnp.array([0, 2]), 3)
    Array([[1., 0., 0.],
           [0., 0., 1.]], dtype=float32)"""
    x = jnp.asarray(x)
    if not isinstance(num_classes, Tracer):
        num_classes = as_size(num_classes, "one_hot: num_classes")
        if surely_less(num_classes, 0):
            raise TypeError(f"one_hot: num_classes must not be negative, got {num_classes}")
    if typeof(x).dtype == np.dtype(bool):
        x = x.astype(np.int32)
    elif not is_integer(typeof(x).dtype):
        warnings.warn(
            "calque.nn.one_hot input should be integer-typed, got dtype"
            f" {typeof(x).dtype.name}: convert it",
            DeprecationWarning,
            stacklevel=2,
        )
    n = typeof(x).ndim
    k = canonical_axis(axis, n + 1)
    if is_integer(typeof(x).dtype) and typeof(x).dtype.itemsize < 4:
        x = x.astype(np.int32)  # of as many classes as there are, none comes round
    classes = jnp.arange(num_classes, dtype=typeof(x).dtype).reshape(
        (1,) * k + (num_classes,) + (1,) * (n - k)
    )
    target = canonicalize(float) if dtype is None else asked(dtype)
    return convert(jnp.expand_dims(x, k) == classes, target)

"""Layers as pairs of functions: init_fun(key, input_shape) -> (output_shape, params) and
apply_fun(params, inputs, **kwargs) -> outputs."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from calque import lax, random
from calque import numpy as jnp
from calque.core import guards as _guards
from calque.core.avals import ShapedArray
from calque.nn.functions import elu, gelu, leaky_relu, relu, selu, sigmoid, softplus
from calque.nn.initializers import glorot_normal, normal, ones, zeros
from calque.nn.normalisation import log_softmax, softmax, standardize
from calque.transforms.functions.shapes import eval_shape

__all__ = [
    "AvgPool", "BatchNorm", "Conv", "Conv1DTranspose", "ConvTranspose", "Dense", "Dropout", "Elu",
    "Exp", "FanInConcat", "FanInSum", "FanOut",
    "Flatten", "Gelu", "GeneralConv", "GeneralConvTranspose", "Identity", "LeakyRelu",
    "LogSoftmax", "MaxPool", "Relu", "Selu", "Sigmoid",
    "Softmax", "Softplus", "SumPool", "Tanh", "elementwise", "elu", "gelu", "glorot",
    "glorot_normal", "leaky_relu", "log_softmax", "logsoftmax",
    "normal", "ones", "parallel", "randn", "relu", "selu", "serial", "shape_dependent", "sigmoid",
    "softmax", "softplus", "standardize", "zeros",
]  # fmt: skip

glorot, randn, logsoftmax = glorot_normal, normal, log_softmax

Shape = Sequence[int]
Layer = tuple[Callable[..., Any], Callable[..., Any]]

# ---------------------------------------------------------------- shapes


def _shape_after(
    f: Callable[[Any], Any], shape: Shape, batch_in: int, batch_out: int
) -> tuple[int, ...]:
    """The shape of f(x) for an x of this shape, whose batch may have the unknown size -1."""
    known = [1 if k == batch_in else d for k, d in enumerate(shape)]
    out = list(eval_shape(f, ShapedArray(tuple(known), jnp.zeros(()).dtype)).shape)
    out[batch_out] = shape[batch_in]
    return tuple(out)


# ---------------------------------------------------------------- layers with parameters


def Dense(out_dim: int, W_init: Any = glorot_normal(), b_init: Any = normal()) -> Layer:
    """Makes a layer that multiplies by weights and adds biases.

    Args:
        out_dim: The number of outputs.
        W_init: The initializer of the weights.
        b_init: The initializer of the biases.

    Returns:
        A layer: a pair (init_fun, apply_fun). `init_fun(key, input_shape)` gives (output shape,
        parameters), `apply_fun(params, inputs, **kwargs)` the outputs.

    >>> from calque.example_libraries import stax
    >>> init, apply = stax.Dense(3)
    >>> shape, params = init(jax.random.key(0), (-1, 2))
    >>> shape, apply(params, jnp.ones((5, 2))).shape
    ((-1, 3), (5, 3))"""

    def init_fun(rng: Any, input_shape: Shape) -> Any:
        first, second = random.split(rng)
        params = W_init(first, (input_shape[-1], out_dim)), b_init(second, (out_dim,))
        return (*input_shape[:-1], out_dim), params

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        W, b = params
        return jnp.dot(inputs, W) + b

    return init_fun, apply_fun


def _convolution(
    convolve: Callable[..., Any],
    dimension_numbers: Sequence[str],
    out_chan: int,
    filter_shape: Shape,
    W_init: Any,
    b_init: Any,
) -> Layer:
    lhs, rhs, out = dimension_numbers
    initial = W_init or glorot_normal(rhs.index("I"), rhs.index("O"))

    def init_fun(rng: Any, input_shape: Shape) -> Any:
        sizes = iter(filter_shape)
        channels = {"O": out_chan, "I": input_shape[lhs.index("C")]}
        kernel = tuple(channels[c] if c in channels else next(sizes) for c in rhs)
        bias = tuple(out_chan if c == "C" else 1 for c in out)
        first, second = random.split(rng)
        params = initial(first, kernel), b_init(second, bias)
        shape = _shape_after(
            lambda x: convolve(x, params[0]), input_shape, lhs.index("N"), out.index("N")
        )
        return shape, params

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        W, b = params
        return convolve(inputs, W) + b

    return init_fun, apply_fun


def GeneralConv(
    dimension_numbers: Sequence[str],
    out_chan: int,
    filter_shape: Shape,
    strides: Shape | None = None,
    padding: Any = "VALID",
    W_init: Any = None,
    b_init: Any = normal(1e-6),
) -> Layer:
    """Makes a layer that convolves, and adds biases.

    Args:
        dimension_numbers: The layouts of inputs, filters and outputs, such as ("NHWC", "HWIO",
            "NHWC").
        out_chan: The number of channels of the outputs.
        filter_shape: The spatial shape of the filters.
        strides: The steps; None means 1.
        padding: "VALID", "SAME" or pairs of numbers.
        W_init: The initializer of the weights; None takes one by the size of the layer.
        b_init: The initializer of the biases.

    Returns:
        A layer: a pair (init_fun, apply_fun). `init_fun(key, input_shape)` gives (output shape,
        parameters), `apply_fun(params, inputs, **kwargs)` the outputs.

    >>> from calque.example_libraries import stax
    >>> init, apply = stax.GeneralConv(("NHWC", "HWIO", "NHWC"), 4, (3, 3))
    >>> init(jax.random.key(0), (-1, 8, 8, 3))[0]
    (-1, 6, 6, 4)"""
    one = (1,) * len(filter_shape)

    def convolve(x: Any, W: Any) -> Any:
        return lax.conv_general_dilated(
            x, W, strides or one, padding, one, one, dimension_numbers=tuple(dimension_numbers)
        )

    return _convolution(convolve, dimension_numbers, out_chan, filter_shape, W_init, b_init)


def GeneralConvTranspose(
    dimension_numbers: Sequence[str],
    out_chan: int,
    filter_shape: Shape,
    strides: Shape | None = None,
    padding: Any = "VALID",
    W_init: Any = None,
    b_init: Any = normal(1e-6),
) -> Layer:
    """Makes a layer that convolves with fractional strides, and adds biases.

    Args:
        dimension_numbers: The layouts of inputs, filters and outputs, such as ("NHWC", "HWIO",
            "NHWC").
        out_chan: The number of channels of the outputs.
        filter_shape: The spatial shape of the filters.
        strides: The steps; None means 1.
        padding: "VALID", "SAME" or pairs of numbers.
        W_init: The initializer of the weights; None takes one by the size of the layer.
        b_init: The initializer of the biases.

    Returns:
        A layer: a pair (init_fun, apply_fun). `init_fun(key, input_shape)` gives (output shape,
        parameters), `apply_fun(params, inputs, **kwargs)` the outputs.

    >>> from calque.example_libraries import stax
    >>> init, apply = stax.ConvTranspose(4, (3, 3), (2, 2), "SAME")
    >>> init(jax.random.key(0), (-1, 8, 8, 3))[0]
    (-1, 16, 16, 4)"""
    one = (1,) * len(filter_shape)

    def convolve(x: Any, W: Any) -> Any:
        return lax.conv_transpose(
            x, W, strides or one, padding, dimension_numbers=tuple(dimension_numbers)
        )

    return _convolution(convolve, dimension_numbers, out_chan, filter_shape, W_init, b_init)


Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))
Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))


def BatchNorm(
    axis: int | Sequence[int] = (0, 1, 2),
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    beta_init: Any = zeros,
    gamma_init: Any = ones,
) -> Layer:
    """Makes a layer whose values have mean 0 and variance 1 over axes, then scales and shifts them.

    Args:
        axis: The axis, or axes.
        epsilon: What is added to the variance.
        center: Whether they are shifted by parameters.
        scale: Whether they are scaled by parameters.
        beta_init: The initializer of what they are shifted by.
        gamma_init: The initializer of what they are scaled by.

    Returns:
        A layer: a pair (init_fun, apply_fun). `init_fun(key, input_shape)` gives (output shape,
        parameters), `apply_fun(params, inputs, **kwargs)` the outputs.

    >>> from calque.example_libraries import stax
    >>> init, apply = stax.BatchNorm(axis=0)
    >>> shape, params = init(jax.random.key(0), (-1, 2))
    >>> apply(params, jnp.array([[1.0, 2.0], [3.0, 2.0]])).round(2)
    Array([[-1.,  0.],
           [ 1.,  0.]], dtype=float32)"""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)

    def init_fun(rng: Any, input_shape: Shape) -> Any:
        shape = tuple(d for i, d in enumerate(input_shape) if i not in axes)
        first, second = random.split(rng)
        return input_shape, (
            beta_init(first, shape) if center else (),
            gamma_init(second, shape) if scale else (),
        )

    def apply_fun(params: Any, x: Any, **kwargs: Any) -> Any:
        beta, gamma = params
        expand = tuple(None if i in axes else slice(None) for i in range(jnp.ndim(x)))
        z = standardize(x, axes, epsilon=epsilon)
        z = gamma[expand] * z if scale else z
        return z + beta[expand] if center else z

    return init_fun, apply_fun


# ---------------------------------------------------------------- layers without


def elementwise(fun: Callable[..., Any], **fun_kwargs: Any) -> Layer:
    """Makes a layer that applies a function and keeps the shape.

    Args:
        fun: The function.
        **fun_kwargs: Further arguments of it.

    Returns:
        A layer: a pair (init_fun, apply_fun). `init_fun(key, input_shape)` gives (output shape,
        parameters), `apply_fun(params, inputs, **kwargs)` the outputs.

    >>> from calque.example_libraries import stax
    >>> stax.elementwise(jnp.abs)[1]((), jnp.array([-1.0]))
    Array([1.], dtype=float32)"""
    return (lambda rng, input_shape: (input_shape, ())), (
        lambda params, inputs, **kwargs: fun(inputs, **fun_kwargs)
    )


Tanh, Relu, Exp = elementwise(jnp.tanh), elementwise(relu), elementwise(jnp.exp)
Softplus, Sigmoid = elementwise(softplus), elementwise(sigmoid)
Elu, LeakyRelu, Selu, Gelu = map(elementwise, (elu, leaky_relu, selu, gelu))
LogSoftmax, Softmax = elementwise(log_softmax, axis=-1), elementwise(softmax, axis=-1)
Identity = elementwise(lambda x: x)
Flatten: Layer = (
    lambda rng, input_shape: ((input_shape[0], math.prod(input_shape[1:])), ()),
    lambda params, inputs, **kwargs: jnp.reshape(
        inputs, (inputs.shape[0], math.prod(inputs.shape[1:]))
    ),
)


def _pooling(
    name: str, reducer: Any, initial: float, text: str, average: bool = False
) -> Callable[..., Layer]:
    def pool(
        window_shape: Shape,
        strides: Shape | None = None,
        padding: str = "VALID",
        spec: str | None = None,
    ) -> Layer:
        batch, channels = (
            (0, len(window_shape) + 1) if spec is None else (spec.index("N"), spec.index("C"))
        )
        window, steps = list(window_shape), list(strides or (1,) * len(window_shape))
        for place in sorted((batch, channels)):
            window.insert(place, 1)
            steps.insert(place, 1)

        def over(x: Any, f: Any, start: Any) -> Any:
            return lax.reduce_window(x, start, f, tuple(window), tuple(steps), padding)

        def reduced(x: Any) -> Any:
            out = over(x, reducer, initial)
            if not average:
                return out
            # at the borders, windows hold less
            spatial = tuple(1 if k in (batch, channels) else d for k, d in enumerate(x.shape))
            return out / over(jnp.ones(spatial, x.dtype), lax.add, 0.0)

        def init_fun(rng: Any, input_shape: Shape) -> Any:
            return _shape_after(reduced, input_shape, batch, batch), ()

        return init_fun, lambda params, inputs, **kwargs: reduced(inputs)

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = f"""Makes a layer that gives {text} of each window.

    Args:
        window_shape: The spatial shape of a window.
        strides: The steps; None means 1.
        padding: "VALID" or "SAME".
        spec: The names of the axes of the inputs, such as "NHWC", which None means.

    Returns:
        A layer: a pair (init_fun, apply_fun), without parameters.

    >>> from calque.example_libraries import stax
    >>> stax.{name}((2, 2))[0](jax.random.key(0), (-1, 4, 4, 3))[0]
    (-1, 3, 3, 3)"""
    return pool


MaxPool = _pooling("MaxPool", lax.max, -math.inf, "the largest value")
SumPool = _pooling("SumPool", lax.add, 0.0, "the sum")
AvgPool = _pooling("AvgPool", lax.add, 0.0, "the mean", average=True)


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Makes a layer that keeps each value with some probability, and divides it by that.

    It needs a key: `apply_fun(params, inputs, rng=key)`.

    Args:
        rate: The probability with which a value is kept.
        mode: "train"; with anything else values stay as they are.

    Returns:
        A layer: a pair (init_fun, apply_fun). `init_fun(key, input_shape)` gives (output shape,
        parameters), `apply_fun(params, inputs, **kwargs)` the outputs.

    >>> from calque.example_libraries import stax
    >>> stax.Dropout(0.5, mode="test")[1]((), jnp.ones(2), rng=jax.random.key(0))
    Array([1., 1.], dtype=float32)"""

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        rng = kwargs.get("rng")
        if rng is None:
            raise ValueError(
                "Dropout layer requires apply_fun to be called with a PRNG key argument: not"
                " `apply_fun(params, inputs)` but `apply_fun(params, inputs, rng=key)`, with a key"
                " such as jax.random.key(0)."
            )
        if mode != "train":
            return inputs
        return jnp.where(random.bernoulli(rng, rate, inputs.shape), inputs / rate, 0)

    return (lambda rng, input_shape: (input_shape, ())), apply_fun


# ---------------------------------------------------------------- branches


def FanOut(num: int) -> Layer:
    """Makes a layer that gives its input several times.

    Args:
        num: How often.

    Returns:
        A layer: a pair (init_fun, apply_fun). `init_fun(key, input_shape)` gives (output shape,
        parameters), `apply_fun(params, inputs, **kwargs)` the outputs.

    >>> from calque.example_libraries import stax
    >>> stax.FanOut(2)[1]((), 1.0)
    [1.0, 1.0]"""
    return (lambda rng, input_shape: ([input_shape] * num, ())), (
        lambda params, inputs, **kwargs: [inputs] * num
    )


FanInSum: Layer = (
    (lambda rng, input_shape: (input_shape[0], ())),
    (lambda params, inputs, **kwargs: sum(inputs)),
)


def FanInConcat(axis: int = -1) -> Layer:
    """Makes a layer that puts its inputs one after the other.

    Args:
        axis: The axis.

    Returns:
        A layer: a pair (init_fun, apply_fun). `init_fun(key, input_shape)` gives (output shape,
        parameters), `apply_fun(params, inputs, **kwargs)` the outputs.

    >>> from calque.example_libraries import stax
    >>> stax.FanInConcat()[1]((), [jnp.ones(1), jnp.zeros(1)])
    Array([1., 0.], dtype=float32)"""

    def init_fun(rng: Any, input_shape: Sequence[Shape]) -> Any:
        first = list(input_shape[0])
        first[axis] = sum(shape[axis] for shape in input_shape)
        return tuple(first), ()

    return init_fun, lambda params, inputs, **kwargs: jnp.concatenate(inputs, axis)


def _keys(kwargs: dict[str, Any], n: int) -> Any:
    """A key for each of n layers, taken from the arguments; none without one."""
    rng = kwargs.pop("rng", None)
    return [None] * n if rng is None else random.split(rng, n)


def serial(*layers: Layer) -> Layer:
    """Makes a layer of layers, one after the other.

    Args:
        *layers: The layers.

    Returns:
        A layer: a pair (init_fun, apply_fun). `init_fun(key, input_shape)` gives (output shape,
        parameters), `apply_fun(params, inputs, **kwargs)` the outputs.

    >>> from calque.example_libraries import stax
    >>> init, apply = stax.serial(stax.Dense(4), stax.Relu, stax.Dense(2))
    >>> shape, params = init(jax.random.key(0), (-1, 3))
    >>> shape, apply(params, jnp.ones((5, 3))).shape
    ((-1, 2), (5, 2))"""

    def init_fun(rng: Any, input_shape: Any) -> Any:
        params = []
        for init, _ in layers:
            rng, own = random.split(rng)
            input_shape, p = init(own, input_shape)
            params.append(p)
        return input_shape, params

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        keys = _keys(kwargs, len(layers))
        for (_, apply), p, key in zip(layers, params, keys, strict=True):
            inputs = apply(p, inputs, rng=key, **kwargs)
        return inputs

    return init_fun, apply_fun


def parallel(*layers: Layer) -> Layer:
    """Makes a layer of layers side by side, each with its own input, as of `FanOut`.

    Args:
        *layers: The layers.

    Returns:
        A layer: a pair (init_fun, apply_fun). `init_fun(key, input_shape)` gives (output shape,
        parameters), `apply_fun(params, inputs, **kwargs)` the outputs.

    >>> from calque.example_libraries import stax
    >>> init, apply = stax.parallel(stax.Relu, stax.Identity)
    >>> apply(init(jax.random.key(0), [(1,), (1,)])[1], [jnp.array([-1.0]), jnp.array([-1.0])])
    [Array([0.], dtype=float32), Array([-1.], dtype=float32)]"""

    def init_fun(rng: Any, input_shape: Any) -> Any:
        keys = random.split(rng, len(layers))
        made = [
            init(key, shape)
            for (init, _), key, shape in zip(layers, keys, input_shape, strict=True)
        ]
        return tuple(shape for shape, _ in made), tuple(p for _, p in made)

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        keys = _keys(kwargs, len(layers))
        return [
            f(p, x, rng=k, **kwargs)
            for (_, f), p, x, k in zip(layers, params, inputs, keys, strict=True)
        ]

    return init_fun, apply_fun


def shape_dependent(make_layer: Callable[[Shape], Layer]) -> Layer:
    """Makes a layer that is chosen when the shape of its input is known.

    Args:
        make_layer: A function from a shape to a layer.

    Returns:
        A layer: a pair (init_fun, apply_fun). `init_fun(key, input_shape)` gives (output shape,
        parameters), `apply_fun(params, inputs, **kwargs)` the outputs.

    >>> from calque.example_libraries import stax
    >>> layer = stax.shape_dependent(lambda shape: stax.Dense(shape[-1]))
    >>> layer[0](jax.random.key(0), (-1, 3))[0]
    (-1, 3)"""

    def init_fun(rng: Any, input_shape: Any) -> Any:
        return make_layer(input_shape)[0](rng, input_shape)

    return init_fun, lambda params, inputs, **kwargs: make_layer(inputs.shape)[1](
        params, inputs, **kwargs
    )


_guards.guard_public(globals())

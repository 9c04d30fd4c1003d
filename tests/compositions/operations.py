"""The operations of random programs, by group. Each is written against a module `j` (calque or JAX)
and takes a generator for its choices, which depend on shapes and dtypes alone, so that every
tracing of a program makes the same ones.

Values stay of order one, and what is differentiated is smooth but at places that random numbers do
not hit.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

Choices = np.random.Generator
Operation = Callable[..., Any]
MOST = 36  # elements of a value


class Group:
    """Operations with the same number of operands, which are first made what these can take."""

    def __init__(
        self,
        arity: int,
        weight: float,
        make: Callable[[Any], dict[str, Operation]],
        kind: str = "real",
    ):
        self.arity, self.weight, self.make, self.kind = arity, weight, make, kind


def is_real(x: Any) -> bool:
    return np.dtype(x.dtype).kind in "fV" and np.dtype(x.dtype) != FLOAT0


def is_complex(x: Any) -> bool:
    return np.dtype(x.dtype).kind == "c"


def is_inexact(x: Any) -> bool:
    return is_real(x) or is_complex(x)


FLOAT0 = np.dtype([("float0", np.void, 0)])


def real(j: Any, x: Any) -> Any:
    """`x` as real numbers of a floating type."""
    if is_complex(x):
        x = x.real + x.imag
    return x if is_real(x) else x.astype(float) * 0.5


def wave(r: Choices, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Constants of order one, no two alike."""
    n = int(np.prod(shape))
    return np.cos(r.uniform(0, 6) + 1.3 * np.arange(n)).reshape(shape).astype(dtype)


def apart(r: Choices, x: Any) -> Any:
    """`x` with its elements moved, so that equal ones are told apart."""
    return x + wave(r, x.shape, x.dtype)


def matched(j: Any, *xs: Any) -> tuple[Any, ...]:
    """Operands that broadcast: those that do not are cut to scalars."""
    shape, out = xs[0].shape, [xs[0]]
    for x in xs[1:]:
        try:
            shape = np.broadcast_shapes(shape, x.shape)
        except ValueError:
            x = x.reshape(-1)[0]
        out.append(x)
    return tuple(out)


def cut(x: Any) -> Any:
    return x if x.size <= MOST else x.reshape(-1)[:MOST]


def fit(j: Any, y: Any, like: Any) -> Any:
    """`y` made of the shape and dtype of `like`."""
    y = real(j, y) if is_real(like) else y
    if y.shape != like.shape:
        y = j.numpy.broadcast_to(j.numpy.mean(y), like.shape)
    return y.astype(like.dtype)


def as_matrix(j: Any, r: Choices, x: Any, square: bool = True) -> Any:
    """A matrix of two or three rows made of `x`, far from singular when square."""
    n = int(r.integers(2, 4))
    m = n if square else n + 1
    flat = j.numpy.resize(j.numpy.tanh(x).reshape(-1), (n * m,)).reshape(n, m)
    flat = flat.astype(j.numpy.promote_types(flat.dtype, np.float32))
    spread = wave(r, (n, m), flat.dtype)
    return 0.4 * flat * spread + (
        np.diag(1.5 + np.arange(n)).astype(flat.dtype) if square else spread
    )


def positive(j: Any, r: Choices, x: Any) -> Any:
    a = as_matrix(j, r, x)
    return a @ a.T + np.eye(a.shape[0]).astype(a.dtype)


def axis_of(r: Choices, x: Any) -> int:
    axis = int(r.integers(x.ndim))
    return axis - x.ndim if r.integers(2) else axis


def axes_of(r: Choices, x: Any) -> tuple[int, ...]:
    return tuple(np.nonzero(r.random(x.ndim) < 0.6)[0].tolist())


def indices(j: Any, r: Choices, y: Any, size: int, out_of_bounds: bool = True) -> Any:
    """A few places along an axis of this size, made of integers or of the order of floats."""
    if is_inexact(y):
        y = j.numpy.argsort(apart(r, real(j, y).reshape(-1)))
    flat = y.reshape(-1)[:4].astype(np.int32)
    return flat % (size + 2) - 1 if out_of_bounds else flat % size


# ---------------------------------------------------------------- elementwise


def smooth_unary(j: Any) -> dict[str, Operation]:
    n, l, s = j.numpy, j.lax, j.scipy.special
    f = {
        "sin": n.sin,
        "cos": n.cos,
        "tanh": n.tanh,
        "logistic": l.logistic,
        "erf": l.erf,
        "arctan": n.arctan,
        "bump": lambda x: n.exp(-x * x),
        "log1p": lambda x: n.log1p(x * x),
        "sqrt": lambda x: n.sqrt(1 + x * x),
        "arcsinh": n.arcsinh,
        "expm1": lambda x: n.expm1(n.tanh(x)),
        "rsqrt": lambda x: l.rsqrt(1 + x * x),
        "cbrt": lambda x: n.cbrt(2 + n.tanh(x)),
        "sinh": lambda x: n.sinh(n.tanh(x)),
        "cosh": lambda x: n.cosh(n.tanh(x)),
        "tan": lambda x: n.tan(0.7 * n.tanh(x)),
        "arccosh": lambda x: n.arccosh(2 + x * x),
        "arctanh": lambda x: n.arctanh(0.5 * n.tanh(x)),
        "arcsin": lambda x: n.arcsin(0.8 * n.tanh(x)),
        "arccos": lambda x: n.arccos(0.8 * n.sin(x)),
        "lgamma": lambda x: l.lgamma(2 + n.tanh(x)),
        "digamma": lambda x: l.digamma(2 + n.tanh(x)),
        "erfc": l.erfc,
        "erf_inv": lambda x: l.erf_inv(0.8 * n.tanh(x)),
        "log": lambda x: n.log(2 + n.sin(x)),
        "exp2": lambda x: n.exp2(n.sin(x)),
        "softplus": lambda x: j.nn.softplus(x),
        "reciprocal": lambda x: 1 / (2 + n.cos(x)),
        "neg": lambda x: -x,
        "square": lambda x: n.square(n.sin(x)),
        "cube": lambda x: l.integer_pow(n.sin(x), 3),
        "minus_two": lambda x: l.integer_pow(2 + n.cos(x), -2),
        "sinc": lambda x: n.sinc(0.3 * x + 0.2),
        "bessel": lambda x: l.bessel_i0e(x + 0.05),
        "gelu": lambda x: j.nn.gelu(x),
        "silu": lambda x: j.nn.silu(x),
        "entr": lambda x: s.entr(2 + n.tanh(x)),
        "logit": lambda x: s.logit(0.5 + 0.3 * n.tanh(x)),
        "xlog1py": lambda x: s.xlog1py(x, n.tanh(x) ** 2),
        "ndtr": lambda x: s.ndtr(x),
    }
    return {k: functools.partial(lambda f, r, x: f(x), g) for k, g in f.items()}


def kinked_unary(j: Any) -> dict[str, Operation]:
    n, l = j.numpy, j.lax
    f = {
        "abs": n.abs,
        "relu": j.nn.relu,
        "relu6": lambda x: j.nn.relu6(4 * x),
        "floor": lambda x: x - n.floor(x + 0.013),
        "round": lambda x: n.round(3 * x + 0.21),
        "sign": lambda x: n.sign(x + 0.017),
        "clip": lambda x: n.clip(x, -0.51, 0.72),
        "ceil": lambda x: n.ceil(2 * x + 0.3),
        "trunc": lambda x: x * n.trunc(2 * x + 0.11),
        "leaky_relu": lambda x: j.nn.leaky_relu(x - 0.1),
        "elu": lambda x: j.nn.elu(x),
        "nan_to_num": n.nan_to_num,
        "isfinite": lambda x: n.where(n.isfinite(x), x, 0),
        "fix": lambda x: x - l.round(x + 0.1, l.RoundingMethod.AWAY_FROM_ZERO),
    }
    return {k: functools.partial(lambda f, r, x: f(x), g) for k, g in f.items()}


def binary(j: Any) -> dict[str, Operation]:
    n, l = j.numpy, j.lax
    f = {
        "add": lambda x, y: 0.7 * x + 0.6 * y,
        "sub": lambda x, y: x - 0.5 * y,
        "mul": lambda x, y: x * n.tanh(y),
        "div": lambda x, y: x / (1.5 + y * y),
        "atan2": lambda x, y: n.arctan2(x, 1.2 + y * y),
        "pow": lambda x, y: (1.5 + n.tanh(x)) ** n.tanh(y),
        "hypot": lambda x, y: n.hypot(x, 1 + y * y),
        "logaddexp": n.logaddexp,
        "maximum": lambda x, y: n.maximum(x, y + 0.3),
        "minimum": lambda x, y: n.minimum(x + 0.2, y),
        "rem": lambda x, y: n.fmod(x, 1.1 + y * y),
        "mod": lambda x, y: n.mod(x, 1.1 + y * y),
        "xlogy": lambda x, y: j.scipy.special.xlogy(x, 1 + y * y),
        "where": lambda x, y: n.where(x > y + 0.05, x, n.sin(y)),
        "less": lambda x, y: (x < y - 0.1).astype(x.dtype) * y,
        "complex_abs": lambda x, y: n.abs(x + 1j * (1.5 + y * y)).astype(x.dtype),
        "floor_divide": lambda x, y: n.floor_divide(x, 1.1 + y * y) * y,
        "copysign": lambda x, y: n.copysign(1 + x * x, y + 0.1),
        "logaddexp2": n.logaddexp2,
        "betainc": lambda x, y: (
            l.betainc(n.ones_like(x) * 1.5, n.ones_like(x) * 2.5, l.logistic(x)) * y
        ),
        "heaviside": lambda x, y: n.heaviside(x - 0.07, y),
    }
    return {k: functools.partial(lambda f, r, x, y: f(x, y), g) for k, g in f.items()}


def ternary(j: Any) -> dict[str, Operation]:
    n, l = j.numpy, j.lax
    return {
        "select": lambda r, x, y, z: n.where(x > 0.1, y, z),
        "clamp": lambda r, x, y, z: n.clip(x, n.tanh(y) - 1.3, n.tanh(z) + 1.2),
        "fma": lambda r, x, y, z: 0.5 * x * n.sin(y) + z,
        "select_n": lambda r, x, y, z: l.select_n(*_which(j, r, x, y, z)),
    }


def _which(j: Any, r: Choices, *xs: Any) -> list[Any]:
    xs = tuple(j.numpy.broadcast_arrays(*xs))
    dtype = functools.reduce(j.numpy.promote_types, [x.dtype for x in xs])
    xs = tuple(x.astype(dtype) for x in xs)
    return [(xs[0] > 0.2).astype(np.int32) + (xs[1] > 0.1), *xs]


def complexes(j: Any) -> dict[str, Operation]:
    n, l = j.numpy, j.lax

    def pair(x: Any, y: Any) -> Any:
        d = n.promote_types(n.promote_types(x.dtype, y.dtype), np.float32)
        x, y = n.broadcast_arrays(x.astype(d), y.astype(d))
        return l.complex(x, y)

    f = {
        "complex": lambda r, x, y: pair(x, y),
        "c_exp": lambda r, x, y: n.exp(1j * pair(n.tanh(x), n.tanh(y))),
        "c_mul": lambda r, x, y: pair(x, y) * n.conj(pair(n.tanh(y), x * 0 + 0.5)),
        "c_div": lambda r, x, y: pair(x, y) / pair(2 + x * x, y),
        "c_real": lambda r, x, y: n.sin(pair(n.tanh(x), n.tanh(y))).real,
        "c_imag": lambda r, x, y: n.tanh(pair(n.tanh(x), 0.4 * n.tanh(y))).imag,
        "c_angle": lambda r, x, y: n.angle(pair(2 + x * x, y)),
        "c_abs": lambda r, x, y: n.abs(pair(x, 1.5 + y * y)),
        "c_sqrt": lambda r, x, y: n.sqrt(pair(1.5 + x * x, y)),
        "c_log": lambda r, x, y: n.log(pair(1.5 + x * x, y)),
        "c_dot": lambda r, x, y: (
            n.vdot(n.atleast_1d(pair(x, y)), n.atleast_1d(pair(n.cos(y), n.sin(x))))
            / max(x.size, y.size)
        ),
        "c_pow": lambda r, x, y: pair(1.5 + n.tanh(x) ** 2, n.tanh(y)) ** 2,
        "c_sum": lambda r, x, y: n.sum(pair(x, y)) / max(x.size, y.size),
        "c_square": lambda r, x, y: l.square(pair(n.tanh(x), n.tanh(y))),
        "fft": lambda r, x, y: (
            n.fft.fft(n.atleast_1d(pair(x, y)), axis=axis_of(r, n.atleast_1d(pair(x, y)))) / 3
        ),
        "ifft": lambda r, x, y: n.fft.ifft(n.atleast_1d(pair(x, y))),
        "rfft": lambda r, x, y: n.abs(
            n.fft.rfft(n.atleast_1d(x * 1.0 + 0.1 * y).astype(n.promote_types(x.dtype, np.float32)))
            + 3.1
        ),
        "irfft": lambda r, x, y: (
            n.fft.irfft(n.stack([pair(x, y).reshape(-1)] * 2, axis=1), n=3) * 2
        ),
    }
    return f


def integers(j: Any) -> dict[str, Operation]:
    n, l = j.numpy, j.lax

    def ints(r: Choices, x: Any, to: Any = np.int32) -> Any:
        if is_inexact(x):
            x = n.argsort(apart(r, real(j, n.atleast_1d(x))), axis=-1)
        return x.astype(to)

    f = {
        "order": lambda r, x, y: ints(r, x),
        "i_add": lambda r, x, y: ints(r, x) + ints(r, y) * 3,
        "i_and": lambda r, x, y: ints(r, x) & (ints(r, y) | 5),
        "i_xor": lambda r, x, y: ints(r, x) ^ ints(r, y),
        "i_shift": lambda r, x, y: (ints(r, x) << 2) >> (ints(r, y) & 3),
        "i_div": lambda r, x, y: (ints(r, x) * 7 - 9) // (ints(r, y) * ints(r, y) + 2),
        "i_rem": lambda r, x, y: (ints(r, x) * 5 - 8) % 7,
        "popcount": lambda r, x, y: l.population_count(ints(r, x)),
        "clz": lambda r, x, y: l.clz(ints(r, y)),
        "i_less": lambda r, x, y: ints(r, x) < ints(r, y),
        "i_eq": lambda r, x, y: ints(r, x) == 1,
        "uint8": lambda r, x, y: ints(r, x, np.uint8) * 50 + ints(r, y, np.uint8) * 33,
        "int16": lambda r, x, y: ints(r, x, np.int16) - 3,
        "i_not": lambda r, x, y: ~ints(r, x),
        "i_abs": lambda r, x, y: n.abs(ints(r, x) - 2),
        "i_to_float": lambda r, x, y: ints(r, x).astype(float) * 0.25 + real(j, y) * 0.5,
        "i_sum": lambda r, x, y: n.sum(ints(r, x)) + ints(r, y),
        "i_pow": lambda r, x, y: l.integer_pow(ints(r, x) - 1, 2),
        "i_max": lambda r, x, y: n.maximum(ints(r, x), ints(r, y)),
        "one_hot": lambda r, x, y: j.nn.one_hot(ints(r, x) % 3, 3),
        "bits": lambda r, x, y: l.bitcast_convert_type(ints(r, x) + 1065353216, n.float32).astype(
            float
        ),
        "i_sign": lambda r, x, y: n.sign(ints(r, x) - 1),
    }
    return {k: functools.partial(_broadcasting, j, f[k]) for k in f}


def _broadcasting(j: Any, f: Operation, r: Choices, x: Any, y: Any) -> Any:
    x, y = j.numpy.atleast_1d(x), j.numpy.atleast_1d(y)
    return f(r, *matched(j, x, y))


def conversions(j: Any) -> dict[str, Operation]:
    """Only in programs of all dtypes."""
    n = j.numpy

    def to(d):
        return lambda r, x: real(j, x).astype(d) * 0.5

    f = {d: to(d) for d in ("float16", "bfloat16", "float32")}
    back = {
        f"{d}_and_back": (lambda d: lambda r, x: n.sin(real(j, x).astype(d)).astype(n.float32))(d)
        for d in ("float16", "bfloat16")
    }
    more = {
        "flag": lambda r, x: x.astype(bool) if not is_inexact(x) else n.isfinite(x),
        "to_complex64": lambda r, x: x.astype(n.complex64),
        "to_int8": (
            lambda r, x: (x if not is_inexact(x) else n.argsort(real(j, x).reshape(-1))).astype(
                n.int8
            )
        ),
        "to_uint32": lambda r, x: (x if not is_inexact(x) else n.isfinite(x)).astype(n.uint32),
        "float8": lambda r, x: (
            real(j, x).astype(n.float8_e4m3fn).astype(n.float32) * 0 + real(j, x).astype(n.float32)
        ),
    }
    return {**f, **back, **more}


def marks(j: Any) -> dict[str, Operation]:
    n, l = j.numpy, j.lax
    return {
        "named": lambda r, x: j.ad_checkpoint.checkpoint_name(x * 0.9, "ab"[r.integers(2)]),
        "barrier": lambda r, x: l.optimization_barrier(x),
        "copy": lambda r, x: n.array(x, copy=True),
        "zero_times": lambda r, x: n.zeros_like(x) + 0.3,
    }


def held(j: Any) -> dict[str, Operation]:
    """What derivatives do not go through: programs with these have no finite differences."""
    n, l = j.numpy, j.lax
    return {
        "stop_gradient": lambda r, x: l.stop_gradient(x) * 0.5 + n.sin(x),
        "straight_through": lambda r, x: x + l.stop_gradient(n.cos(x) - x),
    }

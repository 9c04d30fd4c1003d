"""The universal functions that are objects, with methods: `jnp.add.reduce` and its like."""

# mypy: disable-error-code="empty-body"

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from calque.core.arrays import Array
from calque.core.types import ArrayLike
from calque.numpy import elementwise, reductions, ufuncs
from calque.numpy.promotion import array_of, convert, result_dtype
from calque.numpy.signatures import Binary
from calque.numpy.ufunc_objects import ufunc

__all__ = [
    "add",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "subtract",
]

if TYPE_CHECKING:

    class UnaryObject(ufunc):
        def __call__(  # type: ignore[override]
            self, x: ArrayLike, /, *, out: None = None, where: None = None
        ) -> Array: ...

    class BinaryObject(ufunc):
        def __call__(  # type: ignore[override]
            self, x1: ArrayLike, x2: ArrayLike, /, *, out: None = None, where: None = None
        ) -> Array: ...


def _object(f: Callable[..., Any], nin: int, options: dict[str, Any]) -> Any:
    def take(text: Callable[..., Array]) -> Any:
        made = ufunc(f, nin, 1, name=f.__name__, call=f, **options)
        made.__doc__ = text.__doc__
        made.__signature__ = inspect.signature(text)
        return made

    return take


def _unary(f: Callable[..., Any]) -> Callable[[Callable[..., Array]], UnaryObject]:
    """The object that calls this function, in place of the decorated one, which has no body and
    gives it its signature and its help."""
    return _object(f, 1, {})


def _binary(
    f: Callable[..., Any], **options: Any
) -> Callable[[Callable[..., Array]], BinaryObject]:
    """As `_unary`; `options` say what methods do."""
    return _object(f, 2, options)


def _logical(fold: Callable[..., Any], combine: Callable[..., Any]) -> Callable[..., Any]:
    def reduce(
        a: Any,
        axis: Any = 0,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
        dtype: Any = None,
    ) -> Any:
        out = fold(a, axis=axis, keepdims=keepdims, where=where)
        out = out if initial is None else combine(out, initial)
        return out if dtype is None else convert(out, result_dtype(dtype))

    return reduce


def _bitwise(primitive: str, combine: Binary, identity: int) -> Callable[..., Any]:
    name = combine.__name__

    def reduce(
        a: Any,
        axis: Any = 0,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
        dtype: Any = None,
    ) -> Any:
        a = array_of(f"{name}.reduce", a)
        a = a if dtype is None else convert(a, result_dtype(dtype))
        neutral = bool(identity) if a.dtype == np.dtype(bool) else identity
        return reductions.fold(
            name, primitive, a, axis, keepdims, where, initial, neutral, combine, {}
        )

    return reduce


def _odd(
    a: Any,
    axis: Any = 0,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
    dtype: Any = None,
) -> Any:
    a = array_of("logical_xor.reduce", a)
    out = _bitwise("reduce_xor", ufuncs.logical_xor, 0)(a != 0, axis, keepdims, initial, where)
    return out if dtype is None else convert(out, result_dtype(dtype))


def _accumulated(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, axis=0, dtype=None: f(a, axis=axis, dtype=dtype)


def _updating(method: str) -> Callable[..., Any]:
    return lambda a, indices, b: getattr(a.at[indices], method)(b)


@_unary(ufuncs.negative)
def negative(x: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """The numbers with the opposite sign. Unsigned integers wrap around; bools are refused.

    Args:
        x: arrays or numbers.
        out, where: must be None: arrays are immutable, and `jnp.where` chooses.
    Returns:
        An array of the same shape and dtype.
    Differs from NumPy:
        There is no `dtype`. The method `at` returns its result and needs `inplace=False`.

    >>> jnp.negative(jnp.array([1.0, -2.0]))
    Array([-1.,  2.], dtype=float32)"""


@_binary(
    ufuncs.add,
    identity=0,
    reduce=reductions.sum,
    accumulate=_accumulated(reductions.cumsum),
    at=_updating("add"),
)
def add(x1: ArrayLike, x2: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """The sums `x1 + x2`. For bools, whether either is true.

    Args:
        x1, x2: arrays or numbers. Their shapes broadcast.
        out, where: must be None: arrays are immutable, and `jnp.where` chooses.
    Returns:
        An array of the common shape, of the dtype that the operands have together.
    Differs from NumPy:
        There is no `dtype`. The method `at` returns its result and needs `inplace=False`.

    >>> jnp.add(jnp.array([1, 2]), 0.5)
    Array([1.5, 2.5], dtype=float32, weak_type=True)"""


@_binary(ufuncs.subtract, at=_updating("subtract"))
def subtract(x1: ArrayLike, x2: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """The differences `x1 - x2`. Bools are refused: `logical_xor` is meant.

    Args:
        x1, x2: arrays or numbers. Their shapes broadcast.
        out, where: must be None: arrays are immutable, and `jnp.where` chooses.
    Returns:
        An array of the common shape, of the dtype that the operands have together.
    Differs from NumPy:
        There is no `dtype`. The method `at` returns its result and needs `inplace=False`.

    >>> jnp.subtract(jnp.array([5, 2]), 3)
    Array([ 2, -1], dtype=int32)"""


@_binary(
    ufuncs.multiply,
    identity=1,
    reduce=reductions.prod,
    accumulate=_accumulated(reductions.cumprod),
    at=_updating("multiply"),
)
def multiply(x1: ArrayLike, x2: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """The products `x1 * x2`. For bools, whether both are true.

    Args:
        x1, x2: arrays or numbers. Their shapes broadcast.
        out, where: must be None: arrays are immutable, and `jnp.where` chooses.
    Returns:
        An array of the common shape, of the dtype that the operands have together.
    Differs from NumPy:
        There is no `dtype`. The method `at` returns its result and needs `inplace=False`.

    >>> jnp.multiply(jnp.arange(3), jnp.array([[1], [10]]))
    Array([[ 0,  1,  2],
           [ 0, 10, 20]], dtype=int32)"""


@_binary(ufuncs.maximum, reduce=reductions.max, at=_updating("max"))
def maximum(x1: ArrayLike, x2: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """The larger of two numbers; nan if either is. Complex numbers are compared by their real
    parts, then by their imaginary parts.

    Args:
        x1, x2: arrays or numbers. Their shapes broadcast.
        out, where: must be None: arrays are immutable, and `jnp.where` chooses.
    Returns:
        An array of the common shape, of the dtype that the operands have together.
    Differs from NumPy:
        There is no `dtype`. The method `at` returns its result and needs `inplace=False`.

    >>> jnp.maximum(jnp.array([1.0, 5.0]), 3.0)
    Array([3., 5.], dtype=float32)"""


@_binary(ufuncs.minimum, reduce=reductions.min, at=_updating("min"))
def minimum(x1: ArrayLike, x2: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """The smaller of two numbers; nan if either is. Complex numbers are compared by their real
    parts, then by their imaginary parts.

    Args:
        x1, x2: arrays or numbers. Their shapes broadcast.
        out, where: must be None: arrays are immutable, and `jnp.where` chooses.
    Returns:
        An array of the common shape, of the dtype that the operands have together.
    Differs from NumPy:
        There is no `dtype`. The method `at` returns its result and needs `inplace=False`.

    >>> jnp.minimum(jnp.array([1.0, 5.0]), 3.0)
    Array([1., 3.], dtype=float32)"""


@_binary(ufuncs.bitwise_and, identity=-1, reduce=_bitwise("reduce_and", ufuncs.bitwise_and, -1))
def bitwise_and(x1: ArrayLike, x2: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """The bits that are set in both operands, `x1 & x2`.

    Args:
        x1, x2: integers or bools. Their shapes broadcast.
        out, where: must be None: arrays are immutable, and `jnp.where` chooses.
    Returns:
        An array of the common shape, of the dtype that the operands have together.
    Differs from NumPy:
        There is no `dtype`. The method `at` returns its result and needs `inplace=False`.

    >>> jnp.bitwise_and(jnp.array([6, 5]), 3)
    Array([2, 1], dtype=int32)"""


@_binary(ufuncs.bitwise_or, identity=0, reduce=_bitwise("reduce_or", ufuncs.bitwise_or, 0))
def bitwise_or(x1: ArrayLike, x2: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """The bits that are set in either operand, `x1 | x2`.

    Args:
        x1, x2: integers or bools. Their shapes broadcast.
        out, where: must be None: arrays are immutable, and `jnp.where` chooses.
    Returns:
        An array of the common shape, of the dtype that the operands have together.
    Differs from NumPy:
        There is no `dtype`. The method `at` returns its result and needs `inplace=False`.

    >>> jnp.bitwise_or(jnp.array([6, 5]), 3)
    Array([7, 7], dtype=int32)"""


@_binary(ufuncs.bitwise_xor, identity=0, reduce=_bitwise("reduce_xor", ufuncs.bitwise_xor, 0))
def bitwise_xor(x1: ArrayLike, x2: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """The bits that are set in just one operand, `x1 ^ x2`.

    Args:
        x1, x2: integers or bools. Their shapes broadcast.
        out, where: must be None: arrays are immutable, and `jnp.where` chooses.
    Returns:
        An array of the common shape, of the dtype that the operands have together.
    Differs from NumPy:
        There is no `dtype`. The method `at` returns its result and needs `inplace=False`.

    >>> jnp.bitwise_xor(jnp.array([6, 5]), 3)
    Array([5, 6], dtype=int32)"""


@_binary(ufuncs.logical_and, identity=True, reduce=_logical(reductions.all, ufuncs.logical_and))
def logical_and(x1: ArrayLike, x2: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """Tells where both operands are true.

    Args:
        x1, x2: truth values. Their shapes broadcast.
        out, where: must be None: arrays are immutable, and `jnp.where` chooses.
    Returns:
        An array of bools of the common shape.
    Differs from NumPy:
        There is no `dtype`. The method `at` returns its result and needs `inplace=False`.

    >>> jnp.logical_and(jnp.array([0, 1, 2]), True)
    Array([False,  True,  True], dtype=bool)"""


@_binary(ufuncs.logical_or, identity=False, reduce=_logical(reductions.any, ufuncs.logical_or))
def logical_or(x1: ArrayLike, x2: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """Tells where either operand is true.

    Args:
        x1, x2: truth values. Their shapes broadcast.
        out, where: must be None: arrays are immutable, and `jnp.where` chooses.
    Returns:
        An array of bools of the common shape.
    Differs from NumPy:
        There is no `dtype`. The method `at` returns its result and needs `inplace=False`.

    >>> jnp.logical_or(jnp.array([0, 1, 2]), False)
    Array([False,  True,  True], dtype=bool)"""


@_binary(ufuncs.logical_xor, identity=False, reduce=_odd)
def logical_xor(x1: ArrayLike, x2: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """Tells where just one operand is true.

    Args:
        x1, x2: truth values. Their shapes broadcast.
        out, where: must be None: arrays are immutable, and `jnp.where` chooses.
    Returns:
        An array of bools of the common shape.
    Differs from NumPy:
        There is no `dtype`. The method `at` returns its result and needs `inplace=False`.

    >>> jnp.logical_xor(jnp.array([0, 1, 2]), True)
    Array([ True, False, False], dtype=bool)"""


@_binary(elementwise.logaddexp, identity=-np.inf)
def logaddexp(x1: ArrayLike, x2: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """`log(exp(x1) + exp(x2))`, without overflow: the sum of numbers that are kept as logarithms.

    Args:
        x1, x2: arrays or numbers. Their shapes broadcast.
        out, where: must be None: arrays are immutable, and `jnp.where` chooses.
    Returns:
        Floats or complex numbers of the common shape.
    Differs from NumPy:
        There is no `dtype`. The method `at` returns its result and needs `inplace=False`.

    >>> jnp.logaddexp(jnp.array([0.0, 1000.0]), jnp.array([0.0, 1000.0]))
    Array([6.9314718e-01, 1.0006932e+03], dtype=float32)"""


@_binary(elementwise.logaddexp2, identity=-np.inf)
def logaddexp2(x1: ArrayLike, x2: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """`log2(2**x1 + 2**x2)`, without overflow: the sum of numbers that are kept as logarithms.

    Args:
        x1, x2: arrays or numbers. Their shapes broadcast.
        out, where: must be None: arrays are immutable, and `jnp.where` chooses.
    Returns:
        Floats or complex numbers of the common shape.
    Differs from NumPy:
        There is no `dtype`. The method `at` returns its result and needs `inplace=False`.

    >>> jnp.logaddexp2(jnp.array([0.0, 1000.0]), jnp.array([0.0, 1000.0]))
    Array([1.000e+00, 1.001e+03], dtype=float32)"""

"""Element types: what kinds there are, how they are promoted, their limits."""

from typing import Any

import ml_dtypes
import numpy as np

from calque.core import guards as _guards
from calque.core.dtypes import (
    TypePromotionError,
    as_dtype,
    canonicalize,
    finfo,
    float0,
    iinfo,
    is_extended,
    promote,
)
from calque.core.trace import typeof
from calque.core.types import ArrayLike, DType, DTypeLike
from calque.numpy.queries import issubdtype as _issubdtype
from calque.numpy.queries import result_type as _result_type
from calque.ops.random.keys import extended, prng_key

__all__ = [
    "TypePromotionError", "bfloat16", "canonicalize_dtype", "extended", "finfo", "float0",
    "iinfo", "issubdtype", "itemsize_bits", "prng_key",
    "result_type", "scalar_type_of",
]  # fmt: skip

bfloat16 = ml_dtypes.bfloat16


def canonicalize_dtype(dtype: DTypeLike, allow_extended_dtype: bool = False) -> DType:
    """Gives the dtype that arrays of a dtype have.

    Args:
        dtype: The dtype. 64-bit types become 32-bit ones unless they are enabled.
        allow_extended_dtype: Whether the dtypes of random keys are given back; otherwise they are
            an error.

    Returns:
        A dtype.

    >>> jax.dtypes.canonicalize_dtype(float)
    dtype('float32')"""
    if is_extended(dtype) and not allow_extended_dtype:
        raise ValueError(
            f"canonicalize_dtype called on extended dtype {dtype} with allow_extended_dtype=False"
        )
    return canonicalize(dtype)


def issubdtype(a: Any, b: Any) -> bool:
    """Tells whether a dtype or kind is of another kind; random keys and narrow floats included.

    Args:
        a: A dtype or a kind.
        b: A kind, such as `np.floating`, or a dtype.

    Returns:
        A bool.

    >>> jax.dtypes.issubdtype(jax.dtypes.bfloat16, np.floating)
    True
    >>> jax.dtypes.issubdtype(jax.random.key(0).dtype, jax.dtypes.prng_key)
    True"""
    return _issubdtype(a, b)


def result_type(*args: ArrayLike | DTypeLike, return_weak_type_flag: bool = False) -> Any:
    """Gives the dtype of a result with these operands, by the rules of promotion.

    Args:
        *args: Arrays, numbers and dtypes.
        return_weak_type_flag: Whether to tell as well if the result is weakly typed.

    Returns:
        A dtype; with the flag a pair (dtype, bool).

    >>> jax.dtypes.result_type(1, np.int8)
    dtype('int8')"""
    if not return_weak_type_flag:
        return _result_type(*args)
    avals = [
        (
            (canonicalize(float if a is None else a), False)
            if a is None or isinstance(a, (type, str, np.dtype))
            else (typeof(a).dtype, typeof(a).weak_type)
        )
        for a in args
    ]
    return promote(tuple(avals))


def scalar_type_of(x: Any) -> type:
    """Gives the Python type of the values of an array.

    Args:
        x: An array or a number.

    Returns:
        bool, int, float or complex.

    >>> jax.dtypes.scalar_type_of(2.5)
    <class 'float'>"""
    dtype = typeof(x).dtype
    for kind, result in (
        (np.bool_, bool),
        (np.integer, int),
        (np.floating, float),
        (np.complexfloating, complex),
    ):
        if issubdtype(dtype, kind):
            return result
    raise TypeError(f"Invalid scalar value {x}")


def itemsize_bits(dtype: DTypeLike) -> int:
    """Gives the number of bits of an element.

    Args:
        dtype: The dtype.

    Returns:
        An int.

    >>> jax.dtypes.itemsize_bits("int4")
    4"""
    if dtype is None:
        raise ValueError("itemsize_bits: dtype cannot be None: name the element type")
    d = as_dtype(dtype)
    if d == np.dtype(bool):
        return 8
    if issubdtype(d, np.integer):
        return int(iinfo(d).bits)
    return int(finfo(d).bits) if issubdtype(d, np.floating) else 8 * int(d.itemsize)


_guards.guard_public(globals())

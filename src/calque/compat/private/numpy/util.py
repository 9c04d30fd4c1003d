"""`jax._src.numpy.util`: operands as arrays of one type and one rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calque.core.arrays import Array, to_array
from calque.core.dtypes import inexact_of
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.numpy.promotion import (
    check_arraylike,
    check_rank_promotion,
    common_type,
    convert,
    is_arraylike,
)

__all__ = [
    "check_arraylike", "check_arraylike_or_none", "ensure_arraylike", "ensure_arraylike_tuple",
    "promote_args", "promote_args_complex", "promote_args_inexact", "promote_args_numeric",
    "promote_dtypes", "promote_dtypes_complex", "promote_dtypes_inexact",
    "promote_dtypes_numeric", "promote_shapes",
]  # fmt: skip


def _of_type(args: Sequence[Any], dtype: Any, weak: bool) -> list[Array]:
    return [convert(to_array(x), dtype, weak) for x in args]


def promote_dtypes(*args: Any) -> list[Array]:
    """Arguments in one dtype."""
    return _of_type(args, *common_type(*args))


def promote_dtypes_inexact(*args: Any) -> list[Array]:
    """Arguments in one dtype, which holds fractions."""
    dtype, weak = common_type(*args)
    return _of_type(args, inexact_of(dtype), weak)


def promote_dtypes_numeric(*args: Any) -> list[Array]:
    """Arguments in one dtype; bools become integers."""
    dtype, weak = common_type(*args)
    return _of_type(args, np.dtype("int32") if dtype == np.dtype(bool) else dtype, weak)


def promote_dtypes_complex(*args: Any) -> list[Array]:
    """Arguments in one dtype, which is complex."""
    dtype, weak = common_type(*args)
    wide = inexact_of(dtype) in (np.dtype("float64"), np.dtype("complex128"))
    return _of_type(args, np.dtype("complex128" if wide else "complex64"), weak)


def promote_shapes(fun_name: str, *args: Any) -> list[Array]:
    """Arrays of one rank, by axes of size 1 in front; those of rank 0 stay."""
    arrays = [to_array(x) for x in args]
    shapes = [typeof(x).shape for x in arrays]
    check_rank_promotion(fun_name, shapes)
    rank = max(map(len, shapes), default=0)
    return [
        x if len(s) in (0, rank) else do.reshape(x, new_sizes=(1,) * (rank - len(s)) + s)
        for x, s in zip(arrays, shapes)
    ]


def check_arraylike_or_none(fun_name: str, *args: Any) -> None:
    """Refuses what is neither an array nor a number nor None."""
    for i, x in enumerate(args):
        if x is not None and not is_arraylike(x):
            raise TypeError(
                f"{fun_name} requires ndarray, scalar or None arguments, got {type(x)} at position"
                f" {i}"
            )


def ensure_arraylike_tuple(fun_name: str, tup: Sequence[Any]) -> tuple[Array, ...]:
    """Arrays of the elements of a sequence."""
    check_arraylike(fun_name, *tup)
    return tuple([to_array(x) for x in tup])


def ensure_arraylike(fun_name: str, /, *args: Any) -> Any:
    """Arrays of the arguments: an array of one, else a tuple."""
    arrays = ensure_arraylike_tuple(fun_name, args)
    return arrays[0] if len(arrays) == 1 else arrays


def _promoted(promote: Any, fun_name: str, args: tuple[Any, ...]) -> list[Array]:
    check_arraylike(fun_name, *args)
    return promote_shapes(fun_name, *promote(*args))


def promote_args(fun_name: str, *args: Any) -> list[Array]:
    """Arguments in one dtype and of one rank."""
    return _promoted(promote_dtypes, fun_name, args)


def promote_args_numeric(fun_name: str, *args: Any) -> list[Array]:
    """As `promote_args`; bools become integers."""
    return _promoted(promote_dtypes_numeric, fun_name, args)


def promote_args_inexact(fun_name: str, *args: Any) -> list[Array]:
    """As `promote_args`, in a dtype that holds fractions."""
    return _promoted(promote_dtypes_inexact, fun_name, args)


def promote_args_complex(fun_name: str, *args: Any) -> list[Array]:
    """As `promote_args`, in a complex dtype."""
    return _promoted(promote_dtypes_complex, fun_name, args)

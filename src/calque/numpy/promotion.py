"""What library functions do with their operands first: check them, find the common dtype,
broadcast."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from types import FrameType
from typing import Any, Final

import numpy as np

from calque.core import foreign_values
from calque.core.adopting import refuse_masked
from calque.core.arrays import Array, ArrayImpl, as_it_is, to_array
from calque.core.avals import ShapedArray
from calque.core.config import config
from calque.core.dims import Dim, is_found, surely_equal, surely_same, value_of, whole
from calque.core.dtypes import (
    PYTHON_SCALARS,
    TypePromotionError,
    asked,
    bfloat16,
    canonicalize,
    iinfo,
    inexact_of,
    is_integer,
    promote,
    promote_in_any_case,
)
from calque.core.primitives import do
from calque.core.source import is_internal
from calque.core.trace import typeof
from calque.core.trace_state import Tracer
from calque.ops.conversions import constant_of

_ARRAYS = (ArrayImpl, Tracer)
_NUMBERS = (*PYTHON_SCALARS, Dim)
_FLOAT32 = np.dtype("float32")
_FLOATS = (_FLOAT32, np.dtype("float64"))  # which round once what a double holds
_EXACT = 1 << 53  # ints up to here are doubles
_PYTHON_OF_KIND: Final = {"b": bool, "i": int, "u": int, "f": float, "c": complex, "V": float}


def refuse_out(name: str, out: Any) -> None:
    """The argument of NumPy that says where a result is to be written."""
    if out is not None:
        raise NotImplementedError(
            f"The 'out' argument to jnp.{name} is not supported: arrays are immutable, use the"
            " result."
        )


def check_arraylike(name: str, *args: Any) -> None:
    """Lists, tuples, strings and other objects are refused by name and position."""
    for i, a in enumerate(args):
        if not isinstance(a, _ARRAYS) and not is_arraylike(a):
            hint = ""
            if isinstance(a, (list, tuple)):
                hint = (
                    f" Convert the {type(a).__name__} first: jnp.array({a!r})."
                    if len(repr(a)) < 60
                    else " Convert it with jnp.array first."
                )
            raise TypeError(
                f"{name} requires ndarray or scalar arguments, got {type(a)} at position {i}.{hint}"
            )


def is_arraylike(a: Any) -> bool:
    if isinstance(a, _NUMBERS):
        return True
    if isinstance(a, (np.ndarray, np.generic)):
        return a.dtype.kind not in "OSUMm"
    if hasattr(a, "__jax_array__") or hasattr(type(a), "aval"):  # not what it hands on of another
        return True
    return foreign_values.conversions.of(a) is not None


def as_operand(x: Any) -> Any:
    """What primitives take: NumPy arrays in the canonical dtype and native byte order,
    `__jax_array__` asked."""
    if issubclass(type(x), _ARRAYS) or type(x) in PYTHON_SCALARS:
        return x
    if isinstance(x, (np.ndarray, np.generic)):
        refuse_masked(x)
        dtype = canonicalize(x.dtype) if x.dtype.kind in "iufc" else x.dtype
        if dtype.isnative and dtype == x.dtype:
            return x
        with np.errstate(all="ignore"):
            return np.asarray(x).astype(dtype if dtype.isnative else dtype.newbyteorder("="))
    if type(x) is Dim:
        return value_of(x)
    if hasattr(x, "__jax_array__"):
        return x.__jax_array__()
    return x if foreign_values.conversions.of(x) is None else to_array(x)


def arrays(name: str, *args: Any) -> list[Array]:
    """Operands as Arrays or tracers, with their methods and operators; anything else is refused."""
    check_arraylike(name, *args)
    return [to_array(as_operand(a)) for a in args]


def array_of(name: str, a: Any) -> Array:
    """One operand as an Array or a tracer."""
    if isinstance(a, _ARRAYS):
        return a  # type: ignore[return-value]
    check_arraylike(name, a)
    return to_array(as_operand(a))


def convert(x: Any, dtype: Any, weak_type: bool = False) -> Array:
    """`x` with this dtype. Python and NumPy scalars become scalars of the program text."""
    t = type(x)
    if t in PYTHON_SCALARS:
        if weak_type:
            return _PYTHON_OF_KIND[dtype.kind](x)
        return as_it_is(python_scalar(x, dtype))
    aval = typeof(x)
    if aval.dtype == dtype and (not isinstance(x, (np.ndarray, np.generic)) or x.dtype == dtype):
        if aval.weak_type != weak_type and not isinstance(x, (np.ndarray, np.generic)):
            return do.convert_element_type(x, new_dtype=dtype, weak_type=weak_type)
        return x  # type: ignore[return-value]
    if isinstance(x, np.generic):
        if weak_type:
            return do.convert_element_type(as_operand(x), new_dtype=dtype, weak_type=True)
        return as_it_is(constant_of(x, dtype))
    return do.convert_element_type(as_operand(x), new_dtype=dtype, weak_type=weak_type)


def python_scalar(x: Any, dtype: Any) -> Any:
    """A Python number as a NumPy scalar; ints come round where the dtype is too narrow."""
    if (
        type(x) is float and dtype == _FLOAT32 and -3e38 < x < 3e38
    ):  # no rounding to infinity to keep quiet about
        return np.float32(x)
    if type(x) is int and -_EXACT <= x <= _EXACT and dtype in _FLOATS:
        return np.asarray(x, dtype)
    if isinstance(x, int) and not isinstance(x, bool) and is_integer(dtype):
        info = iinfo(dtype)
        return np.asarray(x if info.min <= x <= info.max else _come_round(x, dtype), dtype)
    return constant_of(x, dtype)


def _come_round(x: int, dtype: Any) -> int:
    typeof(x)  # what no integer of the default width is, is refused
    bits = iinfo(dtype).bits
    rest = x % (1 << bits)
    return rest - (1 << bits) if rest > iinfo(dtype).max else rest


def common_type(*args: Any) -> tuple[Any, bool]:
    """The (dtype, weak_type) of operands together."""
    items = tuple([(a.dtype, a.weak_type) for a in map(typeof, args)])
    try:
        return promote(items)
    except TypePromotionError:
        # a Python number that a library function brought is no business of the user's
        if _asked_by_user(directly=any([weak for _, weak in items])):
            raise
        return promote_in_any_case(items)


def promote_dtypes(*args: Any) -> list[Array]:
    dtype, weak = common_type(*args)
    return [convert(a, dtype, weak) for a in args]


def product_operands(a: Any, b: Any) -> list[Array]:
    """Two operands of a sum of products: as they are where the product itself brings them to the
    dtype that they have together, and else in that dtype."""
    dtype, weak = common_type(a, b)
    avals = typeof(a), typeof(b)
    whole = dtype in _SUMMED_AS_THEY_ARE or (
        dtype in _HALVES and all(v.dtype == dtype or v.dtype in _SMALL for v in avals)
    )
    if whole and not any(v.weak_type for v in avals):
        return [a, b]
    return [convert(x, dtype, weak) for x in (a, b)]


# of the others, sums are computed in another dtype
_SUMMED_AS_THEY_ARE: Final = frozenset(
    map(np.dtype, ("f4", "f8", "c8", "c16", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"))
)
# which are multiplied in float32; these integers are the same there, whether halves before or not
_HALVES: Final = frozenset((np.dtype("float16"), bfloat16))
_SMALL: Final = frozenset(map(np.dtype, ("bool", "int8", "uint8")))


def promote_inexact(*args: Any) -> list[Array]:
    """Brings operands to one dtype, which holds fractions.

    Args:
        *args: Arrays and numbers.

    Returns:
        A list of arrays of floats or complex numbers.

    >>> from calque.experimental import ode
    >>> ode.promote_dtypes_inexact(1, jnp.ones(2))[0]
    array(1., dtype=float32)"""
    dtype, weak = common_type(*args)
    dtype = inexact_of(dtype)
    return [convert(a, dtype, weak) for a in args]


def promote_inexact_strong(*args: Any) -> list[Array]:
    """As `promote_inexact`; the result has a weak type only if every operand has one, or is a
    number: of Python, or of rank 0."""
    return _inexact_if_weak(args, args)


def promote_inexact_as_first(*args: Any) -> list[Array]:
    """As `promote_inexact`; the result has a weak type only if the first operand has one, or is a
    number: of Python, or of rank 0."""
    return _inexact_if_weak(args, args[:1])


def _inexact_if_weak(args: Sequence[Any], asked: Sequence[Any]) -> list[Array]:
    dtype, weak = common_type(*args)
    weak = weak and all([not shape_of(x) or typeof(x).weak_type for x in asked])
    return [convert(x, inexact_of(dtype), weak) for x in args]


def promote_numeric(*args: Any) -> list[Array]:
    """As `promote_dtypes`, with bools becoming integers."""
    dtype, weak = common_type(*args)
    if dtype == np.dtype(bool):
        dtype = np.dtype("int32")
    return [convert(a, dtype, weak) for a in args]


def is_number(x: Any) -> bool:
    """A number of Python or NumPy, or an array that stands for one: of rank 0 and weak type."""
    if np.isscalar(x):
        return True
    aval = typeof(x)
    return aval.weak_type and not aval.shape


def shape_of(x: Any) -> tuple[int, ...]:
    return getattr(x, "shape", ()) if not isinstance(x, PYTHON_SCALARS) else ()


def broadcast_shapes(name: str, *shapes: Sequence[int]) -> tuple[int, ...]:
    """The common shape; the error names the function and every shape."""
    rank = max(map(len, shapes), default=0)
    out = []
    for axis in range(rank):
        size: Any = 1
        for s in shapes:
            k = axis - rank + len(s)
            if k >= 0 and not surely_equal(s[k], 1) and not surely_equal(s[k], size):
                if not surely_equal(size, 1) and s[k] != size and s[k] != 1 and size != 1:
                    raise incompatible(name, shapes)
                size = s[k] if surely_equal(size, 1) or s[k] != 1 else size
        out.append(size)
    return tuple(out)


def incompatible(name: str, shapes: Sequence[Any]) -> Exception:
    listed = ", ".join(str(tuple(s)) for s in shapes)
    remedy = "reshape an operand, for example x[:, None]."
    if any(is_found(d) for s in shapes for d in s):
        remedy = (
            "sizes that the program finds are equal if they come of one and the same mask or"
            " number: compute that once."
        )
    kind = (
        ValueError if len({len(s) for s in shapes if len(s)}) > 1 else TypeError
    )  # JAX's: ranks that differ are another case
    return kind(
        f"{name} got incompatible shapes for broadcasting: {listed}. Sizes must be equal or 1,"
        f" counted from the last axis; {remedy}"
    )


def broadcast_to(x: Any, shape: tuple[int, ...]) -> Array:
    """`x` repeated along leading and size-1 axes; the shapes are known to fit."""
    own = shape_of(x)
    if surely_same(own, shape):
        return x
    lead = len(shape) - len(own)
    keep = [i for i, d in enumerate(own) if surely_equal(d, shape[lead + i]) or d != 1]
    if len(keep) < len(own):
        x = do.reshape(x, new_sizes=tuple([own[i] for i in keep]))
    dims = tuple([lead + i for i in keep])
    return do.broadcast_in_dim(x, shape=shape, broadcast_dimensions=dims)


def promote_shapes(name: str, *args: Any) -> list[Array]:
    """Operands of one shape; those of rank 0 stay, elementwise primitives take them as they are."""
    shapes = [shape_of(a) for a in args]
    full = [s for s in shapes if s] or shapes
    for s in full:
        if s is not full[0] and not surely_same(s, full[0]):
            break
    else:
        return list(args)  # there are no two ranks but 0
    check_rank_promotion(name, shapes)
    shape = broadcast_shapes(name, *shapes)
    return [a if s == () else broadcast_to(a, shape) for a, s in zip(args, shapes)]


_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Frames between an operation and whoever asked for it: the call path, operators, ufuncs.
_BETWEEN = tuple(
    os.path.join(_PACKAGE, *place.split("/"))
    for place in (
        "core/", "machine/", "native/", "transforms/jit/", "transforms/engines/specialiser.py",
        "numpy/calls/", "numpy/methods/", "numpy/promotion.py",
        "numpy/public/objects.py", "numpy/ufunc_objects.py", "numpy/ufuncs.py",
    )
)  # fmt: skip


def _asked_by_user(name: str | None = None, directly: bool = False) -> bool:
    """Whether the user called the operation itself, or (unless it has to be `directly`) a function
    of the library of this name, or any, that does it; not the library for its own ends."""
    frame = _beyond(sys._getframe(1))
    if (
        frame is not None
        and not directly
        and is_internal(frame.f_code)
        and name in (None, frame.f_code.co_name)
    ):
        frame = _beyond(frame.f_back)
    return frame is None or not is_internal(frame.f_code)


def _beyond(frame: FrameType | None) -> FrameType | None:
    while frame is not None and frame.f_code.co_filename.startswith(_BETWEEN):
        frame = frame.f_back
    return frame


def check_rank_promotion(name: str, shapes: Sequence[tuple[int, ...]]) -> None:
    if config.numpy_rank_promotion == "allow":
        return
    ranks = {len(s) for s in shapes if s}
    if len(ranks) > 1 and _asked_by_user(name):
        message = (
            f"Operands could not be broadcast together for {name} on shapes"
            f" {' '.join(map(str, shapes))} and with the config option"
            f" calque_numpy_rank_promotion={config.numpy_rank_promotion!r}."
        )
        if config.numpy_rank_promotion == "raise":
            raise ValueError(message)
        warnings.warn(
            f"Following NumPy automatic rank promotion for {name} on shapes"
            f" {' '.join(map(str, shapes))}, as the config option"
            " calque_numpy_rank_promotion='warn' asks to be told.",
            stacklevel=4,
        )


def result_dtype(dtype: Any, default: Any = None) -> Any:
    """A `dtype=` argument in canonical form."""
    return default if dtype is None else asked(dtype)


def ensure(x: Any) -> Array:
    """An Array or tracer."""
    return to_array(x)


def aval_of(x: Any) -> ShapedArray:
    return typeof(x)


def canonical_axis(axis: int, ndim: int, what: str = "axis") -> int:
    """A non-negative axis; out of range is a ValueError with the array's rank."""
    k = whole(axis, what)
    if not -ndim <= k < ndim:
        raise ValueError(f"{what} {axis} is out of bounds for array of dimension {ndim}")
    return k % ndim if ndim else k


def canonical_axes(axis: Any, ndim: int, what: str = "axis") -> tuple[int, ...]:
    """Every axis for None, one or several otherwise; duplicates are refused."""
    if axis is None:
        return tuple(range(ndim))
    given = axis if isinstance(axis, (Sequence, set, frozenset)) else (axis,)
    if isinstance(axis, (np.ndarray, ArrayImpl)) and axis.ndim == 1:
        given = axis.tolist()
    axes = tuple(canonical_axis(a, ndim, what) for a in given)
    if len(set(axes)) != len(axes):
        raise ValueError(f"duplicate value in '{what}': {axis} (a repeated axis)")
    return axes

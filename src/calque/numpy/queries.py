"""Questions about dtypes and values: promotion, subtypes, kinds, sizes."""

from __future__ import annotations

import warnings
from typing import Any, Final

import numpy as np

from calque.core.arrays import Array, ArrayImpl
from calque.core.dtypes import (
    PYTHON_SCALARS,
    ExtendedDType,
    as_dtype,
    asked,
    canonicalize,
    float0,
    is_complex,
    is_extended,
    is_float,
    is_integer,
    is_signed,
    promote,
    wide_promotion,
)
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.trace_state import Tracer
from calque.core.types import ArrayLike, Axes, DType, DTypeLike
from calque.numpy.calls.marks import python_only
from calque.numpy.conversions import asarray
from calque.numpy.creation import placed
from calque.numpy.promotion import array_of, canonical_axes, convert, is_arraylike
from calque.numpy.signatures import Placement
from calque.ops.common import scalar_of
from calque.ops.random.keys import extended

__all__ = [
    "astype", "can_cast", "iscomplexobj", "isdtype", "isrealobj", "isscalar", "issubdtype",
    "iterable", "ndim", "promote_types", "result_type", "shape", "size",
]  # fmt: skip


def _node(x: Any) -> tuple[Any, bool]:
    """(dtype, weak) of a value, a dtype, or a Python type, which is weak as its values are."""
    if x is None:  # as NumPy reads it: the default of dtypes
        return canonicalize(float), False
    if isinstance(x, type) and x in PYTHON_SCALARS:
        return canonicalize(x), x is not bool
    if isinstance(x, (str, np.dtype, type, ExtendedDType)) or (
        hasattr(x, "dtype") and isinstance(x, type)
    ):
        return canonicalize(as_dtype(x)), False
    aval = typeof(x)
    return aval.dtype, aval.weak_type


@python_only
def promote_types(a: DTypeLike, b: DTypeLike) -> DType:
    """The dtype that values of two dtypes have together, by the rules of JAX: int32 and float16
    make float16.

    Args:
        a: a dtype, or a Python type, which is weak.
        b: another.
    Returns:
        A dtype.
    Differs from NumPy:
        The lattice is JAX's: integers with floats keep the width of the floats.

    >>> jnp.promote_types("int32", "float16")
    dtype('float16')"""
    (da, wa), (db, wb) = _strict_node(a), _strict_node(b)
    if (da, wa) == (db, wb):
        return da
    return wide_promotion(((da, wa), (db, wb)))


def _strict_node(x: Any) -> tuple[Any, bool]:
    if isinstance(x, type) and x in PYTHON_SCALARS:
        return as_dtype(x), x is not bool
    return as_dtype(x), False


@python_only
def result_type(*args: Any) -> DType:
    """The dtype that arrays, numbers and dtypes have together. Python numbers are weak: they take
    the width of what they meet.

    Args:
        *args: arrays, numbers and dtypes, at least one.
    Returns:
        A dtype, of 32 bits where x64 is off.
    Differs from NumPy:
        Values of arrays play no part, and the lattice is JAX's.

    >>> jnp.result_type(jnp.float16, 2.0)
    dtype('float16')"""
    if not args:
        raise ValueError("at least one array or dtype is required")
    return promote(tuple(map(_node, args)))[0]


@python_only
def can_cast(from_: Any, to: DTypeLike, casting: str = "safe") -> bool:
    """Whether values of one dtype may be cast to another.

    Args:
        from_: a dtype, or an array; a Python number is refused.
        to: a dtype.
        casting: the rule: "no", "equiv", "safe", "same_kind" or "unsafe".
    Returns:
        A bool.

    >>> jnp.can_cast("int32", "int8"), jnp.can_cast("int8", "int32")
    (False, True)"""
    if isinstance(from_, PYTHON_SCALARS) and not isinstance(from_, np.generic):
        raise TypeError(
            f"can_cast() does not support Python ints, floats, and complex: got {from_!r}; pass its"
            " dtype"
        )
    source = (
        typeof(from_).dtype
        if isinstance(from_, (ArrayImpl, Tracer, np.ndarray, np.generic))
        else as_dtype(from_)
    )
    return bool(np.can_cast(source, as_dtype(to), casting=casting))  # type: ignore[arg-type]


_ABSTRACT = (
    np.generic,
    np.number,
    np.integer,
    np.signedinteger,
    np.unsignedinteger,
    np.inexact,
    np.floating,
    np.complexfloating,
)


def _class_of(dtype: Any) -> type:
    """The NumPy class of a dtype, the abstract one for dtypes that NumPy does not know."""
    if dtype.isbuiltin != 2:  # the narrow types are registered; float8_e5m2 calls itself "f"
        return dtype.type
    return (
        np.floating
        if is_float(dtype)
        else np.signedinteger
        if is_signed(dtype)
        else np.unsignedinteger
    )


def _is_extended_kind(x: Any) -> bool:
    return isinstance(x, ExtendedDType) or (isinstance(x, type) and issubclass(x, extended))


@python_only
def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Whether a dtype belongs to a kind, or equals another.

    Args:
        arg1: a dtype.
        arg2: a kind such as `jnp.floating` or `jnp.integer`, or a dtype.
    Returns:
        A bool.
    Differs from NumPy:
        bfloat16 and the floats of 8 bits and fewer are floating; keys have kinds of their own in
        `jax.dtypes`.

    >>> jnp.issubdtype(jnp.bfloat16, jnp.floating)
    True"""
    if isinstance(arg1, ArrayImpl) and is_extended(arg1.dtype):
        raise ValueError(f"Could not convert Array of dtype {arg1.dtype} to a dtype: pass x.dtype")
    if _is_extended_kind(arg1) or _is_extended_kind(arg2):
        kind = arg1.type if isinstance(arg1, ExtendedDType) else arg1
        return arg1 == arg2 or (
            isinstance(arg2, type)
            and isinstance(kind, type)
            and (issubclass(kind, arg2) or (_is_extended_kind(kind) and arg2 is np.generic))
        )
    if (
        isinstance(arg1, type)
        and issubclass(arg1, np.generic)
        and arg1 in (*_ABSTRACT, np.flexible, np.character)
    ):
        return isinstance(arg2, type) and issubclass(arg1, arg2)
    own = arg1 if isinstance(arg1, np.dtype) else _np_dtype(arg1)
    if own == float0:
        return arg2 in (np.void, np.flexible, np.generic) or arg2 == float0
    if isinstance(arg2, type) and issubclass(arg2, np.generic) and not _is_concrete(arg2):
        return issubclass(_class_of(own), arg2)
    if isinstance(arg2, type) and not hasattr(arg2, "dtype") and arg2 not in PYTHON_SCALARS:
        return False
    return bool(own == _np_dtype(arg2))


def _np_dtype(x: Any) -> np.dtype:
    try:
        return as_dtype(x)
    except TypeError:
        return np.dtype(x)


def _is_concrete(cls: type) -> bool:
    return cls not in (*_ABSTRACT, np.flexible, np.character)


_KINDS: Final = {
    "bool": lambda d: d == np.dtype(bool),
    "signed integer": is_signed,
    "unsigned integer": lambda d: is_integer(d) and not is_signed(d),
    "integral": is_integer,
    "real floating": is_float,
    "complex floating": is_complex,
    "numeric": lambda d: is_integer(d) or is_float(d) or is_complex(d),
}


@python_only
def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is of a kind.

    Args:
        dtype: a dtype.
        kind: "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex
            floating" or "numeric"; a dtype; or a tuple of these, any of which will do.
    Returns:
        A bool.

    >>> jnp.isdtype(jnp.int8, "integral")
    True"""
    own = as_dtype(dtype)
    for k in kind if isinstance(kind, tuple) else (kind,):
        if isinstance(k, tuple):
            if isdtype(own, k):
                return True
        elif isinstance(k, str) and k in _KINDS:
            if _KINDS[k](own):
                return True
        elif isinstance(k, str):
            try:
                other = np.dtype(k)
            except TypeError:
                raise ValueError(
                    f"Unrecognized kind={k!r} expected one of {list(_KINDS)} or a dtype"
                ) from None
            if own == other:
                return True
        elif own == _checked_kind(k):
            return True
    return False


def _checked_kind(k: Any) -> Any:
    if isinstance(k, (np.dtype, type, ExtendedDType)):
        return as_dtype(k)
    raise TypeError(f"Expected kind to be a dtype, string, or tuple; got kind={k!r}")


# ---------------------------------------------------------------- values


@python_only
def isscalar(element: Any) -> bool:
    """Whether something is a number: a Python number, a NumPy scalar, or an array without axes.

    Args:
        element: anything.
    Returns:
        A bool.
    Differs from NumPy:
        Arrays without axes are scalars.

    >>> jnp.isscalar(jnp.float32(1)), jnp.isscalar(jnp.ones(1))
    (True, False)"""
    if isinstance(element, (ArrayImpl, Tracer)) or hasattr(element, "__jax_array__"):
        return typeof(element).ndim == 0
    return bool(np.isscalar(element)) or (isinstance(element, np.ndarray) and element.ndim == 0)


@python_only
def iterable(y: Any) -> bool:
    """Whether something can be iterated over.

    Args:
        y: anything.
    Returns:
        A bool; false for an array without axes.

    >>> jnp.iterable(jnp.ones(3))
    True"""
    try:
        iter(y)
    except TypeError:
        return False
    return True


def _shape_of(name: str, a: Any) -> tuple[Any, ...]:
    """The shape of an array, or of anything with one. Of what is no operand NumPy is asked, for a
    while."""
    if isinstance(a, (np.ndarray, np.generic)) or not (hasattr(a, "shape") or is_arraylike(a)):
        if not is_arraylike(a):
            warnings.warn(
                f"{name} requires ndarray or scalar arguments, got {type(a)}; a later release"
                " refuses it. Convert it with jnp.array first.",
                DeprecationWarning,
                stacklevel=3,
            )
        return tuple(asarray(a).shape if _holds_arrays(a) else np.shape(a))
    return tuple(a.shape if hasattr(a, "shape") else typeof(a).shape)


def _holds_arrays(a: Any) -> bool:
    """Whether this is a nested list with an array in it that NumPy should not look into."""
    return isinstance(a, (list, tuple)) and any(
        isinstance(v, (ArrayImpl, Tracer)) or _holds_arrays(v) for v in a
    )


@python_only
def shape(a: ArrayLike) -> tuple[int, ...]:
    """The sizes of the axes.

    Args:
        a: an array or a number.
    Returns:
        A tuple of ints.
    Differs from NumPy:
        A list makes a DeprecationWarning: `jnp.array` converts it.

    >>> jnp.shape(jnp.ones((2, 3)))
    (2, 3)"""
    return _shape_of("shape", a)


@python_only
def ndim(a: ArrayLike) -> int:
    """The number of axes.

    Args:
        a: an array or a number.
    Returns:
        An int.
    Differs from NumPy:
        A list makes a DeprecationWarning: `jnp.array` converts it.

    >>> jnp.ndim(jnp.ones((2, 3)))
    2"""
    return len(_shape_of("ndim", a))


@python_only
def size(a: ArrayLike, axis: Axes | None = None) -> int:
    """The number of elements, in all or along some axes.

    Args:
        a: an array or a number.
        axis: an axis, or a tuple of axes; None is all.
    Returns:
        An int.
    Differs from NumPy:
        A list makes a DeprecationWarning: `jnp.array` converts it.

    >>> jnp.size(jnp.ones((2, 3)), axis=1)
    3"""
    sizes = _shape_of("size", a)
    n = 1
    for i in canonical_axes(axis, len(sizes)):
        n *= sizes[i]
    return n


@python_only
def iscomplexobj(x: Any) -> bool:
    """Whether the dtype of something is complex, whatever its values are.

    Args:
        x: an array, a number, or a list of them.
    Returns:
        A bool.

    >>> jnp.iscomplexobj(jnp.array([1 + 0j]))
    True"""
    if x is None:
        return False
    if isinstance(x, (list, tuple)):
        return any(map(iscomplexobj, x))
    try:
        return is_complex(x.dtype if hasattr(x, "dtype") else typeof(x).dtype)
    except TypeError:
        return False


@python_only
def isrealobj(x: Any) -> bool:
    """Whether the dtype of something is not complex.

    Args:
        x: an array, a number, or a list of them.
    Returns:
        A bool.

    >>> jnp.isrealobj(jnp.array([1.0]))
    True"""
    return not iscomplexobj(x)


@placed
def astype(
    x: ArrayLike, dtype: DTypeLike | None, /, *, copy: bool = False, device: Placement = None
) -> Array:
    """The elements in another dtype.

    Args:
        x: an array.
        dtype: the dtype; None is float32 (float64 with x64).
        copy: whether to copy where the dtype is the same already.
        device: where the array lies: a device or a sharding. None leaves it where it is.
    Returns:
        An array. Floats lose their fractions in integers, complex numbers their imaginary parts; as
        a bool anything but 0 is true.
    Differs from NumPy:
        Without x64 a dtype of 64 bits becomes one of 32.

    >>> jnp.astype(jnp.array([1.7, -1.7]), int)
    Array([ 1, -1], dtype=int32)"""
    x = array_of("astype", x)
    target = canonicalize(float) if dtype is None else asked(dtype)
    if target == np.dtype(bool) and x.dtype != target:
        return do.ne(x, scalar_of(x.dtype, 0))
    if is_complex(x.dtype) and not is_complex(target):
        x = do.real(x)
    out = convert(x, target)
    return do.copy(out) if copy and out is x else out

"""Arrays from and to other places: files, buffers, text; and how arrays are printed."""

from __future__ import annotations

import operator
import os
from typing import Any, NoReturn

import numpy as np
from numpy import get_printoptions, printoptions, set_printoptions

from calque.core.arrays import Array, ArrayImpl, to_numpy
from calque.core.dtypes import as_dtype
from calque.core.trace_state import Tracer
from calque.core.types import ArrayLike, DTypeLike
from calque.numpy.calls.marks import python_only
from calque.numpy.conversions import asarray

__all__ = [
    "array_repr", "array_str", "frombuffer", "fromfile", "fromiter", "fromstring",
    "get_printoptions", "load", "printoptions", "save",
    "savez", "set_printoptions",
]  # fmt: skip


@python_only
def frombuffer(buffer: Any, dtype: DTypeLike = float, count: int = -1, offset: int = 0) -> Array:
    """A 1-D array of the bytes of a buffer.

    >>> import calque.numpy as jnp
    >>> jnp.frombuffer(b"\\x01\\x02", dtype=jnp.uint8)
    Array([1, 2], dtype=uint8)"""
    if isinstance(buffer, (ArrayImpl, Tracer)):
        raise TypeError(f"a bytes-like object is required by frombuffer, not {type(buffer)}")
    return asarray(
        np.frombuffer(buffer, as_dtype(dtype), operator.index(count), operator.index(offset))
    )


@python_only
def fromfile(*args: Any, **kwargs: Any) -> NoReturn:
    """Not offered: reading a file is a side effect that cannot be traced."""
    raise NotImplementedError(
        "jnp.fromfile() is not implemented because it has side effects: use"
        " jnp.asarray(np.fromfile(...))"
    )


@python_only
def fromiter(*args: Any, **kwargs: Any) -> NoReturn:
    """Not offered: an iterator cannot be traced."""
    raise NotImplementedError(
        "jnp.fromiter() is not implemented because it consumes an iterator: use"
        " jnp.asarray(np.fromiter(...))"
    )


@python_only
def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """A 1-D array of the numbers in a text.

    >>> import calque.numpy as jnp
    >>> jnp.fromstring("1 2 3", dtype=int, sep=" ")
    Array([1, 2, 3], dtype=int32)"""
    return asarray(np.fromstring(string, as_dtype(dtype), operator.index(count), sep=sep))


@python_only
def save(file: Any, arr: ArrayLike, allow_pickle: bool = True) -> None:
    """An array as a .npy file. Dtypes that NumPy does not know are kept by name."""
    np.save(file, np.asarray(arr), allow_pickle=allow_pickle)


@python_only
def savez(file: Any, *args: ArrayLike, allow_pickle: bool = True, **kwds: Any) -> None:
    """Several arrays as a .npz file."""
    np.savez(
        file,
        *map(np.asarray, args),
        allow_pickle=allow_pickle,
        **{k: np.asarray(v) for k, v in kwds.items()},
    )


@python_only
def load(file: Any, *args: Any, **kwargs: Any) -> Array:
    """The array of a .npy file, or the arrays of a .npz file."""
    if isinstance(file, os.PathLike):
        file = os.fspath(file)
    out = np.load(file, *args, **kwargs)
    if not isinstance(out, np.ndarray):
        return out
    if out.dtype.kind == "V" and out.dtype.itemsize == 2 and not out.dtype.names:
        out = out.view(as_dtype("bfloat16"))  # .npy files write bfloat16 as two bytes of no type
    return out if out.dtype.kind in "OSU" else asarray(out)


@python_only
def array_repr(
    arr: ArrayLike,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """The text of an array as `repr` gives it, with other limits."""
    if isinstance(arr, Tracer):
        return repr(arr)
    options: dict[str, Any] = {
        "linewidth": max_line_width,
        "precision": precision,
        "suppress": suppress_small,
    }
    with np.printoptions(**{k: v for k, v in options.items() if v is not None}):
        return repr(asarray(arr))


@python_only
def array_str(
    a: ArrayLike,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """The elements of an array as text."""
    return np.array_str(to_numpy(asarray(a)), max_line_width, precision, suppress_small)

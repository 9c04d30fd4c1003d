"""Arrays from and to other places: files, buffers, text; and how arrays are printed."""

from __future__ import annotations

import os
from typing import Any, NoReturn

import numpy as np
from numpy import get_printoptions, printoptions, set_printoptions

from calque.core.arrays import Array, ArrayImpl, to_numpy
from calque.core.dims import whole
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
    r"""An array of what stands in memory.

    Args:
        buffer: bytes, or an object with the buffer protocol.
        dtype: of the elements.
        count: how many elements; -1 is all.
        offset: at which byte to begin.
    Returns:
        A copy, of one axis.
    Differs from NumPy:
        Without x64 a dtype of 64 bits is read as such and becomes one of 32.

    >>> jnp.frombuffer(b"\x01\x02", dtype=jnp.uint8)
    Array([1, 2], dtype=uint8)"""
    if isinstance(buffer, (ArrayImpl, Tracer)):
        raise TypeError(f"a bytes-like object is required by frombuffer, not {type(buffer)}")
    kind, count = as_dtype(dtype), whole(count, "count")
    if count * kind.itemsize >= 1 << 63:
        raise ValueError(
            f"frombuffer: the buffer has fewer than {count} elements: make count smaller"
        )
    return asarray(np.frombuffer(buffer, kind, count, whole(offset, "offset")))


@python_only
def fromfile(*args: Any, **kwargs: Any) -> NoReturn:
    """Refused: reading a file is a side effect, which a program cannot have.
    `jnp.asarray(np.fromfile(...))` reads one.

    Args:
        *args, **kwargs: anything.

    >>> import tempfile
    >>> with tempfile.TemporaryFile() as file:
    ...     _ = file.write(bytes([1, 2])), file.seek(0)
    ...     print(jnp.asarray(np.fromfile(file, np.uint8)))
    [1 2]"""
    raise NotImplementedError(
        "jnp.fromfile() is not implemented because it has side effects: use"
        " jnp.asarray(np.fromfile(...))"
    )


@python_only
def fromiter(*args: Any, **kwargs: Any) -> NoReturn:
    """Refused: an iterator is used up, which a program cannot do. `jnp.asarray(np.fromiter(...))`
    reads one.

    Args:
        *args, **kwargs: anything.

    >>> jnp.asarray(np.fromiter(range(3), int))
    Array([0, 1, 2], dtype=int32)"""
    raise NotImplementedError(
        "jnp.fromiter() is not implemented because it consumes an iterator: use"
        " jnp.asarray(np.fromiter(...))"
    )


@python_only
def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """An array of the numbers in a text.

    Args:
        string: the text.
        dtype: of the elements.
        count: how many numbers; -1 is all.
        sep: what stands between them.
    Returns:
        An array of one axis.
    Differs from NumPy:
        `sep` has to be given: bytes are read by `frombuffer`.

    >>> jnp.fromstring("1 2 3", dtype=int, sep=" ")
    Array([1, 2, 3], dtype=int32)"""
    return asarray(np.fromstring(string, as_dtype(dtype), whole(count, "count"), sep=sep))


@python_only
def save(file: Any, arr: ArrayLike, allow_pickle: bool = True) -> None:
    """Writes an array to a .npy file.

    Args:
        file: a path, or an open file.
        arr: an array.
        allow_pickle: whether objects may be pickled.

    >>> import io
    >>> file = io.BytesIO()
    >>> jnp.save(file, jnp.arange(3))
    >>> _ = file.seek(0)
    >>> jnp.load(file)
    Array([0, 1, 2], dtype=int32)"""
    np.save(file, np.asarray(arr), allow_pickle=allow_pickle)


@python_only
def savez(file: Any, *args: ArrayLike, allow_pickle: bool = True, **kwds: Any) -> None:
    """Writes several arrays to a .npz file.

    Args:
        file: a path, or an open file.
        *args: arrays, which are named "arr_0", "arr_1" and so on.
        allow_pickle: whether objects may be pickled.
        **kwds: arrays by name.

    >>> import io
    >>> file = io.BytesIO()
    >>> jnp.savez(file, a=jnp.arange(3))
    >>> _ = file.seek(0)
    >>> jnp.load(file)["a"]
    array([0, 1, 2], dtype=int32)"""
    arrays = [np.asarray(a) for a in args]
    named: dict[str, Any] = {k: np.asarray(v) for k, v in kwds.items()}
    if not allow_pickle and any(a.dtype.hasobject for a in (*arrays, *named.values())):
        raise ValueError("savez: arrays of objects are pickled, which allow_pickle=False forbids")
    np.savez(file, *arrays, **named)  # NumPy before 2.2 would write allow_pickle as an array


@python_only
def load(file: Any, *args: Any, **kwargs: Any) -> Array:
    """Reads a .npy file, or opens a .npz file.

    Args:
        file: a path, or an open file.
        *args, **kwargs: handed to `numpy.load`.
    Returns:
        An array; NumPy's arrays by name for a .npz file.

    >>> import io
    >>> file = io.BytesIO()
    >>> jnp.save(file, jnp.arange(3, dtype=jnp.bfloat16))
    >>> _ = file.seek(0)
    >>> jnp.load(file)
    Array([0, 1, 2], dtype=bfloat16)"""
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
    """The text of an array as `repr` gives it, with other limits.

    Args:
        arr: an array.
        max_line_width: how long a line may be; None is as set by `set_printoptions`.
        precision: how many digits after the point; None is as set.
        suppress_small: whether numbers near 0 are shown as 0; None is as set.
    Returns:
        A text.

    >>> jnp.array_repr(jnp.array([1.23456]), precision=2)
    'Array([1.23], dtype=float32)'"""
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
    """The elements of an array as text.

    Args:
        a: an array.
        max_line_width: how long a line may be; None is as set by `set_printoptions`.
        precision: how many digits after the point; None is as set.
        suppress_small: whether numbers near 0 are shown as 0; None is as set.
    Returns:
        A text.

    >>> jnp.array_str(jnp.array([1.23456]), precision=2)
    '[1.23]'"""
    return np.array_str(to_numpy(asarray(a)), max_line_width, precision, suppress_small)

"""The methods and operators of arrays, attached to concrete arrays and to tracers alike."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from calque.core.arrays import (
    Array,
    ArrayImpl,
    offered,
    to_numpy,
)
from calque.core.dtypes import asked, canonicalize, is_complex, is_extended
from calque.core.guards import guard
from calque.core.lazy import LazyModule
from calque.core.primitives import do
from calque.core.trace import ConstantTracer, typeof
from calque.core.trace_state import Tracer
from calque.machine.state import ProcessValue, process
from calque.numpy import contractions, moving, reductions, shaping, sorting, ufuncs
from calque.numpy.calls.cached import cached, with_call_path
from calque.numpy.calls.marks import python_only
from calque.numpy.calls.operators import operator
from calque.numpy.indexing import gathering as indexing
from calque.numpy.methods.attributes import ATTRIBUTES
from calque.numpy.methods.concrete import CONCRETE
from calque.numpy.methods.operators import operators
from calque.numpy.methods.traced import KNOWN, TRACED, of_value
from calque.numpy.promotion import convert, is_arraylike
from calque.numpy.public import complex_parts, folds
from calque.ops.common import scalar_of
from calque.transforms.devices.sharding_arrays import device_put

choosing, arranging = LazyModule("calque.numpy.choosing"), LazyModule("calque.numpy.arranging")
notebooks = LazyModule("calque.core.notebooks")

# ------------------------------------------------------------ methods that arrays and tracers share


def astype(self: Any, dtype: Any, copy: bool = False, device: Any = None) -> Any:
    """Gives the values in another dtype.

    Args:
        dtype: The new dtype; None means float32 (float64 where 64-bit types are enabled). Floats
            are truncated towards zero to integers; to bool, everything but 0 is True.
        copy: Whether to copy where the dtype stays the same.
        device: Where the result goes, a device or a sharding; None leaves it where it is.

    Returns:
        An array of the same shape.

    >>> jnp.array([1.7, -1.7]).astype(int)
    Array([ 1, -1], dtype=int32)"""
    if device is not None:
        return device_put(astype(self, dtype, copy), device)
    out = _as_type(self, dtype)
    return do.copy(out) if copy and out is self else out


def _as_type(self: Any, dtype: Any) -> Any:
    target = canonicalize(float) if dtype is None else asked(dtype)
    own = typeof(self).dtype
    if is_complex(own) and not is_complex(target):
        if target != np.dtype(bool):
            warnings.warn(
                "Casting from complex to real dtypes is deprecated: ask for jnp.real(x) or"
                " jnp.imag(x) first.",
                DeprecationWarning,
                stacklevel=3,
            )
        self = do.real(self) if target != np.dtype(bool) else do.ne(self, scalar_of(own, 0))
    if target == np.dtype(bool) and typeof(self).dtype != target:
        return do.ne(self, scalar_of(typeof(self).dtype, 0))
    return convert(self, target)


def _reshape(
    self: Any, *shape: Any, order: str = "C", copy: bool | None = None, out_sharding: Any = None
) -> Any:
    """Gives the same elements in another shape.

    Args:
        *shape: The new sizes, or one tuple of them; one may be -1 and follows from the others.
        order: "C" reads and fills the last axis first, "F" the first one.
        copy: None and False allow the result to share memory; True asks for a copy.
        out_sharding: How the result is laid out over devices.

    Returns:
        An array of the new shape.

    >>> jnp.arange(6).reshape(2, -1)
    Array([[0, 1, 2],
           [3, 4, 5]], dtype=int32)"""
    new = shape[0] if len(shape) == 1 else shape
    return shaping.reshape(self, new, order, copy=copy, out_sharding=out_sharding)


def _transpose(self: Any, *axes: Any) -> Any:
    """Gives the array with its axes in another order.

    Args:
        *axes: The old position of each new axis, or one tuple of them; none reverses all axes.

    Returns:
        An array.

    >>> jnp.ones((2, 3, 4)).transpose(1, 2, 0).shape
    (3, 4, 2)"""
    if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))):
        axes = axes[0]  # type: ignore[assignment]
    return shaping.transpose(self, axes or None)


@python_only
def _nonzero(self: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """Finds the positions of the elements that are not zero.

    Args:
        size: How many positions to give; None gives as many as there are.
        fill_value: What fills up to `size`; None means 0.

    Returns:
        A tuple with an array of indices for each axis.

    >>> jnp.array([0, 3, 0, 4]).nonzero()
    (Array([1, 3], dtype=int32),)"""
    return sorting.nonzero(self, size=size, fill_value=fill_value)


@python_only
def _compress(
    self: Any,
    condition: Any,
    axis: int | None = None,
    *,
    out: None = None,
    size: int | None = None,
    fill_value: Any = 0,
) -> Any:
    """Gives the slices along an axis for which a condition holds.

    Args:
        condition: Booleans, one for each slice; those beyond its end are left out.
        axis: The axis; None flattens the array first.
        out: Must be None.
        size: How many slices to give; None gives as many as there are.
        fill_value: What fills up to `size`.

    Returns:
        An array.

    >>> jnp.arange(4).compress(jnp.array([True, False, True, False]))
    Array([0, 2], dtype=int32)"""
    return choosing.compress(condition, self, axis, out=out, size=size, fill_value=fill_value)


@python_only
def _choose(self: Any, choices: Any, out: None = None, mode: str = "raise") -> Any:
    """Picks each element from one of several arrays; this array says from which.

    Args:
        choices: The arrays to choose from; shapes are broadcast.
        out: Must be None.
        mode: What happens to numbers outside: "raise", "wrap" or "clip".

    Returns:
        An array.

    >>> jnp.array([1, 0]).choose([jnp.array([10, 20]), jnp.array([30, 40])])
    Array([30, 20], dtype=int32)"""
    return choosing.choose(self, choices, out=out, mode=mode)


@python_only
def _argpartition(self: Any, kth: int, axis: int = -1) -> Any:
    """Finds positions that bring the `kth` smallest element to its place, smaller ones before it.

    Args:
        kth: The place.
        axis: The axis.

    Returns:
        An array of integers, of the same shape.

    >>> jnp.array([3.0, 1.0, 2.0]).argpartition(0)[0]
    Array(1, dtype=int32)"""
    return arranging.argpartition(self, kth, axis)


def _byteswap(self: Any, inplace: bool = False) -> Any:
    """Gives the values whose bytes stand in the opposite order.

    Args:
        inplace: Must be False: arrays are immutable.

    Returns:
        An array of the same shape and dtype.

    >>> jnp.array([1, 256], "uint16").byteswap()
    Array([256,   1], dtype=uint16)"""
    if inplace:
        raise NotImplementedError("Array.byteswap: arrays are immutable, inplace must be False")
    dtype = typeof(self).dtype
    if dtype.itemsize == 1:
        return self
    if is_complex(dtype):
        return do.complex(_byteswap(do.real(self)), _byteswap(do.imag(self)))
    octets = do.bitcast_convert_type(self, new_dtype=np.dtype("uint8"))
    turned = do.rev(octets, dimensions=(typeof(octets).ndim - 1,))
    return do.bitcast_convert_type(turned, new_dtype=dtype)


@python_only
def _view(self: Any, dtype: Any = None, type: None = None) -> Any:
    """Gives the same bytes as elements of another dtype.

    Args:
        dtype: The new dtype; None leaves it. Of another width, the last axis becomes longer or
            shorter.
        type: Must be None.

    Returns:
        An array.

    >>> jnp.array([1.0]).view("int32")
    Array([1065353216], dtype=int32)"""
    if dtype is None:
        return self
    return sorting.view(self, asked(dtype))


def _copy(self: Any) -> Any:
    """Gives a copy, in memory of its own.

    Returns:
        An array.

    >>> jnp.arange(3).copy()
    Array([0, 1, 2], dtype=int32)"""
    return do.copy(self)


def _len(self: Any) -> int:
    """The size of the first axis.

    Returns:
        An int.

    >>> len(jnp.ones((2, 3)))
    2"""
    shape = typeof(self).shape
    if not shape:
        raise TypeError("len() of unsized object")
    return shape[0]


def _iter(self: Any) -> Iterator[Any]:
    """The slices along the first axis, one after the other.

    Returns:
        An iterator of arrays.

    >>> [int(v) for v in jnp.arange(3)]
    [0, 1, 2]"""
    if not typeof(self).shape:
        raise TypeError("iteration over a 0-d array")
    n = typeof(self).shape[0]
    if type(self) is ArrayImpl and is_extended(self.dtype) and n <= _FEW_KEYS:
        return iter(_slices(self))  # key, other = split(key)
    return (self[i] for i in range(n))


_FEW_KEYS: Final = 16


@cached
def _slices(x: Any) -> list[Any]:
    return [x[i] for i in range(typeof(x).shape[0])]


def _contains(self: Any, value: Any) -> bool:
    """Whether a value is among the elements of a 1-D array.

    Args:
        value: A number.

    Returns:
        A bool.

    >>> 2 in jnp.arange(3)
    True"""
    if not is_arraylike(value):
        raise TypeError(
            f"Array.__contains__: unsupported operand type {type(value)}: what is looked for is a"
            " number"
        )
    if typeof(self).ndim != 1:
        raise ValueError(
            "Array.__contains__: search array must be one-dimensional, got shape"
            f" {typeof(self).shape}; use (x == value).any()"
        )
    if typeof(value).ndim:
        raise ValueError(
            "Array.__contains__: query value must be a scalar, got shape"
            f" {typeof(value).shape}; use jnp.isin"
        )
    return bool(reductions.any(ufuncs.equal(self, value)))


def _getitem(self: Any, index: Any) -> Any:
    """A part of the array: by ints, slices, `...`, None (a new axis), arrays, or a mask.

    Args:
        index: One of these, or a tuple of them. Positions outside give the nearest element.

    Returns:
        An array.

    Differs from JAX:
        A mask needs no fixed number of True elements under `jit`.

    >>> jnp.arange(6).reshape(2, 3)[1, ::2]
    Array([3, 5], dtype=int32)"""
    return indexing.getitem(self, index)


def _round(self: Any, ndigits: int | None = None) -> Any:
    """The values rounded to so many decimals, halves to even.

    Args:
        ndigits: How many; None rounds to integers.

    Returns:
        An array of the same dtype; without `ndigits` of integers, as Python's numbers do it.

    >>> round(jnp.array([1.25, 2.5])), round(jnp.array([1.25, 2.5]), 1)
    (Array([1, 2], dtype=int32), Array([1.2, 2.5], dtype=float32))"""
    rounded = sorting.round(self, ndigits or 0)
    return rounded if ndigits is not None else rounded.astype(int)


def _setitem(self: Any, index: Any, value: Any) -> None:
    """Refused: arrays are immutable. Write `x = x.at[index].set(value)`.

    Args:
        index: The place.
        value: What would be written.

    >>> jnp.zeros(2).at[0].set(1.0)
    Array([1., 0.], dtype=float32)"""
    raise TypeError(
        f"{type(self).__name__} objects are immutable: calque arrays do not support item"
        " assignment. Instead of x[idx] = y, use x = x.at[idx].set(y) or another .at[] method."
    )


def _delitem(self: Any, index: Any) -> None:
    raise TypeError("calque arrays are immutable and do not support item deletion. Use jnp.delete.")


# ---------------------------------------------------------------- protocols


_namespace: Final[ProcessValue[Any]] = process.value("module of array functions", None)


def set_namespace(module: Any) -> None:
    """Tells arrays the module of their functions."""
    _namespace.value = module


def _array_namespace(self: Any, *, api_version: str | None = None) -> Any:
    """The module of functions on arrays, as the standard for array libraries asks for it.

    Args:
        api_version: The version of that standard; None takes the newest.

    Returns:
        The module `calque.numpy`.

    >>> jnp.ones(2).__array_namespace__() is jnp
    True"""
    versions = ("2021.12", "2022.12", "2023.12", "2024.12")
    if api_version is not None and api_version not in versions:
        raise ValueError(
            f"{api_version=} is not available; available versions are: {list(versions)}"
        )
    return _namespace.value


_from: Final = {
    "sum": folds.sum, "prod": folds.prod, "max": folds.max, "min": folds.min,
    "mean": reductions.mean,
    "var": reductions.var, "std": reductions.std, "all": folds.all, "any": folds.any,
    "argmax": folds.argmax,
    "argmin": folds.argmin, "cumsum": folds.cumsum, "cumprod": folds.cumprod,
    "ptp": reductions.ptp,
    "dot": contractions.dot, "trace": contractions.trace, "diagonal": contractions.diagonal,
    "swapaxes": shaping.swapaxes,
    "squeeze": shaping.squeeze, "ravel": shaping.ravel, "flatten": shaping.ravel,
    "repeat": moving.repeat, "clip": shaping.clip,
    "round": sorting.round, "conj": complex_parts.conjugate, "conjugate": complex_parts.conjugate,
    "take": sorting.take,
    "argsort": sorting.argsort, "sort": sorting.sort, "searchsorted": sorting.searchsorted,
}  # fmt: skip

METHODS: Final[dict[str, Any]] = {
    **operators(),
    **_from,
    "astype": astype,
    "reshape": _reshape,
    "transpose": _transpose,
    "nonzero": _nonzero,
    "view": _view,
    "copy": _copy,
    "compress": _compress,
    "choose": _choose,
    "argpartition": _argpartition,
    "byteswap": _byteswap,
    "__len__": _len,
    "__iter__": _iter,
    "__contains__": _contains,
    "__setitem__": _setitem,
    "__delitem__": _delitem,
    "__hash__": None,  # arrays are compared elementwise; x.tobytes() can be a key
    "__array_namespace__": _array_namespace,
    "__getitem__": _getitem,
    "__round__": _round,
    "__array_priority__": 100,
    **ATTRIBUTES,
}


def in_notebook(x: Any) -> str:
    """An array as notebooks show it: type, place, the range of its numbers, some of them."""
    aval = x.aval
    if x.is_deleted():
        return str(notebooks.array_html("deleted: its memory was given away", [str(aval)], None))
    plain = isinstance(aval.dtype, np.dtype) and aval.dtype.kind in "biufc"
    where = str(getattr(x.sharding, "spec", "")) if aval.place is not None else ""
    head = [aval.str_short(), f"{x.nbytes:,} bytes", *([where] if where else [])]
    return str(notebooks.array_html(repr(x), head, to_numpy(x) if plain else None))


def attach() -> None:
    """Give arrays and tracers their methods; the public ones of arrays have call paths."""
    for name, value in METHODS.items():
        offered(name, value)
        if name != "__getitem__":  # of the C type
            setattr(ArrayImpl, name, with_call_path(name, value))
        setattr(Tracer, name, guard(value))
        setattr(Array, name, value)  # where `help` and completion look
    ArrayImpl.T = property(cached(METHODS["T"].fget), doc=METHODS["T"].__doc__)
    ArrayImpl.T.__set_name__(ArrayImpl, "T")
    for name, method in operators().items():
        guard(method)  # for tracers that leaked
        if name not in ("__divmod__", "__rdivmod__"):  # two results: Python's own
            setattr(ArrayImpl, name, operator(name, method))
    for name, value in CONCRETE.items():
        setattr(ArrayImpl, name, guard(offered(name, value)))
        if not name.startswith("_"):
            setattr(Array, name, value)
    for name, value in TRACED.items():
        setattr(Tracer, name, guard(value))
    for name in KNOWN:
        setattr(ConstantTracer, name, of_value(name))
    ArrayImpl._repr_html_ = in_notebook


attach()

"""The methods and operators of arrays, attached to concrete arrays and to tracers alike."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from calque.core.arrays import (
    ArrayImpl,
    adopted,
    delete,
    from_storage,
    is_deleted,
    is_pending,
    share,
    to_numpy,
    wait_for,
)
from calque.core.avals import ShapedArray
from calque.core.dtypes import as_dtype, canonicalize, is_complex, is_extended, is_integer
from calque.core.lazy import LazyModule
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.trace_state import Tracer
from calque.machine.state import Value, process
from calque.numpy import contractions, reductions, shaping, sorting, ufuncs
from calque.numpy.calls.cached import cached, with_call_path
from calque.numpy.calls.marks import python_only
from calque.numpy.calls.operators import operator
from calque.numpy.indexing import gathering as indexing
from calque.numpy.indexing.at import At
from calque.numpy.promotion import convert, is_arraylike
from calque.numpy.traced_methods import TRACED
from calque.transforms.devices.sharding_arrays import device_put

sharing = LazyModule("calque.numpy.sharing")
choosing, arranging = LazyModule("calque.numpy.choosing"), LazyModule("calque.numpy.arranging")

# ---------------------------------------------------------------- operators


def _deferring(f: Callable[[Any, Any], Any], swap: bool) -> Callable[[Any, Any], Any]:
    """An operator that leaves operands it does not know to their own reflected methods."""

    def method(self: Any, other: Any) -> Any:
        if not isinstance(other, (ArrayImpl, Tracer)) and not is_arraylike(other):
            # a subclass, a named tuple for one, may know what to do
            if type(other) in _CONTAINERS or isinstance(other, np.ndarray):
                raise _unsupported(f.__name__, *((other, self) if swap else (self, other)))
            return NotImplemented
        return f(other, self) if swap else f(self, other)

    return method


_CONTAINERS: Final = (list, tuple, set, dict)


def _unsupported(name: str, left: Any, right: Any) -> TypeError:
    """An operator met a container of Python, or an array that no dtype describes."""
    array, other = ("left", right) if isinstance(left, (ArrayImpl, Tracer)) else ("right", left)
    kinds = ["ArrayImpl" if isinstance(x, ArrayImpl) else type(x).__name__ for x in (left, right)]
    kind = type(other).__name__
    remedy = (
        f"convert the {kind} with jnp.array first"
        if isinstance(other, (list, tuple, np.ndarray))
        else f"the {array} operand is an array, and a {kind} holds no array"
    )
    return TypeError(
        f"unsupported operand type(s) for {name}: {kinds[0]!r} and {kinds[1]!r}; {remedy}"
    )


_BINARY: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "add": ufuncs.add,
    "sub": ufuncs.subtract,
    "mul": ufuncs.multiply,
    "truediv": ufuncs.true_divide,
    "floordiv": ufuncs.floor_divide,
    "mod": ufuncs.remainder,
    "pow": ufuncs.power,
    "and": ufuncs.bitwise_and,
    "or": ufuncs.bitwise_or,
    "xor": ufuncs.bitwise_xor,
    "lshift": ufuncs.left_shift,
    "rshift": ufuncs.right_shift,
}
_COMPARE: Final = {
    "eq": ufuncs.equal,
    "ne": ufuncs.not_equal,
    "lt": ufuncs.less,
    "le": ufuncs.less_equal,
    "gt": ufuncs.greater,
    "ge": ufuncs.greater_equal,
}
_UNARY: Final = {
    "neg": ufuncs.negative,
    "pos": ufuncs.positive,
    "abs": ufuncs.absolute,
    "invert": ufuncs.bitwise_not,
}


def _divmod(x: Any, y: Any) -> Any:
    return ufuncs.floor_divide(x, y), ufuncs.remainder(x, y)


def operators() -> dict[str, Any]:
    """The operator protocol by method name."""
    table: dict[str, Any] = {}
    for name, f in _BINARY.items():
        table[f"__{name}__"] = _deferring(f, False)
        table[f"__r{name}__"] = _deferring(f, True)
    for name, f in (("matmul", contractions.matmul), ("divmod", _divmod)):
        table[f"__{name}__"], table[f"__r{name}__"] = _deferring(f, False), _deferring(f, True)
    for name, f in _COMPARE.items():
        table[f"__{name}__"] = _deferring(f, False)
    for name, unary in _UNARY.items():
        table[f"__{name}__"] = _one(unary)
    return table


def _one(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda self: f(self)


# ------------------------------------------------------------ methods that arrays and tracers share


def astype(self: Any, dtype: Any, copy: bool = False, device: Any = None) -> Any:
    """The values in another dtype."""
    if device is not None:
        return device_put(astype(self, dtype, copy), device)
    out = _as_type(self, dtype)
    return do.copy(out) if copy and out is self else out


def _as_type(self: Any, dtype: Any) -> Any:
    target = canonicalize(float) if dtype is None else canonicalize(as_dtype(dtype))
    own = typeof(self).dtype
    if is_complex(own) and not is_complex(target):
        if target != np.dtype(bool):
            warnings.warn(
                "Casting from complex to real dtypes is deprecated: ask for jnp.real(x) or"
                " jnp.imag(x) first.",
                DeprecationWarning,
                stacklevel=3,
            )
        self = do.real(self) if target != np.dtype(bool) else do.ne(self, np.zeros((), own))
    if target == np.dtype(bool) and typeof(self).dtype != target:
        return do.ne(self, np.zeros((), typeof(self).dtype))
    return convert(self, target)


def _reshape(
    self: Any, *shape: Any, order: str = "C", copy: bool | None = None, out_sharding: Any = None
) -> Any:
    new = shape[0] if len(shape) == 1 else shape
    return shaping.reshape(self, new, order, copy=copy, out_sharding=out_sharding)


def _transpose(self: Any, *axes: Any) -> Any:
    if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))):
        axes = axes[0]  # type: ignore[assignment]
    return shaping.transpose(self, axes or None)


@python_only
def _nonzero(self: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
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
    return choosing.compress(condition, self, axis, out=out, size=size, fill_value=fill_value)


@python_only
def _choose(self: Any, choices: Any, out: None = None, mode: str = "raise") -> Any:
    return choosing.choose(self, choices, out=out, mode=mode)


@python_only
def _argpartition(self: Any, kth: int, axis: int = -1) -> Any:
    return arranging.argpartition(self, kth, axis)


def _byteswap(self: Any, inplace: bool = False) -> Any:
    """The values whose bytes stand in the opposite order."""
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


def _flat(self: Any) -> Any:
    raise NotImplementedError("arrays have no property flat: use x.flatten() or x.ravel()")


@python_only
def _view(self: Any, dtype: Any = None, type: None = None) -> Any:
    if dtype is None:
        return self
    return sorting.view(self, canonicalize(as_dtype(dtype)))


def _copy(self: Any) -> Any:
    return do.copy(self)


def _len(self: Any) -> int:
    shape = typeof(self).shape
    if not shape:
        raise TypeError("len() of unsized object")
    return shape[0]


def _iter(self: Any) -> Iterator[Any]:
    if not typeof(self).shape:
        raise TypeError("iteration over a 0-d array")
    return (self[i] for i in range(typeof(self).shape[0]))


def _contains(self: Any, value: Any) -> bool:
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


def _setitem(self: Any, index: Any, value: Any) -> None:
    raise TypeError(
        f"{type(self).__name__} objects are immutable: calque arrays do not support item"
        " assignment. Instead of x[idx] = y, use x = x.at[idx].set(y) or another .at[] method."
    )


def _delitem(self: Any, index: Any) -> None:
    raise TypeError("calque arrays are immutable and do not support item deletion. Use jnp.delete.")


def _hash(self: Any) -> int:
    raise TypeError(
        f"unhashable type: {type(self).__name__!r}; arrays are compared elementwise. Use id(x), or"
        " x.tobytes() as a key."
    )


_namespace: Final[Value[Any]] = process.value("module of array functions", None)


def set_namespace(module: Any) -> None:
    """Tells arrays the module of their functions."""
    _namespace.value = module


def _array_namespace(self: Any, *, api_version: str | None = None) -> Any:
    versions = ("2021.12", "2022.12", "2023.12", "2024.12")
    if api_version is not None and api_version not in versions:
        raise ValueError(
            f"{api_version=} is not available; available versions are: {list(versions)}"
        )
    return _namespace.value


_from: Final = {
    "sum": reductions.sum, "prod": reductions.prod, "max": reductions.max, "min": reductions.min,
    "mean": reductions.mean,
    "var": reductions.var, "std": reductions.std, "all": reductions.all, "any": reductions.any,
    "argmax": reductions.argmax,
    "argmin": reductions.argmin, "cumsum": reductions.cumsum, "cumprod": reductions.cumprod,
    "ptp": reductions.ptp,
    "dot": contractions.dot, "trace": contractions.trace, "diagonal": contractions.diagonal,
    "swapaxes": shaping.swapaxes,
    "squeeze": shaping.squeeze, "ravel": shaping.ravel, "flatten": shaping.ravel,
    "repeat": shaping.repeat, "clip": shaping.clip,
    "round": sorting.round, "conj": ufuncs.conjugate, "conjugate": ufuncs.conjugate,
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
    "flat": property(_flat),
    "__len__": _len,
    "__iter__": _iter,
    "__contains__": _contains,
    "__setitem__": _setitem,
    "__delitem__": _delitem,
    "__hash__": _hash,
    "__array_namespace__": _array_namespace,
    "__getitem__": lambda self, index: indexing.getitem(self, index),
    "__round__": lambda self, ndigits=None: sorting.round(self, ndigits or 0),
    "__array_priority__": 100,
    "shape": property(lambda self: self.aval.shape),
    "dtype": property(lambda self: self.aval.dtype),
    "ndim": property(lambda self: self.aval.ndim),
    "size": property(lambda self: self.aval.size),
    "itemsize": property(lambda self: self.aval.dtype.itemsize),
    "nbytes": property(lambda self: self.aval.size * self.aval.dtype.itemsize),
    "weak_type": property(lambda self: self.aval.weak_type),
    "T": property(lambda self: shaping.transpose(self)),
    "mT": property(shaping.matrix_transpose),
    "real": property(lambda self: ufuncs.real(self)),
    "imag": property(lambda self: ufuncs.imag(self)),
    "at": property(At),
}


# ---------------------------------------------------------------- concrete arrays


def _keys_text(self: Any) -> str:
    """Random keys: their shape and kind, over the bits that they are made of."""
    return (
        f"Array({self.aval.shape}, dtype={self.aval.dtype.name})"
        f" overlaying:\n{to_numpy(do.random_unwrap(self))}"
    )


def _summands(self: Any) -> str | None:
    """The text of an array whose parts are still to be added: its elements are nowhere."""
    sharding = self._extra
    if sharding is None or not getattr(getattr(sharding, "spec", None), "unreduced", None):
        return None
    return f"Array(shape={self.aval.shape}, dtype={self.aval.dtype}, sharding={sharding})"


def _repr(self: Any) -> str:
    if is_extended(self.aval.dtype):
        return _keys_text(self)
    summands = _summands(self)
    if summands is not None:
        return summands
    x = to_numpy(self)
    dtype = f"dtype={self.aval.dtype.name}" + (", weak_type=True" if self.aval.weak_type else "")
    prefix = "Array("
    if x.size == 0 and x.ndim != 1:
        return f"{prefix}[], shape={x.shape}, {dtype})"
    body = np.array2string(
        x,
        separator=", ",
        prefix=prefix,
        suffix=",",
        max_line_width=np.get_printoptions()["linewidth"],
    )
    last = body[body.rfind("\n") + 1 :] if "\n" in body else prefix + body
    wide = len(last) + len(dtype) + 3 > np.get_printoptions()["linewidth"]
    return f"{prefix}{body},{chr(10) + ' ' * len(prefix) if wide else ' '}{dtype})"


def _item(self: Any, *args: Any) -> Any:
    return to_numpy(self).item(*args)


def _scalar(self: Any, what: str) -> Any:
    if self.aval.size != 1 or self.aval.ndim:
        raise TypeError(
            f"Only scalar arrays can be converted to Python scalars; got {self.aval.ndim=}".replace(
                "self.aval.ndim", "arr.ndim"
            )
        )
    return to_numpy(self)


def _bool(self: Any) -> bool:
    if self.aval.size != 1:
        raise ValueError(
            "The truth value of an array with more than one element is ambiguous. Use a.any() or"
            " a.all()"
            if self.aval.size
            else "The truth value of an empty array is ambiguous. Use a.size > 0."
        )
    return bool(to_numpy(self).reshape(()))


def _index(self: Any) -> int:
    if not is_integer(self.aval.dtype) or self.aval.ndim:
        raise TypeError(
            "Only integer scalar arrays can be converted to a scalar index; got"
            f" {self.aval.str_short()}"
        )
    return int(to_numpy(self))


def _np_array(self: Any, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    if is_extended(self.aval.dtype):
        raise TypeError(
            "JAX array with PRNGKey dtype cannot be converted to a NumPy array. Use"
            f" random.key_data(keys) to get the bits of an array of dtype {self.aval.dtype.name}."
        )
    x = to_numpy(self)
    if dtype is not None and np.dtype(dtype) != x.dtype:
        if copy is False:
            raise ValueError(f"a conversion from {x.dtype} to {dtype} needs a copy, but copy=False")
        return x.astype(dtype)
    return x.copy() if copy else x


def _reduce(self: Any) -> Any:
    values = to_numpy(self).copy()
    if is_extended(self.aval.dtype):
        return from_storage, (values, self.aval)
    return _rebuild, (values, self.aval.weak_type)


def _base_array(self: Any) -> Any:
    """The words that random keys are made of, in the same memory. As JAX's arrays of keys have."""
    if not is_extended(self.aval.dtype):
        raise AttributeError(f"{type(self).__name__!r} object has no attribute '_base_array'")
    words = ShapedArray(self.shape + self.aval.dtype.impl.key_shape, np.dtype("uint32"))
    return share(self, words)


def _impl(self: Any) -> Any:
    """The algorithm of random keys. As JAX's arrays of keys have."""
    if not is_extended(self.aval.dtype):
        raise AttributeError(f"{type(self).__name__!r} object has no attribute '_impl'")
    return self.aval.dtype.impl


def _rebuild(x: np.ndarray, weak_type: bool) -> Any:
    return adopted(x, weak_type)


def _copied(self: Any) -> Any:
    make, parts = _reduce(self)
    return make(*parts)


def _deeply_copied(self: Any, memo: Any) -> Any:
    return _copied(self)


def _alive(self: Any) -> Any:
    """The array itself; RuntimeError when it has been deleted."""
    if is_deleted(self):
        to_numpy(self)
    return self


def _awaited(self: Any) -> Any:
    """The array itself, once it has been computed."""
    wait_for(_alive(self))
    return self


def _is_ready(self: Any) -> bool:
    return not is_pending(_alive(self)) or bool(self._owner.is_ready())


def _begin_copy(self: Any) -> None:
    _alive(self)  # there is nowhere to copy to: the memory is the host's


def _pointer(self: Any) -> int:
    if is_pending(_alive(self)):
        to_numpy(self)  # waits for the memory
    return int(self._ptr)


def _dlpack(
    self: Any,
    *,
    stream: Any = None,
    max_version: Any = None,
    dl_device: Any = None,
    copy: bool | None = None,
) -> Any:
    if stream is not None:
        raise BufferError(f"__dlpack__: arrays on a CPU have no streams, got stream={stream!r}")
    if dl_device is not None and tuple(dl_device) != (1, 0):
        raise BufferError(
            f"__dlpack__: the array is on the CPU, (1, 0), and is not copied to {dl_device=}"
        )
    return sharing.export(self, max_version, dl_device, copy)


def _as_dtype(self: Any) -> np.dtype[Any]:
    """What `np.dtype(x)` takes from an array: refused by later versions of JAX."""
    warnings.warn(
        "Implicit conversion of an array to a dtype is deprecated; rather than dtype=arr use"
        " dtype=arr.dtype.",
        DeprecationWarning,
        stacklevel=2,
    )
    return np.dtype(self.aval.dtype)


CONCRETE: Final[dict[str, Any]] = {
    "_base_array": property(_base_array),
    "_impl": property(_impl),
    "__numpy_dtype__": property(_as_dtype),
    "__repr__": _repr,
    "__str__": lambda self: (
        _keys_text(self) if is_extended(self.aval.dtype) else _summands(self) or str(to_numpy(self))
    ),
    "__format__": lambda self, spec: (
        format(to_numpy(self)[()], spec)
        if self.aval.ndim == 0 and not is_extended(self.aval.dtype)
        else format(str(self), spec)
    ),
    "__bool__": _bool,
    "__int__": lambda self: int(_scalar(self, "int")),
    "__float__": lambda self: float(_scalar(self, "float")),
    "__complex__": lambda self: complex(_scalar(self, "complex")),
    "__index__": _index,
    "__array__": _np_array,
    "__reduce__": _reduce,
    "__copy__": _copied,
    "__deepcopy__": _deeply_copied,
    "__dlpack__": _dlpack,
    "__dlpack_device__": lambda self: (1, 0),
    "item": _item,
    "tolist": lambda self: to_numpy(self).tolist(),
    "tobytes": lambda self, order="C": to_numpy(self).tobytes(order),
    "block_until_ready": _awaited,
    "copy_to_host_async": _begin_copy,
    "delete": delete,
    "is_deleted": is_deleted,
    "is_ready": _is_ready,
    "unsafe_buffer_pointer": _pointer,
    "on_device_size_in_bytes": lambda self: self.aval.size * self.aval.dtype.itemsize,
}


def attach() -> None:
    """Give arrays and tracers their methods; the public ones of arrays have call paths."""
    for name, value in METHODS.items():
        if name != "__getitem__":  # of the C type
            setattr(ArrayImpl, name, with_call_path(name, value))
        setattr(Tracer, name, value)
    ArrayImpl.T = property(cached(METHODS["T"].fget))
    for name, method in operators().items():
        if name not in ("__divmod__", "__rdivmod__"):  # two results: Python's own
            setattr(ArrayImpl, name, operator(name, method))
    for name, value in CONCRETE.items():
        setattr(ArrayImpl, name, value)
    for name, value in TRACED.items():
        setattr(Tracer, name, value)


attach()

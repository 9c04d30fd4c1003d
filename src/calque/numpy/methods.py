"""The methods and operators of arrays, attached to concrete arrays and to tracers alike."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from calque.core import errors
from calque.core.arrays import ArrayImpl, adopted, delete_array, from_storage, is_deleted, to_numpy
from calque.core.dtypes import as_dtype, canonicalize, is_complex, is_extended, is_integer
from calque.core.lazy import LazyModule
from calque.core.primitives import do
from calque.core.trace import JaxprTracer, origin, typeof
from calque.core.trace_state import Tracer
from calque.machine.state import Value, process
from calque.numpy import contractions, reductions, shaping, sorting, ufuncs
from calque.numpy.calls.cached import cached, with_call_path
from calque.numpy.calls.marks import python_only
from calque.numpy.calls.operators import operator
from calque.numpy.indexing import gathering as indexing
from calque.numpy.indexing.at import At
from calque.numpy.promotion import convert, is_arraylike
from calque.transforms.devices.sharding_arrays import device_put

sharing = LazyModule("calque.numpy.sharing")

# ---------------------------------------------------------------- operators


def _deferring(f: Callable[[Any, Any], Any], swap: bool) -> Callable[[Any, Any], Any]:
    """An operator that leaves operands it does not know to their own reflected methods."""

    def method(self: Any, other: Any) -> Any:
        if not isinstance(other, (ArrayImpl, Tracer)) and not is_arraylike(other):
            if isinstance(other, (list, tuple, np.ndarray)):
                raise TypeError(
                    f"unsupported operand type(s) for {f.__name__}: {type(self).__name__!r} and"
                    f" {type(other).__name__!r}; convert the {type(other).__name__} with jnp.array"
                    " first"
                )
            return NotImplemented
        return f(other, self) if swap else f(self, other)

    return method


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
    target = canonicalize(float) if dtype is None else canonicalize(as_dtype(dtype))
    own = typeof(self).dtype
    if is_complex(own) and not is_complex(target):
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
            f"an array of dtype {self.aval.dtype.name} cannot be converted to a NumPy array. Use"
            " random.key_data(keys) to get its bits."
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


def _begin_copy(self: Any) -> None:
    _alive(self)  # there is nowhere to copy to: the memory is the host's


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
    "block_until_ready": _alive,
    "copy_to_host_async": _begin_copy,
    "delete": lambda self: delete_array(self),
    "is_deleted": is_deleted,
    "is_ready": lambda self: _alive(self) is self,
    "unsafe_buffer_pointer": lambda self: _alive(self)._ptr,
    "on_device_size_in_bytes": lambda self: self.aval.size * self.aval.dtype.itemsize,
}


# ---------------------------------------------------------------- tracers


def _no_bool(self: Any) -> bool:
    raise errors.TracerBoolConversionError(
        f"Attempted boolean conversion of traced array with shape {self.aval.str_short()}. Its"
        f" value is not known while tracing.{origin(self)}\nUse lax.cond(pred, true_fun, false_fun,"
        " *operands) or jnp.where(pred, x, y) instead of `if`, lax.while_loop instead of `while`,"
        " and & | ~ instead of `and`, `or`, `not`; or let calque do so: jit(f,"
        ' control_flow="convert"); or make the argument static with static_argnums.'
    )


def _concretize(kind: str) -> Callable[[Any], Any]:
    def method(self: Any) -> Any:
        raise errors.ConcretizationTypeError(
            f"Abstract tracer value encountered where concrete value is expected: {kind}() needs"
            f" the value of a traced array of type {self.aval.str_short()}, which is not known"
            f" while tracing.{origin(self)}\nTry using `x.astype({kind})` instead, keep the"
            " computation in jnp functions, or make the argument static with static_argnums or"
            " static_argnames."
        )

    return method


def _no_index(self: Any) -> int:
    if self.aval.shape or not is_integer(self.aval.dtype):
        raise errors.TracerIntegerConversionError(
            "Only integer scalar arrays can be converted to a scalar index."
            f" Got a traced array of type {self.aval.str_short()}.{origin(self)}"
        )
    raise errors.TracerIntegerConversionError(
        f"The __index__() method was called on traced array with shape {self.aval.str_short()}: a"
        " Python index or size is needed, but its value is not known while"
        f" tracing.{origin(self)}\nIndex a calque array instead of a list (jnp.array(seq)[i]), use"
        " lax.fori_loop instead of range, or make the argument static with static_argnums."
    )


def _no_array(self: Any, *args: Any, **kwargs: Any) -> np.ndarray:
    raise errors.TracerArrayConversionError(
        "The numpy.ndarray conversion method __array__() was called on traced array with shape"
        f" {self.aval.str_short()}.{origin(self)}\nUse the function of the same name in"
        " calque.numpy, or calque.pure_callback to call NumPy while the program runs."
    )


def _tracer_repr(self: Any) -> str:
    weak = "~" if self.aval.weak_type else ""
    kind = "JitTracer" if isinstance(self, JaxprTracer) else type(self).__name__
    held = "".join(
        f", {name}={getattr(self, name)}" for name in ("primal", "val") if hasattr(self, name)
    )
    dtype, sizes = getattr(self.aval.dtype, "name", self.aval.dtype), ",".join(map(str, self.shape))
    return f"{kind}({weak}{dtype}[{sizes}]{held})"


TRACED: Final[dict[str, Any]] = {
    "__repr__": _tracer_repr,
    "__str__": _tracer_repr,
    "__format__": lambda self, spec: format(_tracer_repr(self), spec),
    "__bool__": _no_bool,
    "__int__": _concretize("int"),
    "__float__": _concretize("float"),
    "__complex__": _concretize("complex"),
    "__index__": _no_index,
    "__array__": _no_array,
    "item": _concretize("item"),
    "tolist": _concretize("tolist"),
    "block_until_ready": lambda self: self,
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

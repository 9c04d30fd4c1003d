"""Universal functions as objects: `jnp.add.reduce`, `jnp.frompyfunc(f, 2, 1).outer`, and the class
`jnp.ufunc`."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calque.core.dtypes import is_integer
from calque.core.trace import typeof
from calque.numpy import reductions
from calque.numpy.calls.marks import python_only
from calque.numpy.joining import concatenate
from calque.numpy.promotion import (
    array_of,
    arrays,
    broadcast_to,
    canonical_axes,
    canonical_axis,
    convert,
    result_dtype,
)
from calque.numpy.shaping import moveaxis, ravel, reshape
from calque.numpy.shaping import where as where_
from calque.transforms.functions.loops import scan
from calque.transforms.functions.vmap import vmap

__all__ = ["frompyfunc", "ufunc"]


class _UfuncMeta(type):
    """`isinstance(f, ufunc)` holds for a ufunc behind a call path as well."""

    def __instancecheck__(cls, instance: Any) -> bool:
        wrapped = getattr(instance, "__wrapped__", None) if callable(instance) else None
        return type.__instancecheck__(cls, instance) or type.__instancecheck__(cls, wrapped)


class ufunc(metaclass=_UfuncMeta):
    """A function of numbers that maps over arrays, with the methods of NumPy's universal functions.
    `jnp.add` is one; `frompyfunc` makes others.

    Args:
        func: the function of numbers.
        nin: how many operands it has.
        nout: how many results it has.
        name: its name; None is that of `func`.
        nargs: how many arguments it has; None is `nin`.
        identity: a number that changes nothing as an operand, if there is one.
        call: a function of whole arrays that does the same; None maps `func`.
        reduce, accumulate, at, reduceat: functions that do what the methods of these names do; None
            has them made of `call`.

    >>> jnp.add.reduce(jnp.arange(4))
    Array(6, dtype=int32)
    >>> jnp.multiply.outer(jnp.arange(2), jnp.arange(3)).shape
    (2, 3)"""

    def __init__(
        self,
        func: Callable[..., Any],
        /,
        nin: int,
        nout: int,
        *,
        name: str | None = None,
        nargs: int | None = None,
        identity: Any = None,
        call: Callable[..., Any] | None = None,
        reduce: Callable[..., Any] | None = None,
        accumulate: Callable[..., Any] | None = None,
        at: Callable[..., Any] | None = None,
        reduceat: Callable[..., Any] | None = None,
    ):
        self.__doc__ = func.__doc__
        self.__signature__: inspect.Signature
        self.__name__ = name or str(getattr(func, "__name__", repr(func)))
        self.__qualname__ = self.__name__
        self._counts = (operator.index(nin), operator.index(nout))
        self._nargs = self.nin if nargs is None else operator.index(nargs)
        self._identity, self._function = identity, func
        self._call = call or _elementwise(func, self.__name__, self.nin)
        self._reduce, self._accumulate, self._at, self._reduceat = reduce, accumulate, at, reduceat
        self._key = (func, self.nin, self.nout)

    nin = property(lambda self: self._counts[0], doc="The number of operands.")
    nout = property(lambda self: self._counts[1], doc="The number of results.")
    nargs = property(lambda self: self._nargs, doc="The number of arguments.")
    identity = property(lambda self: self._identity, doc="What changes nothing, if there is one.")
    _func = property(lambda self: self._function, doc="The function of scalars.")

    def __repr__(self) -> str:
        return f"<calque.numpy.ufunc '{self.__name__}'>"

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ufunc) and self._key == other._key

    def __call__(self, *args: Any, out: None = None, where: None = None) -> Any:
        if out is not None:
            raise NotImplementedError(
                f"out argument of {self!r}: arrays are immutable, use the result"
            )
        if where is not None:
            raise NotImplementedError(f"where argument of {self!r}: use jnp.where")
        if len(args) != self.nin:
            raise TypeError(
                f"{self.__name__}() takes {self.nin} positional arguments, got {len(args)}"
            )
        return self._call(*args)

    def _need_pair(self, method: str) -> None:
        if self.nin != 2 or self.nout != 1:
            raise TypeError(
                f"{method} is only supported for binary ufuncs with one result; {self.__name__} has"
                f" nin={self.nin}, nout={self.nout}"
            )

    def _dtype_of(self, x: Any, y: Any) -> Any:
        """What the function makes of elements of these, if there are any or not."""
        return typeof(self._call(x[:0], y[:0])).dtype

    def reduce(
        self,
        a: Any,
        axis: Any = 0,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> Any:
        """Folds axes from the left by the function.

        Args:
            a: an array.
            axis: the axis to fold, or a tuple of axes; None folds all.
            dtype: of the elements and of the result; None is what the function returns.
            out: must be None: arrays are immutable.
            keepdims: whether folded axes stay, with size 1.
            initial: what to begin with; None is the identity, or the first element.
            where: bools that broadcast to `a`, true for the elements to fold; it needs an identity
                or `initial`.
        Returns:
            An array without the folded axes.

        >>> jnp.subtract.reduce(jnp.array([10, 1, 2]))
        Array(7, dtype=int32)"""
        self._need_pair("reduce")
        _refuse_out("reduce", out)
        if where is not None and self.identity is None and initial is None:
            raise ValueError(
                f"reduction operation {self.__name__!r} does not have an identity, so to use a"
                " where mask one has to specify 'initial'."
            )
        if self._reduce is not None:
            options = {} if dtype is None else {"dtype": dtype}
            return self._reduce(
                a, axis=axis, keepdims=keepdims, initial=initial, where=where, **options
            )
        return self._folded(
            array_of(f"{self.__name__}.reduce", a), axis, dtype, keepdims, initial, where
        )

    def _folded(
        self, a: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any
    ) -> Any:
        axes = canonical_axes(axis, a.ndim)
        if isinstance(axis, (tuple, list)) and len(axes) > 1 and self.identity is None:
            raise ValueError(
                f"reduction operation {self.__name__!r} is not reorderable, so at most one axis may"
                " be specified"
            )
        start = self.identity if initial is None else initial
        if start is None and 0 in [a.shape[i] for i in axes]:
            raise ValueError(
                f"zero-size array to reduction operation {self.__name__} which has no identity"
            )
        x = _rows(a, axes)
        mask = (
            None if where is None else _rows(broadcast_to(array_of("where", where), a.shape), axes)
        )
        dtype = result_dtype(dtype) or self._dtype_of(x, x)
        x = convert(x, dtype)
        if start is None:
            first = x[0]
        else:  # with the dtype, no weak one
            first = broadcast_to(array_of("reduce", start).astype(dtype), x.shape[1:])
        rest = x[1:] if start is None else x

        def step(carry: Any, row: Any) -> Any:
            value = convert(self._call(carry, row[0]), dtype)
            return (value if mask is None else where_(row[1], value, carry)), None

        out, _ = scan(step, array_of("reduce", first), (rest,) if mask is None else (rest, mask))
        return reductions.keep(out, a.shape, axes, keepdims)

    def accumulate(self, a: Any, axis: int = 0, dtype: Any = None, out: None = None) -> Any:
        """Folds along an axis and keeps every step.

        Args:
            a: an array with at least one axis.
            axis: the axis.
            dtype: of the elements and of the result; None is what the function returns.
            out: must be None: arrays are immutable.
        Returns:
            An array of the shape of `a`.

        >>> jnp.maximum.accumulate(jnp.array([1, 3, 2]))
        Array([1, 3, 3], dtype=int32)"""
        self._need_pair("accumulate")
        _refuse_out("accumulate", out)
        if self._accumulate is not None:
            return self._accumulate(a, axis=axis, dtype=dtype)
        a = array_of(f"{self.__name__}.accumulate", a)
        if axis is None or not a.ndim:
            raise ValueError(
                f"{self.__name__}.accumulate needs one axis of an array, got axis={axis} for shape"
                f" {a.shape}"
            )
        k = canonical_axis(axis, a.ndim)
        x = moveaxis(a, k, 0)
        dtype = result_dtype(dtype) or self._dtype_of(x, x)
        x = convert(x, dtype)
        if x.shape[0] == 0:
            return convert(a, dtype)

        def step(carry: Any, row: Any) -> Any:
            value = convert(self._call(carry, row), dtype)
            return value, value

        _, rows = scan(step, x[0], x[1:])
        return moveaxis(concatenate([x[:1], rows]), 0, k)

    def outer(self, A: Any, B: Any, /) -> Any:
        """The function of every element of one array with every element of another.

        Args:
            A: an array.
            B: an array.
        Returns:
            An array with the axes of `A` and then those of `B`.

        >>> jnp.add.outer(jnp.array([0, 10]), jnp.array([1, 2]))
        Array([[ 1,  2],
               [11, 12]], dtype=int32)"""
        self._need_pair("outer")
        A, B = arrays(f"{self.__name__}.outer", A, B)
        return self._call(reshape(A, A.shape + (1,) * B.ndim), reshape(B, (1,) * A.ndim + B.shape))

    def at(self, a: Any, indices: Any, b: Any = None, *, inplace: bool = True) -> Any:
        """An array with the function applied at places, once for each time that a place occurs.

        Args:
            a: an array.
            indices: the places, as in `a[indices]`.
            b: the second operand of a function of two.
            inplace: must be False: arrays are immutable.
        Returns:
            A new array, of the dtype that the function gives.
        Differs from NumPy:
            `inplace=False` has to be given, and the result used.

        >>> jnp.add.at(jnp.zeros(3), jnp.array([0, 0, 2]), 1.0, inplace=False)
        Array([2., 0., 1.], dtype=float32)"""
        if inplace:
            raise NotImplementedError(
                f"calque arrays are immutable: pass inplace=False to {self.__name__}.at and use its"
                " result"
            )
        a = array_of(f"{self.__name__}.at", a)
        if self.nin == 1:
            return a.at[indices].apply(self._call)
        if self._at is not None:
            return self._at(a, indices, b)
        return self._one_by_one(a, indices, b)

    def _one_by_one(self, a: Any, indices: Any, b: Any) -> Any:
        """The places in order, so that a place met twice is updated twice."""
        index = indices if isinstance(indices, tuple) else (indices,)
        places = reshape(np.arange(a.size, dtype=np.int32), a.shape)[index]
        values = ravel(broadcast_to(array_of("at", b), places.shape))
        dtype = self._dtype_of(ravel(a), values)
        if 0 in a.shape:  # no place to change, and none that the step could read
            return convert(a, dtype)

        def step(x: Any, one: Any) -> Any:
            i, v = one
            return x.at[i].set(convert(self._call(x[i], v), dtype)), None

        flat = convert(ravel(a), dtype)
        return reshape(scan(step, flat, (ravel(places), values))[0], a.shape)

    def reduceat(
        self, a: Any, indices: Any, axis: int = 0, dtype: Any = None, out: None = None
    ) -> Any:
        """Folds pieces of an axis.

        Args:
            a: an array.
            indices: where each piece begins; it ends where the next one begins. A piece that ends
                before it begins is its first element.
            axis: the axis.
            dtype: of the elements and of the result; None is what the function returns.
            out: must be None: arrays are immutable.
        Returns:
            An array with one element for each piece along the axis.

        >>> jnp.add.reduceat(jnp.array([1, 2, 3, 4]), jnp.array([0, 2]))
        Array([3, 7], dtype=int32)"""
        self._need_pair("reduceat")
        _refuse_out("reduceat", out)
        a, indices = arrays(f"{self.__name__}.reduceat", a, indices)
        if not is_integer(indices.dtype) or indices.ndim != 1:
            raise IndexError(
                f"{self.__name__}.reduceat: indices must be a 1-D array of integers, got"
                f" {typeof(indices).str_short()}"
            )
        k = canonical_axis(axis, a.ndim)
        x = moveaxis(a, k, 0)
        n = x.shape[0]
        if indices.shape[0] == 0:
            return a[(slice(None),) * k + (slice(0, 0),)]
        stops = concatenate([indices[1:], np.full((1,), n, indices.dtype)])
        dtype = result_dtype(dtype) or self._dtype_of(x, x)
        x = convert(x, dtype)

        def piece(start: Any, stop: Any) -> Any:
            def step(carry: Any, row: Any) -> Any:
                i, v = row
                inside = (i > start) & (i < stop)
                return where_(inside, convert(self._call(carry, v), dtype), carry), None

            return scan(step, x[start], (np.arange(n, dtype=np.int32), x))[0]

        return moveaxis(vmap(piece)(indices, stops), 0, k)


def _refuse_out(method: str, out: Any) -> None:
    if out is not None:
        raise NotImplementedError(
            f"out argument of {method}(): arrays are immutable, use the result"
        )


def _rows(a: Any, axes: Sequence[int]) -> Any:
    """The folded axes as one leading axis."""
    x = moveaxis(a, tuple(axes), tuple(range(len(axes))))
    rest = x.shape[len(axes) :]
    n = 1
    for i in axes:
        n *= a.shape[i]
    return reshape(x, (n, *rest))


def _elementwise(func: Callable[..., Any], name: str, nin: int) -> Callable[..., Any]:
    """A function of scalars mapped over every element of its broadcast operands."""

    def call(*args: Any) -> Any:
        xs = arrays(name, *args)
        shape = np.broadcast_shapes(*[x.shape for x in xs])
        f = func
        for _ in shape:
            f = vmap(f)
        return f(*[broadcast_to(x, shape) for x in xs])

    return call


@python_only
def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, *, identity: Any = None) -> ufunc:
    """A universal function made of a function of numbers.

    Args:
        func: a function of numbers, traceable.
        nin: how many operands it has.
        nout: how many results it has.
        identity: a number that changes nothing as an operand, if there is one; folds begin with it.
    Returns:
        A `ufunc`: it maps over arrays that broadcast, and has the methods of one.
    Differs from NumPy:
        The results have dtypes of their own, not object.

    >>> digits = jnp.frompyfunc(lambda x, y: 10 * x + y, 2, 1)
    >>> digits.reduce(jnp.array([1, 2, 3]))
    Array(123, dtype=int32)"""
    if not callable(func):
        raise TypeError(f"func argument to frompyfunc must be a callable, got {type(func)}")
    return ufunc(func, nin, nout, identity=identity)

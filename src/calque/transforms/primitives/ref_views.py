"""Views of Refs: parts of them, and their elements in another order, shape or dtype.

A view reads and writes the Ref through its steps; each knows how to read a value and how to put one
back."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from calque.core import pytrees
from calque.core.arrays import ArrayImpl, to_array
from calque.core.avals import ShapedArray
from calque.core.dtypes import asked
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.trace_state import Tracer

# ---------------------------------------------------------------- steps


class Part(NamedTuple):
    """The part that an index selects; () and `...` select all."""

    index: Any

    def read(self, x: Any) -> Any:
        place = checked_index(typeof(x).shape, self.index)
        return x if place is None else x[place]

    def put(self, x: Any, part: Any) -> Any:
        place = checked_index(typeof(x).shape, self.index)
        return part if place is None else x.at[place].set(part)

    def add(self, x: Any, part: Any) -> Any:
        """With the part added, as often as it selects an element."""
        place = checked_index(typeof(x).shape, self.index)
        return x + part if place is None else x.at[place].add(part)


class Reshaped(NamedTuple):
    """All elements in another shape."""

    shape: tuple[int, ...]

    def read(self, x: Any) -> Any:
        return x.reshape(self.shape)

    def put(self, x: Any, part: Any) -> Any:
        return part.reshape(typeof(x).shape)


class Transposed(NamedTuple):
    """The axes in another order."""

    permutation: tuple[int, ...]

    def read(self, x: Any) -> Any:
        if sorted(self.permutation) != list(range(typeof(x).ndim)):
            raise ValueError(
                f"transpose of a Ref: {self.permutation} is no order of the axes of a value of type"
                f" {typeof(x).str_short()}"
            )
        return x.transpose(self.permutation)

    def put(self, x: Any, part: Any) -> Any:
        return part.transpose(tuple(int(k) for k in np.argsort(self.permutation)))


class Recast(NamedTuple):
    """The bits read as another dtype; where its size is another, the second last axis is longer or
    shorter."""

    dtype: np.dtype

    def read(self, x: Any) -> Any:
        return _recast(x, self.dtype)

    def put(self, x: Any, part: Any) -> Any:
        return _recast(part, typeof(x).dtype)


def _recast(x: Any, dtype: Any) -> Any:
    aval = typeof(x)
    own, new = aval.dtype.itemsize, dtype.itemsize
    if own == new:
        return do.bitcast_convert_type(x, new_dtype=dtype)
    if aval.ndim < 2:
        raise NotImplementedError(
            f"bitcast of a Ref of type {aval.str_short()} to {dtype.name}: its size changes, which"
            " needs two axes"
        )
    *lead, rows, columns = aval.shape
    if own > new:  # each row becomes several
        apart = do.bitcast_convert_type(x, new_dtype=dtype)  # [..., rows, columns, ratio]
        return do.reshape(apart.swapaxes(-1, -2), new_sizes=(*lead, rows * (own // new), columns))
    ratio = new // own
    if rows % ratio:
        raise ValueError(
            f"bitcast of a Ref of type {aval.str_short()} to {dtype.name}: {rows} rows do not make"
            f" whole ones of {ratio}"
        )
    together = do.reshape(x, new_sizes=(*lead, rows // ratio, ratio, columns)).swapaxes(-1, -2)
    return do.bitcast_convert_type(together, new_dtype=dtype)


Step = Part | Reshaped | Transposed | Recast


def checked_index(shape: Sequence[Any], idx: Any) -> Any:
    """An index; None means the whole. Numbers out of bounds are refused."""
    if idx is None or idx is Ellipsis or (isinstance(idx, tuple) and not idx):
        return None
    given = idx if isinstance(idx, tuple) else (idx,)
    axis = 0
    for place, i in enumerate(given):
        if i is Ellipsis:
            axis = len(shape) - sum(k is not None for k in given[place + 1 :])
            continue
        if isinstance(i, (int, np.integer)) and not isinstance(i, bool) and axis < len(shape):
            size = shape[axis]
            if not -size <= operator.index(i) < size:
                raise ValueError(f"Out of bound indexer: idx={i}, dim={size}.")
        axis += i is not None
    return idx


def _read(x: Any, steps: Sequence[Step]) -> Any:
    for step in steps:
        x = step.read(x)
    return x


def _put(x: Any, steps: Sequence[Step], value: Any) -> Any:
    """The value of a Ref with another one at the end of these steps."""
    if not steps:
        return value
    first, *rest = steps
    return first.put(x, _put(first.read(x), rest, value))


def _add(x: Any, steps: Sequence[Step], value: Any) -> Any:
    """The same with a value added there."""
    first, *rest = steps
    if not rest:
        return (
            first.add(x, value) if isinstance(first, Part) else first.put(x, first.read(x) + value)
        )
    return first.put(x, _add(first.read(x), rest, value))


# ---------------------------------------------------------------- what can be read and written


class Mutable:
    """What Refs and their views have in common: `x[i]`, `x[i] = y`, and views of them."""

    __slots__ = ()

    def _base(self) -> tuple[Any, tuple[Step, ...]]:
        """The Ref, and the steps to what this stands for."""
        raise AssertionError("abstract")

    @property
    def at(self) -> RefIndexer:
        """Makes views of parts: `ref.at[i]`."""
        return RefIndexer(self)

    def reshape(self, *shape: Any) -> TransformedRef:
        """Gives a view of another shape.

        Args:
            *shape: Its sizes, or one tuple of them; -1 stands for what is left.

        Returns:
            The view."""
        sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        return self._through(Reshaped(tuple(int(n) for n in sizes)))

    def transpose(self, *permutation: Any) -> TransformedRef:
        """Gives a view with its axes in another order.

        Args:
            *permutation: The axes, or one tuple of them; none turns the order around.

        Returns:
            The view."""
        if len(permutation) == 1 and isinstance(permutation[0], (tuple, list)):
            (permutation,) = permutation
        order = permutation or reversed(range(self._type().ndim))
        return self._through(Transposed(tuple(int(k) for k in order)))

    @property
    def T(self) -> TransformedRef:
        """A view with the axes turned around."""
        return self.transpose()

    def bitcast(self, dtype: Any) -> TransformedRef:
        """Gives a view of the bits as another dtype.

        Args:
            dtype: The dtype. If its size is another, the second last axis is longer or shorter.

        Returns:
            The view."""
        return self._through(Recast(asked(dtype)))

    def get(self, idx: Any = ()) -> Any:
        """Reads a part.

        Args:
            idx: An index as for arrays; `()` and `...` read all.

        Returns:
            An array."""
        return read(self, idx)

    def set(self, value: Any, idx: Any = ()) -> None:
        """Writes to a part.

        Args:
            value: An array of the shape of the part.
            idx: An index as for arrays; `()` and `...` are all of it."""
        write(self, idx, value, "swap")

    def swap(self, value: Any, idx: Any = ()) -> Any:
        """Writes to a part, and gives what was there.

        Args:
            value: An array of the shape of the part.
            idx: An index as for arrays; `()` and `...` are all of it.

        Returns:
            The part as it was."""
        return write(self, idx, value, "swap")

    def addupdate(self, x: Any, idx: Any = ()) -> None:
        """Adds to a part: `ref[idx] += x`.

        Args:
            x: An array that broadcasts to the shape of the part.
            idx: An index as for arrays; `...` is all of it.

        >>> r = jax.new_ref(jnp.zeros(2))
        >>> r.addupdate(3.0, 1)
        >>> r[...]
        Array([0., 3.], dtype=float32)"""
        add(self, idx, x)

    def _through(self, step: Step) -> TransformedRef:
        ref, steps = self._base()
        view = TransformedRef(ref, (*steps, step))
        view._type()  # refuses what cannot be
        return view

    def _type(self) -> ShapedArray:
        ref, steps = self._base()
        return typeof(_read(ref._held(), steps)) if steps else ref._aval.inner_aval

    def __getitem__(self, idx: Any) -> Any:
        return read(self, idx)

    def __setitem__(self, idx: Any, value: Any) -> None:
        write(self, idx, value, "swap")

    def __len__(self) -> int:
        shape = self._type().shape
        if not shape:
            raise TypeError("len() of unsized object")
        return int(shape[0])

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise TypeError(f"a Ref is not an array: read its value first, with ref[...]; got {self}")


class TransformedRef(Mutable):
    """A view of a Ref: made by `ref.at[i]`, `ref.reshape`, `ref.transpose` and `ref.bitcast`.

    Reading it reads the Ref, and writing it writes the Ref.

    Args:
        ref: The Ref.
        transforms: The steps from its value to what the view stands for.

    >>> r = jax.new_ref(jnp.zeros((2, 3)))
    >>> view = r.at[1].at[:2]
    >>> view[...] = jnp.ones(2)
    >>> r[...]
    Array([[0., 0., 0.],
           [1., 1., 0.]], dtype=float32)"""

    __slots__ = ("ref", "transforms")

    def __init__(self, ref: Any, transforms: tuple[Step, ...]):
        self.ref, self.transforms = ref, transforms

    type = property(lambda self: self._type())
    shape = property(lambda self: self._type().shape)
    dtype = property(lambda self: self._type().dtype)
    ndim = property(lambda self: self._type().ndim)
    size = property(lambda self: self._type().size)

    def _base(self) -> tuple[Any, tuple[Step, ...]]:
        return self.ref, self.transforms

    def __repr__(self) -> str:
        return f"TransformedRef({self.ref!r}, {self.transforms!r})"


class RefIndexer:
    """`ref.at`: index it for a view of a part.

    Args:
        ref_or_view: The Ref, or a view of it.

    >>> jax.new_ref(jnp.arange(3.0)).at[1:].shape
    (2,)"""

    __slots__ = ("ref_or_view",)

    def __init__(self, ref_or_view: Mutable):
        self.ref_or_view = ref_or_view

    def __getitem__(self, index: Any) -> TransformedRef:
        return self.ref_or_view._through(Part(index))


# ---------------------------------------------------------------- reading and writing


def read(x: Mutable, idx: Any) -> Any:
    """What a part holds."""
    ref, steps = x._base()
    return _read(ref._held(), (*steps, Part(idx)))


def write(x: Mutable, idx: Any, value: Any, what: str) -> Any:
    """Write a value to a part, and give back what was there."""
    ref, steps = x._base()
    steps = (*steps, Part(idx))
    old = _read(ref._held(), steps)
    ref._store(_put(ref._held(), steps, _checked(x, old, value, what)), what)
    return old


def add(x: Mutable, idx: Any, value: Any) -> None:
    """Add a value to a part."""
    ref, steps = x._base()
    steps = (*steps, Part(idx))
    value = _checked(x, _read(ref._held(), steps), value, "addupdate")
    ref._store(_add(ref._held(), steps, value), "addupdate")


def _checked(x: Mutable, old: Any, value: Any, what: str) -> Any:
    value = to_array(value)
    aval, wanted = typeof(value), typeof(old)
    if aval.dtype != wanted.dtype:
        raise ValueError(
            f"Invalid dtype for `{what}`. Ref dtype: {wanted.dtype}. Value dtype: {aval.dtype}."
            " Convert the value with astype."
        )
    if aval.shape != wanted.shape:
        raise ValueError(
            f"Invalid shape for `{what}`. Ref shape: {x._type().shape}. Expected shape:"
            f" {wanted.shape}. Value shape: {aval.shape}."
        )
    return value


# ---------------------------------------------------------------- views as trees

_DYNAMIC: Final = (ArrayImpl, Tracer, np.ndarray)


def _apart(x: Any, found: list[Any]) -> Any:
    """The form of an index, whose arrays are put into `found`."""
    if isinstance(x, _DYNAMIC):
        found.append(x)
        return ("array",)
    if isinstance(x, slice):
        return ("slice", *[_apart(v, found) for v in (x.start, x.stop, x.step)])
    if isinstance(x, (tuple, list)):
        kind = Part if isinstance(x, Part) else type(x)
        return ("items", kind, *[_apart(v, found) for v in x])
    if is_dataclass(x) and not isinstance(x, type):  # jax.ds
        return ("fields", type(x), *[_apart(getattr(x, f.name), found) for f in fields(x)])
    return ("is", x)


def _together(form: Any, arrays: Iterator[Any]) -> Any:
    what, *rest = form
    if what == "array":
        return next(arrays)
    if what == "slice":
        return slice(*[_together(v, arrays) for v in rest])
    if what == "is":
        return rest[0]
    kind, *parts = rest
    made = [_together(v, arrays) for v in parts]
    return kind(made) if kind in (tuple, list) else kind(*made)


def _flatten(view: TransformedRef) -> tuple[tuple[Any, ...], Any]:
    found: list[Any] = []
    form = tuple(
        _apart(step, found) if isinstance(step, Part) else step for step in view.transforms
    )
    return (view.ref, *found), form


def _unflatten(form: Any, children: Iterable[Any]) -> TransformedRef:
    ref, *arrays = children
    given = iter(arrays)
    steps = tuple(step if isinstance(step, _WHOLE) else _together(step, given) for step in form)
    return TransformedRef(ref, steps)


_WHOLE: Final = (Reshaped, Transposed, Recast)
pytrees.register(TransformedRef, _flatten, _unflatten)

"""x.at[index]: functional updates."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from calque.core.arrays import Array, ArrayImpl
from calque.core.dtypes import iinfo, is_signed
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.trace_state import Tracer
from calque.core.types import ArrayLike
from calque.numpy import ufuncs
from calque.numpy.creation import placed
from calque.numpy.indexing import gathering as indexing
from calque.numpy.indexing import masked
from calque.numpy.indexing.parsing import parts_of
from calque.numpy.promotion import check_arraylike, convert
from calque.numpy.shaping import where
from calque.ops import scatter_functions as lax_scatter
from calque.ops.dimension_numbers import GatherScatterMode


class At:
    """`x.at`: index it, then choose the update."""

    __slots__ = ("array",)

    def __init__(self, array: Any):
        self.array = array

    def __getitem__(self, index: Any) -> Updates:
        return Updates(self.array, index)

    def __repr__(self) -> str:
        return f"At({self.array!r})"


class Update(Protocol):
    """A method of `x.at[index]` that writes."""

    def __call__(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array: ...


class Updates:
    """`x.at[index]`: every method gives a new array, the old one stays as it is.

    >>> import calque.numpy as jnp
    >>> jnp.zeros(3).at[1].set(5.0)
    Array([0., 5., 0.], dtype=float32)

    Updates outside the array are dropped, reads clamped, unless `mode` ("clip", "drop", "fill",
    "wrap", "promise_in_bounds") says otherwise."""

    __slots__ = ("array", "index")

    def __init__(self, array: Any, index: Any):
        self.array, self.index = array, index

    def __repr__(self) -> str:
        return f"{self.array!r}.at[{self.index!r}]"

    @placed
    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        fill_value: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        """x[index], with a choice of what places outside give."""
        index = self.index
        if not wrap_negative_indices:
            index = _negatives_outside(
                index, mode, below=mode not in ("fill", "drop", GatherScatterMode.FILL_OR_DROP)
            )
        return indexing.getitem(
            self.array, index, mode, fill_value, unique_indices, indices_are_sorted
        )

    def _update(
        self,
        scatter: Callable[..., Any],
        values: Any,
        unique: bool,
        ordered: bool,
        mode: Any,
        wrap: bool = True,
    ) -> Any:
        check_arraylike("x.at[...]", values)
        mask = masked.traced_mask(self.array, self.index)
        if mask is not None:
            return masked.update(self.array, mask, values, scatter)
        index = (
            self.index
            if wrap
            else _negatives_outside(
                self.index, mode, below=mode in ("clip", GatherScatterMode.CLIP)
            )
        )
        return indexing.update(self.array, index, values, scatter, mode, unique, ordered)

    @placed
    def apply(
        self,
        func: Callable[[Any], Any],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        """The elements replaced by a function of them."""

        def scatter(x: Any, indices: Any, updates: Any, dnums: Any, **options: Any) -> Any:
            return lax_scatter.scatter_apply(
                x, indices, func, dnums, update_shape=typeof(updates).shape, **options
            )

        zero = np.zeros((), typeof(self.array).dtype)
        return self._update(
            scatter, zero, unique_indices, indices_are_sorted, mode, wrap_negative_indices
        )

    if TYPE_CHECKING:  # made below, by `_method`
        set: Update
        add: Update
        subtract: Update
        multiply: Update
        mul: Update
        min: Update
        max: Update

    def divide(self, values: Any, **options: Any) -> Any:
        """x.at[index].divide(y): x with its elements divided by y."""
        ones = ufuncs.true_divide(
            self.array, Updates(_ones_like(self.array), self.index).multiply(values, **options)
        )
        return (
            convert(ones, typeof(self.array).dtype)
            if typeof(ones).dtype != typeof(self.array).dtype
            else ones
        )

    def power(self, values: Any, **options: Any) -> Any:
        """x.at[index].power(y): x with its elements raised to y."""
        return ufuncs.power(
            self.array, Updates(_ones_like(self.array), self.index).multiply(values, **options)
        )


def _ones_like(x: Any) -> Any:
    aval = typeof(x)
    return do.broadcast_in_dim(np.ones((), aval.dtype), shape=aval.shape, broadcast_dimensions=())


_BEYOND = np.iinfo(np.int64).max  # no array is so long


def _negatives_outside(index: Any, mode: Any, below: bool) -> Any:
    """An index whose negative positions lie outside of the array: at its beginning if those `below`
    are taken there, else beyond every end. Positions modulo the size stay."""
    if mode == "wrap":
        return index

    def part(p: Any) -> Any:
        if type(p) is int:
            return p if p >= 0 else 0 if below else _BEYOND
        if not isinstance(p, (ArrayImpl, Tracer, np.ndarray, np.generic)) or not is_signed(
            typeof(p).dtype
        ):
            return p
        wide: Any = convert(p, np.dtype(np.int32)) if typeof(p).dtype.itemsize < 4 else p
        return where(wide < 0, 0 if below else iinfo(typeof(wide).dtype).max, wide)

    return tuple(map(part, parts_of(index)))


def _method(name: str, scatter: Callable[..., Any], doc: str) -> Callable[..., Any]:
    def update(
        self: Updates,
        values: Any,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        return self._update(
            scatter, values, unique_indices, indices_are_sorted, mode, wrap_negative_indices
        )

    update.__name__ = name
    update.__doc__ = doc
    return placed(update)


for _name, _scatter, _doc in (
    ("set", lax_scatter.scatter, "x with values written to the places."),
    ("add", lax_scatter.scatter_add, "x with values added at the places; repeated places add up."),
    ("subtract", lax_scatter.scatter_sub, "x with values subtracted at the places."),
    ("multiply", lax_scatter.scatter_mul, "x with the places multiplied by values."),
    ("mul", lax_scatter.scatter_mul, "As `multiply`."),
    ("min", lax_scatter.scatter_min, "x with the smaller of element and value at the places."),
    ("max", lax_scatter.scatter_max, "x with the larger of element and value at the places."),
):
    setattr(Updates, _name, _method(_name, _scatter, _doc))

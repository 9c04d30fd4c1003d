"""x.at[index]: functional updates."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from calque.core.arrays import Array, ArrayImpl
from calque.core.dtypes import iinfo, is_signed
from calque.core.guards import guard
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.trace_state import Tracer
from calque.core.types import ArrayLike
from calque.numpy import ufuncs
from calque.numpy.calls.marks import with_numbers
from calque.numpy.conversions import as_values
from calque.numpy.creation import placed
from calque.numpy.indexing import at_calls, masked
from calque.numpy.indexing import gathering as indexing
from calque.numpy.indexing.parsing import parts_of
from calque.numpy.promotion import convert
from calque.numpy.shaping import where
from calque.ops import scatter_functions as lax_scatter
from calque.ops.dimension_numbers import GatherScatterMode
from calque.ops.sizes import index_dtype


@guard
class At:
    """`x.at`: index it, then choose the update."""

    __slots__ = ("array",)

    def __init__(self, array: Any):
        self.array = array

    def __getitem__(self, index: Any) -> Updates:
        return Updates(self.array, index)

    def __call__(self, *args: Any) -> Any:
        raise TypeError(
            "x.at is indexed, not called: write x.at[index].set(value), with square brackets"
        )

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
    """What `x.at[index]` gives: every method makes a new array, and the old one stays as it is.

    Places outside of the array are left out by updates and read as the nearest ones, unless `mode`
    says otherwise.

    Args:
        array: The array.
        index: An index as in `x[index]`.

    >>> jnp.zeros(3).at[1].set(5.0)
    Array([0., 5., 0.], dtype=float32)"""

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
        """Gives `x[index]`, with a choice of what places outside give.

        Args:
            indices_are_sorted: A promise that the places come in order; it changes nothing here.
            unique_indices: A promise that no place comes twice.
            mode: "clip" takes the nearest place, None and "promise_in_bounds" as well, but there
                arrays of positions have no slope where they lie outside; "fill" and "drop" give
                `fill_value`, "wrap" counts on from the other end.
            fill_value: What places outside give with "fill"; None means NaN for floats, the least
                signed and the largest unsigned integer, and True.
            out_sharding: How the result is laid out over devices; None leaves it as it is.
            wrap_negative_indices: Whether negative positions count from the end.

        Returns:
            An array of the shape of `x[index]`.

        >>> jnp.arange(3.0).at[jnp.array([1, 7])].get(mode="fill", fill_value=-1)
        Array([ 1., -1.], dtype=float32)"""
        index = self.index
        if mode is None and fill_value is None and wrap_negative_indices:
            call = at_calls.call_of(self.array, index)
            if call is not None:
                return _learned_get(self.array, call.layout, *call.parts)
        if not wrap_negative_indices:
            below = mode not in ("fill", "drop", GatherScatterMode.FILL_OR_DROP)
            index = _negatives_outside(index, mode, below, self.array.shape)
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
        return _as_weak_as(self.array, self._updated(scatter, values, unique, ordered, mode, wrap))

    def _updated(
        self,
        scatter: Callable[..., Any],
        values: Any,
        unique: bool,
        ordered: bool,
        mode: Any,
        wrap: bool,
    ) -> Any:
        values = as_values("x.at[...]", values)
        if scatter is not lax_scatter.scatter:
            own, needed = typeof(self.array).dtype, indexing.needed_by(values, self.array)
            if needed != own:  # half of an integer is found before it is rounded
                wide = Updates(convert(self.array, needed), self.index)
                out = wide._updated(scatter, values, unique, ordered, mode, wrap)
                return convert(out, own)
        mask = masked.traced_mask(self.array, self.index)
        if mask is not None:
            return masked.update(self.array, mask, values, scatter)
        index = self.index
        if not wrap:
            below = mode in ("clip", GatherScatterMode.CLIP)
            index = _negatives_outside(index, mode, below, self.array.shape)
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
        """Gives the array with a function applied to the places, as often as these are named.

        Args:
            func: An elementwise function of one array.
            indices_are_sorted: A promise that the places come in order; it changes nothing here.
            unique_indices: A promise that no place comes twice.
            mode: What happens to places outside of the array, as of `set`.
            out_sharding: How the result is laid out over devices; None leaves it as it is.
            wrap_negative_indices: Whether negative positions count from the end.

        Returns:
            An array of the shape and dtype of `x`.

        >>> jnp.arange(3.0).at[1:].apply(jnp.square)
        Array([0., 1., 4.], dtype=float32)"""

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
        """Gives the array with the places divided by values.

        Args:
            values: An array or a number; it broadcasts to the shape of `x[index]`.
            **options: As of `set`.

        Returns:
            An array of the shape of `x`, and of its dtype; of floats for integers.

        >>> jnp.arange(3.0).at[2].divide(4.0)
        Array([0. , 1. , 0.5], dtype=float32)"""
        return ufuncs.true_divide(
            self.array, Updates(_ones_like(self.array), self.index).multiply(values, **options)
        )

    def power(self, values: Any, **options: Any) -> Any:
        """Gives the array with the places raised to a power.

        Args:
            values: The exponents; they broadcast to the shape of `x[index]`.
            **options: As of `set`.

        Returns:
            An array of the shape of `x`.

        >>> jnp.arange(3.0).at[2].power(3)
        Array([0., 1., 8.], dtype=float32)"""
        return ufuncs.power(
            self.array, Updates(_ones_like(self.array), self.index).multiply(values, **options)
        )


def _ones_like(x: Any) -> Any:
    aval = typeof(x)
    one = np.ones((), aval.dtype)
    ones = do.broadcast_in_dim(one, shape=aval.shape, broadcast_dimensions=())
    return _as_weak_as(x, ones)


def _as_weak_as(x: Any, out: Any) -> Any:
    """A result with the weak type of the array that it was made of."""
    aval = typeof(x)
    if not aval.weak_type or typeof(out).weak_type:
        return out
    return do.convert_element_type(out, new_dtype=aval.dtype, weak_type=True)


def _get(array: Any, layout: str, *parts: Any) -> Any:
    return indexing.getitem(array, at_calls.index_of(layout, parts), None, None, False, False)


_learned_get = with_numbers(_get)
_FAR = np.iinfo(np.int64).max  # no array is so long


def _negatives_outside(index: Any, mode: Any, below: bool, shape: tuple[Any, ...]) -> Any:
    """An index whose negative positions lie outside of the array: before its beginning if those
    `below` are wanted, else beyond every end. Positions modulo the size stay."""
    if mode == "wrap":
        return index
    least = index_dtype(*shape)

    def part(p: Any) -> Any:
        if type(p) is int:
            return p if p >= 0 else np.asarray(-_FAR if below else _FAR, np.int64)
        if not isinstance(p, (ArrayImpl, Tracer, np.ndarray, np.generic)) or not is_signed(
            typeof(p).dtype
        ):
            return p
        wide: Any = convert(p, least) if typeof(p).dtype.itemsize < least.itemsize else p
        far = iinfo(typeof(wide).dtype)
        return where(wide < 0, far.min if below else far.max, wide)

    return tuple(map(part, parts_of(index)))


def _method(name: str, scatter: Callable[..., Any], does: str, example: str) -> Callable[..., Any]:
    """A method of `x.at[index]` that scatters: what it does, and what its example gives."""

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
        plain = mode is None and wrap_negative_indices
        call = at_calls.call_of(self.array, self.index) if plain else None
        if call is not None and at_calls.suits(self.array, values):
            return learned(self.array, values, call.layout, *call.parts)
        return self._update(
            scatter, values, unique_indices, indices_are_sorted, mode, wrap_negative_indices
        )

    def function(array: Any, values: Any, layout: str, *parts: Any) -> Any:
        index = at_calls.index_of(layout, parts)
        return Updates(array, index)._update(scatter, values, False, False, None)

    function.__name__ = name
    learned = with_numbers(function)
    update.__name__, update.__qualname__ = name, f"{Updates.__qualname__}.{name}"
    update.__doc__ = f"""Gives the array with {does}; the array itself stays as it is.

        Args:
            values: An array or a number; it broadcasts to the shape of `x[index]`.
            indices_are_sorted: A promise that the places come in order; it changes nothing here.
            unique_indices: A promise that no place comes twice.
            mode: What happens to places outside of the array: None and "drop" leave them out,
                "clip" takes the nearest one, "wrap" counts on from the other end, and
                "promise_in_bounds" says that there are none.
            out_sharding: How the result is laid out over devices; None leaves it as it is.
            wrap_negative_indices: Whether negative positions count from the end.

        Returns:
            An array of the shape and dtype of `x`.

        >>> jnp.array([1.0, 2.0, 3.0]).at[1].{name}(5.0)
        {example}"""
    return placed(update)


for _name, _scatter, _does, _example in (
    ("set", lax_scatter.scatter, "values written to the places", "[1., 5., 3.]"),
    (
        "add",
        lax_scatter.scatter_add,
        "values added at the places, as often as these are named",
        "[1., 7., 3.]",
    ),
    ("subtract", lax_scatter.scatter_sub, "values subtracted at the places", "[ 1., -3.,  3.]"),
    ("multiply", lax_scatter.scatter_mul, "the places multiplied by values", "[ 1., 10.,  3.]"),
    ("mul", lax_scatter.scatter_mul, "the places multiplied by values", "[ 1., 10.,  3.]"),
    (
        "min",
        lax_scatter.scatter_min,
        "the smaller of element and value at the places",
        "[1., 2., 3.]",
    ),
    (
        "max",
        lax_scatter.scatter_max,
        "the larger of element and value at the places",
        "[1., 5., 3.]",
    ),
):
    setattr(Updates, _name, _method(_name, _scatter, _does, f"Array({_example}, dtype=float32)"))

guard(Updates)

"""The functions of lax that write into windows of an array, over the scatter primitives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from calque.core.arrays import Array
from calque.core.avals import ShapedArray
from calque.core.primitives import Primitive
from calque.core.trace import trace_to_jaxpr, typeof
from calque.core.trace_state import Tracer
from calque.core.types import ArrayLike
from calque.ops import common
from calque.ops.common import index_operand
from calque.ops.common import operand as as_operand
from calque.ops.dimension_numbers import (
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from calque.ops.indexing import (
    combiner,
)
from calque.ops.layout import canonical_shape
from calque.ops.scatter import (
    scatter_add_p,
    scatter_max_p,
    scatter_min_p,
    scatter_mul_p,
    scatter_p,
    scatter_sub_p,
)

# ---------------------------------------------------------------- lax functions


class ScatterFunction(Protocol):
    def __call__(
        self,
        operand: Any,
        scatter_indices: Any,
        updates: Any,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
    ) -> Any: ...


def _function(
    name: str, primitive: Primitive, combine: str | None, does: str, example: str
) -> ScatterFunction:
    """The function of lax for one of the primitives: what it does to windows of the operand, and
    what its example gives. `combine` names the binary primitive that merges an element with an
    update."""

    def function(
        operand: Any,
        scatter_indices: Any,
        updates: Any,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
    ) -> Any:
        x, u = common.same_dtypes(name, [as_operand(operand), as_operand(updates)])
        return primitive.bind(
            x,
            index_operand(scatter_indices),
            u,
            dimension_numbers=dimension_numbers,
            indices_are_sorted=bool(indices_are_sorted),
            unique_indices=bool(unique_indices),
            mode=GatherScatterMode.from_any(mode),
            update_jaxpr=None if combine is None else combiner(combine, typeof(x).dtype),
            update_consts=(),
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""Gives an array with windows of it {does}.

    Args:
        operand: An array.
        scatter_indices: Integers; the last dimension holds the position of one window.
        updates: The updates, of the dtype of `operand`, one for each window.
        dimension_numbers: How the dimensions of operand, indices and updates belong together.
        indices_are_sorted: A promise that the positions come in order.
        unique_indices: A promise that no element comes twice.
        mode: What happens to windows that are not inside: "clip" moves them, "drop", which None
            means, leaves them out, and "promise_in_bounds" says that there are none.

    Returns:
        An array of the shape and dtype of `operand`.

    >>> rows = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.{name}(jnp.array([1.0, 2.0, 3.0]), jnp.array([[1]]), jnp.array([5.0]), rows)
    Array({example}, dtype=float32)"""
    return function


scatter = _function(
    "scatter",
    scatter_p,
    None,
    "replaced by updates; of several updates of one element the last remains",
    "[1., 5., 3.]",
)
scatter_add = _function("scatter_add", scatter_add_p, "add", "increased by updates", "[1., 7., 3.]")
scatter_sub = _function(
    "scatter_sub", scatter_sub_p, "sub", "decreased by updates", "[ 1., -3.,  3.]"
)
scatter_mul = _function(
    "scatter_mul", scatter_mul_p, "mul", "multiplied by updates", "[ 1., 10.,  3.]"
)
scatter_min = _function(
    "scatter_min", scatter_min_p, "min", "lowered to updates where these are less", "[1., 2., 3.]"
)
scatter_max = _function(
    "scatter_max", scatter_max_p, "max", "raised to updates where these are more", "[1., 5., 3.]"
)


def scatter_apply(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    func: Callable[[Any], Any],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """Applies a function to elements of an array, once for each time that they are named.

    Args:
        operand: An array.
        scatter_indices: Integers; the last dimension holds the position of one window.
        func: A function from a scalar to a scalar of the same dtype.
        dimension_numbers: How the dimensions of operand, indices and windows belong together.
        update_shape: The shape that updates would have.
        indices_are_sorted: A promise that the positions come in order.
        unique_indices: A promise that no element comes twice.
        mode: What happens to windows that are not inside: "clip" moves them, "drop", which None
            means, leaves them out, and "promise_in_bounds" says that there are none.

    Returns:
        An array of the shape and dtype of `operand`.

    >>> rows = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_apply(jnp.ones(3), jnp.array([[1]]), lambda x: x + 1, rows, update_shape=(1,))
    Array([1., 2., 1.], dtype=float32)"""
    x = as_operand(operand)
    scalar = ShapedArray((), typeof(x).dtype)
    closed = trace_to_jaxpr(
        lambda a, b: [func(a)], [scalar, scalar], getattr(func, "__name__", "func")
    )
    if any(isinstance(c, Tracer) for c in closed.consts):
        raise NotImplementedError(
            "the function of scatter_apply uses a traced value from outside: pass it in another way"
        )
    out = closed.jaxpr.outvars[0].aval
    if out.shape != () or out.dtype != scalar.dtype:
        raise TypeError(
            f"the function of scatter_apply must give {scalar.str_short()}, it gives"
            f" {out.str_short()}"
        )
    return scatter_p.bind(
        x,
        index_operand(scatter_indices),
        common.filled(canonical_shape(update_shape), common.scalar_of(scalar.dtype, 0)),
        dimension_numbers=dimension_numbers,
        indices_are_sorted=bool(indices_are_sorted),
        unique_indices=bool(unique_indices),
        mode=GatherScatterMode.from_any(mode),
        update_jaxpr=closed.jaxpr,
        update_consts=tuple(closed.consts),
    )

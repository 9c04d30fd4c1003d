"""Rules of batching: `primitive_batchers`, and functions that fill it."""

from collections.abc import Callable
from typing import Any, NamedTuple

from calque.core.trace import typeof
from calque.extend.own import Rules
from calque.ops.common import aligned, batch_size, front, move, repeated
from calque.transforms.engines.trees import handed
from calque.transforms.functions import mapped_classes

__all__ = [
    "AxisData", "axis_primitive_batchers", "bdim_at_front", "broadcast", "defbroadcasting",
    "defreducer", "defvectorized",
    "fancy_primitive_batchers", "moveaxis", "not_mapped", "primitive_batchers",
    "register_vmappable", "unregister_vmappable",
]  # fmt: skip

not_mapped = None


class AxisData(NamedTuple):
    """The axis that a rule of `fancy_primitive_batchers` maps over. Its name is not known there."""

    name: Any
    size: int
    spmd_name: Any = None
    explicit_mesh_axis: Any = None


def _with_axis(primitive: Any, rule: Callable[..., Any]) -> Callable[..., Any]:
    def batch(args: Any, dims: Any, /, **params: Any) -> Any:
        axis = AxisData(None, batch_size(args, dims))
        return rule(axis, tuple(map(handed, args)), tuple(dims), **params)

    return batch


def _with_axis_size(primitive: Any, rule: Callable[..., Any]) -> Callable[..., Any]:
    """The older form of such rules: (size, name, None, args, dims, **params)."""

    def batch(args: Any, dims: Any, /, **params: Any) -> Any:
        size = batch_size(args, dims)
        return rule(size, None, None, tuple(map(handed, args)), tuple(dims), **params)

    return batch


def _as_given(primitive: Any, rule: Callable[..., Any]) -> Callable[..., Any]:
    """A rule of a library, with arrays as users know them."""

    def batch(args: Any, dims: Any, /, **params: Any) -> Any:
        return rule(tuple(map(handed, args)), tuple(dims), **params)

    return batch


# rule(args, dims, **params) -> (result, its dimension); with `multiple_results` lists of them
primitive_batchers = Rules("batch", _as_given)
fancy_primitive_batchers = Rules("batch", _with_axis)
axis_primitive_batchers = Rules("batch", _with_axis_size)


def defvectorized(prim: Any) -> None:
    """Says that a primitive works element by element: `vmap` brings batches to one dimension.

    Args:
        prim: The primitive. All its operands have the same shape.

    >>> negated_p = calque.extend.core.Primitive("negated")
    >>> _ = negated_p.def_impl(jnp.negative), negated_p.def_abstract_eval(lambda x: x)
    >>> calque.interpreters.batching.defvectorized(negated_p)
    >>> calque.vmap(negated_p.bind)(jnp.arange(3))
    Array([ 0, -1, -2], dtype=int32)"""

    def batch(args: Any, dims: Any, /, **params: Any) -> Any:
        values, dim = aligned(args, dims)
        out = prim.bind(*values, **params)
        return out, [dim] * len(out) if prim.multiple_results else dim

    primitive_batchers[prim] = batch


def defbroadcasting(prim: Any) -> None:
    """Says that a primitive works element by element on operands of any rank.

    `vmap` makes the batch the first dimension of all operands.

    Args:
        prim: The primitive.

    >>> sum_p = calque.extend.core.Primitive("sum_of_two")
    >>> _ = sum_p.def_impl(jnp.add), sum_p.def_abstract_eval(lambda x, y: x)
    >>> calque.interpreters.batching.defbroadcasting(sum_p)
    >>> calque.vmap(sum_p.bind, (0, None))(jnp.arange(3), 1)
    Array([1, 2, 3], dtype=int32)"""

    def batch(args: Any, dims: Any, /, **params: Any) -> Any:
        size = batch_size(args, dims)
        values = [front(x, d, size) for x, d in zip(args, dims)]
        out = prim.bind(*values, **params)
        return out, [0] * len(out) if prim.multiple_results else 0

    primitive_batchers[prim] = batch


def defreducer(prim: Any, ident: Any = None) -> None:
    """Says that a primitive takes away the dimensions that its parameter `axes` names.

    Args:
        prim: The primitive, of one operand.
        ident: Taken for JAX's sake and not needed.

    >>> total_p = calque.extend.core.Primitive("total")
    >>> _ = total_p.def_impl(lambda x, axes: x.sum(axes))
    >>> calque.interpreters.batching.defreducer(total_p)
    >>> calque.vmap(lambda x: total_p.bind(x, axes=(0,)))(jnp.ones((2, 3)))
    Array([3., 3.], dtype=float32)"""

    def batch(args: Any, dims: Any, /, *, axes: Any, **params: Any) -> Any:
        (x,), (dim,) = args, dims
        shifted = tuple(a + (a >= dim) for a in axes)
        out = prim.bind(x, axes=shifted, **params)
        return out, dim - sum(1 for a in axes if a < dim)

    primitive_batchers[prim] = batch


def moveaxis(x: Any, source: int, target: int) -> Any:
    """An array with a dimension moved.

    Args:
        x: An array or tracer.
        source: The dimension; from the end if negative.
        target: Where it goes.

    Returns:
        An array or tracer.

    >>> calque.interpreters.batching.moveaxis(jnp.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)"""
    ndim = typeof(x).ndim
    return move(x, source % ndim, target % ndim)


def broadcast(x: Any, sz: int, axis: int, mesh_axis: Any = None) -> Any:
    """An array repeated along a new dimension.

    Args:
        x: An array or tracer.
        sz: The size of the new dimension.
        axis: Its place in the result.
        mesh_axis: Must be None.

    Returns:
        An array or tracer.

    >>> calque.interpreters.batching.broadcast(jnp.ones(3), 2, 1).shape
    (3, 2)"""
    if mesh_axis is not None:
        raise NotImplementedError("batching.broadcast: mesh_axis is not supported")
    return repeated(x, sz, axis)


def bdim_at_front(x: Any, bdim: int | None, size: int, mesh_axis: Any = None) -> Any:
    """An array with its batch dimension first.

    Args:
        x: An array or tracer.
        bdim: The batch dimension; with None `x` has none, and is repeated.
        size: The size of the batch.
        mesh_axis: Must be None.

    Returns:
        An array or tracer.

    >>> calque.interpreters.batching.bdim_at_front(jnp.ones(3), None, 2).shape
    (2, 3)"""
    if mesh_axis is not None:
        raise NotImplementedError("batching.bdim_at_front: mesh_axis is not supported")
    return front(x, bdim, size)


def register_vmappable(
    data_type: type, spec_type: type, axis_size_type: type, to_elt: Callable[..., Any],
    from_elt: Callable[..., Any], make_iota: Any
) -> None:  # fmt: skip
    """From now on `vmap` maps over values of a class as a whole. `in_axes` and `out_axes` say of
    them a `spec_type`; `to_elt(cont, i, x, spec)` gives the element of a value, in which
    `cont(array, axis)` is the element of an array, and `from_elt(cont, size, element, spec)` the
    value, in which `cont(size, element, axis)` is an array. Indices need no class of their own:
    `axis_size_type` must be int and `make_iota` None."""
    if axis_size_type is not int or make_iota is not None:
        raise NotImplementedError(
            f"register_vmappable({data_type.__name__}): the sizes of axes are ints, and make_iota"
            f" None; got {axis_size_type!r} and {make_iota!r}"
        )
    if data_type in mapped_classes.CLASSES:
        raise ValueError(f"register_vmappable: {data_type.__name__} is registered already")
    mapped_classes.CLASSES[data_type] = mapped_classes.MappedClass(spec_type, to_elt, from_elt)


def unregister_vmappable(data_type: type) -> None:
    """Values of the class are mapped over by their leaves again, if they are containers."""
    del mapped_classes.CLASSES[data_type]

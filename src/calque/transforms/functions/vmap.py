"""vmap for users: axes given by trees, checked, with messages that name the arguments."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from calque.core import pytrees
from calque.core.dtypes import PYTHON_SCALARS
from calque.core.key_paths import keystr
from calque.core.primitives import do
from calque.core.trace import typeof, typing
from calque.core.tracebacks import boundary
from calque.transforms.engines.axes import Axis
from calque.transforms.engines.batching import Dim, batch, placed
from calque.transforms.engines.signatures import check_callable
from calque.transforms.engines.trees import FlatFunction, argument_name, arrays, name_of, wrapping
from calque.transforms.functions import mapped_classes
from calque.transforms.primitives.refs_arguments import lane_refs

if TYPE_CHECKING:
    from calque.core.generics import P, R


def vmap(
    fun: Callable[P, R],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Hashable = None,
    axis_size: int | None = None,
    spmd_axis_name: Hashable = None,
    sum_match: bool = False,
) -> Callable[P, R]:
    """Makes a function of whole batches from a function of one example.

    It is no loop: every operation of `fun` is carried out for all examples at once.

    Args:
        fun: The function of one example. Its arguments are arrays and trees of them.
        in_axes: Which axis of each argument is mapped: an int for all, or a tuple with an int, None
            (not mapped) or a tree of these for each positional argument. Keyword arguments are
            mapped along axis 0.
        out_axes: Where the mapped axis stands in the results: an int, None (results must not be
            mapped), or a tree of these that the results begin with.
        axis_name: A name by which collectives such as `lax.psum` speak of the mapped axis.
        axis_size: The size of the mapped axis; None takes it from the arguments.
        spmd_axis_name: Mesh axes, a name or a tuple, along which the mapped axis of values placed
            on a mesh is split.
        sum_match: Whether mapped results for which `out_axes` is None are summed rather than
            refused.

    Returns:
        A function of the same arguments with one more axis each.

    >>> matvec = jax.vmap(jnp.dot, in_axes=(None, 0))
    >>> matvec(jnp.eye(2), jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array([[1., 2.],
           [3., 4.]], dtype=float32)"""
    check_callable(fun)
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if type(in_axes) is not tuple and not mapped_classes.is_spec(in_axes):
        raise TypeError(
            "vmap in_axes must be an int, None, or a tuple of entries corresponding to the"
            f" positional arguments passed to the function, but got {in_axes}."
        )
    _check_entries("in_axes", in_axes)
    _check_entries("out_axes", out_axes)
    given_spmd = () if spmd_axis_name is None else spmd_axis_name
    spmd = given_spmd if isinstance(given_spmd, tuple) else (given_spmd,)

    @boundary
    def mapped(*args: Any, **kwargs: Any) -> Any:
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ValueError(
                "vmap in_axes must be an int, None, or a tuple of entries corresponding to the"
                " positional arguments passed to the function, but got"
                f" len(in_axes)={len(in_axes)}, len(args)={len(args)}: give one entry for each"
                f" argument of {name_of(fun)}, None for one that is not mapped"
            )
        if mapped_classes.CLASSES and mapped_classes.any_mapped_whole((args, kwargs)):
            given, along = (args, kwargs), (axis_name, axis_size)
            return mapped_classes.mapped(fun, given, in_axes, out_axes, along)
        leaves, in_tree = pytrees.flatten((args, kwargs))
        objects = _objects(leaves, lambda: _flat_axes(in_axes, args, kwargs))
        if objects:  # every lane gets them as they are
            rest = [i for i in range(len(leaves)) if i not in objects]

            def with_objects(*values: Any) -> Any:
                given = dict(zip(rest, values)) | objects
                full = [given[i] for i in range(len(leaves))]
                inner_args, inner_kwargs = pytrees.unflatten(in_tree, full)
                return fun(*inner_args, **inner_kwargs)

            axes = _flat_axes(in_axes, args, kwargs)
            outer = vmap(
                wrapping(with_objects, fun),
                tuple(axes[i] for i in rest), out_axes, axis_name, axis_size, spmd_axis_name,
                sum_match,
            )  # fmt: skip
            return outer(*[leaves[i] for i in rest])
        refs = lane_refs(leaves, lambda: _flat_axes(in_axes, args, kwargs), name_of(fun))
        values = arrays(leaves if refs is None else refs.values, "vmap", fun, args, kwargs)
        dims = _canonical(values, _flat_axes(in_axes, args, kwargs), fun, args, kwargs)
        size = _size(values, dims, axis_size, fun, args, kwargs)
        flat = FlatFunction(fun, in_tree, "vmap")
        lanes = typing.value.lane_axes(values, dims, spmd)
        axis = Axis(axis_name, size, spmd=lanes[0] if lanes else spmd, explicit=bool(lanes))
        outs, found = batch(flat if refs is None else refs.flat(flat), axis, values, dims)
        if refs is not None:
            outs, found = refs.stored(outs, found, dims, size)
        targets = flatten_axes("vmap out_axes", out_axes, pytrees.unflatten(flat.out_tree, outs))
        for i, (d, t) in enumerate(zip(found, targets, strict=True)):
            if t is None and d is not None and not sum_match:
                path = _path(out_axes, pytrees.unflatten(flat.out_tree, outs), i)
                raise _not_the_same(outs[i], d, axis, fun, path)
        results = [_placed(o, d, t, axis, fun) for o, d, t in zip(outs, found, targets)]
        if lanes:
            results = [_on_lanes(o, t, lanes) for o, t in zip(results, targets)]
        return pytrees.unflatten(flat.out_tree, results)

    doc = f"Vectorized version of {name_of(fun)}: takes arrays with further axes, as in_axes and"
    return wrapping(mapped, fun, f"{doc} out_axes say.")


def _on_lanes(x: Any, target: Dim, lanes: Any) -> Any:
    return x if target is None else typing.value.on_lanes(x, target % typeof(x).ndim, lanes)


def _objects(leaves: Sequence[Any], axes: Callable[[], list[Dim]]) -> dict[int, Any]:
    """The leaves that are no values of any kind, where nothing is mapped over them."""
    strange = [i for i, x in enumerate(leaves) if _is_object(x)]
    if not strange:
        return {}
    dims = axes()
    return {i: leaves[i] for i in strange if dims[i] is None}


def _is_object(x: Any) -> bool:
    """Is it nothing that could be an array?"""
    if hasattr(x, "aval") or isinstance(x, (np.ndarray, np.generic, *PYTHON_SCALARS)):
        return False
    return not any(hasattr(x, name) for name in ("__jax_array__", "shape", "dtype"))


def _flat_axes(in_axes: Any, args: Any, kwargs: Any) -> list[Dim]:
    return flatten_axes("vmap in_axes", in_axes, args) + [0] * len(pytrees.leaves(kwargs))


def _is_none(x: Any) -> bool:
    return x is None


def _check_entries(what: str, spec: Any) -> None:
    for x in pytrees.leaves(spec):
        if not mapped_classes.is_spec(x) or isinstance(x, bool):
            raise TypeError(
                f"vmap {what} must be an int, None, or (nested) container with those types as"
                f" leaves, but got {spec}."
            )


def flatten_axes(what: str, spec: Any, tree: Any) -> list[Dim]:
    """The axis of each leaf of `tree`, from a tree whose leaves stand for whole subtrees."""
    if spec is None or isinstance(spec, int):
        return [spec] * len(pytrees.leaves(tree))
    try:
        return pytrees.prefix_broadcast(spec, tree, is_leaf=_is_none)
    except (ValueError, TypeError):
        why = pytrees.difference(spec, tree, _is_none, what)
        raise ValueError(
            f"{what} specification must be a tree prefix of the corresponding value; got"
            f" specification {spec} for value tree {pytrees.structure(tree)}."
            + (f"\n  Mismatch details (1 found):\n  {why}" if why else "")
        ) from None


def _canonical(
    values: Sequence[Any],
    flat_axes: Sequence[Dim],
    fun: Any,
    args: Sequence[Any],
    kwargs: dict[str, Any],
) -> list[Dim]:
    """Axes counted from the front."""
    dims: list[Dim] = []
    for i, (x, d) in enumerate(zip(values, flat_axes, strict=True)):
        ndim = typeof(x).ndim
        if d is not None and not -ndim <= d < ndim:
            raise ValueError(
                f"vmap was requested to map its argument along axis {d}, which implies that its"
                f" rank should be at least {d + 1 if d >= 0 else -d}, but is only {ndim} (its shape"
                f" is {typeof(x).shape}): the argument {argument_name(fun, args, kwargs, i)} of"
                f" {name_of(fun)}"
            )
        dims.append(None if d is None else d % ndim)
    return dims


def _size(
    values: Sequence[Any],
    dims: Sequence[Dim],
    axis_size: int | None,
    fun: Any,
    args: Sequence[Any],
    kwargs: dict[str, Any],
) -> int:
    """The one size that all mapped dimensions have."""
    sizes: dict[int, list[int]] = {}
    for i, (x, d) in enumerate(zip(values, dims)):
        if d is not None:
            sizes.setdefault(typeof(x).shape[d], []).append(i)
    if not sizes and axis_size is None:
        if not values:
            raise ValueError(
                "vmap wrapped function must be passed at least one argument containing an array or"
                f" axis_size must be specified, got empty *args={args} and **kwargs={kwargs}"
            )
        raise ValueError(
            "vmap must have at least one non-None value in in_axes, and an array for it, or"
            " axis_size must be specified"
        )
    if len(sizes.keys() | ({axis_size} - {None})) <= 1:
        return next(iter(sizes), axis_size or 0)
    lines = [] if axis_size is None else [f"\n  * the `axis_size` argument was {axis_size}"]
    most = max(len(where) for where in sizes.values())
    for size, where in sorted(sizes.items(), key=lambda found: -len(found[1])):
        first = where[0]
        aval = typeof(values[first])
        example = (
            f"axis {dims[first]} of {_name(fun, args, kwargs, first)} of type"
            f" {aval.dtype.name}[{','.join(map(str, aval.shape))}]"
        )
        if len(where) == 1:
            lines.append(f"\n  * one axis had size {size}: {example}")
        else:
            share = "most" if len(where) == most and len(sizes) > 1 else "some"
            lines.append(
                f"\n  * {share} axes ({len(where)} of them) had size {size}, e.g. {example}"
            )
    raise ValueError(
        "vmap got inconsistent sizes for array axes to be mapped:"
        + ";".join(lines)
        + f"\nin {name_of(fun)}"
    )


def _name(fun: Any, args: Sequence[Any], kwargs: dict[str, Any], leaf: int) -> str:
    """What a flat argument is called; `kwargs['y']` if it was given by name."""
    first = len(pytrees.leaves(args))
    if leaf < first:
        return "argument " + argument_name(fun, args, kwargs, leaf)
    path, _ = pytrees.flatten_with_path(kwargs)[0][leaf - first]
    return "kwargs" + keystr(path)


def _path(spec: Any, tree: Any, leaf: int) -> str:
    """Where a leaf stands in a tree with axes for its parts; one axis for all of it names none."""
    return "" if spec is None else keystr(pytrees.flatten_with_path(tree)[0][leaf][0])


def _not_the_same(x: Any, dim: int, axis: Axis, fun: Any, path: str) -> ValueError:
    named = "" if axis.name is None else f" (axis_name={axis.name})"
    return ValueError(
        f"vmap has mapped output{named} but out_axes is None: at vmap out_axes{path}, got axis spec"
        f" None but output was batched on axis {dim}. {name_of(fun)} returns a value of type"
        f" {typeof(x).str_short()} that differs along the mapped axis; give out_axes an axis for it"
    )


def _placed(x: Any, dim: Dim, target: Dim, axis: Axis, fun: Any) -> Any:
    size = axis.size
    if target is None:  # the same in all lanes, or to be added up
        return x if dim is None else do.reduce_sum(x, axes=(dim,))
    ndim = typeof(x).ndim + (dim is None)
    if not -ndim <= target < ndim:
        raise ValueError(
            f"axis {target} is out of bounds for array of dimension {ndim}: out_axes of vmap names"
            f" no dimension of a result of {name_of(fun)}"
        )
    return placed(x, dim, target % ndim, size)

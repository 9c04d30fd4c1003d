"""Classes of the user that `vmap` maps over as a whole: each says what its elements are, and how it
is made of them (`interpreters.batching.register_vmappable`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from calque.core import pytrees, trace_state
from calque.core.arrays import to_array
from calque.core.trace import typeof
from calque.machine.state import process
from calque.transforms.engines import axes
from calque.transforms.engines.axes import Axis
from calque.transforms.engines.batching import BatchTrace, placed
from calque.transforms.engines.trees import name_of


class MappedClass(NamedTuple):
    """How values of a class are mapped over."""

    spec_type: type  # of what `in_axes` and `out_axes` say of them
    # (element of an array along an axis, index, value, spec) -> the element of the value
    to_element: Callable[..., Any]
    # (array of the elements along an axis, size, element, spec) -> the value
    from_element: Callable[..., Any]


CLASSES: Final[dict[type, MappedClass]] = process.container("classes that are mapped over", {})


def is_mapped_whole(x: Any) -> bool:
    """Whether this is a value of such a class."""
    return type(x) in CLASSES


def is_spec(x: Any) -> bool:
    """Whether `in_axes` or `out_axes` may say this: of a value of such a class, or of any."""
    return x is None or isinstance(x, (int, *[c.spec_type for c in CLASSES.values()]))


def any_mapped_whole(args: Any) -> bool:
    """Whether there are such values among the arguments."""
    return any(map(is_mapped_whole, pytrees.leaves(args, is_leaf=is_mapped_whole)))


def mapped(
    fun: Callable[..., Any],
    given: tuple[Sequence[Any], dict[str, Any]],
    in_axes: Any,
    out_axes: Any,
    axis: tuple[Any, int | None],
) -> Any:
    """`fun` mapped over its arguments, `given`, some of which are of such classes. `axis` is the
    name of the axis and its size, if that is said."""
    args, kwargs = given
    leaves, tree = pytrees.flatten((tuple(args), kwargs), is_mapped_whole)
    specs = _specs("in_axes", in_axes, tuple(args)) + [0] * (len(leaves) - _count(tuple(args)))
    size = axis[1] if axis[1] is not None else _size(fun, leaves, specs)
    trace = BatchTrace(Axis(axis[0], size))

    def element(x: Any, dim: int | None) -> Any:
        x = to_array(x)
        return trace.tracer(x, None if dim is None else dim % typeof(x).ndim)

    def whole(n: Any, x: Any, dim: int | None) -> Any:
        value, own = trace.whole(x)
        if dim is None:
            if own is not None:
                raise ValueError(
                    f"vmap of {name_of(fun)} has mapped output but out_axes is None: give out_axes"
                    " an axis for it"
                )
            return value
        return placed(to_array(value), own, dim % (typeof(x).ndim + 1), size)

    def inside(x: Any, spec: Any) -> Any:
        rule = CLASSES.get(type(x))
        return element(x, spec) if rule is None else rule.to_element(element, 0, x, spec)

    def outside(x: Any, spec: Any) -> Any:
        rule = CLASSES.get(type(x))
        if rule is None:
            return whole(size, x, spec)
        return rule.from_element(whole, size, x, spec)

    with trace_state.entered(trace), axes.bound([trace.axis], trace):
        inner_args, inner_kwargs = pytrees.unflatten(tree, list(map(inside, leaves, specs)))
        out = fun(*inner_args, **inner_kwargs)
        outs, out_tree = pytrees.flatten(out, is_mapped_whole)
        results = list(map(outside, outs, _specs("out_axes", out_axes, out)))
    return pytrees.unflatten(out_tree, results)


def _count(tree: Any) -> int:
    return len(pytrees.leaves(tree, is_leaf=is_mapped_whole))


def _specs(what: str, spec: Any, tree: Any) -> list[Any]:
    """What is said of each leaf of a tree, where values of such classes are leaves."""
    if is_spec(spec):
        return [spec] * _count(tree)
    marked, structure = pytrees.flatten(tree, is_mapped_whole)
    plain = pytrees.unflatten(structure, [0] * len(marked))
    try:
        return pytrees.prefix_broadcast(spec, plain, is_leaf=is_spec)
    except (ValueError, TypeError):
        raise ValueError(
            f"vmap {what} specification must be a tree prefix of the corresponding value; got"
            f" specification {spec} for value tree {structure}"
        ) from None


def _size(fun: Any, leaves: Sequence[Any], specs: Sequence[Any]) -> int:
    """The size of the axis, from the arrays among the arguments."""
    for x, spec in zip(leaves, specs):
        if not is_mapped_whole(x) and isinstance(spec, int):
            n: int = typeof(x).shape[spec]
            return n
    raise ValueError(
        f"vmap of {name_of(fun)}: no array says the size of the mapped axis: give axis_size"
    )

"""Arrays that are still to be added: the summand that each member has.

The elements of an array are those of the sum, which every operation may read. What the members have
stands beside it, in `Summands`, the sharding that the array has then: one row for each member along
the axes that the spec calls unreduced. A program whose arguments or results are such arrays runs on
the rows: what is linear is done to each of them, a `shard_map` takes and gives them as they are,
and what needs the sum adds them first."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from calque.core.arrays import adopted, from_storage, share, to_numpy
from calque.core.avals import ShapedArray
from calque.core.devices import Device
from calque.core.jaxprs import ClosedJaxpr, Eqn, Jaxpr, Var, subjaxprs, without_places
from calque.core.primitives import do
from calque.core.trace import jaxpr_as_fun, literal_value, trace_to_jaxpr, typeof
from calque.ops.common import front, repeated, scalar_of
from calque.transforms.devices.shard_map_equation import mapped_axes
from calque.transforms.devices.shard_map_parts import alone, of_parts, whole
from calque.transforms.devices.sharding import NamedSharding, Summands
from calque.transforms.devices.specs import PartitionSpec
from calque.transforms.devices.types import MeshPlace, in_mesh_order, lenient, typed
from calque.transforms.engines.axes import Axis, AxisPrimitive, Collective
from calque.transforms.engines.batching import batch

Names = tuple[Hashable, ...]


def axes_to_add(aval: Any) -> Names:
    """The explicit axes over which values of a type are still to be added, in the mesh's order."""
    place = getattr(aval, "place", None)
    if not isinstance(place, MeshPlace) or not place.spec.unreduced:
        return ()
    return in_mesh_order(place.mesh, place.spec.unreduced)


def are_taken(closed: ClosedJaxpr) -> bool:
    """Whether arguments or results of a program are still to be added."""
    if "summands" not in closed.cache:
        avals = (*closed.in_avals, *closed.out_avals)
        closed.cache["summands"] = any(axes_to_add(a) for a in avals)
    return bool(closed.cache["summands"])


# ---------------------------------------------------------------- arrays


def rows_of(x: Any, aval: ShapedArray) -> Any:
    """The summands of an array of this type. Of one that was not made of summands the first member
    has all, and the others zeros."""
    names = axes_to_add(aval)
    if not names:
        return x
    if type(x._extra) is Summands:
        return x._extra.rows
    place: Any = aval.place
    values = to_numpy(x)
    rows = np.zeros([place.mesh.shape[n] for n in names] + list(values.shape), values.dtype)
    rows[(0,) * len(names)] = values
    return from_storage(rows, aval.without_place().update(shape=rows.shape))


def of_parts_on_devices(
    aval: ShapedArray, sharding: NamedSharding, parts: dict[Device, Any]
) -> Any:
    """The array of which each device has its own summand, or a part of it."""
    mesh = sharding.mesh
    names = in_mesh_order(mesh, sharding.spec.unreduced)
    index = dict(zip(sharding.device_order, sharding.indices(aval.shape)))
    dtype = to_numpy(next(iter(parts.values()))).dtype
    rows = np.zeros([*(mesh.shape[n] for n in names), *aval.shape], dtype)
    for device, part in parts.items():
        at: tuple[Any, ...] = (*sharding.position(device, names), *index[device])
        rows[at] = to_numpy(part)
    total = np.zeros(aval.shape, dtype)
    for k in np.ndindex(*rows.shape[: len(names)]):
        total += rows[k]
    made = from_storage(rows, aval.without_place().update(shape=rows.shape))
    return held(from_storage(total, aval), sharding, made)


def held(x: Any, sharding: Any, rows: Any) -> Any:
    """The array of the sum `x` whose members have these summands."""
    out = share(x, typed(x.aval.without_place(), sharding))
    out._extra = Summands(sharding, rows)
    return out


# ---------------------------------------------------------------- programs


class _Value(NamedTuple):
    """A value of a program, with a dimension in front for each axis over which its rows are."""

    x: Any
    names: Names = ()


Sizes = dict[Hashable, int]


def on_rows(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program of the rows of its arguments. Its results are those of the program, and after
    them the rows of those that have any."""
    if "on rows" in closed.cache:
        made: ClosedJaxpr = closed.cache["on rows"]
        return made
    sizes: Sizes = {}
    for a in (*closed.in_avals, *closed.out_avals):
        place = getattr(a, "place", None)
        if isinstance(place, MeshPlace):
            sizes.update(place.mesh.shape)

    def fun(*args: Any) -> list[Any]:
        given = [_Value(x, axes_to_add(a)) for x, a in zip(args, closed.in_avals, strict=True)]
        outs = _interpret(closed.jaxpr, closed.consts, given, sizes)
        found = [_with(o, axes_to_add(a), sizes) for o, a in zip(outs, closed.out_avals)]
        return [*[_sum(o) for o in found], *[o.x for o in found if o.names]]

    avals = []
    for a in closed.in_avals:
        lead = tuple(sizes[n] for n in axes_to_add(a))
        avals.append(a.without_place().update(shape=lead + a.shape))
    made = closed.cache["on rows"] = without_places(
        trace_to_jaxpr(fun, avals, "on rows", lenient=True)
    )
    return made


def _sum(value: _Value) -> Any:
    lead = tuple(range(len(value.names)))
    return do.reduce_sum(value.x, axes=lead) if lead else value.x


def _with(value: _Value, names: Names, sizes: Sizes) -> _Value:
    """The value with rows over these axes: over others it is added, over new ones the first member
    has all."""
    gone = tuple(k for k, n in enumerate(value.names) if n not in names)
    x = do.reduce_sum(value.x, axes=gone) if gone else value.x
    own = [n for n in value.names if n in names]
    for n in reversed([n for n in names if n not in own]):
        x = alone(x, sizes[n])
        own.insert(0, n)
    order = [own.index(n) for n in names]
    if order != sorted(order):
        rest = range(len(order), typeof(x).ndim)
        x = do.transpose(x, permutation=(*order, *rest))
    return _Value(x, names)


def _interpret(
    jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[_Value], sizes: Sizes
) -> list[_Value]:
    plain = without_places(ClosedJaxpr(jaxpr, consts)).jaxpr
    env: dict[Any, _Value] = dict(zip(jaxpr.invars, args, strict=True))
    env.update(zip(jaxpr.constvars, map(_Value, consts), strict=True))
    makers: dict[Any, Eqn] = {}

    def read(a: Any) -> _Value:
        return env[a] if isinstance(a, Var) else _Value(literal_value(a))

    with lenient():
        for e, bare in zip(jaxpr.eqns, plain.eqns, strict=True):
            values = [read(a) for a in e.invars]
            if not any(axes_to_add(v.aval) for v in (*e.invars, *e.outvars)):
                outs = _plain(bare, values)
            elif e.primitive.name == "sharding_constraint":
                maker = makers.get(e.invars[0])
                operands = [] if maker is None else [read(a) for a in maker.invars]
                outs = [_constrained(e, values[0], maker, operands, sizes)]
            elif e.primitive.name == "shard_map":
                outs = _mapped(e, values, sizes)
            elif e.primitive.name in ("jit", "closed_call"):
                inner: Any = e.params.get("jaxpr", e.params.get("call_jaxpr"))
                outs = _interpret(inner.jaxpr, inner.consts, values, sizes)
            else:
                outs = _linear(e, bare, values, sizes)
            env.update(zip(e.outvars, outs, strict=True))
            makers.update(dict.fromkeys(e.outvars, e))
        return [read(a) for a in jaxpr.outvars]


def _plain(bare: Eqn, values: Sequence[_Value]) -> list[_Value]:
    """The equation, of sums."""
    out = bare.primitive.bind(*map(_sum, values), **bare.params)
    return [_Value(o) for o in (out if bare.primitive.multiple_results else [out])]


def _linear(e: Eqn, bare: Eqn, values: Sequence[_Value], sizes: Sizes) -> list[_Value]:
    """An operation on each row, where its results have rows too."""
    names = axes_to_add(e.outvars[0].aval)
    rows = [bool(axes_to_add(a.aval)) for a in e.invars]
    whole_value = isinstance(e.primitive, (AxisPrimitive, Collective)) or any(
        True for _ in subjaxprs(e.params)
    )
    if whole_value or not any(rows) or any(axes_to_add(v.aval) != names for v in e.outvars):
        return _plain(bare, values)
    given = [_with(v, names, sizes).x if r else _sum(v) for v, r in zip(values, rows)]
    outs = _on_each(bare, given, [0 if r else None for r in rows], [sizes[n] for n in names])
    return [_Value(o, names) for o in outs]


def _on_each(
    bare: Eqn, values: Sequence[Any], dims: Sequence[int | None], counts: Sequence[int]
) -> list[Any]:
    """The results of an equation for each row, of operands that have their rows in front."""
    if not counts:
        out = bare.primitive.bind(*values, **bare.params)
        return list(out) if bare.primitive.multiple_results else [out]
    outs, found = batch(
        lambda *inner: _on_each(bare, inner, dims, counts[1:]),
        Axis(None, counts[0]),
        values,
        dims,
    )
    return [front(o, d, counts[0]) for o, d in zip(outs, found)]


def _mapped(e: Eqn, values: Sequence[_Value], sizes: Sizes) -> list[_Value]:
    """A `shard_map`: each member takes and gives its row."""
    params = e.params
    mesh, axes = params["mesh"], mapped_axes(params)

    def names(spec: PartitionSpec) -> Names:
        return in_mesh_order(mesh, spec.unreduced)

    ins = [_with(v, names(s), sizes).x for v, s in zip(values, params["in_specs"], strict=True)]
    body = jaxpr_as_fun(without_places(params["jaxpr"]))
    outs, varying, _ = of_parts(body, ins, params["in_specs"], axes, rows=True)
    return [
        _Value(whole(x, v, s, axes, rows=True), names(s))
        for x, v, s in zip(outs, varying, params["out_specs"], strict=True)
    ]


# ---------------------------------------------------------------- sums that are taken apart


def _constrained(
    e: Eqn, value: _Value, maker: Eqn | None, operands: Sequence[_Value], sizes: Sizes
) -> _Value:
    """A value as a constraint asks for it. What was summed over a dimension that is split along the
    axis was summed by each member over its part; of what is split along it itself, each member has
    its part, and zeros elsewhere."""
    names = axes_to_add(e.outvars[0].aval)
    new = [n for n in names if n not in value.names]
    rule = None if maker is None else _PARTS.get(maker.primitive.name)
    if len(new) == 1 and not value.names and maker is not None and rule is not None:
        found = rule(maker, new[0])
        if found is not None and not any(v.names for v in operands):
            (plain,) = without_places(
                ClosedJaxpr(Jaxpr([], list(_variables(maker)), [], [maker]), [])
            ).eqns
            cut = [_cut(v.x, d, sizes[new[0]]) for v, d in zip(operands, found)]
            dims = [None if d is None else 0 for d in found]
            (out,) = _on_each(plain, cut, dims, [sizes[new[0]]])
            return _Value(out, names)
    if len(new) == 1 and not value.names:
        entries = [_entry(e.invars[0], k) for k in range(typeof(value.x).ndim)]
        if new[0] in entries:
            return _Value(_in_its_place(value.x, entries.index(new[0]), sizes[new[0]]), names)
    return _with(value, names, sizes)


def _in_its_place(x: Any, dim: int, parts: int) -> Any:
    """Rows with one part of a value each, and zeros for the others."""
    shape = (parts, *typeof(x).shape)
    own = np.arange(shape[dim + 1]) // (shape[dim + 1] // parts) == np.arange(parts)[:, None]
    mask = do.broadcast_in_dim(adopted(own), shape=shape, broadcast_dimensions=(0, dim + 1))
    zero = scalar_of(typeof(x).dtype, 0)
    zeros = do.broadcast_in_dim(zero, shape=shape, broadcast_dimensions=())
    return do.select_n(mask, zeros, repeated(x, parts))


def _variables(e: Eqn) -> list[Var]:
    return list(dict.fromkeys(a for a in e.invars if isinstance(a, Var)))


def _cut(x: Any, dim: int | None, parts: int) -> Any:
    """The parts of a value along a dimension, as rows."""
    if dim is None:
        return x
    shape = typeof(x).shape
    cut = do.reshape(x, new_sizes=(*shape[:dim], parts, shape[dim] // parts, *shape[dim + 1 :]))
    order = (dim, *[k for k in range(len(shape) + 1) if k != dim])
    return cut if dim == 0 else do.transpose(cut, permutation=order)


def _entry(atom: Any, k: int) -> Any:
    place = getattr(atom.aval, "place", None)
    return place.spec.partitions[k] if isinstance(place, MeshPlace) else None


def _of_product(e: Eqn, name: Hashable) -> list[int | None] | None:
    for i, j in zip(*e.params["dimension_numbers"][0]):
        if name in (_entry(e.invars[0], i), _entry(e.invars[1], j)):
            return [i, j]
    return None


def _of_sum(e: Eqn, name: Hashable) -> list[int | None] | None:
    return next(([k] for k in e.params["axes"] if _entry(e.invars[0], k) == name), None)


# which dimension of each operand is summed over and split along an axis
_PARTS: Final[dict[str, Callable[[Eqn, Hashable], list[int | None] | None]]] = {
    "dot_general": _of_product,
    "reduce_sum": _of_sum,
}

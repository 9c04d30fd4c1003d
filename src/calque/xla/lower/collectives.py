"""Operations between devices, inside the program of one device's parts; and that program: the
equation `shard_map`, as a computation that Shardy leaves to itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from calque.core.jaxprs import Eqn, Jaxpr, expansions, subjaxprs
from calque.transforms.devices.shard_map_equation import manual_names
from calque.transforms.devices.sharding import NamedSharding
from calque.transforms.devices.specs import PartitionSpec, names_in
from calque.xla.lower.placing import dimensions, mesh_name
from calque.xla.lower.programs import call_function, lower_program, ordered_inside
from calque.xla.lower.reductions import MONOIDS
from calque.xla.lower.rules import RULES, Builder, State, equation_rule, listed, rule
from calque.xla.lower.sizes import SizeOutOfReach
from calque.xla.text.tree import Module, Part, Region, Value
from calque.xla.text.types import Tensor, signature, type_of

Groups = Sequence[Sequence[int]] | None
CHANNEL: Final = "#stablehlo.channel_handle<handle = 1, type = 1>"
SUMS: Final = ("psum", "psum_invariant", "unreduced_psum")
GATHERINGS: Final = ("all_gather", "all_gather_invariant", "all_gather_reduced")
SCATTERINGS: Final = ("reduce_scatter", "unreduced_reduce_scatter")
CASTS: Final = ("preduced", "vary_unreduced_cast", "reduced_vary_cast")
# what a program of parts may have; with others it is written as a program of the whole
KNOWN: Final = frozenset(
    (*SUMS, *GATHERINGS, *SCATTERINGS, *CASTS, "pmax", "pmin", "pvary", "pbroadcast", "ppermute")
    + ("all_to_all", "axis_index")
)
UNKNOWN: Final = frozenset(("psum_like", "pvary_like", "variance_of", "ragged_all_to_all"))


# ---------------------------------------------------------------- who takes part


def positions_of(b: Builder, names: Sequence[Hashable]) -> np.ndarray:
    """The positions of devices in a row for each group that an operation along these axes joins."""
    mesh = b.state.manual
    assert mesh is not None, "a collective outside of shard_map"
    at = [mesh.axis_names.index(n) for n in names]
    grid = np.arange(math.prod(mesh.axis_sizes)).reshape(mesh.axis_sizes)
    rest = [k for k in range(grid.ndim) if k not in at]
    count = math.prod(mesh.axis_sizes[k] for k in at)
    return grid.transpose([*rest, *at]).reshape(-1, count)


def members(b: Builder, axis_name: Any, groups: Groups = None) -> np.ndarray:
    """The same with the axis cut into groups of its positions, all of one size."""
    rows = positions_of(b, axis_name if isinstance(axis_name, tuple) else (axis_name,))
    if groups is None:
        return rows
    if len({len(g) for g in groups}) > 1:
        raise NotImplementedError(f"groups of different sizes have no form on XLA: {groups}")
    return rows[:, np.array(groups)].reshape(-1, len(groups[0]))


def table(rows: np.ndarray) -> str:
    """dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>"""
    return f"dense<{rows.tolist()}> : tensor<{rows.shape[0]}x{rows.shape[1]}xi64>"


def joined(
    b: Builder, op: str, out: Tensor, x: Value, rows: np.ndarray, *regions: Region, **more: str
) -> Value:
    """An operation among groups of devices."""
    attributes = {"channel_handle": CHANNEL, "replica_groups": table(rows), **more}
    if op != "stablehlo.all_to_all":
        attributes["use_global_device_ids"] = "unit"
    return b.generic(op, [out], [x], attributes, *regions)[0]


def combining(b: Builder, dtype: Any, name: str) -> Region:
    """The region that joins two elements: sum, max or min."""
    scalar = Tensor((), dtype)
    inner, (x, y) = b.inside([scalar, scalar])
    if dtype.kind == "b":
        inner.returns(inner.binary({"max": "or", "min": "and"}[name], x, y))
    else:
        inner.returns(MONOIDS[name][0](inner, x, y))
    return inner.region


# ---------------------------------------------------------------- the operations


def reduction(name: str) -> Callable[..., Value]:
    def lower(
        b: Builder,
        out: Tensor,
        x: Value,
        *,
        axes: Sequence[Hashable],
        axis_index_groups: Groups = None,
    ) -> Value:
        rows = members(b, tuple(axes), axis_index_groups)
        return joined(b, "stablehlo.all_reduce", out, x, rows, combining(b, x.dtype, name))

    return lower


RULES.update(dict.fromkeys(SUMS, reduction("sum")))
RULES.update({"pmax": reduction("max"), "pmin": reduction("min")})
RULES.update(dict.fromkeys(CASTS, lambda b, out, x, **_: x))


@rule(*GATHERINGS)
def all_gather(
    b: Builder,
    out: Tensor,
    x: Value,
    *,
    all_gather_dimension: int,
    axis_name: Any,
    tiled: bool,
    axis_index_groups: Groups = None,
    **_: Any,
) -> Value:
    k = all_gather_dimension
    if not tiled:
        x = b.reshape(x, (*x.shape[:k], 1, *x.shape[k:]))
    rows = members(b, axis_name, axis_index_groups)
    return joined(b, "stablehlo.all_gather", out, x, rows, all_gather_dim=f"{k} : i64")


@rule(*SCATTERINGS)
def reduce_scatter(
    b: Builder,
    out: Tensor,
    x: Value,
    *,
    scatter_dimension: int,
    axis_name: Any,
    tiled: bool,
    axis_index_groups: Groups = None,
    **_: Any,
) -> Value:
    k = scatter_dimension
    rows = members(b, axis_name, axis_index_groups)
    shape = list(x.shape)
    shape[k] //= rows.shape[1]
    found = joined(
        b,
        "stablehlo.reduce_scatter",
        x.tensor.with_shape(shape),
        x,
        rows,
        combining(b, x.dtype, "sum"),
        scatter_dimension=f"{k} : i64",
    )
    return found if tiled else b.reshape(found, out.shape)


@rule("all_to_all")
def all_to_all(
    b: Builder,
    out: Tensor,
    x: Value,
    *,
    split_axis: int,
    concat_axis: int,
    axis_name: Any,
    tiled: bool,
    axis_index_groups: Groups = None,
) -> Value:
    """Not tiled, the parts are elements of a dimension, which moves."""
    rows = members(b, axis_name, axis_index_groups)
    to = concat_axis if tiled else split_axis
    found = joined(
        b,
        "stablehlo.all_to_all",
        out if tiled else x.tensor,
        x,
        rows,
        concat_dimension=f"{to} : i64",
        split_count=f"{rows.shape[1]} : i64",
        split_dimension=f"{split_axis} : i64",
    )
    if tiled:
        return found
    order = [d for d in range(x.ndim) if d != split_axis]
    order.insert(concat_axis, split_axis)
    return b.transpose(found, order)


@rule("ppermute")
def ppermute(
    b: Builder, out: Tensor, x: Value, *, axis_name: Any, perm: Sequence[tuple[int, int]]
) -> Value:
    """Who gets nothing has zeros."""
    rows = members(b, axis_name)
    pairs = np.array([[r[s], r[d]] for r in rows for s, d in perm], np.int64).reshape(-1, 2)
    if not len(pairs):
        return b.filled(0, out)
    attributes = {"channel_handle": CHANNEL, "source_target_pairs": table(pairs)}
    return b.generic("stablehlo.collective_permute", [out], [x], attributes)[0]


@rule("pbroadcast")
def pbroadcast(b: Builder, out: Tensor, x: Value, *, axis_name: Any, source: int) -> Value:
    """All have what the source has."""
    rows = members(b, axis_name)
    wide = x.tensor.with_shape((rows.shape[1], *x.shape))
    one = b.reshape(x, (1, *x.shape))
    every = joined(b, "stablehlo.all_gather", wide, one, rows, all_gather_dim="0 : i64")
    return b.reshape(b.along(every, 0, source, source + 1), out.shape)


@rule("axis_index")
def axis_index(b: Builder, out: Tensor, *, axis_name: Any) -> Value:
    """Where the device stands along an axis of the mesh."""
    mesh = b.state.manual
    assert mesh is not None, "axis_index outside of shard_map"
    at = mesh.axis_names.index(axis_name)
    step, size = math.prod(mesh.axis_sizes[at + 1 :]), mesh.axis_sizes[at]
    kind = Tensor((), np.dtype("uint32"))
    own = b.one(kind, f"stablehlo.partition_id : {kind}")
    own = b.binary("divide", own, b.scalar(step, kind.dtype))
    own = b.binary("remainder", own, b.scalar(size, kind.dtype))
    return b.convert(own, out.dtype)


# ---------------------------------------------------------------- the program of parts


def primitives_inside(jaxpr: Jaxpr) -> Iterator[Eqn]:
    """The equations of a program, at any depth."""
    for e in jaxpr.eqns:
        yield e
        for inner in subjaxprs(e.params):
            yield from primitives_inside(inner)


def is_for_devices(e: Eqn) -> bool:
    """Whether each device can run the program of its parts: all axes of the mesh are mapped, and
    all operations between devices are known here."""
    mesh, inner = e.params["mesh"], e.params["jaxpr"].jaxpr
    free = set(mesh.axis_names) - set(manual_names(e.params))
    if any(mesh.shape[n] > 1 for n in free) or ordered_inside(inner):
        return False
    if any(s.unreduced for s in (*e.params["in_specs"], *e.params["out_specs"])):
        return False
    for inside in primitives_inside(inner):
        if inside.primitive.name in UNKNOWN or inside.primitive.name == "shard_map":
            return False
        if any(isinstance(a, int) for a in inside.params.get("axes", ())):
            if inside.primitive.name in KNOWN:
                return False
    return True


def reads_sizes(around: State, e: Eqn) -> bool:
    """Whether the program of parts needs the numbers of free sizes, which it cannot see: XLA would
    have to find them inside when it fixes the sizes, and fails."""
    trial = State(Module("trial"), around.platform, partitions_asked=around.partitions_asked)
    trial.manual = e.params["mesh"]
    closed = e.params["jaxpr"]
    try:
        own = [Value(type_of(a)) for a in closed.in_avals]
        lower_program(Builder(trial, Region(own), nested=True), closed, own)
    except SizeOutOfReach:
        return True
    return False


def split_over(spec: PartitionSpec, mesh: Any, ndim: int, is_open: bool) -> str:
    """The mesh axes of each dimension."""
    if not is_open:
        return dimensions(NamedSharding(mesh, spec), ndim)
    each = (
        "{" + ", ".join([*(f'"{n}"' for n in names_in(e)), "?"]) + "}" for e in spec.padded(ndim)
    )
    return f"[{', '.join(each)}]"


@equation_rule("shard_map")
def shard_map(b: Builder, e: Eqn, outs: Sequence[Tensor], args: Sequence[Value]) -> list[Value]:
    alone = b.state.partitions_asked == 1 or b.state.gspmd
    if (not b.state.maps and (alone or not is_for_devices(e))) or (
        b.state.sizes and reads_sizes(b.state, e)
    ):
        found = call_function(b, "shard_map", expansions["shard_map"](e), args)
        return found if alone else _asked(b, e, found)
    closed, mesh, manual = e.params["jaxpr"], e.params["mesh"], manual_names(e.params)
    body = Region([Value(type_of(a)) for a in closed.in_avals], header=False)
    inner = b.within(body)
    before = b.state.manual, b.state.sizes
    b.state.manual, b.state.sizes = mesh, {}  # it sees nothing of what is around it
    found = lower_program(inner, closed, list(body.args))
    b.state.manual, b.state.sizes = before
    types = ", ".join(str(x.type) for x in found)
    ending = [" ", *listed(found), f" : {types}"] if found else []
    inner.emit([], "sdy.return", *ending)
    name = mesh_name(b.state, mesh)
    axes = ", ".join(f'"{n}"' for n in manual)
    is_open = len(manual) < len(mesh.axis_names)
    parts: list[Part] = ["sdy.manual_computation(", *listed(args), ")"]
    parts.append(f" in_shardings={shardings(name, mesh, e.params['in_specs'], args, is_open)}")
    parts.append(f" out_shardings={shardings(name, mesh, e.params['out_specs'], outs, is_open)}")
    parts.append(f" manual_axes={{{axes}}} (")
    for i, x in enumerate(body.args):
        parts += [", " if i else "", x, f": {x.type}"]
    types_of_call = signature([x.type for x in args], outs)
    return b.emit(outs, *parts, ") ", body, f" : {types_of_call}")


def _asked(b: Builder, e: Eqn, found: Sequence[Value]) -> list[Value]:
    """Results that are split as the map says, and over its other axes as XLA likes."""
    mesh, specs = e.params["mesh"], e.params["out_specs"]
    name = mesh_name(b.state, mesh)
    out = []
    for s, x in zip(specs, found, strict=True):
        split = split_over(PartitionSpec(*s.partitions), mesh, x.ndim, True)
        where = f" <@{name}, {split}> : {x.type}"
        out.append(b.one(x.type, "sdy.sharding_constraint ", x, where))
    return out


def shardings(
    name: str, mesh: Any, specs: Sequence[PartitionSpec], values: Sequence[Any], is_open: bool
) -> str:
    """[<@mesh, [{"x"}, {}]>, <@mesh, []>]; {"x", ?} where other axes may split a dimension too."""
    each = [
        f"<@{name}, {split_over(PartitionSpec(*s.partitions), mesh, x.ndim, is_open)}>"
        for s, x in zip(specs, values, strict=True)
    ]
    return f"[{', '.join(each)}]"

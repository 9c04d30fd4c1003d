"""What XLA's partitioner asks about calls that say themselves how they are split: the rules of the
user answer.

XLA asks while it compiles, from threads of its own. It ends the process where a rule of propagation
raises: such errors are kept, and raised when it is done."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from calque.core import pytrees
from calque.core.avals import ShapedArray
from calque.core.config import config
from calque.core.jaxprs import ClosedJaxpr
from calque.core.trace import trace_to_jaxpr
from calque.machine.state import process
from calque.transforms.devices.mesh import Mesh
from calque.transforms.devices.shard_map_equation import region
from calque.transforms.devices.sharding import Sharding
from calque.transforms.devices.tiles import GSPMDSharding, HloSharding, tiles_of
from calque.transforms.engines.trees import check_results, name_of
from calque.transforms.functions.shapes import ShapeDtypeStruct
from calque.xla import jaxlib
from calque.xla.chosen_shardings import by_axes
from calque.xla.lower.module import Request, lower_module
from calque.xla.lower.partitioned import TARGET, Partitioned, asked_about
from calque.xla.vendors import interfaces

_told: Final[set[str]] = process.container("platforms whose partitioner knows whom to ask", set())
_TILES: Final = re.compile(r"\{devices=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?([^}]*)\}")


@contextlib.contextmanager
def answering(calls: Sequence[Partitioned], platform: str) -> Iterator[None]:
    """XLA may ask about these calls inside. What a rule raised is raised at the end."""
    if calls:
        tell_partitioner(platform)
    try:
        yield
    finally:
        errors = [e for e in [call.take_error() for call in calls] if e is not None]
        if errors:
            raise errors[0] from None


def tell_partitioner(platform: str) -> None:
    """Make the functions below known to XLA; of a plugin, to that."""
    if platform in _told:
        return
    interface = interfaces.get(platform)
    jaxlib.jaxlib().client.register_custom_call_partitioner(
        TARGET,
        propagated,
        partitioned,
        inferred,
        can_side_effecting_have_replicated_sharding=True,
        **({} if interface is None else {"c_api": interface}),
    )
    _told.add(platform)


# ---------------------------------------------------------------- the questions


def propagated(wanted: Any, shape: Any, key: bytes) -> Any:
    """The sharding of the results, where their readers want this one."""
    call = asked_about.get(key)
    rule = None if call is None else call.params["propagate_user_sharding"]
    if call is None or rule is None:
        return wanted

    def ask() -> Any:
        shapes = each_shape(shape)
        results = _tree(call, "out_tree", shapes, _each_sharding(shape, wanted))
        found = rule(*call.params["static_args"], call.mesh, results)
        return packed(shape, tiles_for(call, found, "out_tree", shapes))

    return _answered(call, ask, lambda: wanted)


def inferred(arg_shapes: Sequence[Any], tiles: Sequence[Any], shape: Any, key: bytes) -> Any:
    """The sharding of the results, from that of the operands."""
    call, shapes = asked_about.get(key), each_shape(shape)
    rule = None if call is None else call.params["infer_sharding_from_operands"]

    def whole() -> Any:
        return packed(shape, [jaxlib.hlo_tiles() for _ in shapes])

    if call is None or rule is None:
        return whole()

    def ask() -> Any:
        args = _tree(call, "in_tree", arg_shapes, tiles)
        results = pytrees.unflatten(call.params["out_tree"], [_aval(s) for s in shapes])
        found = rule(*call.params["static_args"], call.mesh, args, results)
        return packed(shape, tiles_for(call, found, "out_tree", shapes))

    return _answered(call, ask, whole)


def partitioned(
    arg_shapes: Sequence[Any], arg_tiles: Sequence[Any], shape: Any, result_tiles: Any, key: bytes
) -> Any:
    """The program of one device's parts as MLIR, and the shardings that it is for."""
    call = asked_about.get(key)
    if call is None:
        raise KeyError(
            f"{TARGET} {key.decode()}: a program with custom_partitioning was not lowered in this"
            " process, or is no longer there: lower it again"
        )

    def ask() -> Any:
        params, shapes = call.params, each_shape(shape)
        found = params["partition"](
            *params["static_args"],
            call.mesh,
            _tree(call, "in_tree", arg_shapes, arg_tiles),
            _tree(call, "out_tree", shapes, _each_sharding(shape, result_tiles)),
        )
        mesh, function, wanted_outs, wanted_ins = _four(call, found)
        outs = tiles_for(call, wanted_outs, "out_tree", shapes)
        ins = tiles_for(call, wanted_ins, "in_tree", arg_shapes)
        parts = [_aval(t.tile(s)) for t, s in zip(ins, arg_shapes, strict=True)]
        closed = program_of_parts(call, function, mesh, parts)
        check_parts(call, closed, function, [_aval(t.tile(s)) for t, s in zip(outs, shapes)])
        return as_mlir(call, closed, function, mesh), ins, packed(shape, outs)

    return _answered(call, ask)


def _answered(
    call: Partitioned, ask: Callable[[], Any], otherwise: Callable[[], Any] | None = None
) -> Any:
    """What the rules of a call answer under the flags of the thread that compiles. An error is kept
    for that thread; XLA gets another answer then, if there is one."""
    try:
        with contextlib.ExitStack() as flags:
            for name, value in call.flags.items():
                flags.enter_context(config.override(name, value))
            return ask()
    except Exception as e:
        call.error = call.error or e
        if otherwise is None:
            raise
    return otherwise()


# ---------------------------------------------------------------- what rules are given


def each_shape(shape: Any) -> list[Any]:
    """The shapes of the results of a call."""
    return list(shape.tuple_shapes()) if shape.is_tuple() else [shape]


def _each_sharding(shape: Any, tiles: Any) -> list[Any]:
    return list(tiles.tuple_elements()) if shape.is_tuple() else [tiles]


def _aval(shape: Any) -> ShapedArray:
    return ShapedArray(tuple(shape.dimensions()), np.dtype(shape.numpy_dtype()))


def _tree(call: Partitioned, tree: str, shapes: Sequence[Any], tiles: Sequence[Any]) -> Any:
    """Operands or results as ShapeDtypeStructs with shardings."""
    avals = map(_aval, shapes)
    structs = [
        ShapeDtypeStruct(a.shape, a.dtype, sharding=sharding_of(call, t, a.ndim))
        for a, t in zip(avals, tiles, strict=True)
    ]
    return pytrees.unflatten(call.params[tree], structs)


def sharding_of(call: Partitioned, tiles: Any, ndim: int) -> Sharding | None:
    """XLA's sharding of an array of this rank over the mesh, by its axes; as tiles, where the user
    asks for them or no axes say it. None where XLA does not know yet."""
    if tiles is None:
        return None
    named = by_axes(tiles, call.mesh, ndim) if call.params["decode_shardings"] else None
    if named is not None:
        return named
    devices = tuple(call.mesh.devices.flat)
    return GSPMDSharding(devices, _own_tiles(call, tiles))


def _own_tiles(call: Partitioned, tiles: Any) -> HloSharding:
    """XLA's tiles in calque's words."""
    if tiles.is_replicated():
        return HloSharding()
    found = _TILES.fullmatch(str(tiles))
    if found is None:
        raise NotImplementedError(
            f"{call.told}: XLA splits an array as {tiles}, which no PartitionSpec says: name its"
            " sharding by lax.with_sharding_constraint before the call"
        )
    dims, sizes, perm = ([int(n) for n in (t or "").split(",") if n] for t in found.groups()[:3])
    kinds = ("replicated",) if "last_tile_dim_replicate" in found[4] else ()
    return HloSharding.iota_tile(dims, sizes, perm, kinds)


# ---------------------------------------------------------------- what rules give


def _four(call: Partitioned, found: Any) -> tuple[Any, Any, Any, Any]:
    """What `partition` gives: mesh, function, shardings of results and of arguments."""
    if not isinstance(found, (tuple, list)) or len(found) != 4:
        raise TypeError(
            f"{call.told}: partition {name_of(call.params['partition'])} must return a mesh, a"
            " function of the parts, the shardings of the results and the tuple of those of the"
            f" arguments, got {found!r}"
        )
    mesh, function, outs, ins = found
    if not hasattr(mesh, "axis_sizes") or mesh.size != call.mesh.size:
        raise ValueError(
            f"{call.told}: partition must return a mesh of {call.mesh.size} devices, as many as"
            f" the program runs on, got {mesh!r}"
        )
    if not callable(function):
        raise TypeError(f"{call.told}: partition must return a function, got {function!r}")
    return mesh, function, outs, ins


def tiles_for(call: Partitioned, found: Any, tree: str, shapes: Sequence[Any]) -> list[Any]:
    """The shardings that a rule gives, as XLA's tiles."""
    what = "results" if tree == "out_tree" else "arguments"
    structure = call.params[tree]
    try:
        shardings = structure.flatten_up_to(found)
    except (ValueError, TypeError) as e:
        raise ValueError(
            f"{call.told}: its rules must give shardings in the structure of the {what},"
            f" {structure}: {e}"
        ) from None
    for s in shardings:
        if not isinstance(s, Sharding):
            raise ValueError(
                f"{call.told}: Custom Partitioning rules must return Sharding: a NamedSharding for"
                f" each of the {what}, got {s!r}"
            )
    ranks = [len(s.dimensions()) for s in shapes]
    return [jaxlib.hlo_tiles(tiles_of(s, n)) for s, n in zip(shardings, ranks, strict=True)]


def packed(shape: Any, tiles: Sequence[Any]) -> Any:
    """The shardings of the results as XLA has them: of several one of a tuple."""
    if not shape.is_tuple():
        return tiles[0]
    return jaxlib.jaxlib().client.HloSharding.tuple_sharding(shape, list(tiles))


# ---------------------------------------------------------------- the program of parts


def program_of_parts(
    call: Partitioned, function: Callable[..., Any], mesh: Mesh, parts: Sequence[ShapedArray]
) -> ClosedJaxpr:
    """The function for parts of these types; collectives inside speak of the mesh's axes."""

    def flat(*leaves: Any) -> list[Any]:
        out = function(*pytrees.unflatten(call.params["in_tree"], leaves))
        return check_results(pytrees.leaves(out), out, function, "custom_partitioning")

    names = frozenset(mesh.axis_names)
    with region({"mesh": mesh, "check_vma": False, "newly_manual_axes": names}):
        return trace_to_jaxpr(flat, parts, name_of(function))


def check_parts(
    call: Partitioned,
    closed: ClosedJaxpr,
    function: Callable[..., Any],
    wanted: Sequence[ShapedArray],
) -> None:
    """The function gives the parts of the results."""
    given = [(a.shape, a.dtype) for a in closed.out_avals]
    if given != [(a.shape, a.dtype) for a in wanted]:
        here, there = (
            ", ".join(a.str_short() for a in avals) for avals in (closed.out_avals, wanted)
        )
        raise ValueError(
            f"{call.told}: Mismatch in result shapes. The function {name_of(function)} that"
            f" partition returns gives ({here}), and the parts of the results, split as it says,"
            f" are ({there})"
        )


def as_mlir(
    call: Partitioned, closed: ClosedJaxpr, function: Callable[..., Any], mesh: Mesh
) -> bytes:
    """The program as a module."""
    request = Request(name=name_of(function), platform=call.platform, keep_unused=True, manual=mesh)
    lowered = lower_module(closed, request)
    if lowered.callbacks:
        names = ", ".join(sorted({c.primitive.name for c in lowered.callbacks}))
        raise NotImplementedError(
            f"{call.told}: the function {name_of(function)} that partition returns calls Python on"
            f" the host ({names}), which XLA cannot do there: call it outside, or in"
            " calque.shard_map"
        )
    return lowered.text().encode()

"""A program as a module of StableHLO."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from calque.core.jaxprs import ClosedJaxpr, Jaxpr, Var, all_equations
from calque.transforms.devices.sharding import NamedSharding, is_in_own_memory
from calque.xla import mlir
from calque.xla.lower.partitioned import with_open_results
from calque.xla.lower.placing import memory_attribute, mesh_name, sharding_attribute
from calque.xla.lower.programs import constant_of, lower_program
from calque.xla.lower.rules import Builder, State
from calque.xla.lower.sizes import INT
from calque.xla.lower.table import MODULES
from calque.xla.text.printing import printed
from calque.xla.text.tree import Function, Module, Region, Value, escaped, symbol
from calque.xla.text.types import Tensor, type_of

assert MODULES  # the tables are filled


@dataclass(frozen=True)
class Request:
    """How a program is to be lowered.

    `donated` are the inputs whose memory the results may take; inputs that the program does not
    read are left out unless `keep_unused`. `results` and `arguments` name what goes in and out.
    With `constants_as_arguments` large constants are further arguments, ahead of the others. For
    several `partitions`, `in_shardings` and `out_shardings` say where those live, but for the
    `free` results and `free_ins`, which XLA places. With `maps` every `shard_map` is a program of
    parts, for readers: of some it is known here how they run alone. What is `exporting` says
    nothing of inputs and results of which nothing was said. With `gspmd` it is for XLA's
    partitioner before Shardy. `mesh` is one with devices that the program speaks of; a program of
    the parts of one device is inside of `manual`."""

    name: str = "main"
    donated: tuple[int, ...] = ()
    keep_unused: bool = False
    arguments: Sequence[str] = ()
    results: Sequence[str] = ()
    platform: str = "cpu"
    constants_as_arguments: bool = False
    sizes: Sequence[str] = ()  # the names of free ones, which come ahead of all
    platforms: Sequence[str] = ()  # where there are several, an argument says which it is
    names: Sequence[str] = ()  # of these platforms
    partitions: int = 1
    in_shardings: Sequence[Any] = ()
    out_shardings: Sequence[Any] = ()
    free: Sequence[bool] = ()
    free_ins: Sequence[bool] = ()
    maps: bool = False
    exporting: bool = False
    gspmd: bool = False
    mesh: Any = None
    manual: Any = None
    rules: Mapping[Any, Any] = field(default_factory=dict)  # of primitives, ahead of all others


@dataclass(frozen=True)
class LoweredModule:
    """A module; the inputs that it reads; the Python functions that it calls on the host; the
    constants that come ahead of the inputs; whether it calls programs of free sizes, which take
    those of the call when the text is made; what XLA tells shardings while it compiles, and what
    its partitioner asks about."""

    module: Module
    kept: tuple[int, ...]
    callbacks: tuple[Any, ...]
    constants: tuple[Any, ...]
    refines: bool = False
    inspections: tuple[Any, ...] = ()
    partitioned: tuple[Any, ...] = ()

    @property
    def is_of_this_process(self) -> bool:
        """Whether XLA calls functions of this process while it compiles it."""
        return bool(self.inspections or self.partitioned)

    def text(self, *, located: bool = False) -> str:
        """The module as MLIR prints it; with `located` with the place where each operation was
        made."""
        text = printed(self.module, located=located)
        return mlir.refined(text) if self.refines else text

    def located(self, text: str) -> str:
        """Its text with the places, which XLA's profiles and texts speak of. What was refined has
        lost them."""
        return text if self.refines else self.text(located=True)


def read_inputs(jaxpr: Jaxpr) -> list[int]:
    """The inputs that the program reads, or gives as results."""
    read = {a for e in jaxpr.eqns for a in e.invars if isinstance(a, Var)}
    read |= {a for a in jaxpr.outvars if isinstance(a, Var)}
    return [i for i, v in enumerate(jaxpr.invars) if v in read]


def aliases(
    kept: Sequence[int],
    donated: Sequence[int],
    ins: Sequence[Tensor],
    outs: Sequence[Tensor],
    placed_later: Sequence[bool] = (),
) -> dict[int, int | None]:
    """For each donated input that is kept the result that takes its memory: the first of its type
    that nobody has; None where there is none, and XLA finds one among those that it places."""
    free = [k for k in range(len(outs)) if not any(placed_later[k : k + 1])]
    found: dict[int, int | None] = {}
    for i in kept:
        if i in donated:
            fit = next((k for k in free if outs[k] == ins[i]), None)
            found[i] = fit
            if fit is not None:
                free.remove(fit)
    return found


def lower_module(closed: ClosedJaxpr, request: Request) -> LoweredModule:
    """The module of a program."""
    closed = with_open_results(closed, request.out_shardings, request.free)
    jaxpr = closed.jaxpr
    kept = range(len(jaxpr.invars)) if request.keep_unused else read_inputs(jaxpr)
    ins, outs = [type_of(a) for a in closed.in_avals], [type_of(a) for a in closed.out_avals]
    taken = aliases(kept, request.donated, ins, outs, request.free)
    module = Module(symbol(f"jit_{request.name}").rstrip("_"))
    state = State(module, request.platform)
    state.partitions_asked, state.maps = request.partitions, request.maps
    state.exporting, state.rules = request.exporting, request.rules
    placed = (s.mesh for s in (*request.in_shardings, *request.out_shardings) if hasattr(s, "mesh"))
    state.mesh, state.manual = request.mesh or next(placed, None), request.manual
    state.is_compiled, state.gspmd = request.constants_as_arguments, request.gspmd
    for e in all_equations(jaxpr):  # the meshes of a program that is called keep their names
        for s in getattr(e.params.get("exported"), "shardings", ()):
            mesh_name(state, s.mesh)
    for s in (*request.in_shardings, *request.out_shardings):
        state.moves_memory = state.moves_memory or not is_in_own_memory(s)
        if request.partitions > 1 and isinstance(s, NamedSharding) and not request.gspmd:
            mesh_name(state, s.mesh)
    own_name = "_wrapped_jax_export_main" if request.sizes else "main"
    state.unique_name("main")
    state.unique_name(own_name) if request.sizes else None
    number = Tensor((), INT)
    platform = [Value(number)] if len(request.platforms) > 1 else []
    if platform:
        state.platforms, state.platform_index = request.names, platform[0]
    state.sizes = {name: Value(number) for name in request.sizes}
    hoisted = [c for c in closed.consts if request.constants_as_arguments and is_large(c)]
    args = [Value(ins[i]) for i in kept]
    held = [type_of(c.aval) for c in hoisted]
    given = [Value(t) for t in held]
    ahead = [*platform, *state.sizes.values()]
    told = [*(["_platform_index"] if platform else []), *request.sizes]
    names = request.arguments
    main = Function(
        own_name,
        Region([*ahead, *given, *args]),
        outs,
        public=not request.sizes,
        arg_names=[*("" for _ in (*ahead, *given)), *(escaped(names[i]) for i in kept)]
        if names
        else [],
    )
    module.functions.append(main)
    b = Builder(state, main.body)
    b.path = (f"jit({request.name})",)
    every: dict[int, Value] = dict(zip(kept, args))
    for i, t in enumerate(ins):  # what nobody reads may be anything
        if i not in every:
            every[i] = Value(t)
    waiting = iter(given)
    consts = [
        next(waiting) if any(c is h for h in hoisted) else constant_of(b, c) for c in closed.consts
    ]
    operands = [every[i] for i in range(len(ins))]
    if len(set(request.platforms)) > 1:
        found = for_each_platform(b, request.platforms, platform[0], closed, operands, consts, outs)
    else:
        found = lower_program(b, closed, operands, consts)
    b.returns(*found)
    # now that the meshes are known of which the program speaks
    main.arg_attributes = [
        *(f'{{jax.global_constant = "{name}"}}' for name in told),
        *(attributes(everywhere(state, t)) for t in held),
        *(
            attributes(donation(i, taken), placement_of_input(state, request, i, ins[i]))
            for i in kept
        ),
    ]
    main.result_attributes = result_attributes(state, request, outs)
    module.attributes = (
        f"mhlo.num_partitions = {max(state.partitions, request.partitions)} : i32",
        "mhlo.num_replicas = 1 : i32",
    )
    refines = state.refines and not request.sizes
    asked = tuple(state.inspections), tuple(state.partitioned)
    calls = tuple(state.callbacks)
    return LoweredModule(module, tuple(kept), calls, tuple(hoisted), refines, *asked)


def for_each_platform(
    b: Builder,
    platforms: Sequence[str],
    index: Value,
    closed: ClosedJaxpr,
    args: Sequence[Value],
    consts: Sequence[Value],
    outs: Sequence[Tensor],
) -> list[Value]:
    """The results of the program as it is lowered for the platform of this index."""
    regions = []
    for platform in platforms:
        b.state.platform = platform
        inner = b.within(Region())
        inner.returns(*lower_program(inner, closed, args, consts))
        regions.append(inner.region)
    return b.generic("stablehlo.case", outs, [index], {}, *regions)


def is_large(c: Any) -> bool:
    return hasattr(c, "aval") and c.aval.size > 64


def donation(i: int, taken: dict[int, int | None]) -> str:
    """The attribute of a donated input."""
    if i not in taken:
        return ""
    place = taken[i]
    return "jax.buffer_donor = true" if place is None else f"tf.aliasing_output = {place} : i32"


def placement_of_input(state: State, request: Request, i: int, tensor: Tensor) -> str:
    """The same of an input, unless XLA places it."""
    is_free = any(request.free_ins[i : i + 1])
    return "" if is_free else placement(state, request.in_shardings, i, tensor)


def placement(state: State, shardings: Sequence[Any], i: int, tensor: Tensor) -> str:
    """The attributes that say where an input or a result lives: on every device whole, unless a
    sharding over a mesh says otherwise, and in the memory of the devices, unless in another."""
    if not shardings:
        return ""
    kind = memory_attribute(shardings[i])
    if state.partitions_asked == 1 or (state.exporting and shardings[i] is None):
        return kind
    return ", ".join(p for p in (kind, sharding_attribute(state, shardings[i], tensor)) if p)


def everywhere(state: State, tensor: Tensor) -> str:
    """The attribute of what every device has whole."""
    return placement(state, (None,), 0, tensor)


def result_attributes(state: State, request: Request, outs: Sequence[Tensor]) -> list[str]:
    """The attributes of each result; none where no result has any."""
    found = []
    for i, t in enumerate(outs):
        info = f'jax.result_info = "{escaped(request.results[i])}"' if request.results else ""
        shardings = request.out_shardings
        is_free = any(request.free[i : i + 1])
        kind = memory_attribute(shardings[i]) if is_free else ""
        where = kind if is_free else placement(state, shardings, i, t)
        found.append(attributes(info, where))
    return found if any(found) else []


def attributes(*parts: str) -> str:
    """{a = 1, b = 2}, or nothing."""
    given = [p for p in parts if p]
    return f"{{{', '.join(given)}}}" if given else ""


__all__ = ["LoweredModule", "Request", "lower_module"]

"""Where values live: meshes of a module, and what is asked of the sharding of a value."""

from __future__ import annotations

import math
from typing import Any, Final

from calque.core.devices import Space
from calque.transforms.devices.sharding import NamedSharding, is_in_own_memory
from calque.transforms.devices.specs import UNCONSTRAINED, names_in
from calque.transforms.devices.tiles import tiles_of
from calque.transforms.primitives.sharding_rules import Dimensions, Factors
from calque.xla.lower.rules import Builder, State, rule
from calque.xla.text.tree import Value
from calque.xla.text.types import Tensor, signature


def mesh_name(state: State, mesh: Any) -> str:
    """The name of a mesh in the module, which is declared when it is met first."""
    return mesh_of_axes(state, tuple(zip(map(str, mesh.axis_names), mesh.axis_sizes)))


def mesh_of_axes(state: State, axes: tuple[tuple[str, int], ...]) -> str:
    """The name of the mesh that has these axes: (name, size) of each."""
    known = state.meshes.get(axes)
    if known is not None:
        return known
    name = state.meshes[axes] = f"mesh_{len(state.meshes) - 1}" if state.meshes else "mesh"
    sizes = ", ".join(f'"{axis}"={n}' for axis, n in axes)
    fields = ", ".join(f'{{name = "{axis}", size = {n} : i64}}' for axis, n in axes)
    state.module.declarations.append(
        f"sdy.mesh @{name} = <[{sizes}]> {{stablehlo.mesh = {{axes = [{fields}]}}}}"
    )
    state.partitions = max(state.partitions, math.prod(n for _, n in axes))
    return name


def maximal_mesh(state: State, device: int) -> str:
    """The name of the mesh of one device alone, which is declared when it is met first."""
    name = f"maximal_mesh_{device}"
    declared = f"sdy.mesh @{name} = <[], device_ids=[{device}]>"
    if declared not in state.module.declarations:
        state.module.declarations.append(declared)
    return name


def dimensions(sharding: NamedSharding, ndim: int, is_compiled: bool = False) -> str:
    """[{"x"}, {}]: the mesh axes that each dimension is split over; {?} where that is left open.
    What is still to be added up is a whole for what is compiled: all devices have the sum."""
    spec = sharding.spec
    if is_compiled:
        return f"[{', '.join(map(_dimension, spec.padded(ndim)))}]"
    unreduced = ", ".join(f'"{n}"' for n in sharding.mesh.axis_names if n in spec.unreduced)
    rest = f", unreduced={{{unreduced}}}" if unreduced else ""
    return f"[{', '.join(map(_dimension, spec.padded(ndim)))}]{rest}"


def _dimension(entry: Any) -> str:
    if entry is UNCONSTRAINED:
        return "{?}"
    return "{" + ", ".join(f'"{name}"' for name in names_in(entry)) + "}"


_KINDS: Final = ("reduction", "need_replication", "permutation")


def rule_attribute(factors: Factors) -> str:
    """#sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=8, j=4, k=2} reduction={k}, custom>"""
    sizes = ", ".join(f"{_factor(n)}={size}" for n, size in enumerate(factors.sizes))
    ins, outs = (", ".join(map(_factors, each)) for each in (factors.operands, factors.results))
    special = "".join(
        f" {kind}={{{', '.join(map(_factor, factors.kinds[f'{kind}_factors']))}}}"
        for kind in _KINDS
        if factors.kinds.get(f"{kind}_factors")
    )
    held = f" {{{sizes}}}" if sizes else ""
    return f"#sdy.op_sharding_rule<({ins})->({outs}){held}{special}, custom>"


def _factors(dimensions: Dimensions) -> str:
    return f"[{', '.join(''.join(map(_factor, d)) for d in dimensions)}]"


def _factor(n: int) -> str:
    """Shardy's name for a factor: i to z, then z_1 and so on."""
    last = ord("z") - ord("i")
    return chr(ord("i") + n) if n <= last else f"z_{n - last}"


def tiles_attribute(sharding: Any, ndim: int) -> str:
    """The same of a value as tiles, which XLA read before Shardy."""
    if not isinstance(sharding, NamedSharding):
        return 'mhlo.sharding = "{replicated}"'
    entries = [None if e is UNCONSTRAINED else e for e in sharding.spec.padded(ndim)]
    return f'mhlo.sharding = "{tiles_of(sharding.update(spec=entries), ndim)}"'


def sharding_attribute(state: State, sharding: Any, tensor: Tensor) -> str:
    """The attribute of an argument or a result of the program that lives so. Of one that says
    nothing every device has the whole, which has to be said: Shardy would choose itself."""
    if state.gspmd:
        return tiles_attribute(sharding, tensor.ndim)
    if isinstance(sharding, NamedSharding):
        name, split = mesh_name(state, sharding.mesh), dimensions(sharding, tensor.ndim, True)
    elif state.meshes:
        name, split = next(iter(state.meshes.values())), f"[{', '.join(['{}'] * tensor.ndim)}]"
    else:
        return ""
    return f"sdy.sharding = #sdy.sharding<@{name}, {split}>"


def memory_attribute(sharding: Any) -> str:
    """The attribute of an argument or a result of the program in such a memory; nothing for that of
    its devices."""
    if is_in_own_memory(sharding):
        return ""
    return f'mhlo.memory_kind = "{sharding.memory_kind}"'


@rule("device_put")
def device_put(b: Builder, out: Tensor, x: Value, *, space: Space) -> Value:
    """A value in the memory of the host, or of its device."""
    b.state.moves_memory = True
    return in_memory(b, x, "pinned_host" if space is Space.Host else "device")


def in_memory(b: Builder, x: Value, kind: str) -> Value:
    """The value in a kind of memory. On a CPU all kinds are the same memory: its compiler is told
    of arguments and results alone."""
    if b.state.platform == "cpu":
        return x
    options = (
        'backend_config = "", has_side_effect = true,'
        f' mhlo.frontend_attributes = {{_xla_buffer_placement = "{kind}"}}'
    )
    ending = f") {{{options}}} : {signature([x.type], [x.type])}"
    call = "stablehlo.custom_call @annotate_device_placement("
    return b.one(x.type, call, x, ending)  # type: ignore[no-any-return]


@rule("sharding_constraint")
def sharding_constraint(b: Builder, out: Tensor, x: Value, *, sharding: Any, **_: Any) -> Value:
    """On one device there is nothing to ask for but the kind of memory."""
    if not is_in_own_memory(sharding):
        b.state.moves_memory = True
    if b.state.moves_memory and sharding.memory_kind is not None:
        x = in_memory(b, x, sharding.memory_kind)
    if not isinstance(sharding, NamedSharding) or not sharding.mesh.axis_names:
        if len(sharding.device_set) == 1:
            return x
        raise NotImplementedError(
            f"XLA is told of shardings by a mesh: use a NamedSharding, not {sharding}"
        )
    if b.state.gspmd:
        return tiled(b, x, sharding)
    name = mesh_name(b.state, sharding.mesh)
    is_compiled = b.state.partitions_asked > 1
    where = f" <@{name}, {dimensions(sharding, out.ndim, is_compiled)}> : {out}"
    return b.one(out, "sdy.sharding_constraint ", x, where)  # type: ignore[no-any-return]


def tiled(b: Builder, x: Value, sharding: NamedSharding | None) -> Value:
    """The value in these tiles, for XLA before Shardy; without any, whole on every device."""
    spec = sharding.spec.padded(x.ndim) if sharding is not None else ()
    free = ",".join(str(k) for k, entry in enumerate(spec) if entry is UNCONSTRAINED)
    said = f"unspecified_dims=[{free}]" if free else ""
    options = f'backend_config = "{said}", {tiles_attribute(sharding, x.ndim)}'
    ending = f") {{{options}}} : {signature([x.type], [x.type])}"
    return b.one(x.type, "stablehlo.custom_call @Sharding(", x, ending)  # type: ignore[no-any-return]

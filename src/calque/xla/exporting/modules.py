"""The modules of exported programs: as they are written, and at the sizes they are called with."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from calque.core.jaxprs import ClosedJaxpr
from calque.xla.exporting.solving import OfModule, Plan, solved
from calque.xla.lower.module import LoweredModule, Request, lower_module
from calque.xla.lower.placing import mesh_of_axes
from calque.xla.lower.rules import Builder, State, listed
from calque.xla.text.tree import Function, Region, Value
from calque.xla.text.types import Tensor, signature, type_of

PLATFORMS: Final = ("cpu", "cuda", "rocm", "tpu")
_NAME: Final = re.compile(r"@([\w$.-]+)")
_MESH: Final = re.compile(
    r"^ *sdy\.mesh @([\w$.-]+) = <\[([^\]]*)\](, device_ids=\[[^\]]*\])?>.*\n", re.MULTILINE
)
_AXIS: Final = re.compile(r'"([^"]*)"=(\d+)')
_FUNCTION: Final = re.compile(r"func\.func (?:public |private )?@([\w$.-]+)")


class Spread(NamedTuple):
    """Over how many devices a program is spread, and where its arguments and results live."""

    devices: int = 1
    ins: Sequence[Any] = ()
    outs: Sequence[Any] = ()


def module_of(
    closed: ClosedJaxpr,
    name: str,
    platforms: Sequence[str],
    plan: Plan | None,
    spread: Spread = Spread(),
) -> LoweredModule:
    """The module of a program for these platforms, whose free sizes follow from its arguments."""
    kinds = list(platforms)
    sizes = plan.scope.variables(s.given for s in plan.steps) if plan is not None else []

    def lowered(kind: str, each: Sequence[str] = ()) -> LoweredModule:
        request = Request(
            name=name,
            platform=kind,
            platforms=each,
            names=platforms,
            sizes=sizes,
            keep_unused=bool(sizes),
            partitions=spread.devices,
            in_shardings=spread.ins,
            out_shardings=spread.outs,
        )
        return lower_module(closed, request)

    if len(platforms) == 1:
        made = lowered(kinds[0])
    else:
        texts = {kind: lowered(kind).text() for kind in dict.fromkeys(kinds)}
        same = len(set(texts.values())) == 1
        made = lowered(kinds[0], kinds[:1] * len(kinds) if same else kinds)
    if len(platforms) > 1 or made.refines:
        _polymorphic(made)
    if plan is not None:
        _enter(made, plan, [type_of(a) for a in closed.in_avals], kinds)
    return made


def _enter(made: LoweredModule, plan: Plan, types: Sequence[Tensor], kinds: Sequence[str]) -> None:
    """The function that finds the sizes and hands them on."""
    module = made.module
    inner = module.functions[0]
    ahead = [Value(inner.body.args[0].type)] if len(kinds) > 1 else []
    args = [Value(t) for t in types]
    attributes = list(inner.arg_attributes)
    own = [*attributes[: len(ahead)], *attributes[len(attributes) - len(args) :]]
    main = Function("main", Region([*ahead, *args]), inner.results, public=True)
    main.arg_attributes = own
    main.result_attributes = inner.result_attributes
    b = Builder(State(module, kinds[0]), main.body)
    found = solved(plan, OfModule(b, args))
    names = plan.scope.variables(s.given for s in plan.steps)
    operands = [*ahead, *(found[n] for n in names), *args]
    types_of = signature([x.type for x in operands], inner.results)
    results = b.emit(inner.results, f"call @{inner.name}(", *listed(operands), f") : {types_of}")
    b.returns(*results)
    module.functions.insert(0, main)
    _polymorphic(made)


def _polymorphic(made: LoweredModule) -> None:
    """Say that the module has global constants, sizes or the platform, which its caller gives."""
    said, module = "jax.uses_shape_polymorphism = true", made.module
    if said not in module.attributes:
        module.attributes = (*module.attributes, said)


# ---------------------------------------------------------------- called


def adopted(b: Builder, text: str) -> str:
    """The functions of another module as private ones of this module; gives the name of main. Its
    meshes become those of this module that have the same axes."""
    names = _FUNCTION.findall(text)
    new = {name: b.state.unique_name(f"exported_{name}") for name in names}
    body = text[text.index("{\n", text.index("module")) + 2 : text.rindex("}")]
    for name, axes, ids in _MESH.findall(body):
        new[name] = _mesh_here(b, name, axes, ids)
    body = _MESH.sub("", body)
    renamed = _NAME.sub(lambda m: f"@{new.get(m[1], m[1])}", body)
    private = re.sub(r"func\.func (?:public |private )?@", "func.func private @", renamed)
    b.state.module.others.append(private.strip("\n"))
    return new["main"]


def _mesh_here(b: Builder, name: str, axes: str, ids: str) -> str:
    """The name in this module of a mesh of another one."""
    found = tuple((axis, int(n)) for axis, n in _AXIS.findall(axes))
    if found and not ids:
        return mesh_of_axes(b.state, found)
    own = b.state.unique_name(name)
    b.state.module.declarations.append(f"sdy.mesh @{own} = <[{axes}]{ids}>")
    return own


def called(
    b: Builder,
    main: str,
    args: Sequence[Value],
    declared: Sequence[Tensor],
    results: Sequence[Tensor],
    outs: Sequence[Tensor],
) -> list[Value]:
    """A call of an adopted function, whose arguments and results were declared to be of these
    types: free sizes become those of the call."""
    xs = [_converted(b, x, t) for x, t in zip(args, declared, strict=True)]
    call = "func.call" if b.nested else "call"
    types = signature([x.type for x in xs], results)
    found = b.emit(results, f"{call} @{main}(", *listed(xs), f") : {types}")
    results_here = [_converted(b, x, t) for x, t in zip(found, outs, strict=True)]
    for x, t in zip(results_here, outs):
        x.type = t  # the caller's names of free sizes
    return results_here


def _converted(b: Builder, x: Value, out: Any) -> Value:
    """The same value where some sizes are free, or have become fixed."""
    if str(x.type) == str(out):
        return x
    return b.one(out, "stablehlo.convert ", x, f" : ({x.type}) -> {out}")  # type: ignore[no-any-return]

"""The modules of exported programs: as they are written, and at the sizes they are called with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from calque.core.jaxprs import ClosedJaxpr
from calque.xla.exporting.solving import OfModule, Plan, solved
from calque.xla.lower.module import LoweredModule, Request
from calque.xla.lower.rules import Builder, State, listed
from calque.xla.lower.several_platforms import for_platforms
from calque.xla.text.tree import Function, Region, Value
from calque.xla.text.types import Tensor, signature, type_of


class Spread(NamedTuple):
    """Over how many devices a program is spread, and where its arguments and results were said to
    live."""

    devices: int = 1
    ins: Sequence[Any] = ()
    outs: Sequence[Any] = ()


class Called(NamedTuple):
    """What a program, its arguments and its results are called."""

    name: str
    arguments: Sequence[str] = ()
    results: Sequence[str] = ()


class Inputs(NamedTuple):
    """Which arguments a program takes the memory of, and whether it has those that it does not
    read."""

    donated: tuple[int, ...] = ()
    keep_unused: bool = False


def module_of(
    closed: ClosedJaxpr,
    names: Called,
    platforms: Sequence[str],
    plan: Plan | None,
    spread: Spread = Spread(),
    rules: Mapping[Any, Any] = MappingProxyType({}),
    inputs: Inputs = Inputs(),
) -> LoweredModule:
    """The module of a program for these platforms, whose free sizes follow from its arguments;
    `rules` of primitives come before all others."""
    sizes = plan.scope.variables(s.given for s in plan.steps) if plan is not None else []

    request = Request(
        name=names.name,
        donated=inputs.donated,
        arguments=names.arguments,
        results=names.results,
        rules=rules,
        sizes=sizes,
        keep_unused=inputs.keep_unused or bool(sizes),
        partitions=spread.devices,
        in_shardings=spread.ins,
        out_shardings=spread.outs,
        exporting=True,
    )
    made = for_platforms(closed, request, platforms)
    if len(platforms) > 1 or made.refines:
        _polymorphic(made)
    if plan is not None:
        _enter(made, plan, [type_of(a) for a in closed.in_avals], platforms)
    return made


def _enter(
    made: LoweredModule, plan: Plan, types: Sequence[Tensor], platforms: Sequence[str]
) -> None:
    """The function that finds the sizes and hands them on."""
    module = made.module
    inner = module.functions[0]
    ahead = [Value(inner.body.args[0].type)] if len(platforms) > 1 else []
    args = [Value(t) for t in types]
    attributes = list(inner.arg_attributes)
    own = [*attributes[: len(ahead)], *attributes[len(attributes) - len(args) :]]
    main = Function("main", Region([*ahead, *args]), inner.results, public=True)
    main.arg_attributes = own
    main.result_attributes = inner.result_attributes
    b = Builder(State(module, platforms[0]), main.body)
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

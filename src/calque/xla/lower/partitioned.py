"""Programs that say themselves how they are split among devices: calls that XLA's partitioner asks
about (`xla/partitioners.py` answers)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from calque.core.config import config
from calque.core.jaxprs import ClosedJaxpr, Eqn, all_equations
from calque.machine.caches import Alive
from calque.transforms.devices.mesh import Mesh
from calque.transforms.engines.trees import name_of
from calque.transforms.primitives.sharding_rules import (
    Factors,
    SdyShardingRule,
    factors_of,
    parsed_rule,
)
from calque.xla import jaxlib
from calque.xla.lower.callbacks import custom_call
from calque.xla.lower.foreign_calls import quoted
from calque.xla.lower.placing import rule_attribute
from calque.xla.lower.programs import lower_program
from calque.xla.lower.rules import Builder, equation_rule
from calque.xla.text.tree import Value
from calque.xla.text.types import Tensor

TARGET: Final = "CustomSPMDPartitioning"
# what the partitioner asks, by the text that the call has: as long as its program is there
asked_about: Final[Alive[bytes, Partitioned]] = Alive("programs that say how they are split")


class Partitioned:
    """A call that the partitioner asks about: the rules of the user, and where it stands."""

    def __init__(self, e: Eqn, mesh: Mesh, platform: str) -> None:
        self.params, self.mesh, self.platform = e.params, mesh, platform
        self.told = f"custom_partitioning at {e.source}"
        here, general = config.here().values, config.of_process().values
        # the partitioner asks from a thread of its own, where no `with` block of the user holds
        self.flags = {n: v for n, v in here.items() if v != general.get(n)}
        self.error: Exception | None = None

    def take_error(self) -> Exception | None:
        """What a rule raised since this was asked last: XLA hands on its text alone."""
        error, self.error = self.error, None
        return error


@equation_rule("custom_partitioning")
def custom_partitioning(
    b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]
) -> list[Value]:
    """The program itself on one device, in a program of parts, and in a text for other processes,
    which have no such rules."""
    state, mesh = b.state, b.state.mesh
    is_split = state.partitions_asked > 1 and isinstance(mesh, Mesh) and bool(outs)
    if not is_split or state.manual is not None or state.exporting:
        return lower_program(b, e.params["call"], args)
    info = Partitioned(e, automatic(mesh), state.platform)
    key = str(id(info))
    asked_about[key.encode()] = info
    state.partitioned.append(info)
    attributes = {"api_version": "2 : i32", "backend_config": quoted(key)}
    if e.params["sharding_rule"] is not None:
        ins = [x.tensor for x in args]
        factors = rule_for(info, ins, outs)
        attributes["sdy.sharding_rule"] = rule_attribute(factors)
    return custom_call(b, TARGET, outs, args, attributes)


def asks_for_gspmd(closed: ClosedJaxpr) -> bool:
    """Whether a program has calls whose rules XLA asked before Shardy: those that say how shardings
    are passed on by functions."""
    return any(
        e.primitive.name == "custom_partitioning"
        and e.params["infer_sharding_from_operands"] is not None
        for e in all_equations(closed.jaxpr)
    )


def with_open_results(
    closed: ClosedJaxpr, placed: Sequence[Any], free: Sequence[bool]
) -> ClosedJaxpr:
    """The program without the constraints of those results of such calls that are `placed` so
    anyway: a constraint would be the sharding of the call itself, which its rule is to find.

    before: y = custom_partitioning[...] x; z = sharding_constraint[sharding=s] y; the result is z
    after:  y = custom_partitioning[...] x; the result is y, and lies as s says
    """
    made: dict[Any, Eqn] = {v: e for e in closed.eqns for v in e.outvars}
    found: dict[Any, Any] = {}
    for i, (v, sharding) in enumerate(zip(closed.jaxpr.outvars, placed)):
        e = made.get(v)
        if e is None or e.primitive.name != "sharding_constraint" or any(free[i : i + 1]):
            continue
        call = made.get(e.invars[0])
        if call is not None and call.primitive.name == "custom_partitioning":
            if e.params["sharding"] == sharding:
                found[v] = e.invars[0]
    if not found:
        return closed
    jaxpr = closed.jaxpr
    outs = [found.get(v, v) for v in jaxpr.outvars]
    read = {a for e in jaxpr.eqns for a in e.invars} | set(outs)
    eqns = [e for e in jaxpr.eqns if not (e.outvars[:1] and e.outvars[0] in found.keys() - read)]
    return ClosedJaxpr(jaxpr.replace(eqns=eqns, outvars=outs), closed.consts)


def automatic(mesh: Mesh) -> Mesh:
    """The mesh with axes that the compiler splits over, as rules are given it."""
    if len(mesh.auto_axes) == len(mesh.axis_names):
        return mesh
    return Mesh(mesh.devices, mesh.axis_names)


def rule_for(info: Partitioned, ins: Sequence[Tensor], outs: Sequence[Tensor]) -> Factors:
    """The factors of the rule of a call with such operands and results. A function that makes the
    rule is given static arguments, the mesh, and types of MLIR."""
    rule, said = info.params["sharding_rule"], {}
    if callable(rule):
        ir = jaxlib.mlir_part("ir")
        with jaxlib.mlir_context():
            types = [[ir.Type.parse(str(t)) for t in each] for each in (ins, outs)]
            rule = rule(*info.params["static_args"], info.mesh, *types)
    if isinstance(rule, (tuple, list)) and len(rule) == 2:
        rule, said = rule
    if isinstance(rule, str):
        rule = parsed_rule(rule, dict(said))
    if not isinstance(rule, SdyShardingRule):
        raise ValueError(
            f"{info.told}: the function {name_of(info.params['sharding_rule'])} that is its"
            " sharding_rule must give a text such as 'i j -> i j', a pair of a text and a dict of"
            f" options, or an SdyShardingRule, got {rule!r}"
        )
    try:
        return factors_of(rule, [t.shape for t in ins], [t.shape for t in outs])
    except ValueError as e:
        raise ValueError(f"{info.told}: {e}: the rule is {rule}") from None

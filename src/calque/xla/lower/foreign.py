"""Operations by rules of users, which build MLIR by jaxlib: each becomes a function of a module of
its own, which the module that is being written takes over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from calque.core.config import config
from calque.core.jaxprs import Eqn
from calque.transforms.primitives.lowerings import (
    LoweringParameters,
    LoweringRuleContext,
    ModuleContext,
)
from calque.xla import jaxlib
from calque.xla.lower.adopting import adopted, called
from calque.xla.lower.rules import Builder
from calque.xla.text.tree import Value
from calque.xla.text.types import Tensor


def by_rule(
    b: Builder, e: Eqn, rule: Callable[..., Any], outs: Sequence[Tensor], args: Sequence[Value]
) -> list[Value]:
    """The results of an equation by a rule that builds MLIR."""
    ir, func = jaxlib.mlir_part("ir"), jaxlib.mlir_part("func")
    context = jaxlib.mlir_context()
    with context, ir.Location.unknown():
        module = ir.Module.create()
        ins, results = (
            [ir.Type.parse(str(t)) for t in types] for types in ([x.type for x in args], outs)
        )
        with ir.InsertionPoint(module.body):
            main = func.FuncOp("main", (ins, results))
        with ir.InsertionPoint(main.add_entry_block()):
            told = _told(b, e, ModuleContext(context, module, (b.state.platform,), _how(b)))
            found = list(_flat(rule(told, *main.arguments, **e.params)))
            _check(e, found, results)
            func.ReturnOp(found)
        module.operation.verify()
        text = str(module)
    name = adopted(b, text, e.primitive.name)
    return called(b, name, args, [x.tensor for x in args], outs, outs)


def _told(b: Builder, e: Eqn, module: ModuleContext) -> LoweringRuleContext:
    ins, outs = ([a.aval for a in atoms] for atoms in (e.invars, e.outvars))
    return LoweringRuleContext(module, e.primitive, ins, outs)


def _how(b: Builder) -> LoweringParameters:
    exporting = b.state.exporting
    return LoweringParameters(
        for_export=exporting,
        export_ignore_forward_compatibility=exporting
        and bool(config.export_ignore_forward_compatibility),
        hoist_constants_as_args=not exporting and bool(config.use_simplified_jaxpr_constants),
    )


def _flat(found: Any) -> Iterator[Any]:
    """The values that a rule gives, in a sequence or in several."""
    for x in found if isinstance(found, Iterable) else (found,):
        if isinstance(x, (tuple, list)):
            yield from _flat(x)
        else:
            yield x


def _check(e: Eqn, found: Sequence[Any], wanted: Sequence[Any]) -> None:
    given = [getattr(x, "type", x) for x in found]
    if given != list(wanted):
        raise TypeError(
            f"the lowering rule of '{e.primitive}' gives"
            f" ({', '.join(map(str, given))}), and its abstract evaluation says"
            f" ({', '.join(map(str, wanted))}): it returns a list of values of MLIR, of these types"
        )

"""Rules of users that say how primitives are compiled, by primitive and platform: functions of
arrays, and functions that build MLIR, which XLA's engine runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Final

from calque.machine.state import process

Rule = Callable[..., Any]
_GPUS: Final = ("cuda", "rocm")

lowerings: Final[dict[tuple[Any, str | None], Rule]] = process.container("lowerings of users", {})


class ArrayRule:
    """A function of arrays in the place of a lowering rule."""

    def __init__(self, fun: Callable[..., Any], multiple_results: bool):
        self.fun, self.multiple_results = fun, multiple_results

    def __call__(self, ctx: Any, /, *args: Any, **params: Any) -> Any:
        raise NotImplementedError(
            "this lowering rule is a function of arrays: register it with register_lowering"
        )

    def program(self, multiple_results: bool) -> Callable[..., Any]:
        """The function for a primitive that has several results, or one."""

        def program(*args: Any, **params: Any) -> Any:
            out = self.fun(*args, **params)
            if self.multiple_results == multiple_results:
                return out
            if multiple_results:
                return [out]
            (only,) = out if isinstance(out, (tuple, list)) else (out,)
            return only

        return program


def rule_for(primitive: Any, platform: str) -> Rule | None:
    """The rule of a primitive on a platform: its own, that of GPUs, that of all."""
    if not lowerings:
        return None
    names = (platform, "gpu", None) if platform in _GPUS else (platform, None)
    found = (lowerings.get((primitive, name)) for name in names)
    return next((rule for rule in found if rule is not None), None)


# ------------------------------------------------------- what rules that build MLIR are told


@dataclasses.dataclass(frozen=True)
class LoweringParameters:
    """How a program is lowered.

    Args:
        for_export: Whether for others, who may be of another version.
        export_ignore_forward_compatibility: Whether older versions need not read it.
        hoist_constants_as_args: Whether constants become arguments."""

    for_export: bool = False
    export_ignore_forward_compatibility: bool = False
    hoist_constants_as_args: bool = False


@dataclasses.dataclass(frozen=True)
class ModuleContext:
    """The module that a rule builds in.

    Args:
        context: The context of MLIR.
        module: The module, an `ir.Module`.
        platforms: For which platforms it is.
        lowering_parameters: How it is lowered."""

    context: Any
    module: Any
    platforms: Sequence[str]
    lowering_parameters: LoweringParameters


@dataclasses.dataclass(frozen=True)
class LoweringRuleContext:
    """What a rule is told.

    Args:
        module_context: Of the module.
        primitive: The primitive.
        avals_in: The types of the operands.
        avals_out: The types of the results.
        platforms: For which platforms; None is those of the module."""

    module_context: ModuleContext
    primitive: Any
    avals_in: Sequence[Any]
    avals_out: Sequence[Any]
    platforms: Sequence[str] | None = None

    def replace(self, **changes: Any) -> LoweringRuleContext:
        """The same with something changed.

        Args:
            **changes: New values of attributes.

        Returns:
            A LoweringRuleContext."""
        return dataclasses.replace(self, **changes)

    def is_forward_compat(self) -> bool:
        """Whether older versions have to read what is built.

        Returns:
            A bool."""
        how = self.module_context.lowering_parameters
        return how.for_export and not how.export_ignore_forward_compatibility

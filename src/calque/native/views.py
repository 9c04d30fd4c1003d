"""What a compiled program looks like: its stages as text."""

from __future__ import annotations

from typing import Any

from calque.native.lower.graph import graph_of, graph_text
from calque.native.lower.sizes import Sizes
from calque.native.plan.steps import Call, walk
from calque.native.plan.text import homes_text, steps_text

STAGES = (
    "jaxpr",
    "passes",
    "graph",
    "homes",
    "stages",
    "nests",
    "steps",
    "loops",
    "llvm",
    "asm",
    "driver",
)


def text(executable: Any, stage: str | None) -> str:
    """A stage as text: jaxpr (as traced), passes (simplified), graph (its nodes), homes (which of
    them are stored, and why), stages (how what is stored is made), nests (stages that share loops),
    steps (loops as they run), loops (kernels), llvm, asm, driver (as it is interpreted). None:
    passes and loops."""
    if stage is None:
        return f"{executable.simplified}\n\n{kernels_text(executable, 'loops')}"
    if stage == "jaxpr":
        return str(executable.closed)
    if stage == "passes":
        return str(executable.simplified)
    if stage == "graph":
        return graph_text(graph_of(executable.simplified))
    if stage in ("homes", "stages", "nests"):
        lowered = executable.lowered(Sizes(executable.planner.sizes.known))
        if stage == "homes":
            return homes_text(lowered.planner.homes)
        return steps_text(lowered.steps if stage == "stages" else executable.nests(lowered))
    if stage == "steps":
        return steps_text(executable.steps)
    if stage == "driver":
        return str(executable.driver.text())
    if stage in ("loops", "llvm", "asm"):
        return kernels_text(executable, stage)
    raise ValueError(f"no stage {stage!r}; the native backend has {', '.join(STAGES)}")


def kernels_text(executable: Any, stage: str) -> str:
    """Every distinct kernel, with the reasons of its schedule; for loops also the driver."""
    seen: dict[Any, str] = {}
    for s in walk(executable.steps):
        if not isinstance(s, Call):
            continue
        kernel = executable.code[s.schedule]
        if kernel.code not in seen:
            why = "".join(f"; {r}\n" for r in s.schedule.reasons) if stage == "loops" else ""
            seen[kernel.code] = f"kernel {kernel.symbol}:\n{why}{kernel.text(stage)}"
    parts = list(seen.values())
    if stage == "loops":
        parts.append("driver:\n" + executable.driver.text())
    return "\n".join(parts)

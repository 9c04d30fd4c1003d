"""What `jit(f).lower(x)` shows of a program in terms of XLA: its StableHLO, its HLO."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from calque.core import pytrees
from calque.core.key_paths import keystr
from calque.transforms.devices.type_constraints import with_constraints
from calque.transforms.jit.traced import TracedFunction
from calque.xla import jaxlib
from calque.xla.lower.module import LoweredModule, Request, lower_module


def lowered(program: TracedFunction, names: Sequence[str], keep_unused: bool) -> LoweredModule:
    """The module of a traced function."""
    request = Request(
        name=program.name,
        donated=program.donated,
        keep_unused=keep_unused,
        arguments=list(names),
        results=result_names(program),
    )
    return lower_module(with_constraints(program.closed), request)


def result_names(program: TracedFunction) -> list[str]:
    """`result`, or `result[0]['w']` where there are several."""
    n = len(program.closed.jaxpr.outvars)
    tree = pytrees.unflatten(program.out_tree, [0] * n)
    return [f"result{keystr(path)}" for path, _ in pytrees.flatten_with_path(tree)[0]]


def text(
    program: TracedFunction, dialect: str, names: Sequence[str], keep_unused: bool, located: bool
) -> str:
    """The program in a dialect of XLA: "stablehlo" or "hlo"."""
    made = lowered(program, names, keep_unused)
    if dialect == "stablehlo":
        return made.text(located=located)
    return str(jaxlib.computation(made.text(located=True)).as_hlo_text())


def compiler_ir(
    program: TracedFunction, dialect: str, names: Sequence[str], keep_unused: bool
) -> Any:
    """The program as an object of jaxlib: a module of MLIR, or a computation of XLA."""
    written = lowered(program, names, keep_unused).text(located=True)
    return (jaxlib.mlir_module if dialect == "stablehlo" else jaxlib.computation)(written)

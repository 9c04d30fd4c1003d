"""What `jit(f).lower(x)` shows of a program in terms of XLA: its StableHLO, its HLO."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from calque.core import pytrees
from calque.core.key_paths import keystr
from calque.transforms.devices.sharding import NamedSharding, is_in_own_memory
from calque.transforms.devices.sharding_constraint import has_constraints
from calque.transforms.devices.sharding_propagation import CHOSEN, shardings_of_results
from calque.transforms.devices.type_constraints import stated, with_constraints
from calque.transforms.jit.traced import TracedFunction
from calque.xla import jaxlib, mlir
from calque.xla.lower.module import LoweredModule, Request
from calque.xla.lower.several_platforms import for_platforms


def lowered(
    program: TracedFunction,
    names: Sequence[str],
    keep_unused: bool,
    platforms: Sequence[str],
) -> LoweredModule:
    """The module of a traced function for these platforms."""
    request = request_for(program, names, keep_unused)
    return for_platforms(with_constraints(program.closed), request, platforms)


def request_for(
    program: TracedFunction, names: Sequence[str], keep_unused: bool, **options: Any
) -> Request:
    """How a traced function is lowered."""
    return Request(
        name=program.name,
        donated=program.donated,
        keep_unused=keep_unused,
        arguments=list(names),
        results=result_names(program),
        **options,
    )


def shown(
    program: TracedFunction,
    names: Sequence[str],
    keep_unused: bool,
    platforms: Sequence[str],
    where: Sequence[Any],
) -> LoweredModule:
    """The module of a traced function for several devices, as readers know it: what its arguments
    are split over, and maps over the devices as programs of parts."""
    outs = _said_of_results(program, where)
    told = [*where, *outs]
    sizes = [math.prod(s.mesh.axis_sizes) for s in told if isinstance(s, NamedSharding)]
    several: dict[str, Any] = {}
    if not all(map(is_in_own_memory, told)):
        several = {"in_shardings": where, "out_shardings": outs}
    if max(sizes, default=1) > 1:
        several = {
            "partitions": max(sizes),
            "in_shardings": where,
            "out_shardings": outs,
            "free_ins": [s is None for s in where],
            "free": [s is None for s in outs],
        }
    if several or has_constraints(program.closed):
        request = request_for(program, names, keep_unused, maps=True, **several)
        try:
            return for_platforms(stated(program.closed), request, platforms)
        except NotImplementedError:
            pass  # an operation that has no form inside of a program of parts
    return lowered(program, names, keep_unused, platforms)


def _said_of_results(program: TracedFunction, where: Sequence[Any]) -> list[Any]:
    """The shardings of those results of which the caller or a type says where they are, or that are
    in another memory than that of their devices; None of those that the compiler places."""
    closed = program.closed
    ins = tuple(where) or (None,) * len(closed.in_avals)
    if len(ins) != len(closed.in_avals) or not (has_constraints(closed) or any(ins)):
        return [None] * len(closed.out_avals)
    found = shardings_of_results(closed, ins, program.name)
    chosen = closed.cache.get(CHOSEN) or (False,) * len(found)
    return [
        s if kept or getattr(a, "place", None) is not None or not is_in_own_memory(s) else None
        for s, a, kept in zip(found, closed.out_avals, chosen, strict=True)
    ]


def result_names(program: TracedFunction) -> list[str]:
    """`result`, or `result[0]['w']` where there are several."""
    n = len(program.closed.jaxpr.outvars)
    tree = pytrees.unflatten(program.out_tree, [0] * n)
    return [f"result{keystr(path)}" for path, _ in pytrees.flatten_with_path(tree)[0]]


def text(
    program: TracedFunction,
    dialect: str,
    names: Sequence[str],
    keep_unused: bool,
    platforms: Sequence[str],
    located: bool,
    where: Sequence[Any] = (),
) -> str:
    """The program in a dialect of XLA: "stablehlo" or "hlo"; `where` its arguments are."""
    if dialect == "stablehlo":
        return shown(program, names, keep_unused, platforms, where).text(located=located)
    made = lowered(program, names, keep_unused, platforms)
    return str(mlir.computation(made.text(located=True)).as_hlo_text())


def compiler_ir(
    program: TracedFunction,
    dialect: str,
    names: Sequence[str],
    keep_unused: bool,
    platforms: Sequence[str],
) -> Any:
    """The program as an object of jaxlib: a module of MLIR, or a computation of XLA."""
    written = lowered(program, names, keep_unused, platforms).text(located=True)
    return (jaxlib.mlir_module if dialect == "stablehlo" else mlir.computation)(written)

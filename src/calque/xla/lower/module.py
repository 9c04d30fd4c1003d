"""A program as a module of StableHLO."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from calque.core.jaxprs import ClosedJaxpr, Jaxpr, Var
from calque.xla.lower.control import symbol
from calque.xla.lower.programs import constant_of, lower_program
from calque.xla.lower.reductions import as_bytes
from calque.xla.lower.rules import Builder, State
from calque.xla.lower.table import MODULES
from calque.xla.text.printing import printed
from calque.xla.text.tree import Function, Module, Region, Value
from calque.xla.text.types import Tensor, type_of

assert MODULES  # the tables are filled


@dataclass(frozen=True)
class Request:
    """How a program is to be lowered.

    `donated` are the inputs whose memory the results may take; inputs that the program does not
    read are left out unless `keep_unused`. `results` and `arguments` name what goes in and out.
    With `constants_as_arguments` large constants are further arguments, ahead of the others; with
    `plain_results` results of types that NumPy lacks are given as unsigned integers of their bits,
    integers of fewer than eight bits as such of eight."""

    name: str = "main"
    donated: tuple[int, ...] = ()
    keep_unused: bool = False
    arguments: Sequence[str] = ()
    results: Sequence[str] = ()
    platform: str = "cpu"
    constants_as_arguments: bool = False
    plain_results: bool = False


@dataclass(frozen=True)
class LoweredModule:
    """A module; the inputs that it reads; the Python functions that it calls on the host; the
    constants that come ahead of the inputs."""

    module: Module
    kept: tuple[int, ...]
    callbacks: tuple[Any, ...]
    constants: tuple[Any, ...]

    def text(self, *, located: bool = False) -> str:
        """The module as MLIR prints it; with `located` with the place where each operation was
        made."""
        return printed(self.module, located=located)


def read_inputs(jaxpr: Jaxpr) -> list[int]:
    """The inputs that the program reads, or gives as results."""
    read = {a for e in jaxpr.eqns for a in e.invars if isinstance(a, Var)}
    read |= {a for a in jaxpr.outvars if isinstance(a, Var)}
    return [i for i, v in enumerate(jaxpr.invars) if v in read]


def aliases(
    kept: Sequence[int], donated: Sequence[int], ins: Sequence[Tensor], outs: Sequence[Tensor]
) -> dict[int, int | None]:
    """For each donated input that is kept the result that takes its memory: the first of its type
    that nobody has; None where there is none."""
    free = list(range(len(outs)))
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
    jaxpr = closed.jaxpr
    kept = range(len(jaxpr.invars)) if request.keep_unused else read_inputs(jaxpr)
    ins, outs = [type_of(a) for a in closed.in_avals], [type_of(a) for a in closed.out_avals]
    taken = aliases(kept, request.donated, ins, outs)
    module = Module(symbol(f"jit_{request.name}").rstrip("_"))
    state = State(module, request.platform)
    state.unique_name("main")
    hoisted = [c for c in closed.consts if request.constants_as_arguments and is_large(c)]
    args = [Value(ins[i]) for i in kept]
    given = [Value(type_of(c.aval)) for c in hoisted]
    names = request.arguments
    main = Function(
        "main",
        Region([*given, *args]),
        outs,
        public=True,
        arg_attributes=[*("" for _ in given), *(donation(i, taken) for i in kept)],
        result_attributes=[f'{{jax.result_info = "{escaped(r)}"}}' for r in request.results],
        arg_names=[*("" for _ in given), *(escaped(names[i]) for i in kept)] if names else [],
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
    found = lower_program(b, closed, [every[i] for i in range(len(ins))], consts)
    if request.plain_results:
        found = [as_plain(b, x) for x in found]
        main.results = [x.type for x in found]
    b.returns(*found)
    module.attributes = (
        f"mhlo.num_partitions = {state.partitions} : i32",
        "mhlo.num_replicas = 1 : i32",
    )
    return LoweredModule(module, tuple(kept), tuple(state.callbacks), tuple(hoisted))


def as_plain(b: Builder, x: Value) -> Value:
    """A result as an array of a type that NumPy itself has."""
    name = x.dtype.name
    if name.startswith("float4"):
        bits = b.bitcast(x, x.tensor.with_dtype(ml_dtypes.uint4))
        return b.convert(bits, np.dtype("uint8"))
    if name == "bfloat16" or name.startswith("float8"):
        return b.bitcast(x, x.tensor.with_dtype(f"uint{8 * x.dtype.itemsize}"))
    return as_bytes(b, x)


def is_large(c: Any) -> bool:
    return hasattr(c, "aval") and c.aval.size > 64


def donation(i: int, taken: dict[int, int | None]) -> str:
    """The attribute of a donated input."""
    if i not in taken:
        return ""
    place = taken[i]
    return (
        "{jax.buffer_donor = true}" if place is None else f"{{tf.aliasing_output = {place} : i32}}"
    )


def escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


__all__ = ["LoweredModule", "Request", "lower_module"]

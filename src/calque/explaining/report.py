"""`explain`: what became of a function, from its signature to its kernels, as text and as a
page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from calque.core.at_sizes import program_at
from calque.core.avals import nbytes
from calque.core.backends import MemoryStats, flops, traffic
from calque.core.jaxprs import Jaxpr, subjaxprs
from calque.explaining import page
from calque.explaining.effects import SideEffect, side_effects
from calque.explaining.links import Links, by_kernel, loop_lines
from calque.native.backend import Found
from calque.native.executable import Planned
from calque.native.passes.pipeline import PASSES
from calque.native.views import kernels_text
from calque.transforms.devices.sharding_propagation import where_placed
from calque.transforms.jit import dynamic
from calque.transforms.jit.arguments import CallArguments
from calque.transforms.jit.captures import Read, short
from calque.transforms.jit.decorator import jit
from calque.transforms.jit.function import function_of
from calque.transforms.jit.stages import placements

UNROLLED: Final = 16  # equations that one line makes before it is taken for a loop of Python
LONGEST: Final = 12_000  # characters of a listing in the text


class Report:
    """What `explain` found. `str()` is the text; `save` writes a page for a browser; the parts are
    attributes.

    name         the function                     captured      values read besides the arguments
    signature    argument names and types         effects       side effects seen while tracing
    sizes        free sizes, and what they are    unrolled      (line, equations) of unrolled Python
    loops guards       questions about them, answered jaxpr        the program as traced
    kernels       how many kernels; `loops`, `assembly`: their text passes       (name, equations
    before, after)  host_calls    primitives that run in Python costs        flops and bytes
    retraced      why it was last traced again"""

    def __init__(self, jitted: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        function = function_of(jitted)
        arguments = CallArguments(function, tuple(args), kwargs)
        serving = program_of(function, arguments)
        traced, executable = serving.traced, serving.executable
        self.fun, self.name, self.closed = function.fun, function.name, traced.closed
        names, avals = (
            list(argument_names(function, arguments)),
            traced.closed.in_avals[len(traced.hoisted) :],
        )
        self.signature = [(n, a.str_short()) for n, a in zip(names, avals)]
        self.sizes, self.guards = serving.sizes, serving.guards
        self.links = Links(function.fun, traced.closed.jaxpr)
        self.jaxpr = str(traced.closed)
        self.passes = list(counted_passes(traced.closed))
        if isinstance(executable, Found):
            executable = executable.planned
        self.executable = executable
        self.elsewhere = not isinstance(executable, Planned)  # another engine compiled it
        self.kernels = (
            int(executable.units) if self.elsewhere else len({k.code for k in executable.kernels})
        )
        self.loops = executable.as_text() if self.elsewhere else kernels_text(executable, "loops")
        self.host_calls = list(executable.host_calls)
        self.costs, self.memory = serving.costs, serving.memory
        self.captured: list[Read] = [r for r in traced.captures.reads if not callable(r.value)]
        self.constants = [(v.aval.str_short(), v.aval.size) for v in traced.closed.jaxpr.constvars]
        self.effects: list[SideEffect] = side_effects(function.fun)
        self.unrolled = unrolled_lines(traced.closed.jaxpr)
        history = list(function.cache.history)
        self.traces = len(history)
        self.retraced = history[-1].reason(history[:-1]) if len(history) > 1 else ""

    @property
    def loop_lines(self) -> list[tuple[set[str], str]]:
        """The loops, line by line, with the lines of the source that each belongs to."""
        if self.elsewhere:
            return [(set(), line) for line in self.loops.splitlines()]
        return loop_lines(self.loops, self.links.of_arrays(self.executable))

    @property
    def assembly_parts(self) -> list[tuple[set[str], str]]:
        """The machine code, kernel by kernel, in the same way."""
        if self.elsewhere:
            return []
        return by_kernel(self.assembly, self.loop_lines)

    @property
    def assembly(self) -> str:
        """The machine code of the kernels."""
        return "" if self.elsewhere else kernels_text(self.executable, "asm")

    @property
    def code_title(self) -> str:
        """What the loops stand under."""
        if self.elsewhere:
            return f"Compiled by XLA: {self.kernels} kernel{'s' * (self.kernels != 1)}"
        return f"Machine code: {self.kernels} kernel{'s' * (self.kernels != 1)}"

    def save(self, path: str) -> None:
        """Write the report as one HTML page that needs nothing else."""
        with open(path, "w", encoding="utf-8") as f:
            f.write(page.html(self))

    def _repr_html_(self) -> str:
        return page.fragment(self)

    def sections(self) -> list[tuple[str, str]]:
        """(title, text) of every part."""
        memory = self.memory
        flops, moved = self.costs.get("flops", 0.0), self.costs.get("bytes accessed", 0.0)
        return [
            ("Signature", lines(f"{n}: {t}" for n, t in self.signature) or "no arguments"),
            (
                "Guards on free sizes",
                (
                    lines(
                        [
                            ", ".join(f"{n} = {k}" for n, k in self.sizes.items()),
                            *(self.guards or ["no questions were asked"]),
                            *(["XLA compiles it for each size"] if self.elsewhere else []),
                        ]
                    )
                    if self.sizes
                    else "none: every size of this program is fixed"
                    + (", and XLA compiles each new one" if self.elsewhere else "")
                ),
            ),
            ("Program (jaxpr)", clipped(self.jaxpr)),
            ("Passes", lines(f"{n}: {a} -> {b} equations" for n, a, b in self.passes)),
            (
                self.code_title,
                (
                    f"about {flops:,.0f} floating-point operations, {moved:,.0f} bytes in and"
                    f" out\n{clipped(self.loops)}"
                ),
            ),
            (
                "Host calls",
                lines(f"{n} x{c}" for n, c in Counter(self.host_calls).items())
                or "none: all of it is machine code",
            ),
            (
                "Captured values",
                lines(f"{r.name} = {short(r.value)}" for r in self.captured) or "none",
            ),
            ("Side effects while tracing", lines(map(str, self.effects)) or "none"),
            (
                "Unrolled Python loops",
                lines(
                    f"line {n} made {c} equations: lax.scan or lax.fori_loop would make a loop"
                    for n, c in self.unrolled
                )
                or "none",
            ),
            (
                "Memory",
                f"arguments {memory.argument_size_in_bytes:,} B, results"
                f" {memory.output_size_in_bytes:,} B, temporaries {memory.temp_size_in_bytes:,} B,"
                " constants " + (", ".join(t for t, _ in self.constants) or "none"),
            ),
            (
                "Retraces",
                (
                    f"traced {self.traces} times; last retraced: {self.retraced}"
                    if self.retraced
                    else "traced once"
                ),
            ),
        ]

    def __str__(self) -> str:
        parts = [f"{self.name}\n{'=' * len(self.name)}"]
        parts += [
            f"{title}\n" + "\n".join("  " + x for x in text.splitlines())
            for title, text in self.sections()
        ]
        return "\n\n".join(parts)

    __repr__ = __str__


def explain(fun: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Report:
    """Shows what calque makes of a function called with these arguments.

    Program, passes, kernels, captured values, side effects, and why it was traced again. `print`
    shows all of it, and `save("report.html")` writes a page.

    Args:
        fun: The function, jitted or not.
        *args: Positional arguments for it.
        **kwargs: Keyword arguments for it.

    Returns:
        A Report, with attributes such as `jaxpr`, `kernels` and `signature`.

    Differs from JAX:
        It is calque's own.

    >>> report = jax.explain(lambda x: jnp.sin(x) * 2, jnp.ones(3))
    >>> report.kernels, report.signature
    (1, [('x', 'f32[3]')])"""
    if not callable(fun):
        raise TypeError(f"explain: a function is needed, got {type(fun).__name__}")
    jitted = fun if hasattr(fun, "_function") else jit(fun)
    return Report(jitted, args, kwargs)


class Serving(NamedTuple):
    """The program that serves a call."""

    traced: Any
    executable: Any
    costs: dict[str, float]
    memory: MemoryStats
    sizes: dict[str, int]
    guards: list[str]


def program_of(function: Any, arguments: CallArguments) -> Serving:
    """The program with free sizes that this call gets, if it would get one; else one of its own."""
    family = function.cache.families.get(arguments.family_key)
    found = (
        family.find(arguments.sizes)
        if family is not None and arguments.key not in function.cache.programs
        else None
    )
    if found is None or not dynamic.allowed(function, arguments):
        traced = function.trace_given(arguments)
        own = placements(function, arguments.args, arguments.kwargs, arguments.leaves)
        where = [*map(where_placed, traced.hoisted), *own]
        executable = traced.compiled(traced.own_place(where))
        return Serving(
            traced,
            executable,
            dict(executable.cost_analysis()),
            executable.memory_analysis(),
            {},
            [],
        )
    program, values = found
    symbols, closed = program.symbols, program.traced.closed
    sized = program_at(closed, symbols, values)
    costs = {"flops": float(flops(sized.eqns)), "bytes accessed": float(traffic(sized))}
    names = {str(d): n for d, n in zip(symbols.sizes(), values)}
    special = program.at(values)
    if special.program is None:  # another engine has a program for these sizes
        costs, memory = dict(special.cost_analysis()), special.memory_analysis()
        return Serving(program.traced, special, costs, memory, names, program.guards())
    room = int(special.program.arena_bytes)
    memory = MemoryStats(sum(map(nbytes, sized.in_avals)), sum(map(nbytes, sized.out_avals)), room)
    return Serving(program.traced, program.executable, costs, memory, names, program.guards())


def argument_names(function: Any, arguments: CallArguments) -> Sequence[str]:
    from_signature: Sequence[str] = function.argument_names(arguments)
    return from_signature


def counted_passes(closed: Any) -> Sequence[tuple[str, int, int]]:
    """(name, equations before, after) of each pass."""
    out = []
    for p in PASSES:
        done = p(closed)
        out.append((p.__name__.replace("_", " "), count(closed.jaxpr), count(done.jaxpr)))
        closed = done
    return out


def count(jaxpr: Jaxpr) -> int:
    return sum(1 + sum(count(j) for j in subjaxprs(e.params)) for e in jaxpr.eqns)


def unrolled_lines(jaxpr: Jaxpr) -> list[tuple[int, int]]:
    """Lines that made many equations of one kind."""
    made = Counter(
        (e.source.file, e.source.line, e.primitive.name) for e in jaxpr.eqns if e.source is not None
    )
    lines_: Counter[int] = Counter()
    for (_, line, _), n in made.items():
        if n >= UNROLLED:
            lines_[line] += n
    return sorted(lines_.items())


def lines(items: Any) -> str:
    return "\n".join(items)


def clipped(text: str) -> str:
    return (
        text
        if len(text) <= LONGEST
        else text[:LONGEST] + f"\n... {len(text) - LONGEST:,} more characters"
    )

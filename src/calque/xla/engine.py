"""Programs compiled and run by XLA.

Calls return before the results are there, unless a program calls Python: whoever looks at a result
waits for it, and meets what went wrong."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from calque.core.arrays import ArrayImpl, delete_array, is_deleted, to_array, to_numpy
from calque.core.avals import ShapedArray, nbytes
from calque.core.backends import MemoryStats, Options, known
from calque.core.devices import is_mine
from calque.core.errors import CalqueRuntimeError
from calque.core.jaxprs import ClosedJaxpr, Jaxpr, all_equations, subjaxprs, without_places
from calque.core.lazy import LazyModule
from calque.core.source import user_frame
from calque.machine.call.arrays import pending_arrays
from calque.machine.call.functions import LEARNS, PythonProgram
from calque.machine.spans import recorder_of_spans, span
from calque.native.passes.inline import inline_calls
from calque.transforms.devices.mesh import Mesh, over_devices
from calque.transforms.devices.several_processes import spans
from calque.transforms.devices.sharding import NamedSharding
from calque.transforms.devices.transfers import engine_copies
from calque.transforms.devices.type_constraints import stated
from calque.xla import jaxlib
from calque.xla.buffers import STAGED, Place, sharding_for, where_of
from calque.xla.chosen_shardings import chosen_shardings, cut
from calque.xla.devices import XlaDevice, cpu_devices
from calque.xla.failures import advised
from calque.xla.foreign_functions import hand_over, register_lapack
from calque.xla.lower.module import Request, lower_module
from calque.xla.lower.partitioned import asks_for_gspmd
from calque.xla.lower.programs import host_data
from calque.xla.partitioners import answering
from calque.xla.stored import loaded_program
from calque.xla.text.types import type_of

__all__ = ["Executable", "compile_on_xla", "cpu_devices"]

relay: Any = LazyModule("calque.machine.call.relay")  # where the interpreter is known


class Executable:
    """A program that XLA compiled."""

    program: Any = None  # there is no machine code of ours: see `served`
    kernels: Sequence[Any] = ()
    copies = True  # arguments that are no arrays, to its devices
    known: dict[str, Any] | None = None  # what profiles say of it

    def __init__(self, closed: ClosedJaxpr, options: Options) -> None:
        where, self.given = options.places, closed
        several = where is not None and len(where.devices) > 1
        closed = stated(closed) if several else without_places(closed)
        self.closed, self.options = closed, options
        self.in_avals: Sequence[ShapedArray] = [a.without_place() for a in closed.in_avals]
        self.out_avals: Sequence[ShapedArray] = [a.without_place() for a in closed.out_avals]
        for a in self.in_avals:
            refuse_six_bits(a, options.name)
        refuse_impossible(closed.jaxpr, options.name)
        refuse_captured(closed, options.name)
        register_lapack()
        hand_over()
        engine_copies()
        candidates = itertools.chain([known.home()], known.default_devices(), cpu_devices())
        devices = (
            next((d,) for d in candidates if isinstance(d, XlaDevice) and is_mine(d))
            if where is None
            else where.devices
        )
        ins = where.ins if where is not None and where.ins else [None] * len(self.in_avals)
        if several:
            asked = asked_for(closed, devices)
            ins = [own or wanted for own, wanted in zip(ins, asked, strict=True)]
        outs = where.outs if where is not None and where.outs else [None] * len(self.out_avals)
        free_ins, free = (where.free_ins, where.free) if where is not None else ((), ())
        free_ins = tuple([f and s is None for f, s in zip(free_ins, ins)])
        self.compile(devices, (ins, outs), (free_ins, free))
        self.chosen_ins, self.chosen = self.chosen_by_xla(ins, outs, free_ins, free)
        ins = [own or known for own, known in zip(self.chosen_ins or ins, ins, strict=True)]
        outs = [own or known for own, known in zip(self.chosen or outs, outs, strict=True)]
        decided = zip((*free_ins, *free), (*self.chosen_ins, *self.chosen))
        if any(is_free and own is None for is_free, own in decided):
            self.compile(devices, (ins, outs))  # some have to be placed, and the others stay
        self.places = tuple(
            (i, Place(self.in_avals[i], ins[i], devices, i in options.donated))
            for i in self.lowered.kept
        )
        self.constants = [
            Place(c.aval, None, devices).put(host_data(c)) for c in self.lowered.constants
        ]
        results = [result_of(a, s, devices) for a, s in zip(self.out_avals, outs, strict=True)]
        self.elsewhere = None if any(map(is_mine, devices)) else results  # in other processes
        self.result_places = [where_of(r.kind, r.sharding) for r in results]
        self.loaded.gives(results)

    def chosen_by_xla(
        self, ins: Sequence[Any], outs: Sequence[Any], free_ins: Any, free: Any
    ) -> tuple[list[Any], list[Any]]:
        """The shardings that XLA has chosen for free arguments, and for free results; None of the
        others, and where we have no words for them. Nothing, if none were free."""
        if not any((*free_ins, *free)):
            return [], []
        mesh = next(s.mesh for s in (*ins, *outs) if isinstance(s, NamedSharding))
        tiles_in, tiles_out = cut(self.loaded)
        kept, held = self.lowered.kept, len(self.lowered.constants)
        shapes = [c.aval.shape for c in self.lowered.constants]
        shapes += [self.in_avals[i].shape for i in kept]
        are_free = [*[False] * held, *[free_ins[i] for i in kept]]
        found = chosen_shardings(tiles_in, mesh, shapes, are_free)
        chosen_ins = dict(zip(kept, found[held:], strict=True))
        chosen = chosen_shardings(tiles_out, mesh, [a.shape for a in self.out_avals], free)
        return [chosen_ins.get(i) for i in range(len(ins))], chosen

    def compile(
        self,
        devices: Sequence[Any],
        where: tuple[Sequence[Any], Sequence[Any]],
        free: tuple[Sequence[bool], Sequence[bool]] = ((), ()),
    ) -> None:
        """Lower the program and have XLA compile it, its arguments and results there, but for the
        free ones, which XLA places."""
        options = self.options
        request = Request(
            name=options.name,
            platform=lowering_platform(devices[0]),
            donated=options.donated,
            constants_as_arguments=True,
            partitions=len(devices),
            in_shardings=where[0],
            out_shardings=where[1],
            free_ins=free[0],
            free=free[1],
            gspmd=len(devices) > 1 and asks_for_gspmd(self.closed),
            mesh=mesh_of(self.closed, devices, (*where[0], *where[1])),
        )
        self.lowered = lower_module(self.closed, request)
        kept, held = self.lowered.kept, len(self.lowered.constants)
        ins = [*[False] * held, *[any(free[0][i : i + 1]) for i in kept]]
        asked = self.lowered.partitioned
        with answering(asked, devices[0].engine), refusing_options(options):
            self.loaded = loaded_program(
                devices[0].client,
                [d.xla for d in devices],
                self.lowered,
                options.compiler,
                (ins, free[1]),
                is_own=self.lowered.is_of_this_process,
                gspmd=request.gspmd,
            )

    def call(self, args: Sequence[Any]) -> list[Any]:
        """The results for arrays of exactly the types of the program. They were placed nowhere."""
        return self.called([to_array(x) for x in args], (None,) * len(self.out_avals))

    def called(self, args: Sequence[Any], where: tuple[Any, ...]) -> list[Any]:
        """The same, for numbers, too; the results say that they live there."""
        buffers = [*self.constants, *[p.brought(args[i]) for i, p in self.places]]
        run = self.run if recorder_of_spans.value is None else self.watched
        return pending_arrays(tuple(self.out_avals), run(buffers, args), where)

    def run(self, buffers: list[Any], args: Sequence[Any]) -> list[Any]:
        """The results as arrays of jaxlib; the arguments are for errors."""
        if self.elsewhere is not None:
            return [jaxlib.put([], r.kind, r.sharding, []) for r in self.elsewhere]
        try:
            return self.loaded.run(buffers)
        except jaxlib.runtime_errors() as e:
            raise self.reason(e, args) from None

    def watched(self, buffers: list[Any], args: Sequence[Any]) -> list[Any]:
        """As `run`, told to whoever records spans: the time until the results are there."""
        with span("XLA", self.options.name, {**self.facts(), **_caller()}):
            found = self.run(buffers, args)
            try:
                for x in found:
                    x.block_until_ready()
            except jaxlib.runtime_errors() as e:
                raise self.reason(e, args) from None
        return found

    def facts(self) -> dict[str, Any]:
        """What is known of a run: the executable's name, the lines that it comes from, and what XLA
        estimates of its work."""
        if self.known is None:
            costs = self.loaded.costs()
            lines = list(dict.fromkeys(
                (e.source.file, e.source.line) for e in self.closed.eqns if e.source is not None
            ))  # fmt: skip
            self.known = {"executable": self.loaded.name()}
            if lines:
                self.known |= {
                    "line": "{}:{}".format(*lines[0]),
                    "lines": ", ".join(str(n) for _, n in lines),
                }
            if "flops" in costs:
                self.known["flops"] = costs["flops"]
            if "bytes accessed" in costs:
                self.known["bytes"] = costs["bytes accessed"]
        return self.known

    @property
    def runtime(self) -> Any:
        """The executable of jaxlib."""
        return self.loaded.loaded

    def served(self, outs: Sequence[Any]) -> PythonProgram:
        """What serves calls whose arguments have been matched; `outs` are the results of such a
        call."""
        return PythonProgram(len(self.in_avals), len(self.out_avals), self.function(outs))

    def function(self, outs: Sequence[Any]) -> Callable[..., list[Any]]:
        """The function of the arguments that makes such results."""
        where, donated = tuple([x._extra for x in outs]), self.options.donated

        def serve(*args: Any) -> list[Any]:
            found = self.called(args, where)
            for i in donated:
                if type(args[i]) is ArrayImpl:
                    delete_array(args[i])
            return found

        if self.loaded.has_effects or not LEARNS or self.elsewhere is not None:
            return serve
        engine = relay.Engine(
            self.loaded.execute,
            (jaxlib.CONSUME, self.loaded.handlers),
            self.failed,
            serve,
            recorder_of_spans,
            self.constants,
        )
        asked = min(range(len(outs)), key=lambda k: nbytes(outs[k].aval), default=-1)
        stages = asked >= 0 and nbytes(outs[asked].aval) <= STAGED  # a result is kept for them
        inputs = [(i, p.where, p.bringing(), p.stage() if stages else None) for i, p in self.places]
        made = zip([x.aval for x in outs], self.result_places, where, strict=True)
        by_machine_code: Callable[..., list[Any]] = relay.Relay(
            len(self.in_avals), engine, inputs, list(made), donated, max(asked, 0)
        )
        return by_machine_code

    def failed(self, error: Exception, args: Sequence[Any]) -> None:
        """Raise what a user is to see of an error of jaxlib."""
        if isinstance(error, jaxlib.runtime_errors()):
            raise self.reason(error, args) from None
        raise error

    def reason(self, error: Exception, args: Sequence[Any]) -> Exception:
        """What a function on the host raised, or that an argument was deleted, if that is why the
        program failed."""
        for function in self.lowered.callbacks:
            raised: Exception | None = function.take_error()
            if raised is not None:
                return raised
        for x in args:
            if type(x) is ArrayImpl and is_deleted(x):
                try:
                    to_numpy(x)
                except RuntimeError as deleted:
                    return deleted
        return advised(error)

    @property
    def host_calls(self) -> list[str]:
        """The operations that run in Python."""
        return [function.primitive.name for function in self.lowered.callbacks]

    @property
    def units(self) -> int:
        """How many loops and calls XLA made of it."""
        return self.loaded.units()

    @property
    def simplified(self) -> ClosedJaxpr:
        """The program without calls of Python rules, which have done their work; it says where
        arrays are."""
        return inline_calls(self.given)

    def as_text(self, stage: str | None = None) -> str:
        if stage in (None, "hlo"):
            return self.loaded.hlo()
        if stage == "stablehlo":
            return self.lowered.text()
        if stage == "jaxpr":
            return str(self.closed)
        raise ValueError(f"XLA has the stages hlo, stablehlo and jaxpr, not {stage!r}")

    def cost_analysis(self) -> dict[str, float]:
        return self.loaded.costs()

    def memory_analysis(self) -> MemoryStats:
        m = self.loaded.memory()
        named = [f.name for f in dataclasses.fields(MemoryStats)]
        return MemoryStats(**{name: int(getattr(m, name, 0)) for name in named})


def _caller() -> dict[str, str]:
    """The line of the user that calls, as part of what a span says."""
    frame = user_frame()
    return {} if frame is None else {"called": f"{frame.f_code.co_filename}:{frame.f_lineno}"}


@contextlib.contextmanager
def refusing_options(options: Options) -> Iterator[None]:
    """Compiling, where XLA may know no such option, or not take its value."""
    known = jaxlib.runtime_errors()
    try:
        yield
    except Exception as e:
        unfit = isinstance(e, TypeError) or (isinstance(e, known) and "option" in str(e))
        if not options.compiler or not unfit:
            raise advised(e) if isinstance(e, known) else e from None
        asked = ", ".join(f"{name}={value!r}" for name, value in options.compiler)
        raise CalqueRuntimeError(f"{options.name} was compiled with {asked}: {e}") from None


def refuse_impossible(jaxpr: Jaxpr, name: str) -> None:
    """An error where XLA would end the process: MemoryError where an array is larger than any
    process can hold."""
    for e in jaxpr.eqns:
        for v in e.outvars:
            if isinstance(v.aval, ShapedArray):
                nbytes(v.aval)
                refuse_six_bits(v.aval, name)
        for body in subjaxprs(e.params):
            refuse_impossible(body, name)


def refuse_captured(closed: ClosedJaxpr, name: str) -> None:
    """RuntimeError for constants of which other processes have parts."""
    for c in closed.consts:
        if isinstance(c, ArrayImpl) and not is_deleted(c) and spans(c._extra):
            raise RuntimeError(
                f"{name} closes over an array {c.aval.str_short()} that spans non-addressable"
                " devices, which are of other processes: pass it as an argument"
            )


def refuse_six_bits(aval: ShapedArray, name: str) -> None:
    """NotImplementedError for floats of six bits."""
    if aval.dtype.name.startswith("float6_"):
        raise NotImplementedError(
            f"{name} has arrays of {aval.dtype.name}, which XLA cannot compute with: convert them"
            " to bfloat16 outside of it, or let calque's own engine run it: jit(f, backend='cpu')"
        )


def asked_for(closed: ClosedJaxpr, devices: Sequence[Any]) -> list[Any]:
    """Where the program wants its arguments: what it says of them first, as `in_shardings` do.
    Those that cannot be cut into equal parts come whole. A mesh without devices is over these."""
    said: dict[Any, Any] = {}
    for e in closed.eqns:
        if e.primitive.name == "sharding_constraint":
            said.setdefault(e.invars[0], e.params["sharding"])
    found = [(said.get(v), v.aval.shape) for v in closed.jaxpr.invars]
    named = [
        s if isinstance(s, NamedSharding) and is_even(s, shape) else None for s, shape in found
    ]
    return [None if s is None else on_devices(s, devices) for s in named]


def mesh_of(closed: ClosedJaxpr, devices: Sequence[Any], placed: Sequence[Any]) -> Mesh | None:
    """A mesh that a program over several devices speaks of: that of its arguments or results, or of
    what it says of values inside."""
    if len(devices) == 1:
        return None
    inside = (e.params.get("sharding") for e in all_equations(closed.jaxpr))
    named = (s for s in itertools.chain(placed, inside) if isinstance(s, NamedSharding))
    found = (on_devices(s, devices) for s in named)
    return next((s.mesh for s in found if s is not None and s.mesh.size == len(devices)), None)


def on_devices(sharding: NamedSharding, devices: Sequence[Any]) -> NamedSharding | None:
    """The sharding, over these devices where its mesh names none; None where they are not as
    many."""
    mesh = sharding.mesh
    if isinstance(mesh, Mesh):
        return sharding
    flat = Mesh(np.array(devices, object), ("devices",))
    found = over_devices(mesh, flat)
    return None if found is None else NamedSharding(found, sharding.spec)


def is_even(sharding: NamedSharding, shape: Sequence[int]) -> bool:
    """Whether the parts of an array of this shape are equal."""
    return all(size % n == 0 for size, n in zip(shape, sharding.counts(len(shape))))


def result_of(aval: ShapedArray, sharding: Any, devices: Sequence[Any]) -> jaxlib.Result:
    """A result as jaxlib knows it."""
    tensor = type_of(aval)
    kind = jaxlib.array_type(tensor.shape, tensor.dtype)
    return jaxlib.Result(kind, sharding_for(sharding, devices, tensor.ndim))


def lowering_platform(device: Any) -> str:
    """For which platform a program is lowered."""
    return "cpu" if device.engine == "xla_cpu" else str(device.engine)


def compile_on_xla(closed: ClosedJaxpr, options: Options) -> Executable:
    """The backends of XLA: its CPU, and those of plugins."""
    return Executable(closed, options)

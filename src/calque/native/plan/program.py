"""The steps of a driver as a program for the machine's interpreter."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from calque.core.avals import nbytes
from calque.core.dims import Dim
from calque.core.primitives import REGISTRY
from calque.machine.driver.builder import External, ProgramBuilder, Reg, Slot, Varying
from calque.machine.driver.interpreter import Op
from calque.machine.driver.program import Program
from calque.machine.threads import get_num_threads
from calque.native.emit.alike import Argument
from calque.native.emit.kernels import Kernel
from calque.native.lower.numbers import word_of
from calque.native.lower.sizes import Sizes
from calque.native.plan.memory import arrange, lent
from calque.native.plan.steps import (
    Call,
    Copy,
    Count,
    Host,
    Made,
    Repeat,
    Routine,
    Step,
    Swap,
    Switch,
    WriteSize,
)
from calque.native.routines import Begun
from calque.native.scalars.expr import Buffer, Expr, item_size
from calque.native.schedule.nests import Schedule

PIECE_NS = 1_000_000_000  # of work, by a guess that is ten times too high for products
_OPS: Final = {
    "add": Op.ADD,
    "sub": Op.SUB,
    "mul": Op.MUL,
    "floordiv": Op.FLOORDIV,
    "mod": Op.MOD,
    "min": Op.MIN,
    "max": Op.MAX,
}
# step -> the method of an assembler that writes it
_WRITTEN_BY: Final[dict[type[Step], str]] = {
    Call: "call",
    Copy: "copy",
    Count: "count",
    Host: "host",
    Repeat: "repeat",
    Routine: "routine",
    Swap: "swap",
    Switch: "switch",
    WriteSize: "write_size",
}

_NONE: Final[Mapping[str, Hashable]] = MappingProxyType({})


class Assembler:
    """Writes the steps of one program. Until they are written, the results in `lenders` may hold
    temporaries. The parameters in `numbers` are those of these numbers, which others may change."""

    def __init__(
        self,
        sizes: Sizes,
        params: dict[str, Any],
        sizes_of: dict[Buffer, int],
        kernels: dict[Schedule, Kernel],
        lenders: Collection[Buffer] = (),
        numbers: Mapping[str, Hashable] = _NONE,
    ) -> None:
        self.sizes, self.nbytes, self.kernels = sizes, sizes_of, kernels
        self.lenders = lenders
        self.params: dict[str, int] = {name: word_of(x.tobytes()) for name, x in params.items()}
        for name, number in numbers.items():
            self.params[name] = Varying(self.params[name], number)
        self.slots: dict[Buffer, Slot] = {}
        self.counters: dict[str, Reg] = {}

    def program(
        self,
        inputs: Sequence[Buffer],
        outputs: Sequence[tuple[Buffer, Any]],
        consts: Sequence[tuple[Buffer, np.ndarray]],
        temporaries: set[Buffer],
        steps: Sequence[Step],
        release_gil: bool,
        donated: Sequence[tuple[int, int | None]] = (),
    ) -> Program:
        b = self.builder = ProgramBuilder(len(inputs), self.results(outputs))
        for i, buf in enumerate(inputs):
            self.slots[buf] = b.input(i)
        for i, (buf, _) in enumerate(outputs):
            self.slots[buf] = self.result(i, buf)
        for buf, array in consts:
            self.slots[buf] = b.const(array)
        self.lay_out(steps, temporaries)
        self.steps(steps)
        self.finish()
        for i, k in donated:
            b.donate(i, k, self.nbytes[inputs[i]])
        return b.build(release_gil)

    def results(self, outputs: Sequence[tuple[Buffer, Any]]) -> list[tuple[Any, int]]:
        """The type and bytes of each result."""
        return [(aval, nbytes(aval)) for _, aval in outputs]

    def result(self, i: int, b: Buffer) -> Slot:
        return self.builder.output(i)

    def finish(self) -> None:
        """What is to be done after the last step."""

    def before(self, s: Step) -> None:
        """What is to be done before a step."""

    def count(self, s: Count) -> None:
        self.counters[s.name] = self.builder.load(self.slots[s.buffer], s.buffer.dtype)

    def lay_out(self, steps: Sequence[Step], temporaries: set[Buffer]) -> None:
        """Places in results and in the arena."""
        inside = lent(steps, temporaries, self.lenders, self.nbytes)
        for buf, (result, at) in inside.items():
            self.slots[buf] = self.part(self.slots[result], at)
        offsets, _ = arrange(steps, temporaries - inside.keys(), self.nbytes)
        for buf, at in offsets.items():
            self.slots[buf] = self.builder.arena(at, self.nbytes[buf])

    def part(self, whole: Slot, at: int) -> Slot:
        """A place inside of another."""
        if not at:
            return whole
        slot = self.builder.slot()
        self.builder.address(slot, whole, 0, 0, at)
        return slot

    def bytes_of(self, b: Buffer) -> int:
        return self.nbytes[b]

    def steps(self, steps: Sequence[Step]) -> None:
        for s in steps:
            self.before(s)
            how = _WRITTEN_BY.get(type(s))
            if how is None:
                raise AssertionError(f"a step that is not scheduled: {s}")
            getattr(self, how)(s)

    def copy(self, s: Copy) -> None:
        self.builder.copy(self.slots[s.dst], self.slots[s.src], self.bytes_of(s.dst))

    def swap(self, s: Swap) -> None:
        self.builder.swap(self.slots[s.a], self.slots[s.b])

    def write_size(self, s: WriteSize) -> None:
        size, bits = self.operand(s.size), 8 * item_size(s.buffer.dtype)
        self.builder.store(self.slots[s.buffer], size, f"i{bits}")

    def switch(self, s: Switch) -> None:
        index = self.slots[s.index] if isinstance(s.index, Buffer) else self.integer(s.index)
        with self.builder.switch(index) as block:
            for case in s.cases:
                with block.case():
                    self.steps(case)

    def call(self, s: Call) -> None:
        k = self.kernels[s.schedule]
        args: list[Slot | Reg | int] = [self.slots[buf] for buf in s.buffers(k.buffers)]
        args += [self.size(name) for name in k.sizes]
        args += [self.params[e.attr[0]] for e in s.parameters(k.params)]
        if s.schedule.extent is None:
            self.builder.call(
                k.address, args, name=k.symbol, asks=k.polls, owner=k.code, symbol=k.symbol
            )
            return
        extent = self.integer(s.schedule.extent)
        grain: Reg | int | Expr = s.schedule.grain
        grain = self.integer(grain) if isinstance(grain, Expr) else grain
        piece = self.piece(s.schedule)
        if piece is None:
            self.call_range(k, args, 0, extent, grain)
            return
        with self.builder.loop(0, extent, piece) as begin:  # which looks at signals
            end = self.builder.arith(Op.MIN, self.builder.arith(Op.ADD, begin, piece), extent)
            self.call_range(k, args, begin, end, grain)

    def call_range(self, k: Kernel, args: Sequence[Any], begin: Any, end: Any, grain: Any) -> None:
        self.builder.call(
            k.address,
            args,
            begin,
            end,
            grain,
            name=k.symbol,
            asks=k.polls,
            owner=k.code,
            symbol=k.symbol,
        )

    def routine(self, s: Routine) -> None:
        words, turns = [self.operand(w) for w in s.words], self.operand(s.turns)
        address = self.operand(s.address)
        self.builder.call(
            address, words, 0, turns, s.grain, name=s.name, asks=s.asks, owner=s.owner
        )

    def operand(self, word: Any) -> Any:
        """An argument of a routine."""
        if type(word) is int or type(word) is External:
            return word
        if isinstance(word, Buffer):
            return self.slots[word]
        if type(word) is Begun:
            return word.found()
        if type(word) is Dim:
            return self.integer(self.sizes.dim(word))
        if isinstance(word, np.ndarray):
            return self.builder.const(word)
        if isinstance(word, Made):
            return self.builder.const(word.function(*word.sizes))
        return self.integer(word) if isinstance(word, Expr) else int(word)

    def piece(self, schedule: Schedule) -> int | None:
        """How many turns of a parallel loop that takes long are run at a time: so many that nobody
        waits long for Ctrl-C."""
        if (
            schedule.ns < 2 * PIECE_NS
            or schedule.extent is None
            or any(n in self.counters for n in schedule.extent.names)
        ):
            return None
        turns = self.sizes.hinted.value(schedule.extent)
        grain = schedule.grain
        grain = self.sizes.hinted.value(grain) if isinstance(grain, Expr) else grain
        some = get_num_threads() * max(grain, 1)  # work for every thread
        piece = max(round(turns * PIECE_NS / schedule.ns / some), 1) * some
        return piece if piece < turns else None

    def size(self, name: Argument) -> Reg | int:
        if isinstance(name, int):
            return name
        reg = self.counters.get(name)
        return self.sizes.values[name] if reg is None else reg

    def integer(self, e: Expr) -> Reg | int:
        """A size expression, worked out now or (with loop counters in it) by the program."""
        if not any(n in self.counters for n in e.names):
            return self.known(e)
        if e.op == "var":
            return self.counters[e.attr[0]]
        a, b = (self.integer(x) for x in e.args)
        return self.builder.arith(_OPS[e.op], a, b)

    def known(self, e: Expr) -> int:
        """A size as an operand."""
        return self.sizes.value(e)

    def repeat(self, s: Repeat) -> None:
        b = self.builder
        if s.count is not None:
            with b.loop(0, self.integer(s.count)) as reg:
                if s.counter is not None:
                    self.counters[s.counter] = reg
                self.steps(s.body)
                self.swaps(s)
            return
        assert s.flag is not None
        with b.while_() as block:
            self.steps(s.test)
            block.check(self.slots[s.flag])
            self.steps(s.body)
            self.swaps(s)

    def swaps(self, s: Repeat) -> None:
        for x, y in s.swaps:
            self.builder.swap(self.slots[x], self.slots[y])

    def host(self, s: Host) -> None:
        outs = [(buf, aval) for buf, aval in zip(s.outs, s.out_avals) if aval is not None]
        function = host_function(s, s.params, s.arg_avals, s.out_avals)
        self.host_call(
            s, function, [self.slots[buf] for buf in s.args] + [self.slots[buf] for buf, _ in outs]
        )

    def host_call(self, s: Host, function: Callable[..., None], args: Sequence[Slot]) -> None:
        self.builder.host(function, args, name=s.op)


def array_at(address: int, aval: Any) -> np.ndarray:
    """The memory at an address as a NumPy array of this type."""
    dtype = aval.dtype if isinstance(aval.dtype, np.dtype) else aval.dtype.storage
    nbytes = int(aval.size) * dtype.itemsize
    raw = (ctypes.c_char * max(nbytes, 1)).from_address(address)
    return np.frombuffer(memoryview(raw), np.uint8, count=nbytes).view(dtype).reshape(aval.shape)


def host_function(
    s: Host, params: dict[str, Any], arg_avals: Sequence[Any], results_avals: Sequence[Any]
) -> Callable[..., None]:
    """A function of addresses that runs the meaning of an equation. Its exceptions come out of the
    program."""
    primitive = REGISTRY[s.op]
    avals, out_avals = list(arg_avals), list(results_avals)

    def run(*addresses: int) -> None:
        args = [array_at(p, a) for p, a in zip(addresses, avals)]
        for a in args:
            a.flags.writeable = False
        with np.errstate(all="ignore"):
            out = primitive.meaning(*args, **params)
        results = out if primitive.multiple_results else [out]
        places = iter(addresses[len(avals) :])
        for r, aval in zip(results, out_avals):
            if aval is not None:
                array_at(next(places), aval)[...] = r

    run.__name__ = primitive.name
    return run

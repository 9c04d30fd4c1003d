"""Driver programs: what a compiled function does between its kernels, as data for the interpreter.

``ProgramBuilder`` assembles one, with nested blocks::

    b = ProgramBuilder(1, [(aval, 4000)])
    x, y = b.input(0), b.output(0)
    tmp = b.arena(0, 4000)
    b.call(kernel_address, [x, tmp, 1000], name="exp")
    with b.loop(0, 10) as i:
        b.call(other_address, [tmp, y, i], 0, 1000, grain=256)
    program = b.build()
    program.run([pointer], [result_pointer])

Slots hold pointers, registers hold 64-bit integers; an integer operand may be a plain ``int`` too.
Everything is checked while building and once more in the finished code, before machine code ever
sees it: a program cannot read or write outside its frame, jump outside its code, or use a slot that
nothing was put into. What kernels do with the pointers they are given is theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from calque.machine.driver import interpreter as interp
from calque.machine.driver.blocks import SwitchBlock, WhileBlock
from calque.machine.driver.interpreter import Op
from calque.machine.driver.program import External, Places, Program
from calque.machine.driver.verify import Frame, ProgramError
from calque.machine.driver.words import (
    Immediate,
    Integer,
    Label,
    Operand,
    Reg,
    Slot,
    Varying,
    encode,
)
from calque.machine.integers import IntegerType

__all__ = ["External", "ProgramBuilder", "ProgramError", "Reg", "Slot", "Varying"]

_KINDS: Final = {
    "i1": IntegerType.U8,
    "i8": IntegerType.I8,
    "u8": IntegerType.U8,
    "i16": IntegerType.I16,
    "u16": IntegerType.U16,
    "i32": IntegerType.I32,
    "u32": IntegerType.U32,
    "i64": IntegerType.I64,
    "u64": IntegerType.I64,
}
_SYMBOLS: Final = {
    Op.ADD: "+",
    Op.SUB: "-",
    Op.MUL: "*",
    Op.FLOORDIV: "//",
    Op.MOD: "%",
    Op.LT: "<",
    Op.LE: "<=",
    Op.EQ: "==",
    Op.NE: "!=",
}


class ProgramBuilder:
    """Assembles a program. ``outputs`` are (aval, bytes); -1 bytes for a block that the program
    itself allocates and gives."""

    def __init__(self, n_in: int, outputs: Sequence[tuple[Any, int]]) -> None:
        self.n_in = n_in
        self.outputs = list(outputs)
        self.arena_bytes = 0
        self._instructions: list[list[Any]] = []
        self._arena_offsets: list[int] = []
        self._constants: dict[int, int] = {}
        self._immediates: dict[Any, int] = {}
        self._values: list[int] = []
        self._counts = {
            "in": n_in,
            "out": len(self.outputs),
            "own": 0,
            "reg": 0,
            "slot": 0,
            "const": 0,
            "arena": 0,
        }
        self._keepalive: list[object] = []
        self._donated: list[tuple[int, int, int]] = []
        self._asks = False
        self._called: list[tuple[int, str | None]] = []  # instructions, what they call
        self._arrays: dict[int, np.ndarray | None] = {}  # constants, where they are arrays
        self._lines: list[tuple[int, Callable[[], str]]] = []
        self._depth = 1
        self._max_args = 0

    # Places.

    def input(self, index: int) -> Slot:
        """The pointer of an input."""
        return self._checked("in", index)

    def output(self, index: int) -> Slot:
        """The pointer of a result, which the caller allocated."""
        return self._checked("out", index)

    def const(self, value: np.ndarray | int, keepalive: object = None) -> Slot:
        """The pointer of a constant: an array, or an address with the object that keeps it
        valid."""
        array = value if isinstance(value, np.ndarray) else None
        if isinstance(value, np.ndarray):
            if not value.flags.c_contiguous:
                raise ProgramError("a constant array must be contiguous")
            keepalive, value = value, value.ctypes.data
        self._keepalive.append(keepalive)
        index = self._constants.setdefault(value, len(self._constants))
        self._arrays.setdefault(index, array)
        self._counts["const"] = len(self._constants)
        return Slot("const", index)

    def arena(self, offset: int, nbytes: int) -> Slot:
        """A place in the arena, memory that lives for one run."""
        if offset < 0 or nbytes < 0 or offset % 8:
            raise ProgramError(f"an arena place at {offset} of {nbytes} bytes")
        self.arena_bytes = max(self.arena_bytes, offset + nbytes)
        self._arena_offsets.append(offset)
        return Slot("arena", self._new("arena"))

    def owned(self) -> Slot:
        """A slot for a block whose size is known only while running; freed at the end of the
        run."""
        return Slot("own", self._new("own"))

    def slot(self) -> Slot:
        """A slot to compute a pointer into."""
        return Slot("slot", self._new("slot"))

    def reg(self) -> Reg:
        """A new register."""
        return Reg(self._new("reg"))

    def _new(self, region: str) -> int:
        self._counts[region] += 1
        return self._counts[region] - 1

    def _checked(self, region: str, index: int) -> Slot:
        if not 0 <= index < self._counts[region]:
            raise ProgramError(f"there is no {region}put {index}, there are {self._counts[region]}")
        return Slot(region, index)

    # Steps.

    def call(
        self,
        kernel: int,
        args: Sequence[Operand],
        begin: Integer = 0,
        end: Integer = 1,
        grain: Integer = 0,
        name: str = "kernel",
        asks: bool = False,
        owner: object = None,
        symbol: str | None = None,
    ) -> None:
        """Call ``kernel(args, begin, end)``; in parallel when the range holds at least two grains.
        The program keeps the ``owner`` of its code. Another process finds that by its ``symbol``,
        or by the name of an ``External``.
        A kernel that ``asks`` calls ``calque_poll`` now and then, which may let other Python code
        run, and returns early when told to.
        """
        self._asks |= asks
        self._keepalive.append(owner)
        if kernel <= 0:
            raise ProgramError(f"{name} has no address")
        symbol = kernel.name if isinstance(kernel, External) else symbol
        self._called.append((len(self._instructions), symbol))
        words = [self._any(arg) for arg in args]
        self._max_args = max(self._max_args, len(words))
        called = tuple(args)
        if begin == 0 and end == 1 and grain == 0:
            self._emit(
                lambda: f"call {name}({_joined(called)})", Op.CALL, kernel, len(words), *words
            )
            return
        self._emit(
            lambda: (
                f"call {name}({_joined(called)}) over {begin}:{end}"
                + (f" by {grain}" if grain != 0 else "")
            ),
            Op.CALL_RANGE,
            kernel,
            *map(self._int, (begin, end, grain)),
            len(words),
            *words,
        )

    def copy(self, dst: Slot, src: Slot, nbytes: Integer) -> None:
        """Copy bytes; the ranges may overlap."""
        self._emit(
            lambda: f"copy {dst} <- {src}, {nbytes} B",
            Op.COPY,
            self._slot(dst),
            self._slot(src),
            self._int(nbytes),
        )

    def fill(self, dst: Slot, nbytes: Integer, value: Integer = 0, width: int = 1) -> None:
        """Fill bytes with an integer of ``width`` bytes."""
        if width not in (1, 2, 4, 8):
            raise ProgramError(f"a fill of width {width}")
        note = f" ({width} B)" if width > 1 else ""
        self._emit(
            lambda: f"fill {dst}, {nbytes} B with {value}{note}",
            Op.FILL,
            self._slot(dst),
            self._int(nbytes),
            self._int(value),
            width,
        )

    def address(
        self, dst: Slot, src: Slot, index: Integer, stride: Integer, offset: Integer = 0
    ) -> None:
        """``dst = src + index * stride + offset``, in bytes."""
        words = [self._int(number) for number in (index, stride, offset)]
        self._emit(
            lambda: f"{dst} = {src} + {index} * {stride} + {offset}",
            Op.ADDRESS,
            self._target(dst),
            self._slot(src),
            *words,
        )

    def swap(self, a: Slot, b: Slot) -> None:
        """Exchange two pointers."""
        if ("own" in (a.region, b.region)) and a.region != b.region:
            raise ProgramError(f"{a} and {b}: an owned block can only be exchanged for another")
        if "const" in (a.region, b.region):
            raise ProgramError(f"{a} and {b}: constants stay where they are")
        self._emit(lambda: f"swap {a}, {b}", Op.SWAP, self._slot(a), self._slot(b))

    def move(self, dst: Slot | Reg, src: Operand) -> None:
        """Set a slot to another's pointer, or a register to an integer."""
        if isinstance(dst, Reg):
            self._emit(lambda: f"{dst} = {src}", Op.MOVE, self._int(dst), self._int(src))
        else:
            self._emit(lambda: f"{dst} = {src}", Op.MOVE, self._target(dst), self._slot(src))

    def load(self, src: Slot, dtype: str, offset: Integer = 0, dst: Reg | None = None) -> Reg:
        """An integer from memory to a register."""
        dst = dst or self.reg()

        def line() -> str:
            return f"{dst} = {dtype} {src}[{offset}]"

        self._emit(line, Op.LOAD, self._int(dst), self._slot(src), self._int(offset), _kind(dtype))
        return dst

    def store(self, dst: Slot, src: Integer, dtype: str, offset: Integer = 0) -> None:
        """An integer to memory."""

        def line() -> str:
            return f"{dtype} {dst}[{offset}] = {src}"

        self._emit(line, Op.STORE, self._slot(dst), self._int(offset), self._int(src), _kind(dtype))

    def arith(self, op: Op, a: Integer, b: Integer, dst: Reg | None = None) -> Reg:
        """Arithmetic on integers: ``Op.ADD`` to ``Op.NE``. A product that does not fit, and a
        division by zero, stop the program."""
        if not Op.ADD <= op <= Op.NE:
            raise ProgramError(f"{op.name} is no arithmetic")
        dst = dst or self.reg()
        sign = f" {_SYMBOLS[op]} " if op in _SYMBOLS else ""

        def line() -> str:
            return f"{dst} = {a}{sign}{b}" if sign else f"{dst} = {op.name.lower()}({a}, {b})"

        self._emit(line, op, self._int(dst), self._int(a), self._int(b))
        return dst

    def alloc(self, slot: Slot, nbytes: Integer) -> None:
        """A block for an owned slot, in the place of the one it had."""
        self._emit(
            lambda: f"alloc {slot}, {nbytes} B", Op.ALLOC, self._owned(slot), self._int(nbytes)
        )

    def free(self, slot: Slot) -> None:
        """Free the block of an owned slot before the end of the run."""
        self._emit(lambda: f"free {slot}", Op.FREE, self._owned(slot))

    def give(self, output: int, slot: Slot) -> None:
        """Hand the block of an owned slot to the caller as a result of unknown size."""
        self._checked("out", output)
        if self.outputs[output][1] >= 0:
            raise ProgramError(
                f"output {output} has {self.outputs[output][1]} bytes, which the caller allocates"
            )
        self._emit(lambda: f"give out{output} <- {slot}", Op.GIVE, output, self._owned(slot))

    def host(
        self,
        function: Callable[..., Any],
        args: Sequence[Operand] = (),
        result: Reg | None = None,
        name: str = "",
        key: Any = None,
    ) -> None:
        """Call a Python function on integers (a slot's is its address); with ``result`` it must
        give an integer.

        With ``key`` another call of the program may have another function."""
        self._keepalive.append(function)
        words = [self._any(arg) for arg in args]
        called, target = tuple(args), f"{result} = " if result else ""

        def line() -> str:
            called_name = name or getattr(function, "__name__", "function")
            return f"{target}host {called_name}({_joined(called)})"

        place = -1 if result is None else self._int(result)
        identity = id(function) if key is None else Varying(id(function), key)
        self._emit(line, Op.HOST, self._immediate(identity), place, len(words), *words)

    def fail(self, error: type[Exception], message: str) -> None:
        """Stop the program with an exception."""

        def fail() -> None:
            raise error(message)

        self.host(fail, name=f"raise {error.__name__}")

    # Blocks.

    @contextmanager
    def loop(self, start: Integer, stop: Integer, step: Integer = 1) -> Iterator[Reg]:
        """Count a register from start to before stop; the body may not change it, nor the
        bounds."""
        reg, body, leave = self.reg(), Label(), Label()
        words = [self._int(number) for number in (start, stop, step)]
        self._emit(
            lambda: f"loop {reg} = {start}:{stop}:{step}", Op.LOOP, self._int(reg), *words, leave
        )
        self._bind(body)
        with self._indented():
            yield reg
        self._emit(None, Op.NEXT, self._int(reg), *words[1:], body)
        self._bind(leave)

    @contextmanager
    def while_(self) -> Iterator[WhileBlock]:
        """Repeat a block; its ``check`` ends the loop."""
        begin, block = Label(), WhileBlock(self)
        self._bind(begin)
        self._lines.append((self._depth, lambda: "while"))
        with self._indented():
            yield block
        if not block.checked:
            raise ProgramError("a while block without a check never ends")
        self._emit(None, Op.BACK, begin)
        self._bind(block.leave)

    @contextmanager
    def switch(self, index: Integer | Slot) -> Iterator[SwitchBlock]:
        """Run one of several cases, by a register or an i32 in memory; an index outside takes the
        nearest."""
        reg = self.load(index, "i32") if isinstance(index, Slot) else index
        block = SwitchBlock(self)
        self._emit(lambda: f"switch {reg}", Op.SWITCH, self._int(reg), block.labels)
        yield block
        if not block.labels:
            raise ProgramError("a switch without cases")
        self._bind(block.leave)

    @contextmanager
    def _indented(self) -> Iterator[None]:
        self._depth += 1
        yield
        self._depth -= 1

    def _bind(self, label: Label) -> None:
        label.instruction = len(self._instructions)

    def _emit(self, line: Callable[[], str] | None, *words: Any) -> None:
        """Add an instruction, with its line of text, made when somebody wants to read it."""
        if line is not None:
            self._lines.append((self._depth, line))
        self._instructions.append(list(words))

    # Operands.

    def _slot(self, slot: object) -> Slot:
        if not isinstance(slot, Slot):
            raise ProgramError(f"{slot} is not a slot")
        if slot.index >= self._counts.get(slot.region, 0):
            raise ProgramError(f"{slot} is not of this program")
        return slot

    def _target(self, slot: object) -> Slot:
        slot = self._slot(slot)
        if slot.region in ("const", "own"):
            raise ProgramError(f"{slot} cannot be set")
        return slot

    def _owned(self, slot: object) -> Slot:
        if self._slot(slot).region != "own":
            raise ProgramError(f"{slot} is not an owned slot")
        return self._slot(slot)

    def _int(self, number: object) -> Reg | Immediate:
        if isinstance(number, Reg):
            if number.index >= self._counts["reg"]:
                raise ProgramError(f"{number} is not of this program")
            return number
        if not isinstance(number, int | np.integer):
            raise ProgramError(f"{number} is neither a register nor an integer")
        return self._immediate(number if isinstance(number, Varying | External) else int(number))

    def _any(self, operand: Operand) -> Slot | Reg | Immediate:
        return self._slot(operand) if isinstance(operand, Slot) else self._int(operand)

    def _immediate(self, value: int) -> Immediate:
        if not -(1 << 63) <= value < 1 << 64:
            raise ProgramError(f"{value} does not fit in 64 bits")
        key: Any = value
        if type(value) is Varying:
            key = ("varying", value.key)
        elif type(value) is External:
            key = ("external", value.name)
        index = self._immediates.get(key)
        if index is None:
            index = self._immediates[key] = len(self._values)
            self._values.append(value - (1 << 64) if value >= 1 << 63 else value)
        return Immediate(index)

    # Assembly.

    def donate(self, index: int, output: int | None, nbytes: int) -> None:
        """Let the program write to an input: callers give its memory away. It becomes that of a
        result, which the program then finds in the place of the input; with None it is scratch."""
        self._checked("in", index)
        if any(index == i or output == k for i, k, _ in self._donated if k >= 0 or index == i):
            raise ProgramError(f"input {index} or output {output} is donated twice")
        if output is not None:
            self._checked("out", output)
            if self.outputs[output][1] != nbytes:
                raise ProgramError(f"input {index} of {nbytes} bytes cannot be output {output}")
        self._donated.append((index, -1 if output is None else output, nbytes))

    def build(self, release_gil: bool = False, keepalive: Sequence[object] = ()) -> Program:
        """The finished program. With ``release_gil`` other Python threads run meanwhile, for some
        50 ns a call."""
        self._immediate(0)
        frame = self._layout()
        template = [0] * (self._counts["own"] + self._counts["reg"] + self._counts["slot"])
        template += [*self._constants, *map(int, self._values)]
        code, calls = self._assemble(frame)
        return Program(
            np.array(code, np.int64),
            frame,
            np.array(template, np.int64),
            np.array(self._arena_offsets, np.int64),
            self.arena_bytes,
            self.outputs,
            [*self._keepalive, *keepalive],
            interp.RELEASE_GIL * release_gil
            | interp.RUNS_PYTHON * self._runs_python()
            | interp.DONATES * bool(self._donated),
            lambda: self._text(release_gil),
            self._donated,
            None
            if self._holds_addresses()
            else Places(
                calls,
                tuple(self._arrays.values()),
                tuple(self._special("external")),
                tuple(self.varying()),
            ),
        )

    def _holds_addresses(self) -> bool:
        """Whether the program means something in this process only, beside what it calls by name
        and its arrays."""
        calls_python = any(words[0] == Op.HOST for words in self._instructions)
        unnamed = any(name is None for _, name in self._called)
        return calls_python or unnamed or any(a is None for a in self._arrays.values())

    def varying(self) -> list[tuple[int, Any]]:
        """(number of an immediate, key) of all that vary."""
        return self._special("varying")

    def _special(self, kind: str) -> list[tuple[int, Any]]:
        """(number of an immediate, what it is known by) of those of a kind."""
        return [
            (i, key[1])
            for key, i in self._immediates.items()
            if type(key) is tuple and key[0] == kind
        ]

    def _runs_python(self) -> bool:
        return self._asks or any(
            words[0] in (Op.HOST, Op.NEXT, Op.BACK) for words in self._instructions
        )

    def _layout(self) -> Frame:
        counts = self._counts | {"imm": len(self._immediates)}
        starts, words = {}, 0
        for region in ("in", "out", "own", "reg", "slot", "const", "imm", "arena"):
            starts[region] = words
            words += counts[region]
        starts["run"] = words  # for kernels that ask whether to go on
        starts["args"] = words + 1
        return Frame(starts, words + 1 + self._max_args, words + 1)

    def _assemble(self, frame: Frame) -> tuple[list[int], tuple[tuple[int, str], ...]]:
        """The words, and at which of them stand the addresses of what is called."""
        instructions = [*self._instructions, [Op.END]]
        places, at = [], 0
        for words in instructions:
            places.append(at)
            at += sum(1 + len(word) if isinstance(word, list) else 1 for word in words)
        code: list[int] = []
        for words in instructions:
            for word in words:
                if isinstance(word, list):
                    code += [len(word), *(8 * places[label.instruction] for label in word)]
                elif isinstance(word, Label):
                    code.append(8 * places[word.instruction])
                else:
                    code.append(encode(word, frame))
        calls = tuple((places[i] + 1, name) for i, name in self._called if name is not None)
        return code, calls

    def _text(self, release_gil: bool) -> str:
        sizes = ", ".join(f"{size} B" if size >= 0 else "?" for _, size in self.outputs)
        head = (
            f"program: {self.n_in} in, {len(self.outputs)} out [{sizes}], arena"
            f" {self.arena_bytes} B"
        )
        lines = ["  " * depth + line() for depth, line in self._lines]
        return "\n".join([head + (", GIL released" if release_gil else ""), *lines]) + "\n"


def _joined(operands: Sequence[Operand]) -> str:
    return ", ".join(map(str, operands))


def _kind(dtype: str) -> int:
    if dtype not in _KINDS:
        raise ProgramError(f"{dtype!r} is not an integer type")
    return _KINDS[dtype]

"""Kernels as modules of LLVM: written, compiled by several threads, and linked.

Modules are compiled while others are still being written, or the program is still being planned."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from calque.core.lazy import LazyModule
from calque.machine import generator
from calque.machine.code import llvm, target
from calque.machine.code.linked import Linked
from calque.machine.spans import span
from calque.machine.threads import get_num_threads
from calque.native.emit import objects, shared_loops

if TYPE_CHECKING:
    from calque.native.emit.kernels import Code

emitter = LazyModule("calque.native.emit.emitter")

OUTLINE: Final = 1  # kernels with more math functions than this call shared ones
_PART: Final = 32_000  # letters of LLVM's text that are worth a module of their own
_LEAST: Final = 8_000  # ... if another thread else had nothing to do; a module takes 1.5 ms as such


def has_quick_code() -> bool:
    """Whether LLVM has a lowest level that gives the same bits as the others."""
    return target.describe().is_x86


def processor() -> dict[str, Any]:
    """What the emitter must know of the processor."""
    t = target.describe()
    return {
        "avx512": t.vector_bytes == 64,
        "register_bytes": t.vector_bytes,
        "half": not (t.is_x86 and t.vector_bytes < 32),
        "indexed": t.is_x86,
        "pairs": _pair_bytes(t),
    }


def _pair_bytes(t: target.Target) -> int:
    """The width of the instruction that multiplies and adds pairs of 16 bits; the first processors
    with 64 bytes have it for half of them."""
    if not t.is_x86:
        return 0
    halved = "-avx512bw" in t.features or t.cpu in ("knl", "knm")
    return min(t.vector_bytes, 32) if halved else t.vector_bytes


# ---------------------------------------------------------------- text


@dataclass
class Module:
    """Functions that are compiled together, and what they call."""

    functions: dict[str, str] = field(default_factory=dict)
    declared: set[str] = field(default_factory=set)
    imports: dict[str, Linked | None] = field(default_factory=dict)  # None: of the runtime
    shared: dict[str, Any] = field(default_factory=dict)  # functions that its kernels call

    def length(self) -> int:
        return sum(map(len, self.functions.values()))

    def text(self) -> str:
        names = {d.partition("@")[2].partition("(")[0]: d for d in self.declared}
        declared = [d for n, d in sorted(names.items()) if n not in self.functions]
        return "\n".join([*declared, *self.functions.values(), ""])


def module_of(codes: Sequence[Code], alone: bool = False) -> Module:
    """The text of kernels and of the functions they share that are not linked yet, or (`alone`)
    of all that they need."""
    module = Module()
    for c in codes:
        write(c, module)
    _write_shared(module, module.shared, codes[0].opt, alone)
    return module


def write(c: Code, module: Module) -> None:
    """Put the text of a kernel into a module."""
    order = c.order
    assert order is not None
    options = emitter.CodeOptions(
        exact=c.exact,
        outline=c.math > OUTLINE,
        tag=f"_o{c.opt}",
        share_loops=c.quick,
        multiples=dict(zip(order.sizes, c.multiples)),
        **processor(),
    )
    f = emitter.write_kernel(c.symbol, order.buffers, order.sizes, order.params, c.body, options)
    module.functions[c.symbol] = f.text
    module.declared |= f.declared
    module.imports |= dict.fromkeys(objects.of_runtime(f.declared))
    module.shared |= f.shared


def _write_shared(
    module: Module,
    wanted: Mapping[str, Any],
    opt: int,
    alone: bool = False,
    others: Container[str] = (),
) -> None:
    """Put the text of functions that kernels share into a module, and note those that are there
    already, or among `others`."""
    options = emitter.CodeOptions(exact=True, outline=True, tag=f"_o{opt}", **processor())
    pending = {**wanted}
    while pending:
        symbol, function = pending.popitem()
        if symbol in module.functions or symbol in module.imports:
            continue
        if symbol in others:
            module.shared[symbol] = function
            continue
        linked = None if alone else objects.from_disk(symbol, opt)
        if linked is not None:
            module.imports[symbol] = linked
            continue
        f = emitter.write_shared(function, options)
        module.functions[symbol] = f.text
        module.declared |= f.declared
        pending |= f.shared


# ---------------------------------------------------------------- code


def compiling() -> llvm.Compiling:
    """Threads that compile modules."""
    threads = get_num_threads()
    if threads > 1:
        generator.get_ready()
    return llvm.Compiling(threads)


class Modules:
    """The new kernels of a program on their way: `add` writes some of them, and threads compile
    what makes a module; `compile` waits for all, `link` keeps and links them."""

    def __init__(self, opt: int, work: llvm.Compiling | None = None) -> None:
        self.opt, self.threads = opt, get_num_threads()
        self.work = compiling() if work is None else work
        self.codes: list[Code] = []
        self.parts: list[Module] = []  # that were handed over, in this order
        self.made: list[bytes] = []  # the code of each
        self.open: dict[int, Module] = {}  # by the level of their code
        # the functions that kernels call, as far as they are not known, by the level of their code
        self.shared: dict[int, Module] = {}
        self.known: dict[str, Linked | None] = {}  # those that are, None where they are compiled
        self.written, self.letters = 0, 0

    def add(self, codes: Sequence[Code], more: bool = False) -> None:
        """Write kernels; `more` will follow, for which no thread waits that could begin."""
        if any([c.quick for c in codes]):
            target.select_whole_blocks()
        left = sum([c.length for c in codes])
        # what is long must not end, and the math functions that kernels call are long
        for c in sorted(codes, key=lambda c: (c.math <= OUTLINE, -c.length)):
            part = self.open.setdefault(c.level, Module())
            self.letters -= part.length()
            write(c, part)
            self.letters += part.length()
            self.written, left = self.written + c.length, left - c.length
            # no thread waits for the first
            to_come = self.letters * left / self.written if self.parts else 0
            if part.length() >= enough(to_come, self.threads):
                self._hand_over(self.open.pop(c.level), c.level)
            self._add_shared(part.shared)
        self.codes += codes
        if more and self.threads > 1:
            for level in [n for n, part in self.open.items() if part.length() >= _LEAST]:
                self._hand_over(self.open.pop(level), level)

    def _add_shared(self, wanted: Mapping[str, Any]) -> None:
        """Write functions that nobody has, and those that they call."""
        new: dict[int, dict[str, Any]] = {}
        for symbol, f in wanted.items():
            if symbol not in self.known:
                level = shared_loops.LEVEL if isinstance(f, shared_loops.SharedLoop) else self.opt
                new.setdefault(level, {})[symbol] = f
        for level, functions in new.items():
            part = self.shared.setdefault(level, Module())
            _write_shared(part, functions, self.opt, others=self.known)
            self.known |= dict.fromkeys(part.functions) | part.imports
            if part.length() >= enough(0, self.threads):
                self._hand_over(self.shared.pop(level), level)

    def _hand_over(self, part: Module, level: int) -> None:
        """Let a module be compiled."""
        if part.functions:
            self.work.add(part.text(), level)
            self.parts.append(part)

    def drop(self) -> None:
        """Compile nothing more: nobody wants it."""
        self.work.drop()

    def compile(self) -> None:
        """Wait for the machine code of all modules, with a hand in it."""
        for level, part in (*self.shared.items(), *self.open.items()):
            self._hand_over(part, level)
        with span("LLVM", ", ".join([name for part in self.parts for name in part.functions])):
            self.made = self.work.results()

    def link(self) -> None:
        """Give all kernels their addresses."""
        linked: dict[str, Linked] = {}
        # a shared function calls those that stand before it alone, or in its own module
        for part, obj in sorted(zip(self.parts, self.made), key=self._has_kernels):
            part.imports |= {symbol: self.known[symbol] for symbol in part.shared}
            own = dict.fromkeys(part.functions, _linked(part, obj, self.opt))
            linked |= own
            self.known |= {symbol: code for symbol, code in own.items() if symbol in self.known}
        for c in self.codes:
            c.use(linked[c.symbol])

    def _has_kernels(self, made: tuple[Module, bytes]) -> bool:
        return self.known.keys().isdisjoint(made[0].functions)


def enough(left: float, threads: int) -> float:
    """How many letters are a module while so many are left: the last ones are short, so that all
    threads end at about the same time."""
    return _PART if threads == 1 else min(max(left / (2 * threads), _LEAST), _PART)


def _linked(module: Module, obj: bytes, opt: int) -> Linked:
    """Link a module that was compiled, and note on disk where its symbols are."""
    text, exports = module.text(), list(module.functions)
    objects.note(text, obj, exports, module.imports, opt)
    return objects.load(obj, exports, module.imports, text)

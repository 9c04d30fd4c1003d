"""Loop trees -> machine code: a few modules for all new kernels of a program, one compilation for
equal kernels of any program.

A kernel is known by its canonical key. What has been compiled is found in memory, else on disk
(then not even its LLVM text is made); math functions that kernels share are compiled and kept like
kernels. Modules are compiled by several threads, the first ones while the others are written."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from calque.core.config import config
from calque.core.lazy import LazyModule
from calque.machine.caches import Table
from calque.machine.code import llvm, target
from calque.machine.code.digest import hexdigest
from calque.machine.code.linked import Linked
from calque.machine.spans import span
from calque.machine.state import process
from calque.machine.threads import get_num_threads
from calque.native.emit import objects
from calque.native.loops import polls
from calque.native.loops.canonical import Canonical, canonical
from calque.native.loops.tree import Body, For, nodes, pretty
from calque.native.scalars.expr import Buffer, Expr

emitter = LazyModule("calque.native.emit.emitter")
math_functions = LazyModule("calque.native.emit.math_functions")
checks = LazyModule("calque.native.loops.verify")

OUTLINE: Final = 1  # kernels with more math functions than this call shared ones
_PART: Final = 32_000  # letters of LLVM's text that are worth a module of their own


@dataclass
class KernelCounts:
    """Kernels asked for by ``compile_kernels``: compiled, found in memory, found on disk."""

    compiled: int = 0
    memory: int = 0
    disk: int = 0


stats = KernelCounts()


@dataclass(eq=False)
class Code:
    """Machine code of a kernel, shared by every program that has an equal one; it is in memory as
    long as one of them is."""

    symbol: str
    body: Body
    exact: bool
    opt: int
    parallel: bool
    address: int = 0
    order: Canonical | None = None
    linked: Linked | None = None

    def use(self, linked: Linked) -> None:
        self.linked, self.address = linked, linked.addresses[self.symbol]


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel as one program uses it: the code, and what goes into each word of its arguments
    (buffers, sizes, params)."""

    code: Code
    buffers: tuple[Buffer, ...]
    sizes: tuple[str, ...]
    params: tuple[Expr, ...]
    body: Body = field(repr=False)

    @property
    def symbol(self) -> str:
        return self.code.symbol

    @property
    def address(self) -> int:
        return self.code.address

    @property
    def parallel(self) -> bool:
        """Do ``begin`` and ``end`` bound its outermost loop?"""
        return self.code.parallel

    @property
    def polls(self) -> bool:
        """Does it ask now and then whether it should stop?"""
        return polls.polls(self.body)

    def text(self, stage: str = "loops") -> str:
        """``loops``, ``llvm`` or ``asm``."""
        if stage == "loops":
            return pretty(self.body)
        ir = _module_text(_emit([self.code]))
        if stage == "llvm":
            return ir
        if stage == "asm":
            return llvm.assembly(ir, self.code.opt)
        raise ValueError(f"no text {stage!r}: loops, llvm or asm")


@dataclass
class _Module:
    functions: dict[str, str] = field(default_factory=dict)
    declared: set[str] = field(default_factory=set)
    imports: dict[str, Linked | None] = field(default_factory=dict)  # None: of the runtime
    math: dict[str, Any] = field(default_factory=dict)  # functions that its kernels call

    def length(self) -> int:
        return sum(map(len, self.functions.values()))


# those that were made last stay for a while when their programs are gone
_codes: Final[Table[tuple[str, bool, int], Code]] = Table("kernels", 1024, programs=True)
_living: Final[weakref.WeakSet[Code]] = process.container("kernels that live", weakref.WeakSet())


def compile_kernels(bodies: Iterable[Body], exact: bool = False, opt: int = 2) -> list[Kernel]:
    """Machine code for each body, in order; what is new is compiled in one module."""
    orders = [canonical(b) for b in bodies]
    with objects.turns.taken():
        out: list[Kernel] = []
        new: dict[tuple[str, bool, int], Code] = {}
        for body, order in zip(bodies, orders, strict=True):
            key = (order.key, exact, opt)
            code = _codes.find(key) or new.get(key)
            if code is None:
                code = new[key] = _new_code(body, order, exact, opt)
            else:
                stats.memory += 1
            out.append(
                Kernel(code, tuple(order.buffers), tuple(order.sizes), tuple(order.params), body)
            )
        if new:
            _make([*new.values()], opt)
            for key, code in new.items():
                _codes[key] = code
                _living.add(code)
    return out


def apart(bodies: Iterable[Body], exact: bool = False, opt: int = 2) -> list[Kernel]:
    """Each body as a kernel that this process does not run: `module_code` compiles them. Its
    address is a number that means nothing."""
    codes: dict[str, Code] = {}
    out = []
    for body in bodies:
        order = canonical(body)
        code = _new_code(body, order, exact, opt)
        code = codes.setdefault(code.symbol, code)
        code.address = code.address or len(codes)
        out.append(
            Kernel(code, tuple(order.buffers), tuple(order.sizes), tuple(order.params), body)
        )
    return out


def module_code(kernels: Iterable[Kernel]) -> bytes:
    """The machine code of kernels with all the math functions that they need."""
    codes = list({k.symbol: k.code for k in kernels}.values())
    return llvm.object_code(_module_text(_emit(codes, alone=True)), codes[0].opt)


def known() -> list[Code]:
    """The kernels that a program, or the table, holds now."""
    return list(_living)


def _new_code(body: Body, order: Canonical, exact: bool, opt: int) -> Code:
    if config.verify_kernels:
        checks.verify(body)
    seed = f"{objects.version()}\0{exact}\0{opt}\0{order.key}"
    symbol = "k_" + hexdigest(seed)[:24]
    parallel = isinstance(body[0], For) and body[0].kind == "parallel" if body else False
    return Code(symbol, body, exact, opt, parallel, order=order)


def _make(codes: list[Code], opt: int) -> None:
    """Give each code its address: from disk, else compiled."""
    missing = []
    in_memory = {c.symbol for c in codes if c.symbol in objects.linked}
    for c in codes:
        linked = objects.from_disk(c.symbol, opt)
        if linked is None:
            missing.append(c)
            continue
        c.use(linked)
        stats.memory += c.symbol in in_memory
        stats.disk += c.symbol not in in_memory
    if missing:
        _compile(missing, opt)
        stats.compiled += len(missing)


def processor() -> dict[str, bool]:
    """What the emitter must know of the processor."""
    t = target.describe()
    return {
        "avx512": t.vector_bytes == 64,
        "half": not (t.is_x86 and t.vector_bytes < 32),
        "indexed": t.is_x86,
    }


def _compile(codes: Sequence[Code], opt: int) -> None:
    """Compile, keep and link new kernels, and the math functions that they need."""
    work = llvm.Compiling(opt, get_num_threads())
    parts = [_Module()]
    for c in sorted(codes, key=_length, reverse=True):  # those that take long must not come last
        if parts[-1].length() >= _PART:
            work.add(_module_text(parts[-1]))
            parts.append(_Module())
        _write(c, parts[-1])
    work.add(_module_text(parts[-1]))
    shared = _Module()
    _emit_math(shared, {s: f for p in parts for s, f in p.math.items()}, processor(), opt, False)
    if shared.functions:
        work.add(_module_text(shared))
    with span("LLVM", ", ".join([name for p in (*parts, shared) for name in p.functions])):
        made = work.results()
    known = dict(shared.imports)
    if shared.functions:
        known |= dict.fromkeys(shared.functions, _link(shared, made[-1], opt))
    linked: dict[str, Linked] = {}
    for part, obj in zip(parts, made):
        part.imports |= {symbol: known[symbol] for symbol in part.math}
        linked |= dict.fromkeys(part.functions, _link(part, obj, opt))
    for c in codes:
        c.use(linked[c.symbol])


def _length(c: Code) -> int:
    """Of the key, which grows with the kernel."""
    return len(c.order.key) if c.order is not None else 0


def _emit(codes: Sequence[Code], alone: bool = False) -> _Module:
    """The text of kernels and of the math functions they need that are not linked yet, or
    (`alone`) of all that they need."""
    module = _Module()
    for c in codes:
        _write(c, module)
    _emit_math(module, {**module.math}, processor(), codes[0].opt, alone)
    return module


def _write(c: Code, module: _Module) -> None:
    """Put the text of a kernel into a module."""
    order = c.order
    assert order is not None
    uses = sum(1 for e in nodes(c.body) if e.op in math_functions.NAMES)
    options = emitter.CodeOptions(
        exact=c.exact, outline=uses > OUTLINE, tag=f"_o{c.opt}", **processor()
    )
    f = emitter.write_kernel(c.symbol, order.buffers, order.sizes, order.params, c.body, options)
    module.functions[c.symbol] = f.text
    module.declared |= f.declared
    if polls.DECLARATION in f.declared:
        module.imports[polls.ASK] = None
    module.math |= f.math


def _emit_math(
    module: _Module, pending: dict[str, Any], has: dict[str, bool], opt: int, alone: bool
) -> None:
    options = emitter.CodeOptions(exact=True, outline=True, tag=f"_o{opt}", **has)
    while pending:
        symbol, function = pending.popitem()
        if symbol in module.functions or symbol in module.imports:
            continue
        linked = None if alone else objects.from_disk(symbol, opt)
        if linked is not None:
            module.imports[symbol] = linked
            continue
        f = emitter.write_math_function(function, options)
        module.functions[symbol] = f.text
        module.declared |= f.declared
        pending |= f.math


def _module_text(module: _Module) -> str:
    names = {d.partition("@")[2].partition("(")[0]: d for d in module.declared}
    declared = [d for n, d in sorted(names.items()) if n not in module.functions]
    return "\n".join([*declared, *module.functions.values(), ""])


def _link(module: _Module, obj: bytes, opt: int) -> Linked:
    """Link a module that was compiled, and note on disk where its symbols are."""
    text = _module_text(module)
    exports = list(module.functions)
    objects.note(text, obj, exports, module.imports, opt)
    return objects.load(obj, exports, module.imports, text)

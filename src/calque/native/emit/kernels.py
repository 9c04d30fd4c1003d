"""Loop trees -> machine code: a few modules for all new kernels of a program, one compilation for
equal kernels of any program.

A kernel is known by its canonical key. What has been compiled is found in memory, else on disk
(then not even its LLVM text is made); math functions that kernels share are compiled and kept like
kernels. Modules are compiled by several threads, the first ones while the others are written."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from calque.core.config import config
from calque.core.lazy import LazyModule
from calque.machine.caches import Table
from calque.machine.code import llvm, target
from calque.machine.code.digest import hexdigest
from calque.machine.code.linked import Linked
from calque.machine.records import record
from calque.machine.spans import span
from calque.machine.state import process
from calque.machine.threads import get_num_threads
from calque.native.emit import alike, objects
from calque.native.emit.alike import Argument
from calque.native.emit.whole import multiples
from calque.native.loops import polls
from calque.native.loops.canonical import Canonical, canonical
from calque.native.loops.tree import Body, For, nodes, pretty
from calque.native.scalars.expr import Buffer, Expr

emitter = LazyModule("calque.native.emit.emitter")
math_functions = LazyModule("calque.native.emit.math_functions")
checks = LazyModule("calque.native.loops.verify")

OUTLINE: Final = 1  # kernels with more math functions than this call shared ones
_PART: Final = 32_000  # letters of LLVM's text that are worth a module of their own
_LEAST: Final = 8_000  # ... if another thread else had nothing to do; a module takes 1.5 ms as such
_LONG: Final = 1000  # letters of a key from which on it is asked whether others are alike
_MUCH: Final = 3000  # letters of keys of kernels that LLVM takes long for, some 40 ms
_PLAIN: Final = 1  # the level at which code without math functions is as fast, in 92 % of the time
_QUICK: Final = 0  # the level of LLVM at which it takes half the time, and code three times as long


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
    multiples: tuple[int, ...] = ()  # of each of its sizes, if it takes that for granted
    quick: bool = False  # LLVM took little time for it, and it takes more; it gives the same bits
    linked: Linked | None = None

    @property
    def level(self) -> int:
        """Of LLVM's generation of code."""
        if self.quick:
            return _QUICK
        return self.opt if self.math else min(self.opt, _PLAIN)

    @cached_property
    def math(self) -> int:
        """How many math functions it uses."""
        return sum([e.op in math_functions.NAMES for e in nodes(self.body)])

    def use(self, linked: Linked) -> None:
        self.linked, self.address = linked, linked.addresses[self.symbol]


@record(eq=False)
class Kernel:
    """A kernel as one program uses it: the code, and what goes into each word of its arguments
    (buffers, sizes, params)."""

    code: Code
    buffers: tuple[Buffer, ...]
    sizes: tuple[Argument, ...]
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
            return llvm.assembly(ir, self.code.level)
        raise ValueError(f"no text {stage!r}: loops, llvm or asm")


_Shared = dict[Code, tuple[Code, tuple[Argument, ...]]]


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


def compile_kernels(
    bodies: Iterable[Body],
    exact: bool = False,
    opt: int = 2,
    values: Mapping[str, int] = MappingProxyType({}),
    brief: Collection[int] = (),
) -> list[Kernel]:
    """Machine code for each body, in order; what is new is compiled in a few modules. ``values``:
    sizes that the program fixes. Where there is much to compile, new kernels take for granted what
    these are multiples of; other sizes then have kernels of their own. ``brief``: which bodies take
    next to none of the program's time. Where they are much to compile, LLVM makes code for them
    quickly: slower code with the same bits, which serves no body that is not brief."""
    orders = [canonical(b) for b in bodies]
    with objects.turns.taken():
        new: dict[str, Code] = {}
        codes = [
            _code(b, o, (exact, opt), values, new, k in brief)
            for k, (b, o) in enumerate(zip(bodies, orders))
        ]
        users: dict[Code, list[Canonical]] = {}
        for order, code in zip(orders, codes, strict=True):
            users.setdefault(code, []).append(order)
        shared = _make([*new.values()], opt, values, users) if new else {}
    out = []
    for body, order, code in zip(bodies, orders, codes, strict=True):
        made, given = shared.get(code) or (code, tuple(order.sizes))
        sizes = _as_user(given, code, order) if made is not code else given
        out.append(Kernel(made, tuple(order.buffers), sizes, tuple(order.params), body))
    return out


def _code(
    body: Body,
    order: Canonical,
    how: tuple[bool, int],
    values: Mapping[str, int],
    new: dict[str, Code],
    brief: bool,
) -> Code:
    """The code of a body: known, or one of the new ones. What one program has for sizes of unlike
    multiples takes nothing for granted."""
    needed = multiples(body, values) if values else {}
    powers = tuple([needed.get(name, 1) for name in order.sizes]) if needed else ()
    code = _find(order, powers, how, values, brief)
    if code is None:
        code = new.get(order.key)
        if code is None:
            code = new[order.key] = _new_code(body, order, *how)
            code.multiples, code.quick = powers, brief
            return code
        code.quick &= brief
        if code.multiples != powers:
            code.multiples = ()
    stats.memory += 1
    return code


def _find(
    order: Canonical,
    powers: tuple[int, ...],
    how: tuple[bool, int],
    values: Mapping[str, int],
    quick: bool,
) -> Code | None:
    """The code in memory that serves sizes; also code that was made quickly, if that will do."""
    for slow in (False, True) if quick else (False,):
        code = _codes.find((_whole_key(order.key, (), slow), *how))
        if code is not None and not _serves(code, order.sizes, values):
            code = _codes.find((_whole_key(order.key, powers, slow), *how)) if powers else None
        if code is not None:
            return code
    return None


def _serves(c: Code, sizes: Sequence[str], values: Mapping[str, int]) -> bool:
    """Whether sizes are the multiples that a kernel takes them for."""
    return all(p == 1 or values.get(n, 1) % p == 0 for n, p in zip(sizes, c.multiples))


def _remember(c: Code) -> None:
    """Under its own key; and that which takes least for granted under that of all its kind."""
    _codes[_key(c, c.multiples, c.quick)] = c
    other = _codes.get(_key(c, (), c.quick))
    if other is None or prod(c.multiples) < prod(other.multiples):
        _codes[_key(c, (), c.quick)] = c
    _living.add(c)


def _whole_key(key: str, powers: tuple[int, ...], quick: bool) -> str:
    """The key of a kernel that may take for granted that its sizes are multiples, or be made
    quickly."""
    if powers:
        key = f"{key}\nmultiples {powers}"
    return f"{key}\nquick" if quick else key


def _key(c: Code, powers: tuple[int, ...], quick: bool) -> tuple[str, bool, int]:
    assert c.order is not None
    return _whole_key(c.order.key, powers, quick), c.exact, c.opt


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
    parallel = isinstance(body[0], For) and body[0].kind == "parallel" if body else False
    code = Code("", body, exact, opt, parallel, order=order)
    code.symbol = _symbol(code, (), code.quick)
    return code


def _symbol(c: Code, powers: tuple[int, ...], quick: bool) -> str:
    key, exact, opt = _key(c, powers, quick)
    return "k_" + hexdigest(f"{objects.version()}\0{exact}\0{opt}\0{key}")[:24]


def _as_user(given: Sequence[Argument], c: Code, user: Canonical) -> tuple[Argument, ...]:
    """What a body gives for the sizes of shared code, from what the body gives that `c` was made
    of: an equal one, over sizes of other names."""
    assert c.order is not None
    own = dict(zip(c.order.sizes, user.sizes, strict=True))
    return tuple([own[x] if isinstance(x, str) else x for x in given])


def _make(
    codes: list[Code], opt: int, values: Mapping[str, int], users: Mapping[Code, list[Canonical]]
) -> _Shared:
    """Give each code its address: from disk, in either form, else compiled. What was not there may
    share the code of others that are the same loops over other numbers."""
    missing = _not_found(codes, opt)
    shared = _share(missing, values, users)
    if shared:
        general = list(dict.fromkeys(code for code, _ in shared.values()))
        missing = [c for c in missing if c not in shared]
        missing += _not_found([c for c in general if not c.address], opt)
    if missing:
        much = sum(map(_length, missing)) >= _MUCH
        quickly = much and has_quick_code()
        for c in missing:
            c.multiples = c.multiples if much else ()
            c.quick &= quickly
            c.symbol = _symbol(c, c.multiples, c.quick)
        _compile(missing, opt)
        stats.compiled += len(missing)
    for c in codes:
        if c not in shared:
            _remember(c)
    for c, _ in shared.values():
        _remember(c)
    return shared


def _share(
    codes: Sequence[Code], values: Mapping[str, int], users: Mapping[Code, list[Canonical]]
) -> _Shared:
    """For long codes that differ in numbers only: the one that serves them, and what each gives for
    its sizes."""
    long = [(c, c.order) for c in codes if c.order is not None and _length(c) >= _LONG]
    shared: _Shared = {}
    for group in alike.in_groups([c.body for c, _ in long], [order for _, order in long]):
        members, orders = [long[k][0] for k in group], [long[k][1] for k in group]
        common = alike.common([c.body for c in members], orders)
        if common is not None:
            every = [
                _as_user(given, c, user)
                for c, given in zip(members, common.arguments, strict=True)
                for user in users[c]
            ]
            code = _common_code(common._replace(arguments=every), members, values)
            shared |= {c: (code, given) for c, given in zip(members, common.arguments)}
    return shared


def _common_code(common: alike.Common, members: Sequence[Code], values: Mapping[str, int]) -> Code:
    """The code of a body that serves several, which may be known."""
    like = members[0]
    known = common.values(values)
    needed = multiples(common.body, known) if values else {}
    powers = tuple([needed.get(name, 1) for name in common.order.sizes]) if needed else ()
    quick = all([c.quick for c in members])
    code = _find(common.order, powers, (like.exact, like.opt), known, quick)
    if code is None:
        code = _new_code(common.body, common.order, like.exact, like.opt)
        code.multiples, code.quick = powers, quick
    return code


def _not_found(codes: Iterable[Code], opt: int) -> list[Code]:
    """The codes that are not on disk in any of the forms that they may take."""
    codes = [*codes]
    forms = [_forms(c) for c in codes]
    in_memory = {f.symbol for form in forms for f in form if f.symbol in objects.linked}
    return [
        c for c, form in zip(codes, forms, strict=True) if not _is_found(c, form, in_memory, opt)
    ]


class _Form(NamedTuple):
    """How a kernel may have been compiled."""

    symbol: str
    multiples: tuple[int, ...]
    quick: bool


def _forms(c: Code) -> list[_Form]:
    """Those that would do, the best first."""
    return [
        _Form(_symbol(c, powers, quick), powers, quick)
        for quick in ((False, True) if c.quick else (False,))
        for powers in dict.fromkeys((c.multiples, ()))
    ]


def _is_found(c: Code, forms: Sequence[_Form], in_memory: Collection[str], opt: int) -> bool:
    """Whether there is code of one of these forms, which `c` then is."""
    for form in forms:
        linked = objects.from_disk(form.symbol, opt)
        if linked is not None:
            c.symbol, c.multiples, c.quick = form
            c.use(linked)
            stats.memory += form.symbol in in_memory
            stats.disk += form.symbol not in in_memory
            return True
    return False


def has_quick_code() -> bool:
    """Whether LLVM has a lowest level that gives the same bits as the others."""
    return target.describe().is_x86


def _pair_bytes(t: target.Target) -> int:
    """The width of the instruction that multiplies and adds pairs of 16 bits; the first processors
    with 64 bytes have it for half of them."""
    if not t.is_x86:
        return 0
    halved = "-avx512bw" in t.features or t.cpu in ("knl", "knm")
    return min(t.vector_bytes, 32) if halved else t.vector_bytes


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


def _compile(codes: Sequence[Code], opt: int) -> None:
    """Compile, keep and link new kernels, and the math functions that they need."""
    threads = get_num_threads()
    work = llvm.Compiling(threads)
    if any([c.quick for c in codes]):
        target.select_whole_blocks()
    parts: list[_Module] = []
    open_parts: dict[int, _Module] = {}  # by the level of their code
    written, left, letters = 0, sum(map(_length, codes)), 0
    for c in sorted(codes, key=_length, reverse=True):  # those that take long must not come last
        part = open_parts.setdefault(c.level, _Module())
        to_come = letters * left / max(written, 1) if parts else 0  # no thread waits for the first
        if part.length() >= _enough(to_come, threads):
            work.add(_module_text(part), c.level)
            parts.append(part)
            part = open_parts[c.level] = _Module()
        before = part.length()
        _write(c, part)
        letters += part.length() - before
        written, left = written + _length(c), left - _length(c)
    for level, part in open_parts.items():
        work.add(_module_text(part), level)
        parts.append(part)
    shared = _Module()
    _emit_math(shared, {s: f for p in parts for s, f in p.math.items()}, processor(), opt, False)
    if shared.functions:
        work.add(_module_text(shared), opt)
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


def _enough(left: float, threads: int) -> float:
    """How many letters are a module while so many are left: the last ones are short, so that all
    threads end at about the same time."""
    return _PART if threads == 1 else min(max(left / (2 * threads), _LEAST), _PART)


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
    options = emitter.CodeOptions(
        exact=c.exact,
        outline=c.math > OUTLINE,
        tag=f"_o{c.opt}",
        multiples=dict(zip(order.sizes, c.multiples)),
        **processor(),
    )
    f = emitter.write_kernel(c.symbol, order.buffers, order.sizes, order.params, c.body, options)
    module.functions[c.symbol] = f.text
    module.declared |= f.declared
    module.imports |= dict.fromkeys(objects.of_runtime(f.declared))
    module.math |= f.math


def _emit_math(
    module: _Module, pending: dict[str, Any], has: dict[str, Any], opt: int, alone: bool
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

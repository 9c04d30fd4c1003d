"""Kernels: machine code for loop trees, compiled once for equal kernels of any program.

A kernel is known by its canonical key. What has been compiled is found in memory, else on disk
(then not even its LLVM text is made)."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Final, NamedTuple

from calque.core.config import config
from calque.core.lazy import LazyModule
from calque.machine.caches import Table
from calque.machine.code import llvm
from calque.machine.code.digest import hexdigest
from calque.machine.code.linked import Linked
from calque.machine.records import record
from calque.machine.state import process
from calque.native.emit import objects
from calque.native.emit.alike import Argument
from calque.native.emit.modules import module_of
from calque.native.loops import polls
from calque.native.loops.canonical import Canonical, canonical
from calque.native.loops.rows import is_rows
from calque.native.loops.tree import Body, For, nodes, pretty, statements
from calque.native.scalars.expr import Buffer, Expr

math_functions = LazyModule("calque.native.emit.math_functions")
checks = LazyModule("calque.native.loops.verify")

_PLAIN: Final = 1  # the level at which code without math functions is as fast, in 92 % of the time
_QUICK: Final = 0  # the level of LLVM at which it takes half the time, and code three times as long


@dataclass
class KernelCounts:
    """Kernels that programs asked for: compiled, found in memory, found on disk."""

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
    def length(self) -> int:
        """Of its key, in letters, which grows with the kernel."""
        return self.order.letters if self.order is not None else 0

    @cached_property
    def math(self) -> int:
        """How many math functions it uses, those of each row of a tile."""
        return _math(self.body) + sum(
            [(s.extent.attr - 1) * _math(s.body) for s in statements(self.body) if is_rows(s)]
        )

    def use(self, linked: Linked) -> None:
        self.linked, self.address = linked, linked.addresses[self.symbol]


def _math(body: Body) -> int:
    return sum([e.op in math_functions.NAMES for e in nodes(body)])


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
        ir = module_of([self.code]).text()
        if stage == "llvm":
            return ir
        if stage == "asm":
            return llvm.assembly(ir, self.code.level)
        raise ValueError(f"no text {stage!r}: loops, llvm or asm")


# those that were made last stay for a while when their programs are gone
_codes: Final[Table[tuple[str, bool, int], Code]] = Table("kernels", 1024, programs=True)
_living: Final[weakref.WeakSet[Code]] = process.container("kernels that live", weakref.WeakSet())


def find(
    order: Canonical,
    powers: tuple[int, ...],
    how: tuple[bool, int],
    values: Mapping[str, int],
    quick: bool,
) -> Code | None:
    """The code in memory that serves sizes; also code that was made quickly, if that will do."""
    for slow in (False, True) if quick else (False,):
        code = _codes.find((_whole_key(order.key, (), slow), *how))
        if code is not None and not serves(code, order.sizes, values):
            code = _codes.find((_whole_key(order.key, powers, slow), *how)) if powers else None
        if code is not None:
            return code
    return None


def serves(c: Code, sizes: Sequence[Argument], values: Mapping[str, int]) -> bool:
    """Whether sizes are the multiples that a kernel takes them for."""
    for size, power in zip(sizes, c.multiples):
        number = size if isinstance(size, int) else values.get(size, 1)
        if number % power:
            return False
    return True


def remember(c: Code) -> None:
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
        code = new_code(body, order, exact, opt)
        code = codes.setdefault(code.symbol, code)
        code.address = code.address or len(codes)
        out.append(
            Kernel(code, tuple(order.buffers), tuple(order.sizes), tuple(order.params), body)
        )
    return out


def module_code(kernels: Iterable[Kernel]) -> bytes:
    """The machine code of kernels with all the math functions that they need."""
    codes = list({k.symbol: k.code for k in kernels}.values())
    return llvm.object_code(module_of(codes, alone=True).text(), codes[0].opt)


def known() -> list[Code]:
    """The kernels that a program, or the table, holds now."""
    return list(_living)


def new_code(body: Body, order: Canonical, exact: bool, opt: int) -> Code:
    if config.verify_kernels:
        checks.verify(body)
    parallel = isinstance(body[0], For) and body[0].kind == "parallel" if body else False
    code = Code("", body, exact, opt, parallel, order=order)
    code.symbol = symbol_of(code, (), code.quick)
    return code


def symbol_of(c: Code, powers: tuple[int, ...], quick: bool) -> str:
    key, exact, opt = _key(c, powers, quick)
    return "k_" + hexdigest(f"{objects.version()}\0{exact}\0{opt}\0{key}")[:24]


def as_user(given: Sequence[Argument], c: Code, user: Canonical) -> tuple[Argument, ...]:
    """What a body gives for the sizes of shared code, from what the body gives that `c` was made
    of: an equal one, over sizes of other names."""
    assert c.order is not None
    own = dict(zip(c.order.sizes, user.sizes, strict=True))
    return tuple([own[x] if isinstance(x, str) else x for x in given])


def not_found(codes: Iterable[Code], opt: int) -> list[Code]:
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
        _Form(symbol_of(c, powers, quick), powers, quick)
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

"""A small language for the runtime: a typed subset of Python that becomes machine code through
LLVM.

The call path, the allocator, the interpreter of compiled programs and the thread pool are written
in it, so they are readable, need no C compiler, and run without the Python interpreter::

    unit = Unit("example")
    PyDict_Size = unit.extern("PyDict_Size", i64, ptr)  # a C function, by its name in the process
    Node = layout("Node", next=ptr, value=i64)  # a struct
    total = unit.var("total", i64)  # zeroed global memory; the name is its address
    none = unit.cell("none", ptr, id(None))  # a word set when linking; the name is its value

    @unit.helper  # private and inlined, also into other units
    def bump(amount: i64) -> None:
        store_i64(total, 0, load_i64(total, 0) + amount)

    @unit.function  # exported: `length.address`; callable from Python too
    def length(node: ptr) -> i64:
        n = 0
        while node:
            n += 1
            bump(Node(node).value)
            node = Node(node).next
        return n

    unit.compile()  # links; done by the first `.address` or call as well

Types: `i8 i16 i32 i64 f32 f64 ptr`, and `i1` for truth values. A variable has the type of its first
assignment (or of its annotation `n: i32 = 0`). Integers widen by themselves (with sign); narrowing
is written as a cast `i32(x)`; `i64(p)` and `ptr(n)` turn pointers to numbers and back,
`bits_i64(f)` and `bits_f64(n)` keep the bits.

Expressions: `+ - * // % & | ^ ~ << >>` (`//` and `%` round down as in Python; `>>` keeps the sign;
`sdiv srem udiv urem lshr` are the machine's own), comparisons (signed; `ult(a, b)`, `ule(a, b)`
unsigned), `x in (A, B)`, `and or not` (short circuit, give `i1`), `x if c else y`, `min max abs` of
integers, `sqrt` of an f64. Pointer + integer counts bytes. `NULL` or `None` is the null pointer. A
string literal is the address of a constant C string. A function's name as a value is its address.

Memory: `load_i8 load_u8 load_i16 load_u16 load_i32 load_u32 load_i64 load_f32 load_f64 load_ptr (p,
byte_offset)`, (`u` widens to i64 without sign), `store_i8 store_i16 store_i32 store_i64 store_f32
store_f64 store_ptr (p, byte_offset, value)` (integer stores cut the value to their width),
`Layout(p).field`, `Layout.at(p).field` (address of the field), `sizeof(Layout)`,
`alloca(constant_bytes)` (16-byte aligned, lives until the function returns), `memcpy(to, from, n)`,
`memmove`, `memset(to, byte, n)`, `address(cell)`.

Atomics (sequentially consistent): `atomic_add(p, off, v)` and `atomic_xchg(p, off, v)` give the old
i64, `atomic_cas(p, off, expected, new)` says whether it stored, `atomic_load(p, off)`,
`atomic_store(p, off, v)`, `atomic_release(p, off, v)` (a store with release order only, for
unlocking); the same with `_i32` at the end for 32-bit words; `fence()`, `pause()` for spinning.

Statements: assignment (also `a, b = x, y`), `if while for-in-range break continue return pass`, and
`match` on integers (a jump table) with cases `case 1 | 2:`, `case Op.ADD:`, `case _:`.

`for i in apart(n)` says that no round reads or writes what another one writes: LLVM runs several at
once in vectors, and puts the helpers that the rounds call in their place. Where n is a constant
no more than vectors become code.

Calls: functions of this and other units, `unit.extern` functions, and pointers: `sig =
signature(i32, ptr, ptr)`, then `sig(pointer, a, b)`. Names from outside may be integers and floats
(also as attributes of a class or enum): they are constants. `likely(c)` and `unlikely(c)` lay out
code. No exceptions, no closures over variables, no objects.

`unit.over(suffix, item, names)` makes the functions of a unit once more, over other types: names
from outside, also those of types, mean something else there.

A unit is compiled once per machine: the object code is cached on disk under a hash of the sources
and constants, so a second process only links it.
"""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from calque.machine.code import diskcache, llvm, shipped, target
from calque.machine.code.digest import digest, hexdigest
from calque.machine.lang.reach import constants, reachable
from calque.machine.lang.types import (
    F32,
    F64,
    I1,
    I8,
    I16,
    I32,
    I64,
    PTR,
    Cell,
    Extern,
    Function,
    Intrinsic,
    LangError,
    Layout,
    Signature,
    Var,
    as_type,
    layout,
    signature,
)
from calque.machine.lazy import LazyModule
from calque.machine.once import making, once
from calque.machine.processors import wanted_threads
from calque.machine.state import process

if TYPE_CHECKING:  # for type checkers, functions of the language are functions over int and float
    i1: TypeAlias = int
    i8: TypeAlias = int
    i16: TypeAlias = int
    i32: TypeAlias = int
    i64: TypeAlias = int
    ptr: TypeAlias = int
    f32: TypeAlias = float
    f64: TypeAlias = float
    apart = range
else:
    i1, i8, i16, i32, i64, f32, f64, ptr = I1, I8, I16, I32, I64, F32, F64, PTR
    apart = Intrinsic("apart")

NULL: Any = Intrinsic("NULL")
(
    load_i8,
    load_u8,
    load_i16,
    load_u16,
    load_i32,
    load_u32,
    load_i64,
    load_f32,
    load_f64,
    load_ptr,
) = (
    Intrinsic(f"load_{kind}")
    for kind in ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "f32", "f64", "ptr")
)
store_i8, store_i16, store_i32, store_i64, store_f32, store_f64, store_ptr = (
    Intrinsic(f"store_{kind}") for kind in ("i8", "i16", "i32", "i64", "f32", "f64", "ptr")
)
atomic_add, atomic_xchg, atomic_cas, atomic_load, atomic_store, atomic_release = (
    Intrinsic(f"atomic_{kind}") for kind in ("add", "xchg", "cas", "load", "store", "release")
)
(
    atomic_add_i32,
    atomic_xchg_i32,
    atomic_cas_i32,
    atomic_load_i32,
    atomic_store_i32,
    atomic_release_i32,
) = (Intrinsic(f"atomic_{kind}_i32") for kind in ("add", "xchg", "cas", "load", "store", "release"))
sdiv, srem, udiv, urem, lshr, ult, ule = map(
    Intrinsic, ("sdiv", "srem", "udiv", "urem", "lshr", "ult", "ule")
)
alloca, address, sizeof, memcpy, memmove, memset = map(
    Intrinsic, ("alloca", "address", "sizeof", "memcpy", "memmove", "memset")
)
likely, unlikely, fence, pause, bits_i64, bits_f64, bits_i32, bits_f32, sqrt = map(
    Intrinsic,
    (
        "likely",
        "unlikely",
        "fence",
        "pause",
        "bits_i64",
        "bits_f64",
        "bits_i32",
        "bits_f32",
        "sqrt",
    ),
)


lang_emit: Any = LazyModule("calque.machine.lang.emit")
_LANGUAGE = os.path.dirname(os.path.abspath(__file__))
_FOLDER = os.path.dirname(_LANGUAGE)
_LEVEL, _PASSES = 2, "O2"  # of LLVM's code generation, and before it
_FEW_PASSES = "inline,sroa,instcombine,simplifycfg"
_LEADING_PASSES = "inline,sroa"


class Unit:
    """A module of the machine language: functions, globals and externs, compiled and linked
    together. The loops `apart` of its functions are over numbers of `item` bytes. One that is
    `plain` has loops that are as they are to be: few passes run over it. One that `leads` only
    calls what takes time: no time is spent on its instructions, either. What a `host` has takes
    the place of what other units export under the same names."""

    def __init__(
        self,
        name: str,
        item: int = 8,
        leads: bool = False,
        plain: bool = False,
        host: Unit | None = None,
    ) -> None:
        self.name = name
        self.item = item
        self.host = host
        self.leads, self.plain = leads, plain or leads
        self.passes = _LEADING_PASSES if leads else _FEW_PASSES if plain else _PASSES
        self.level = 0 if leads else _LEVEL
        self.functions: list[Function] = []
        self.globals: list[Var | Cell] = []
        self._addresses: dict[str, int] | None = None

    def function(self, python: Callable[..., Any]) -> Function:
        """Decorator: an exported function, one that has an address."""
        return self._add(python, exported=True)

    def called(self, python: Callable[..., Any]) -> Function:
        """Decorator: an exported function that LLVM never puts in the place of its calls."""
        function = self._add(python, exported=True)
        function.is_called = True
        return function

    def helper(self, python: Callable[..., Any]) -> Function:
        """Decorator: a private function, inlined where it is used, also in other units."""
        return self._add(python, exported=False)

    def written(
        self,
        name: str,
        python: Callable[..., Any],
        writer: Callable[[], str],
        names: Mapping[str, Any],
    ) -> Function:
        """An exported function with the parameters and types of another one, which returns nothing
        and whose body is text of LLVM, which is left as it is. Names of types may mean something
        else. The files beside the one that it is written in decide the text."""
        self._check_open()
        function = Function(self, python, True, name, names)
        function.writer = writer
        self.functions.append(function)
        self.passes = ""
        return function

    def _add(self, python: Callable[..., Any], exported: bool) -> Function:
        self._check_open()
        function = Function(self, python, exported)
        self.functions.append(function)
        return function

    def over(self, suffix: str, item: int, names: Mapping[str, Any]) -> tuple[Unit, dict[str, Any]]:
        """A unit of the same functions, in which some outside names mean something else (a type,
        words of memory, numbers, functions of other units), and all these meanings, its functions
        included, by the old names. To the names of its functions the suffix is added."""
        if self.globals:
            raise LangError(f"unit {self.name} has globals, which are there once")
        other = Unit(self.name + suffix, item, self.leads, self.plain, self.host)
        meanings = dict(names)
        for f in self.functions:
            copy = Function(other, f.python, f.exported, f.name + suffix, meanings)
            copy.is_called = f.is_called
            other.functions.append(copy)
            meanings[f.name] = copy
        return other, meanings

    def _check_open(self) -> None:
        if self._addresses is not None:
            raise LangError(f"unit {self.name} is already compiled")

    def extern(
        self, name: str, ret: Any, *args: Any, vararg: bool = False, address: int | None = None
    ) -> Extern:
        """A C function, by its name in the process or at a given address."""
        return Extern(name, signature(ret, *args, vararg=vararg), address)

    def var(self, name: str, type_: Any, count: int = 1) -> Any:
        """Zeroed global memory for `count` elements; in functions the name is the address."""
        self._check_open()
        variable = Var(self, name, as_type(type_) or I64, count)
        self.globals.append(variable)
        return variable

    def cell(self, name: str, type_: Any, value: int | Callable[[], int]) -> Any:
        """A global word that gets `value` when the unit is linked; in functions the name is the
        value."""
        self._check_open()
        cell = Cell(self, name, as_type(type_) or I64, value)
        self.globals.append(cell)
        return cell

    def ir(self) -> str:
        """The LLVM IR of the unit."""
        return lang_emit.emit_unit(self)

    def compile(self) -> Unit:
        """Compile, or find the object code in the cache, and link, with the units that this one
        calls. Idempotent."""
        if self._addresses is None:
            compile_together([self])
        return self

    def at_hand(self) -> bool:
        """Whether it can be used without LLVM: its code, if not that of units which it calls, is
        linked, on disk, or came with the package."""
        if self._addresses is not None:
            return True
        with making.taken(), target.making_for(None):
            key = self._known_key(reachable(self.functions))
            return llvm.is_made(key, self.level, self.passes)

    def _pending(self, known: dict[Unit, list[Any]]) -> dict[Unit, list[Any]]:
        """The units without addresses that this one needs, and itself behind them, with all that
        their functions need; those that are known already are left as they are."""
        if self._addresses is None and self not in known:
            needed = reachable(self.functions)
            for unit in dict.fromkeys(item.unit for item in self._outside(needed)):
                unit._pending(known)
            known[self] = needed
        return known

    def _link(self, needed: list[Any], code: bytes, ir_text: str) -> None:
        """Load the code; other threads may use all addresses that they see."""
        exports = [f.name for f in self.functions if f.exported] + [g.name for g in self.globals]
        imports = {name: resolve() for name, resolve in sorted(self._imports(needed).items())}
        addresses = llvm.link_for_ever(code, exports, imports, ir_text)
        for cell in self.globals:
            if isinstance(cell, Cell):
                cell.initialise(addresses[cell.name])
        self._addresses = addresses

    def image(self, level: str) -> tuple[str, bytes]:
        """What the code is known by in the pack of a level of processors, and the code."""
        return shipped.key_of(level, self.key(), self.level, self.passes), self.code()

    def code(self) -> bytes:
        """The code, which others link: an image where those are usable."""
        return llvm.code_of(self.key(), self.ir, self.level, self.passes)

    def address(self, name: str) -> int:
        """Where an exported function or a global lives."""
        addresses = self.compile()._addresses or {}
        if name not in addresses:
            raise LangError(f"unit {self.name} exports no {name}")
        return addresses[name]

    def _outside(self, needed: list[Any]) -> list[Any]:
        """What the code takes from other units."""
        host = [] if self.host is None else [*self.host.functions, *self.host.globals]
        instead: dict[str, Any] = {item.name: item for item in host}
        return [
            instead.get(item.name, item)
            for item in needed
            if isinstance(item, Function | Var | Cell)
            and item.unit is not self
            and (not isinstance(item, Function) or item.exported)
        ]

    def _imports(self, needed: list[Any]) -> dict[str, Callable[[], int]]:
        """How to find every symbol the code takes from outside."""
        found: dict[str, Callable[[], int]] = {
            item.name: item.resolve for item in needed if isinstance(item, Extern)
        }
        return found | {
            item.name: partial(getattr, item, "address") for item in self._outside(needed)
        }

    def key(self) -> str:
        """A hash of all that decides the code: sources of the language and of the functions, names,
        constants."""
        return self._key(reachable(self.functions))

    def _known_key(self, needed: list[Any]) -> str:
        """The key, found on disk by the state of our own files: to work it out takes longer than to
        load the code."""
        own = all(
            item.python.__code__.co_filename.startswith(_FOLDER)
            for item in needed
            if isinstance(item, Function)
        )
        if not own:
            return self._key(needed)
        state = f"{self.name}\0{state_of_files()}"
        known = diskcache.get(state, "unit")
        if known is not None:
            return known.decode()
        key = self._key(needed)
        diskcache.put(state, "unit", key.encode())
        return key

    def _key(self, needed: list[Any]) -> str:
        files = set(_beside(__file__))
        facts = [f"{self.name} {self.item}"]
        for item in [*needed, *self.globals]:
            if isinstance(item, Function):
                files.add(item.python.__code__.co_filename)
                code = item.python.__code__
                if item.writer is not None:
                    files.update(_beside(code.co_filename))
                facts.append(
                    f"{item.describe()} {code.co_firstlineno} {constants(item)}"
                    f" {code.co_code.hex()}"
                )
            else:
                facts.append(item.describe())
        facts += [_source_digest(name) for name in sorted(files)]
        return hexdigest("\n".join(facts))


# Units that other threads compile, what each needs, and where their code will be. A forked child
# has no such threads, and compiles what it needs itself.
_under_way: Final[list[tuple[dict[Unit, list[Any]], llvm.Codes]]] = process.container(
    "units that are being compiled", []
)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_under_way.clear)


def begin_together(units: Iterable[Unit]) -> None:
    """Let other threads compile units, with those that they call, while this one goes on; whoever
    asks for an address of one waits for all."""
    with making.taken(), target.making_for(None):  # they run in this process
        known = {unit: needed for pending, _ in _under_way for unit, needed in pending.items()}
        begun = len(known)
        for unit in units:
            unit._pending(known)
        pending = dict([*known.items()][begun:])
        if pending:
            wanted = [
                llvm.Wanted(u._known_key(needed), u.ir, u.level, u.passes)
                for u, needed in pending.items()
            ]
            _under_way.append((pending, llvm.Codes(wanted, wanted_threads())))


def compile_together(units: Iterable[Unit]) -> None:
    """Compile units side by side, with those that they call; none is compiled twice."""
    with making.taken(), target.making_for(None):
        begin_together(units)
        while _under_way:
            pending, codes = _under_way.pop(0)
            for (unit, needed), (code, text) in zip(pending.items(), codes.all(), strict=True):
                if unit._addresses is None:  # linking another one may have asked for it
                    unit._link(needed, code, text)


@once
def state_of_files() -> str:
    """What changes with every change of the files of this room, of Python and of NumPy."""
    marks = []
    for folder, _, names in os.walk(_FOLDER):
        for name in names:
            if name.endswith(".py"):
                state = os.stat(os.path.join(folder, name))
                marks.append(f"{folder}/{name} {state.st_size} {state.st_mtime_ns}")
    numpy = getattr(sys.modules.get("numpy"), "__version__", "")
    return "\n".join([*sorted(marks), _FOLDER, sys.version, numpy])


def _beside(path: str) -> list[str]:
    """The files of Python in the folder of one of them."""
    folder = os.path.dirname(os.path.abspath(path))
    return [os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".py")]


@once
def _source_digest(name: str) -> str:
    try:
        with open(name, "rb") as file:
            source = file.read()
    except OSError:
        source = repr(linecache.getlines(name)).encode()
    return digest(source).hex()


__all__ = [
    "NULL",
    "Cell",
    "Extern",
    "Function",
    "LangError",
    "Layout",
    "Signature",
    "Unit",
    "Var",
    "address",
    "alloca",
    "apart",
    "atomic_add",
    "atomic_add_i32",
    "atomic_cas",
    "atomic_cas_i32",
    "atomic_load",
    "atomic_load_i32",
    "atomic_release",
    "atomic_release_i32",
    "atomic_store",
    "atomic_store_i32",
    "atomic_xchg",
    "atomic_xchg_i32",
    "begin_together",
    "bits_f32",
    "bits_f64",
    "bits_i32",
    "bits_i64",
    "compile_together",
    "f32",
    "f64",
    "fence",
    "i1",
    "i8",
    "i16",
    "i32",
    "i64",
    "layout",
    "likely",
    "load_f32",
    "load_f64",
    "load_i8",
    "load_i16",
    "load_i32",
    "load_i64",
    "load_ptr",
    "load_u8",
    "load_u16",
    "load_u32",
    "lshr",
    "memcpy",
    "memmove",
    "memset",
    "pause",
    "ptr",
    "sdiv",
    "signature",
    "sizeof",
    "sqrt",
    "srem",
    "state_of_files",
    "store_f32",
    "store_f64",
    "store_i8",
    "store_i16",
    "store_i32",
    "store_i64",
    "store_ptr",
    "udiv",
    "ule",
    "ult",
    "unlikely",
    "urem",
]

"""The writer of one function: its text, where the next line goes, and the names of values, blocks
and memory.

Every expression is written once, in the outermost scope in which what it depends on is known:
interning is common-subexpression elimination and placement is loop-invariant code motion, so no
LLVM pass is needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from calque.machine.records import record
from calque.native.emit import scratch
from calque.native.emit.math_functions import MathFunction
from calque.native.emit.shared_loops import NAME, SharedLoop
from calque.native.loops.tree import Statement
from calque.native.scalars.expr import Buffer, Expr

NOTHING: Final[frozenset[Buffer]] = frozenset()
SharedFunction = MathFunction | SharedLoop  # what kernels share


@record
class CodeOptions:
    """``exact``: no multiplication and addition become one FMA. ``outline``: math functions are
    calls, to functions whose names end in ``tag``. ``avx512``: the processor has masked vectors
    (else tails go one by one). ``register_bytes``: of one of its registers. ``half``: it has
    conversions from and to half. ``indexed``: its instructions add an index to an address.
    ``pairs``: the bytes of a register in which it multiplies and adds pairs of 16 bits,
    0 if it does not. ``multiples``: what is known of sizes (`whole`). ``share_loops``: loops that
    carry many vectors are calls, too (`shared_loops`)."""

    exact: bool = False
    outline: bool = False
    avx512: bool = True
    register_bytes: int = 64
    half: bool = True
    indexed: bool = False
    pairs: int = 0
    tag: str = ""
    share_loops: bool = False
    multiples: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Scope:
    """Code that runs as one: a loop body, a side of a condition. ``block`` is the block that its
    next line belongs to.

    ``writes``: buffers stored somewhere inside, whose reads must not leave. ``barrier``: may not
    run although the code around it does, so reads must not leave; ``lazy``: nothing may. ``only``:
    a scalar condition under which alone it runs.
    """

    block: str
    writes: frozenset[Buffer] = NOTHING
    barrier: bool = False
    lazy: bool = False
    only: Expr | None = None
    lines: list[str] = field(default_factory=list)
    cache: dict[Any, str] = field(default_factory=dict)
    innermost_lazy: int = 0  # the depth of the last lazy scope up to this one, ...
    innermost_barrier: int = 0  # ... and of the last barrier


class Writer:
    """``out`` is the open scope that the next line goes to: the innermost one, but while an
    expression is written, whose own home it is."""

    def __init__(self, name: str, options: CodeOptions, mutable: frozenset[Buffer]) -> None:
        self.name = name
        self.options = options
        self.mutable = mutable  # buffers that are both read and written
        self.scopes = [Scope("entry")]
        self.out = self.scopes[0]
        self.count = 0
        self.bound: dict[str, str] = {}  # name -> SSA value
        self.where: dict[str, int] = {}  # name -> depth of the scope that knows it
        self.known: dict[Any, str] = {}  # what the open scopes have computed
        self.reading: dict[Buffer, list[Any]] = {}  # keys of what was read from mutable buffers
        self.declared: set[str] = set()
        self.shared: dict[str, SharedFunction] = {}  # symbol -> what is called
        self.math_calls = 0  # uses of math functions so far, called or in line
        self.pointers: dict[Buffer, str] = {}  # of the buffers among the arguments
        self.written: dict[int, tuple[Statement, frozenset[Buffer]]] = {}  # by the statement's id
        self._arrays: dict[Any, tuple[str, str]] = {}  # key -> name, type
        self._constants: dict[str, tuple[str, bytes]] = {}  # a buffer's name -> symbol, data
        # values that stand one behind the other in memory, where the last shared loop left them
        self.in_memory: dict[tuple[str, ...], str] = {}
        self.spare: set[str] = set()  # values that are written whether they are read or not
        self.sharing = False  # whether a loop is being written that kernels share
        self._zeros = 0  # words of zeros on the stack

    # -- lines and names ---------------------------------------------------------------------------

    def number(self) -> int:
        self.count += 1
        return self.count

    def put(self, line: str) -> None:
        self.out.lines.append(line)

    def new(self, rhs: str) -> str:
        """A new value, computed by ``rhs``."""
        self.count += 1
        name = f"%t{self.count}"
        self.out.lines.append(f" {name} = {rhs}")
        return name

    def bind(self, name: str, ssa: str) -> None:
        """Let ``name`` be known in the innermost scope."""
        self.bound[name], self.where[name] = ssa, len(self.scopes) - 1

    # -- scopes ------------------------------------------------------------------------------------

    def open(
        self,
        block: str,
        writes: frozenset[Buffer] = NOTHING,
        barrier: bool = False,
        lazy: bool = False,
        only: Expr | None = None,
    ) -> Scope:
        around, depth = self.scopes[-1], len(self.scopes)
        self.out = scope = Scope(block, writes, barrier, lazy, only)
        scope.innermost_lazy = depth if lazy else around.innermost_lazy
        scope.innermost_barrier = depth if barrier else around.innermost_barrier
        self.scopes.append(scope)
        return scope

    def close(self) -> Scope:
        """End the innermost scope, whose lines are the caller's to place; gives the one around
        it."""
        scope, known = self.scopes.pop(), self.known
        for key, v in scope.cache.items():
            if known.get(key) == v:
                del known[key]
        self.out = self.scopes[-1]
        return self.out

    def close_inline(self) -> None:
        """End the innermost scope; its lines follow those of the one around it."""
        inner = self.out
        outer = self.close()
        outer.lines += inner.lines
        outer.block = inner.block

    @contextmanager
    def at(self, scope: Scope) -> Iterator[None]:
        """Lines go to another open scope meanwhile."""
        before, self.out = self.out, scope
        yield
        self.out = before

    # -- placement ---------------------------------------------------------------------------------

    def depth(self, e: Expr) -> int:
        """The depth of the innermost scope that a name in ``e`` belongs to."""
        where, depth = self.where, 0
        for n in e.names:
            d = where[n]
            if d > depth:
                depth = d
        return depth

    def home(self, e: Expr) -> int:
        """The depth of the scope that the code of ``e`` belongs to."""
        where, innermost = self.where, self.scopes[-1]
        depth = innermost.innermost_lazy
        for n in e.names:
            d = where[n]
            if d > depth:
                depth = d
        if e.bufs:
            depth = max(depth, innermost.innermost_barrier)
            if not self.mutable.isdisjoint(e.bufs):
                for i in range(len(self.scopes) - 1, depth, -1):
                    if not self.scopes[i].writes.isdisjoint(e.bufs):
                        return i
        return depth

    def keep(self, key: Any, ssa: str) -> str:
        """Let a value be found by its key as long as the scope that lines go to now is open."""
        self.out.cache[key] = self.known[key] = ssa
        bufs = key[0].bufs
        if bufs:
            for buf in bufs & self.mutable:
                self.reading.setdefault(buf, []).append(key)
        return ssa

    def forget(self, bufs: frozenset[Buffer]) -> None:
        """Values read from these buffers are no longer what a read would give."""
        for buf in bufs & self.mutable:
            for key in self.reading.pop(buf, ()):
                self.known.pop(key, None)
                for scope in self.scopes:
                    scope.cache.pop(key, None)

    # -- memory of the function's own --------------------------------------------------------------

    def array(self, key: Any, t: str) -> str:
        """Memory of the function's own, known by a key."""
        found = self._arrays.get(key)
        if found is None:
            found = self._arrays[key] = (f"%a{len(self._arrays)}", t)
        return found[0]

    def constant(self, name: str, data: bytes) -> str:
        """Bytes of the program."""
        found = self._constants.get(name)
        if found is None:
            symbol = f"@const.{len(self._constants)}.{self.name}"
            found = self._constants[name] = (symbol, data)
        return found[0]

    def zeros(self, size: int) -> str:
        """Where reads of ``size`` bytes go that a guard forbids."""
        words = max(self._zeros, 1)
        while words * 8 < size:
            words *= 2
        self._zeros = words
        return "%dummy"

    # -- the whole ---------------------------------------------------------------------------------

    def _needed(self, lines: list[str]) -> list[str]:
        """The lines without spare values that nobody reads, the last ones first."""
        if not self.spare:
            return lines
        lines = "\n".join(lines).split("\n")
        uses = Counter(NAME.findall("\n".join(lines)))
        out = []
        for line in reversed(lines):
            name, is_value, rest = line[1:].partition(" = ")
            if is_value and uses[name] == 1 and name in self.spare:
                uses.subtract(NAME.findall(rest))
            else:
                out.append(line)
        return out[::-1]

    def text(self, head: str, end: str) -> str:
        """The function and its constants."""
        lines = []
        for symbol, data in self._constants.values():
            t, bytes_text = f"[{len(data)} x i8]", "".join([f"\\{b:02X}" for b in data])
            lines.append(f'{symbol} = private unnamed_addr constant {t} c"{bytes_text}", align 64')
        body = []
        if self._zeros:
            t = f"<{self._zeros} x i64>"
            body.append(f" %dummy = alloca {t}, align 64")
            body.append(f" store {t} zeroinitializer, ptr %dummy, align 64")
        body += [*self._needed(self.scopes[0].lines), f" {end}"]
        made = scratch.arrays(self._arrays.values())
        if made.taken:
            self.declared |= {*scratch.DECLARATIONS.values()}
        return "\n".join([*lines, f"{head} {{", scratch.around("\n".join(body), made), "}"])

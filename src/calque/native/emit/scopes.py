"""Where code goes: nested scopes with what each has computed, and names for values and blocks.

Every expression is emitted once, in the outermost scope in which what it depends on is known:
interning is common-subexpression elimination and placement is loop-invariant code motion, so no
LLVM pass is needed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from calque.native.emit.types import mangled
from calque.native.scalars.expr import Buffer, Expr

NOTHING: Final[frozenset[Buffer]] = frozenset()


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


class Scopes:
    """The stack of open scopes of the function being written."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = []
        self.count = 0
        self.declared: set[str] = set()
        self.bound: dict[str, str] = {}  # name -> SSA value
        self.where: dict[str, int] = {}  # name -> depth of the scope that knows it
        self.mutable: frozenset[Buffer] = NOTHING

    def begin(self, mutable: frozenset[Buffer]) -> None:
        self.scopes = [Scope("entry")]
        self.bound, self.where, self.mutable = {}, {}, mutable

    def number(self) -> int:
        self.count += 1
        return self.count

    def put(self, line: str) -> None:
        self.scopes[-1].lines.append(line)

    def new(self, rhs: str, scope: Scope | None = None) -> str:
        """A new value, computed by ``rhs``."""
        self.count += 1
        (scope or self.scopes[-1]).lines.append(f" %t{self.count} = {rhs}")
        return f"%t{self.count}"

    def bind(self, name: str, ssa: str) -> None:
        self.bound[name], self.where[name] = ssa, len(self.scopes) - 1

    def intrinsic(self, name: str, suffix: str, result: str, *args: tuple[str, str]) -> str:
        """The call of an LLVM intrinsic on (type, value) operands."""
        full = f"@llvm.{name}.{suffix}" if suffix else f"@llvm.{name}"
        self.declared.add(f"declare {result} {full}({', '.join([t for t, _ in args])})")
        return f"call {result} {full}({', '.join([f'{t} {v}' for t, v in args])})"

    def unary(self, name: str, t: str, width: int, *values: str) -> str:
        """An intrinsic whose operands and result have one type."""
        full = f"<{width} x {t}>" if width else t
        return self.intrinsic(name, mangled(t, width), full, *[(full, v) for v in values])

    # -- placement ---------------------------------------------------------------------------------

    def home(self, e: Expr) -> int:
        """The depth of the scope that the code of ``e`` belongs to."""
        where = self.where
        depth = 0
        for n in e.names:
            d = where[n]
            if d > depth:
                depth = d
        pinned = bool(e.bufs)
        mutable = pinned and not self.mutable.isdisjoint(e.bufs)
        for i in range(len(self.scopes) - 1, depth, -1):
            s = self.scopes[i]
            if s.lazy or (pinned and s.barrier) or (mutable and not s.writes.isdisjoint(e.bufs)):
                return i
        return depth

    def find(self, key: Any, depth: int) -> str | None:
        """What an open scope at ``depth`` or around it has computed already."""
        for i in range(depth, -1, -1):
            v = self.scopes[i].cache.get(key)
            if v is not None:
                return v
        return None

    def forget(self, bufs: frozenset[Buffer]) -> None:
        """Values read from these buffers are no longer what a read would give."""
        if bufs and not self.mutable.isdisjoint(bufs):
            for s in self.scopes:
                stale = [k for k in s.cache if not bufs.isdisjoint(k[0].bufs)]
                for k in stale:
                    del s.cache[k]

    # -- control flow ------------------------------------------------------------------------------

    def open(
        self,
        block: str,
        writes: frozenset[Buffer] = NOTHING,
        barrier: bool = False,
        lazy: bool = False,
    ) -> Scope:
        self.scopes.append(Scope(block, writes, barrier, lazy))
        return self.scopes[-1]

    def close(self, into: Scope) -> Scope:
        """End the innermost scope; its code follows that of ``into``."""
        s = self.scopes.pop()
        assert self.scopes[-1] is into
        into.lines += s.lines
        into.block = s.block
        return s

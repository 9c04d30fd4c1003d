"""`return`, `break` and `continue` inside branches and loops, written with flags.

What follows a branch that jumps moves into the other branch where it always jumps (`if p: return a`
then `rest` becomes `if p: ... else: rest`), and is guarded by the flags otherwise."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Final

from calque.control_flow.building import (
    any_of,
    attribute,
    call,
    located,
    name,
    none_of,
    set_flag,
    thunk,
)
from calque.control_flow.names import contains, own_nodes

RESULT: Final = "_cq_result"
RETURNED: Final = "_cq_returned"
_LOOPS = (ast.For, ast.While)
_BRANCHING = (ast.If, ast.For, ast.While)
Body = list[ast.stmt]


class Finally(Exception):
    """A `return` inside `finally`, which flags cannot express."""


class JumpFlags:
    """The flags of one loop."""

    def __init__(self, number: int) -> None:
        self.broken, self.continued = f"_cq_broken_{number}", f"_cq_continued_{number}"


def without_jumps(body: Body, at: ast.stmt) -> Body:
    """The body of a function whose only `return` is at its end."""
    lowering = Lowering(
        any(contains([s], ast.Return) for s in own_nodes(body) if isinstance(s, _BRANCHING))
    )
    ends = always_jumps(body)
    new = lowering.block(body, None)
    if lowering.returns:
        result: ast.expr = name(RESULT)
        if not ends:
            last = call(
                attribute("_cq_scope", "result"), [thunk(name(RETURNED)), thunk(name(RESULT))]
            )
            result = last
        new = [set_flag(RETURNED, False), *new, ast.Return(result)]
        for n in new:
            located(n, at)
    return Unread(new).visited()


class Lowering:
    """Rewrites blocks of one function."""

    def __init__(self, returns: bool) -> None:
        self.returns = returns
        self.loops = 0

    def block(self, body: Sequence[ast.stmt], loop: JumpFlags | None) -> Body:
        out: Body = []
        for k, s in enumerate(body):
            rest = list(body[k + 1 :])
            if isinstance(s, (ast.Return, ast.Break, ast.Continue)):
                return out + self.jump(s, loop)
            kinds = escaping(s)
            if not self.returns:
                kinds.discard("return")
            if not kinds:
                out += self.inside(s, loop)
                continue
            if isinstance(s, ast.If):
                rest = _absorbed(s, rest)
            out += self.inside(s, loop)
            return out + (self.guarded(s, kinds, rest, loop) if rest else [])
        return out

    def jump(self, s: ast.stmt, loop: JumpFlags | None) -> Body:
        if isinstance(s, ast.Return):
            if not self.returns:
                return [s]
            value = s.value or ast.Constant(None)
            new: Body = [ast.Assign([name(RESULT, ast.Store())], value), set_flag(RETURNED, True)]
        else:
            assert loop is not None
            new = [set_flag(loop.broken if isinstance(s, ast.Break) else loop.continued, True)]
        return [located(n, s) for n in new]

    def guarded(self, s: ast.stmt, kinds: set[str], rest: Body, loop: JumpFlags | None) -> Body:
        flags = _flags(kinds, loop)
        only_return = kinds == {"return"}
        other: Body = [set_flag(RETURNED, True)] if only_return else []
        return [located(ast.If(none_of(flags), self.block(rest, loop), other), rest[0])]

    def inside(self, s: ast.stmt, loop: JumpFlags | None) -> Body:
        """A statement with its own blocks rewritten."""
        if isinstance(s, _LOOPS):
            return self.loop(s, loop)
        if isinstance(s, ast.Try):
            return [self.trying(s, loop)]
        if isinstance(s, (ast.If, ast.With)):
            s.body = self.block(s.body, loop)
            if isinstance(s, ast.If):
                s.orelse = self.block(s.orelse, loop)
        elif isinstance(s, ast.Match):
            for case in s.cases:
                case.body = self.block(case.body, loop)
        return [s]

    def trying(self, s: ast.Try, loop: JumpFlags | None) -> ast.Try:
        ignored = set() if self.returns else {"return"}
        if {k for x in s.finalbody for k in escaping(x)} - ignored:
            raise Finally(s.finalbody[0].lineno)
        kinds = {k for x in s.body for k in escaping(x)} - ignored
        s.body = self.block(s.body, loop)
        for handler in s.handlers:
            handler.body = self.block(handler.body, loop)
        s.orelse = (
            self.guarded(s, kinds, s.orelse, loop)
            if kinds and s.orelse
            else self.block(s.orelse, loop)
        )
        s.finalbody = self.block(s.finalbody, loop)
        return s

    def loop(self, s: ast.For | ast.While, around: JumpFlags | None) -> Body:
        self.loops += 1
        own = JumpFlags(self.loops)
        if isinstance(s, ast.While) and contains([s.test], ast.NamedExpr):
            _test_into_body(s)
        kinds = {k for x in s.body for k in escaping(x)}
        orelse, s.orelse = s.orelse, []
        s.body = self.block(s.body, own)
        out: Body = []
        stops = [own.broken] if "break" in kinds else []
        if "return" in kinds and self.returns:
            stops.append(RETURNED)
        if "continue" in kinds:
            s.body.insert(0, located(set_flag(own.continued, False), s))
        if "break" in kinds:
            out.append(located(set_flag(own.broken, False), s))
        _stop_on(s, stops)
        out.append(s)
        if orelse:
            body = self.block(orelse, around)
            out += [located(ast.If(none_of(stops), body, []), orelse[0])] if stops else body
        return out


def _absorbed(s: ast.If, rest: Body) -> Body:
    """Move what follows into the branch that goes on; what remains to be guarded."""
    if not rest:
        return []
    body, orelse = always_jumps(s.body), always_jumps(s.orelse)
    if body and not orelse:
        s.orelse = s.orelse + rest
    elif orelse and not body:
        s.body = s.body + rest
    elif not body:
        return rest
    return []


def _flags(kinds: set[str], loop: JumpFlags | None) -> list[str]:
    flags = [RETURNED] if "return" in kinds else []
    if loop is not None:
        flags += [loop.broken] if "break" in kinds else []
        flags += [loop.continued] if "continue" in kinds else []
    return flags


def _stop_on(s: ast.For | ast.While, stops: list[str]) -> None:
    if isinstance(s, ast.While):
        if stops:
            s.test = located(ast.BoolOp(ast.And(), [none_of(stops), s.test]), s.test)
    else:
        s.stop = located(any_of(stops), s) if stops else None  # type: ignore[attr-defined]


def _test_into_body(s: ast.While) -> None:
    """`while test: body` as `while True: if not test: break; body`, so that `:=` in the test binds
    where it stands."""
    leave: Body = [*s.orelse, located(ast.Break(), s)]
    first = located(ast.If(ast.UnaryOp(ast.Not(), s.test), leave, []), s.test)
    s.test, s.orelse, s.body = located(ast.Constant(True), s.test), [], [first, *s.body]


# ---------------------------------------------------------------- what jumps


def escaping(s: ast.AST) -> set[str]:
    """The kinds of jumps that leave a statement."""
    if isinstance(s, ast.Return):
        return {"return"}
    if isinstance(s, ast.Break):
        return {"break"}
    if isinstance(s, ast.Continue):
        return {"continue"}
    if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
        return set()
    if isinstance(s, _LOOPS):
        inner = {k for x in s.body for k in escaping(x)} & {"return"}
        return inner | {k for x in s.orelse for k in escaping(x)}
    return {k for x in ast.iter_child_nodes(s) for k in escaping(x)}


def always_jumps(body: Sequence[ast.stmt]) -> bool:
    """Whether control never reaches the end of the block."""
    for s in body:
        if isinstance(s, (ast.Return, ast.Break, ast.Continue, ast.Raise)):
            return True
        if isinstance(s, ast.If) and s.orelse and always_jumps(s.body) and always_jumps(s.orelse):
            return True
        if isinstance(s, ast.With) and always_jumps(s.body):
            return False  # a context may swallow exceptions
    return False


class Unread(ast.NodeTransformer):
    """Drops flags that are set and never read."""

    def __init__(self, body: Body) -> None:
        self.body = body
        nodes = [n for s in body for n in ast.walk(s)]
        stops = [stop for s in nodes if (stop := getattr(s, "stop", None)) is not None]
        nodes += [n for stop in stops for n in ast.walk(stop)]
        self.read = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}

    def visited(self) -> Body:
        return self.statements(self.body)

    def statements(self, body: Body) -> Body:
        return [s for s in body if not self._drops(self.visit(s))] or [located(ast.Pass(), body[0])]

    def _drops(self, s: ast.AST) -> bool:
        if not isinstance(s, ast.Assign) or not isinstance(s.targets[0], ast.Name):
            return False
        flag = s.targets[0].id
        return flag.startswith("_cq_") and flag != RESULT and flag not in self.read

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list) and block:
                setattr(node, field, self.statements(block))
        for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            self.generic_visit(part)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node

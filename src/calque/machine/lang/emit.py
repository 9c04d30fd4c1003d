"""From the syntax tree of a machine function to LLVM IR: statements and the module around them."""

from __future__ import annotations

import ast
import re
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from calque.machine.code import target
from calque.machine.lang.expressions import Expressions, TypedOperand
from calque.machine.lang.reach import reachable
from calque.machine.lang.types import (
    I1,
    I64,
    TYPES,
    Cell,
    Extern,
    Function,
    LangError,
    Signature,
    Var,
)

if TYPE_CHECKING:
    from calque.machine.lang.unit import Unit


_VECTOR_BYTES: Final = 32

# ---- the module ----


def emit_unit(unit: Unit) -> str:
    """The LLVM IR of all functions of a unit, with private copies of the helpers it takes from
    other units."""
    items = reachable(unit.functions)
    module = ModuleParts(unit.plain)
    for variable in unit.globals:
        body = (
            variable.type.ir if variable.count == 1 else f"[{variable.count} x {variable.type.ir}]"
        )
        module.heads.append(
            f"@{variable.name} = global {body} zeroinitializer, align"
            f" {16 if variable.count > 1 else 8}"
        )
    for item in items:
        if isinstance(item, Var | Cell) and item.unit is not unit:
            module.heads.append(f"@{item.name} = external global {item.type.ir}")
        elif isinstance(item, Extern) or (
            isinstance(item, Function) and item.unit is not unit and item.exported
        ):
            module.declare(item.name, item.signature)
    for item in items:
        if isinstance(item, Function) and (item.unit is unit or not item.exported):
            module.bodies.append(function_text(item, module))
    return module.text()


def function_text(function: Function, module: ModuleParts) -> str:
    """The `define` of a function."""
    if function.writer is None:
        return FunctionEmitter(function, module).emit()
    given = zip(function.params, function.signature.args, strict=True)
    params = ", ".join(f"{t.ir} %{n}" for n, t in given)
    head = f"define void @{function.name}({params}) nounwind {{"
    return "\n".join([head, "entry:", function.writer(), "}"])


class ModuleParts:
    """The pieces of a module while it grows. Helpers take the place of their calls where LLVM is
    not asked whether that pays."""

    def __init__(self, replaces_calls: bool = False) -> None:
        self.replaces_calls = replaces_calls
        self.heads: list[str] = []
        self.bodies: list[str] = []
        self.declared: dict[str, str] = {}
        self.metadata: list[str] = []
        self.strings: dict[bytes, str] = {}

    def declare(self, name: str, sig: Signature) -> None:
        """Declare an outside function once."""
        args = ", ".join([a.ir for a in sig.args] + (["..."] if sig.vararg else []))
        self.declare_ir(name, f"declare {sig.ir_ret} @{name}({args})")

    def declare_ir(self, name: str, line: str) -> None:
        if self.declared.setdefault(name, line) != line:
            raise LangError(
                f"{name} is declared with two signatures: {self.declared[name]} and {line}"
            )

    def mark(self, line: str) -> str:
        """The name of a node of metadata; `@` in its text is that name."""
        name = f"!{len(self.metadata)}"
        self.metadata.append(f"{name} = distinct {line.replace('@', name)}")
        return name

    def string(self, text: str) -> str:
        """The global that holds a constant C string."""
        data = text.encode() + b"\0"
        if data not in self.strings:
            self.strings[data] = f"@.str.{len(self.strings)}"
        return self.strings[data]

    def text(self) -> str:
        strings = []
        for data, name in self.strings.items():
            content = "".join(f"\\{byte:02X}" for byte in data)
            strings.append(
                f'{name} = private unnamed_addr constant [{len(data)} x i8] c"{content}"'
            )
        bodies = self.bodies
        if self.metadata or self.replaces_calls:  # a loop with a call is no loop over vectors
            bodies = [
                re.sub(r"^(define internal .*) \{$", r"\1 alwaysinline {", b, count=1, flags=re.M)
                for b in bodies
            ]
        return (
            "\n".join([*self.heads, *strings, *self.declared.values(), *bodies, *self.metadata])
            + "\n"
        )


# ---- one function ----


class FunctionEmitter(Expressions):
    """Statements of one function; expressions come from the base class."""

    def __init__(self, function: Function, module: ModuleParts) -> None:
        super().__init__(function, module)
        self.loops: list[tuple[str, str]] = []

    def emit(self) -> str:
        """The `define` of the function."""
        sig = self.function.signature
        params = ", ".join(
            f"{t.ir} %arg.{n}" for n, t in zip(self.function.params, sig.args, strict=True)
        )
        for name, type_ in zip(self.function.params, sig.args, strict=True):
            self.entry.append(f"%v.{name} = alloca {type_.ir}")
            self.entry.append(f"store {type_.ir} %arg.{name}, ptr %v.{name}")
            self.variables[name] = type_
        self.label("body")
        self.block(self.tree.body)
        if not self.closed:
            if sig.ret is not None:
                raise self.error(self.tree, f"{self.function.name} may end without return")
            self.terminate("ret void")
        linkage = "" if self.function.exported else "internal "
        kind = " noinline" * self.function.is_called
        head = f"define {linkage}{sig.ir_ret} @{self.function.name}({params}) nounwind{kind} {{"
        return "\n".join([head, "entry:", *self.entry, "br label %body", *self.lines, "}"])

    def block(self, body: list[ast.stmt]) -> None:
        for statement in body:
            if self.closed:  # Python allows dead code; the machine needs none of it
                return
            method = getattr(self, f"stmt_{type(statement).__name__}", None)
            if method is None:
                raise self.error(
                    statement, f"no {type(statement).__name__} in the machine language"
                )
            method(statement)

    def stmt_Pass(self, node: ast.Pass) -> None:
        pass

    def stmt_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return
        if not isinstance(node.value, ast.Call):
            raise self.error(node, "an expression whose value nobody uses")
        self.expr_Call(node.value)

    def stmt_Return(self, node: ast.Return) -> None:
        ret = self.function.signature.ret
        if ret is None:
            if node.value is not None:
                raise self.error(node, f"{self.function.name} returns None")
            self.terminate("ret void")
            return
        if node.value is None:
            raise self.error(node, f"{self.function.name} returns {ret}")
        value = self.coerce(self.expr(node.value), ret, node)
        self.terminate(f"ret {ret.ir} {value.text}")

    # -- assignment --

    def stmt_Assign(self, node: ast.Assign) -> None:
        if len(node.targets) != 1:
            raise self.error(node, "one target per assignment")
        target = node.targets[0]
        if isinstance(target, ast.Tuple):
            if not isinstance(node.value, ast.Tuple) or len(node.value.elts) != len(target.elts):
                raise self.error(node, "a, b = x, y needs as many values as names")
            values = [self.expr(e) for e in node.value.elts]
            for element, value in zip(target.elts, values, strict=True):
                self.assign(element, value)
            return
        self.assign(target, self.expr(node.value))

    def stmt_AnnAssign(self, node: ast.AnnAssign) -> None:
        note = ast.unparse(node.annotation).strip("'\"")
        if note not in TYPES or node.value is None or not isinstance(node.target, ast.Name):
            raise self.error(
                node, f"expected `name: type = value` with a type of {', '.join(TYPES)}"
            )
        self.assign(node.target, self.coerce(self.expr(node.value), TYPES[note], node))

    def stmt_AugAssign(self, node: ast.AugAssign) -> None:
        target = node.target
        load: ast.expr
        if isinstance(target, ast.Name):
            load = ast.Name(id=target.id, ctx=ast.Load())
        elif isinstance(target, ast.Attribute):
            load = ast.Attribute(value=target.value, attr=target.attr, ctx=ast.Load())
        else:
            raise self.error(node, "can assign to names and fields only")
        ast.copy_location(load, node)
        operation = ast.copy_location(ast.BinOp(left=load, op=node.op, right=node.value), node)
        self.assign(target, self.expr(operation))

    def assign(self, target: ast.expr, value: TypedOperand) -> None:
        """Store into a variable or a struct field."""
        if isinstance(target, ast.Attribute):
            place, type_ = self.field(target)
            self.op(f"store {type_.ir} {self.coerce(value, type_, target).text}, ptr {place}")
            return
        if not isinstance(target, ast.Name):
            raise self.error(target, "can assign to names and fields only")
        if value.type is None:
            raise self.error(target, f"{target.id} would have no value")
        type_ = self.variables.get(target.id) or self.declare_variable(target.id, value.type)
        self.op(f"store {type_.ir} {self.coerce(value, type_, target).text}, ptr %v.{target.id}")

    # -- control --

    def stmt_If(self, node: ast.If) -> None:
        then, other, end = self.fresh("then"), self.fresh("else"), self.fresh("endif")
        self.branch(node.test, then, other if node.orelse else end)
        self.label(then)
        self.block(node.body)
        self.jump(end)
        if node.orelse:
            self.label(other)
            self.block(node.orelse)
            self.jump(end)
        self.label(end)

    def stmt_While(self, node: ast.While) -> None:
        if node.orelse:
            raise self.error(node, "no else on loops")
        head, body, end = self.fresh("while"), self.fresh("do"), self.fresh("done")
        self.jump(head)
        self.label(head)
        if isinstance(node.test, ast.Constant) and node.test.value:
            self.jump(body)
        else:
            self.branch(node.test, body, end)
        self.label(body)
        self.loops.append((head, end))
        self.block(node.body)
        self.loops.pop()
        self.jump(head)
        self.label(end)

    def stmt_For(self, node: ast.For) -> None:
        call = node.iter
        kind = (
            call.func.id if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) else ""
        )
        is_apart = kind == "apart"
        is_range = is_apart or kind == "range"
        if not is_range or not isinstance(node.target, ast.Name) or node.orelse:
            raise self.error(node, "loops are `for name in range(...)` without else")
        assert isinstance(call, ast.Call)
        given = [self.expr(a) for a in call.args]
        bounds = [self.coerce(v, I64, node) for v in given]
        start, stop = (
            (TypedOperand(I64, "0"), bounds[0]) if len(bounds) == 1 else (bounds[0], bounds[1])
        )
        step = given[2].const if len(given) == 3 else 1
        if not step:
            raise self.error(node, "the step of a range must be a constant other than 0")
        counter = self.fresh("counter")
        self.entry.append(f"%{counter} = alloca i64")
        self.op(f"store i64 {start.text}, ptr %{counter}")
        head, body, again, end = (
            self.fresh("for"),
            self.fresh("do"),
            self.fresh("next"),
            self.fresh("done"),
        )
        self.jump(head)
        self.label(head)
        now = self.let(I64, f"load i64, ptr %{counter}")
        test = self.let(I1, f"icmp {'slt' if step > 0 else 'sgt'} i64 {now.text}, {stop.text}")
        self.used.update((body, end))
        self.terminate(f"br i1 {test.text}, label %{body}, label %{end}")
        self.label(body)
        self.assign(node.target, now)
        self.loops.append((again, end))
        around, back = self.group, ""
        if is_apart:
            self.group = self.module.mark("!{}")
            known = all(v.const is not None for v in given)
            back = f", !llvm.loop {self.loop_apart(self.group, known)}"
        self.block(node.body)
        self.group = around
        self.loops.pop()
        self.jump(again)
        self.label(again)
        current = self.let(I64, f"load i64, ptr %{counter}")
        following = self.let(I64, f"add nsw i64 {current.text}, {step}")
        self.op(f"store i64 {following.text}, ptr %{counter}")
        self.terminate(f"br label %{head}{back}")
        self.label(end)

    def loop_apart(self, group: str, known: bool) -> str:
        """The metadata of a loop whose rounds may run at once: as many as a register holds numbers.
        Where their number is `known` they are not written one behind the other first."""
        lanes = min(target.describe().vector_bytes, _VECTOR_BYTES) // self.function.unit.item
        parts = [
            self.module.mark(f'!{{!"llvm.loop.{what}}}')
            for what in (
                f'parallel_accesses", {group}',
                'vectorize.enable", i1 true',
                f'vectorize.width", i32 {lanes}',
                'interleave.count", i32 1',
                *['unroll.disable"'] * known,
            )
        ]
        return self.module.mark(f"!{{@, {', '.join(parts)}}}")

    def stmt_Break(self, node: ast.Break) -> None:
        self.jump(self.loops[-1][1])

    def stmt_Continue(self, node: ast.Continue) -> None:
        self.jump(self.loops[-1][0])

    def stmt_Match(self, node: ast.Match) -> None:
        """A switch over integer constants."""
        subject = self.expr(node.subject)
        if subject.type is None or not subject.type.is_int:
            raise self.error(node, "match works on integers")
        end, default = self.fresh("endmatch"), ""
        labels = [self.fresh("case") for _ in node.cases]
        table: dict[int, str] = {}
        for case, label in zip(node.cases, labels, strict=True):
            keys = self.case_keys(case)
            if keys is None:
                default = label
            for key in keys or ():
                if table.setdefault(key, label) != label:
                    raise self.error(case.pattern, f"case {key} stands twice")
        rows = " ".join(f"{subject.type.ir} {key}, label %{label}" for key, label in table.items())
        self.terminate(
            f"switch {subject.type.ir} {subject.text}, label %{default or end} [ {rows} ]"
        )
        self.used.update([*table.values(), default or end])
        for case, label in zip(node.cases, labels, strict=True):
            self.label(label)
            self.block(case.body)
            self.jump(end)
        self.label(end)

    def case_keys(self, case: ast.match_case) -> list[int] | None:
        """The integers of one case; None for `case _`."""
        pattern = case.pattern
        if case.guard is not None:
            raise self.error(pattern, "no guards on cases")
        if isinstance(pattern, ast.MatchAs) and pattern.pattern is None and pattern.name is None:
            return None
        parts = pattern.patterns if isinstance(pattern, ast.MatchOr) else [pattern]
        keys = []
        for part in parts:
            value = self.expr(part.value) if isinstance(part, ast.MatchValue) else None
            if value is None or not isinstance(value.const, int | IntEnum):
                raise self.error(pattern, "a case is an integer constant, `A | B` of them, or _")
            keys.append(int(value.const))
        return keys

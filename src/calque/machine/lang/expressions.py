"""Expressions of the machine language, typed and emitted as LLVM IR."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from calque.machine.lang.intrinsics import INTRINSICS
from calque.machine.lang.types import (
    F64,
    I1,
    I64,
    PTR,
    Cell,
    Extern,
    Function,
    Intrinsic,
    LangError,
    Layout,
    Signature,
    Type,
    Var,
)
from calque.machine.records import record

if TYPE_CHECKING:
    from calque.machine.lang.emit import ModuleParts

COMPARE: Final = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
}
INTEGER: Final = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.LShift: "shl",
    ast.RShift: "ashr",
}
FLOAT: Final = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"}


@record
class TypedOperand:
    """A typed operand; `const` is its Python value when it is a literal that takes the type of its
    surroundings."""

    type: Type | None
    text: str
    const: Any = None


class Expressions:
    """The state of one function under construction, and its expressions."""

    def __init__(self, function: Function, module: ModuleParts) -> None:
        self.function = function
        self.module = module
        self.tree, self.file, self.first_line = function.tree()
        self.entry: list[str] = []
        self.lines: list[str] = []
        self.variables: dict[str, Type] = {}
        self.closed = False
        self.used: set[str] = set()
        self.counter = 0
        self.group = ""  # of the accesses to memory in a loop whose rounds may run at once

    def error(self, node: ast.AST, message: str) -> LangError:
        line = self.first_line + getattr(node, "lineno", 1) - 1
        return LangError(f"{self.file}:{line}: in {self.function.name}: {message}")

    # -- emission --

    def fresh(self, stem: str) -> str:
        self.counter += 1
        return f"{stem}.{self.counter}"

    def op(self, line: str) -> None:
        self.lines.append(line)

    def let(self, type_: Type, line: str) -> TypedOperand:
        """A new value."""
        self.counter += 1
        self.lines.append(f"%t{self.counter} = {line}")
        return TypedOperand(type_, f"%t{self.counter}")

    def access(self) -> str:
        """What is said of an access to memory."""
        return f", !llvm.access.group {self.group}" if self.group else ""

    def nothing(self) -> TypedOperand:
        """The value of a call that gives none."""
        return TypedOperand(None, "")

    def pointer(self, text: str) -> TypedOperand:
        return TypedOperand(PTR, text)

    def label(self, name: str) -> None:
        """Start a block; one nobody jumps to stays closed."""
        self.lines.append(f"{name}:")
        self.closed = name != "body" and name not in self.used
        if self.closed:
            self.lines.append("unreachable")

    def terminate(self, line: str) -> None:
        self.lines.append(line)
        self.closed = True

    def jump(self, target: str) -> None:
        if not self.closed:
            self.used.add(target)
            self.terminate(f"br label %{target}")

    def branch(self, test: ast.expr, then: str, other: str) -> None:
        """Jump on a condition, without computing short-circuit values."""
        if isinstance(test, ast.BoolOp):
            *first, last = test.values
            for part in first:
                middle = self.fresh("or" if isinstance(test.op, ast.Or) else "and")
                if isinstance(test.op, ast.Or):
                    self.branch(part, then, middle)
                else:
                    self.branch(part, middle, other)
                self.label(middle)
            self.branch(last, then, other)
        elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            self.branch(test.operand, other, then)
        else:
            value = self.truth(self.expr(test), test)
            self.used.update((then, other))
            self.terminate(f"br i1 {value.text}, label %{then}, label %{other}")

    def declare_variable(self, name: str, type_: Type) -> Type:
        self.variables[name] = type_
        self.entry.append(f"%v.{name} = alloca {type_.ir}")
        return type_

    # -- conversion --

    def literal(self, const: Any, type_: Type, node: ast.AST) -> TypedOperand:
        """A constant as a value of a type."""
        if type_ is I1:
            return TypedOperand(I1, "true" if const else "false")
        if type_.is_int and isinstance(const, int):
            bits = 8 * type_.size
            if not -(1 << (bits - 1)) <= const < (1 << bits):
                raise self.error(node, f"{const} does not fit into {type_}")
            const = const - (1 << bits) if const >= 1 << (bits - 1) else const
            return TypedOperand(type_, str(const))
        if type_.is_float:
            as_double = float(const)
            if type_.size == 4:
                as_double = type_.ctype(as_double).value
            return TypedOperand(type_, f"0x{_double_bits(as_double):016X}")
        if type_ is PTR and const == 0:
            return TypedOperand(PTR, "null")
        raise self.error(node, f"{const!r} is no {type_}")

    def coerce(self, value: TypedOperand, type_: Type, node: ast.AST) -> TypedOperand:
        """Implicit conversion: literals fit themselves in, integers widen; the rest is an error."""
        if value.const is not None:
            return self.literal(value.const, type_, node)
        if value.type is type_:
            return value
        if (
            value.type is not None
            and value.type.is_int
            and type_.is_int
            and value.type.size <= type_.size != 1
        ):
            if value.type is I1:
                return self.let(type_, f"zext i1 {value.text} to {type_.ir}")
            if value.type.size < type_.size:
                return self.let(type_, f"sext {value.type.ir} {value.text} to {type_.ir}")
        raise self.error(
            node, f"expected {type_}, got {value.type}; write a cast {type_}(...) if that is meant"
        )

    def cast(self, value: TypedOperand, type_: Type, node: ast.AST) -> TypedOperand:
        """An explicit conversion."""
        source = value.type
        if value.const is not None and not (type_ is PTR and value.const):
            const = int(value.const) if type_.is_int else value.const
            return self.literal(const, type_, node)
        if source is None:
            raise self.error(node, "nothing to cast")
        if type_ is I1:
            return self.truth(value, node)
        if source is type_:
            return value
        if source is PTR and type_.is_int:
            return self.cast(self.let(I64, f"ptrtoint ptr {value.text} to i64"), type_, node)
        if type_ is PTR:
            wide = self.coerce(value, I64, node)
            return self.let(PTR, f"inttoptr i64 {wide.text} to ptr")
        return self.let(
            type_, f"{_conversion(source, type_)} {source.ir} {value.text} to {type_.ir}"
        )

    def truth(self, value: TypedOperand, node: ast.AST) -> TypedOperand:
        """A condition: itself, or different from zero."""
        if value.const is not None:
            return TypedOperand(I1, "true" if value.const else "false")
        if value.type is I1:
            return value
        if value.type is None or value.type.is_float:
            raise self.error(node, f"{value.type} is no condition; compare it")
        zero = "null" if value.type is PTR else "0"
        return self.let(I1, f"icmp ne {value.type.ir} {value.text}, {zero}")

    def common(
        self, left: TypedOperand, right: TypedOperand, node: ast.AST
    ) -> tuple[TypedOperand, TypedOperand, Type]:
        """Two operands brought to one type."""
        if left.const is not None and right.const is not None:
            type_ = F64 if isinstance(left.const, float) or isinstance(right.const, float) else I64
        elif left.const is not None:
            type_ = right.type or I64
        elif right.const is not None:
            type_ = left.type or I64
        else:
            type_ = self.wider(left.type, right.type, node)
        type_ = (
            I64 if type_ is I1 and (left.const is not None or right.const is not None) else type_
        )
        return self.coerce(left, type_, node), self.coerce(right, type_, node), type_

    def wider(self, left: Type | None, right: Type | None, node: ast.AST) -> Type:
        if left is None or right is None:
            raise self.error(node, "an operand has no value")
        if left is right:
            return left
        if left.is_int and right.is_int:
            return left if left.size > right.size or right is I1 else right
        raise self.error(node, f"{left} and {right} do not mix; cast one of them")

    # -- expressions --

    def expr(self, node: ast.expr) -> TypedOperand:
        """The value of an expression."""
        method: Callable[[Any], TypedOperand] | None = getattr(
            self, f"expr_{type(node).__name__}", None
        )
        if method is None:
            raise self.error(node, f"no {type(node).__name__} in the machine language")
        return method(node)

    def expr_Constant(self, node: ast.Constant) -> TypedOperand:
        if node.value is None:
            return TypedOperand(PTR, "null")
        if isinstance(node.value, bool):
            return TypedOperand(I1, "true" if node.value else "false")
        if isinstance(node.value, int | float):
            return self.number(node.value)
        if isinstance(node.value, str):
            return TypedOperand(PTR, self.module.string(node.value))
        raise self.error(node, f"no constant {node.value!r} in the machine language")

    def number(self, value: Any) -> TypedOperand:
        value = value if isinstance(value, float) else int(value)
        return TypedOperand(F64 if isinstance(value, float) else I64, str(value), value)

    def outside(self, node: ast.expr) -> Any:
        """The Python object a name or attribute stands for, None when it is a variable."""
        if isinstance(node, ast.Name):
            if node.id in self.variables:
                return None
            try:
                return self.function.lookup(node.id)
            except KeyError:
                raise self.error(node, f"unknown name {node.id}") from None
        if isinstance(node, ast.Attribute):
            owner = (
                self.outside(node.value)
                if isinstance(node.value, ast.Name | ast.Attribute)
                else None
            )
            if isinstance(owner, type | types.ModuleType | types.SimpleNamespace):
                if not hasattr(owner, node.attr):
                    raise self.error(node, f"{ast.unparse(node)} does not exist")
                return getattr(owner, node.attr)
        return None

    def expr_Name(self, node: ast.Name) -> TypedOperand:
        type_ = self.variables.get(node.id)
        if type_ is not None:
            return self.let(type_, f"load {type_.ir}, ptr %v.{node.id}")
        return self.outside_value(self.outside(node), node)

    def outside_value(self, value: Any, node: ast.expr) -> TypedOperand:
        """What a thing from outside is worth in an expression."""
        if isinstance(value, int | float):
            return self.number(value)
        if isinstance(value, Cell):
            return self.let(value.type, f"load {value.type.ir}, ptr @{value.name}")
        if isinstance(value, Var | Extern | Function):
            return TypedOperand(PTR, f"@{value.name}")
        if isinstance(value, Intrinsic) and value.name == "NULL":
            return TypedOperand(PTR, "null")
        raise self.error(
            node, f"{ast.unparse(node)} is a {type(value).__name__}, which has no value here"
        )

    def expr_Attribute(self, node: ast.Attribute) -> TypedOperand:
        outside = self.outside(node)
        if outside is not None:
            return self.outside_value(outside, node)
        at = node.value
        is_at = (
            isinstance(at, ast.Call) and isinstance(at.func, ast.Attribute) and at.func.attr == "at"
        )
        place, type_ = self.field(node)
        return (
            TypedOperand(PTR, place) if is_at else self.let(type_, f"load {type_.ir}, ptr {place}")
        )

    def field(self, node: ast.Attribute) -> tuple[str, Type]:
        """Address and type of `Layout(p).field` or `Layout.at(p).field`."""
        call = node.value
        if not isinstance(call, ast.Call) or len(call.args) != 1:
            raise self.error(node, f"{ast.unparse(node)} is no field of a layout")
        name = (
            call.func.value
            if isinstance(call.func, ast.Attribute) and call.func.attr == "at"
            else call.func
        )
        layout = self.outside(name)
        if not isinstance(layout, Layout):
            raise self.error(node, f"{ast.unparse(name)} is no layout")
        if node.attr not in layout.fields:
            raise self.error(node, f"{layout.name} has no field {node.attr}")
        base = self.coerce(self.expr(call.args[0]), PTR, node)
        offset, type_ = layout.fields[node.attr]
        return (
            self.let(PTR, f"getelementptr inbounds i8, ptr {base.text}, i64 {offset}").text,
            type_,
        )

    def expr_BinOp(self, node: ast.BinOp) -> TypedOperand:
        left, right = self.expr(node.left), self.expr(node.right)
        if left.const is not None and right.const is not None:
            return self.number(_fold(node.op, left.const, right.const))
        if PTR in (left.type, right.type):
            return self.pointer_arithmetic(node, left, right)
        left, right, type_ = self.common(left, right, node)
        if type_.is_float:
            if type(node.op) not in FLOAT:
                raise self.error(node, f"no {type(node.op).__name__} on {type_}")
            return self.let(type_, f"{FLOAT[type(node.op)]} {type_.ir} {left.text}, {right.text}")
        if isinstance(node.op, ast.FloorDiv | ast.Mod):
            return self.floor_division(left, right, type_, isinstance(node.op, ast.Mod))
        if type(node.op) not in INTEGER:
            raise self.error(node, f"no {type(node.op).__name__} on integers")
        return self.let(type_, f"{INTEGER[type(node.op)]} {type_.ir} {left.text}, {right.text}")

    def pointer_arithmetic(
        self, node: ast.BinOp, left: TypedOperand, right: TypedOperand
    ) -> TypedOperand:
        if left.type is PTR and right.type is PTR and isinstance(node.op, ast.Sub):
            first, second = self.cast(left, I64, node), self.cast(right, I64, node)
            return self.let(I64, f"sub i64 {first.text}, {second.text}")
        if isinstance(node.op, ast.Add) and right.type is PTR:
            left, right = right, left
        if right.type is PTR or not isinstance(node.op, ast.Add | ast.Sub):
            raise self.error(node, "pointers know + and - with integers, and their difference")
        amount = self.coerce(right, I64, node)
        if isinstance(node.op, ast.Sub):
            amount = self.let(I64, f"sub i64 0, {amount.text}")
        return self.let(PTR, f"getelementptr i8, ptr {left.text}, i64 {amount.text}")

    def floor_division(
        self, left: TypedOperand, right: TypedOperand, type_: Type, modulo: bool
    ) -> TypedOperand:
        """Python's rounding: towards minus infinity."""
        ir = type_.ir
        rest = self.let(type_, f"srem {ir} {left.text}, {right.text}")
        odd = self.let(I1, f"icmp ne {ir} {rest.text}, 0")
        mixed = self.let(type_, f"xor {ir} {rest.text}, {right.text}")
        negative = self.let(I1, f"icmp slt {ir} {mixed.text}, 0")
        wrong = self.let(I1, f"and i1 {odd.text}, {negative.text}")
        if modulo:
            mended = self.let(type_, f"add {ir} {rest.text}, {right.text}")
            return self.let(type_, f"select i1 {wrong.text}, {ir} {mended.text}, {ir} {rest.text}")
        quotient = self.let(type_, f"sdiv {ir} {left.text}, {right.text}")
        fix = self.let(type_, f"sext i1 {wrong.text} to {ir}")
        return self.let(type_, f"add {ir} {quotient.text}, {fix.text}")

    def expr_UnaryOp(self, node: ast.UnaryOp) -> TypedOperand:
        value = self.expr(node.operand)
        if isinstance(node.op, ast.Not):
            return self.let(I1, f"xor i1 {self.truth(value, node).text}, true")
        if value.const is not None:
            operation: Any = {
                ast.USub: lambda x: -x,
                ast.UAdd: lambda x: x,
                ast.Invert: lambda x: ~x,
            }[type(node.op)]
            return self.number(operation(value.const))
        if value.type is None or value.type in (PTR, I1):
            raise self.error(node, f"no {type(node.op).__name__} on {value.type}")
        if isinstance(node.op, ast.USub):
            if value.type.is_float:
                return self.let(value.type, f"fneg {value.type.ir} {value.text}")
            return self.let(value.type, f"sub {value.type.ir} 0, {value.text}")
        if isinstance(node.op, ast.Invert) and value.type.is_int:
            return self.let(value.type, f"xor {value.type.ir} {value.text}, -1")
        return value

    def expr_Compare(self, node: ast.Compare) -> TypedOperand:
        result: TypedOperand | None = None
        left = self.expr(node.left)
        if isinstance(node.ops[0], ast.In | ast.NotIn):
            return self.membership(node, left)
        for operator, operand in zip(node.ops, node.comparators, strict=True):
            right = self.expr(operand)
            test = self.compare(operator, left, right, node)
            result = test if result is None else self.let(I1, f"and i1 {result.text}, {test.text}")
            left = right
        assert result is not None
        return result

    def membership(self, node: ast.Compare, left: TypedOperand) -> TypedOperand:
        """`x in (a, b)`: equal to one of them."""
        choices = node.comparators[0]
        if len(node.ops) != 1 or not isinstance(choices, ast.Tuple):
            raise self.error(node, "`in` takes a tuple")
        found = TypedOperand(I1, "false")
        for element in choices.elts:
            test = self.compare(ast.Eq(), left, self.expr(element), node)
            found = self.let(I1, f"or i1 {found.text}, {test.text}")
        return (
            found if isinstance(node.ops[0], ast.In) else self.let(I1, f"xor i1 {found.text}, true")
        )

    def compare(
        self, operator: ast.cmpop, left: TypedOperand, right: TypedOperand, node: ast.AST
    ) -> TypedOperand:
        if isinstance(operator, ast.Is | ast.IsNot):
            operator = ast.Eq() if isinstance(operator, ast.Is) else ast.NotEq()
        word = COMPARE.get(type(operator))
        if word is None:
            raise self.error(node, f"no {type(operator).__name__} in the machine language")
        left, right, type_ = self.common(left, right, node)
        if type_.is_float:
            word = "une" if word == "ne" else f"o{word}"
            return self.let(I1, f"fcmp {word} {type_.ir} {left.text}, {right.text}")
        sign = "" if word in ("eq", "ne") else "u" if type_ in (PTR, I1) else "s"
        return self.let(I1, f"icmp {sign}{word} {type_.ir} {left.text}, {right.text}")

    def expr_BoolOp(self, node: ast.BoolOp) -> TypedOperand:
        return self.choose(node, TypedOperand(I1, "true"), TypedOperand(I1, "false"))

    def choose(self, test: ast.expr, first: TypedOperand, second: TypedOperand) -> TypedOperand:
        """A condition as a value, through the short-circuit jumps."""
        then, other, end = self.fresh("yes"), self.fresh("no"), self.fresh("join")
        self.branch(test, then, other)
        self.label(then)
        self.jump(end)
        self.label(other)
        self.jump(end)
        self.label(end)
        return self.let(I1, f"phi i1 [ {first.text}, %{then} ], [ {second.text}, %{other} ]")

    def expr_IfExp(self, node: ast.IfExp) -> TypedOperand:
        then, other, end = self.fresh("yes"), self.fresh("no"), self.fresh("join")
        slot = self.fresh("choice")
        self.branch(node.test, then, other)
        before, self.lines = self.lines, []
        self.label(then)
        first = self.expr(node.body)
        first_lines, self.lines = self.lines, []
        self.label(other)
        second = self.expr(node.orelse)
        second_lines = self.lines
        type_ = self.joined(first, second, node)
        for lines, value in ((before + first_lines, first), (second_lines, second)):
            self.lines = lines if value is first else self.lines + lines
            self.closed = False
            self.op(f"store {type_.ir} {self.coerce(value, type_, node).text}, ptr %{slot}")
            self.jump(end)
        self.entry.append(f"%{slot} = alloca {type_.ir}")
        self.label(end)
        return self.let(type_, f"load {type_.ir}, ptr %{slot}")

    def joined(self, first: TypedOperand, second: TypedOperand, node: ast.AST) -> Type:
        """The type that holds both sides of a choice."""
        if first.const is not None or second.const is not None:
            type_ = first.type if second.const is not None else second.type
            return type_ or I64
        return self.wider(first.type, second.type, node)

    # -- calls --

    def expr_Call(self, node: ast.Call) -> TypedOperand:
        if node.keywords:
            raise self.error(node, "no keyword arguments in the machine language")
        if isinstance(node.func, ast.Name) and node.func.id in ("min", "max", "abs"):
            return self.builtin(node)
        target = self.outside(node.func)
        if isinstance(target, Intrinsic) and target.name in INTRINSICS:
            return INTRINSICS[target.name](self, node)
        if isinstance(target, Type):
            if len(node.args) != 1:
                raise self.error(node, "a cast takes one value")
            return self.cast(self.expr(node.args[0]), target, node)
        if isinstance(target, Function | Extern):
            return self.invoke(f"@{target.name}", target.signature, node.args, node)
        if isinstance(target, Signature):
            pointer = self.coerce(self.expr(node.args[0]), PTR, node)
            return self.invoke(pointer.text, target, node.args[1:], node)
        raise self.error(node, f"{ast.unparse(node.func)} cannot be called from a machine function")

    def invoke(
        self, callee: str, sig: Signature, args: list[ast.expr], node: ast.AST
    ) -> TypedOperand:
        """A call with typed arguments."""
        if len(args) < len(sig.args) or (len(args) > len(sig.args) and not sig.vararg):
            raise self.error(node, f"expected {len(sig.args)} arguments, got {len(args)}")
        values = [self.coerce(self.expr(a), t, a) for a, t in zip(args, sig.args, strict=False)]
        values += [self.untyped(self.expr(a), a) for a in args[len(sig.args) :]]
        rendered = ", ".join(f"{v.type.ir} {v.text}" for v in values if v.type is not None)
        kind = sig.ir_ret
        if sig.vararg:
            kind = f"{kind} ({', '.join([t.ir for t in sig.args] + ['...'])})"
        line = f"call {kind} {callee}({rendered}){self.access()}"
        if sig.ret is None:
            self.op(line)
            return self.nothing()
        return self.let(sig.ret, line)

    def untyped(self, value: TypedOperand, node: ast.AST) -> TypedOperand:
        """An argument nothing says the type of: a literal is an i64 or f64."""
        return value if value.const is None else self.coerce(value, value.type or I64, node)

    def builtin(self, node: ast.Call) -> TypedOperand:
        """min, max and abs of integers."""
        values = [self.expr(a) for a in node.args]
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if len(values) != (1 if name == "abs" else 2):
            raise self.error(node, f"wrong number of arguments for {name}")
        first, second, type_ = self.common(values[0], values[-1], node)
        if not type_.is_int or type_ is I1:
            raise self.error(node, f"no {name} of {type_}")
        suffix = f"{type_.ir} {first.text}, " + (
            "i1 false" if name == "abs" else f"{type_.ir} {second.text}"
        )
        intrinsic = "llvm.abs" if name == "abs" else f"llvm.s{name}"
        other = "i1" if name == "abs" else type_.ir
        self.module.declare_ir(
            f"{intrinsic}.{type_.ir}",
            f"declare {type_.ir} @{intrinsic}.{type_.ir}({type_.ir}, {other})",
        )
        return self.let(type_, f"call {type_.ir} @{intrinsic}.{type_.ir}({suffix})")


def _double_bits(value: float) -> int:
    return int.from_bytes(bytes(F64.ctype(value)), "little")


def _conversion(source: Type, target: Type) -> str:
    if source.is_float:
        if target.is_float:
            return "fpext" if target.size > source.size else "fptrunc"
        return "fptosi"
    if target.is_float:
        return "uitofp" if source is I1 else "sitofp"
    if source is I1:
        return "zext"
    return "sext" if target.size > source.size else "trunc"


def _fold(operator: ast.operator, left: Any, right: Any) -> Any:
    """Arithmetic on constants, by Python itself."""
    expression = ast.Expression(
        ast.BinOp(left=ast.Constant(left), op=operator, right=ast.Constant(right))
    )
    return eval(
        compile(ast.fix_missing_locations(expression), "<constant>", "eval"), {"__builtins__": {}}
    )

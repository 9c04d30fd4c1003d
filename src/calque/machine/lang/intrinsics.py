"""The words of the machine language that look like functions: memory, atomics, bits, hints."""

from __future__ import annotations

import ast
import platform
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from calque.machine.lang.types import F32, F64, I1, I8, I16, I32, I64, PTR, Cell, Layout, Type, Var
from calque.machine.state import process

if TYPE_CHECKING:
    from calque.machine.lang.expressions import Expressions, TypedOperand

Emit = Callable[["Expressions", ast.Call], "TypedOperand"]
INTRINSICS: Final[dict[str, Emit]] = process.container("intrinsics", {})


def _arguments(e: Expressions, node: ast.Call, *types: Type | None) -> list[TypedOperand]:
    """Evaluate and convert the arguments; None leaves one as it is."""
    if len(node.args) != len(types):
        raise e.error(node, f"expected {len(types)} arguments, got {len(node.args)}")
    values = [e.expr(a) for a in node.args]
    return [
        v if t is None else e.coerce(v, t, a)
        for v, t, a in zip(values, types, node.args, strict=True)
    ]


def _place(e: Expressions, pointer: TypedOperand, offset: TypedOperand) -> str:
    if offset.text == "0":
        return pointer.text
    return e.let(PTR, f"getelementptr i8, ptr {pointer.text}, i64 {offset.text}").text


def _load(type_: Type, widened: bool, e: Expressions, node: ast.Call) -> TypedOperand:
    pointer, offset = _arguments(e, node, PTR, I64)
    value = e.let(type_, f"load {type_.ir}, ptr {_place(e, pointer, offset)}, align 1{e.access()}")
    return e.let(I64, f"zext {type_.ir} {value.text} to i64") if widened else value


def _store(type_: Type, e: Expressions, node: ast.Call) -> TypedOperand:
    pointer, offset, value = _arguments(e, node, PTR, I64, None)
    if type_.is_int and value.const is None and value.type is not None and value.type.is_int:
        value = e.cast(value, type_, node)
    value = e.coerce(value, type_, node)
    e.op(f"store {type_.ir} {value.text}, ptr {_place(e, pointer, offset)}, align 1{e.access()}")
    return e.nothing()


def _read_modify_write(type_: Type, operation: str, e: Expressions, node: ast.Call) -> TypedOperand:
    pointer, offset, value = _arguments(e, node, PTR, I64, type_)
    place = _place(e, pointer, offset)
    return e.let(type_, f"atomicrmw {operation} ptr {place}, {type_.ir} {value.text} seq_cst")


def _atomic_cas(type_: Type, e: Expressions, node: ast.Call) -> TypedOperand:
    pointer, offset, old, new = _arguments(e, node, PTR, I64, type_, type_)
    place, ir = _place(e, pointer, offset), type_.ir
    pair = e.let(type_, f"cmpxchg ptr {place}, {ir} {old.text}, {ir} {new.text} seq_cst seq_cst")
    return e.let(I1, f"extractvalue {{ {ir}, i1 }} {pair.text}, 1")


def _atomic_load(type_: Type, e: Expressions, node: ast.Call) -> TypedOperand:
    pointer, offset = _arguments(e, node, PTR, I64)
    return e.let(
        type_,
        f"load atomic {type_.ir}, ptr {_place(e, pointer, offset)} seq_cst, align {type_.size}",
    )


def _atomic_store(type_: Type, order: str, e: Expressions, node: ast.Call) -> TypedOperand:
    pointer, offset, value = _arguments(e, node, PTR, I64, type_)
    place = _place(e, pointer, offset)
    e.op(f"store atomic {type_.ir} {value.text}, ptr {place} {order}, align {type_.size}")
    return e.nothing()


def _fence(e: Expressions, node: ast.Call) -> TypedOperand:
    _arguments(e, node)
    e.op("fence seq_cst")
    return e.nothing()


def _pause(e: Expressions, node: ast.Call) -> TypedOperand:
    """A hint to the core that this thread spins; nothing on a machine whose hint we do not know."""
    _arguments(e, node)
    if platform.machine() in ("x86_64", "AMD64"):
        e.module.declare_ir("llvm.x86.sse2.pause", "declare void @llvm.x86.sse2.pause()")
        e.op("call void @llvm.x86.sse2.pause()")
    elif platform.machine() in ("aarch64", "arm64"):
        e.module.declare_ir("llvm.aarch64.hint", "declare void @llvm.aarch64.hint(i32)")
        e.op("call void @llvm.aarch64.hint(i32 1)")
    return e.nothing()


def _integer(operation: str, e: Expressions, node: ast.Call) -> TypedOperand:
    left, right = _arguments(e, node, None, None)
    left, right, type_ = e.common(left, right, node)
    if operation.startswith("icmp"):
        return e.let(I1, f"{operation} {type_.ir} {left.text}, {right.text}")
    return e.let(type_, f"{operation} {type_.ir} {left.text}, {right.text}")


def _bits(source: Type, target: Type, e: Expressions, node: ast.Call) -> TypedOperand:
    (value,) = _arguments(e, node, source)
    return e.let(target, f"bitcast {source.ir} {value.text} to {target.ir}")


def _sqrt(e: Expressions, node: ast.Call) -> TypedOperand:
    (value,) = _arguments(e, node, F64)
    e.module.declare_ir("llvm.sqrt.f64", "declare double @llvm.sqrt.f64(double)")
    return e.let(F64, f"call double @llvm.sqrt.f64(double {value.text})")


def _expect(wanted: str, e: Expressions, node: ast.Call) -> TypedOperand:
    (value,) = _arguments(e, node, None)
    e.module.declare_ir("llvm.expect.i1", "declare i1 @llvm.expect.i1(i1, i1)")
    return e.let(I1, f"call i1 @llvm.expect.i1(i1 {e.truth(value, node).text}, i1 {wanted})")


def _alloca(e: Expressions, node: ast.Call) -> TypedOperand:
    (size,) = _arguments(e, node, None)
    if not isinstance(size.const, int) or size.const <= 0:
        raise e.error(node, "alloca takes a positive constant number of bytes")
    name = e.fresh("stack")
    e.entry.append(f"%{name} = alloca [{size.const} x i8], align 16")
    return e.pointer(f"%{name}")


def _memory(name: str, second: Type, e: Expressions, node: ast.Call) -> TypedOperand:
    target, source, count = _arguments(e, node, PTR, None, I64)
    if second is I8:
        source = e.cast(source, I8, node)
    source = e.coerce(source, second, node)
    suffix = "p0.i64" if name == "memset" else "p0.p0.i64"
    e.module.declare_ir(
        f"llvm.{name}", f"declare void @llvm.{name}.{suffix}(ptr, {second.ir}, i64, i1)"
    )
    arguments = f"ptr {target.text}, {second.ir} {source.text}, i64 {count.text}, i1 false"
    e.op(f"call void @llvm.{name}.{suffix}({arguments})")
    return e.nothing()


def _sizeof(e: Expressions, node: ast.Call) -> TypedOperand:
    outside: Any = e.outside(node.args[0]) if len(node.args) == 1 else None
    if not isinstance(outside, Layout | Type):
        raise e.error(node, "sizeof takes a layout or a type")
    return e.number(outside.size)


def _address(e: Expressions, node: ast.Call) -> TypedOperand:
    outside: Any = e.outside(node.args[0]) if len(node.args) == 1 else None
    if not isinstance(outside, Cell | Var):
        raise e.error(node, "address takes a global")
    return e.pointer(f"@{outside.name}")


def _register() -> None:
    for name, type_ in {
        "i8": I8,
        "i16": I16,
        "i32": I32,
        "i64": I64,
        "f32": F32,
        "f64": F64,
        "ptr": PTR,
    }.items():
        INTRINSICS[f"load_{name}"] = partial(_load, type_, False)
        INTRINSICS[f"store_{name}"] = partial(_store, type_)
    for name, type_ in {"u8": I8, "u16": I16, "u32": I32}.items():
        INTRINSICS[f"load_{name}"] = partial(_load, type_, True)
    for suffix, type_ in {"": I64, "_i32": I32}.items():
        INTRINSICS[f"atomic_add{suffix}"] = partial(_read_modify_write, type_, "add")
        INTRINSICS[f"atomic_xchg{suffix}"] = partial(_read_modify_write, type_, "xchg")
        INTRINSICS[f"atomic_cas{suffix}"] = partial(_atomic_cas, type_)
        INTRINSICS[f"atomic_load{suffix}"] = partial(_atomic_load, type_)
        INTRINSICS[f"atomic_store{suffix}"] = partial(_atomic_store, type_, "seq_cst")
        INTRINSICS[f"atomic_release{suffix}"] = partial(_atomic_store, type_, "release")
    for name in ("sdiv", "srem", "udiv", "urem", "lshr"):
        INTRINSICS[name] = partial(_integer, name)
    INTRINSICS["ult"] = partial(_integer, "icmp ult")
    INTRINSICS["ule"] = partial(_integer, "icmp ule")
    for name, source, target in (
        ("i64", F64, I64),
        ("f64", I64, F64),
        ("i32", F32, I32),
        ("f32", I32, F32),
    ):
        INTRINSICS[f"bits_{name}"] = partial(_bits, source, target)
    INTRINSICS.update(likely=partial(_expect, "true"), unlikely=partial(_expect, "false"))
    INTRINSICS.update(
        memcpy=partial(_memory, "memcpy", PTR), memmove=partial(_memory, "memmove", PTR)
    )
    INTRINSICS.update(
        memset=partial(_memory, "memset", I8), alloca=_alloca, sizeof=_sizeof, address=_address
    )
    INTRINSICS.update(fence=_fence, pause=_pause, sqrt=_sqrt)


_register()

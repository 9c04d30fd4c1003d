"""Loop trees -> LLVM IR text."""

from __future__ import annotations

from calque.machine.records import record
from calque.native.emit import (  # their imports fill the tables of operations and statements
    casts,
    choices,
    conditions,
    floats,
    integers,
    loads,
    lookup,
    math_calls,
    serial_loops,
    vector_loops,
)
from calque.native.emit.lanes import SCALAR, Lanes
from calque.native.emit.math_functions import argument, definition
from calque.native.emit.narrow import from_memory
from calque.native.emit.shared_loops import SharedLoop
from calque.native.emit.statements import statements
from calque.native.emit.types import MEMORY, VALUE, vector
from calque.native.emit.values import operand
from calque.native.emit.writer import NOTHING, CodeOptions, SharedFunction, Writer
from calque.native.loops import rows
from calque.native.loops.tree import Body, loaded, stored
from calque.native.scalars.expr import LANE, Buffer, Expr

__all__ = ["SUBJECTS", "CodeOptions", "FunctionText", "write_kernel", "write_shared"]

SUBJECTS = (
    casts,
    choices,
    conditions,
    floats,
    integers,
    loads,
    lookup,
    math_calls,
    serial_loops,
    vector_loops,
)


@record
class FunctionText:
    """LLVM text, with what it needs beside it: declarations, and functions that kernels share, by
    their symbols."""

    text: str
    declared: set[str]
    shared: dict[str, SharedFunction]


def write_kernel(
    name: str,
    buffers: list[Buffer],
    sizes: list[str],
    params: list[Expr],
    body: Body,
    options: CodeOptions,
) -> FunctionText:
    """``void name(ptr args, i64 begin, i64 end)``; ``args`` holds buffers, sizes, params: a word
    each."""
    body = rows.written_out(body, options.share_loops)
    w = Writer(name, options, stored(body) & loaded(body))
    word = 0
    for b in buffers:
        w.pointers[b] = _argument_word(w, word, "ptr")
        word += 1
    for s in sizes:
        w.bind(s, _argument_word(w, word, "i64"))
        word += 1
    for p in params:
        v = _argument_word(w, word, MEMORY[p.dtype])
        w.bind(p.attr[0], from_memory(w, v, p.dtype, 0))
        word += 1
    w.where[LANE] = 0
    statements(w, body, SCALAR)
    text = w.text(f"define void @{name}(ptr %args, i64 %begin, i64 %end)", "ret void")
    return FunctionText(text, w.declared, w.shared)


def _argument_word(w: Writer, word: int, t: str) -> str:
    p = w.new(f"getelementptr i64, ptr %args, i64 {word}") if word else "%args"
    return w.new(f"load {t}, ptr {p}, align 8")


def write_shared(f: SharedFunction, options: CodeOptions) -> FunctionText:
    """A function that all kernels share."""
    if isinstance(f, SharedLoop):
        return FunctionText(f.text, {*f.declared}, {})
    symbol = f.symbol(options.tag)
    w = Writer(symbol, options, NOTHING)
    names = [argument(k, d).attr[0] for k, d in enumerate(f.dtypes)]
    for k, name in enumerate(names):
        w.bind(name, f"%x{k}")
    lanes = Lanes(f.width).seeing(names)
    r = operand(w, definition(f.op, f.dtypes, f.result), lanes)
    args = ", ".join([f"{vector(VALUE[d], f.width)} %x{k}" for k, d in enumerate(f.dtypes)])
    t = vector(VALUE[f.result], f.width)
    text = w.text(f"define {t} @{symbol}({args})", f"ret {t} {r}")
    return FunctionText(text, w.declared, w.shared)

"""Loops that kernels share: where LLVM makes the code of a kernel quickly, a loop that carries many
vectors, that of a product, is a function of its own, made with care, and once for all kernels that
have the same loop.

A loop is known by its text, in which names are numbers; what it takes from the code around it are
its arguments, also how far it goes and how far what it reads lies apart where these are known, and
what it carries it leaves in memory."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from calque.machine.code.digest import hexdigest
from calque.machine.records import record
from calque.native.emit import scratch

MANY: Final = 4  # vectors carried by a loop that is worth a function
LEVEL: Final = 1  # of LLVM's generation of code: a higher one gains nothing

NAME: Final = re.compile(r"%[\w.]+")
_LABEL: Final = re.compile(r"^([\w.]+):$", re.M)
_DEFINED: Final = re.compile(r"^ (%[\w.]+) = ", re.M)
_TYPE: Final = r"(<\d+ x \w+>|ptr|i\d+|float|double|half|bfloat)"
# Operands stand behind their types, but for the second of two of the same type, and in phis.
_TYPED: Final = re.compile(rf"{_TYPE} (%[\w.]+)")
_SECOND: Final = re.compile(rf" = [a-z ]+ {_TYPE} [^,\n]+, (%[\w.]+)$", re.M)
_FIRST_VALUE: Final = re.compile(rf" = phi {_TYPE} \[(%[\w.]+), ")
_KNOWN: Final = re.compile(r"( = (?:mul|icmp slt) i64 %[\w.]+, )(\d+)$", re.M)
_OTHER_CALL: Final = re.compile(r" call (?:<[^>]*>|\w+) @(?!llvm\.)")
_CALLED: Final = re.compile(r"@([\w.]+)\(")

Carried = tuple[str, str]  # the type and the name of a value


@record
class SharedLoop:
    """A loop as a function: its text, and what that declares."""

    symbol: str
    text: str
    declared: frozenset[str]


@record
class LoopCall:
    """The loop that is called, its declaration, and what it is given."""

    loop: SharedLoop
    declaration: str
    arguments: tuple[str, ...]

    def line(self, out: str) -> str:
        """The line that calls it and has it leave its values in `out`."""
        return f" call void @{self.loop.symbol}({', '.join([*self.arguments, f'ptr {out}'])})"


def is_worth_it(carried: Sequence[Carried]) -> bool:
    """Whether a loop that carries values of these types is worth a function."""
    kinds = {t for t, _ in carried}
    return len(carried) >= MANY and len(kinds) == 1 and kinds.pop()[0] == "<"


def call_of(
    lines: Sequence[str], before: str, last: Sequence[Carried], declared: set[str]
) -> LoopCall | None:
    """A call in place of these lines, a loop that begins at the end of the block `before`: it
    leaves its `last` values one behind the other in memory. None where the loop writes, or calls
    what is not LLVM's own, or where its text does not tell a type."""
    numbers: dict[str, str] = {}

    def argument(m: re.Match[str]) -> str:
        name = f"%known.{len(numbers)}"
        numbers[name] = m[2]
        return f"{m[1]}{name}"

    loop = _KNOWN.sub(argument, "\n".join(lines))
    if " store " in loop or _OTHER_CALL.search(loop):
        return None
    own = {*_DEFINED.findall(loop), *[f"%{x}" for x in _LABEL.findall(loop)], f"%{before}"}
    given = [name for name in dict.fromkeys(NAME.findall(loop)) if name not in own]
    pairs = [*_TYPED.findall(loop), *_SECOND.findall(loop), *_FIRST_VALUE.findall(loop)]
    types = {name: t for t, name in pairs}
    if any(name not in types for name in given):
        return None
    text = _function_text([(types[name], name) for name in given], loop, before, last)
    symbol = f"loop_{hexdigest(text)[:24]}"
    called = {*_CALLED.findall(loop)}
    needs = frozenset([d for d in declared if called.intersection(_CALLED.findall(d))])
    kinds = ", ".join([*[types[name] for name in given], "ptr"])
    return LoopCall(
        SharedLoop(symbol, f"define void @{symbol}{text}", needs),
        f"declare void @{symbol}({kinds})",
        tuple([f"{types[name]} {numbers.get(name, name)}" for name in given]),
    )


def _function_text(
    given: Sequence[Carried], loop: str, before: str, last: Sequence[Carried]
) -> str:
    """The function from its parameters on, the same for all loops that differ in names alone."""
    short = {f"%{before}": "%entry"}

    def renamed(name: str) -> str:
        return short.setdefault(name, f"%v{len(short)}")

    params = ", ".join([*[f"{t} {renamed(name)}" for t, name in given], "ptr %out"])
    text = NAME.sub(lambda m: renamed(m[0]), loop)
    text = _LABEL.sub(lambda m: f"{renamed(f'%{m[1]}')[1:]}:", text)
    lines = [f"({params}) {{", "entry:", text]
    for k, (t, name) in enumerate(last):
        lines.append(f" %out.{k} = getelementptr {t}, ptr %out, i64 {k}")
        lines.append(f" store {t} {renamed(name)}, ptr %out.{k}, align {scratch.alignment(t)}")
    return "\n".join([*lines, " ret void", "}"])

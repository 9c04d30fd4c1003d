"""The functions of a library that C calls, as LLVM's language: they look at the arguments, work out
what depends on sizes, and run the program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from calque.machine.code.target import Target
from calque.machine.driver.interpreter import NO_MEMORY, TOO_LARGE
from calque.native.libraries import processor
from calque.native.libraries.interface import (
    NOT_FOR_SIZES,
    WRONG_PROCESSOR,
    WRONG_RESULT,
    Interface,
)
from calque.native.libraries.program import LibraryProgram, no_bytes
from calque.native.libraries.sizes import DECLARATIONS, LARGEST, FreeSizes, SizeCode
from calque.native.plan.memory import ALIGN

RUN: Final = "library_run"
_NOT_SERVED: Final = -1  # said by a program that is not for these sizes
_NEAR: Final = 256  # words that depend on sizes: so many live on the stack
SUFFIXES: Final = ("", "_shape", "_message", "_threads", "_release")


class FunctionCode(SizeCode):
    """A function that is written from top to bottom, and returns early with a status."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        super().__init__(names)
        self._checks = 0

    def refuse(self, condition: str, status: int) -> None:
        """Return with this status where a condition holds."""
        k = self._checks = self._checks + 1
        self.lines.append(
            f" br i1 {condition}, label %bad{k}, label %good{k}\nbad{k}:\n ret i32 {status}\n"
            f"good{k}:"
        )

    def check_sizes(self, interface: Interface) -> None:
        for i, name in enumerate(interface.sizes):
            low = self.put(f"icmp slt i64 %n{i}, 1")
            high = self.put(f"icmp sgt i64 %n{i}, {LARGEST}")
            wrong = self.put(f"or i1 {low}, {high}")
            self.refuse(wrong, interface.status(f"the size {name} is not from 1 to 2**47"))

    def check_pointers(self, interface: Interface) -> None:
        for letter, kind, values in (
            ("a", "argument", interface.arguments),
            ("r", "result", interface.results),
        ):
            for i, v in enumerate(values):
                if no_bytes(v.aval):
                    continue
                empty = self.put(f"icmp eq ptr %{letter}{i}, null")
                self.refuse(empty, interface.status(f"there is no memory for the {kind} {v.name}"))

    def pointers(self, letter: str, count: int) -> str:
        """An array of pointers."""
        array = self.put(f"alloca [{max(count, 1)} x ptr], align 8")
        for i in range(count):
            place = self.put(f"getelementptr ptr, ptr {array}, i64 {i}")
            self.lines.append(f" store ptr %{letter}{i}, ptr {place}, align 8")
        return array

    def first_that_serves(self, count: int, suffix: str, arguments: str, status: int) -> None:
        """Return what the first of the programs says that is for these sizes."""
        for k in range(count):
            said = self.put(f"call i32 @library{k}_{suffix}({arguments})")
            other = self.put(f"icmp eq i32 {said}, {_NOT_SERVED}")
            self.lines.append(
                f" br i1 {other}, label %next{k}, label %done{k}\ndone{k}:\n ret i32 {said}\n"
                f"next{k}:"
            )
        self.lines.append(f" ret i32 {status}")


class ProgramCode(FunctionCode):
    """A function of one program of the library: it knows its sizes."""

    def __init__(self, program: LibraryProgram, sizes: FreeSizes) -> None:
        known = program.planner.sizes
        free = {f"n{i}": f"%n{i}" for i in range(len(sizes.names))}
        super().__init__({n: v for n, v in known.values.items() if n not in free} | free)
        self.program, self.sizes, self.lowered = program, sizes, known

    def check_guards(self) -> None:
        """Sizes are such as the trace took them to be."""
        for kind, poly, answer, _ in self.sizes.guards():
            value = self.value(self.lowered.polynomial(self.sizes.symbols, poly))
            test = "eq" if kind == "zero" else "slt"
            holds = self.put(f"icmp {test} i64 {value}, 0")
            self.refuse(self.put(f"xor i1 {holds}, true") if answer else holds, _NOT_SERVED)

    def check_arithmetic(self) -> None:
        failed = self.failed()
        if failed is not None:
            self.refuse(failed, TOO_LARGE)

    def words(self) -> tuple[list[str], str]:
        """Where the places of the arena begin, then what depends on sizes; bytes of the arena."""
        rooms, room_of = self.program.rooms()
        starts, total = [], "0"
        for room in rooms:
            starts.append(total)
            total = self.checked("sadd", total, self.rounded(self.value(room), ALIGN))
        varying = [self.value(e) for _, e in self.program.varying()]
        return [*[starts[r] for r in room_of], *varying], total


Programs = Sequence[tuple[LibraryProgram, FreeSizes]]


def module_text(interface: Interface, programs: Programs, target: Target) -> str:
    """All functions, with the texts of all statuses."""
    functions = [*_call(interface, len(programs)), *_shape(interface, len(programs))]
    for program, sizes in programs:
        functions += [*_run(program, sizes), *_shape_of(program, sizes)]
    strings, message = _message(interface)
    declared = [
        f"declare i64 @{RUN}(ptr, ptr, ptr, ptr, ptr, i64)",
        "declare void @library_share(ptr, ptr, i64)",
        "declare void @library_release()",
        "declare ptr @calque_alloc(i64)",
        "declare void @calque_free(ptr)",
        *[
            f"@{program.table(name)} = external global i8"
            for program, _ in programs
            for name in ("program", "places")
        ],
        *DECLARATIONS,
    ]
    asked = processor.text(target)
    parts = [*declared, *strings, *asked, *functions, *_host(interface.name), *message, ""]
    return "\n".join(parts)


def _head(linkage: str, name: str, sizes: int, rest: Sequence[str]) -> str:
    arguments = [f"i64 %n{i}" for i in range(sizes)] + list(rest)
    attributes = processor.ATTRIBUTES
    return f"define {linkage}i32 @{name}({', '.join(arguments)}) {attributes} {{\nentry:"


def _call(interface: Interface, count: int) -> list[str]:
    """The function itself."""
    code = FunctionCode({})
    lengths = (len(interface.arguments), len(interface.results))
    runs = code.put(f"call i32 @{processor.ASK}()")
    code.refuse(code.put(f"icmp eq i32 {runs}, 0"), WRONG_PROCESSOR)
    code.check_sizes(interface)
    code.check_pointers(interface)
    arrays = [f"ptr {code.pointers(x, length)}" for x, length in zip("ar", lengths)]
    numbers = [f"i64 %n{i}" for i in range(len(interface.sizes))]
    code.first_that_serves(count, "run", ", ".join([*numbers, *arrays]), NOT_FOR_SIZES)
    pointers = [f"ptr %{x}{i}" for x, length in zip("ar", lengths) for i in range(length)]
    return [_head("", interface.name, len(numbers), pointers), *code.lines, "}"]


def _run(program: LibraryProgram, sizes: FreeSizes) -> list[str]:
    """A function that runs one program on arrays of pointers."""
    code = ProgramCode(program, sizes)
    code.check_guards()
    words, arena = code.words() if sizes.names else ([], str(program.program.arena_bytes))
    code.check_arithmetic()
    near = len(words) <= _NEAR
    places = values = "null"
    if sizes.names:
        count, places = max(len(words), 1), f"@{program.table('places')}"
        far = f"call ptr @calque_alloc(i64 {8 * count})"
        values = code.put(f"alloca [{count} x i64], align 8" if near else far)
        if not near:
            code.refuse(code.put(f"icmp eq ptr {values}, null"), NO_MEMORY)
        for k, word in enumerate(words):
            place = code.put(f"getelementptr i64, ptr {values}, i64 {k}")
            code.lines.append(f" store i64 {word}, ptr {place}, align 8")
    status = code.put(
        f"call i64 @{RUN}(ptr @{program.table('program')}, ptr %ins, ptr %outs, ptr {places},"
        f" ptr {values}, i64 {arena})"
    )
    if not near:
        code.lines.append(f" call void @calque_free(ptr {values})")
    code.lines.append(f" ret i32 {code.put(f'trunc i64 {status} to i32')}")
    head = _head("internal ", program.table("run"), len(sizes.names), ["ptr %ins", "ptr %outs"])
    return [head, *code.lines, "}"]


_SHAPE: Final = ("i32 %result", "ptr %shape")


def _shape(interface: Interface, count: int) -> list[str]:
    """The function that tells the sizes of a result."""
    code = FunctionCode({})
    code.refuse(code.put("icmp eq ptr %shape, null"), WRONG_RESULT)
    code.check_sizes(interface)
    numbers = [f"i64 %n{i}" for i in range(len(interface.sizes))]
    code.first_that_serves(count, "shape", ", ".join([*numbers, *_SHAPE]), NOT_FOR_SIZES)
    return [_head("", f"{interface.name}_shape", len(numbers), _SHAPE), *code.lines, "}"]


def _shape_of(program: LibraryProgram, sizes: FreeSizes) -> list[str]:
    """The sizes of a result of one program."""
    code = ProgramCode(program, sizes)
    code.check_guards()
    shapes = [[code.value(code.lowered.dim(d)) for d in a.shape] for a in program.out_avals]
    code.check_arithmetic()
    cases = " ".join([f"i32 {k}, label %result{k}" for k in range(len(shapes))])
    code.lines.append(f" switch i32 %result, label %none [{cases}]")
    code.lines.append(f"none:\n ret i32 {WRONG_RESULT}")
    for k, dims in enumerate(shapes):
        code.lines.append(f"result{k}:")
        for axis, d in enumerate(dims):
            place = code.put(f"getelementptr i64, ptr %shape, i64 {axis}")
            code.lines.append(f" store i64 {d}, ptr {place}, align 8")
        code.lines.append(" ret i32 0")
    head = _head("internal ", program.table("shape"), len(sizes.names), _SHAPE)
    return [head, *code.lines, "}"]


def _host(name: str) -> list[str]:
    """Threads of the host, and memory that is kept."""
    return [
        f"define void @{name}_threads(ptr %share, ptr %context, i64 %threads) nounwind {{",
        " call void @library_share(ptr %share, ptr %context, i64 %threads)\n ret void\n}",
        f"define void @{name}_release() nounwind {{",
        " call void @library_release()\n ret void\n}",
    ]


def _message(interface: Interface) -> tuple[list[str], list[str]]:
    """The texts, and the function that gives them."""
    texts = {**interface.messages, -1: "unknown status"}
    strings, cases, blocks = [], [], []
    for k, (status, text) in enumerate(texts.items()):
        data = text.encode() + b"\0"
        content = "".join([f"\\{byte:02X}" for byte in data])
        strings.append(f'@message{k} = private constant [{len(data)} x i8] c"{content}"')
        if status >= 0:
            cases.append(f"i32 {status}, label %text{k}")
            blocks.append(f"text{k}:\n ret ptr @message{k}")
    head = f"define ptr @{interface.name}_message(i32 %status) {processor.ATTRIBUTES} {{\nentry:"
    switch = f" switch i32 %status, label %other [{' '.join(cases)}]"
    return strings, [head, switch, f"other:\n ret ptr @message{len(texts) - 1}", *blocks, "}"]

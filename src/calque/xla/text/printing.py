"""Modules as text, in the form and with the names that MLIR gives: %0, %cst, %arg0, %iterArg."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from calque.xla.text.tree import Function, Location, Module, Op, Region, Value, escaped

_STEP: Final = "  "


class Names:
    """The names of values in a region and in those around it."""

    def __init__(self, outer: Names | None = None) -> None:
        self.text: dict[Value, str] = dict(outer.text) if outer else {}
        self.used: set[str] = set(outer.used) if outer else set()
        self.values: int = outer.values if outer else 0
        self.args: int = outer.args if outer else 0
        self.conflicts: int = outer.conflicts if outer else 0

    def argument(self, v: Value) -> None:
        """An argument of the region: %arg0, or by its hint."""
        if v.hint:
            self.text[v] = f"%{self._unique(v.hint)}"
        else:
            self.text[v] = f"%arg{self.args}"
            self.args += 1

    def results(self, values: Sequence[Value]) -> None:
        """The results of an operation: %0, or %0#0 and %0#1, or by their hints."""
        if not values:
            return
        if values[0].hint:
            for v in values:
                self.text[v] = f"%{self._unique(v.hint)}"
            return
        base = f"%{self.values}"
        self.values += 1
        for i, v in enumerate(values):
            self.text[v] = base if len(values) == 1 else f"{base}#{i}"

    def _unique(self, hint: str) -> str:
        name = hint
        while name in self.used:
            name = f"{hint}_{self.conflicts}"
            self.conflicts += 1
        self.used.add(name)
        return name


class Printer:
    """Writes a module line by line; with `located` each operation says where it comes from."""

    def __init__(self, located: bool) -> None:
        self.lines: list[str] = []
        self.located = located
        self.aliases: dict[str, str] = {}

    def module(self, m: Module) -> str:
        attributes = f" attributes {{{', '.join(m.attributes)}}}" if m.attributes else ""
        self.lines.append(f"module @{m.name}{attributes} {{")
        self.lines += [f"{_STEP}{d}" for d in m.declarations]
        for f in m.functions:
            self.function(f)
        self.lines += m.others
        self.lines.append("}" + self.place(None))
        self.lines += [f"{name} = {text}" for text, name in self.aliases.items()]
        return "\n".join(self.lines) + "\n"

    def function(self, f: Function) -> None:
        names = Names()
        for v in f.body.args:
            names.argument(v)
        args = []
        for i, v in enumerate(f.body.args):
            attributes = f.arg_attributes[i] if f.arg_attributes else ""
            named = f.arg_names[i] if f.arg_names else ""
            text = f"{names.text[v]}: {v.type}" + (f" {attributes}" if attributes else "")
            args.append(text + (self.alias(f'loc("{named}")') if named and self.located else ""))
        results = [
            f"{t} {a}" if a else str(t)
            for t, a in zip(f.results, f.result_attributes or [""] * len(f.results))
        ]
        out = ""
        if results:
            bare = len(results) == 1 and not any(f.result_attributes)
            out = f" -> {results[0]}" if bare else f" -> ({', '.join(results)})"
        kind = "public" if f.public else "private"
        self.lines.append(f"{_STEP}func.func {kind} @{f.name}({', '.join(args)}){out} {{")
        self.region_ops(f.body, names, 2 * _STEP)
        self.lines.append(f"{_STEP}}}{self.place(None)}")

    def region_ops(self, r: Region, names: Names, indent: str) -> None:
        for op in r.ops:
            names.results(op.results)
        for op in r.ops:
            self.op(op, names, indent)

    def op(self, op: Op, names: Names, indent: str) -> None:
        line = indent
        if op.results:
            shared, at, _ = names.text[op.results[0]].partition("#")
            listed = ", ".join(names.text[v] for v in op.results)
            line += f"{shared}:{len(op.results)} = " if at else f"{listed} = "
        shown = names
        bare = next((p for p in op.parts if isinstance(p, Region) and not p.header), None)
        if bare is not None:
            shown = Names(names)  # the operation itself names the arguments of its regions
            for v in bare.args:
                shown.argument(v)
        for part in op.parts:
            if isinstance(part, Value):
                line += shown.text[part]
            else:
                line = self.part(part, names, indent, line)
        self.lines.append(line + self.place(op.location))

    def part(self, part: str | Region, names: Names, indent: str, line: str) -> str:
        """The line with a further part; complete lines are handed on."""
        if isinstance(part, Region):
            self.lines.append(line + "{")
            inner = Names(names)
            for v in part.args:
                inner.argument(v)
            if part.header and part.args:
                listed = ", ".join(f"{inner.text[v]}: {v.type}" for v in part.args)
                self.lines.append(f"{indent}^bb0({listed}):")
            self.region_ops(part, inner, indent + _STEP)
            return indent + "}"
        *whole, last = part.split("\n")
        for text in whole:
            self.lines.append(line + text)
            line = indent
        return line + last

    # --- locations --------------------------------------------------------------------------------

    def place(self, location: Location | None) -> str:
        if not self.located:
            return ""
        if location is None:
            return self.alias("loc(unknown)")
        if not location.file:
            return self.alias(f'loc("{escaped(location.path)}")')
        where = self.alias(f'loc("{escaped(location.file)}":{location.line}:0)').strip()
        inner = self.alias(f'loc("{escaped(location.function)}"({where[4:-1]}))').strip()
        return self.alias(f'loc("{escaped(location.path)}"({inner[4:-1]}))')

    def alias(self, text: str) -> str:
        """loc(#loc3), which is explained at the end."""
        known = self.aliases.get(text)
        if known is None:
            number = len(self.aliases)
            known = self.aliases[text] = f"#loc{number or ''}"
        return f" loc({known})"


def printed(module: Module, *, located: bool = False) -> str:
    """The module as text."""
    return Printer(located).module(module)

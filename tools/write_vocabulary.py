#!/usr/bin/env python3
"""Writes `src/calque/core/vocabulary.pyi`: the primitives of `do` as type checkers see them, read
off the primitives themselves.

python tools/write_vocabulary.py            writes the file
python tools/write_vocabulary.py --check    exits 1 if it is not what it would write
"""

import importlib
import inspect
import pathlib
import pkgutil
import sys
from typing import Any

import calque
from calque.core.primitives import REGISTRY, Primitive
from calque.core.vocabulary import attribute

FILE = pathlib.Path(calque.__file__).parent / "core" / "vocabulary.pyi"
ROOMS = ("calque.ops", "calque.transforms")  # where primitives are constructed
TYPES = {name: name for name in ("int", "bool", "float", "str")}
TYPES["Shape"] = "tuple[Any, ...]"  # sizes may be free
OPERANDS = {"regularized_incomplete_beta": 3}  # of elementwise primitives with more than two

HEAD = '''"""The primitives of `do`. Written by `tools/write_vocabulary.py`; do not edit."""

from collections.abc import Callable
from typing import Any

from calque.core.arrays import Array

class Vocabulary:
    def __getitem__(self, name: str) -> Callable[..., Any]: ...
'''
FOOT = """
def attribute(name: str) -> str: ...
def offer(name: str, bind: Callable[..., Any], defaults: dict[str, Any]) -> None: ...

do: Vocabulary
"""


def primitives() -> list[Primitive]:
    for room in ROOMS:
        path = importlib.import_module(room).__path__
        for module in pkgutil.walk_packages(path, f"{room}."):
            importlib.import_module(module.name)
    return [REGISTRY[name] for name in sorted(REGISTRY)]


def of_kind(f: Any, *kinds: Any) -> list[inspect.Parameter]:
    return [p for p in inspect.signature(f).parameters.values() if p.kind in kinds]


def operands(p: Primitive, elementwise: bool) -> list[str]:
    named = of_kind(
        p.shape, inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    )
    several = of_kind(p.shape, inspect.Parameter.VAR_POSITIONAL)
    if several and elementwise:
        return [f"{'xyz'[i]}: Any" for i in range(OPERANDS.get(p.name, 2))] + ["/"]
    out = [f"{q.name}: Any" for q in named]
    return (out + ["/"] if out else []) + [f"*{q.name}: Any" for q in several]


def parameters(p: Primitive, elementwise: bool) -> list[str]:
    """Those that the rules for the shape and the meaning name; all others where a rule takes them
    as they come."""
    rules = [f for f in (p.shape, p.meaning) if inspect.isfunction(f)]
    found: dict[str, inspect.Parameter] = {}
    for rule in rules:
        for q in of_kind(rule, inspect.Parameter.KEYWORD_ONLY):
            found.setdefault(q.name, q)
    out = []
    for name, q in sorted(found.items()):
        kind = TYPES.get(q.annotation, "Any") if isinstance(q.annotation, str) else "Any"
        default = " = ..." if name in p.defaults or q.default is not q.empty else ""
        out.append(f"{name}: {kind}{default}")
    out += [f"{name}: Any = ..." for name in sorted(p.defaults.keys() - found.keys())]
    open_ended = all(of_kind(rule, inspect.Parameter.VAR_KEYWORD) for rule in rules)
    return (
        (["*"] if out else []) + out + (["**params: Any"] if open_ended and not elementwise else [])
    )


def declaration(p: Primitive) -> str:
    elementwise = getattr(p.shape, "__module__", "") == "calque.ops.kinds"
    given, taken = operands(p, elementwise), parameters(p, elementwise)
    if any(g.startswith("*") for g in given) and taken[:1] == ["*"]:
        taken = taken[1:]
    arguments = ", ".join(["self", *given, *taken])
    result = "list[Array]" if p.multiple_results else "Array"
    line = f"    def {attribute(p.name)}({arguments}) -> {result}: ..."
    if len(line) <= 100:
        return line
    inside = "".join(f"        {a},\n" for a in ["self", *given, *taken])
    return f"    def {attribute(p.name)}(\n{inside}    ) -> {result}: ..."


def main() -> int:
    text = HEAD + "\n".join(map(declaration, primitives())) + "\n" + FOOT
    if "--check" not in sys.argv[1:]:
        FILE.write_text(text)
        return 0
    if FILE.read_text() == text:
        return 0
    print(f"{FILE} is not what the primitives say: run python tools/write_vocabulary.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Checks the rules of the house: import floors, no import cycles, no imports inside functions,
sizes of files and functions.

python tools/check_house.py            prints what breaks a rule and exits 1, or exits 0
"""

import ast
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent / "src"
FILE_LINES, FUNCTION_LINES, FUNCTION_P95, FUNCTION_MEDIAN = 600, 100, 40, 8

# A room imports only from what stands before it in its list. What no list names belongs to the
# library, the top floor.
FLOORS = {
    "calque": ["machine", "core", "ops", "transforms", "native"],
    "calque.machine": [
        "caches",
        "state",
        "lazy",
        "code",
        "lang",
        "integers",
        "memory",
        "threads",
        "driver",
        "objects",
        "call",
        "routines",
    ],
    "calque.transforms": ["engines", "primitives", "functions", "devices", "jit"],
    "calque.native": [
        "scalars",
        "passes",
        "loops",
        "lower",
        "schedule",
        "emit",
        "plan",
        "library",
        "control",
        "views",
        "backend",
        "symbolic",
        "eager",
    ],
}


def modules() -> dict[str, pathlib.Path]:
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = list(path.relative_to(ROOT).with_suffix("").parts)
        if parts[-1] == "__init__":
            parts.pop()
        found[".".join(parts)] = path
    return found


def above(module: str, target: str) -> str | None:
    """The list of rooms in which the target stands after the module, if there is one."""
    here, there = module.split("."), target.split(".")
    for depth in range(1, min(len(here), len(there))):
        house = ".".join(here[:depth])
        if here[:depth] != there[:depth] or house not in FLOORS:
            return None
        rooms = FLOORS[house]
        place = [rooms.index(p[depth]) if p[depth] in rooms else len(rooms) for p in (here, there)]
        if place[0] != place[1]:
            return house if place[1] > place[0] else None
    return None


def imported(node: ast.AST, known: dict[str, pathlib.Path]) -> list[str]:
    if isinstance(node, ast.Import):
        return [a.name for a in node.names if a.name.startswith("calque")]
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("calque"):
        inner = [f"{node.module}.{a.name}" for a in node.names]
        return [m if m in known else str(node.module) for m in inner]
    return []


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Strongly connected components of more than one module (Tarjan, without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on: set[str] = set()
    found = []
    for root in graph:
        if root in index:
            continue
        work = [(root, iter(sorted(graph[root])))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on.add(root)
        while work:
            node, successors = work[-1]
            for s in successors:
                if s not in graph:
                    continue
                if s not in index:
                    index[s] = low[s] = len(index)
                    stack.append(s)
                    on.add(s)
                    work.append((s, iter(sorted(graph[s]))))
                    break
                if s in on:
                    low[node] = min(low[node], index[s])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = []
                    while True:
                        m = stack.pop()
                        on.discard(m)
                        component.append(m)
                        if m == node:
                            break
                    if len(component) > 1:
                        found.append(sorted(component))
    return found


def without_type_imports(tree: ast.Module) -> ast.Module:
    """The module as it runs: what stands under `if TYPE_CHECKING:` is for the checker alone."""

    class Strip(ast.NodeTransformer):
        def visit_If(self, node: ast.If) -> ast.AST | None:
            if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
                return ast.If(node.test, [ast.Pass()], node.orelse) if node.orelse else None
            return node

    return Strip().visit(tree)


def check_module(
    module: str, path: pathlib.Path, known: dict[str, pathlib.Path], lengths: list[int]
) -> tuple[list[str], set[str]]:
    """What breaks a rule in one file, and the modules it imports."""
    text = path.read_text()
    lines = text.count("\n") + 1
    problems = [f"{path}: {lines} lines, at most {FILE_LINES}"] if lines > FILE_LINES else []
    targets: set[str] = set()
    for node in ast.walk(without_type_imports(ast.parse(text))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            n = (node.end_lineno or node.lineno) - node.lineno + 1
            lengths.append(n)
            if n > FUNCTION_LINES:
                problems.append(
                    f"{path}:{node.lineno}: function {node.name} has {n} lines, at most"
                    f" {FUNCTION_LINES}"
                )
            problems += [
                f"{path}:{node.lineno}: {node.name} imports {t}"
                for inner in ast.walk(node)
                for t in imported(inner, known)
            ]
        for target in imported(node, known):
            targets.add(target)
            house = above(module, target)
            if house is not None:
                problems.append(f"{path}: {module} imports {target}, which is above it in {house}")
    return problems, targets - {module}


def main() -> int:
    known = modules()
    problems: list[str] = []
    lengths: list[int] = []
    graph: dict[str, set[str]] = {}
    for module, path in known.items():
        found, graph[module] = check_module(module, path, known, lengths)
        problems += found
    problems += [f"import cycle: {', '.join(c)}" for c in cycles(graph)]
    lengths.sort()
    p95 = lengths[int(len(lengths) * 0.95)] if lengths else 0
    median = statistics.median(lengths) if lengths else 0
    if p95 > FUNCTION_P95 or median > FUNCTION_MEDIAN:
        problems.append(
            f"functions: median {median} lines (at most {FUNCTION_MEDIAN}), 95th percentile {p95}"
            f" (at most {FUNCTION_P95})"
        )
    for p in problems:
        print(p)
    print(
        f"{len(known)} modules, {len(lengths)} functions, median {median} lines, 95th percentile"
        f" {p95}: {len(problems)} problems"
    )
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())

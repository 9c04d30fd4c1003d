#!/usr/bin/env python3
"""Checks the rules of the house: import floors (of lazy imports too), no import cycles, no imports
inside functions, no state that nobody owns, a file of tests for each file of the source, sizes of
folders, files and functions.

python tools/check_house.py            prints what breaks a rule and exits 1, or exits 0
python tools/check_house.py --write    also writes the floors into ARCHITECTURE.md
"""

import ast
import collections
import pathlib
import statistics
import sys
from collections.abc import Iterable, Iterator

ROOT = pathlib.Path(__file__).resolve().parent.parent / "src"
PAGE = ROOT.parent / "ARCHITECTURE.md"
TESTS = ROOT.parent / "tests"
FOLDER_FILES, FILE_LINES, FUNCTION_LINES, FUNCTION_P95, FUNCTION_MEDIAN = 40, 600, 100, 40, 8

# The floors of each house, from the lowest. A line is one floor: its rooms may import each other
# (never in a circle) and what stands on the floors before it, at once or lazily. Every room of a
# house stands here.
FLOORS = {
    "calque": [
        "machine",
        "core",
        "ops",
        "transforms",
        "native",
        "xla",
        "profiling",
        "contexts device_functions environment errors memory sharding stages tree tree_util typing",
        "ad_checkpoint control_flow custom_batching custom_derivatives distributed export ffi lax"
        " monitoring profiler",
        "numpy",
        "debug dlpack dtypes explaining extend flatten_util image interpreters random ref"
        " test_util",
        "experimental nn",
        "api_util example_libraries scipy",
        "compat",
        "command_line",
        "__main__",
    ],
    "calque.machine": [
        "caches records",
        "once",
        "state",
        "daemons exits foreign foreign_parts frozen lazy processors room spans syntax variables",
        "code",
        "lang",
        "integers",
        "clock generator memory",
        "huge_pages threads",
        "driver",
        "objects",
        "call",
        "routines",
    ],
    "calque.core": [
        "absl_flags config errors foreign_flags foreign_values"
        " key_paths lazy notebooks pause polynomials source vocabulary",
        "treedefs",
        "pytrees",
        "containers",
        "advice devices dims dtypes guards key_use symbols tracebacks",
        "adopting avals extents",
        "trace_state",
        "leaks primitives",
        "jaxprs",
        "at_sizes printing",
        "trace",
        "arrays origins outside",
        "reference types",
        "backends",
    ],
    "calque.ops": [
        "associative conversions dimension_numbers gamma_gradients padding window_checks",
        "common",
        "found_sizes kinds layout scalar_programs staging",
        "arithmetic bits complexes creation fft indexing joining linalg math random rounding sizes"
        " special",
        "broadcasting compare convert cumulative products reductions scatter slicing windows",
        "reduce scatter_functions select_windows slicing_functions sorting",
    ],
    "calque.transforms": ["engines", "primitives", "functions", "devices", "jit"],
    "calque.native": [
        "scalars",
        "passes",
        "loops",
        "lower",
        "schedule",
        "emit",
        "routines",
        "calls stored",
        "plan",
        "library",
        "control",
        "views",
        "executable",
        "backend",
        "symbolic",
        "eager libraries",
    ],
    "calque.xla": [
        "jaxlib mlir plugin_libraries text",
        "chosen_shardings clusters drivers failures processes lower stored vendors",
        "devices foreign_functions partitioners",
        "buffers",
        "engine shared_memory stages",
        "unknown_sizes",
        "exporting plugins",
    ],
    "calque.numpy": [
        "descriptions promotion signatures",
        "calls ufuncs",
        "conversions creation indexing joining matrices moving ranges reductions shaping",
        "buffers contractions elementwise fft fourier nans packing predicates queries scalars"
        " sharing sorting vectorizing",
        "arranging averages choosing calculus diagonals editing grids linalg methods namespace"
        " public sets ufunc_objects windows",
        "histograms padding polynomials",
        "segments",
    ],
    "calque.random": ["keys", "tails uniform", "counts distributions", "choosing gamma matrices"],
}

# Calls that make something that can be changed.
CONTAINERS = {
    *("dict", "list", "set", "bytearray", "OrderedDict", "Counter", "defaultdict", "deque"),
    *("WeakSet", "WeakKeyDictionary", "WeakValueDictionary", "count", "local"),
}

# Calls that import a module by its name, when it is first used.
LAZY_IMPORTS = {"LazyModule", "function", "imported", "import_module", "__import__", "offer"}


def modules() -> dict[str, pathlib.Path]:
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = list(path.relative_to(ROOT).with_suffix("").parts)
        if parts[-1] == "__init__":
            parts.pop()
        found[".".join(parts)] = path
    return found


def printed_floors() -> str:
    """The floors as ARCHITECTURE.md shows them."""
    lines = ["```"]
    for house, floors in FLOORS.items():
        lines.append(house)
        lines += [f"  {number:2}  {rooms}" for number, rooms in enumerate(floors, 1)]
    return "\n".join([*lines, "```"])


def page_with_floors() -> tuple[str, str]:
    """ARCHITECTURE.md as it is, and as it should be."""
    text = PAGE.read_text()
    before, rest = text.split("<!-- floors -->")
    _, after = rest.split("<!-- end of floors -->")
    middle = f"<!-- floors -->\n{printed_floors()}\n<!-- end of floors -->"
    return text, before + middle + after


def floor_of(house: str, room: str) -> int | None:
    """Where a room stands in its house, counted from the lowest floor."""
    for number, rooms in enumerate(FLOORS[house]):
        if room in rooms.split():
            return number
    return None


def above(module: str, target: str) -> str | None:
    """The house in which the target stands on a higher floor than the module, if there is one."""
    here, there = module.split("."), target.split(".")
    for depth in range(1, min(len(here), len(there))):
        house = ".".join(here[:depth])
        if here[:depth] != there[:depth] or house not in FLOORS:
            return None
        if here[depth] != there[depth]:
            low, high = floor_of(house, here[depth]), floor_of(house, there[depth])
            return house if low is not None and high is not None and high > low else None
    return None


def unlisted(known: Iterable[str]) -> list[str]:
    """What breaks the rule that every room of a house stands on a floor, and every floor's rooms
    exist."""
    problems = []
    for house, floors in FLOORS.items():
        named = [room for rooms in floors for room in rooms.split()]
        depth = house.count(".") + 1
        there = {m.split(".")[depth] for m in known if m.startswith(f"{house}.")}
        problems += [
            f"{house}.{room} stands on no floor: give it one in FLOORS of tools/check_house.py"
            for room in sorted(there - set(named))
        ]
        problems += [
            f"{house}.{room} stands in FLOORS {named.count(room)} times and "
            + ("exists" if room in there else "does not exist")
            for room in sorted(set(named))
            if room not in there or named.count(room) > 1
        ]
    return problems


def imported(node: ast.AST, known: dict[str, pathlib.Path]) -> list[str]:
    if isinstance(node, ast.Import):
        return [a.name for a in node.names if a.name.startswith("calque")]
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("calque"):
        inner = [f"{node.module}.{a.name}" for a in node.names]
        return [m if m in known else str(node.module) for m in inner]
    return []


def imported_lazily(node: ast.AST, known: dict[str, pathlib.Path]) -> list[str]:
    """The modules that a call imports by name when they are first used: `LazyModule("calque.x")`,
    `lazy.function("calque.x", name)`. Of a name that is put together, its fixed beginning."""
    if not isinstance(node, ast.Call):
        return []
    called = node.func.attr if isinstance(node.func, ast.Attribute) else node.func
    called = called.id if isinstance(called, ast.Name) else called
    if called not in LAZY_IMPORTS:
        return []
    found = []
    for argument in (*node.args, *(k.value for k in node.keywords)):
        if isinstance(argument, ast.JoinedStr) and argument.values:
            argument = argument.values[0]
        name = getattr(argument, "value", None)
        if isinstance(name, str) and f"{name}.".startswith("calque."):
            while name and name not in known:
                name = name.rpartition(".")[0]
            found.append(name)
    return found


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


def is_container(value: ast.AST | None) -> bool:
    """Does the expression make a container or counter that can be changed?"""
    if isinstance(value, ast.Call):
        name = ast.unparse(value.func).rpartition(".")[2]
        return name in CONTAINERS
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.BitOr):
        return is_container(value.left) or is_container(value.right)
    if isinstance(value, ast.Subscript):  # defaultdict[str, int](...)
        return is_container(value.value)
    kinds = (ast.Dict, ast.List, ast.Set, ast.DictComp, ast.ListComp, ast.SetComp)
    return isinstance(value, kinds)


def is_empty(value: ast.AST) -> bool:
    """Is a container empty when it is made? Then it is there to be filled: it is state."""
    if isinstance(value, ast.Call):
        name = ast.unparse(value.func).rpartition(".")[2]
        return name not in ("dict", "list", "set") or not (value.args or value.keywords)
    parts = [*getattr(value, "keys", ()), *getattr(value, "elts", ())]
    return not parts and isinstance(value, (ast.Dict, ast.List, ast.Set))


def module_level(tree: ast.Module) -> Iterator[ast.stmt]:
    """The statements that run when the module is imported, outside functions and classes."""
    todo = list(reversed(tree.body))
    while todo:
        node = todo.pop()
        yield node
        if isinstance(node, (ast.If, ast.For, ast.While, ast.With, ast.Try)):
            todo.extend(
                reversed([n for n in ast.iter_child_nodes(node) if isinstance(n, ast.stmt)])
            )


def loose_state(module: str, path: pathlib.Path, tree: ast.Module) -> list[str]:
    """State of the process that nobody owns: global names that functions set, containers of modules
    that are no constants. Caches are declared by `machine.caches`, all else by `machine.state`."""
    problems = [
        f"{path}:{node.lineno}: global {', '.join(node.names)}: declare it with process.value"
        for node in ast.walk(tree)
        if isinstance(node, ast.Global)
    ]
    if module != "calque.machine.state":
        problems += [
            f"{path}:{node.lineno}: what belongs to a thread derives from machine.state.PerThread"
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and ast.unparse(node) == "threading.local"
        ]
    for node in module_level(tree):
        if isinstance(node, ast.AnnAssign):
            targets, is_final = [node.target], ast.unparse(node.annotation).startswith("Final")
        elif isinstance(node, ast.Assign):
            targets, is_final = node.targets, False
        else:
            continue
        for target in targets:
            name = ast.unparse(target)
            is_plain = isinstance(target, ast.Name) and name != "__all__"
            if not is_plain or not is_container(node.value):
                continue
            assert node.value is not None
            if is_empty(node.value):
                problems.append(
                    f"{path}:{node.lineno}: {name} is filled later: a cache is declared with"
                    " machine.caches, anything else with process.container"
                )
            elif not is_final:
                problems.append(f"{path}:{node.lineno}: {name} can be changed: make it Final")
    return problems


def has_code(tree: ast.Module) -> bool:
    """Does a file define functions? Facades, tables and protocols are tested where they are
    used."""
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return True
        if isinstance(node, ast.ClassDef) and not any(
            "Protocol" in ast.unparse(b) for b in node.bases
        ):
            if any(isinstance(n, ast.FunctionDef) for n in node.body):
                return True
    return False


def file_of_tests(path: pathlib.Path) -> pathlib.Path:
    """Where the tests of a file of the source stand."""
    room = path.relative_to(ROOT / "calque").parent
    return TESTS / room / f"test_{path.name}"


def untested(known: dict[str, pathlib.Path]) -> list[str]:
    """Files of the source without their file of tests."""
    if not TESTS.exists():
        return []
    return [
        f"{module} has no tests: {file_of_tests(path).relative_to(ROOT.parent)}"
        for module, path in known.items()
        if path.stem not in ("__init__", "__main__")
        and not file_of_tests(path).exists()
        and has_code(ast.parse(path.read_text()))
    ]


def crowded(known: dict[str, pathlib.Path]) -> list[str]:
    """Folders that have become too large to be looked through."""
    files = collections.Counter(path.parent for path in known.values())
    return [
        f"{folder}: {n} files, at most {FOLDER_FILES}: it needs a room inside"
        for folder, n in files.items()
        if n > FOLDER_FILES
    ]


def check_module(
    module: str, path: pathlib.Path, known: dict[str, pathlib.Path], lengths: list[int]
) -> tuple[list[str], set[str]]:
    """What breaks a rule in one file, and the modules it imports."""
    text = path.read_text()
    lines = text.count("\n") + 1
    problems = [f"{path}: {lines} lines, at most {FILE_LINES}"] if lines > FILE_LINES else []
    tree = ast.parse(text)
    typed = {t for node in ast.walk(tree) for t in imported(node, known)}
    problems += loose_state(module, path, tree)
    targets: set[str] = set()
    lazily: set[str] = set()
    for node in ast.walk(without_type_imports(tree)):
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
        targets.update(imported(node, known))
        lazily.update(imported_lazily(node, known))
    ways = {"imports": targets, "imports lazily": lazily, "names for the checker": typed - targets}
    problems += [
        f"{path}: {module} {way} {target}, which is above it in {above(module, target)}"
        for way, modules_of in ways.items()
        for target in sorted(modules_of)
        if above(module, target) is not None
    ]
    return problems, targets - {module}


def main() -> int:
    known = modules()
    problems: list[str] = []
    lengths: list[int] = []
    graph: dict[str, set[str]] = {}
    for module, path in known.items():
        found, graph[module] = check_module(module, path, known, lengths)
        problems += found
    problems += unlisted(known)
    problems += untested(known)
    problems += crowded(known)
    problems += [f"import cycle: {', '.join(c)}" for c in cycles(graph)]
    lengths.sort()
    p95 = lengths[int(len(lengths) * 0.95)] if lengths else 0
    median = statistics.median(lengths) if lengths else 0
    if p95 > FUNCTION_P95 or median > FUNCTION_MEDIAN:
        problems.append(
            f"functions: median {median} lines (at most {FUNCTION_MEDIAN}), 95th percentile {p95}"
            f" (at most {FUNCTION_P95})"
        )
    page, wanted = page_with_floors()
    if "--write" in sys.argv:
        PAGE.write_text(wanted)
    elif page != wanted:
        problems.append(f"{PAGE}: the floors are others now: python tools/check_house.py --write")
    for p in problems:
        print(p)
    print(
        f"{len(known)} modules, {len(lengths)} functions, median {median} lines, 95th percentile"
        f" {p95}: {len(problems)} problems"
    )
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())

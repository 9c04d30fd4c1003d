"""Measures what docs/benchmarks.md shows, beside JAX, PyTorch, Numba and NumPy where they are
installed, and writes the page: on an otherwise idle machine, in some five minutes.

    python benchmarks/report.py                    measures, keeps the results, writes the page
    python benchmarks/report.py --quick            a try in a minute: prints, writes no page
    python benchmarks/report.py --page FILE        writes the page from results that are there
"""

from __future__ import annotations

import argparse
import functools
import importlib
import importlib.metadata
import json
import os
import pathlib
import platform
import statistics
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import page
import scale
import suite
from measure import has, seconds

RESULTS = pathlib.Path(__file__).with_name("report.json")
PEERS = ("jax", "numpy", "torch", "numba")
COMPILED = {
    "elementwise",
    "reductions",
}  # what torch.compile is tried on: it takes seconds for each
SLOW = 0.3  # seconds: a call that takes longer is measured in one round
Call = Callable[[], Any]


# ---------------------------------------------------------------- how each library runs a program


def through(j: Any, program: suite.Program) -> Call:
    """A call of calque or JAX that waits for the result."""
    arguments = j.tree_util.tree_map(j.numpy.asarray, program.arguments)
    function = functools.partial(program.function, j)
    call = function if program.eager else j.jit(function)
    return lambda: j.block_until_ready(call(*arguments))


def through_torch(program: suite.Program, compiled: bool = False) -> Call:
    torch = importlib.import_module("torch")
    to_tensors = importlib.import_module("torch.utils._pytree").tree_map
    arguments = to_tensors(torch.from_numpy, program.arguments)
    function = functools.partial(program.torch, torch)
    call = torch.compile(function, dynamic=False) if compiled else function
    return lambda: call(*arguments)


def through_numba(program: suite.Program) -> Call:
    call = importlib.import_module("numba").njit(fastmath=False)(program.numba)
    return lambda: call(*program.arguments)


def calls(program: suite.Program, libraries: list[str], compile_torch: bool) -> dict[str, Call]:
    out: dict[str, Call] = {}
    for library in libraries:
        if library in ("calque", "jax"):
            out[library] = through(importlib.import_module(library), program)
        elif library == "numpy" and program.numpy:
            out[library] = functools.partial(program.numpy, *program.arguments)
        elif library == "torch" and program.torch:
            out[library] = through_torch(program)
        elif library == "numba" and program.numba:
            out[library] = through_numba(program)
    if compile_torch and "torch" in out and program.group in COMPILED:
        out["compiled"] = through_torch(program, compiled=True)
    return out


def agree(results: dict[str, Any]) -> None:
    """Times mean nothing where results differ: the beginnings of those of calque and JAX."""
    leaves = importlib.import_module("calque").tree_util.tree_leaves
    if {"calque", "jax"} <= results.keys():
        for ours, theirs in zip(leaves(results["calque"]), leaves(results["jax"]), strict=True):
            parts = (np.asarray(x).ravel()[:100_000] for x in (ours, theirs))
            np.testing.assert_allclose(*parts, rtol=2e-2, atol=2e-2)


def timed(work: dict[str, Call], rounds: int, budget: float) -> dict[str, float]:
    """The median time of each, all in turn."""
    agree({name: call() for name, call in work.items()})
    times: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(rounds):
        for name, call in work.items():
            if not times[name] or times[name][0] < SLOW:
                times[name].append(seconds(call, budget))
    return {name: statistics.median(found) for name, found in times.items()}


# ---------------------------------------------------------------- what is measured


def measure_suite(libraries: list[str], quick: bool, compile_torch: bool) -> list[dict[str, Any]]:
    rows = []
    programs = suite.PROGRAMS[::4] if quick else suite.PROGRAMS
    for program in programs:
        work = calls(program, libraries, compile_torch)
        times = timed(work, *((1, 0.01) if quick else (3, 0.04)))
        rows.append({"group": program.group, "name": program.name, "times": times})
        print(f"{program.group}, {program.name}: {times}", file=sys.stderr, flush=True)
    return rows


def sized(name: str, size: int) -> suite.Program:
    """A program of the tables of cost against size."""
    if name == "matmul":
        a = suite.normal(size, size)
        return suite.Program(
            "", name, (a,), lambda j, a: a @ a, lambda a: a @ a, lambda t, a: a @ a
        )
    x = np.resize(suite.V, size)
    if name == "sum of exp":
        return suite.Program(
            "", name, (x,), lambda j, x: j.numpy.exp(x).sum(), lambda x: np.exp(x).sum(),
            lambda t, x: t.exp(x).sum(),
        )  # fmt: skip
    return suite.Program(
        "", name, (x, x[::-1].copy()), lambda j, x, y: 2 * x + y, lambda x, y: 2 * x + y,
        lambda t, x, y: 2 * x + y,
    )  # fmt: skip


def measure_sizes(
    names: tuple[str, ...], sizes: tuple[int, ...], libraries: list[str], quick: bool
) -> list[dict[str, Any]]:
    rows = []
    for name in names:
        for size in sizes:
            if name != "matmul" and 40 * size > memory():
                continue
            work = calls(sized(name, size), libraries, compile_torch=False)
            times = timed(work, *((1, 0.005) if quick else (3, 0.02)))
            rows.append({"program": name, "size": size, "times": times})
            print(f"{name} {size}: {times}", file=sys.stderr, flush=True)
    return rows


def measured(libraries: list[str], quick: bool, compile_torch: bool) -> dict[str, Any]:
    end = -2 if quick else None
    compilers = [x for x in libraries if x in ("calque", "jax")]
    return {
        "format": 1,
        "setting": "quick" if quick else "full",
        "machine": machine(libraries),
        "suite": measure_suite(libraries, quick, compile_torch),
        "scale": {
            "elements": measure_sizes(
                ("2 x + y", "sum of exp"), scale.ELEMENTS[:end], libraries, quick
            ),
            "products": measure_sizes(("matmul",), scale.PRODUCTS[:end], libraries, quick),
            "layers": scale.compiled("layers", scale.LAYERS[: -3 if quick else None], compilers),
            "equations": scale.compiled("equations", scale.EQUATIONS[:end], compilers),
        },
    }


def memory() -> int:
    """The bytes of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def machine(libraries: list[str]) -> dict[str, Any]:
    """What figures depend on."""
    info = pathlib.Path("/proc/cpuinfo")
    names = [x for x in info.read_text().splitlines() if "model name" in x] if info.exists() else []
    packages = [x for x in libraries if x != "calque"]
    versions = [f"{page.LIBRARIES[x]} {importlib.metadata.version(x)}" for x in packages]
    calque = importlib.import_module("calque")
    return {
        "processor": names[0].partition(":")[2].strip() if names else platform.machine(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "versions": ", ".join([f"calque {calque.__version__}", *versions]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few sizes, short; writes no page")
    parser.add_argument("--page", metavar="FILE", help="write the page from these results")
    parser.add_argument("--to", default=RESULTS, type=pathlib.Path, help="where to keep results")
    parser.add_argument("--no-torch-compile", action="store_true", help="PyTorch as it is, only")
    given = parser.parse_args()
    if given.page:
        print(*page.write(json.loads(pathlib.Path(given.page).read_text())), sep="\n")
        return
    libraries = ["calque", *(x for x in PEERS if has(x))]
    if "jax" in libraries:
        importlib.import_module("jax").config.update("jax_platforms", "cpu")
    results = measured(libraries, given.quick, not (given.quick or given.no_torch_compile))
    text = json.dumps(results, indent=1) + "\n"
    if given.quick:
        print(text)
    else:
        given.to.write_text(text)
        print(*page.write(results), sep="\n")


if __name__ == "__main__":
    main()

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
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import page
import scale
import suite
from measure import has, seconds

RESULTS = pathlib.Path(__file__).with_name("report.json")
PEERS = ("jax", "numpy", "torch", "numba")
COMPILED = {"2 x + y", "gelu", "softmax", "layer norm"}  # by torch.compile: seconds for each
SLOW = 0.3  # seconds: a call that takes longer is measured in one round
Call = Callable[[], Any]


# ---------------------------------------------------------------- one library, in its own process


def waiter(j: Any) -> Callable[[Any], Any]:
    """How a user waits for a result: calque's is there when the call returns."""
    if j.__name__ == "calque":
        return lambda x: x
    return lambda x: (
        x.block_until_ready() if hasattr(x, "block_until_ready") else j.block_until_ready(x)
    )


def through(j: Any, program: suite.Program) -> Call:
    """A call of calque or JAX that waits for the result."""
    arguments = j.tree_util.tree_map(j.numpy.asarray, program.arguments)
    function, wait = functools.partial(program.function, j), waiter(j)
    call = function if program.eager else j.jit(function)
    return lambda: wait(call(*arguments))


def through_torch(program: suite.Program, compiled: bool = False) -> Call:
    torch = importlib.import_module("torch")
    to_tensors = importlib.import_module("torch.utils._pytree").tree_map
    arguments = to_tensors(torch.from_numpy, program.arguments)
    function = functools.partial(program.torch, torch)
    call = torch.compile(function, dynamic=False) if compiled else function
    return lambda: call(*arguments)


def call_of(program: suite.Program, library: str) -> Call | None:
    """The program as this library has it, if it has."""
    if library in ("calque", "jax"):
        return through(importlib.import_module(library), program)
    if library == "numpy" and program.numpy:
        return functools.partial(program.numpy, *program.arguments)
    if library == "torch" and program.torch:
        return through_torch(program)
    if library == "compiled" and program.torch and program.name in COMPILED:
        return through_torch(program, compiled=True)
    if library == "numba" and program.numba:
        compiled = importlib.import_module("numba").njit(program.numba)
        return functools.partial(compiled, *program.arguments)
    return None


def timed(program: suite.Program, library: str, quick: bool) -> dict[str, float] | None:
    """Seconds a call, the median of rounds, and a number that tells results apart."""
    call = call_of(program, library)
    if call is None:
        return None
    check = size_of(call()) if library in ("calque", "jax") else 0.0
    times: list[float] = []
    for _ in range(1 if quick else 3):
        if not times or times[0] < SLOW:
            times.append(seconds(call, 0.01 if quick else 0.04))
    return {"seconds": statistics.median(times), "check": check}


def size_of(result: Any) -> float:
    """The mean magnitude of the beginnings of all results."""
    leaves = importlib.import_module("calque").tree_util.tree_leaves(result)
    parts = [np.abs(np.asarray(x).ravel()[:100_000].astype(np.float64)).mean() for x in leaves]
    return float(sum(parts))


def programs(part: str, quick: bool) -> Iterator[tuple[suite.Program, int]]:
    """The programs of a part of the report with their sizes."""
    end = -2 if quick else None
    if part == "suite":
        yield from ((p, 0) for p in (suite.PROGRAMS[::4] if quick else suite.PROGRAMS))
    elif part == "products":
        yield from ((sized("matmul", n), n) for n in scale.PRODUCTS[:end])
    else:
        sizes = [n for n in scale.ELEMENTS[:end] if 40 * n < memory()]
        yield from ((sized(name, n), n) for name in ("2 x + y", "sum of exp") for n in sizes)


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


def measure_here(library: str, part: str, quick: bool) -> None:
    """Prints what this library takes for each program of a part, a line each."""
    if library in ("calque", "jax"):  # not an accelerator that is there
        importlib.import_module(library).config.update("jax_platforms", "cpu")
    for program, size in programs(part, quick):
        got = timed(program, library, quick)
        if got:
            row = {"group": program.group, "name": program.name, "size": size, **got}
            print(json.dumps(row), flush=True)


# ---------------------------------------------------------------- all of them


def measured(part: str, libraries: list[str], quick: bool) -> list[dict[str, Any]]:
    """The rows of a part: each library in a process of its own, so that no threads of another wait
    beside it."""
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for library in libraries:
        command = [sys.executable, __file__, "--library", library, "--part", part]
        out = subprocess.run(
            command + ["--quick"] * quick, stdout=subprocess.PIPE, text=True, check=True
        ).stdout
        for line in out.splitlines():
            got = json.loads(line)
            key = got["group"], got["name"], got["size"]
            row = rows.setdefault(key, {"times": {}, "check": {}})
            row["times"][library], row["check"][library] = got["seconds"], got["check"]
        print(f"{part}: {library} measured", file=sys.stderr, flush=True)
    for key, row in rows.items():
        check = row.pop("check")
        if "jax" in check:
            np.testing.assert_allclose(check["calque"], check["jax"], rtol=2e-2, err_msg=str(key))
    if part == "suite":
        return [{"group": g, "name": name, **row} for (g, name, _), row in rows.items()]
    return [{"program": name, "size": size, **row} for (_, name, size), row in rows.items()]


def everything(libraries: list[str], quick: bool) -> dict[str, Any]:
    compilers = [x for x in libraries if x in ("calque", "jax")]
    without = [x for x in libraries if x not in ("numba", "compiled")]
    return {
        "format": 1,
        "setting": "quick" if quick else "full",
        "machine": machine(libraries),
        "suite": measured("suite", libraries, quick),
        "scale": {
            "elements": measured("elements", without, quick),
            "products": measured("products", without, quick),
            "layers": scale.compiled("layers", scale.LAYERS[: -3 if quick else None], compilers),
            "equations": scale.compiled(
                "equations", scale.EQUATIONS[: -2 if quick else None], compilers
            ),
        },
    }


def memory() -> int:
    """The bytes of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def machine(libraries: list[str]) -> dict[str, Any]:
    """What figures depend on."""
    info = pathlib.Path("/proc/cpuinfo")
    names = [x for x in info.read_text().splitlines() if "model name" in x] if info.exists() else []
    packages = [x for x in libraries if x not in ("calque", "compiled")]
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
    parser.add_argument("--library", help="measure one, here, and print it")
    parser.add_argument("--part", choices=("suite", "elements", "products"), default="suite")
    given = parser.parse_args()
    if given.page:
        print(*page.write(json.loads(pathlib.Path(given.page).read_text())), sep="\n")
    elif given.library:
        measure_here(given.library, given.part, given.quick)
    else:
        libraries = ["calque", *(x for x in PEERS if has(x))]
        if "torch" in libraries and not given.quick:
            libraries.append("compiled")
        results = everything(libraries, given.quick)
        text = json.dumps(results, indent=1) + "\n"
        if given.quick:
            print(text)
        else:
            given.to.write_text(text)
            print(*page.write(results), sep="\n")


if __name__ == "__main__":
    main()

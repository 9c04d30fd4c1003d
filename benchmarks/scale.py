"""Cost against size, for the report: elements, products, layers, equations.

Compilation is timed in processes of their own, each with an empty cache at first:
`python benchmarks/scale.py calque layers 12` prints what one such process measures.
"""

from __future__ import annotations

import importlib
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np

ELEMENTS = tuple(10**k for k in range(2, 9))
PRODUCTS = (64, 128, 256, 512, 1024, 2048, 4096)
LAYERS = (2, 6, 12, 24, 48)
EQUATIONS = (10, 100, 1_000, 5_000, 20_000)
LIMIT = 60.0  # seconds; a size is not tried where the one before took a third of it


# ---------------------------------------------------------------- what is compiled


def chain(j: Any, equations: int) -> tuple[Any, tuple[Any, ...]]:
    """A program without repetition: constants of their own everywhere, each tenth equation a
    product."""

    def f(x: Any, w: Any) -> Any:
        for k in range(equations // 10):
            for i in range(3):
                x = j.numpy.sin(x) * (1 + 1e-4 * k) + 0.1 * i
            x = x @ w
        return x

    return f, (j.numpy.ones((8, 64)), j.numpy.eye(64))


def network(j: Any, layers: int) -> tuple[Any, tuple[Any, ...]]:
    """A training step of a transformer, its layers one after the other."""
    rng, width = np.random.default_rng(0), 64

    def weights(*shape: int) -> Any:
        return j.numpy.asarray((0.1 * rng.standard_normal(shape)).astype(np.float32))

    shapes = {"qkv": (3, width, width), "up": (width, 4 * width), "down": (4 * width, width)}
    params = [{k: weights(*s) for k, s in shapes.items()} for _ in range(layers)]

    def norm(x: Any) -> Any:
        return (x - x.mean(-1, keepdims=True)) / j.numpy.sqrt(x.var(-1, keepdims=True) + 1e-5)

    def layer(p: Any, x: Any) -> Any:
        h = norm(x)
        q, k, v = h @ p["qkv"][0], h @ p["qkv"][1], h @ p["qkv"][2]
        x = x + j.nn.softmax(q @ k.swapaxes(-1, -2) / 8.0) @ v
        return x + j.nn.gelu(norm(x) @ p["up"]) @ p["down"]

    def loss(params: Any, x: Any) -> Any:
        for p in params:
            x = layer(p, x)
        return (x**2).mean()

    def step(params: Any, x: Any) -> Any:
        value, slopes = j.value_and_grad(loss)(params, x)
        return value, j.tree_util.tree_map(lambda p, g: p - 0.01 * g, params, slopes)

    return step, (params, weights(4, 32, width))


KINDS = {"equations": chain, "layers": network}


def measure_here(library: str, kind: str, size: int) -> dict[str, float]:
    """The first call and later ones of a program, in a process that has run a small one."""
    j = importlib.import_module(library)
    for name in ("numpy", "nn"):
        importlib.import_module(f"{library}.{name}")
    j.config.update("jax_platforms", "cpu")  # not an accelerator that is there
    j.block_until_ready(j.jit(lambda x: (x * 2, x @ x))(j.numpy.ones((3, 3))))
    function, arguments = KINDS[kind](j, size)
    call = j.jit(function)

    def seconds() -> float:
        start = time.perf_counter()
        j.block_until_ready(call(*arguments))
        return time.perf_counter() - start

    first = seconds()
    step = min(seconds() for _ in range(max(3, min(20, int(2 / max(seconds(), 1e-3))))))
    return {"first": first, "step": step, "memory": most_memory()}


def most_memory() -> float:
    """The most bytes that this process held. Linux counts that of the parent into `getrusage`."""
    status = pathlib.Path("/proc/self/status")
    if status.exists():
        line = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        return 1024 * float(line.split()[1])
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(most if sys.platform == "darwin" else 1024 * most)


# ---------------------------------------------------------------- processes


def compiled(kind: str, sizes: tuple[int, ...], libraries: list[str]) -> list[dict[str, Any]]:
    """A row for each size: seconds and bytes of each library, and of calque's second process."""
    rows, last = [], dict.fromkeys(libraries, 0.0)
    for size in sizes:
        row: dict[str, Any] = {"size": size, "first": {}, "step": {}, "memory": {}, "again": {}}
        for library in libraries:
            if last[library] > LIMIT / 3:
                continue
            with tempfile.TemporaryDirectory() as cache:
                got = in_process(library, kind, size, cache)
                last[library] = got["first"] if got else LIMIT
                for key, value in (got or {}).items():
                    row[key][library] = value
                again = in_process(library, kind, size, cache) if library == "calque" else None
                if again:
                    row["again"][library] = again["first"]
        rows.append(row)
        print(f"{kind} {size}: {row['first']}", file=sys.stderr, flush=True)
    return rows


def in_process(library: str, kind: str, size: int, cache: str) -> dict[str, float] | None:
    """What a process of its own measures, or nothing where it takes longer than the limit."""
    environment = {**os.environ, "CALQUE_CACHE_DIR": cache}
    environment["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
    command = [sys.executable, __file__, library, kind, str(size)]
    try:
        got = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=LIMIT + 10
        )
    except subprocess.TimeoutExpired:
        return None
    if got.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{got.stderr}")
    return dict(json.loads(got.stdout.splitlines()[-1]))


if __name__ == "__main__":
    print(json.dumps(measure_here(sys.argv[1], sys.argv[2], int(sys.argv[3]))))

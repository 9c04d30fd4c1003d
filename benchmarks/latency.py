"""What comes before a program runs: tracing, first calls, new shapes, the start of a process."""

import itertools
import os
import subprocess
import sys
import time

from measure import has

import calque

START = "import {m}, {m}.numpy as jnp; {m}.jit(lambda x: x * 2)(jnp.ones(3)).block_until_ready()"
FRESH = itertools.count(1)


def timed(call) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def first_call(m, n: int) -> None:
    """A program that no cache has seen: n operations with new constants."""
    c = float(next(FRESH))

    def f(x):
        for k in range(n):
            x = m.numpy.sin(x) * (c + k)
        return x

    m.jit(f)(m.numpy.ones(64)).block_until_ready()


def new_shapes(m) -> None:
    base = 100 * next(FRESH)
    for k in range(20):
        m.numpy.sum(m.numpy.ones((base + k,)) * 2.0 + 1.0).block_until_ready()


def start(name: str) -> float:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    return min(
        timed(
            lambda: subprocess.run(
                [sys.executable, "-c", START.format(m=name)], env=env, check=True
            )
        )
        for _ in range(3)
    )


def main() -> None:
    modules = {"calque": calque}
    if has("jax"):
        import jax

        modules["jax"] = jax
    rows = {
        "first call, 1 operation": lambda m: first_call(m, 1),
        "first call, 100 operations": lambda m: first_call(m, 100),
    }
    rows |= {"eager, 20 new shapes": new_shapes, "trace, 1000 operations": trace}
    for name, row in rows.items():
        times = {}
        for k, m in modules.items():
            row(m)
            times[k] = min(timed(lambda row=row, m=m: row(m)) for _ in range(3))
        show(name, times)
    show("process to first result", {k: start(k) for k in modules})


def trace(m) -> None:
    def f(x):
        for _ in range(1000):
            x = x * x
        return x

    m.make_jaxpr(f)(m.numpy.ones(4))


def show(name: str, times: dict[str, float]) -> None:
    text = "   ".join(f"{k} {t * 1e3:9.2f} ms" for k, t in times.items())
    ratios = "   ".join(
        f"{k}/calque {t / times['calque']:.1f}x" for k, t in times.items() if k != "calque"
    )
    print(f"{name:30s} {text}   {ratios}", flush=True)


if __name__ == "__main__":
    main()

"""Memory stays flat, losses stay equal and processes end well:

    python -m tests.soak [--functions N] [--endings N] [--minutes M]

A small model is trained for M minutes (an hour unless told). Before that, each round does one kind
of thing many times, then as many times again: what the latter add to the memory of the process is
leaked. Caches must be full before: 4,096 turns make every function once, and half as many more take
them from disk, which has tables of its own."""

import argparse
import gc
import sys
from collections.abc import Callable
from typing import Any

import calque
import calque.numpy as jnp
from tests.machine.test_daemons import PROGRAMS, leave
from tests.soak.memory import resident
from tests.soak.training import training

CODE = 64 << 20  # bytes of machine code at most
ALLOWED = 512  # bytes for each turn of the second half: memory is taken by pages and regions


def dropped_function(n: int) -> None:
    def f(x: Any) -> Any:
        for b in range(12):
            x = jnp.sin(x) + 1 if n >> b & 1 else x * 2 - jnp.abs(x)
        return x

    calque.jit(f)(jnp.arange(10.0))


def new_shape(n: int) -> None:
    x = jnp.ones((n % 331 + 1, n // 331 % 310 + 1))  # what is kept of 100,000 shapes is full
    jnp.sin(x) + x * 2


def gradient(n: int) -> None:
    scale = float(n)
    calque.jit(calque.grad(lambda x: (x * scale).sum()))(jnp.ones(5))


def failure(n: int) -> None:
    try:
        calque.jit(lambda x: x @ jnp.ones(n % 7 + 4))(jnp.ones(3))
    except TypeError:
        return
    raise AssertionError("nothing was raised")


def cycle(n: int) -> None:
    loop: list[Any] = [jnp.ones(100) * n]
    loop.append(loop)


STATIC = calque.jit(lambda x, n: x + n, static_argnums=1)


def static_value(n: int) -> None:
    STATIC(1.0, n)


def watch(name: str, once: Callable[[int], None], count: int) -> bool:
    """Run more than so many, so many again, and say what the latter have added."""
    known = count + count // 2
    for n in range(known):
        once(n)
    before = data()
    for n in range(known, known + count):
        once(n)
    slope = (data() - before) / count
    code = calque.stats()["bytes_of_code"]
    print(f"{name}: {slope:.0f} bytes a turn over {count}, {code} bytes of code", flush=True)
    return slope <= ALLOWED and code <= CODE


def data() -> int:
    """The memory of this process but for what holds code, which comes and goes by pools."""
    gc.collect()
    return resident() - calque.stats()["bytes_of_code"]


def endings(count: int) -> bool:
    """Processes that end while daemon threads work."""
    bad = 0
    for _ in range(count):
        for kind in PROGRAMS:
            done = leave(kind)
            if (done.returncode, done.stdout, done.stderr) != (0, "", ""):
                bad += 1
                print(f"{kind}: {done.returncode} {done.stderr}", flush=True)
    print(f"endings: {bad} bad of {count * len(PROGRAMS)}", flush=True)
    return bad == 0


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--functions", type=int, default=4096)
    parser.add_argument("--endings", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=60.0)
    given = parser.parse_args()
    n = given.functions
    kinds = (
        (dropped_function, n),
        (gradient, n),
        (static_value, n),
        (failure, 5 * n),
        (new_shape, 25 * n),
        (cycle, 10 * n),
    )
    fine = [watch(once.__name__, once, count) for once, count in kinds]
    fine += [endings(given.endings), training(given.minutes)]
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())

"""What transformations cost by the length of a program, beside JAX: microseconds for each of its
equations, which must not grow."""

import time
from collections.abc import Callable
from typing import Any

from measure import has

import calque

LENGTHS = (1_000, 3_000, 10_000)


def chain(j: Any, n: int) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        for _ in range(n // 2):
            x = j.numpy.sin(x) * 1.5
        return x.sum()

    return f


def nested_vmap(j: Any, f: Any) -> Any:
    return lambda x: j.vmap(j.vmap(j.grad(f)))(j.numpy.ones((2, 2, 4)) * x)


TRACED = {
    "trace": lambda j, f: f,
    "grad": lambda j, f: j.grad(f),
    "jvp": lambda j, f: lambda x: j.jvp(f, (x,), (x,)),
    "linearize": lambda j, f: lambda x: j.linearize(f, x)[1](x),
    "grad under two vmaps": nested_vmap,
    "grad of checkpoint": lambda j, f: j.grad(j.checkpoint(f)),
}


def seconds(call: Callable[[], Any]) -> float:
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def main() -> None:
    modules = {"calque": calque}
    if has("jax"):
        import jax

        modules["jax"] = jax
    for name, transform in TRACED.items():
        for k, m in modules.items():
            x = m.numpy.ones(4)
            lengths = LENGTHS if k == "calque" else LENGTHS[:2]
            row = [
                1e6 / n * seconds(lambda n=n: m.make_jaxpr(transform(m, chain(m, n)))(x))
                for n in lengths
            ]
            print(
                f"{name:22s} {k:7s}"
                + "".join(f"{n:8d}: {t:7.1f} us" for n, t in zip(lengths, row)),
                flush=True,
            )
    for what, transform in (("compile", TRACED["trace"]), ("compile grad", TRACED["grad"])):
        row = []
        for n in LENGTHS:
            lowered = calque.jit(transform(calque, chain(calque, n))).lower(calque.numpy.ones(4))
            start = time.perf_counter()
            lowered.compile()
            row.append(1e6 / n * (time.perf_counter() - start))
        print(
            f"{what:22s} calque " + "".join(f"{n:8d}: {t:7.1f} us" for n, t in zip(LENGTHS, row)),
            flush=True,
        )


if __name__ == "__main__":
    main()

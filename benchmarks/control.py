"""Loops and choices: lanes that go each their own way, and derivatives through loops of unknown
length, beside JAX.

In JAX a choice by lane runs every branch for all lanes, a loop by lane runs until the last lane
ends, and reverse mode refuses a `while_loop`: there the peer is a scan of the same length."""

from typing import Any

import numpy as np
from measure import Call, compare, has

import calque

RNG = np.random.default_rng(0)
LANES = 1000
RARE = (np.arange(LANES) % 100 == 0).astype(np.float32)
X = RNG.uniform(0.1, 1, LANES).astype(np.float32)
TRIPS = np.where(RARE > 0, 1000, 10).astype(np.int32)
POINTS = (RNG.uniform(-2, 0.5, 20_000) + 1j * RNG.uniform(-1, 1, 20_000)).astype(np.complex64)
VECTORS = RNG.standard_normal((LANES, 100)).astype(np.float32)
MATRIX = (RNG.standard_normal((100, 100)) / 10).astype(np.float32)
START = np.linspace(0.1, 1, 10).astype(np.float32)


def rare_branch(j: Any) -> Any:
    def dear(x):
        return j.lax.fori_loop(0, 1000, lambda i, c: j.numpy.sin(c) + 0.1, x)

    return j.vmap(lambda p, x: j.lax.cond(p > 0, dear, lambda x: 2 * x, x))


def rare_matrices(j: Any) -> Any:
    def dear(w, x):
        return j.lax.fori_loop(0, 100, lambda i, c: j.numpy.tanh(w @ c), x)

    return j.vmap(
        lambda p, w, x: j.lax.cond(p > 0, dear, lambda w, x: 2 * x, w, x), in_axes=(0, None, 0)
    )


def gradient_of_rare_matrices(j: Any) -> Any:
    return j.vmap(
        j.grad(lambda p, w, x: rare_matrices(j)(p[None], w, x[None]).sum(), argnums=2),
        in_axes=(0, None, 0),
    )


def unequal_trips(j: Any) -> Any:
    return j.vmap(lambda n, x: j.lax.fori_loop(0, n, lambda i, c: j.numpy.sin(c) * 0.99 + 0.01, x))


def unequal_vectors(j: Any) -> Any:
    return j.vmap(
        lambda n, x: j.lax.fori_loop(0, n, lambda i, c: j.numpy.roll(c, 1) * 0.99 + 0.01, x)
    )


def mandelbrot(j: Any) -> Any:
    def escape(c: Any) -> Any:
        def go(s):
            return (s[1] < 200) & (abs(s[0]) < 2)

        return j.lax.while_loop(go, lambda s: (s[0] * s[0] + c, s[1] + 1), (0 * c, 0))[1]

    return j.vmap(escape)


LANE_ROWS = {
    "cond by lane, 1% of 1000 lanes dear": (rare_branch, (RARE, X)),
    "the same with matrices": (rare_matrices, (RARE, MATRIX, VECTORS)),
    "the gradient of that": (gradient_of_rare_matrices, (RARE, MATRIX, VECTORS)),
    "while by lane, 1% of lanes 100x longer": (unequal_trips, (TRIPS, X)),
    "the same with vectors of 100": (unequal_vectors, (TRIPS, VECTORS)),
    "mandelbrot by lane, 20k points": (mandelbrot, (POINTS,)),
}


def reverse_rows(modules: dict[str, Any]) -> dict[str, dict[str, Call]]:
    """The gradient of a loop with ten floats in its carry, for several lengths: time per round must
    not grow."""
    rows = {}
    for n in (10_000, 100_000, 1_000_000):

        def loop(x: Any, n: Any) -> Any:
            def step(i, c):
                return calque.numpy.sin(c) * 0.99 + 0.01

            return calque.lax.fori_loop(0, n, step, x).sum()

        g, x = calque.jit(calque.grad(loop)), calque.numpy.asarray(START)
        calls: dict[str, Call] = {"calque": lambda g=g, x=x, n=n: g(x, n).block_until_ready()}
        for name, m in modules.items():

            def scan(x: Any, m: Any = m, n: int = n) -> Any:
                return m.lax.scan(
                    lambda c, _: (m.numpy.sin(c) * 0.99 + 0.01, None), x, None, length=n
                )[0].sum()

            h, y = m.jit(m.grad(scan)), m.numpy.asarray(START)
            calls[f"{name} scan"] = lambda h=h, y=y: h(y).block_until_ready()
        rows[f"gradient of a while_loop, {n} rounds"] = calls
    return rows


def main() -> None:
    modules = {"calque": calque}
    if has("jax"):
        import jax

        modules["jax"] = jax
    rows = {}
    for name, (make, args) in LANE_ROWS.items():
        rows[name] = {}
        for k, m in modules.items():
            f, given = m.jit(make(m)), [m.numpy.asarray(a) for a in args]
            rows[name][k] = lambda f=f, given=given: f(*given).block_until_ready()
    compare({**rows, **reverse_rows(modules)})


if __name__ == "__main__":
    main()

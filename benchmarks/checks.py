"""Checks that can stay on: what they cost in loops and in steps of training.

Each function is jitted plain, and with a check: `nans` (calque_debug_nans), `index`
(calque_debug_index), `keys` (calque_debug_key_reuse), `check` (`calque.check` that the state is
finite, in every round of a loop, or of the loss). Times are minima of many rounds in turn; a ratio
is with / without, 1.0 at best.

    python benchmarks/checks.py [--rounds 40] [--threads 1] [--only TEXT] [--above 1.1]"""

import argparse
import itertools
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
from symbolic import batch

import calque
import calque.numpy as jnp
from calque import lax

RNG = np.random.default_rng(0)
Check = Callable[[Any], None]


def normal(*shape: int, scale: float = 1.0) -> np.ndarray:
    return (RNG.standard_normal(shape) * scale).astype(np.float32)


def nothing(x: Any) -> None:
    """No check."""


def finite(x: Any) -> None:
    calque.check(jnp.isfinite(x).all(), "the state is not finite: {x}", x=x)


# ---------------------------------------------------------------- loops


def rnn(check: Check) -> Callable[..., Any]:
    def run(h: Any, w: Any, xs: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            h = jnp.tanh(w @ h + x)
            check(h)
            return h, h

        return lax.scan(step, h, xs)

    return run


def lorenz(check: Check) -> Callable[..., Any]:
    def slope(s: Any) -> Any:
        x, y, z = s
        return jnp.array([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])

    def step(s: Any, _: Any) -> Any:
        k1 = slope(s)
        k2 = slope(s + 0.005 * k1)
        k3 = slope(s + 0.005 * k2)
        k4 = slope(s + 0.01 * k3)
        s = s + 0.01 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        check(s)
        return s, s

    return lambda s: lax.scan(step, s, None, length=10_000)


def scalar(check: Check) -> Callable[..., Any]:
    def body(c: Any) -> Any:
        y = c[1] * 0.999999 + 1e-3
        check(y)
        return c[0] + 1, y

    return lambda x: lax.while_loop(lambda c: c[0] < 1_000_000, body, (0, x))


def mandelbrot(check: Check) -> Callable[..., Any]:
    def run(c: Any) -> Any:
        def body(i: Any, s: Any) -> Any:
            z, n = s
            z = jnp.where(jnp.abs(z) < 2, z * z + c, z)
            check(z)
            return z, n + (jnp.abs(z) < 2)

        return lax.fori_loop(0, 50, body, (jnp.zeros_like(c), jnp.zeros(c.shape, "int32")))[1]

    return run


def jacobi(check: Check) -> Callable[..., Any]:
    def sweep(i: Any, u: Any) -> Any:
        u = u.at[1:-1, 1:-1].set(0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]))
        check(u)
        return u

    return lambda u: lax.fori_loop(0, 100, sweep, u)


def particles(check: Check) -> Callable[..., Any]:
    def pull(p: Any) -> Any:
        d = p[None] - p[:, None]
        r2 = (d * d).sum(-1) + 1e-2
        return (d * (r2**-1.5)[..., None]).sum(1)

    def step(s: Any, _: Any) -> Any:
        p, v = s
        v = v + 1e-3 * pull(p)
        check(v)
        return (p + 1e-3 * v, v), None

    return lambda p, v: lax.scan(step, (p, v), None, length=100)[0]


def indexed(check: Check) -> Callable[..., Any]:
    """A loop that reads at a traced place: the one row in which indices are checked."""

    def run(x: Any, i: Any) -> Any:
        def step(c: Any, k: Any) -> Any:
            c = c * 0.5 + x[k]
            check(c)
            return c, c

        return lax.scan(step, 0.0, i)

    return run


# ---------------------------------------------------------------- training


def network(check: Check) -> Callable[..., Any]:
    def loss(params: Any, x: Any, y: Any) -> Any:
        for w, b in params[:-1]:
            x = jnp.tanh(x @ w + b)
        w, b = params[-1]
        out = jnp.mean((x @ w + b - y) ** 2)
        check(out)
        return out

    def step(params: Any, x: Any, y: Any) -> Any:
        return calque.tree.map(lambda p, g: p - 0.01 * g, params, calque.grad(loss)(params, x, y))

    return step


def layers(*sizes: int, rows: int) -> tuple[Any, ...]:
    params = [
        (normal(a, b, scale=a**-0.5), np.zeros(b, np.float32)) for a, b in itertools.pairwise(sizes)
    ]
    return params, normal(rows, sizes[0]), normal(rows, sizes[-1])


def by_example(check: Check) -> Callable[..., Any]:
    def loss(w: Any, x: Any) -> Any:
        out = jnp.sum(jnp.tanh(x @ w) ** 2)
        check(out)
        return out

    return calque.vmap(calque.grad(loss), in_axes=(None, 0))


def convolutions(check: Check) -> Callable[..., Any]:
    """A step of a small network of two convolutions."""

    def loss(p: Any, x: Any, y: Any) -> Any:
        for kernel in p["kernels"]:
            x = lax.conv_general_dilated(
                x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            x = lax.reduce_window(
                calque.nn.relu(x), -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"
            )
        scores = calque.nn.log_softmax(x.reshape(x.shape[0], -1) @ p["dense"])
        out = -jnp.mean(jnp.take_along_axis(scores, y[:, None], axis=1))
        check(out)
        return out

    return lambda p, x, y: calque.tree.map(lambda a, g: a - 0.01 * g, p, calque.grad(loss)(p, x, y))


def transformer(check: Check) -> Callable[..., Any]:
    """Forward and backward through a block of four heads; with its value, or the check would pay
    for a product that the gradient does not need."""

    def norm(x: Any) -> Any:
        d = x - x.mean(-1, keepdims=True)
        return d * lax.rsqrt((d**2).mean(-1, keepdims=True) + 1e-5)

    def loss(p: Any, x: Any) -> Any:
        b, t, d = x.shape
        heads = [
            a.reshape(b, t, 4, d // 4).transpose(0, 2, 1, 3)
            for a in jnp.split(norm(x) @ p["qkv"], 3, axis=-1)
        ]
        scores = jnp.einsum("bhqd,bhkd->bhqk", heads[0], heads[1]) * (d // 4) ** -0.5
        scores = jnp.where(jnp.tril(jnp.ones((t, t), bool)), scores, -1e9)
        mixed = jnp.einsum("bhqk,bhkd->bhqd", calque.nn.softmax(scores), heads[2])
        x = x + mixed.transpose(0, 2, 1, 3).reshape(b, t, d) @ p["o"]
        x = x + calque.nn.gelu(norm(x) @ p["up"]) @ p["down"]
        check(x)
        return x.sum()

    return calque.value_and_grad(loss)


def hessian(check: Check) -> Callable[..., Any]:
    def value(x: Any) -> Any:
        out = jnp.sum(jnp.sin(x) * jnp.roll(x, 1) ** 2) + jnp.prod(jnp.cos(x))
        check(out)
        return out

    return calque.hessian(value)


PLANE = (np.linspace(-2, 1, 256)[None] + 1j * np.linspace(-1.5, 1.5, 256)[:, None]).astype(
    np.complex64
)
ROWS: dict[str, tuple[Callable[[Check], Callable[..., Any]], tuple[Any, ...]]] = {
    "loop: rnn scan 1000 x 16": (
        rnn,
        (np.zeros(16, "f4"), normal(16, 16, scale=0.1), normal(1000, 16)),
    ),
    "loop: rnn scan 1000 x 128": (
        rnn,
        (np.zeros(128, "f4"), normal(128, 128, scale=0.05), normal(1000, 128)),
    ),
    "loop: lorenz rk4 10k steps": (lorenz, (np.ones(3, "f4"),)),
    "loop: scalar while 1M": (scalar, (np.float32(1),)),
    "loop: mandelbrot 256x256x50": (mandelbrot, (PLANE,)),
    "loop: jacobi 256x256, 100 sweeps": (jacobi, (normal(256, 256),)),
    "loop: 100 particles, 100 steps": (particles, (normal(100, 3), normal(100, 3))),
    "loop: 10k reads at traced places": (
        indexed,
        (normal(1000), RNG.integers(0, 1000, 10_000).astype(np.int32)),
    ),
    "train: mlp 784-512-256-10, batch 128": (network, layers(784, 512, 256, 10, rows=128)),
    "train: tiny mlp 2-16-16-1, batch 16": (network, layers(2, 16, 16, 1, rows=16)),
    "train: small convnet, batch 32": (
        convolutions,
        (
            {
                "kernels": [normal(3, 3, 1, 16, scale=0.2), normal(3, 3, 16, 32, scale=0.1)],
                "dense": normal(7 * 7 * 32, 10, scale=0.02),
            },
            normal(32, 28, 28, 1),
            RNG.integers(0, 10, 32).astype(np.int32),
        ),
    ),
    "train: transformer block": (
        transformer,
        (
            {
                "qkv": normal(128, 384, scale=0.05),
                "o": normal(128, 128, scale=0.05),
                "up": normal(128, 512, scale=0.05),
                "down": normal(512, 128, scale=0.05),
            },
            normal(8, 64, 128),
        ),
    ),
    "train: hessian of a 20-d function": (hessian, (normal(20),)),
    "train: per-example gradients, 256": (by_example, (normal(64, 32, scale=0.1), normal(256, 64))),
}
FLAGS = {
    "nans": "calque_debug_nans",
    "index": "calque_debug_index",
    "keys": "calque_debug_key_reuse",
}


def measured(
    make: Callable[[Check], Callable[..., Any]], args: Any, rounds: int, budget: float = 0.005
) -> dict[str, float]:
    """The least seconds of a call: plain, under each flag, with `calque.check`."""
    args = calque.tree.map(jnp.asarray, args)
    plain, with_check = calque.jit(make(nothing)), calque.jit(make(finite))
    best: dict[str, float] = {}
    times: dict[str, int] = {}
    for k in range(rounds + 1):
        for name in ("plain", *FLAGS, "check"):
            f = with_check if name == "check" else plain
            if name in FLAGS:
                calque.config.update(FLAGS[name], True)
            if k == 0:
                once = min(batch(f, args, 1) for _ in range(4))
                times[name], best[name] = max(1, int(budget / max(once, 1e-7))), float("inf")
            best[name] = min(best[name], batch(f, args, times[name]))
            if name in FLAGS:
                calque.config.update(FLAGS[name], False)
    return best


def main() -> None:
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--rounds", type=int, default=40)
    p.add_argument("--only", default="", help="rows whose name contains this")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--above", type=float, default=1.1, help="mark ratios above this")
    a = p.parse_args()
    calque.set_num_threads(a.threads)
    ratios: dict[str, list[float]] = {}
    for name, (make, args) in ROWS.items():
        if a.only not in name:
            continue
        best = measured(make, args, a.rounds)
        text = f"{name:38s} plain {best['plain'] * 1e6:9.2f} us"
        for k in (*FLAGS, "check"):
            r = best[k] / best["plain"]
            ratios.setdefault(k, []).append(r)
            text += f"   {k} {r:5.2f}x{' *' if r > a.above else '  '}"
        print(text, flush=True)
    for k, found in ratios.items():
        print(
            f"{k}: geometric mean {statistics.geometric_mean(found):.2f}x,"
            f" {sum(r > a.above for r in found)} of {len(found)} above {a.above}"
        )


if __name__ == "__main__":
    main()

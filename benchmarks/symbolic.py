"""Programs for every size beside programs for one: what a free size costs while running.

Each function is jitted for these sizes alone (`dynamic="never"`) and with all its sizes free: once
traced at the same sizes (`same`), once at small ones and then called with the large ones (`small`).
Times are minima of many rounds in turn; a ratio is free / fixed, 1.0 at best.

    python benchmarks/symbolic.py [--rounds 15] [--threads 1] [--only TEXT] [--above 1.2]"""

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import calque
import calque.numpy as jnp
from calque import lax, nn

RNG = np.random.default_rng(0)
N = 1_000_000


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def positive(*shape: int) -> np.ndarray:
    return np.abs(normal(*shape))


def layer_norm(x: Any, g: Any, b: Any) -> Any:
    mu = x.mean(-1, keepdims=True)
    var = ((x - mu) ** 2).mean(-1, keepdims=True)
    return (x - mu) * lax.rsqrt(var + 1e-5) * g + b


def attention(q: Any, k: Any, v: Any) -> Any:
    s = jnp.einsum("hqd,hkd->hqk", q, k) / 8.0
    return jnp.einsum("hqk,hkd->hqd", nn.softmax(s, axis=-1), v)


def convolution(x: Any, w: Any) -> Any:
    return lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def max_pool(x: Any) -> Any:
    return lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def long_chain(x: Any, y: Any) -> Any:
    return jnp.exp(-x * x) * jnp.sin(y) + jnp.log1p(jnp.abs(x * y))


def matmul(x: Any, y: Any) -> Any:
    return x @ y


Shapes = Sequence[tuple[int, ...]]
Row = tuple[
    Callable[..., Any], Callable[..., np.ndarray], Shapes, Shapes
]  # function, contents, sizes, small sizes
VECTOR, SQUARE = [(N,)], [(1000, 1000)]
SMALL_VECTOR, SMALL_SQUARE = [(100,)], [(30, 40)]

ROWS: dict[str, Row] = {
    "map: 2x+y": (lambda x, y: 2 * x + y, normal, VECTOR * 2, SMALL_VECTOR * 2),
    "map: 2x+y, 1000 elements": (lambda x, y: 2 * x + y, normal, [(1000,)] * 2, SMALL_VECTOR * 2),
    "map: exp": (jnp.exp, normal, VECTOR, SMALL_VECTOR),
    "map: tanh": (jnp.tanh, normal, VECTOR, SMALL_VECTOR),
    "map: sin": (jnp.sin, normal, VECTOR, SMALL_VECTOR),
    "map: log1p": (jnp.log1p, positive, VECTOR, SMALL_VECTOR),
    "map: erf": (lax.erf, normal, VECTOR, SMALL_VECTOR),
    "map: pow": (lambda x, y: x**y, positive, VECTOR * 2, SMALL_VECTOR * 2),
    "map: atan2": (jnp.arctan2, normal, VECTOR * 2, SMALL_VECTOR * 2),
    "map: gelu": (nn.gelu, normal, VECTOR, SMALL_VECTOR),
    "map: long chain": (long_chain, normal, VECTOR * 2, SMALL_VECTOR * 2),
    "reduce: sum": (jnp.sum, normal, VECTOR, SMALL_VECTOR),
    "reduce: sum of a matrix": (jnp.sum, normal, SQUARE, SMALL_SQUARE),
    "reduce: sum of columns": (lambda x: x.sum(0), normal, SQUARE, SMALL_SQUARE),
    "reduce: sum of rows": (lambda x: x.sum(1), normal, SQUARE, SMALL_SQUARE),
    "reduce: softmax": (nn.softmax, normal, SQUARE, SMALL_SQUARE),
    "reduce: layer norm": (
        layer_norm,
        normal,
        [(1000, 1000), (1000,), (1000,)],
        [(30, 40), (40,), (40,)],
    ),
    "reduce: argmax": (lambda x: jnp.argmax(x, axis=1), normal, SQUARE, SMALL_SQUARE),
    "reduce: variance of a slice": (
        lambda x: jnp.var(x[:, 100:900], axis=0),
        normal,
        SQUARE,
        [(30, 950)],
    ),
    "reduce: cumsum": (jnp.cumsum, normal, VECTOR, SMALL_VECTOR),
    "layout: transpose + 1": (lambda x: x.T + 1, normal, SQUARE, SMALL_SQUARE),
    "layout: concatenate": (
        lambda x, y: jnp.concatenate([x, y], 1),
        normal,
        SQUARE * 2,
        SMALL_SQUARE * 2,
    ),
    "layout: reverse rows": (lambda x: x[::-1, 1:], normal, SQUARE, SMALL_SQUARE),
    "dot: matmul 8": (matmul, normal, [(8, 8)] * 2, [(5, 6), (6, 7)]),
    "dot: matmul 32": (matmul, normal, [(32, 32)] * 2, [(5, 6), (6, 7)]),
    "dot: matmul 64": (matmul, normal, [(64, 64)] * 2, [(5, 6), (6, 7)]),
    "dot: matmul 256": (matmul, normal, [(256, 256)] * 2, [(30, 40), (40, 50)]),
    "dot: matmul 1024": (matmul, normal, [(1024, 1024)] * 2, [(30, 40), (40, 50)]),
    "dot: matmul + bias + relu": (
        lambda x, w, b: nn.relu(x @ w + b),
        normal,
        [(512, 512), (512, 512), (512,)],
        [(30, 40), (40, 50), (50,)],
    ),
    "dot: x.T @ x": (lambda x: x.T @ x, normal, [(300, 400)], [(30, 40)]),
    "dot: matvec 1024": (matmul, normal, [(1024, 1024), (1024,)], [(30, 40), (40,)]),
    "dot: vecmat 1024": (matmul, normal, [(1024,), (1024, 1024)], [(30,), (30, 40)]),
    "dot: batched 256 x 32x32": (matmul, normal, [(256, 32, 32)] * 2, [(4, 20, 24), (4, 24, 28)]),
    "dot: attention": (
        attention,
        normal,
        [(8, 256, 64)] * 3,
        [(2, 20, 24), (2, 28, 24), (2, 28, 24)],
    ),
    "dot: einsum chain": (
        lambda a, b, c: jnp.einsum("ij,jk,kl->il", a, b, c),
        normal,
        [(200, 300), (300, 200), (200, 100)],
        [(30, 40), (40, 35), (35, 20)],
    ),
    "conv: 3x3": (
        convolution,
        normal,
        [(32, 32, 32, 16), (3, 3, 16, 32)],
        [(2, 9, 8, 16), (3, 3, 16, 32)],
    ),
    "conv: max pool 2x2": (max_pool, normal, [(32, 32, 32, 32)], [(2, 8, 10, 12)]),
}


def with_free_sizes(f: Callable[..., Any], shapes: Shapes, small: Shapes) -> Any:
    """`f` with those sizes free that differ between large and small arguments: all but the channels
    and windows of a convolution."""
    axes = {
        i: tuple(k for k in range(len(a)) if a[k] != b[k])
        for i, (a, b) in enumerate(zip(shapes, small))
    }
    return calque.jit(one_of_its_own(f), dynamic=axes)


def one_of_its_own(f: Callable[..., Any]) -> Callable[..., Any]:
    """The same function to Python, another one to the cache of programs: what it captures is an
    object of its own."""
    mark = object()
    return lambda *args: f(*args) if mark is not None else None


def variants(row: Row) -> tuple[dict[str, Any], list[Any]]:
    """(the three programs, their arguments)."""
    f, make, shapes, small = row
    args = [jnp.asarray(make(*s)) for s in shapes]
    calls = {
        "fixed": calque.jit(one_of_its_own(f), dynamic="never"),
        "same": with_free_sizes(f, shapes, small),
        "small": with_free_sizes(f, shapes, small),
    }
    calls["small"](*[make(*s) for s in small])
    for g in calls.values():
        for _ in range(3):
            g(*args)
    return calls, args


def batch(g: Callable[..., Any], args: Sequence[Any], times: int) -> float:
    """Seconds of a call; with one thread those of the processor, of which others on the machine
    take none."""
    clock = time.thread_time if calque.get_num_threads() == 1 else time.perf_counter
    start = clock()
    for _ in range(times):
        g(*args)
    return (clock() - start) / times


def measured(row: Row, rounds: int, budget: float = 0.01) -> dict[str, float]:
    calls, args = variants(row)
    times = {
        k: max(1, int(budget / max(min(batch(g, args, 1) for _ in range(3)), 1e-7)))
        for k, g in calls.items()
    }
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for k, g in calls.items():
            best[k] = min(best[k], batch(g, args, times[k]))
    return best


def main() -> None:
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--rounds", type=int, default=15)
    p.add_argument("--only", default="", help="rows whose name contains this")
    p.add_argument(
        "--threads",
        type=int,
        default=1,
        help="more of them share the machine with others, which blurs the ratios",
    )
    p.add_argument("--above", type=float, default=1.2, help="mark ratios above this")
    a = p.parse_args()
    calque.set_num_threads(a.threads)
    ratios: dict[str, list[float]] = {"same": [], "small": []}
    for name, row in ROWS.items():
        if a.only not in name:
            continue
        best = measured(row, a.rounds)
        text = f"{name:32s} fixed {best['fixed'] * 1e6:9.2f} us"
        for k, found in ratios.items():
            found.append(best[k] / best["fixed"])
            text += (
                f"   {k} {best[k] * 1e6:9.2f} us"
                f" {found[-1]:5.2f}x{'  *' if found[-1] > a.above else '   '}"
            )
        print(text, flush=True)
    for k, found in ratios.items():
        over = sum(r > a.above for r in found)
        print(
            f"{k}: geometric mean {statistics.geometric_mean(found):.2f}x, {over} of {len(found)}"
            f" above {a.above}"
        )


if __name__ == "__main__":
    main()

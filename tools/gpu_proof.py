#!/usr/bin/env python
"""What calque does on an accelerator, and how quickly beside JAX: some minutes on one GPU.

    python tools/gpu_proof.py                        the checks, then groups of programs beside JAX
    python tools/gpu_proof.py --platform xla_cpu     the same on XLA's CPU
    python tools/gpu_proof.py --checks               the checks alone; JAX need not be installed
    python tools/gpu_proof.py --json out.json        the figures, too

Both run in processes of their own, in turns; a time is the least of all repeats, until the results
are there. The end is 0 where all checks pass and no group is slower than 0.98 of JAX."""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

LEAST: Final = 0.98  # of JAX's speed, of each group
Programs = dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]


def elements(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


# ---------------------------------------------------------------- groups of programs


def elementwise(jax: Any, jnp: Any, n: int) -> Programs:
    x = elements(n * n * 16)
    return {
        "exp sin": (lambda x: jnp.exp(x) * jnp.sin(x) + 1, (x,)),
        "gelu": (lambda x: 2 * jax.nn.gelu(x), (x,)),
        "where": (lambda x: jnp.where(x > 0, jnp.sqrt(jnp.abs(x)), x * x), (x,)),
    }


def reduce(jax: Any, jnp: Any, n: int) -> Programs:
    x = elements(4 * n, 4 * n)
    return {
        "sum": (lambda x: (x * x).sum(), (x,)),
        "softmax": (lambda x: jax.nn.softmax(x, axis=-1), (x,)),
        "variance of columns": (lambda x: x.var(0), (x,)),
        "logsumexp": (lambda x: jax.nn.logsumexp(x, axis=1), (x,)),
    }


def dot(jax: Any, jnp: Any, n: int) -> Programs:
    return {
        "square": (lambda a, b: a @ b, (elements(2 * n, 2 * n), elements(2 * n, 2 * n, seed=1))),
        "batch": (lambda a: jnp.einsum("bij,bkj->bik", a, a), (elements(32, n // 4, n // 4),)),
        "half": (
            lambda a: (a.astype(jnp.bfloat16) @ a.astype(jnp.bfloat16)).astype(jnp.float32),
            (elements(2 * n, 2 * n),),
        ),
    }


def conv(jax: Any, jnp: Any, n: int) -> Programs:
    x, w = elements(n // 32, 56, 56, 64), elements(3, 3, 64, 64, seed=1)
    named = ("NHWC", "HWIO", "NHWC")

    def once(x: Any, w: Any, steps: int = 1) -> Any:
        return jax.lax.conv_general_dilated(x, w, (steps, steps), "SAME", dimension_numbers=named)

    return {
        "forward": (once, (x, w)),
        "by two": (lambda x, w: once(x, w, 2), (x, w)),
        "gradient": (jax.grad(lambda w, x: (once(x, w) ** 2).sum()), (w, x)),
    }


def train(jax: Any, jnp: Any, n: int) -> Programs:
    return {"layers": layers(jax, jnp, n), "transformer": transformer(jax, jnp, n)}


def layers(jax: Any, jnp: Any, n: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    ws = [elements(n, n, seed=i) * n**-0.5 for i in range(4)]

    def loss(ws: Any, x: Any) -> Any:
        for w in ws:
            x = jax.nn.relu(x @ w)
        return (x * x).mean()

    def step(ws: Any, x: Any) -> Any:
        value, slopes = jax.value_and_grad(loss)(ws, x)
        return value, [w - 0.1 * s for w, s in zip(ws, slopes)]

    return step, (ws, elements(n // 2, n, seed=9))


def transformer(jax: Any, jnp: Any, n: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    d, heads, words, length = n // 2, 8, 4 * n, 128

    def block(seed: int) -> dict[str, Any]:
        sizes = {"qkv": (d, 3 * d), "out": (d, d), "up": (d, 4 * d), "down": (4 * d, d)}
        return {k: elements(*s, seed=seed) * s[0] ** -0.5 for k, s in sizes.items()}

    p = {"table": elements(words, d) * 0.02, "blocks": [block(i) for i in range(4)]}
    text = np.random.default_rng(0).integers(0, words, (8, length + 1)).astype(np.int32)

    def normal(x: Any) -> Any:
        return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)

    def attended(x: Any, w: Any) -> Any:
        parts = jnp.split(normal(x) @ w["qkv"], 3, -1)
        q, k, v = (a.reshape(8, length, heads, -1).transpose(0, 2, 1, 3) for a in parts)
        scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) * (d // heads) ** -0.5
        scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
        mixed = jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, -1), v)
        return mixed.transpose(0, 2, 1, 3).reshape(8, length, d) @ w["out"]

    def loss(p: Any, text: Any) -> Any:
        x = p["table"][text[:, :-1]]
        for w in p["blocks"]:
            x = x + attended(x, w)
            x = x + jax.nn.gelu(normal(x) @ w["up"]) @ w["down"]
        said = jax.nn.log_softmax(x @ p["table"].T)
        return -jnp.take_along_axis(said, text[:, 1:, None], -1).mean()

    def step(p: Any, text: Any) -> Any:
        value, slopes = jax.value_and_grad(loss)(p, text)
        return value, jax.tree.map(lambda w, s: w - 0.01 * s, p, slopes)

    return step, (p, text)


GROUPS: Final = {
    "elementwise": elementwise,
    "reduce": reduce,
    "dot": dot,
    "conv": conv,
    "train": train,
}


def timed(jax: Any, f: Any, args: Any, repeats: int) -> float:
    """The least time of a call, until its results are there."""
    best = math.inf
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(f(*args))
        best = min(best, time.perf_counter() - start)
    return best


def measured(name: str, platform: str, size: int, repeats: int) -> dict[str, Any]:
    """Times of all programs and a number that tells results apart, by one implementation."""
    jax = importlib.import_module(name)
    jnp = importlib.import_module(f"{name}.numpy")
    on = "cpu" if (name, platform) == ("jax", "xla_cpu") else platform
    device = jax.devices(on)[0]
    found: dict[str, Any] = {}
    for group, make in GROUPS.items():
        for program, (f, args) in make(jax, jnp, size).items():
            placed = jax.device_put(args, device)
            compiled = jax.jit(f)
            out = jax.block_until_ready(compiled(*placed))
            numbers = [np.asarray(x, np.float64) for x in jax.tree.leaves(out)]
            norm = math.sqrt(sum(float((x * x).sum()) for x in numbers))
            found[f"{group}: {program}"] = [timed(jax, compiled, placed, repeats), norm]
    x = jax.device_put(elements(8), device)
    small = jax.jit(lambda x: x + 1)
    found["small call"] = [min(many(small, x) for _ in range(20)), 0.0]
    return found


def many(f: Any, x: Any) -> float:
    """The time of one of many calls that nobody waits for."""
    f(x)
    start = time.perf_counter()
    for _ in range(200):
        y = f(x)
    took = (time.perf_counter() - start) / 200
    y.block_until_ready()
    return took


# ---------------------------------------------------------------- checks


def checks(platform: str) -> Iterator[tuple[str, Callable[[], bool]]]:
    """What must hold on the platform, each with a function that says whether it does."""
    jax: Any = importlib.import_module("calque")
    jnp, lax, random = (importlib.import_module(f"calque.{n}") for n in ("numpy", "lax", "random"))
    device = jax.devices(platform)[0]
    here = jax.devices("cpu")[0]

    def there(f: Any, *args: Any, **options: Any) -> Any:
        return jax.jit(f, **options)(*jax.device_put(args, device))

    def near(f: Any, *args: Any, digits: float = 2e-3) -> bool:
        wanted = jax.tree.leaves(jax.jit(f)(*jax.device_put(args, here)))
        pairs = zip(jax.tree.leaves(there(f, *args)), wanted, strict=True)
        return all(
            float(np.abs(np.asarray(a) - np.asarray(w)).max()) <= digits * (1 + np.abs(w).max())
            for a, w in pairs
        )

    def equal(f: Any, *args: Any) -> bool:
        pairs = zip(jax.tree.leaves(there(f, *args)), jax.tree.leaves(jax.jit(f)(*args)))
        return all(np.array_equal(a, b) for a, b in pairs)

    def factors(f: Any, whole: Any, x: np.ndarray) -> bool:
        with jax.default_matmul_precision("highest"):
            parts = there(f, x)
        back = whole(*[np.asarray(p, np.float64) for p in jax.tree.leaves(parts)])
        return bool(np.abs(back - x).max() <= 1e-3 * np.abs(x).max())

    square = elements(6, 6)
    symmetric = square @ square.T + 6 * np.eye(6, dtype=np.float32)
    linalg = lax.linalg
    yield "default backend", lambda: device.platform in ("xla_cpu", jax.default_backend(), platform)
    yield "random bits", lambda: equal(lambda k: random.bits(k, (1000,)), random.PRNGKey(3))
    yield "normal numbers", lambda: near(lambda k: random.normal(k, (1000,)), random.PRNGKey(3))
    yield "integers", lambda: equal(lambda x: jnp.sort(x * 7 % 13).cumsum(), np.arange(1000))
    yield (
        "loops",
        lambda: near(
            lambda x: lax.while_loop(lambda c: c.sum() < 100, lambda c: c * 1.5, x),
            np.ones(5, "f4"),
        ),
    )
    yield (
        "scan",
        lambda: near(lambda x: lax.scan(lambda c, y: (c + y, c * y), 0.0, x), elements(50)),
    )
    yield "fft", lambda: near(lambda x: jnp.abs(jnp.fft.fft(x)), elements(256))
    yield "found sizes", lambda: near(lambda x: x[x > 0].sum(), elements(100))
    yield "cholesky", lambda: factors(linalg.cholesky, lambda c: c @ c.T, symmetric)
    yield "qr", lambda: factors(jnp.linalg.qr, lambda q, r: q @ r, elements(9, 5))
    yield "eigh", lambda: factors(jnp.linalg.eigh, lambda w, v: (v * w) @ v.T, symmetric)
    yield (
        "svd",
        lambda: factors(
            lambda x: jnp.linalg.svd(x, full_matrices=False),
            lambda u, s, v: (u * s) @ v,
            elements(9, 5),
        ),
    )
    yield (
        "large svd",
        lambda: factors(
            lambda x: jnp.linalg.svd(x, full_matrices=False),
            lambda u, s, v: (u * s) @ v,
            elements(20, 1100),
        ),
    )
    yield "solve", lambda: near(lambda a, b: jnp.linalg.solve(a, b), symmetric, square)
    yield "batch of inverses", lambda: near(jnp.linalg.inv, np.stack([symmetric, 2 * symmetric]))
    yield (
        "tridiagonal system",
        lambda: near(
            lambda d, x: lax.linalg.tridiagonal_solve(d * 0 + 1, d, d * 0 + 1, x),
            np.full(6, 4, "f4"),
            square,
        ),
    )
    yield (
        "calls of Python",
        lambda: near(
            lambda x: jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x),
            elements(9),
        ),
    )
    yield "memories", lambda: moved(jax, device)
    yield "checkpoints in the host's memory", lambda: offloaded(jax, jnp, device)
    yield "donated memory", lambda: donated(jax, device)
    yield "DLPack", lambda: exchanged(jax, jnp, device)
    yield "statistics of memory", lambda: platform == "xla_cpu" or bool(device.memory_stats())
    yield "an error where memory is out", lambda: too_large(jax, jnp, device)


def moved(jax: Any, device: Any) -> bool:
    """An array goes to the host's memory and back, at once and in programs."""
    space = jax.memory.Space
    x = jax.device_put(elements(1000), device)
    away = jax.jit(lambda x: jax.device_put(x, space.Host))(x)
    back = jax.jit(lambda x: jax.device_put(x, space.Device) * 2)(away)
    kinds = [v.sharding.memory_kind for v in (x, away, back, jax.device_put(x, space.Host))]
    return kinds == ["device", "pinned_host", "device", "pinned_host"] and bool(
        np.array_equal(np.asarray(back), 2 * elements(1000))
    )


def offloaded(jax: Any, jnp: Any, device: Any) -> bool:
    """A gradient that keeps its values on the host is the gradient."""
    policy = jax.checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host")

    def f(x: Any) -> Any:
        return jnp.sin(jnp.sin(x @ x) @ x).sum()

    x = jax.device_put(elements(64, 64) * 0.1, device)
    plain, kept = (jax.jit(jax.grad(g))(x) for g in (f, jax.checkpoint(f, policy=policy)))
    return bool(np.allclose(np.asarray(plain), np.asarray(kept), rtol=1e-3, atol=1e-3))


def donated(jax: Any, device: Any) -> bool:
    """A result takes the memory of the argument that was given for it."""
    step = jax.jit(lambda x: x * 2 + 1, donate_argnums=0)
    x = step(jax.device_put(elements(100_000), device))
    before = x.unsafe_buffer_pointer()
    y = step(x)
    return bool(x.is_deleted()) and y.unsafe_buffer_pointer() == before


def exchanged(jax: Any, jnp: Any, device: Any) -> bool:
    """An array goes out by DLPack, and comes back as it was."""
    x = jax.jit(lambda x: x + 1)(jax.device_put(elements(100), device))
    return bool(np.array_equal(np.asarray(jnp.from_dlpack(x)), np.asarray(x)))


def too_large(jax: Any, jnp: Any, device: Any) -> bool:
    """More than any device has, as an argument says how much."""
    size = 1 << 43
    try:
        x = jax.device_put(np.float32(1), device)
        jax.jit(lambda x: jnp.zeros(size, jnp.int8).at[0].set(x.astype(jnp.int8)))(
            x
        ).block_until_ready()
    except Exception as e:
        return any(word in str(e) for word in ("RESOURCE_EXHAUSTED", "emory"))
    return False


def check_all(platform: str) -> int:
    """Run the checks and say what each gave; how many fail."""
    failed = 0
    for name, holds in checks(platform):
        start = time.perf_counter()
        try:
            said = "ok" if holds() else "WRONG"
        except Exception as e:
            said = f"FAILED by {type(e).__name__}: {' '.join(str(e).split())[:300]}"
        failed += said != "ok"
        print(f"  {name:34s} {time.perf_counter() - start:6.2f} s  {said}", flush=True)
    return failed


# ---------------------------------------------------------------- both in turns


def child(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """What one implementation measures in a process of its own."""
    command = [sys.executable, __file__, "--child", name, "--platform", options.platform]
    command += ["--size", str(options.size), "--repeats", str(options.repeats)]
    # memory is taken as it is needed: the processes follow one another closely
    environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=400
    )
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def compared(options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """The least times of both, and whether their results agree."""
    rounds: dict[str, list[dict[str, Any]]] = {"calque": [], "jax": []}
    for _ in range(options.rounds):
        for name, found in rounds.items():
            found.append(child(name, options))
    rows: dict[str, dict[str, Any]] = {}
    for program in rounds["calque"][0]:
        times = {k: min(r[program][0] for r in v) for k, v in rounds.items()}
        ours, theirs = (rounds[k][0][program][1] for k in ("calque", "jax"))
        agree = abs(ours - theirs) <= 1e-2 * max(abs(theirs), 1e-6)
        rows[program] = {**times, "speed": times["jax"] / times["calque"], "agree": agree}
    return rows


def report(rows: dict[str, dict[str, Any]]) -> int:
    """Print the rows and the groups; how many of them are too slow or wrong."""
    print(f"{'':34s} {'calque us':>10s} {'JAX us':>10s} {'speed':>6s}")
    for program, row in rows.items():
        ours, theirs = row["calque"] * 1e6, row["jax"] * 1e6
        said = "" if row["agree"] else "  OTHER RESULTS"
        print(f"{program:34s} {ours:10.1f} {theirs:10.1f} {row['speed']:6.3f}{said}")
    bad = sum(not row["agree"] for row in rows.values())
    for group in GROUPS:
        speeds = [row["speed"] for name, row in rows.items() if name.startswith(f"{group}:")]
        mean = math.exp(sum(map(math.log, speeds)) / len(speeds))
        bad += mean < LEAST
        print(f"{group:34s} {'':10s} {'':10s} {mean:6.3f}{'  TOO SLOW' if mean < LEAST else ''}")
    return bad


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--platform", default="cuda")
    parser.add_argument("--checks", action="store_true", help="no comparison with JAX")
    parser.add_argument("--size", type=int, default=1024, help="of the programs; less on CPUs")
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", help="a file for the figures")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        found = measured(options.child, options.platform, options.size, options.repeats)
        print(json.dumps(found))
        return 0
    print(f"checks on {options.platform}")
    failed = check_all(options.platform)
    if options.checks:
        return int(failed > 0)
    rows = compared(options)
    failed += report(rows)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())

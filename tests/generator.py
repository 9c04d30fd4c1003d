"""Random programs: functions of arrays made of random operations, loops, branches, transformations
and nested functions.

    python tests/generator.py --programs 2000 [--seed 0]

Every program runs on the reference backend, compiled, and operation by operation. A program is data
(a list of `Step`s), so that one that fails can be made smaller: steps are taken out as long as it
still fails."""

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

if __name__ == "__main__":
    sys.path[:1] = [
        str(Path(__file__).parent.parent / "src")
    ]  # in place of this folder, where `numpy` are tests

import numpy as np

import calque
import calque.numpy as jnp
from calque import lax
from calque.core import reference
from calque.core.arrays import to_array, to_numpy
from calque.core.backends import Options
from calque.core.config import config
from calque.core.trace import trace_to_jaxpr, typeof
from calque.native import backend

SIZES = (1, 2, 3, 5, 16, 17, 33)
DTYPES = (
    "float32",
    "float32",
    "float32",
    "int32",
    "bool",
    "float16",
    "bfloat16",
    "complex64",
    "uint8",
    "float64",
)


class Step(NamedTuple):
    """`op` with operands by number (modulo how many values there are) and a seed for its
    choices."""

    op: str
    operands: tuple[int, ...]
    seed: int


class Program(NamedTuple):
    seed: int
    inputs: tuple[tuple[str, tuple[int, ...]], ...]
    steps: tuple[Step, ...]


def is_real(x: Any) -> bool:
    return jnp.issubdtype(x.dtype, jnp.floating)


def is_complex(x: Any) -> bool:
    return jnp.issubdtype(x.dtype, jnp.complexfloating)


def as_real(x: Any) -> Any:
    """Small numbers of a floating type, whatever came in."""
    if is_complex(x):
        x = x.real + x.imag
    x = x if is_real(x) else x.astype(jnp.float32)
    return jnp.clip(x, -4, 4)


def matched(x: Any, y: Any) -> tuple[Any, Any]:
    """Two operands that broadcast: the second is cut to a scalar where they do not."""
    try:
        np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        y = y.reshape(-1)[0] if y.size else jnp.zeros((), y.dtype)
    return x, y


# ---------------------------------------------------------------- operations: (values, choices) ->


def unary(x: Any, r: np.random.Generator) -> Any:
    f = (
        jnp.sin,
        jnp.tanh,
        lambda v: jnp.exp(-jnp.abs(v)),
        lambda v: jnp.sqrt(jnp.abs(v)),
        lambda v: jnp.log1p(jnp.abs(v)),
        lax.logistic,
        jnp.abs,
        jnp.square,
        lax.erf,
        jnp.arctan,
    )
    return f[r.integers(len(f))](as_real(x))


def plain(x: Any, r: np.random.Generator) -> Any:
    f = (
        lambda v: -v if v.dtype != bool else ~v,
        jnp.conj if is_complex(x) else jnp.logical_not if x.dtype == bool else jnp.sign,
        lambda v: v * v,
        lambda v: v + v,
        lambda v: v == v.T.reshape(v.shape),
    )
    return f[r.integers(len(f))](x)


def binary(x: Any, y: Any, r: np.random.Generator) -> Any:
    x, y = matched(x, y)
    if is_complex(x) or is_complex(y):
        return (jnp.add, jnp.subtract, jnp.multiply)[r.integers(3)](x, y)
    f = (
        jnp.add,
        jnp.multiply,
        jnp.maximum,
        jnp.minimum,
        jnp.less,
        jnp.equal,
        jnp.arctan2,
        lambda a, b: a / (jnp.abs(b) + 1),
        lambda a, b: a // (b * b + 1 if b.dtype != bool else 1),
    )
    return f[r.integers(len(f))](x, y)


def select(x: Any, y: Any, r: np.random.Generator) -> Any:
    x, y = matched(x, y)
    return jnp.where(as_real(x) > 0.1, x, y)


def convert(x: Any, r: np.random.Generator) -> Any:
    to = DTYPES[r.integers(len(DTYPES))]
    if is_complex(x) and to != "complex64":
        x = x.real
    if is_real(x) and to in ("uint8", "int32"):
        x = jnp.clip(jnp.nan_to_num(x), -100 if to == "int32" else 0, 100)
    return x.astype(to)


def reduce(x: Any, r: np.random.Generator) -> Any:
    if x.ndim == 0:
        return x
    axes = tuple(np.nonzero(r.random(x.ndim) < 0.6)[0].tolist()) or (0,)
    keep = bool(r.integers(2))
    if is_complex(x) or not x.size:
        return jnp.sum(x, axis=axes, keepdims=keep)
    f = (jnp.sum, jnp.max, jnp.min, jnp.mean, jnp.any, jnp.all)
    return f[r.integers(len(f))](x, axis=axes, keepdims=keep)


def running(x: Any, r: np.random.Generator) -> Any:
    if x.ndim == 0:
        return x
    axis = int(r.integers(x.ndim))
    v = as_real(x)
    return (
        lambda: jnp.cumsum(v, axis),
        lambda: lax.cummax(v, axis),
        lambda: lax.cumsum(v, axis, reverse=True),
    )[r.integers(3)]()


def shape(x: Any, r: np.random.Generator) -> Any:
    f: list[Callable[[Any], Any]] = [
        lambda v: v.T, lambda v: v.reshape(-1), lambda v: v[None], lambda v: v[..., None],
        lambda v: jnp.flip(v), lambda v: jnp.broadcast_to(v, (2, *v.shape)),
        lambda v: v[::2] if v.ndim else v, lambda v: v[..., 1:] if v.ndim else v,
        lambda v: jnp.roll(v, 3), lambda v: jnp.tile(v, 2) if v.size < 500 else v,
        lambda v: jnp.pad(v, 1) if v.size < 500 else v,
        lambda v: v[0] if v.ndim and v.shape[0] else v,
    ]  # fmt: skip
    return f[r.integers(len(f))](x)


def join(x: Any, y: Any, r: np.random.Generator) -> Any:
    a, b = x.reshape(-1)[:300], y.reshape(-1)[:300]
    if r.integers(2):
        return jnp.concatenate([a, b])
    n = min(a.size, b.size)
    return jnp.stack([a[:n], b[:n]], axis=int(r.integers(2)))


def gather(x: Any, y: Any, r: np.random.Generator) -> Any:
    if not x.ndim or not x.shape[0]:
        return x
    i = (as_real(y).reshape(-1)[:20] * 3).astype(jnp.int32)
    mode = ("clip", "fill", None)[r.integers(3)]
    return (
        jnp.take(x, i, axis=0, mode=mode)
        if mode != "fill"
        else x.at[i].get(mode="fill", fill_value=0)
    )


def scatter(x: Any, y: Any, r: np.random.Generator) -> Any:
    if not x.ndim or not x.shape[0] or is_complex(x):
        return x
    i = (as_real(y).reshape(-1)[:20] * 3).astype(jnp.int32)
    at = jnp.asarray(x).at[i] if r.integers(2) else jnp.asarray(x).at[int(r.integers(x.shape[0]))]
    one = jnp.ones((), x.dtype)
    return (
        (at.set, at.max, at.min)[r.integers(3)](one)
        if x.dtype == bool
        else (at.set, at.add, at.max, at.multiply)[r.integers(4)](one)
    )


def sort(x: Any, r: np.random.Generator) -> Any:
    v = as_real(x)
    return jnp.sort(v, axis=int(r.integers(v.ndim))) if v.ndim else v


def dot(x: Any, y: Any, r: np.random.Generator) -> Any:
    a, b = as_real(x).reshape(-1)[:272], as_real(y).reshape(-1)[:272]
    k = (1, 2, 7, 16)[r.integers(4)]
    m, n = a.size // k, b.size // k
    if not m or not n:
        return jnp.zeros((2, 2))
    a, b = a[: m * k].reshape(m, k), b[: n * k].reshape(k, n)
    return (a @ b, b.T @ a.T, a @ b[:, 0], jnp.sum(a[:, :1] * b[:1]))[r.integers(4)]


def inner(seed: int) -> Callable[[Any], Any]:
    """A function of one array to one of the same shape and dtype."""
    r = np.random.default_rng(seed)
    k, a, b = (
        r.integers(5),
        float(np.round(r.uniform(-1, 1), 2)),
        float(np.round(r.uniform(-1, 1), 2)),
    )
    f: list[Callable[[Any], Any]] = [
        lambda v: v * a + b,
        lambda v: jnp.tanh(v) - a,
        lambda v: jnp.where(v > a, v * b, v),
        lambda v: v * a + jnp.mean(v),
        lambda v: v - jnp.max(v) * a if v.size else v,
    ]
    return lambda v: f[k](v).astype(v.dtype)


def scan(x: Any, r: np.random.Generator) -> Any:
    v = as_real(x)
    if not v.ndim or v.shape[0] > 40:
        return v
    f, g = inner(int(r.integers(1 << 30))), inner(int(r.integers(1 << 30)))
    start = jnp.zeros(v.shape[1:], v.dtype)
    last, ys = lax.scan(lambda c, e: (f(c + e) * 0.5, g(c)), start, v, reverse=bool(r.integers(2)))
    return (last, ys)[r.integers(2)]


def loop(x: Any, r: np.random.Generator) -> Any:
    f, n = inner(int(r.integers(1 << 30))), int(r.integers(4))
    if r.integers(2):
        return lax.fori_loop(0, n, lambda i, c: f(c) * 0.5, as_real(x))
    return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, f(s[1]) * 0.5), (0, as_real(x)))[
        1
    ]


def branch(x: Any, y: Any, r: np.random.Generator) -> Any:
    f, g = inner(int(r.integers(1 << 30))), inner(int(r.integers(1 << 30)))
    v = as_real(x)
    if r.integers(2):
        return lax.cond(jnp.sum(as_real(y)) > 0, f, g, v)
    return lax.switch(jnp.sum(as_real(y)).astype(jnp.int32), [f, g, lambda v: v * 2], v)


def transformed(x: Any, r: np.random.Generator) -> Any:
    f = inner(int(r.integers(1 << 30)))
    v = as_real(x)
    kind = r.integers(5)
    if kind == 0:
        return calque.grad(lambda v: jnp.sum(f(v) * v).astype(jnp.float32))(v)
    if kind == 1 and v.ndim and v.shape[0]:
        return calque.vmap(f)(v)
    if kind == 2:
        return calque.jvp(f, (v,), (v,))[1]
    if kind == 3:
        return calque.checkpoint(f)(v)
    return calque.jit(f)(v)


def random(x: Any, r: np.random.Generator) -> Any:
    key = calque.random.key(int(r.integers(100)))
    if r.integers(2):
        return as_real(x) + calque.random.uniform(key, x.shape)
    return calque.random.randint(key, x.shape, 0, 10)


ONE = {
    f.__name__: f
    for f in (unary, plain, convert, reduce, running, shape, sort, scan, loop, transformed, random)
}
TWO = {f.__name__: f for f in (binary, select, join, gather, scatter, dot, branch)}
WEIGHTS = {"unary": 3, "binary": 4, "shape": 4, "reduce": 3, "convert": 2}


# ---------------------------------------------------------------- programs


def make(seed: int) -> Program:
    r = np.random.default_rng(seed)
    inputs = []
    for _ in range(int(r.integers(1, 4))):
        ndim = int(r.integers(0, 4))
        sizes = tuple(int(SIZES[r.integers(len(SIZES) if ndim < 3 else 4)]) for _ in range(ndim))
        if r.random() < 0.05 and ndim:
            sizes = (0, *sizes[1:])
        inputs.append((DTYPES[r.integers(len(DTYPES))], sizes))
    names = [n for n in (*ONE, *TWO) for _ in range(WEIGHTS.get(n, 1))]
    steps = []
    for _ in range(int(r.integers(2, 14))):
        name = names[r.integers(len(names))]
        operands = tuple(int(i) for i in r.integers(0, 1 << 20, 1 if name in ONE else 2))
        steps.append(Step(name, operands, int(r.integers(1 << 30))))
    return Program(seed, tuple(inputs), tuple(steps))


def function(p: Program) -> Callable[..., list[Any]]:
    """The program as a function of arrays; it gives every value that it makes."""

    def run(*xs: Any) -> list[Any]:
        values = [jnp.asarray(x) for x in xs]
        for s in p.steps:
            f: Any = ONE.get(s.op) or TWO[s.op]
            picked = [
                values[-1 - i % min(len(values), 4)] if k == 0 else values[i % len(values)]
                for k, i in enumerate(s.operands)
            ]
            out = f(*picked, np.random.default_rng(s.seed))
            values.append(out if out.size <= 4000 else out.reshape(-1)[:4000])
        return values[len(xs) :]

    return run


def operands(p: Program) -> list[np.ndarray]:
    r = np.random.default_rng(p.seed + 1)
    out = []
    for name, sizes in p.inputs:
        dtype = np.dtype(getattr(jnp, name).dtype if name != "bool" else bool)
        x = np.asarray(r.uniform(-3, 3, sizes))
        if name == "uint8":
            x = np.abs(x)
        x = x + 1j * np.asarray(r.uniform(-3, 3, sizes)) if name == "complex64" else x
        out.append((x > 0 if name == "bool" else x).astype(dtype))
    return out


def problem(p: Program) -> str | None:
    """What is wrong with the results of a program, or None."""
    with config.override("calque_enable_x64", bool(p.seed % 3 == 0)), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        xs = [np.asarray(x) for x in map(jnp.asarray, operands(p))]
        try:
            closed = trace_to_jaxpr(function(p), [typeof(x) for x in xs])
        except (TypeError, ValueError) as e:
            return f"cannot be traced: {type(e).__name__}: {e}"
        want = reference.run(closed, *[to_array(x) for x in xs])
        try:
            for where, got in results(p, closed, xs):
                wrong = compare(p, want, got)
                if wrong:
                    return f"{where}: {wrong}"
            return exact(p, xs)
        except Exception as e:
            return f"{type(e).__name__}: {e}"


def results(p: Program, closed: Any, xs: Sequence[np.ndarray]) -> Iterator[tuple[str, list[Any]]]:
    yield "compiled", backend.compile(closed, Options()).call([to_array(x) for x in xs])
    yield "jit", calque.jit(function(p))(*xs)
    yield "eager", function(p)(*xs)


def exact(p: Program, xs: Sequence[np.ndarray]) -> str | None:
    """In exact mode `jit` gives the bits of eager execution."""
    with config.override("calque_exact", True):
        a, b = calque.jit(function(p))(*xs), function(p)(*xs)
    for i, (g, w) in enumerate(zip(a, b)):
        g, w = np.asarray(to_numpy(g)), np.asarray(to_numpy(w))
        if g.dtype != w.dtype or not same_bits(g, w):
            return f"exact mode: {p.steps[i].op}, value {i}: {g} in place of {w}"
    return None


def same_bits(g: np.ndarray, w: np.ndarray) -> bool:
    """Equal, though one NaN may differ from another."""
    if g.dtype.kind == "c":
        return same_bits(g.real, w.real) and same_bits(g.imag, w.imag)
    a, b = (x.astype(np.float64) if x.dtype.kind not in "iub" else x for x in (g, w))
    return bool(
        np.all(
            (a == b) & (np.signbit(a.astype(np.float64)) == np.signbit(b.astype(np.float64)))
            | (a != a) & (b != b)
        )
    )


def compare(p: Program, want: Sequence[np.ndarray], got: Sequence[Any]) -> str | None:
    """Values may differ by some roundings, which grow along a program; comparisons and casts make
    jumps of them: these end the comparison."""
    for i, (w, g) in enumerate(zip(want, got, strict=True)):
        g = np.asarray(to_numpy(g))
        if (g.shape, g.dtype) != (w.shape, w.dtype):
            return (
                f"value {i} ({p.steps[i].op}) is {g.dtype}{g.shape} in place of {w.dtype}{w.shape}"
            )
        wide = np.complex128 if w.dtype.kind == "c" else np.float64
        a, b = g.astype(wide), w.astype(wide)
        rounding = (
            2e-2
            if any(
                np.asarray(v).dtype.itemsize <= 2 and np.asarray(v).dtype.kind in "fV"
                for v in want[: i + 1]
            )
            else 2e-3
        )
        size = np.max(np.abs(b), initial=1, where=np.isfinite(b))
        with np.errstate(all="ignore"):
            bad = ~(
                (np.abs(a - b) <= rounding * size)
                | (a == b)
                | (np.isnan(a) & np.isnan(b))
                | (~np.isfinite(a) & ~np.isfinite(b) & (w.dtype.kind == "c"))
            )
        few = np.count_nonzero(bad) <= max(2, bad.size // 50)  # what stood at an edge
        if np.any(bad) and not (few and any(s.op in EDGES for s in p.steps[: i + 1])):
            at = tuple(int(k[0]) for k in np.nonzero(np.atleast_1d(bad)))
            return (
                f"value {i} ({p.steps[i].op}): {np.count_nonzero(bad)} of {bad.size} wrong, at"
                f" {at}: {np.atleast_1d(g)[at]} in place of {np.atleast_1d(w)[at]}"
            )
        if np.any(a != b) and any(s.op in EDGES for s in p.steps[i:]):
            return None
    return None


EDGES = frozenset(
    (
        "plain",
        "binary",
        "select",
        "convert",
        "branch",
        "gather",
        "scatter",
        "scan",
        "loop",
        "transformed",
        "sort",
        "reduce",
    )
)


def shrink(p: Program) -> Program:
    """The program without the steps that the failure does not need."""
    changed = True
    while changed:
        changed = False
        for i in range(len(p.steps) - 1, -1, -1):
            smaller = p._replace(steps=p.steps[:i] + p.steps[i + 1 :])
            if smaller.steps and (wrong := problem(smaller)) and not wrong.startswith("cannot"):
                p, changed = smaller, True
    return p


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    o = parser.parse_args()
    failures = 0
    for seed in range(o.seed, o.seed + o.programs):
        wrong = problem(make(seed))
        if wrong:
            failures += 1
            small = shrink(make(seed))
            print(
                f"seed {seed}: {wrong[:300]}\n  {small}\n  {(problem(small) or '')[:600]}",
                flush=True,
            )
    print(f"{o.programs} programs, {failures} failures")
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())

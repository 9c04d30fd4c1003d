"""Compiled functions of the library on arrays of some ten thousand elements in many dtypes, and
transposes of all kinds, beside JAX: where something is behind it shows here first.

    python benchmarks/library.py [PART ...]     only rows whose names have all these parts"""

import itertools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from measure import compare, has

import calque
import calque.numpy

Function = Callable[..., Any]
Row = tuple[Function, list[np.ndarray]]
DTYPES = ("float32", "int8", "int32", "float16", "complex64", "bool", "uint16")
SHAPES = ((64, 8, 512), (8, 64, 16, 64), (16, 3, 128, 128), (40, 50, 60))
rng = np.random.default_rng(0)


def array(dtype: str, *shape: int) -> np.ndarray:
    x = rng.normal(size=shape) * 20
    if dtype == "bool":
        return x > 0
    return (x + 1j * rng.normal(size=shape)).astype(dtype) if dtype[0] == "c" else x.astype(dtype)


def layouts(dtype: str) -> dict[str, Row]:
    """What moves elements."""
    x, y = array(dtype, 200, 300), array(dtype, 64, 48, 96)
    rows, columns = rng.integers(0, 200, 400), rng.integers(0, 300, 400)
    places = rng.integers(0, 300, (200, 300))
    return {
        "concatenate 0": (lambda m, a: m.concatenate([a, a], 0), [x]),
        "concatenate 1": (lambda m, a: m.concatenate([a, a], 1), [x]),
        "stack 1": (lambda m, a: m.stack([a, a, a], 1), [x]),
        "stack -1": (lambda m, a: m.stack([a, a], -1), [x]),
        "tile": (lambda m, a: m.tile(a, (2, 3)), [x]),
        "repeat": (lambda m, a: m.repeat(a, 3, 1), [x]),
        "pad": (lambda m, a: m.pad(a, ((1, 2), (3, 4))), [x]),
        "pad reflect": (lambda m, a: m.pad(a, 2, mode="reflect"), [x]),
        "roll": (lambda m, a: m.roll(a, 7, 1), [x]),
        "flip": (lambda m, a: m.flip(a, 1), [x]),
        "rot90": (lambda m, a: m.rot90(a), [x]),
        "strided": (lambda m, a: a[::2, ::3], [x]),
        "rows": (lambda m, a, i: a[i], [x, rows]),
        "columns": (lambda m, a, i: a[:, i], [x, columns]),
        "take along axis": (lambda m, a, i: m.take_along_axis(a, i, 1), [x, places]),
        "swapaxes": (lambda m, a: m.swapaxes(a, 0, 2), [y]),
        "turned, flat": (lambda m, a: a.T.ravel(), [x]),
        "tril": (lambda m, a: m.tril(a), [x]),
        "where": (lambda m, c, a: m.where(c, a, a[::-1]), [array("bool", 200, 300), x]),
        "set": (lambda m, a: a.at[10:110, 20:120].set(a[:100, :100]), [x]),
    }


def arithmetic(dtype: str) -> dict[str, Row]:
    """What computes with numbers of a dtype, ordered ones and others."""
    x, y = array(dtype, 200, 300), array(dtype, 64, 48, 96)
    rows: dict[str, Row] = {
        "add": (lambda m, a: a + a[::-1], [x]),
        "multiply": (lambda m, a: a * a, [x]),
        "outer": (lambda m, a: m.outer(a[0], a[1]), [x]),
        "cumsum 0": (lambda m, a: m.cumsum(a, 0), [x]),
        "cumsum 1": (lambda m, a: m.cumsum(a, 1), [x]),
        "diff": (lambda m, a: m.diff(a, axis=0), [x]),
    }
    for axis in (0, 1, 2, (0, 1), (1, 2), (0, 2), None):
        rows[f"sum {axis}"] = (lambda m, a, axis=axis: a.sum(axis), [y])
    if dtype == "complex64":
        return rows
    for axis in (0, 1, 2, None):
        rows[f"max {axis}"] = (lambda m, a, axis=axis: a.max(axis), [y])
        rows[f"argmax {axis}"] = (lambda m, a, axis=axis: a.argmax(axis), [y])
    return rows | {
        "sort 0": (lambda m, a: m.sort(a, 0), [x]),
        "sort 1": (lambda m, a: m.sort(a, 1), [x]),
        "argsort": (lambda m, a: m.argsort(a, 1), [x]),
        "clip": (lambda m, a: m.clip(a, 1, 5), [x]),
        "less": (lambda m, a: a < a[::-1], [x]),
        "matmul": (lambda m, a: a @ a.T, [x]),
    }


def functions() -> dict[str, Row]:
    """What is there for floats."""
    rows: dict[str, Row] = {}
    for dtype in ("float32", "float16"):
        x, q = array(dtype, 200, 300), array(dtype, 2, 64, 4, 32)
        rows |= {
            f"{dtype} exp": (lambda m, a: m.exp(a / 100), [x]),
            f"{dtype} tanh": (lambda m, a: m.tanh(a), [x]),
            f"{dtype} var 0": (lambda m, a: a.var(0), [x]),
            f"{dtype} var 1": (lambda m, a: a.var(1), [x]),
            f"{dtype} median": (lambda m, a: m.median(a, 1), [x]),
            f"{dtype} heads": (lambda m, a: m.einsum("bqhd,bkhd->bhqk", a, a), [q]),
            f"{dtype} convolve": (lambda m, a: m.convolve(a.ravel(), a[0, :31], "same"), [x]),
        }
    points = array("float32", 5000, 3)
    return rows | {
        "float32 cross": (lambda m, a: m.cross(a, a[::-1]), [points]),
        "float32 norms": (lambda m, a: m.linalg.norm(a, axis=1), [points]),
        "float32 histogram": (lambda m, a: m.histogram(a, 20)[0], [array("float32", 20000)]),
        "float32 searchsorted": (lambda m, a: m.searchsorted(m.sort(a[0]), a), [points.T]),
        "complex64 fft 0": (lambda m, a: m.fft.fft(a, axis=0), [array("complex64", 128, 128)]),
    }


def transposes() -> dict[str, Row]:
    """Every order of the axes of some shapes."""
    rows: dict[str, Row] = {}
    for dtype, shape in itertools.product(("float32", "complex64", "int8"), SHAPES):
        x = array(dtype, *shape)
        for order in itertools.permutations(range(len(shape))):
            if list(order) != sorted(order):
                f = eval(f"lambda m, a: m.transpose(a, {order}).copy()")  # each its own program
                rows[f"{dtype} {shape} {order}".replace(" ", "")] = (f, [x])
    return rows


def main() -> None:
    rows = {f"{d} {k}": r for d in DTYPES for k, r in layouts(d).items()}
    rows |= {f"{d} {k}": r for d in DTYPES if d != "bool" for k, r in arithmetic(d).items()}
    rows |= functions() | transposes()
    modules = {"calque": calque}
    if has("jax"):
        import jax

        modules["jax"] = jax
    calls: dict[str, dict[str, Callable[[], Any]]] = {}
    for name, (f, arrays) in rows.items():
        if all(part in name for part in sys.argv[1:]):
            calls[name] = {k: jitted(m, f, arrays) for k, m in modules.items()}
    compare(calls)


def jitted(module: Any, f: Function, arrays: list[np.ndarray]) -> Callable[[], Any]:
    """A call that waits for its result."""
    xs = [module.numpy.asarray(x) for x in arrays]
    compiled = module.jit(lambda *xs: f(module.numpy, *xs))
    return lambda: module.block_until_ready(compiled(*xs))


if __name__ == "__main__":
    main()

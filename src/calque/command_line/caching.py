"""`cache`: compiled code on disk: where it is, how large; deleting it, making it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

import calque.numpy as jnp
from calque.command_line import terminal
from calque.compat.running import problem_of, run
from calque.compat.switch import as_jax
from calque.explaining.statistics import stats
from calque.machine.code import diskcache
from calque.transforms.functions.autodiff import grad
from calque.transforms.jit.decorator import jit


def main(found: Any) -> int:
    """Do what `cache ACTION` says."""
    folder = diskcache.directory()
    if folder is None:
        print(f"there is no cache: {diskcache.reason()}", file=sys.stderr)
        return 1
    if found.program and found.action != "warm":
        print(f"cache {found.action} takes no program", file=sys.stderr)
        return 2
    actions: dict[str, Callable[[], None]] = {
        "where": lambda: print(folder),
        "size": lambda: print(diskcache.size()),
        "show": lambda: print(f"{folder}\n{terminal.size(diskcache.size())}"),
        "clear": diskcache.clear,
    }
    if found.action in actions:
        actions[found.action]()
        return 0
    return _warm(found.program)


def _warm(program: list[str]) -> int:
    """Run something so that its code is on disk."""
    if program and problem_of(program):
        print(f"cache warm: {problem_of(program)}", file=sys.stderr)
        return 2
    if program:
        as_jax()
        try:
            run(program)
        finally:
            _tell()
        return 0
    for operation in OPERATIONS:
        operation()
    _tell()
    return 0


def _tell() -> None:
    s = stats()
    print(
        f"compiled {s['compiles']} kernels, found {s['kernels_from_disk']};"
        f" the cache holds {terminal.size(diskcache.size())}",
        file=sys.stderr,
    )


def _elementwise() -> None:
    for kind in ("float32", "int32", "bool"):
        x = jnp.ones((3, 4), kind)
        _ = (
            x == x,
            x & x if kind != "float32" else x / 2,
            x + 1,
            x * 2,
            -x if kind != "bool" else x,
        )
        _ = (x.sum(), x.sum(0), x.max(), x.max(1), x.mean(), x.T, x[0], x[:, 1:], x.reshape(-1))
    x = jnp.ones((3, 4))
    for f in (jnp.exp, jnp.log, jnp.sin, jnp.cos, jnp.tanh, jnp.sqrt, jnp.abs, jnp.square):
        f(x)


def _runtime() -> None:
    """The routines that are there before any program."""
    x = jnp.eye(40)
    _ = (jnp.sort(x), jnp.argsort(x), jnp.fft.fft(x), jnp.linalg.solve(x, x), jnp.linalg.inv(x))
    small = jnp.eye(4)
    _ = (jnp.linalg.cholesky(small), jnp.linalg.qr(small), jnp.linalg.eigh(small))


def _programs() -> None:
    """A layer and its derivative."""

    def loss(w: Any, x: Any) -> Any:
        return (jnp.tanh(x @ w) ** 2).mean()

    for n in (4, 64, 300):
        jit(grad(loss))(jnp.ones((n, n)), jnp.ones((n, n)))


OPERATIONS: Final[tuple[Callable[[], None], ...]] = (_elementwise, _runtime, _programs)

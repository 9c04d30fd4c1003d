"""Where a program runs eagerly, which decides what it costs. Most programs run on the NumPy
meanings alone, in some milliseconds, and try the rules of transformations. Others are compiled
once, and compared with the meanings. The rest, which cost most, run natively throughout."""

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

import calque
from calque.core.config import config
from tests.compositions.checks import on_reference

RULES, COMPILED, MACHINE = "rules", "compiled", "machine"
SHARES = {RULES: 0.84, COMPILED: 0.1, MACHINE: 0.06}
Where = Callable[[], contextlib.AbstractContextManager[Any]]


def tier(seed: int) -> str:
    """The tier of a seed."""
    at = np.random.default_rng([seed, 31]).choice(len(SHARES), p=list(SHARES.values()))
    return tuple(SHARES)[int(at)]


def exact_first(seed: int) -> bool:
    """Whether a program's eager operations are those of exact mode, which are prepared once for
    all that is compared with them."""
    return seed % 4 != 0


def place(name: str, seed: int) -> Where:
    """Where the eager operations of a program of this tier run."""
    if name != MACHINE:
        return on_reference
    return exactly if exact_first(seed) else contextlib.nullcontext


def exactly() -> contextlib.AbstractContextManager[Any]:
    return config.override("calque_exact", True)


class Evaluated:
    """A program as a function that runs where it is told to when it runs eagerly."""

    def __init__(self, f: Callable[..., list[Any]], where: Where):
        self.f, self.where = f, where

    def __call__(self, *xs: Any) -> list[Any]:
        if not xs or any(isinstance(x, calque.core.Tracer) for x in xs):
            return self.f(*xs)
        return self.eagerly(self.f, *xs)

    def eagerly(self, g: Callable[..., Any], *args: Any) -> Any:
        """What another function gives there."""
        with self.where():
            return g(*args)


def eagerly(f: Any, g: Callable[..., Any], *args: Any) -> Any:
    """`g` where the program `f` runs eagerly."""
    return f.eagerly(g, *args) if isinstance(f, Evaluated) else g(*args)

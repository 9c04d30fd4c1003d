"""Python exceptions out of compiled code: a condition is computed in place, Python is called only
when it fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calque.core import pytrees
from calque.core.arrays import is_concrete, to_numpy
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.transforms.primitives.callbacks import FlatCallback, bind_debug_callback
from calque.transforms.primitives.cond import cond


def raise_if(failed: Any, error: Callable[..., Exception], operands: Sequence[Any] = ()) -> None:
    """Raise `error(*operands)`, made with NumPy arrays, if any element of `failed` is true: now, or
    while the program runs."""
    if all(map(is_concrete, (failed, *operands))):
        if np.any(to_numpy(failed)):
            raise error(*map(to_numpy, operands))
        return

    n = typeof(failed).ndim
    raise_when(
        do.reduce_or(failed, axes=tuple(range(n))) if n else failed,
        Fail(error),
        operands,
    )


class Fail:
    """Raises the exception that is made of the values. Compilers know it: nothing else than raising
    happens."""

    __slots__ = ("error",)

    def __init__(self, error: Callable[..., Exception]) -> None:
        self.error = error

    def __call__(self, *values: Any) -> None:
        raise self.error(*map(np.asarray, values))


def raise_when(failed: Any, fail: Fail, operands: Sequence[Any]) -> None:
    """Raise while the program runs, if a traced bool is true."""
    callback = FlatCallback(fail, pytrees.structure((tuple(operands), {})), None)
    cond(failed, lambda *xs: bind_debug_callback(callback, xs), lambda *xs: None, *operands)

"""Python exceptions out of compiled code: a condition is computed in place, Python is called only
when it fails. `check` for users, `raise_if` for the library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calque.core import pytrees
from calque.core.arrays import is_concrete, to_numpy
from calque.core.lazy import LazyModule
from calque.core.primitives import do
from calque.core.source import here
from calque.core.trace import typeof
from calque.transforms.primitives.callbacks import Fail, FlatCallback, bind_debug_callback

branches: Any = LazyModule("calque.transforms.functions.branches")


def check(
    condition: Any, message: str, *, error: type[Exception] = ValueError, **values: Any
) -> None:
    """Raises an exception unless the condition holds everywhere, also out of compiled code.

    Args:
        condition: Booleans: an array of any shape, or one of Python's.
        message: A format string for the values that are given by keyword.
        error: The class of the exception.
        **values: Arrays and numbers that the message shows.

    Returns:
        None.

    Raises:
        error: Where the condition is false; the exception notes the line of the check.

    Differs from JAX:
        It is calque's own. JAX has `experimental.checkify`, which needs the function to be
        transformed.

    >>> @jax.jit
    ... def root(x):
    ...     jax.check(x >= 0, "no root of {x}", x=x)
    ...     return jnp.sqrt(x)
    >>> root(-1.0)
    Traceback (most recent call last):
    ValueError: no root of -1.0
    checked at ..."""
    if not isinstance(message, str):
        raise TypeError(f"check: the message must be a string, got {type(message).__name__}")
    aval = typeof(condition)
    if aval.dtype != np.dtype(bool):
        raise TypeError(
            f"check: the condition must be of dtype bool, got {aval.str_short()}; compare, for"
            " example x > 0"
        )
    where = here()

    def make(*found: np.ndarray) -> Exception:
        exception = error(message.format(**{k: shown(v) for k, v in zip(values, found)}))
        exception.add_note(f"checked at {where}")
        return exception

    failed = (
        do.not_(condition) if not is_concrete(condition) else np.logical_not(to_numpy(condition))
    )
    raise_if(failed, make, list(values.values()))


def shown(x: np.ndarray) -> Any:
    """A value in a message: scalars as Python numbers."""
    return x.item() if x.ndim == 0 else x


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


def raise_when(failed: Any, fail: Fail, operands: Sequence[Any]) -> None:
    """Raise while the program runs, if a traced bool is true."""
    callback = FlatCallback(fail, pytrees.structure((tuple(operands), {})), None)
    branches.cond(
        failed, lambda *xs: bind_debug_callback(callback, xs), lambda *xs: None, *operands
    )

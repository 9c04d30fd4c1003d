"""`check`: an exception unless a condition holds, also out of compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np

from calque.core.arrays import is_concrete, to_numpy
from calque.core.primitives import do
from calque.core.source import here
from calque.core.trace import typeof
from calque.transforms.primitives.checks import raise_if


def check(
    condition: Any, message: str, *, error: type[Exception] = ValueError, **values: Any
) -> None:
    """Raise an exception unless the condition holds everywhere, also out of compiled code.

    >>> import calque, calque.numpy as jnp
    >>> @calque.jit
    ... def root(x):
    ...     calque.check(x >= 0, "no root of {x}", x=x)
    ...     return jnp.sqrt(x)
    >>> root(4.0)
    Array(2., dtype=float32, weak_type=True)
    >>> root(-1.0)
    Traceback (most recent call last):
    ValueError: no root of -1.0
    checked at ...

    `message` is a format string for the keyword arguments; `error` is the exception's class."""
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

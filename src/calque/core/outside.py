"""What `calque.core` offers beside its modules: names of `jax.core` that are functions."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from calque.core import trace_state
from calque.core.dims import chosen
from calque.core.jaxprs import Jaxpr
from calque.core.trace import eval_jaxpr as _run


def eval_jaxpr(
    jaxpr: Jaxpr, consts: Sequence[Any], *args: Any, propagate_source_info: bool = True
) -> list[Any]:
    """Run a program on values, which may be traced; gives the list of its results.

    Equations that are recorded while it runs keep the places that the program has;
    `propagate_source_info=False` is refused.

    >>> closed = calque.make_jaxpr(lambda x: 2 * x)(1.0)
    >>> calque.core.eval_jaxpr(closed.jaxpr, closed.consts, 3.0)
    [Array(6., dtype=float32, weak_type=True)]"""
    if not propagate_source_info:
        raise NotImplementedError(
            "eval_jaxpr: propagate_source_info=False: equations always keep their places"
        )
    return _run(jaxpr, consts, *args)


@contextlib.contextmanager
def eval_context() -> Iterator[None]:
    """Operations on plain arrays inside run at once, also while a function is traced."""
    with trace_state.evaluating():
        yield


ensure_compile_time_eval = eval_context


def max_dim(d1: Any, d2: Any) -> Any:
    """The larger of two sizes: `max_dim(2, 3) == 3`"""
    return chosen("max", d1, d2)


def min_dim(d1: Any, d2: Any) -> Any:
    """The smaller of two sizes: `min_dim(2, 3) == 2`"""
    return chosen("min", d1, d2)

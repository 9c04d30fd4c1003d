"""`calque_debug_nans` in compiled programs: a program looks at its own results, and only when one
is bad does Python run it again, one operation at a time, to name the operation and the line.
Nothing else of a call is slower."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from calque.core.arrays import from_numpy
from calque.core.avals import ShapedArray
from calque.core.config import config
from calque.core.dtypes import is_complex, is_inexact
from calque.core.jaxprs import ClosedJaxpr
from calque.core.primitives import do
from calque.core.trace import trace_to_jaxpr, typeof
from calque.transforms.functions import debug_nans
from calque.transforms.functions.branches import cond
from calque.transforms.functions.callbacks import debug_callback
from calque.transforms.primitives.call import jit_p


def checked(closed: ClosedJaxpr, name: str) -> ClosedJaxpr:
    """Of a program that is compiled while a flag is on.

    before: { lambda ; a. let b = f a in (b,) }
    after: { lambda ; a. let b = f a; c = ne b b; d = reduce_or c;
    cond[branches=(nothing, explain)] d a in (b,) }
    """
    if not any(is_looked_at(a) for a in closed.out_avals):
        return closed
    weak = [a.weak_type for a in closed.in_avals]

    held = holding_flags()

    def explain(*args: Any) -> None:
        with held():
            given = [from_numpy(np.asarray(x), w) for x, w in zip(args, weak)]
            debug_nans.explain(closed, given, name)

    def blame() -> None:
        with held():
            debug_nans.blame(name)

    def program(*args: Any) -> list[Any]:
        outs: list[Any] = jit_p.bind(*args, jaxpr=closed, name=name)
        bad: Any = None
        for x in outs:
            if is_looked_at(typeof(x)):
                bad = any_bad(x) if bad is None else do.or_(bad, any_bad(x))
        plain = [x for x, a in zip(args, closed.in_avals) if isinstance(a.dtype, np.dtype)]
        if len(plain) == len(args):
            cond(bad, lambda *xs: debug_callback(explain, *xs), lambda *xs: None, *args)
        else:  # keys are no arguments of callbacks
            cond(bad, lambda: debug_callback(blame), lambda: None)
        return outs

    return trace_to_jaxpr(program, closed.in_avals)


def holding_flags() -> Callable[[], Any]:
    """The flags as they are now, as a `with` block: programs on several devices of XLA call back
    in threads of their own."""
    flags = [(name, config.read(name)) for name in ("debug_nans", "debug_infs")]

    @contextlib.contextmanager
    def held() -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for name, value in flags:
                stack.enter_context(config.override(name, value))
            yield

    return held


def is_looked_at(aval: ShapedArray) -> bool:
    return isinstance(aval.dtype, np.dtype) and is_inexact(aval.dtype) and aval.size != 0


def any_bad(x: Any) -> Any:
    """Whether an array holds what a flag forbids."""
    found: Any = None
    parts = [do.real(x), do.imag(x)] if is_complex(typeof(x).dtype) else [x]
    for part in parts:
        if config.debug_nans:
            nan = do.ne(part, part)
            found = nan if found is None else do.or_(found, nan)
        if config.debug_infs:
            inf = do.not_(do.is_finite(part))
            if not config.debug_nans:
                inf = do.and_(inf, do.eq(part, part))
            found = inf if found is None else do.or_(found, inf)
    n = typeof(x).ndim
    return do.reduce_or(found, axes=tuple(range(n))) if n else found

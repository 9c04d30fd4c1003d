"""The reference backend: every primitive runs its NumPy meaning. Slow and obviously right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calque.core.arrays import from_storage, to_numpy
from calque.core.avals import ShapedArray, nbytes
from calque.core.dtypes import storage
from calque.core.jaxprs import ClosedJaxpr, Literal, Var
from calque.core.primitives import Primitive
from calque.core.trace import typeof


def evaluate(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Run one primitive on concrete values."""
    avals = [typeof(a) for a in args]
    out_avals = primitive.shape(*avals, **params)
    several = out_avals if primitive.multiple_results else [out_avals]
    bytes_needed = [nbytes(a) for a in several]  # what no process can address is refused here
    try:
        with np.errstate(all="ignore"):
            out = primitive.meaning(*[to_numpy(a) for a in args], **params)
        if primitive.multiple_results:
            return [finished(o, a, primitive) for o, a in zip(out, out_avals, strict=True)]
        return finished(out, out_avals, primitive)
    except MemoryError:
        told = ", ".join(f"{a.str_short()}, {n} bytes" for a, n in zip(several, bytes_needed))
        raise MemoryError(f"{primitive.name}: no memory for its result {told}") from None


def finished(out: Any, aval: ShapedArray, primitive: Primitive) -> Any:
    x = np.asarray(out)
    if x.shape != aval.shape or x.dtype != storage(aval.dtype):
        raise AssertionError(
            f"{primitive.name}: its meaning gives {x.dtype}{x.shape}, its shape rule says {aval}"
        )
    return from_storage(x, ShapedArray(aval.shape, aval.dtype, aval.weak_type))


def run(closed: ClosedJaxpr, *args: Any) -> list[Any]:
    """Run a whole program, equation by equation, on NumPy arrays; gives NumPy arrays."""
    env: dict[Var, Any] = dict(
        zip(closed.jaxpr.constvars, map(to_numpy, closed.consts), strict=True)
    )
    env.update(zip(closed.jaxpr.invars, map(to_numpy, args), strict=True))

    def read(a: Var | Literal) -> np.ndarray:
        return env[a] if isinstance(a, Var) else np.asarray(a.val)

    with np.errstate(all="ignore"):
        for e in closed.jaxpr.eqns:
            out = e.primitive.meaning(*[read(a) for a in e.invars], **e.params)
            for v, x in zip(
                e.outvars, out if e.primitive.multiple_results else (out,), strict=True
            ):
                env[v] = np.asarray(x)
    return [read(a) for a in closed.jaxpr.outvars]

"""Programs of scalars, as scatter and reduce_window carry them, run on whole arrays: by meaning, by
primitives, forward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calque.core.jaxprs import ClosedJaxpr, Eqn, Jaxpr, Literal, Var
from calque.core.primitives import Zero
from calque.ops.common import zero_like

_SHAPED = frozenset(
    (
        "shape",
        "new_sizes",
        "jaxpr",
        "branches",
        "dimensions",
        "axes",
        "cond_jaxpr",
        "body_jaxpr",
        "call_jaxpr",
    )
)


def is_elementwise(jaxpr: Jaxpr) -> bool:
    """Whether the program of scalars means the same thing for arrays, element by element."""
    return all(v.aval.ndim == 0 for v in (*jaxpr.invars, *jaxpr.outvars)) and all(
        _elementwise(e) for e in jaxpr.eqns
    )


def _elementwise(e: Eqn) -> bool:
    inner = _inner(e)
    if inner is not None:
        return is_elementwise(inner.jaxpr)
    return all(v.aval.ndim == 0 for v in (*e.outvars, *e.invars)) and not _SHAPED.intersection(
        e.params
    )


def _inner(e: Eqn) -> ClosedJaxpr | None:
    """The program of a call of a jitted function."""
    inner = e.params.get("jaxpr")
    return inner if e.primitive.name == "jit" and isinstance(inner, ClosedJaxpr) else None


def run_scalars(jaxpr: Jaxpr, consts: Sequence[Any], *arrays: np.ndarray) -> list[np.ndarray]:
    """The program for each element of NumPy arrays of one shape: all at once where it is
    elementwise."""
    shape = arrays[0].shape
    if is_elementwise(jaxpr):
        return [np.broadcast_to(x, shape) for x in _run(jaxpr, consts, *arrays)]
    rows = [_run(jaxpr, consts, *xs) for xs in zip(*[a.reshape(-1) for a in arrays])]
    dtypes = [v.aval.dtype for v in jaxpr.outvars]
    return [np.array([r[i] for r in rows], d).reshape(shape) for i, d in enumerate(dtypes)]


def _run(jaxpr: Jaxpr, consts: Sequence[Any], *args: Any) -> list[np.ndarray]:
    env: dict[Var, Any] = dict(
        zip((*jaxpr.constvars, *jaxpr.invars), map(np.asarray, (*consts, *args)), strict=True)
    )

    def read(v: Var | Literal) -> Any:
        return np.asarray(v.val) if isinstance(v, Literal) else env[v]

    for e in jaxpr.eqns:
        inner, args_in = _inner(e), [read(v) for v in e.invars]
        if inner is not None:
            out: Any = _run(inner.jaxpr, inner.consts, *args_in)
        else:
            out = e.primitive.meaning(*args_in, **e.params)
            out = out if e.primitive.multiple_results else [out]
        env.update(zip(e.outvars, out))
    return [np.asarray(read(v)) for v in jaxpr.outvars]


def jvp_scalars(
    jaxpr: Jaxpr, consts: Sequence[Any], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """An elementwise program on arrays and the tangents of its results, by the jvp rules of its
    primitives."""
    env: dict[Var, tuple[Any, Any]] = {
        v: (c, zero_like(c)) for v, c in zip(jaxpr.constvars, consts)
    }
    env.update(zip(jaxpr.invars, zip(primals, tangents)))

    def read(v: Var | Literal) -> Any:
        return (v.val, zero_like(v.val)) if isinstance(v, Literal) else env[v]

    for e in jaxpr.eqns:
        pairs = [read(v) for v in e.invars]
        ps, ts = [p for p, _ in pairs], [t for _, t in pairs]
        inner = _inner(e)
        if inner is not None:
            out, dout = jvp_scalars(inner.jaxpr, inner.consts, ps, ts)
        elif all(type(t) is Zero for t in ts):
            out = e.primitive.bind(*ps, **e.params)
            out = out if e.primitive.multiple_results else [out]
            dout = [zero_like(o) for o in out]
        else:
            out, dout = e.primitive.jvp(ps, ts, **e.params)
            out, dout = (out, dout) if e.primitive.multiple_results else ([out], [dout])
        env.update(zip(e.outvars, zip(out, dout)))
    outs = [read(v) for v in jaxpr.outvars]
    return [p for p, _ in outs], [t for _, t in outs]

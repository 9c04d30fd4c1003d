"""Values that enter a program as they are, values that must be computed though nobody reads them,
tokens that order effects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calque.core import pytrees, trace_state
from calque.core.arrays import to_array
from calque.core.avals import ShapedArray
from calque.core.primitives import NotApplicable, Primitive, Zero
from calque.core.trace import JaxprTrace, JaxprTracer, typeof
from calque.core.trace_state import Tracer
from calque.ops.common import operand

# ---------------------------------------------------------------- stage


class _Stage(Primitive):
    """The identity. In a program that is being recorded a constant becomes a traced value, without
    an equation."""

    __slots__ = ()

    def bind(self, x: Any, **params: Any) -> Any:
        trace = trace_state.dynamic_trace()
        if isinstance(x, Tracer):
            return x
        if not isinstance(trace, JaxprTrace):
            return to_array(x)
        t = JaxprTracer()
        t._trace, t.aval, t._var = trace, typeof(x), trace.atom(x)  # type: ignore[assignment]
        return t


def _stage_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    return stage_p.bind(primals[0]), tangents[0]


stage_p = _Stage(
    "stage",
    meaning=lambda x: x,
    shape=lambda x: x,
    jvp=_stage_jvp,
    transpose=lambda ct, x: [ct],
    batch=lambda args, dims: (args[0], dims[0]),
)


def stage(x: Any, /) -> Any:
    """Makes a value part of the program that is being recorded, also where it is a constant.

    Args:
        x: An array or a number.

    Returns:
        The same value, traced inside a program and an array outside.

    >>> lax.stage(2.0)
    Array(2., dtype=float32, weak_type=True)"""
    return stage_p.bind(operand(x))


# ---------------------------------------------------------------- dce_sink


def _sink_batch(args: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
    dce_sink_p.bind(*args, **params)
    return [], []


def _sink_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
    dce_sink_p.bind(*primals, **params)
    return [], []


dce_sink_p: Primitive = Primitive(
    "dce_sink",
    meaning=lambda x, **_: [],
    shape=lambda x, **_: [],
    jvp=_sink_jvp,
    transpose=lambda cts, x, **_: [None if not hasattr(x, "aval") else Zero(x.aval)],
    batch=_sink_batch,
    multiple_results=True,
    effect=True,
)


def dce_sink(val: Any, *, prevent_mlir_dce: bool = False) -> None:
    """Has values computed wherever the program runs, though nobody reads them.

    Args:
        val: A tree of arrays.
        prevent_mlir_dce: Whether XLA must keep them too.

    >>> lax.dce_sink(jnp.sin(1.0))"""
    for leaf in pytrees.leaves(val):
        dce_sink_p.bind(operand(leaf), prevent_mlir_dce=bool(prevent_mlir_dce))


# ---------------------------------------------------------------- tokens

TOKEN = ShapedArray(
    (0,), np.dtype(bool)
)  # an array of no elements: it says in which order things happen, nothing else
_NO_TANGENT = NotApplicable("tokens have no derivative")


def _merged(*tokens: ShapedArray) -> ShapedArray:
    for i, t in enumerate(tokens):
        if t.shape != TOKEN.shape or t.dtype != TOKEN.dtype:
            raise TypeError(
                f"after_all takes tokens, as create_token() and after_all make them: operand {i} is"
                f" {t.str_short()}"
            )
    return TOKEN


create_token_p: Primitive = Primitive(
    "create_token",
    meaning=lambda: np.zeros(TOKEN.shape, TOKEN.dtype),
    shape=lambda: TOKEN,
    jvp=_NO_TANGENT,
    transpose=_NO_TANGENT,
    batch=NotApplicable("create_token has no operand to batch"),
)


def _after_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    from_all = after_all_p.bind(*primals)
    return from_all, tangents[0]


def _after_batch(args: Sequence[Any], dims: Sequence[Any]) -> Any:
    raise NotImplementedError(
        "after_all under vmap: a token belongs to the program, not to a member of the batch"
    )


after_all_p: Primitive = Primitive(
    "after_all",
    meaning=lambda *tokens: np.zeros(TOKEN.shape, TOKEN.dtype),
    shape=_merged,
    jvp=_after_jvp,
    transpose=_NO_TANGENT,
    batch=_after_batch,
)


def create_token(_: Any = None) -> Any:
    """Makes a token that waits for nothing.

    Returns:
        A token, an array without elements.

    >>> lax.create_token().shape
    (0,)"""
    return create_token_p.bind()


def after_all(*operands: Any) -> Any:
    """Makes a token that comes after other ones.

    Args:
        *operands: Tokens.

    Returns:
        A token.

    >>> lax.after_all(lax.create_token(), lax.create_token()).shape
    (0,)"""
    return after_all_p.bind(*operands) if operands else create_token()

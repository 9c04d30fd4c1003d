"""Reductions over windows, and the places that windows select."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from calque.core.jaxprs import ClosedJaxpr, Eqn, Jaxpr
from calque.xla.lower.programs import lower_program
from calque.xla.lower.reductions import (
    MONOIDS,
    Windows,
    greatest,
    least,
    over_windows,
    pairs,
    rule_of_reduce,
)
from calque.xla.lower.rules import RULES, Builder, Rule, array_i64, equation_rule, rule
from calque.xla.lower.sizes import is_free
from calque.xla.text.tree import Region, Value
from calque.xla.text.types import Tensor

Pads = Sequence[tuple[int, int]]


def _window(kind: str) -> Rule:
    def lower(
        b: Builder,
        out: Tensor,
        x: Value,
        *,
        window_dimensions: Sequence[int],
        window_strides: Sequence[int],
        padding: Pads,
        base_dilation: Sequence[int],
        window_dilation: Sequence[int],
    ) -> Value:
        combine, identity = MONOIDS[kind]
        start = b.scalar(identity(x.dtype), x.dtype)
        windows = Windows(
            window_dimensions, window_strides, padding, base_dilation, window_dilation
        )
        return over_windows(b, [out], [x, start], windows, lambda i, args: [combine(i, *args)])[0]

    return lower


RULES.update({f"reduce_window_{kind}": _window(kind) for kind in ("sum", "max", "min")})


def program_region(
    b: Builder, types: Sequence[Tensor], jaxpr: Jaxpr, consts: Sequence[Any]
) -> Region:
    """A program of scalars as the region of an operation."""
    inner, args = b.inside(types)
    inner.returns(*lower_program(inner, ClosedJaxpr(jaxpr, consts), args))
    return inner.region


@equation_rule("reduce")
def reduce(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
    n = len(args) // 2
    closed = e.params["jaxpr"]
    axes = e.params["dimensions"]
    return rule_of_reduce(
        b,
        args[:n],
        args[n:],
        axes,
        outs,
        lambda inner, given: lower_program(inner, closed, given),
    )


@rule("reduce_window")
def reduce_window(
    b: Builder,
    outs: list[Tensor],
    *args: Value,
    jaxpr: Jaxpr,
    consts: Sequence[Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Pads,
    base_dilation: Sequence[int],
    window_dilation: Sequence[int],
) -> list[Value]:
    windows = Windows(window_dimensions, window_strides, padding, base_dilation, window_dilation)
    closed = ClosedJaxpr(jaxpr, consts)
    return over_windows(b, outs, args, windows, lambda i, given: lower_program(i, closed, given))


@rule("select_and_scatter")
def select_and_scatter(
    b: Builder,
    out: Tensor,
    x: Value,
    source: Value,
    init: Value,
    *,
    select_jaxpr: Jaxpr,
    select_consts: Sequence[Any],
    scatter_jaxpr: Jaxpr,
    scatter_consts: Sequence[Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Pads,
) -> Value:
    scalars = [x.tensor.with_shape(()), x.tensor.with_shape(())]
    chooses = program_region(b, scalars, select_jaxpr, select_consts)
    combines = program_region(b, scalars, scatter_jaxpr, scatter_consts)
    attributes = _selecting(window_dimensions, window_strides, padding)
    return b.generic(
        "stablehlo.select_and_scatter", [out], [x, source, init], attributes, chooses, combines
    )[0]


def _selecting(window: Sequence[int], strides: Sequence[int], padding: Pads) -> dict[str, str]:
    return {
        "padding": pairs(padding),
        "window_dimensions": array_i64(window),
        "window_strides": array_i64(strides),
    }


@rule("select_and_scatter_add")
def select_and_scatter_add(
    b: Builder,
    out: Tensor,
    source: Value,
    x: Value,
    *,
    select_prim: Any,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Pads,
) -> Value:
    """Padding is never selected: it is written out, with a value that loses against all others, and
    what went there is cut off."""
    if is_free(window_dimensions, window_strides, *padding):
        raise NotImplementedError(
            'export: windows that select have fixed sizes, strides and paddings: with "SAME" a'
            ' stride of 1, or "VALID"'
        )
    worst = least(x.dtype) if select_prim.name == "ge" else greatest(x.dtype)
    low, high = [max(p[0], 0) for p in padding], [max(p[1], 0) for p in padding]
    fill, zero = b.scalar(worst, x.dtype), b.scalar(0, source.dtype)
    shape = [a + n + c for a, n, c in zip(low, x.shape, high)]
    padded = RULES["pad"](
        b,
        x.tensor.with_shape(shape),
        x,
        fill,
        padding_config=[(a, c, 0) for a, c in zip(low, high)],
    )
    scalar = x.tensor.with_shape(())
    chooses, args = b.inside([scalar, scalar])
    chooses.returns(chooses.compare(select_prim.name.upper(), args[0], args[1]))
    combines, args = b.inside([scalar, scalar])
    combines.returns(combines.binary("add", *args))
    rest = [(p[0] - a, p[1] - c) for p, a, c in zip(padding, low, high)]
    found = b.generic(
        "stablehlo.select_and_scatter",
        [padded.tensor],
        [padded, source, zero],
        _selecting(window_dimensions, window_strides, rest),
        chooses.region,
        combines.region,
    )[0]
    return b.slice(found, low, [a + n for a, n in zip(low, x.shape)])


@rule("select_and_gather_add")
def select_and_gather_add(
    b: Builder,
    out: Tensor,
    values: Value,
    x: Value,
    *,
    select_prim: Any,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Pads,
    base_dilation: Sequence[int],
    window_dilation: Sequence[int],
) -> Value:
    """A window of pairs: the key that is selected brings its value along."""
    worst = least(x.dtype) if select_prim.name == "ge" else greatest(x.dtype)
    starts = [b.scalar(worst, x.dtype), b.scalar(0, values.dtype)]

    def better(inner: Builder, args: list[Value]) -> list[Value]:
        key, value, other, brought = args
        keep = inner.compare(select_prim.name.upper(), key, other)
        return [inner.select(keep, key, other), inner.select(keep, value, brought)]

    windows = Windows(window_dimensions, window_strides, padding, base_dilation, window_dilation)
    outs = [x.tensor.with_shape(out.shape), out]
    return over_windows(b, outs, [x, values, *starts], windows, better)[1]

"""Sorting, the largest elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calque.core.dtypes import is_complex, is_float
from calque.xla.lower.rules import BYTES, FOUR_BITS, Builder, as_bytes, boolean, rule
from calque.xla.text.tree import Value
from calque.xla.text.types import Tensor


@rule("sort")
def sort(
    b: Builder, outs: list[Tensor], *xs: Value, dimension: int, is_stable: bool, num_keys: int
) -> list[Value]:
    wide = [as_bytes(b, x) for x in xs]
    types = [x.tensor.with_shape(()) for x in wide for _ in range(2)]
    inner, args = b.inside(types)
    keys = [
        (left, right)
        for x, y in zip(args[::2][:num_keys], args[1::2][:num_keys])
        for left, right in zip(ordered_parts(inner, x), ordered_parts(inner, y))
    ]
    inner.returns(_before(inner, keys))
    attributes = {"dimension": f"{dimension} : i64", "is_stable": boolean(is_stable)}
    kinds = [x.tensor for x in wide]
    found = b.generic("stablehlo.sort", kinds, wide, attributes, inner.region)
    return [b.convert(x, out.dtype) for x, out in zip(found, outs)]


def _before(b: Builder, keys: Sequence[tuple[Value, Value]]) -> Value:
    """Whether the first row of keys comes before the second: by the first key that differs."""
    found: Value | None = None
    for x, y in reversed(keys):
        kind = "TOTALORDER" if is_float(x.dtype) else None
        less = b.compare("LT", x, y, kind)
        if found is not None:
            same = b.compare("EQ", x, y, kind)
            found = b.binary("or", less, b.binary("and", same, found))
        else:
            found = less
    assert found is not None
    return found


def ordered_parts(b: Builder, x: Value) -> list[Value]:
    """A key as numbers that order totally: one zero, one NaN, which comes last; of complex numbers
    the two parts."""
    if is_complex(x.dtype):
        part = x.tensor.with_dtype(np.zeros((), x.dtype).real.dtype)
        halves = [b.same(f"stablehlo.{name}", part, x) for name in ("real", "imag")]
        return [canonical(b, half) for half in halves]
    return [canonical(b, x)] if is_float(x.dtype) else [x]


def canonical(b: Builder, x: Value) -> Value:
    if x.dtype.itemsize == 1:  # some of these have NaN where the sign of others is
        x = b.convert(x, np.dtype("float32"))
    zero = b.filled(0, x.tensor)
    plain = b.select(b.compare("EQ", x, zero), b.filled(0, x.tensor), x)
    return b.select(b.compare("NE", x, x), b.filled(np.nan, x.tensor), plain)


@rule("top_k")
def top_k(b: Builder, outs: list[Tensor], x: Value, *, k: Any, axis: int) -> list[Value]:
    return largest(b, outs, x, k, axis, descending=True)


@rule("approx_top_k")
def approx_top_k(
    b: Builder,
    outs: list[Tensor],
    x: Value,
    *,
    k: int,
    reduction_dimension: int,
    is_max_k: bool,
    **_: Any,
) -> list[Value]:
    """Exact, which is always near enough."""
    return largest(b, outs, x, k, reduction_dimension % x.ndim, descending=is_max_k)


def largest(
    b: Builder, outs: list[Tensor], x: Value, k: Any, axis: int, *, descending: bool
) -> list[Value]:
    """The first k of a stable sort, values and places; k may be a free size."""
    if x.dtype.name in BYTES or x.dtype.name == FOUR_BITS:
        wide = as_bytes(b, x) if x.dtype.name in BYTES else b.convert(x, np.dtype("float32"))
        kinds = [outs[0].with_dtype(wide.dtype), outs[1]]
        found = largest(b, kinds, wide, k, axis, descending=descending)
        return [b.convert(found[0], x.dtype), found[1]]
    last = axis == x.ndim - 1
    if descending and last and type(k) is int and outs[1].dtype == np.dtype("int32"):
        types = f"{x.type} -> ({outs[0]}, {outs[1]})"
        names = ["values", "indices"]
        return b.emit(outs, "chlo.top_k(", x, f", k = {k}) : {types}", hints=names)
    places = b.iota(outs[1].dtype, x.shape, axis)
    scalars = [v.tensor.with_shape(()) for v in (x, places) for _ in range(2)]
    inner, args = b.inside(scalars)
    kind = "TOTALORDER" if is_float(x.dtype) else None
    inner.returns(inner.compare("GT" if descending else "LT", args[0], args[1], kind))
    attributes = {"dimension": f"{axis} : i64", "is_stable": "true"}
    whole = b.generic(
        "stablehlo.sort", [x.tensor, places.tensor], [x, places], attributes, inner.region
    )
    return [b.along(v, axis, 0, k) for v in whole]

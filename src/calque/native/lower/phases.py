"""Convolutions of dilated inputs, without the gaps.

Between two elements of the input lie gaps, which only some places of the kernel meet: in steps of
the dilation other places of the result read the same of them. So a result is as many convolutions
of the input itself, each with its part of the kernel, as there are such steps in all directions.

before: y[o] = sum over k < 4 of w[k] * gaps(x)[o + k - 2]     a gap behind each element
after:  y[2 q] = w[0] * x[q - 1] + w[2] * x[q]        y[2 q + 1] = w[1] * x[q] + w[3] * x[q + 1]"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from calque.core.dims import hint_of, product
from calque.machine.records import record
from calque.native.lower.dot import TILED
from calque.native.lower.graph import GraphBuilder, Node
from calque.native.lower.reductions import reshape, with_shape
from calque.native.lower.renamed import filled

MOST: Final = 16  # convolutions in place of one


@record
class Phase:
    """One step in one direction: which places of the kernel it meets, and how these read the input
    for `size` places of the result. None are met where `count` is 0."""

    first: int
    step: int
    count: int
    stride: int
    dilation: int
    padding: tuple[int, int]
    size: int


# A convolution of an input without gaps: (kernel, parameters, shape of the result) -> result.
Convolve = Callable[[Node, dict[str, Any], Sequence[Any]], Node]


def phases(n: int, kernel: int, size: int, gap: int, p: tuple[int, int, int]) -> list[Phase]:
    """Those in one direction, of an input of `n` elements in steps of `gap`, for a result of `size`
    places; `p` are the stride, the dilation of the kernel and the padding before."""
    stride, dilation, low = p
    count = gap // math.gcd(gap, stride)
    step = gap // math.gcd(gap, dilation)
    out = []
    for r in range(count):
        met = [k for k in range(min(step, kernel)) if (r * stride + k * dilation - low) % gap == 0]
        first = met[0] if met else kernel
        places, part = -(-(kernel - first) // step), -(-size // count)
        begin = (r * stride + first * dilation - low) // gap
        s, d = count * stride // gap, step * dilation // gap
        end = begin + (part - 1) * s + (places - 1) * d + 1
        out.append(Phase(first, step, places, s, d, (-begin, end - n), part))
    return out


def phases_of(x: Node, w: Node, p: dict[str, Any], out: Any) -> list[list[Phase]] | None:
    """Those in every direction; None where the sizes are free, or it is not worth it."""
    numbers = p["dimension_numbers"]
    sizes = [
        (x.shape[a], w.shape[b], out.shape[c])
        for a, b, c in zip(numbers.lhs_spec[2:], numbers.rhs_spec[2:], numbers.out_spec[2:])
    ]
    if max(p["lhs_dilation"], default=1) == 1:
        return None
    if not all(type(n) is int and n > 0 for three in sizes for n in three):
        return None
    settings = zip(p["window_strides"], p["rhs_dilation"], [low for low, _ in p["padding"]])
    found = [
        phases(*three, gap, each) for three, gap, each in zip(sizes, p["lhs_dilation"], settings)
    ]
    many = product(len(each) for each in found)
    features = w.shape[numbers.rhs_spec[1]]
    work = hint_of(product(out.shape) * features) * product(k for _, k, _ in sizes)
    if many > MOST or work < TILED * product(p["lhs_dilation"]) * many:
        return None
    return found


def by_phases(
    g: GraphBuilder,
    w: Node,
    p: dict[str, Any],
    out: Any,
    found: Sequence[Sequence[Phase]],
    convolve: Convolve,
) -> Node:
    """The result of the convolutions of all phases, side by side again."""
    dims = p["dimension_numbers"].out_spec[2:]
    shape = list(out.shape)
    for d, each in zip(dims, found):
        shape[d] = each[0].size
    parts = [one_of(g, w, p, out, shape, phase, convolve) for phase in itertools.product(*found)]
    for k in reversed(range(len(dims))):
        many, d = len(found[k]), dims[k]
        parts = [beside(g, parts[i : i + many], d) for i in range(0, len(parts), many)]
    return cut(g, parts[0], [0] * len(shape), out.shape)


def one_of(
    g: GraphBuilder,
    w: Node,
    p: dict[str, Any],
    out: Any,
    shape: Sequence[Any],
    phase: Sequence[Phase],
    convolve: Convolve,
) -> Node:
    """The convolution of one phase in each direction."""
    if not all(f.count for f in phase):
        return filled(g, 0, with_shape(out, shape))
    begin, end, steps = [0] * len(w.shape), list(w.shape), [1] * len(w.shape)
    for d, f in zip(p["dimension_numbers"].rhs_spec[2:], phase):
        begin[d], steps[d] = f.first, f.step
    part = cut(g, w, begin, end, steps)
    params = p | {
        "window_strides": tuple(f.stride for f in phase),
        "rhs_dilation": tuple(f.dilation for f in phase),
        "lhs_dilation": (1,) * len(phase),
        "padding": tuple(f.padding for f in phase),
    }
    return convolve(part, params, shape)


def beside(g: GraphBuilder, parts: Sequence[Node], d: int) -> Node:
    """Arrays whose elements along an axis take turns.

    before: a, b, c of 2 elements      after: a[0], b[0], c[0], a[1], b[1], c[1]"""
    if len(parts) == 1:
        return parts[0]
    shape = parts[0].shape
    split = (*shape[: d + 1], 1, *shape[d + 1 :])
    joined = with_shape(parts[0].aval, (*shape[: d + 1], len(parts), *shape[d + 1 :]))
    rows = [reshape(g, x, split) for x in parts]
    made = g.add("concatenate", rows, {"dimension": d + 1}, joined)
    return reshape(g, made, (*shape[:d], shape[d] * len(parts), *shape[d + 1 :]))


def cut(
    g: GraphBuilder,
    x: Node,
    begin: Sequence[int],
    end: Sequence[Any],
    steps: Sequence[int] | None = None,
) -> Node:
    """A part of an array."""
    each = steps or [1] * len(begin)
    shape = [
        n if b == 0 and s == 1 else -(-(n - b) // s)  # a size that is free is kept
        for b, n, s in zip(begin, end, each)
    ]
    if tuple(shape) == x.shape:
        return x
    params = {
        "start_indices": tuple(begin),
        "limit_indices": tuple(end),
        "strides": None if steps is None else tuple(steps),
    }
    return g.add("slice", (x,), params, with_shape(x.aval, shape))

"""The largest few along an axis, as that many maxima one after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calque.core.avals import ShapedArray
from calque.core.dims import hint_of
from calque.core.lazy import LazyModule
from calque.native.lower.graph import EXPANSIONS, GraphBuilder, Node
from calque.native.lower.reductions import reshape, with_shape

sort_network = LazyModule("calque.machine.routines.sort.network")
FEW, MOST = (
    4,
    16,
)  # more are sorted, which selects first where the processor splits quickly at a pivot
LONG, PAIR = 500, 2  # of rows from this length on more than so many are selected in one pass


def most(length: Any, in_row: bool) -> int:
    """How many maxima one after another are quicker than sorting, of so many elements that lie side
    by side or apart."""
    if in_row and hint_of(length) >= LONG:
        return PAIR
    return FEW if sort_network.can_split() else MOST


class Ranking:
    """Passes over keys: integers ordered as the values are, nan above all."""

    def __init__(self, g: GraphBuilder, x: Node, axis: int) -> None:
        self.g, self.x, self.axis = g, x, axis
        self.shape = x.shape
        self.others = tuple(d for d in range(len(x.shape)) if d != axis)
        self.flags = with_shape(x.aval, x.shape, np.dtype(bool))
        self.key = self.keys()
        self.places = self.counted()

    def op(self, name: str, *args: Node, aval: Any = None, **params: Any) -> Node:
        return self.g.add(name, args, params, aval if aval is not None else args[0].aval)

    def full(self, value: Any, dtype: Any) -> Node:
        scalar = self.g.add(
            "literal", (), {"value": np.asarray(value).astype(dtype)}, ShapedArray((), dtype)
        )
        aval = ShapedArray(self.shape, dtype)
        return self.op(
            "broadcast_in_dim", scalar, aval=aval, shape=self.shape, broadcast_dimensions=()
        )

    def keys(self) -> Node:
        """before: x:f32        after: bits as an integer, those of negative numbers turned round"""
        x = self.x
        if x.aval.dtype.kind in "iu":
            return x
        integer = np.dtype(f"int{8 * x.aval.dtype.itemsize}")
        bits = self.op(
            "bitcast_convert_type", x, aval=x.aval.update(dtype=integer), new_dtype=integer
        )
        return self.turned(bits)

    def turned(self, bits: Node) -> Node:
        dtype = bits.aval.dtype
        last = self.scalar(8 * dtype.itemsize - 1, dtype)
        sign = self.op("shift_right_arithmetic", bits, last)
        low = self.scalar(np.iinfo(dtype).max, dtype)
        return self.op("xor", bits, self.op("and", sign, low))

    def scalar(self, value: int, dtype: Any) -> Node:
        return self.g.add(
            "literal", (), {"value": np.asarray(value).astype(dtype)}, ShapedArray((), dtype)
        )

    def counted(self) -> Node:
        aval = ShapedArray(self.shape, np.dtype("int32"))
        return self.g.add(
            "iota", (), {"dimension": self.axis, "dtype": aval.dtype, "shape": self.shape}, aval
        )

    def reduced(self, kind: str, x: Node) -> tuple[Node, Node]:
        """(the fold along the axis, the same at every place)."""
        shape = tuple(self.shape[d] for d in self.others)
        r = self.op(f"reduce_{kind}", x, aval=with_shape(x.aval, shape), axes=(self.axis,))
        return r, self.op(
            "broadcast_in_dim", r, aval=x.aval, shape=self.shape, broadcast_dimensions=self.others
        )

    def run(self, k: int) -> list[tuple[Node, Node]]:
        """(key, place) of the k largest; equal ones in the order of their places."""
        out = []
        left: Node | None = None
        lowest = self.full(np.iinfo(self.key.aval.dtype).min, self.key.aval.dtype)
        size = self.shape[self.axis]
        behind = self.full(
            max(size - 1, 0) if type(size) is int else np.iinfo(np.int32).max, np.dtype("int32")
        )
        for _ in range(k):
            candidates = (
                self.key
                if left is None
                else self.op("select_n", left, lowest, self.key, aval=self.key.aval)
            )
            best, everywhere = self.reduced("max", candidates)
            hit = self.op("eq", self.key, everywhere, aval=self.flags)
            if left is not None:
                hit = self.op("and", hit, left)
            place, there = self.reduced(
                "min", self.op("select_n", hit, behind, self.places, aval=self.places.aval)
            )
            out.append((best, place))
            later = self.op(
                "and",
                self.op("eq", self.key, everywhere, aval=self.flags),
                self.op("gt", self.places, there, aval=self.flags),
            )
            left = self.op("or", self.op("lt", self.key, everywhere, aval=self.flags), later)
        return out


def expand_top_k(
    g: GraphBuilder, args: Sequence[Node], params: dict[str, Any], avals: Sequence[Any]
) -> list[Node] | None:
    """before: top_k[k=3, axis=1] x        after: three times: the maximum of what is left, and its
    first place"""
    x, k = args[0], params["k"]
    axis = params.get("axis", -1) % max(len(x.shape), 1)
    if (
        not 0 < k <= most(x.shape[axis] if x.shape else 1, axis == len(x.shape) - 1)
        or x.dtype not in ("f32", "f64", "i32", "i64", "i16", "i8", "u32", "u8", "u16")
        or x.aval.size == 0
    ):
        return None
    r = Ranking(g, x, axis)
    rows = r.run(k)
    part = tuple(1 if d == axis else n for d, n in enumerate(avals[0].shape))
    values = [reshape(g, v, part) for v, _ in rows]
    places = [reshape(g, i, part) for _, i in rows]
    key = joined(g, values, axis, r.key.aval.update(shape=avals[0].shape))
    if x.aval.dtype.kind == "f":
        r.shape = avals[0].shape
        key = r.op("bitcast_convert_type", r.turned(key), aval=avals[0], new_dtype=x.aval.dtype)
    where = joined(g, places, axis, ShapedArray(avals[1].shape, np.dtype("int32")))
    return [key, where]


def joined(g: GraphBuilder, parts: Sequence[Node], axis: int, aval: Any) -> Node:
    return g.add("concatenate", parts, {"dimension": axis}, aval) if len(parts) > 1 else parts[0]


EXPANSIONS["top_k"] = expand_top_k

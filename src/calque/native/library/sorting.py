"""`sort`, `top_k` and `approx_top_k` as calls of the machine's sorting kernel: what goes into its
words.

The same words serve a compiled program, whose operands are buffers and whose sizes may be free, and
eager execution.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from calque.core.avals import ShapedArray
from calque.core.dims import hint_of
from calque.core.dtypes import is_complex, is_float, storage
from calque.core.lazy import LazyModule
from calque.machine.once import once
from calque.native import routines
from calque.native.lower.graph import Node
from calque.native.lower.rules import View
from calque.native.plan.blocks import CodeBlock, Planner, host_step
from calque.native.plan.steps import Routine, Step
from calque.native.scalars.expr import Buffer, Expr, const, ex
from calque.ops.sorting import ranks, ranks_of_largest

_LONGEST: Final = 1 << 32  # places are counted with 32 bits
_NS: Final = 5  # a guess of the time for an element

keys = LazyModule("calque.machine.routines.sort.keys")


# ---------------------------------------------------------------- keys


@once
def table(dtype: np.dtype[Any], largest: bool | None) -> np.ndarray:
    """The rank of each byte as an element of this type: in the order of `sort`, or (`largest` or
    smallest first) in that of `top_k`."""
    bytes_ = np.arange(256, dtype=np.uint8)
    x = bytes_ if dtype == np.bool_ else bytes_.view(dtype)
    order = ranks(x)[0] if largest is None else ranks_of_largest(x, largest)
    return np.unique(order, return_inverse=True)[1].astype(np.uint8)


def infinity(dtype: np.dtype[Any]) -> int:
    """The bits of infinity."""
    return int(np.array([np.inf]).astype(dtype).view(f"u{dtype.itemsize}")[0])


def kind(how: str, size: int | None = None) -> int:
    """The number of a kind of keys."""
    return int(keys.KeyKind[how if size is None else f"{how}_{size}"])


def keys_of(operand: Any, dtype: np.dtype[Any], largest: bool | None) -> list[list[Any]]:
    """The words of the keys of an operand: two for complex numbers."""
    size = dtype.itemsize
    if is_complex(dtype):
        part = np.dtype(f"f{size // 2}")
        return [
            [operand, size, at, kind("FLOAT", size // 2), 0, infinity(part), 0]
            for at in (0, size // 2)
        ]
    if size == 1:
        return [[operand, 1, 0, kind("TABLE"), 0, 0, table(dtype, largest)]]
    turned = (1 << 8 * size) - 1 if largest else 0
    if is_float(dtype):
        how = kind("FLOAT" if largest is None else "TOTAL", size)
        return [[operand, size, 0, how, turned, infinity(dtype), 0]]
    sign = 1 << (8 * size - 1) if dtype.kind == "i" else 0
    return [[operand, size, 0, kind("PLAIN", size), turned ^ sign, 0, 0]]


def item_of(aval: ShapedArray) -> int:
    """The bytes of an element."""
    dtype: np.dtype[Any] = storage(aval.dtype)
    return dtype.itemsize * math.prod(dtype.shape)


# ---------------------------------------------------------------- words


def words(
    name: str,
    params: dict[str, Any],
    avals: Sequence[ShapedArray],
    operands: Sequence[Any],
    results: Sequence[Any],
    product: Callable[[Sequence[Any]], Any],
) -> list[Any]:
    """The arguments of the kernel: operands and results as given (None for a result that nobody
    wants, or an operand that counts its places), sizes as `product` makes them, tables as
    arrays."""
    if name == "sort":
        axis, largest, n_keys = params["dimension"], None, params["num_keys"]
        kept = avals[0].shape[axis]
        moves = [
            [x or 0, to, item_of(a)] for x, to, a in zip(operands, results, avals) if to is not None
        ]
    else:
        axis = params["axis"] if name == "top_k" else params["reduction_dimension"] % avals[0].ndim
        largest, n_keys, kept = params.get("is_max_k", True), 1, params["k"]
        given = ((operands[0], item_of(avals[0])), (0, 4))
        moves = [[x, to, item] for (x, item), to in zip(given, results) if to is not None]
    deciding = [k for x, a in zip(operands[:n_keys], avals) for k in keys_of(x, a.dtype, largest)]
    shape = avals[0].shape
    sizes = [
        product(shape[:axis]),
        product(shape[axis : axis + 1]),
        product(shape[axis + 1 :]),
        product((kept,)),
    ]
    alone = name == "sort" and len(avals) == 1 and len(deciding) == 1
    return [*sizes, len(deciding), len(moves), int(alone), *itertools.chain(*deciding, *moves)]


def too_long(name: str, params: dict[str, Any], x: ShapedArray) -> bool:
    """Whether there are more places than the kernel counts."""
    axis = params[
        "dimension" if name == "sort" else "axis" if name == "top_k" else "reduction_dimension"
    ]
    return hint_of(x.shape[axis]) >= _LONGEST


# ---------------------------------------------------------------- in a compiled program


def emit_sort(p: Planner, n: Node, block: CodeBlock) -> list[Step]:
    """before: sort[dimension=1, num_keys=1] x (iota)        after: a call of the kernel; what only
    counts places is not read"""
    avals = [a.aval for a in n.args]
    if too_long(n.op, n.params, avals[0]):
        return host_step(p, n, block)
    gets = {m.params["index"]: m for m in block.order if m.op == "get" and m.args[0] is n}
    results: list[Any] = [None] * (len(avals) if n.op == "sort" else 2)
    for k, get in gets.items():
        home = block.targets.get(get)
        if home is None or home.prefix:
            home = View(p.temporary(get))
        p.view[get] = home
        results[k] = home.buf
    operands = [
        p.in_memory(a, block) if is_read(n, k, results[k]) else None for k, a in enumerate(n.args)
    ]
    given = words(n.op, n.params, avals, operands, results, lambda shape: extent(p, shape))
    ns = hint_of(avals[0].size) * _NS
    ins, outs = [x for x in operands if x is not None], [x for x in results if x is not None]
    return [Routine(n.op, routines.begun("sort", ["calque_sort"])[0], given, ins, outs, ns)]


def n_keys(n: Node) -> int:
    return int(n.params.get("num_keys", 1))


def is_read(n: Node, k: int, result: Any) -> bool:
    """Whether an operand must be in memory. It need not when it only counts places, or goes along
    and nobody wants it."""
    return k < n_keys(n) or (result is not None and not counts_places(n, n.args[k]))


def counts_places(n: Node, a: Node) -> bool:
    """Whether a further operand of a sort is the number of each place along the axis."""
    if a.op != "iota" or a.aval.dtype.kind not in "iu" or a.aval.dtype.itemsize < 4:
        return False
    return bool(a.params["dimension"] == n.params["dimension"])


def extent(p: Planner, shape: Sequence[Any]) -> Expr:
    """A product of sizes."""
    out = const(1)
    for d in shape:
        out = ex("mul", out, p.sizes.dim(d))
    return out


# ---------------------------------------------------------------- eager


def routine(
    name: str,
    params: dict[str, Any],
    avals: Sequence[ShapedArray],
    ins: Sequence[Buffer],
    outs: Sequence[Buffer],
) -> Routine | None:
    """A call of the kernel for one equation; None when the rows are too long for it."""
    if too_long(name, params, avals[0]):
        return None
    given = words(name, params, avals, ins, outs, math.prod)
    return Routine(name, routines.begun("sort", ["calque_sort"])[0], given, ins, outs)

"""Random keys and bits: Threefry-2x32 as expressions of integers, one block per element.

A key array lies in memory with a last dimension of two words. What is not Threefry, or not in its
partitionable form, has no native lowering.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Final

from calque.core.dtypes import ExtendedDType
from calque.native.lower.graph import EXPANSIONS, GraphBuilder, Node
from calque.native.lower.rules import LIMITS, RULES, ElementSteps, Index, Lower, Request, Value
from calque.native.scalars.expr import ZERO, Expr, cast, const, ex, linear

ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY: Final = 0x1BD11BDA
ROUND_GROUPS: Final = 5


def u32(v: int) -> Expr:
    return const(v, "u32")


def block(k0: Expr, k1: Expr, x0: Expr, x1: Expr) -> tuple[Expr, Expr]:
    """Twenty rounds on the counter (x0, x1) with the key (k0, k1)."""
    keys = (k0, k1, ex("xor", ex("xor", k0, k1), u32(PARITY)))
    x0, x1 = ex("add", x0, k0), ex("add", x1, k1)
    for group in range(ROUND_GROUPS):
        for r in ROTATIONS[group % 2]:
            x0 = ex("add", x0, x1)
            x1 = ex("xor", ex("or", ex("shl", x1, u32(r)), ex("lshr", x1, u32(32 - r))), x0)
        x0 = ex("add", x0, keys[(group + 1) % 3])
        x1 = ex("add", ex("add", x1, keys[(group + 2) % 3]), u32(group + 1))
    return x0, x1


def counter(low: Lower, shape: tuple[int, ...], idx: Index) -> tuple[Expr, Expr]:
    """The row-major index of an element, as high and low words."""
    at = linear(tuple([low.sizes.dim(d) for d in shape]), idx)
    size = 1
    for d in shape:
        size *= d
    high = u32(0) if size <= 1 << 32 else cast(ex("floordiv", at, const(1 << 32)), "u32")
    return high, cast(at, "u32")


def expand_block(g: GraphBuilder, args: Any, params: dict[str, Any], avals: Any) -> list[Node]:
    """threefry2x32 -> its two words, each an elementwise operation."""
    return [g.add("threefry_word", args, {"word": w}, aval) for w, aval in enumerate(avals)]


def word(low: Lower, n: Node, idx: Index) -> ElementSteps:
    values = []
    for a in n.args:
        v = yield a, idx[: len(a.shape)]
        values.append(v)
    return block(*values)[n.params["word"]]


def key_words(key: Node, at: Index) -> Generator[Request, Value, tuple[Expr, Expr]]:
    k0 = yield key, (*at, ZERO)
    k1 = yield key, (*at, const(1))
    return k0, k1


def random_bits(low: Lower, n: Node, idx: Index) -> ElementSteps:
    """The two words of a block, put together to the width wanted."""
    key = n.args[0]
    batch = key.aval.ndim
    k0, k1 = yield from key_words(key, idx[:batch])
    first, second = block(k0, k1, *counter(low, n.shape[batch:], idx[batch:]))
    if n.params["bit_width"] == 64:
        return ex("or", ex("shl", cast(first, "u64"), const(32, "u64")), cast(second, "u64"))
    return cast(ex("xor", first, second), n.dtype)


def random_split(low: Lower, n: Node, idx: Index) -> ElementSteps:
    key = n.args[0]
    batch = key.aval.ndim
    k0, k1 = yield from key_words(key, idx[:batch])
    return pick(block(k0, k1, *counter(low, n.shape[batch:-1], idx[batch:-1])), idx[-1])


def fold_in(low: Lower, n: Node, idx: Index) -> ElementSteps:
    key, data = n.args
    k0, k1 = yield from key_words(key, idx[: key.aval.ndim])
    v = yield data, idx[: len(data.shape)]
    return pick(block(k0, k1, u32(0), v), idx[-1])


def seed(low: Lower, n: Node, idx: Index) -> ElementSteps:
    """The high and the low word of an integer."""
    v = yield n.args[0], idx[:-1]
    wide = v.dtype in ("i64", "u64")
    high = cast(ex("lshr", cast(v, "u64"), const(32, "u64")), "u32") if wide else u32(0)
    return pick((high, cast(v, "u32")), idx[-1])


def pick(words: tuple[Expr, Expr], which: Expr) -> Expr:
    """One of two words, by the last index of a key array."""
    if which.op == "const":
        return words[which.attr]
    return ex("select", ex("eq", which, ZERO), *words)


def same_words(low: Lower, n: Node, idx: Index) -> ElementSteps:
    """Wrapping and unwrapping move nothing."""
    return (yield n.args[0], idx)


def threefry(n: Node) -> bool:
    """Is this node about Threefry keys?"""
    dtypes = [n.aval.dtype, *(a.aval.dtype for a in n.args)]
    return all(d.impl.field == "threefry2x32" for d in dtypes if isinstance(d, ExtendedDType))  # type: ignore[attr-defined]


def partitionable(n: Node) -> bool:
    return threefry(n) and bool(n.params["partitionable"])


EXPANSIONS["threefry2x32"] = expand_block
RULES.update(
    threefry_word=word,
    random_bits=random_bits,
    random_split=random_split,
    random_fold_in=fold_in,
    random_seed=seed,
    random_wrap=same_words,
    random_unwrap=same_words,
    random_clone=same_words,
)
_LIMITS: Final[dict[str, Callable[[Node], bool]]] = {
    "random_bits": partitionable,
    "random_split": partitionable,
    "random_fold_in": threefry,
    "random_seed": threefry,
}
LIMITS.update(_LIMITS)

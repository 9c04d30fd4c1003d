"""Numbers of the user's program: which of them the compiler looks at, and which are open.

What arithmetic can profit from (0, 1, small integers) is baked into kernels. All others are
parameters of theirs, and nothing that is decided depends on an *open* one: programs that differ in
open numbers alone have the same kernels, the same steps and, but for the numbers themselves, the
same words."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

import numpy as np
from ml_dtypes import bfloat16

from calque.core.jaxprs import ClosedJaxpr, Eqn, Jaxpr, Literal


class Number:
    """A number of the user's program. It is one with those of the same name, and may change
    without them where others are equal to it by chance.

    Args:
        value: What it is here.
        name: What tells it from others."""

    __slots__ = ("name", "value")

    def __init__(self, value: np.ndarray, name: Hashable):
        self.value, self.name = value, name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Number) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"Number({self.value})"


# Operations on elements that take a number as it comes.
TAKERS: Final = frozenset(
    ["add", "add_any", "atan2", "broadcast_in_dim", "clamp", "div", "eq", "ge", "gt", "le", "lt"]
    + ["max", "min", "mul", "ne", "pad", "pow", "rem", "select_n", "sub"]
)
# Where a program has no more numbers, each is told from the others by where it was written, as
# kernels have a parameter for each; else by its value.
APART: Final = 32
_FLOATS: Final = tuple(map(np.dtype, ("float16", "float32", "float64", bfloat16)))
_BAKED_FLOATS: Final = frozenset(
    (0.0, 1.0, -1.0, 2.0, 0.5, -0.5, -2.0, float("inf"), float("-inf"))
)


def is_baked(x: np.ndarray) -> bool:
    """Whether a number becomes part of the code."""
    kind = x.dtype.kind
    if kind == "b":
        return True
    if kind in "iu":
        return -256 <= int(x) <= 256
    v = float(x)
    return v in _BAKED_FLOATS or v != v


def opened_body(e: Eqn) -> ClosedJaxpr | None:
    """The body of a loop that opens its numbers, once it is simplified, where the program around it
    does."""
    body = e.params["jaxpr"] if e.primitive.name == "scan" else None
    return body if isinstance(body, ClosedJaxpr) else None


def is_open(x: Literal) -> bool:
    """Whether nothing depends on the value of a literal, where one of the `TAKERS` takes it."""
    dtype = x.aval.dtype
    if dtype not in _FLOATS or x.val.dtype != dtype:
        return False
    return not is_baked(x.val)


def open_numbers(jaxpr: Jaxpr) -> dict[int, Number]:
    """The open numbers of a program, without those in it, by the identities of the values of its
    literals."""
    places = {
        id(a.val): a.val
        for e in jaxpr.eqns
        if e.primitive.name in TAKERS
        for a in e.invars
        if a.__class__ is Literal and is_open(a)
    }
    if len(places) <= APART:
        return {k: Number(x, k) for k, x in places.items()}
    return {k: Number(x, (x.dtype.name, x.tobytes())) for k, x in places.items()}


def word_of(data: bytes) -> int:
    """The first bytes of a number as a word with a sign, which kernels take as an argument."""
    return int.from_bytes(data[:8].ljust(8, b"\0"), "little", signed=True)

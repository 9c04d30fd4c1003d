"""Numbers of the user's program: which of them the compiler looks at, and which are open.

What arithmetic can profit from (0, 1, small integers) is baked into kernels. All others are
parameters of theirs, and nothing that is decided depends on an *open* one: programs that differ in
open numbers alone have the same kernels, the same steps and, but for the numbers themselves, the
same words."""

from __future__ import annotations

from typing import Final

import numpy as np
from ml_dtypes import bfloat16

from calque.core.jaxprs import ClosedJaxpr, Eqn, Literal

Number = tuple[str, bytes]  # of a dtype by its name, and the bytes of the value

# Operations on elements that take a number as it comes.
TAKERS: Final = frozenset(
    ["add", "add_any", "atan2", "broadcast_in_dim", "clamp", "div", "eq", "ge", "gt", "le", "lt"]
    + ["max", "min", "mul", "ne", "pad", "pow", "rem", "select_n", "sub"]
)
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


def number_of(x: np.ndarray) -> Number:
    """What tells a number from others."""
    return x.dtype.name, x.tobytes()


def word_of(data: bytes) -> int:
    """The first bytes of a number as a word with a sign, which kernels take as an argument."""
    return int.from_bytes(data[:8].ljust(8, b"\0"), "little", signed=True)

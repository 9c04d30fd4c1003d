"""The operators that arrays and tracers share, as methods of Python's protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from calque.core.arrays import ArrayImpl
from calque.core.trace_state import Tracer
from calque.numpy import contractions, ufuncs
from calque.numpy.promotion import is_arraylike


def _deferring(f: Callable[[Any, Any], Any], swap: bool, doc: str) -> Callable[[Any, Any], Any]:
    """An operator that leaves operands it does not know to their own reflected methods."""

    def method(self: Any, other: Any) -> Any:
        if not isinstance(other, (ArrayImpl, Tracer)) and not is_arraylike(other):
            # a subclass, a named tuple for one, may know what to do
            if type(other) in _CONTAINERS or isinstance(other, np.ndarray):
                raise _unsupported(f.__name__, *((other, self) if swap else (self, other)))
            return NotImplemented
        return f(other, self) if swap else f(self, other)

    method.__doc__ = doc
    return method


_CONTAINERS: Final = (list, tuple, set, dict)


def _unsupported(name: str, left: Any, right: Any) -> TypeError:
    """An operator met a container of Python, or an array that no dtype describes."""
    array, other = ("left", right) if isinstance(left, (ArrayImpl, Tracer)) else ("right", left)
    kinds = ["ArrayImpl" if isinstance(x, ArrayImpl) else type(x).__name__ for x in (left, right)]
    kind = type(other).__name__
    remedy = (
        f"convert the {kind} with jnp.array first"
        if isinstance(other, (list, tuple, np.ndarray))
        else f"the {array} operand is an array, and a {kind} holds no array"
    )
    return TypeError(
        f"unsupported operand type(s) for {name}: {kinds[0]!r} and {kinds[1]!r}; {remedy}"
    )


def _divmod(x: Any, y: Any) -> Any:
    return ufuncs.floor_divide(x, y), ufuncs.remainder(x, y)


# name -> (function, how it is written, what it gives)
_BINARY: Final[dict[str, tuple[Callable[[Any, Any], Any], str, str]]] = {
    "add": (ufuncs.add, "+", "the sum"),
    "sub": (ufuncs.subtract, "-", "the difference"),
    "mul": (ufuncs.multiply, "*", "the product of elements"),
    "truediv": (ufuncs.true_divide, "/", "the quotient, of integers as a floating-point number"),
    "floordiv": (ufuncs.floor_divide, "//", "the quotient rounded down"),
    "mod": (ufuncs.remainder, "%", "the remainder, with the sign of the divisor"),
    "pow": (ufuncs.power, "**", "the power"),
    "and": (ufuncs.bitwise_and, "&", "the logical and of booleans, of the bits of integers"),
    "or": (ufuncs.bitwise_or, "|", "the logical or of booleans, of the bits of integers"),
    "xor": (ufuncs.bitwise_xor, "^", "the exclusive or of booleans, of the bits of integers"),
    "lshift": (ufuncs.left_shift, "<<", "the bits of the first moved up"),
    "rshift": (ufuncs.right_shift, ">>", "the bits of the first moved down, the sign kept"),
    "matmul": (contractions.matmul, "@", "the product of matrices and vectors"),
    "divmod": (_divmod, "divmod", "the quotient rounded down, and the remainder"),
}
_COMPARE: Final = {
    "eq": (ufuncs.equal, "==", "whether elements are equal"),
    "ne": (ufuncs.not_equal, "!=", "whether elements are different"),
    "lt": (ufuncs.less, "<", "whether elements are less"),
    "le": (ufuncs.less_equal, "<=", "whether elements are less or equal"),
    "gt": (ufuncs.greater, ">", "whether elements are greater"),
    "ge": (ufuncs.greater_equal, ">=", "whether elements are greater or equal"),
}
_UNARY: Final = {
    "neg": (ufuncs.negative, "-x", "The negative of each element."),
    "pos": (ufuncs.positive, "+x", "The elements as they are."),
    "abs": (ufuncs.absolute, "abs(x)", "The absolute value of each element."),
    "invert": (ufuncs.bitwise_not, "~x", "The logical not of booleans, of the bits of integers."),
}


def operators() -> dict[str, Any]:
    """The operator protocol by method name."""
    table: dict[str, Any] = {}
    for name, (f, sign, gives) in _BINARY.items():
        table[f"__{name}__"] = _deferring(f, False, _text(sign, gives, "x", "other"))
        table[f"__r{name}__"] = _deferring(f, True, _text(sign, gives, "other", "x"))
    for name, (f, sign, gives) in _COMPARE.items():
        table[f"__{name}__"] = _deferring(f, False, _text(sign, gives, "x", "other"))
    for name, (unary, sign, gives) in _UNARY.items():
        table[f"__{name}__"] = _one(unary, f"`{sign}`: {gives}")
    return table


def _text(sign: str, gives: str, left: str, right: str) -> str:
    result = "Two arrays" if sign == "divmod" else "An array"
    form = f"divmod({left}, {right})" if sign == "divmod" else f"{left} {sign} {right}"
    return f"""`{form}`: {gives}.

    Args:
        other: An array, a NumPy array or a number. Shapes are broadcast, dtypes promoted.

    Returns:
        {result}."""


def _one(f: Callable[[Any], Any], doc: str) -> Callable[[Any], Any]:
    def method(self: Any) -> Any:
        return f(self)

    method.__doc__ = doc
    return method

"""Classes of other libraries whose values are operands: their types and their arrays, as the tables
of JAX that libraries write into (`pytype_aval_mappings`, `canonicalize_dtype_handlers`).

Arrays, numbers and whatever has `__jax_array__` need no entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from calque.machine.state import process

Rule = Callable[[Any], Any]


class Rules(dict[type, Rule]):
    """What users have registered for classes. NumPy's arrays and Python's numbers have rules of
    their own, `own`, which can be read and given to other classes."""

    def __init__(self, own: Rule) -> None:
        super().__init__()
        self.own = own

    def __missing__(self, cls: type) -> Rule:
        if issubclass(cls, (np.ndarray, np.generic, bool, int, float, complex)):
            return self.own
        raise KeyError(cls)

    def of(self, x: Any) -> Rule | None:
        """The rule for a value: of its class, or of one that it derives from."""
        if not self:
            return None
        return next((self[base] for base in type(x).__mro__ if base in self), None)


# class -> the array, or another operand, that a value of it holds
conversions: Final[Rules] = process.container("arrays of foreign values", Rules(np.asarray))
# class -> the type of a value of it
types: Final[Rules] = process.container("types of foreign values", Rules(np.asarray))

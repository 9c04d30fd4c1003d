"""Operations on arrays over several processes, which have a part of the elements each: programs of
one operation for the devices of their operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from calque.core.jaxprs import subjaxprs
from calque.core.primitives import Primitive
from calque.machine.caches import Table
from calque.native import stored
from calque.transforms.jit.decorator import jit

_FUNCTIONS: Final[Table[Any, Callable[..., Any]]] = Table(
    "operations over several processes", 1024, programs=True
)


def evaluate_across(primitive: Primitive, arrays: Sequence[Any], params: dict[str, Any]) -> Any:
    """Run a primitive on the devices of its operands, as `jit` does."""
    try:
        key = _key_of(primitive, arrays, params)
        found = _FUNCTIONS.find(key)
    except TypeError:  # a parameter that cannot be hashed
        return _function(primitive, params)(*arrays)
    if found is None:
        found = _FUNCTIONS[key] = _function(primitive, params)
    return found(*arrays)


def _key_of(primitive: Primitive, arrays: Sequence[Any], params: dict[str, Any]) -> Any:
    """What two equal operations have in common; programs in parameters are made anew by each call
    of a loop function, and are known by their content."""
    if any(True for _ in subjaxprs(params)):
        content = stored.content_of(primitive, [a.aval for a in arrays], params)
        if content is not None:
            return content
    return primitive, tuple(params.items())


def _function(primitive: Primitive, params: dict[str, Any]) -> Callable[..., Any]:
    def operation(*operands: Any) -> Any:
        return primitive.bind(*operands, **params)

    operation.__name__ = primitive.name
    made: Callable[..., Any] = jit(operation)
    return made

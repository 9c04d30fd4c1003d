"""What a jitted function goes through: traced, lowered, compiled."""

from typing import Any, Protocol

from calque.transforms.jit.stages import ArgInfo, Compiled, Lowered, Traced

__all__ = ["ArgInfo", "Compiled", "Lowered", "Traced", "Wrapped"]


class Wrapped(Protocol):
    """What `calque.jit` returns: a function that can be traced and lowered without being called."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    def trace(self, *args: Any, **kwargs: Any) -> Traced: ...

    def lower(self, *args: Any, **kwargs: Any) -> Lowered: ...

"""What a jitted function goes through: traced, lowered, compiled."""

from typing import Any, Protocol

from calque.core import guards as _guards
from calque.transforms.jit.stages import ArgInfo, Compiled, Lowered, Traced

CompilerOptions = dict[str, str | bool]

__all__ = ["ArgInfo", "Compiled", "CompilerOptions", "Lowered", "Traced", "Wrapped"]


class Wrapped(Protocol):
    """What `jax.jit` returns: a function that can be traced and lowered without being called."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Traces the function for these arguments.

        Args:
            *args: Arrays, or ShapeDtypeStructs in place of them.
            **kwargs: The same, by name.

        Returns:
            A Traced.
        """
        ...

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Traces the function for these arguments, and makes it ready to be compiled.

        Args:
            *args: Arrays, or ShapeDtypeStructs in place of them.
            **kwargs: The same, by name.

        Returns:
            A Lowered.
        """
        ...


_guards.guard_public(globals())

"""`jax._src.literals`: numbers and NumPy arrays that say their type. Here no value is one of these,
since numbers and arrays are traced as they are: the classes are what libraries ask about."""

from __future__ import annotations

from typing import Any

__all__ = ["LiteralArray", "TypedComplex", "TypedFloat", "TypedInt", "TypedNdArray"]


class _Typed:
    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"{cls.__name__}: calque has no values of this class; make an array of the dtype,"
            " jnp.asarray(value, dtype)"
        )


class TypedInt(_Typed, int):
    """An int with a dtype."""


class TypedFloat(_Typed, float):
    """A float with a dtype."""


class TypedComplex(_Typed, complex):
    """A complex number with a dtype."""


class TypedNdArray(_Typed):
    """A NumPy array that may be weakly typed."""


LiteralArray = TypedInt | TypedFloat | TypedComplex | TypedNdArray

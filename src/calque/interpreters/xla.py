"""Running primitives one at a time, in JAX's names."""

from typing import Any

__all__ = ["apply_primitive"]


def apply_primitive(prim: Any, *args: Any, **params: Any) -> Any:
    """Run a primitive on these operands.

    >>> from calque import lax
    >>> from calque.interpreters.xla import apply_primitive
    >>> apply_primitive(lax.neg_p, jnp.ones(2))
    Array([-1., -1.], dtype=float32)"""
    return prim.bind(*args, **params)

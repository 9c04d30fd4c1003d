"""Running primitives one at a time, in JAX's names."""

from typing import Any

from calque.core import foreign_values
from calque.extend.own import Primitive

__all__ = ["apply_primitive", "canonicalize_dtype_handlers"]

# class -> what gives the array that a value of it holds; libraries add classes of their own
canonicalize_dtype_handlers = foreign_values.conversions


def apply_primitive(prim: Any, /, *args: Any, **params: Any) -> Any:
    """Run a primitive on these operands.

    >>> from calque import lax
    >>> from calque.interpreters.xla import apply_primitive
    >>> apply_primitive(lax.neg_p, jnp.ones(2))
    Array([-1., -1.], dtype=float32)"""
    if type(prim) is Primitive:  # of a library: `bind` would ask its `impl`, perhaps this
        if not prim.is_compiled():
            raise NotImplementedError(
                f"Lowering rule for primitive '{prim.name}' not found for platform cpu: add it with"
                " interpreters.mlir.register_lowering(p, mlir.lower_fun(f))"
            )
        return prim.compiled(args, params)
    return prim.bind(*args, **params)

"""Trees of arrays as one vector, and back."""

import warnings
from collections.abc import Callable
from typing import Any

from calque.core import guards as _guards
from calque.core import pytrees
from calque.core.arrays import Array
from calque.core.dtypes import promote
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.types import ArrayLike
from calque.numpy.creation import zeros
from calque.numpy.joining import concatenate
from calque.numpy.promotion import check_arraylike, convert
from calque.numpy.shaping import ravel, reshape


def ravel_pytree(pytree: Any) -> tuple[Array, Callable[[ArrayLike], Any]]:
    """Puts the leaves of a tree into one vector.

    Args:
        pytree: A tree of arrays and numbers.

    Returns:
        A pair: the vector, and the function that makes a tree from such a vector.

    >>> flat, unravel = jax.flatten_util.ravel_pytree({"a": jnp.zeros(2), "b": 1.0})
    >>> flat
    Array([0., 0., 1.], dtype=float32)
    >>> sorted(unravel(flat))
    ['a', 'b']"""
    leaves, treedef = pytrees.flatten(pytree)
    if not leaves:
        return zeros((0,), "float32"), _Unravel(treedef, [], None)
    check_arraylike("ravel_pytree", *leaves)
    avals = [typeof(x) for x in leaves]
    dtype = promote(tuple([(a.dtype, a.weak_type) for a in avals]))[0]
    flat = concatenate([ravel(convert(x, dtype)) for x in leaves])
    return flat, _Unravel(treedef, avals, dtype)


class _Unravel:
    """Cuts a vector into the leaves of a tree. Two for the same structure, shapes and dtypes are
    equal."""

    def __init__(self, treedef: Any, avals: list[Any], dtype: Any):
        self.treedef, self.avals, self.dtype = treedef, avals, dtype
        self.size = sum(a.size for a in avals)

    def __call__(self, flat: Any) -> Any:
        check_arraylike("unravel", flat)
        got = typeof(flat)
        if got.shape != (self.size,):
            raise ValueError(
                f"The unravel function expected an input of shape {(self.size,)}, got {got.shape}."
            )
        mixed = len({a.dtype for a in self.avals}) > 1
        if mixed and got.dtype != self.dtype:  # else the leaves take the dtype that comes
            raise TypeError(
                f"The unravel function given array of dtype {got.dtype.name}, but expected dtype"
                f" {self.dtype.name}"
            )
        parts, start = [], 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a complex vector of a tree with real leaves
            for a in self.avals:
                piece = do.slice(flat, start_indices=(start,), limit_indices=(start + a.size,))
                part = reshape(piece, a.shape)
                parts.append(convert(part, a.dtype) if mixed else part)
                start += a.size
        return self.treedef.unflatten(parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Unravel) and (self.treedef, self.avals) == (
            other.treedef,
            other.avals,
        )

    def __hash__(self) -> int:
        return hash((self.treedef, tuple(self.avals)))


_guards.guard_public(globals())

"""calque.ref: mutable arrays. Eager, in functions that make their own, as arguments of jit, and
closed over by the bodies of control flow.

>>> def total(xs):
...     r = calque.ref.new_ref(jnp.zeros(()))
...     jax.lax.fori_loop(0, xs.size, lambda i, _: calque.ref.addupdate(r, ..., xs[i] * xs[i]),
...     None)
...     return calque.ref.freeze(r)
>>> jax.grad(total)(jnp.array([1.0, 2.0]))
Array([2., 4.], dtype=float32)"""

from typing import Any

from calque.core import guards as _guards
from calque.core.arrays import Array, to_array
from calque.core.trace import typeof
from calque.core.types import ArrayLike, SupportsShape
from calque.numpy.creation import zeros
from calque.transforms.primitives.ref_views import Mutable, add, read, write
from calque.transforms.primitives.refs import AbstractRef, Ref, free, value_of

__all__ = [
    "AbstractRef",
    "Ref",
    "addupdate",
    "empty_ref",
    "free_ref",
    "freeze",
    "get",
    "new_ref",
    "set",
    "swap",
]


def new_ref(init_val: ArrayLike, *, memory_space: Any = None, kind: str | None = None) -> Ref:
    """Makes a mutable array.

    Args:
        init_val: What it holds at first, copied.
        memory_space: Must be None: this processor has one memory.
        kind: A word that is kept in its type and has no effect.

    Returns:
        A Ref. `ref[i]` reads and `ref[i] = x` writes; it may be an argument of `jit` and be closed
        over.

    >>> r = jax.new_ref(jnp.arange(3.0))
    >>> r[0] += 7.0
    >>> r
    Ref([7., 1., 2.], dtype=float32)"""
    _check_memory("new_ref", memory_space)
    if isinstance(init_val, Mutable):
        raise TypeError("new_ref takes an array, not a Ref: pass ref[...]")
    try:
        value = to_array(init_val)
    except TypeError:
        raise TypeError(
            f"Error interpreting argument to new_ref as an array: its value is {init_val!r} of type"
            f" {type(init_val)}. Make one Ref for each array."
        ) from None
    return Ref(AbstractRef(typeof(value), None, kind), value)


def empty_ref(ty: SupportsShape, memory_space: Any = None) -> Ref:
    """Makes a mutable array whose first contents are not to be relied on.

    Args:
        ty: Anything with a shape and a dtype.
        memory_space: Must be None: this processor has one memory.

    Returns:
        A Ref.

    >>> jax.empty_ref(jax.ShapeDtypeStruct((2,), jnp.float32)).shape
    (2,)"""
    _check_memory("empty_ref", memory_space)
    return new_ref(zeros(ty.shape, ty.dtype))


def _check_memory(name: str, memory_space: Any) -> None:
    if memory_space is not None:
        raise NotImplementedError(
            f"{name}: this processor has one memory; leave out memory_space, got {memory_space!r}"
        )


def _ref(name: str, ref: Any) -> Ref:
    if not isinstance(ref, Ref):
        raise ValueError(f"Can only call `{name}` on a Ref, got {ref!r} of type {type(ref)}.")
    return ref


def _mutable(name: str, ref: Any) -> Mutable:
    return ref if isinstance(ref, Mutable) else _ref(name, ref)


def get(ref: Mutable, idx: Any = None) -> Array:
    """Reads a Ref, or a part of it.

    Args:
        ref: The Ref, or a view of one.
        idx: An index as for arrays; None reads all of it.

    Returns:
        An array.

    >>> jax.ref.get(jax.new_ref(jnp.arange(3.0)), 2)
    Array(2., dtype=float32)"""
    return read(_mutable("get", ref), idx)


def set(ref: Mutable, idx: Any, value: ArrayLike) -> None:
    """Writes to a part of a Ref: `ref[idx] = value`.

    Args:
        ref: The Ref, or a view of one.
        idx: An index as for arrays: ints, slices, arrays, `...`.
        value: An array that broadcasts to the shape of the part.

    Returns:
        None.

    >>> r = jax.new_ref(jnp.zeros(3))
    >>> jax.ref.set(r, 1, 5.0)
    >>> r[...]
    Array([0., 5., 0.], dtype=float32)"""
    write(_mutable("ref_set", ref), idx, value, "swap")


def swap(ref: Mutable, idx: Any, value: ArrayLike, _function_name: str = "ref_swap") -> Array:
    """Writes to a part of a Ref, and gives what was there before.

    Args:
        ref: The Ref, or a view of one.
        idx: An index as for arrays: ints, slices, arrays, `...`.
        value: An array that broadcasts to the shape of the part.

    Returns:
        The part as it was.

    >>> r = jax.new_ref(jnp.arange(3.0))
    >>> jax.ref.swap(r, 1, 5.0), r[1]
    (Array(1., dtype=float32), Array(5., dtype=float32))"""
    return write(_mutable(_function_name, ref), idx, value, "swap")


def addupdate(ref: Mutable, idx: Any, x: ArrayLike) -> None:
    """Adds to a part of a Ref: `ref[idx] += x`.

    Args:
        ref: The Ref, or a view of one.
        idx: An index as for arrays: ints, slices, arrays, `...`.
        x: An array that broadcasts to the shape of the part.

    Returns:
        None.

    >>> r = jax.new_ref(jnp.arange(3.0))
    >>> jax.ref.addupdate(r, 0, 4.0)
    >>> r[...]
    Array([4., 1., 2.], dtype=float32)"""
    add(_mutable("addupdate", ref), idx, x)


def freeze(ref: Ref) -> Array:
    """Gives the value of a Ref that is not written to any more.

    Args:
        ref: The Ref.

    Returns:
        An array.

    >>> jax.freeze(jax.new_ref(jnp.arange(3.0)))
    Array([0., 1., 2.], dtype=float32)"""
    return value_of(_ref("freeze", ref))


def free_ref(ref: Ref) -> None:
    """Lets go of the memory of a Ref, which must not be used any more.

    Args:
        ref: The Ref.

    Returns:
        None.

    >>> r = jax.new_ref(jnp.arange(3.0))
    >>> jax.free_ref(r)"""
    free(_ref("free_ref", ref))


_guards.guard_public(globals())

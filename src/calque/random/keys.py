"""Random keys: typed ones (dtype key<fry>) and raw uint32 pairs. Every function takes both and
gives back the kind it got."""

import operator
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from calque.core.arrays import Array, ArrayImpl
from calque.core.config import config
from calque.core.dtypes import is_extended, is_integer
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.trace_state import Tracer
from calque.core.types import ArrayLike, DTypeLike
from calque.numpy.calls.marks import python_only, with_numbers
from calque.numpy.creation import canonical_shape
from calque.numpy.promotion import check_arraylike, convert, is_arraylike
from calque.ops.random.keys import IMPLEMENTATIONS, KeyDType, PRNGImpl, implementation


def default_impl(impl: str | PRNGImpl | None = None) -> PRNGImpl:
    return implementation(config.default_prng_impl if impl is None else impl)


@python_only
def key(
    seed: ArrayLike, *, impl: str | PRNGImpl | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Makes a typed random key from an integer.

    Args:
        seed: The integer. Without 64-bit types, its low 32 bits count.
        impl: The algorithm: "threefry2x32", "rbg" and others by name; None takes the one of the
            configuration.
        dtype: The dtype of the key, in place of `impl`.

    Returns:
        A key, an array without axes.

    >>> jax.random.key(0)
    Array((), dtype=key<fry>) overlaying:
    [0 0]"""
    return do.random_seed(seed_operand("key", seed), impl=_chosen("key", impl, dtype))


def _chosen(name: str, impl: Any, dtype: Any) -> Any:
    """The algorithm that one of `impl` and `dtype` names."""
    if impl is not None and dtype is not None:
        raise ValueError(
            f"Cannot specify both `impl` and `dtype` of {name}: got {impl!r} and {dtype!r}"
        )
    return default_impl(impl if dtype is None else dtype)


@python_only
def key_dtype(impl_spec: str | PRNGImpl | None = None) -> KeyDType:
    """Gives the dtype of the keys of an algorithm.

    Args:
        impl_spec: The algorithm; None takes the one of the configuration.

    Returns:
        A dtype.

    >>> jax.random.key_dtype("rbg")
    key<rbg>"""
    return default_impl(impl_spec).dtype


@python_only
def PRNGKey(seed: ArrayLike, *, impl: str | PRNGImpl | None = None) -> Array:
    """Makes a raw random key, an array of uint32, from an integer. `key` makes typed ones.

    Args:
        seed: The integer. Without 64-bit types, its low 32 bits count.
        impl: The algorithm: "threefry2x32", "rbg" and others by name; None takes the one of the
            configuration.

    Returns:
        An array of uint32; with `calque_enable_custom_prng` a typed key.

    >>> jax.random.PRNGKey(0)
    Array([0, 0], dtype=uint32)"""
    typed = do.random_seed(seed_operand("PRNGKey", seed), impl=default_impl(impl))
    return typed if config.enable_custom_prng else do.random_unwrap(typed)


def seed_operand(name: str, seed: ArrayLike) -> ArrayLike:
    """The seed as an integer operand. Without 64-bit types, Python ints keep their low 32 bits."""
    if isinstance(seed, (ArrayImpl, Tracer, np.ndarray, np.generic)):
        aval = typeof(seed)
        if is_extended(aval.dtype):
            raise TypeError(
                f"{name} accepts a scalar seed, but was given a key array of shape {aval.shape}."
                " To convert keys use random.key_data and random.wrap_key_data"
            )
        if not is_integer(aval.dtype):
            raise TypeError(f"PRNG key seed must be an integer; got {aval.dtype.name}")
        if aval.ndim:
            raise TypeError(
                f"{name} accepts a scalar seed, but was given an array of shape {aval.shape}. Use"
                " calque.vmap for batching"
            )
        return seed
    try:
        n = operator.index(seed)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"PRNG key seed must be an integer; got {seed!r}") from None
    if not -(2**63) <= n < 2**63:
        raise OverflowError(f"{name}: the seed {n} is too large, seeds have 64 bits")
    bits = 64 if config.enable_x64 else 32
    low = n & ((1 << bits) - 1)
    return np.asarray(
        low - (1 << bits) if low >= 1 << (bits - 1) else low, np.int64 if bits == 64 else np.int32
    )


def is_typed(k: ArrayLike) -> bool:
    return is_extended(getattr(k, "dtype", None))


def wrapped(k: ArrayLike, name: str, single: bool = True) -> tuple[Array, bool]:
    """(the key as a typed one, whether it was raw)"""
    typed: Any = k
    raw = not is_typed(k)
    if raw:
        if not is_arraylike(k):
            raise _no_key(name, k, f"unexpected PRNG key type {type(k)}")
        aval = typeof(k)
        if aval.dtype != np.dtype("uint32") or not aval.shape:
            raise _no_key(name, k, f"got {aval.str_short()}")
        _legacy()
        typed = do.random_wrap(k, impl=default_impl())
    if single and typeof(typed).ndim:
        raise ValueError(
            f"{name} accepts a single key, but was given a key array of shape {typeof(k).shape}."
            " Use calque.vmap for batching."
        )
    return typed, raw


def _no_key(name: str, given: Any, got: str) -> TypeError:
    """A call without a key: most often it was forgotten, and the shape stands in its place."""
    where = "a shape stands in its place" if isinstance(given, (tuple, list)) else "it comes first"
    return TypeError(
        f"JAX encountered invalid PRNG key data, and so does calque: {name} needs a random key,"
        f" {got}; {where}. Make one, key = calque.random.key(seed), and call"
        f" calque.random.{name}(key, ...)."
    )


def _legacy() -> None:
    """What `calque_legacy_prng_key` says of keys that are plain integers."""
    if config.legacy_prng_key == "allow":
        return
    message = (
        "Legacy uint32 key array passed as key to calque.random function. Please create keys using"
        " calque.random.key(). If use of a raw key array was intended, set"
        ' calque_legacy_prng_key="allow".'
    )
    if config.legacy_prng_key == "error":
        raise ValueError(message)
    warnings.warn(message, UserWarning, stacklevel=4)


def unwrapped(k: Array, raw: bool) -> Array:
    return do.random_unwrap(k) if raw else k


def split(key: ArrayLike, num: int | Sequence[int] = 2) -> Array:
    """Makes new independent keys from one, which must not be used again.

    Args:
        key: A random key, typed or raw.
        num: How many, or the shape of the array of keys.

    Returns:
        An array of keys.

    >>> jax.random.split(jax.random.key(0), 3).shape
    (3,)"""
    typed, raw = wrapped(key, "split")
    shape = canonical_shape(num if isinstance(num, (tuple, list)) else (num,))
    return unwrapped(do.random_split(typed, shape=shape), raw)


@python_only
def fold_in(key: ArrayLike, data: ArrayLike) -> Array:
    """Makes a new key from a key and an integer, such as the number of a step.

    Args:
        key: A random key, typed or raw.
        data: The integer, not negative.

    Returns:
        A key.

    >>> jax.random.fold_in(jax.random.PRNGKey(0), 1)
    Array([ 928981903, 3453687069], dtype=uint32)"""
    if type(data) is int and type(key) is ArrayImpl and 0 <= data < 1 << 31:
        return _folded(key, data)
    typed, raw = wrapped(key, "fold_in")
    check_arraylike("fold_in", data)
    if not isinstance(data, int) and typeof(data).ndim:
        raise TypeError(
            f"fold_in accepts a scalar, but was given an array of shape {typeof(data).shape}. Use"
            " calque.vmap for batching."
        )
    if not isinstance(data, int):
        return unwrapped(do.random_fold_in(typed, convert(data, np.dtype("uint32"))), raw)
    if not 0 <= data < 1 << 32:
        raise OverflowError(f"fold_in: Python integer {data} out of bounds for uint32")
    return unwrapped(do.random_fold_in(typed, np.asarray(data, np.uint32)), raw)


@with_numbers
def _folded(key: Any, data: Any) -> Any:
    """`fold_in` of a number that is an int32."""
    typed, raw = wrapped(key, "fold_in")
    return unwrapped(do.random_fold_in(typed, convert(data, np.dtype("uint32"))), raw)


@python_only
def key_data(keys: ArrayLike) -> Array:
    """Gives the bits of keys.

    Args:
        keys: Random keys, typed or raw.

    Returns:
        An array of uint32 with one axis more.

    >>> jax.random.key_data(jax.random.key(0))
    Array([0, 0], dtype=uint32)"""
    typed, _ = wrapped(keys, "key_data", single=False)
    return do.random_unwrap(typed)


@python_only
def wrap_key_data(
    key_bits_array: ArrayLike, *, impl: str | PRNGImpl | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Makes typed keys of bits.

    Args:
        key_bits_array: An array of uint32, whose last axis has the words of a key.
        impl: The algorithm: "threefry2x32", "rbg" and others by name; None takes the one of the
            configuration.
        dtype: The dtype of the keys, in place of `impl`.

    Returns:
        An array of keys with one axis less.

    >>> jax.random.wrap_key_data(jnp.zeros((3, 2), jnp.uint32)).shape
    (3,)"""
    check_arraylike("wrap_key_data", key_bits_array)
    return do.random_wrap(key_bits_array, impl=_chosen("wrap_key_data", impl, dtype))


@python_only
def key_impl(keys: ArrayLike) -> str | PRNGImpl:
    """Gives the name of the algorithm of keys; one that a library has defined is given itself.

    Args:
        keys: Random keys, typed or raw.

    Returns:
        A string, or the algorithm.

    >>> jax.random.key_impl(jax.random.key(0))
    'threefry2x32'"""
    dtype: Any = wrapped(keys, "key_impl", single=False)[0].dtype
    impl: PRNGImpl = dtype.impl
    return impl.name if impl.name in IMPLEMENTATIONS else impl


@python_only
def clone(key: ArrayLike) -> Array:
    """Gives the same key again, which may then be used twice where `debug_key_reuse` looks.

    Args:
        key: A random key, typed or raw.

    Returns:
        A key.

    >>> k = jax.random.key(0)
    >>> jax.random.key_data(jax.random.clone(k))
    Array([0, 0], dtype=uint32)"""
    typed, raw = wrapped(key, "clone", single=False)
    return unwrapped(do.random_clone(typed), raw)

"""Algorithms of random keys: those that there are, and those that libraries define."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from calque.core import guards as _guards
from calque.core import trace_state
from calque.core.arrays import Array, from_numpy, to_numpy
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.types import ArrayLike
from calque.numpy.conversions import asarray
from calque.numpy.joining import concatenate
from calque.ops.random.keys import IMPLEMENTATIONS, PRNGImpl, define
from calque.ops.random.threefry import threefry2x32_p
from calque.random.keys import seed_operand

__all__ = [
    "define_prng_impl", "random_seed", "rbg_prng_impl", "seed_with_impl", "threefry2x32_p",
    "threefry_2x32", "threefry_prng_impl", "unsafe_rbg_prng_impl",
]  # fmt: skip

Shape = tuple[int, ...]

threefry_prng_impl: Final = IMPLEMENTATIONS["threefry2x32"]
rbg_prng_impl: Final = IMPLEMENTATIONS["rbg"]
unsafe_rbg_prng_impl: Final = IMPLEMENTATIONS["unsafe_rbg"]


def _of_each(f: Callable[..., Any], rank: int) -> Callable[..., np.ndarray]:
    """A rule for one key, or seed, of `rank` dimensions, for arrays of them: programs call it while
    they run, and so do keys that are used at once."""

    def of_all(keys: np.ndarray, *rest: Any) -> np.ndarray:
        lead = keys.shape[: keys.ndim - rank]

        def at(x: Any, place: Shape) -> Any:
            return from_numpy(np.asarray(x[place])) if isinstance(x, np.ndarray) else x

        def one(place: Shape, *given: Any) -> np.ndarray:
            return to_numpy(asarray(f(*[at(x, place) for x in given])))

        with trace_state.evaluating():
            if 0 in lead:  # of no keys, none: what one would give has the shape
                blank = np.zeros(keys.shape[len(lead) :], keys.dtype)
                none = [np.zeros((), x.dtype) if isinstance(x, np.ndarray) else x for x in rest]
                made = one((), blank, *none)
                return np.zeros((*lead, *made.shape), made.dtype)
            out = [one(place, keys, *rest) for place in np.ndindex(*lead)]
        return np.stack(out).reshape((*lead, *out[0].shape))

    return of_all


def define_prng_impl(
    *,
    key_shape: Shape,
    seed: Callable[[Array], Array],
    split: Callable[[Array, Shape], Array],
    random_bits: Callable[[Array, int, Shape], Array],
    fold_in: Callable[[Array, int], Array],
    name: str = "<unnamed>",
    tag: str = "?",
) -> PRNGImpl:
    """Defines an algorithm of random keys, by functions of one key.

    Compiled programs call the functions while they run, key by key.

    Args:
        key_shape: The shape of the words, uint32, that a key is.
        seed: Makes a key from an integer.
        split: Makes keys of a shape from a key.
        random_bits: Makes unsigned integers of a width, of a shape, from a key.
        fold_in: Makes a key from a key and an integer.
        name: What the algorithm is called.
        tag: What its dtype is called: `key<tag>`.

    Returns:
        The algorithm, which stands for `impl` in `random.key` and its kin.

    >>> counting = jax.extend.random.define_prng_impl(
    ...     key_shape=(1,), seed=lambda s: s.astype("uint32")[None],
    ...     split=lambda k, shape: jnp.broadcast_to(k, (*shape, 1)),
    ...     fold_in=lambda k, data: k + data,
    ...     random_bits=lambda k, width, shape: jnp.full(shape, k[0], f"uint{width}"),
    ...     name="counting", tag="n")
    >>> jax.random.bits(jax.random.key(7, impl=counting), (3,))
    Array([7, 7, 7], dtype=uint32)"""
    rank = len(key_shape)
    impl = PRNGImpl(
        name,
        tag,
        tuple(key_shape),
        seed=_of_each(seed, 0),
        split=_of_each(split, rank),
        fold_in=_of_each(fold_in, rank),
        random_bits=_of_each(random_bits, rank),
    )
    define(impl)
    return impl


def random_seed(seeds: ArrayLike, impl: PRNGImpl) -> Array:
    """Makes typed keys from integers.

    Args:
        seeds: An integer, or an array of them: one for each key.
        impl: The algorithm.

    Returns:
        An array of keys of the shape of the seeds.

    >>> jax.extend.random.random_seed(jnp.arange(3), jax.extend.random.rbg_prng_impl).shape
    (3,)"""
    whole = seeds if hasattr(seeds, "ndim") and seeds.ndim else seed_operand("random_seed", seeds)
    return do.random_seed(whole, impl=impl)


def seed_with_impl(impl: PRNGImpl, seed: ArrayLike) -> Array:
    """Makes a typed key from an integer: `random_seed` with its arguments turned around.

    Args:
        impl: The algorithm.
        seed: The integer.

    Returns:
        A key.

    >>> jax.extend.random.seed_with_impl(jax.extend.random.threefry_prng_impl, 3).dtype
    key<fry>"""
    return random_seed(seed, impl)


def threefry_2x32(keypair: tuple[ArrayLike, ArrayLike], count: Array) -> Array:
    """Encrypts words with Threefry-2x32, the first half of them in pairs with the second.

    Args:
        keypair: The two words of the key, uint32.
        count: An array of uint32.

    Returns:
        An array of uint32, of the shape of `count`.

    >>> key = (jnp.uint32(0), jnp.uint32(1))
    >>> jax.extend.random.threefry_2x32(key, jnp.arange(4, dtype="uint32")).shape
    (4,)"""
    wrong = [typeof(x).dtype for x in (*keypair, count) if typeof(x).dtype != np.uint32]
    if wrong:
        raise TypeError(f"threefry_2x32 requires uint32 arguments, got {wrong[0].name}")
    flat = count.ravel()
    odd = flat.shape[0] % 2
    words = concatenate([flat, np.zeros(1, np.uint32)]) if odd else flat
    half = words.shape[0] // 2
    out = concatenate(threefry2x32_p.bind(*keypair, words[:half], words[half:]))
    return out[: flat.shape[0]].reshape(count.shape)


_guards.guard_public(globals())

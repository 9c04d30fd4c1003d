"""Random numbers from a generator that remembers how often it was asked: a key and a counter in a
Ref. What it gives is what `calque.random` gives for the key with the counter folded in."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from calque import random as _random
from calque.core import containers as _containers
from calque.core import guards as _guards
from calque.core import trace_state
from calque.core.arrays import Array
from calque.core.key_paths import GetAttrKey
from calque.core.types import ArrayLike, DTypeLike
from calque.numpy.conversions import asarray
from calque.numpy.creation import zeros
from calque.ops.random.keys import KeyDType, PRNGImpl
from calque.ref import addupdate, get, new_ref
from calque.transforms.primitives.refs import Ref

__all__ = ["StatefulPRNG", "stateful_rng"]

Size = int | Sequence[int] | None


def _shape(size: Size, *args: ArrayLike) -> tuple[int, ...]:
    """The shape that is asked for; without one that of the parameters together."""
    if size is None:
        return np.broadcast_shapes(*map(np.shape, args))
    if isinstance(size, (int, np.number)):
        return (operator.index(size),)
    return tuple(map(operator.index, size))


@dataclasses.dataclass(frozen=True, slots=True)
class StatefulPRNG:
    """A random generator with a state: made by `stateful_rng`.

    It may be closed over and be an argument of `jit`; `split` makes one whose rows `vmap` takes.
    As it holds a Ref, a transformed function cannot return it.

    Args:
        _base_key: A typed key.
        _counter: A Ref of an integer, how often keys were made.

    >>> rng = jax.experimental.random.stateful_rng(42)
    >>> rng.uniform()
    Array(0.5302608, dtype=float32)
    >>> rng.uniform()
    Array(0.72766423, dtype=float32)"""

    _base_key: Any
    _counter: Any

    def __post_init__(self) -> None:
        if not isinstance(getattr(self._base_key, "dtype", None), KeyDType):
            raise ValueError(
                f"Expected base_key to be a typed PRNG key; got {self._base_key}: make one with"
                " random.key(seed)"
            )
        if not isinstance(self._counter, Ref):
            raise ValueError(
                f"Expected counter to be a scalar integer ref; got {self._counter}: make one with"
                " new_ref(0)"
            )

    def key(self, shape: int | Sequence[int] = ()) -> Array:
        """Makes a key, other than all before.

        Args:
            shape: The shape of an array of keys; () is a single one.

        Returns:
            The key, or keys.

        >>> jax.random.key_data(jax.experimental.random.stateful_rng(0).key())
        Array([1797259609, 2579123966], dtype=uint32)"""
        if self._base_key.shape:
            raise ValueError(
                "cannot operate on split stateful generator: give it to vmap, whose function gets"
                " one for each row"
            )
        made = _random.fold_in(self._base_key, get(self._counter))
        addupdate(self._counter, ..., 1)
        sizes = _shape(shape)
        return _random.split(made, sizes) if sizes else made

    def random(self, size: Size = None, dtype: DTypeLike = float) -> Array:
        """Draws floats from 0 to below 1.

        Args:
            size: The shape; None is ().
            dtype: The dtype.

        Returns:
            An array."""
        return _random.uniform(self.key(), _shape(size), dtype)

    def uniform(
        self,
        low: ArrayLike = 0,
        high: ArrayLike = 1,
        size: Size = None,
        *,
        dtype: DTypeLike = float,
    ) -> Array:
        """Draws floats, all of a range equally often.

        Args:
            low: The least.
            high: What they stay below.
            size: The shape; None is that of the bounds together.
            dtype: The dtype.

        Returns:
            An array."""
        return _random.uniform(self.key(), _shape(size, low, high), dtype, minval=low, maxval=high)

    def normal(
        self,
        loc: ArrayLike = 0,
        scale: ArrayLike = 1,
        size: Size = None,
        *,
        dtype: DTypeLike = float,
    ) -> Array:
        """Draws from normal distributions.

        Args:
            loc: The means.
            scale: The standard deviations.
            size: The shape; None is that of the parameters together.
            dtype: The dtype.

        Returns:
            An array."""
        drawn = _random.normal(self.key(), _shape(size, loc, scale), dtype)
        return (asarray(loc) + asarray(scale) * drawn).astype(dtype)

    def integers(
        self,
        low: ArrayLike,
        high: ArrayLike | None = None,
        size: Size = None,
        *,
        dtype: DTypeLike = int,
    ) -> Array:
        """Draws integers.

        Args:
            low: The least; given alone, what they stay below, from 0.
            high: What they stay below.
            size: The shape; None is that of the bounds together.
            dtype: The dtype.

        Returns:
            An array."""
        least, end = (0, low) if high is None else (low, high)
        return _random.randint(self.key(), _shape(size, least, end), least, end, dtype)

    def split(self, num: int | Sequence[int]) -> StatefulPRNG:
        """Makes independent generators, one for each row that `vmap` maps over.

        Args:
            num: How many, or the shape.

        Returns:
            One generator with an array of keys and counters.

        >>> rng = jax.experimental.random.stateful_rng(123)
        >>> jax.vmap(lambda rng, x: x + rng.uniform())(rng.split(3), jnp.zeros(3))
        Array([0.35525954, 0.21937883, 0.5336956 ], dtype=float32)"""
        return StatefulPRNG(self.key(num), new_ref(zeros(_shape(num), int)))

    def spawn(self, n_children: int) -> list[StatefulPRNG]:
        """Makes independent generators.

        Args:
            n_children: How many.

        Returns:
            A list of them."""
        return [StatefulPRNG(key, new_ref(0)) for key in self.key(n_children)]


def _made(_: Any, children: Iterable[Any]) -> StatefulPRNG:
    """A generator of any two parts: also of what transformations put into its place."""
    rng = object.__new__(StatefulPRNG)
    for name, part in zip(_FIELDS, children):
        object.__setattr__(rng, name, part)
    return rng


_FIELDS = ("_base_key", "_counter")
_containers.register_pytree_node(
    StatefulPRNG,
    lambda rng: ((rng._base_key, rng._counter), None),
    _made,
    lambda rng: ([(GetAttrKey(name), getattr(rng, name)) for name in _FIELDS], None),
)


def stateful_rng(
    seed: ArrayLike | None = None, *, impl: str | PRNGImpl | None = None
) -> StatefulPRNG:
    """Makes a random generator that remembers its state, as `numpy.random.default_rng` does.

    Args:
        seed: An integer. None takes one from the operating system, which only code that runs at
            once can do.
        impl: The algorithm of the keys: "threefry2x32", "rbg" and others by name; None takes the
            one of the configuration.

    Returns:
        A StatefulPRNG.

    >>> rng = jax.experimental.random.stateful_rng(42)
    >>> draw = jax.jit(rng.uniform)
    >>> draw(), draw()
    (Array(0.5302608, dtype=float32), Array(0.72766423, dtype=float32))"""
    if seed is None:
        if trace_state.depth() or not trace_state.is_evaluating():
            raise TypeError(
                "When used within transformed code, stateful_rng() requires an explicit seed to be"
                " set: it would be the same one in every run of the program."
            )
        entropy = np.random.SeedSequence().entropy
        assert isinstance(entropy, int)
        seed = np.int64(entropy & np.iinfo(np.int64).max)
    return StatefulPRNG(_random.key(seed, impl=impl), new_ref(0))


_guards.guard_public(globals())

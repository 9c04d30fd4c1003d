"""Sizes that are none, or beyond every memory, asked of whatever takes one: a Python exception that
says what was asked, and the next call is right."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax, random

X, M = np.ones(3, np.float32), np.ones((3, 3), np.float32)
# each with whether sizes below 0 mean something to it
TAKING: dict[str, tuple[Callable[[Any], Any], bool]] = {
    "zeros": (lambda n: jnp.zeros(n), False),
    "full": (lambda n: jnp.full((2, n), 1.0), False),
    "arange": (lambda n: jnp.arange(n, dtype=jnp.int32), True),
    "linspace": (lambda n: jnp.linspace(0, 1, n), False),
    "geomspace": (lambda n: jnp.geomspace(1, 2, n), False),
    "eye": (lambda n: jnp.eye(3, n), False),
    "tri": (lambda n: jnp.tri(n), True),
    "broadcast_to": (lambda n: jnp.broadcast_to(X, (n, 3)) + 1, False),
    "tile": (lambda n: jnp.tile(X, n), True),
    "repeat": (lambda n: jnp.repeat(X, n), False),
    "repeat to a length": (
        lambda n: jnp.repeat(X, jnp.array([1, 2, 3]), total_repeat_length=n),
        False,
    ),
    "pad": (lambda n: jnp.pad(X, n), False),
    "normal": (lambda n: random.normal(random.key(0), (n,)), False),
    "split": (lambda n: random.split(random.key(0), n), False),
    "iota": (lambda n: lax.iota(np.int32, n), False),
    "one_hot": (lambda n: calque.nn.one_hot(jnp.arange(3), n), False),
    "fftfreq": (lambda n: jnp.fft.fftfreq(n), True),
    "rfftfreq": (lambda n: jnp.fft.rfftfreq(n), True),
    "hamming": (lambda n: jnp.hamming(n), True),
    "resize of an image": (lambda n: calque.image.resize(M, (n, 3), "linear"), False),
    "zeros_like": (lambda n: jnp.zeros_like(X, shape=(n,)), False),
    "diag": (lambda n: jnp.diag(X, n), True),
    "diagflat": (lambda n: jnp.diagflat(X, n), True),
    "bincount": (lambda n: jnp.bincount(jnp.arange(3), length=n), False),
    "unique": (lambda n: jnp.unique(X, size=n), False),
    "segments": (lambda n: calque.ops.segment_sum(X, jnp.arange(3), num_segments=n), False),
    "vander": (lambda n: jnp.vander(X, n), False),
    "resize": (lambda n: jnp.resize(X, n), False),
    "resize to a wrapped size": (lambda n: jnp.resize(X, (n, 1 << 32, 4)), False),
    "fft": (lambda n: jnp.fft.fft(X, n), False),
}
FAR = (1 << 62, 1 << 63, 1 << 64, 1 << 70)
NONE = (float("nan"), float("inf"), 2.5, "3", -5, -(1 << 70))


@pytest.mark.parametrize("name", TAKING)
@pytest.mark.parametrize("jitted", [False, True])
def test_sizes_beyond_every_memory(name: str, jitted: bool) -> None:
    f, _ = TAKING[name]
    for n in FAR:
        with pytest.raises((MemoryError, OverflowError, ValueError, TypeError)) as e:
            calque.jit(lambda n=n: f(n))() if jitted else f(n)
        assert not any(word in str(e.value) for word in ("C long", "C ssize_t")), str(e.value)
    assert float(calque.jit(lambda x: x + 1)(1.0)) == 2


@pytest.mark.parametrize("name", TAKING)
def test_sizes_that_are_none(name: str) -> None:
    f, below = TAKING[name]
    for n in NONE:
        if isinstance(n, int) and below:
            continue
        if name in ("arange", "hamming") and n == 2.5:  # floats count, as in JAX
            continue
        with pytest.raises((MemoryError, OverflowError, ValueError, TypeError)):
            f(n)


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_lengths_of_slices(n: int) -> None:
    """As Python counts them, but for lengths beyond what `len` can tell."""
    x, bounds = np.arange(n), (None, -7, -2, 0, 1, 3, 9)
    for start in bounds:
        for stop in bounds:
            for step in (None, -3, -1, 1, 2):
                s = slice(start, stop, step)
                assert jnp.asarray(x)[s].tolist() == x[s].tolist(), s

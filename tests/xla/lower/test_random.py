"""Random bits and keys on XLA: those of calque's own engine, bit by bit."""

from typing import Any

import numpy as np
import pytest

import calque as jax
from calque import lax
from calque.core.config import config
from calque.lax import RandomAlgorithm
from calque.xla.lower.random import counters
from tests.xla.lower.shared import blank, on_both, operations, text_of, written
from tests.xla.mlir import needs_jaxlib

KINDS = ("threefry2x32", "rbg", "unsafe_rbg")


@needs_jaxlib
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_bits_of_every_width(kind: str, width: int) -> None:
    keys = jax.random.split(jax.random.key(7, impl=kind), 2)
    with config.override("calque_enable_x64", True):
        (found,) = on_both(jax.vmap(lambda k: jax.random.bits(k, (3, 5), f"uint{width}")), keys)
    assert found.shape == (2, 3, 5) and len(np.unique(found)) > 20


@needs_jaxlib
@pytest.mark.parametrize("width", [8, 32, 64])
def test_bits_in_the_older_order(width: int) -> None:
    with (
        config.override("calque_enable_x64", True),
        config.override("jax_threefry_partitionable", False),
    ):
        k = jax.random.key(7)
        on_both(lambda k: jax.random.bits(k, (7,), f"uint{width}"), k)
        on_both(lambda k: jax.random.split(k, (3,)), k)


@needs_jaxlib
@pytest.mark.parametrize("kind", KINDS)
def test_keys_from_keys(kind: str) -> None:
    def derived(keys: Any) -> Any:
        folded = jax.vmap(jax.random.fold_in)(keys, np.uint32([7, 3]))
        return jax.vmap(lambda k: jax.random.split(k, (3, 1)))(keys), folded

    keys = jax.random.split(jax.random.key(1, impl=kind), 2)
    split, folded = on_both(derived, keys)
    assert split.shape == (2, 3, 1) and folded.shape == (2,)
    assert len({k.tobytes() for k in [*split.ravel(), *folded]}) == 8


@needs_jaxlib
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [np.int32(-1), np.uint32(2**32 - 1), np.int64(2**40 + 5)])
def test_seeds(kind: str, seed: Any) -> None:
    with config.override("calque_enable_x64", True):
        on_both(lambda s: jax.random.key(s, impl=kind), seed)


@needs_jaxlib
def test_no_bits() -> None:
    for kind in KINDS:
        bits, keys = on_both(
            lambda k: (jax.random.bits(k, (0, 3)), jax.random.split(k, 0)),
            jax.random.key(0, impl=kind),
        )
        assert bits.shape == (0, 3) and keys.shape == (0,)


@needs_jaxlib
@pytest.mark.parametrize(
    ("algorithm", "dtype"),
    [
        (RandomAlgorithm.RNG_DEFAULT, "uint64"),
        (RandomAlgorithm.RNG_THREE_FRY, "uint8"),
    ],
)
def test_generators_of_one_state_and_of_several(algorithm: Any, dtype: str) -> None:
    states = np.arange(8, dtype=np.uint32).reshape(2, 4)

    def made(s: Any) -> Any:
        return lax.rng_bit_generator(s, (3, 2), np.dtype(dtype), algorithm)

    with config.override("calque_enable_x64", True):
        for state in (states[0], states[0].view(np.uint64)):
            new, _ = on_both(made, state)
            assert new.dtype == state.dtype and (new != state).any()
        on_both(jax.vmap(made), states)
        found = operations(text_of(jax.vmap(made), states))
    by_one = 2 if algorithm == RandomAlgorithm.RNG_THREE_FRY else 0
    assert found["rng_bit_generator"] == by_one


def test_blocks_are_one_function_of_the_module_for_each_shape() -> None:
    def drawn(k: Any) -> Any:
        a, b, c = jax.random.split(k, 3)
        return [jax.random.bits(k, (5,)) for k in (a, b)], jax.random.bits(c, (4,))

    text = text_of(drawn, jax.random.key(0))
    assert text.count("func.func private @threefry2x32") == 3  # of 3, 5 and 4 blocks
    assert text.count("call @threefry2x32") == 4


def test_counters_are_two_words_of_a_row_major_index() -> None:
    b, _ = blank()
    high, low = counters(b, (2, 3))
    assert high.shape == low.shape == (2, 3) and high.dtype == low.dtype == np.uint32
    assert "tensor<6xui64>" in written(b, high, low)


@needs_jaxlib
def test_uniform_numbers_of_xla_itself() -> None:
    f = jax.jit(lambda: lax.rng_uniform(np.float32(-2), np.float32(3), (1000,)), backend="xla_cpu")
    found = np.asarray(f())
    assert found.min() >= -2 and found.max() < 3 and 0.3 < found.mean() < 0.7

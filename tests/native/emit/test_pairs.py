"""Complex numbers in memory: written as pairs, and moved as words."""

import re

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from tests.native.programs import compiled

SHAPES = [(40, 33), (8, 3, 70), (5, 9, 16, 2), (1, 7, 3), (64, 64)]
MOVES = {
    "turned": lambda x: x.T,
    "first behind": lambda x: jnp.moveaxis(x, 0, -1),
    "last before": lambda x: jnp.moveaxis(x, -1, 0),
    "reversed": lambda x: x[::-1, ::-1],
    "rolled": lambda x: jnp.roll(x, 3, -1),
    "joined": lambda x: jnp.concatenate([x, x], 0),
    "every third": lambda x: x[..., ::3],
}


def text_of(f, x) -> str:
    """The code of all kernels."""
    return compiled(f, x).as_text("llvm")


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", MOVES)
def test_moves(name, shape, dtype):
    rng = np.random.default_rng(0)
    with calque.enable_x64(True):
        x = (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
        np.testing.assert_array_equal(
            calque.jit(MOVES[name])(x), np.asarray(MOVES[name](jnp.asarray(x)))
        )
        if name == "turned":
            np.testing.assert_array_equal(calque.jit(MOVES[name])(x), x.T)


def test_numbers_that_move_are_words():
    x = np.ones((40, 50), np.complex64)
    words = re.compile(r"load <\d+ x i64>")
    assert words.search(text_of(lambda x: x.T, x))
    assert not words.search(text_of(lambda x: x.T * 2, x))


def test_what_changes_is_no_word():
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(40, 33)) + 1j * rng.normal(size=(40, 33))).astype(np.complex64)
    np.testing.assert_array_equal(calque.jit(lambda x: x.T.conj())(x), x.T.conj())
    np.testing.assert_allclose(calque.jit(lambda x: x.T * (2 + 1j))(x), x.T * (2 + 1j), rtol=1e-6)

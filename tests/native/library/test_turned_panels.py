"""Right sides that are transposed matrices: panels are filled in squares that registers turn."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp


def normal(*shape, dtype=np.float32):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def text(f, *args):
    return calque.jit(f, dynamic="never").lower(*args).compile().as_text("loops")


def turned(x, w):
    return x @ w.T


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32], ids=str)
@pytest.mark.parametrize("m", [2, 3, 8, 40, 150, 200])
@pytest.mark.parametrize("k, n", [(700, 640), (1100, 296), (520, 1001)], ids=str)
def test_the_bits_of_the_same_matrix_as_it_stands(m, k, n, dtype):
    """Few rows, which turn each panel near, and many, for which all are packed; the last panel is
    full, holds fewer squares, or a part of one."""
    with calque.enable_x64(True):
        x, w = normal(m, k), normal(n, k)
        x, w = (3 * x).astype(dtype), (3 * w).astype(dtype)
        got = calque.jit(lambda x, w: turned(x, w))(x, w)
        stands = calque.jit(lambda x, w: x @ w)(x, np.ascontiguousarray(w.T))
        assert np.asarray(got).tobytes() == np.asarray(stands).tobytes()
        np.testing.assert_allclose(got, x.astype("f8") @ w.T.astype("f8"), rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("m, packs", [(2, False), (8, False), (130, False), (300, True)])
def test_few_rows_turn_what_they_use_at_once(m, packs):
    """Nothing of the whole matrix is stored for them."""
    loops = text(turned, jnp.zeros((m, 1100)), jnp.zeros((2048, 1100)))
    assert ("panels" in loops) is packs
    assert "@tile" in loops
    assert loops.count("kernel ") == 1 + packs


def test_threads_share_the_columns():
    """Of two rows, too."""
    f = calque.jit(turned, dynamic="never").lower(jnp.zeros((2, 2048)), jnp.zeros((2048, 2048)))
    assert "for g < " in f.compile().as_text("loops")
    assert "@parallel" in f.compile().as_text("loops")


def test_what_no_squares_fill_is_packed():
    loops = text(turned, jnp.zeros((8, 1100)), jnp.zeros((1001, 1100)))
    assert "panels" in loops and "@tile" not in loops

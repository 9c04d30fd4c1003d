"""Trees as vectors."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import flatten_util


def test_ravel_pytree() -> None:
    tree = {"a": jnp.arange(3), "b": (jnp.ones((2, 2)), 1.5)}
    flat, unravel = flatten_util.ravel_pytree(tree)
    assert flat.dtype == np.float32 and flat.tolist() == [0, 1, 2, 1, 1, 1, 1, 1.5]
    back = unravel(flat * 2)
    assert (
        back["a"].dtype == np.int32
        and back["a"].tolist() == [0, 2, 4]
        and back["b"][0].shape == (2, 2)
    )
    assert calque.grad(lambda v: unravel(v)["b"][0].sum())(flat).tolist() == [
        0,
        0,
        0,
        1,
        1,
        1,
        1,
        0,
    ]
    assert calque.jit(lambda t: flatten_util.ravel_pytree(t)[0])(tree).tolist() == flat.tolist()
    with pytest.raises(ValueError, match=r"shape \(8,\)"):
        unravel(flat[1:])
    with pytest.raises(TypeError, match="dtype"):
        unravel(jnp.arange(8))
    empty, unravel = flatten_util.ravel_pytree([])
    assert empty.shape == (0,) and unravel(empty) == []
    assert flatten_util.ravel_pytree(tree)[1] == flatten_util.ravel_pytree(tree)[1]


def test_a_tree_without_leaves_makes_a_vector_of_single_precision():
    for wide in (False, True):
        with calque.enable_x64(wide):
            flat, unravel = flatten_util.ravel_pytree({"a": ()})
        assert flat.shape == (0,) and flat.dtype == np.float32
        assert unravel(flat) == {"a": ()}

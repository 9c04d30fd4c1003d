"""Random keys moved about on XLA: each takes its words along."""

from typing import Any

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import lax
from calque.core.trace import trace_to_jaxpr, typeof
from calque.ops.joining import stack_p, tile_p, unstack_p
from calque.xla.lower.keys import PARAMETERS, at_words
from tests.extend.test_random import made
from tests.xla.lower.shared import on_both
from tests.xla.mlir import needs_jaxlib

keys = jax.random.split(jax.random.key(3), (2, 3))
rows = np.int32([1, 0, 1])
impl = made((2, 3), "matrices")

MOVED: dict[str, Any] = {
    "broadcast_in_dim": lambda k: jnp.broadcast_to(k, (4, 2, 3)),
    "reshape": lambda k: k.reshape(3, 2),
    "transpose": lambda k: k.T,
    "slice": lambda k: lax.slice(k, (0, 1), (2, 3), (1, 2)),
    "dynamic_slice": lambda k: lax.dynamic_slice(k, (k.shape[0] - 1, 1), (1, 2)),
    "dynamic_update_slice": lambda k: lax.dynamic_update_slice(k, k[:1, :1], (1, 2)),
    "gather": lambda k: k[rows],
    "scatter": lambda k: k.at[rows[:1]].set(k[:1]),
    "tile": lambda k: tile_p.bind(k, reps=(2, 1)),
    "concatenate": lambda k: jnp.concatenate([k, k[:, :1]], 1),
    "stack": lambda k: stack_p.bind(k, lax.rev(k, (0,)), axis=1),
    "rev": lambda k: lax.rev(k, (1,)),
    "split": lambda k: lax.split(k, (1, 2), axis=1),
    "squeeze": lambda k: lax.squeeze(k[:1], (0,)),
    "unstack": lambda k: unstack_p.bind(k, axis=1),
    "select_n": lambda k: jnp.where(np.array([True, False, True]), k, k[::-1]),
    "optimization_barrier": lax.optimization_barrier,
}


@needs_jaxlib
@pytest.mark.parametrize("name", MOVED)
def test_keys_keep_their_words(name: str) -> None:
    closed = jax.make_jaxpr(MOVED[name])(keys)
    assert name in {e.primitive.name for e in closed.eqns} | names_below(closed)
    on_both(MOVED[name], keys)


@needs_jaxlib
@pytest.mark.parametrize("name", [*MOVED, "eq", "ne"])
def test_keys_of_a_library_have_matrices_of_words(name: str) -> None:
    def moved(numbers: Any) -> Any:
        mine = jax.vmap(jax.vmap(lambda n: jax.random.key(n, impl=impl)))(numbers)
        if name in ("eq", "ne"):
            return (mine == mine[::-1]) if name == "eq" else (mine != mine[:, :1])
        return jax.tree.map(jax.random.key_data, MOVED[name](mine))

    numbers = np.arange(6, dtype=np.int32).reshape(2, 3)
    found = jax.tree.leaves(jax.jit(moved, backend="xla_cpu")(numbers))
    for got, wanted in zip(found, jax.tree.leaves(moved(numbers)), strict=True):
        np.testing.assert_array_equal(got, wanted)


def names_below(closed: Any) -> set[str]:
    """The primitives of the programs that a program calls."""
    found = set()
    for e in closed.eqns:
        for inner in e.params.values():
            if hasattr(inner, "eqns"):
                found |= {i.primitive.name for i in inner.eqns} | names_below(inner)
    return found


@needs_jaxlib
@pytest.mark.parametrize("name", ["gather", "dynamic_slice", "tile", "select_n"])
def test_keys_of_four_words(name: str) -> None:
    on_both(MOVED[name], jax.random.split(jax.random.key(3, impl="rbg"), (2, 3)))


def test_parameters_get_the_words_as_a_last_dimension() -> None:
    def rewritten(f: Any) -> Any:
        return at_words(trace_to_jaxpr(lambda k: [f(k)], [typeof(keys)]).eqns[-1])

    assert rewritten(lambda k: lax.transpose(k, (1, 0)))["permutation"] == (1, 0, 2)
    sliced = rewritten(lambda k: lax.slice(k, (0, 1), (2, 3), (1, 2)))
    assert sliced == {
        "start_indices": (0, 1, 0),
        "limit_indices": (2, 3, 2),
        "strides": (1, 2, 1),
    }
    assert rewritten(lambda k: lax.slice(k, (0, 1), (2, 3)))["strides"] is None


def test_what_moves_no_elements_is_refused_with_the_remedy() -> None:
    (e,) = trace_to_jaxpr(lambda k: [lax.transpose(k, (1, 0))], [typeof(keys)]).eqns
    rewrite = PARAMETERS.pop("transpose")
    try:
        with pytest.raises(NotImplementedError, match=r"transpose of random keys.*key_data"):
            at_words(e)
    finally:
        PARAMETERS["transpose"] = rewrite


@needs_jaxlib
@pytest.mark.parametrize("kind", ["threefry2x32", "rbg"])
def test_keys_are_equal_where_all_their_words_are(kind: str) -> None:
    keys = jax.random.split(jax.random.key(3, impl=kind), (2, 3))
    words = np.array(jax.random.key_data(keys))
    words[0, 1, -1] ^= 1
    others = jax.random.wrap_key_data(words, impl=kind)
    same, differ, one = on_both(lambda a, b: (a == b, a != b, a == b[1, 2]), keys, others)
    want = np.ones((2, 3), bool)
    want[0, 1] = False
    np.testing.assert_array_equal(same, want)
    np.testing.assert_array_equal(differ, ~want)
    assert np.argwhere(one).tolist() == [[1, 2]]

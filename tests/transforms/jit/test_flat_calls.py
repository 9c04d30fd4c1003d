"""Calls with containers of the user's own, or static values made anew: machine code serves their
leaves. `asked` counts what Python served."""

import collections
import dataclasses

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.transforms.jit.traced import stats

Pair = collections.namedtuple("Pair", "first second")


@calque.tree_util.register_pytree_node_class
class Node:
    flattened = 0

    def __init__(self, value, name):
        self.value, self.name = value, name

    def tree_flatten(self):
        Node.flattened += 1
        return (self.value,), self.name

    @classmethod
    def tree_unflatten(cls, name, children):
        return cls(children[0], name)


@dataclasses.dataclass(frozen=True)
class Setting:
    scale: float


def served(f, *calls):
    """The results of the calls, after each was made three times; and how often Python served."""
    for _ in range(3):
        for args in calls:
            f(*args)
    before = stats.asked
    return [f(*args) for args in calls], stats.asked - before


X = jnp.arange(3.0)


def test_named_tuples_stay_in_machine_code() -> None:
    f = calque.jit(lambda p, x: (Pair(p.first + x, [p.second]), x))
    (out,), asked = served(f, (Pair(X, jnp.float32(2.0)), X))
    assert type(out[0]) is Pair and asked == 0 and float(out[0].second[0]) == 2.0
    np.testing.assert_array_equal(out[0].first, 2 * np.arange(3.0))
    assert f.__wrapped__ is not None and len(f._entries) > 0
    assert type(f(Pair(X, 1.0), X)[0]) is Pair  # another type of leaf: another program
    with pytest.raises(AttributeError):
        f((X, X), X)  # a plain tuple is not a Pair


def test_containers_of_the_users_own() -> None:
    f = calque.jit(lambda n, x: Node(n.value + x, n.name + "!"))
    (a, b), asked = served(f, (Node(X, "a"), X), (Node(2 * X, "b"), X))
    assert asked == 0 and (a.name, b.name) == ("a!", "b!")
    np.testing.assert_array_equal(b.value, 3 * np.arange(3.0))
    Node.flattened = 0
    f(Node(X, "a"), X)
    assert Node.flattened == 1
    with pytest.raises(TypeError):
        f(Node("text", "a"), X)


def test_static_values_made_anew() -> None:
    f = calque.jit(lambda x, s: x * s.scale, static_argnums=1)
    (a, b), asked = served(f, (X, Setting(2.0)), (X, Setting(3.0)))
    assert asked <= 2  # the objects of the first round are told by themselves
    f(X, Setting(2.0)), f(X, Setting(3.0))  # other objects: from now on by equality
    before = stats.asked
    for scale in (2.0, 3.0, 2.0):
        np.testing.assert_array_equal(f(X, Setting(scale)), scale * np.arange(3.0))
    assert stats.asked == before
    np.testing.assert_array_equal((a, b), (2 * np.arange(3.0), 3 * np.arange(3.0)))
    for _ in range(3):
        before = stats.asked
        for k in range(8):
            np.testing.assert_array_equal(f(X, Setting(float(k))), k * np.arange(3.0))
    assert stats.asked == before and f._function.equal_entries == 4  # the others are in a table
    g = calque.jit(lambda x, *, s: x + len(s), static_argnames="s")
    for n in (1, 2, 3, 4):
        assert float(g(X, s=tuple(range(n)))[0]) == n


def test_references_that_live_elsewhere_change_nothing() -> None:
    cell = calque.new_ref(jnp.zeros(3))
    f = calque.jit(lambda n, x: Node(n.value + x, n.name))
    (a,), asked = served(f, (Node(X, "a"), X))
    assert asked == 0 and a.name == "a"
    with pytest.raises(TypeError):  # a leaf that is one is no array of the same kind
        f(Node([cell], "a"), "text")
    g = calque.jit(lambda n: n.value[...] + 1.0)
    for k in range(3):
        cell[...] = jnp.full(3, float(k))
        np.testing.assert_array_equal(g(Node(cell, "a")), np.full(3, k + 1.0))


def test_they_obey_what_calls_obey() -> None:
    f = calque.jit(lambda n: Node(jnp.sin(n.value), n.name))
    served(f, (Node(X, "a"),))
    assert calque.vmap(lambda v: f(Node(v, "a")).value)(jnp.ones((2, 3))).shape == (2, 3)
    assert float(calque.grad(lambda v: f(Node(v, "a")).value.sum())(jnp.zeros(3))[0]) == 1.0
    assert f(Node(jnp.ones(4), "a")).value.shape == (4,)  # another size
    assert f(Node(jnp.ones(3, int), "a")).value.dtype == jnp.float32
    calque.config.update("calque_enable_x64", True)
    try:
        assert f(Node(jnp.ones(3), "a")).value.dtype == jnp.float64
    finally:
        calque.config.update("calque_enable_x64", False)
    factor = [2.0]
    g = calque.jit(lambda n: n.value * factor[0], on_stale="retrace")
    served(g, (Node(X, "a"),))
    factor[0] = 3.0
    np.testing.assert_array_equal(g(Node(X, "a")), 3 * np.arange(3.0))
    donated = calque.jit(lambda n: Node(n.value + 1, n.name), donate_argnums=0)
    served(donated, *[(Node(jnp.ones(3), "a"),) for _ in range(0)])
    for _ in range(4):
        node = Node(jnp.ones(3), "a")
        assert float(donated(node).value[0]) == 2.0 and node.value.is_deleted()

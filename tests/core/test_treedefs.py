"""Structures: the order of dicts that are made, what a structure tells of itself, pickles."""

from collections import OrderedDict, defaultdict

import pytest

import calque
from calque.core import pytrees

GIVEN = {"b": 1.0, "a": {"z": 2.0, "y": 3.0}}


@pytest.mark.parametrize(
    "made",
    [
        lambda m, d: m.tree.map(lambda x: x, d),
        lambda m, d: m.tree.map(lambda a, b: a + b, d, {"a": {"y": 0, "z": 0}, "b": 0}),
        lambda m, d: m.tree.unflatten(m.tree.structure(d), [3.0, 2.0, 1.0]),
        lambda m, d: m.tree.structure(d).unflatten([3.0, 2.0, 1.0]),
        lambda m, d: m.jit(lambda x: x)(d),
        lambda m, d: m.jit(lambda: d)(),
        lambda m, d: m.grad(lambda x: x["b"] + x["a"]["z"] * x["a"]["y"])(d),
        lambda m, d: m.vmap(lambda _: d)(m.numpy.ones(1)),
        lambda m, d: m.eval_shape(lambda x: x, d),
        lambda m, d: m.tree.map(lambda x: x, [d, (d, None)])[1][0],
    ],
)
def test_made_dicts_have_sorted_keys(made):
    out = made(calque, GIVEN)
    assert list(out) == ["a", "b"] and list(out["a"]) == ["y", "z"]
    again = made(calque, GIVEN)  # from what is kept, and by machine code
    assert list(again) == ["a", "b"] and list(again["a"]) == ["y", "z"]


def test_functions_see_dicts_in_order():
    seen = []
    calque.jit(lambda d: seen.append((list(d), list(d["a"]))))(GIVEN)
    assert seen == [(["a", "b"], ["y", "z"])]


def test_other_dicts():
    kept = OrderedDict([("b", 1), ("a", 2)])
    assert list(calque.tree.map(lambda x: x, kept)) == ["b", "a"]
    made = calque.tree.map(lambda x: x, defaultdict(list, {"b": 1, "a": 2}))
    assert list(made) == ["a", "b"] and made["c"] == []
    assert calque.tree.map(lambda x: x, {True: 1, False: 2}) == {False: 2, True: 1}
    assert [type(k) for k in calque.tree.map(lambda x: x, {2: 1, 1: 2})] == [int, int]
    assert [type(k) for k in calque.tree.map(lambda x: x, {2.0: 1, 1.0: 2})] == [float, float]


def test_what_cannot_be_hashed():
    class Box:
        def __init__(self, x, y):
            self.x, self.y = x, y

    calque.tree_util.register_pytree_node(Box, lambda b: ((b.x,), [b.y]), lambda y, x: Box(*x, *y))
    for tree in (Box({"b": 1, "a": 2}, 5), [Box({"b": 1, "a": 2}, 5)]):
        made = calque.tree.map(lambda x: x, tree)
        box = made if isinstance(made, Box) else made[0]
        assert list(box.x) == ["a", "b"] and box.y == 5


@pytest.mark.peer
def test_jax_makes_the_same():
    jax = pytest.importorskip("jax")
    trees = [
        GIVEN,
        {"c": [1, {"b": 2, "a": (3, {"y": 1, "x": 2})}], "b": None},
        defaultdict(int, GIVEN),
        OrderedDict([("b", {"d": 1, "c": 2}), ("a", 3)]),
        {3: 1, 1: 2},
    ]
    for tree in trees:
        assert repr(calque.tree.map(lambda x: x, tree)) == repr(jax.tree.map(lambda x: x, tree))


def test_auxiliary_data_that_has_no_hash_is_compared_only():
    class Noted:
        def __init__(self, x, notes):
            self.x, self.notes = x, notes

    calque.tree_util.register_pytree_node(
        Noted, lambda n: ((n.x,), n.notes), lambda notes, x: Noted(*x, notes)
    )
    same = [pytrees.structure([Noted(1.0, {"a": [1]}), 2]) for _ in range(2)]
    other, longer = pytrees.structure([Noted(1.0, {"a": [2]}), 2]), pytrees.structure([1, 2])
    assert same[0] == same[1] and hash(same[0]) == hash(same[1]) and same[0] != other
    assert len({*same, other, longer}) == 3
    traced = []
    f = calque.jit(lambda t: traced.append(t.notes) or t.x * len(t.notes))
    assert f(Noted(2.0, {"a": [1]})) == f(Noted(2.0, {"a": [1]})) == 2.0
    assert f(Noted(2.0, {"a": [1], "b": 0})) == 4.0 and len(traced) == 2
    g = calque.jit(lambda x, s: x + s.num_leaves, static_argnums=1)
    assert g(1.0, same[0]) == g(1.0, other) == 3.0

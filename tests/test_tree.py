"""The module tree: functions over trees."""

import collections
from typing import Any

import pytest

from calque import tree
from tests.shared import Pair, Static


def test_folding_transposing_broadcasting() -> None:
    assert tree.reduce(lambda a, b: a + b, [1, (2, 3)], 10) == 16
    assert (
        tree.reduce_associative(lambda a, b: f"({a}{b})", list("abcdefg")) == "((a(bc))((de)(fg)))"
    )
    assert tree.reduce_associative(max, [], identity=7) == 7
    with pytest.raises(TypeError, match="identity"):
        tree.reduce_associative(max, [])
    assert tree.transpose(tree.structure([0, 0]), None, [(1, 2, 3), (4, 5, 6)]) == (
        [1, 4],
        [2, 5],
        [3, 6],
    )
    with pytest.raises(TypeError, match="Mismatch"):
        tree.transpose(tree.structure([0, 0]), tree.structure((0, 0)), [(1, 2, 3), (4, 5, 6)])
    assert tree.broadcast([1, 2], [(3, 4), 5]) == [(1, 1), 2]
    assert tree.all([True, 1]) and not tree.all([True, 0])
    assert tree.map(lambda x: 0 if x is None else x, [1, None], is_leaf=lambda x: x is None) == [
        1,
        0,
    ]


MISMATCHES = [
    ({"a": 1}, {"b": 1}, "different pytree metadata at key path"),
    ({"a": 1}, {"a": 1, "b": 2}, "symmetric difference on key sets is\n    b"),
    (
        [1, 2],
        (1, 2),
        (
            "subtree of type\n    <class 'list'>\nbut at the same key path the full pytree has a"
            " subtree of different type"
        ),
    ),
    (
        [1, 2],
        [1],
        "list of length 2, but the full pytree has a subtree of the same type but of length 1",
    ),
    ([1, {"q": (2,)}], [1, {"q": 2}], r"tree\[1\]\['q'\]"),
    ([None], [1], "NoneType"),
    (Pair(1, 2), Pair(1, 2, "other"), "with metadata\n    aux"),
]


@pytest.mark.parametrize("left, right, message", MISMATCHES)
def test_differing_trees_are_refused(left: Any, right: Any, message: str) -> None:
    with pytest.raises(ValueError, match="pytree structure error") as error:
        tree.map(lambda a, b: a, left, right)
    error.match(message)


def test_errors_of_the_mapped_function_come_through() -> None:
    def bad(a: int, b: int) -> int:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        tree.map(bad, [1], [2])


def test_equality_of_structures() -> None:
    assert tree.structure({"a": 1}) != tree.structure({"b": 1})
    assert tree.structure((Static(1),)) != tree.structure((Static(2),))
    assert tree.structure(collections.OrderedDict(a=1)) != tree.structure({"a": 1})
    assert hash(tree.structure({"a": Pair(1, 2)})) == hash(tree.structure({"a": Pair(3, 4)}))

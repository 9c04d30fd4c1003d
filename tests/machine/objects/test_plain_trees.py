"""Trees in plain Python, and that machine code says the same of every tree."""

from __future__ import annotations

import gc
import itertools
import random
import sys
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Iterator
from typing import Any

import pytest

from calque.machine.objects import plain_trees
from calque.machine.objects.plain_trees import Functions, kinds, sorted_keys
from calque.machine.objects.pyapi import IS_KNOWN

Pair = namedtuple("Pair", "x y")


class Box:
    """A container of items with a label."""

    def __init__(self, items: Any, label: Any) -> None:
        self.items, self.label = items, label

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Box) and (list(self.items), self.label) == (
            list(other.items),
            other.label,
        )


TREES = [
    3,
    None,
    (),
    [],
    {},
    [1, (2, None)],
    {"b": 1, "a": [2, {"c": None}]},
    {2: 1, "a": 3, None: 5},
    OrderedDict(b=1, a=2),
    defaultdict(int, k=1, a=2),
    deque([1, (2,)], 5),
    Pair(1, [2, 3]),
    Box([1, Box((), "inner")], "label"),
    [Box([{"y": 1, "x": 2}], 7), sys.float_info],
]


@pytest.fixture(autouse=True)
def _boxes() -> Iterator[None]:
    kinds[Box] = (lambda b: (b.items, b.label), lambda label, items: Box(items, label))
    yield
    del kinds[Box]


def both() -> list[Any]:
    """The functions in plain Python, and those of machine code where there are some."""
    if not IS_KNOWN:
        return [plain_trees.functions]
    from calque.machine.objects import trees

    return [plain_trees.functions, trees.made()]


WAYS = pytest.mark.parametrize("way", both(), ids=["plain", "machine"][: len(both())])


@WAYS
@pytest.mark.parametrize("tree", TREES, ids=range(len(TREES)))
def test_there_and_back(way: Functions, tree: Any) -> None:
    leaves, code = way.flatten(tree, None)
    assert (leaves, code) == plain_trees.tree_flatten(tree, None)
    assert way.leaves(tree, None) == leaves == way.follow(code, tree)
    assert way.unflatten(code, len(leaves), iter(leaves)) == tree
    assert type(way.unflatten(code, len(leaves), leaves)) is type(tree)


@WAYS
def test_what_begins_like_another_tree(way: Functions) -> None:
    for tree in TREES:
        _, code = way.flatten(tree, None)
        for other in TREES:
            assert way.follow(code, other) == plain_trees.tree_follow(code, other)
    assert way.follow(way.flatten((1, [2]), None)[1], ({"a": 1}, [Pair(1, 2)])) == [
        {"a": 1},
        Pair(1, 2),
    ]
    assert way.follow(way.flatten(Box([1], "a"), None)[1], Box([1], "b")) is None
    assert way.follow(way.flatten({"a": 1, "b": 2}, None)[1], {"a": 1, "c": 2}) is None


@WAYS
def test_a_function_says_what_a_leaf_is(way: Functions) -> None:
    seen: list[Any] = []

    def is_leaf(x: Any) -> Any:
        seen.append(x)
        return x is None or isinstance(x, list)

    leaves, code = way.flatten((None, {"a": [1, 2]}), is_leaf)
    assert leaves == [None, [1, 2]] and code == (tuple, None, 2, None, dict, ("a",), 1, None)
    assert seen == [(None, {"a": [1, 2]}), None, {"a": [1, 2]}, [1, 2]]
    assert way.leaves([1], lambda x: True) == [[1]]


class Refusal(Exception):
    """What a function of the user's raises."""


def refuse(*_: Any) -> Any:
    raise Refusal


class Untrue:
    """Has no truth value."""

    __bool__ = refuse


@WAYS
def test_what_the_users_functions_raise_comes_through(way: Functions) -> None:
    for is_leaf in (refuse, lambda x: Untrue()):
        with pytest.raises(Refusal):
            way.flatten([1, 2], is_leaf)
        with pytest.raises(Refusal):
            way.leaves([1, 2], is_leaf)
    _, code = way.flatten([Box([1], 2), 3], None)
    kinds[Box] = (refuse, refuse)
    for call in (
        lambda: way.flatten([Box([1], 2)], None),
        lambda: way.follow(code, [Box([1], 2), 3]),
        lambda: way.unflatten(code, 2, [1, 2]),
    ):
        with pytest.raises(Refusal):
            call()


@WAYS
@pytest.mark.parametrize("made", [None, 3, (1, 2, 3), (5, "aux"), [[1]]])
def test_a_class_that_gives_no_pair(way: Functions, made: Any) -> None:
    kinds[Box] = (lambda b: made, lambda label, items: Box(items, label))
    with pytest.raises(ValueError, match=r"should return a \(children, aux_data\) tuple"):
        way.flatten([Box((), 0)], None)


@WAYS
def test_children_of_any_form(way: Functions) -> None:
    for children in ([1, 2], iter([1, 2]), {1: 0, 2: 0}, (1, 2)):
        kinds[Box] = (lambda b, c=children: [c, "aux"], lambda label, items: Box(items, label))
        assert way.flatten(Box((), 0), None) == ([1, 2], (Box, "aux", 2, None, None))


@WAYS
@pytest.mark.parametrize(("count", "word"), [(1, "few"), (3, "many")])
def test_too_few_and_too_many_leaves(way: Functions, count: int, word: str) -> None:
    with pytest.raises(ValueError, match=f"Too {word} leaves for PyTreeDef; expected 2, got"):
        way.unflatten((list, None, 2, None, None), 2, range(count))
    with pytest.raises(TypeError):
        way.unflatten((None,), 1, 5)  # type: ignore[arg-type]


@WAYS
def test_trees_that_are_too_deep(way: Functions) -> None:
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(RecursionError):
        way.flatten(deep, None)
    code = (list, None, 1) * 100_000 + (None,)
    with pytest.raises(RecursionError):
        way.unflatten(code, 1, [1])
    with pytest.raises(RecursionError):
        way.follow(code, deep)
    while isinstance(deep, list):  # so that its end needs no depth
        deep = deep.pop()
    assert way.leaves([[[1]]], None) == [1]  # the depth was given back


@WAYS
def test_what_changes_while_it_is_looked_at(way: Functions) -> None:
    tree = [1, [2, 3], 4]

    def clears(x: Any) -> bool:
        if x == 1:
            tree.clear()
        return False

    leaves, code = way.flatten(tree, clears)
    assert leaves == [1, 2, 3, 4] and code[:3] == (list, None, 3)


@WAYS
def test_nothing_is_kept_or_lost(way: Functions) -> None:
    leaf, aux = object(), ("label",)
    tree = {"b": [leaf, Box((leaf,), aux)], "a": Pair(leaf, (None, leaf))}

    def rounds() -> None:
        for _ in range(100):
            leaves, code = way.flatten(tree, lambda x: False)
            way.unflatten(code, len(leaves), leaves)
            way.follow(code, tree)
            for bad in ((code, [1]), (code, tree["b"])):
                assert way.follow(*bad) is None

    rounds()
    gc.collect()
    before = (
        sys.getrefcount(leaf),
        sys.getrefcount(aux),
        sys.getrefcount(Box),
        len(gc.get_objects()),
    )
    rounds()
    gc.collect()
    after = sys.getrefcount(leaf), sys.getrefcount(aux), sys.getrefcount(Box), len(gc.get_objects())
    assert after[:3] == before[:3] and after[3] - before[3] < 50


def _random_tree(draw: random.Random, depth: int) -> Any:
    if depth == 0 or draw.random() < 0.2:
        return draw.choice([1, 2.5, None, "text"])
    parts = [_random_tree(draw, depth - 1) for _ in range(draw.randrange(4))]
    return draw.choice(
        [
            lambda: parts,
            lambda: tuple(parts),
            lambda: {draw.choice("abcdefgh") + str(i): p for i, p in enumerate(parts)},
            lambda: OrderedDict((str(i), p) for i, p in enumerate(parts)),
            lambda: deque(parts),
            lambda: Box(parts, len(parts)),
            lambda: Pair(*(parts + [0, 0])[:2]),
        ]
    )()


@WAYS
def test_random_trees(way: Functions) -> None:
    draw = random.Random(3)
    trees = [_random_tree(draw, 5) for _ in range(300)]
    for tree, other in itertools.pairwise(trees):
        found = plain_trees.tree_flatten(tree, None)
        assert way.flatten(tree, None) == found
        leaves, code = found
        assert way.unflatten(code, len(leaves), leaves) == tree
        assert way.follow(code, other) == plain_trees.tree_follow(code, other)


def test_keys_that_have_no_order() -> None:
    assert sorted_keys({2: 0, "a": 0, 1: 0, "b": 0}) == (1, 2, "a", "b")
    keys = (1j, 2j)
    assert sorted_keys(dict.fromkeys(keys)) == keys

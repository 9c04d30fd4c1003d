"""Trees: structures, paths, prefixes, and what two trees differ in."""

import pickle
from collections import OrderedDict, defaultdict, namedtuple

import numpy as np
import pytest

import calque
from calque.core import pytrees
from calque.core.key_paths import GetAttrKey, keystr

Point = namedtuple("Point", "x y")
TREES = [
    3,
    None,
    (),
    [1, (2, None)],
    {"b": 1, "a": [2]},
    OrderedDict(b=1, a=2),
    defaultdict(int, k=1),
    Point(1, [2, 3]),
]


class Box:
    def __init__(self, items, label):
        self.items, self.label = list(items), label


pytrees.register(
    Box,
    lambda b: (b.items, b.label),
    lambda label, items: Box(items, label),
    keys=lambda b: [GetAttrKey("i")] * len(b.items),
)


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_there_and_back(tree):
    leaves, structure = pytrees.flatten(tree)
    assert pytrees.unflatten(structure, leaves) == tree and structure.num_leaves == len(leaves)
    again = pytrees.structure(tree)
    assert again == structure and hash(again) == hash(structure)
    assert pickle.loads(pickle.dumps(structure)) == structure


def test_structures_that_differ():
    different = {pytrees.structure(t) for t in TREES}
    assert len(different) == len(TREES)
    assert pytrees.structure((1, 2)) != pytrees.structure([1, 2])
    assert pytrees.structure(Box([1], "a")) != pytrees.structure(Box([1], "b"))


def test_mapping_over_several_trees():
    out = pytrees.tree_map(lambda a, b: (a, b), {"x": 1, "y": [2]}, {"x": 10, "y": [[20]]})
    assert out == {"x": (1, 10), "y": [(2, [20])]}
    with pytest.raises(ValueError):
        pytrees.tree_map(lambda a, b: a, (1, 2), (1, 2, 3))
    assert pytrees.tree_map(lambda a: 0, [None, 1], is_leaf=lambda x: x is None) == [0, 0]


def test_structures_of_structures():
    pair = pytrees.structure((1, 2))
    assert pair.compose(pytrees.structure([1])) == pytrees.structure(([1], [1]))
    assert pytrees.treedef_tuple([pair, pytrees.LEAF]) == pytrees.structure(((1, 2), 3))
    assert [c.is_leaf() for c in pair.children()] == [True, True] and pair.type is tuple
    assert pair.flatten_up_to(([1], {"a": 2})) == [[1], {"a": 2}]
    assert pytrees.structure({"b": 1, "a": 2}).node_data() == (dict, ["a", "b"])
    assert pytrees.LEAF.node_data() is None


def test_paths():
    found, _ = pytrees.flatten_with_path({"w": [Point(1, 2)], "b": Box([5], "l")})
    named = [(keystr(path), leaf) for path, leaf in found]
    assert named == [("['b'].i", 5), ("['w'][0].x", 1), ("['w'][0].y", 2)]
    assert keystr(found[1][0]) == "['w'][0].x"
    assert keystr(found[1][0], simple=True, separator="/") == "w/0/x"


def test_a_tree_without_leaves_is_flattened_once_for_its_paths():
    calls = []

    class Empty:
        pass

    def flat(x):
        calls.append("children")
        return (), None

    pytrees.register(Empty, flat, lambda _, __: Empty(), lambda x: calls.append("keys") or ())
    found, treedef = pytrees.flatten_with_path(Empty())
    assert found == [] and treedef == pytrees.structure(Empty()) and calls[0] == "children"
    assert calls.count("children") == 2 and "keys" not in calls  # once here, once by `structure`


def test_prefixes():
    full = {"a": (1, 2), "b": [3]}
    assert pytrees.prefix_broadcast({"a": 0, "b": 1}, full) == [0, 0, 1]
    assert pytrees.prefix_broadcast(7, full) == [7, 7, 7]
    with pytest.raises(ValueError):
        pytrees.prefix_broadcast({"a": (0, 0, 0), "b": 1}, full)


def test_differences_are_told():
    assert pytrees.difference({"a": 0}, {"a": (1, 2)}) is None
    for prefix, full, word in (
        ({"a": 0}, {"b": 0}, "b"),
        ((1, 2), (1, 2, 3), "3"),
        ([1], (1,), "tuple"),
    ):
        assert word in str(pytrees.difference(prefix, full))


def test_what_is_a_container():
    assert pytrees.is_registered(dict) and pytrees.is_registered(Box)
    assert pytrees.is_node_type(Point) and not pytrees.is_node_type(str)
    children, data, _ = pytrees.one_level(Box([1, [2]], "label"))
    assert (list(children), data) == ([1, [2]], "label")
    with pytest.raises(ValueError):
        pytrees.register(Box, lambda b: ((), None), lambda d, c: Box(c, d))


def test_every_difference_is_said():
    left, right = {"a": [1, (2,)], "b": (3, 4)}, {"a": [1, 5], "b": (3,)}
    first, second = pytrees.differences(left, right, name="spec")
    assert "different types at key path\n    spec['a'][1]\n" in first
    assert "lengths of tuple at key path\n    spec['b']\n" in second
    assert "the prefix pytree spec has a subtree" in first
    assert pytrees.difference(left, left) is None


def test_what_a_node_holds_is_compared_without_frames() -> None:
    """Structures of custom nodes are compared, and hashed, as tuples are; errors say what is
    wrong."""

    class Held:
        def __init__(self, aux):
            self.aux = aux

    pytrees.register(Held, lambda h: ((1,), h.aux), lambda aux, _: Held(aux))
    nan = float("nan")
    assert pytrees.structure(Held(nan)) == pytrees.structure(Held(nan))  # the same object
    assert pytrees.structure(Held("a")) != pytrees.structure(Held("b"))
    assert hash(pytrees.structure(Held("a"))) == hash(pytrees.structure(Held("a")))
    assert pytrees.unflatten(pytrees.structure(Held("a")), [1]).aux == "a"
    assert pytrees.structure(Held("a")).node_data() == (Held, "a")
    arrays = [pytrees.structure(Held(np.arange(3))) for _ in range(2)]
    with pytest.raises(ValueError, match="checking equality of metadata fields"):
        assert arrays[0] == arrays[1]


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        ({"a": 1}, OrderedDict(a=1), "Expected dict, got OrderedDict"),
        ([{"a": 1}], [defaultdict(int, a=1)], "Expected dict, got defaultdict"),
        (OrderedDict(a=1), {"a": 1}, "Custom node type mismatch"),
        (OrderedDict(a=1, b=2), OrderedDict(b=1, a=2), r"\('a', 'b'\) != \('b', 'a'\)"),
        (defaultdict(int, a=1), defaultdict(list, a=1), "Mismatch custom node data"),
        ({"a": 1}, {"a": 1, "b": 2}, r"present keys: \['a', 'b'\]"),
    ],
)
def test_kinds_of_dicts_are_different_structures(one, other, message):
    assert pytrees.structure(one).flatten_up_to(one) == pytrees.leaves(one)
    with pytest.raises(ValueError, match=message):
        pytrees.structure(one).flatten_up_to(other)


def test_a_named_tuple_that_somebody_registered_has_the_children_it_says():
    class Kept(namedtuple("Kept", "x note")):
        pass

    pytrees.register(Kept, lambda k: ((k.x,), k.note), lambda note, x: Kept(*x, note))
    tree = [Kept(1, "a"), Point(2, 3)]
    found, treedef = pytrees.flatten_with_path(tree)
    assert [(keystr(p), x) for p, x in found] == [
        ("[0][<flat index 0>]", 1),
        ("[1].x", 2),
        ("[1].y", 3),
    ]
    assert pytrees.unflatten(treedef, [4, 5, 6]) == [Kept(4, "a"), Point(5, 6)]
    assert calque.jit(lambda t: t)(tree) == tree


def test_what_nodes_hold_that_differs_is_shown():
    with pytest.raises(ValueError, match="different pytree metadata at key path") as caught:
        calque.tree.map(lambda *xs: xs, {"t": {"ab": 1}}, {"t": {"ac": 1}})
    shown = str(caught.value).partition("so the diff in the metadata at these pytree nodes is\n")[2]
    assert [line.strip() for line in shown.splitlines()][::3] == ["- ('ab',)", "+ ('ac',)"]

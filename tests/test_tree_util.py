"""tree_util: structures and key paths as JAX prints them, registration, errors."""

import collections
import dataclasses
from typing import Any

import pytest

from calque import tree, tree_util
from tests.shared import Pair, Static

Point = collections.namedtuple("Point", "x y")


class Keyed(Pair):
    pass


@tree_util.register_dataclass
@dataclasses.dataclass
class Layer:
    w: Any
    b: Any
    name: str = tree.static(default="dense")


tree_util.register_pytree_node(Pair, lambda p: ((p.a, p.b), p.aux), lambda aux, c: Pair(*c, aux))
tree_util.register_pytree_with_keys(
    Keyed,
    lambda p: (((tree_util.GetAttrKey("a"), p.a), (tree_util.GetAttrKey("b"), p.b)), None),
    lambda aux, c: Keyed(*c),
)

STRUCTURES = [
    (3, "*"),
    (None, "None"),
    ((), "()"),
    ((1,), "(*,)"),
    ([1, (2, 3)], "[*, (*, *)]"),
    ({"b": 1, "a": (2, None)}, "{'a': (*, None), 'b': *}"),
    (Point(1, [2]), "CustomNode(namedtuple[Point], [*, [*]])"),
    (collections.OrderedDict(z=1, a=2), "CustomNode(OrderedDict[('z', 'a')], [*, *])"),
    (collections.defaultdict(list, u=1), "CustomNode(defaultdict[(<class 'list'>, ('u',))], [*])"),
    (Pair(1, [2]), "CustomNode(Pair[aux], [*, [*]])"),
    (Keyed(1, 2), "CustomNode(Keyed[None], [*, *])"),
    (Layer(1, 2), "CustomNode(Layer[('dense',)], [*, *])"),
    (Static(1), "CustomNode(Static[Static(1)], [])"),
    (
        tree_util.Partial(max, 1, k=2),
        "CustomNode(Partial[<built-in function max>], [(*,), {'k': *}])",
    ),
]


@pytest.mark.parametrize("value, text", STRUCTURES, ids=lambda v: type(v).__name__)
def test_structures_print_as_in_jax(value: Any, text: str) -> None:
    leaves, treedef = tree_util.tree_flatten(value)
    assert repr(treedef) == f"PyTreeDef({text})"
    assert treedef.num_leaves == len(leaves) == text.count("*")
    assert tree_util.tree_structure(treedef.unflatten(leaves)) == treedef


def test_key_paths() -> None:
    value = {"d": [1, Point(2, 3)], "k": Keyed(4, Pair(5, 6)), "l": Layer(7, None)}
    paths = [tree_util.keystr(p) for p, _ in tree_util.tree_leaves_with_path(value)]
    assert paths == [
        "['d'][0]",
        "['d'][1].x",
        "['d'][1].y",
        "['k'].a",
        "['k'].b[<flat index 0>]",
        "['k'].b[<flat index 1>]",
        "['l'].w",
    ]
    simple = [
        tree_util.keystr(p, simple=True, separator="/")
        for p, _ in tree_util.tree_leaves_with_path(value)
    ]
    assert simple[:5] == ["d/0", "d/1/x", "d/1/y", "k/a", "k/b/0"]
    assert [repr(k) for k in tree_util.tree_leaves_with_path(value)[1][0]] == [
        "DictKey(key='d')",
        "SequenceKey(idx=1)",
        "GetAttrKey(name='x')",
    ]


def test_leaves_chosen_by_path() -> None:
    found = tree_util.tree_leaves_with_path(
        {"a": [1, {"c": 2}]}, is_leaf=lambda p, x: len(p) == 2, is_leaf_takes_path=True
    )
    assert [(tree_util.keystr(p), v) for p, v in found] == [("['a'][0]", 1), ("['a'][1]", {"c": 2})]
    mapped = tree.map_with_path(
        lambda p, x, y: (tree_util.keystr(p), x + y), [1, (2,)], [10, (20,)]
    )
    assert mapped == [("[0]", 11), (("[1][0]", 22),)]


def test_one_level() -> None:
    assert tree_util.flatten_one_level({"b": 1, "a": [2]}) == ([[2], 1], ("a", "b"))
    assert tree_util.flatten_one_level_with_keys(Pair(1, 2)) == (
        [(tree_util.FlattenedIndexKey(0), 1), (tree_util.FlattenedIndexKey(1), 2)],
        "aux",
    )
    with pytest.raises(ValueError, match="can't tree-flatten type"):
        tree_util.flatten_one_level(3)
    assert [tree_util.is_tree_node(t) for t in (int, dict, Point, Pair, type(None))] == [
        False,
        True,
        True,
        True,
        True,
    ]
    assert tree_util.default_registry.flatten([1])[0] == [1]
    assert tree_util.all_leaves([1, 2]) and not tree_util.all_leaves([1, None])
    assert [repr(d) for d in tree_util.treedef_children(tree.structure({"a": 1, "b": [1]}))] == [
        "PyTreeDef(*)",
        "PyTreeDef([*])",
    ]
    assert (
        repr(tree_util.treedef_tuple([tree.structure(1), tree.structure([1])]))
        == "PyTreeDef((*, [*]))"
    )
    assert tree.structure(Pair(1, 2)).node_data() == (Pair, "aux")
    assert tree.structure([1]).node_data() == (list, None) and tree.structure(1).node_data() is None


def test_partials() -> None:
    p = tree_util.Partial(tree_util.Partial(max, 1), 2)
    assert p() == 2 and tree.leaves(p) == [2]
    assert tree.structure(p) == tree.structure(tree_util.Partial(tree_util.Partial(max, 1), 5))
    assert tree.map(lambda x: x + 1, p)() == 3


def test_registration_is_checked() -> None:
    with pytest.raises(ValueError, match="Duplicate custom PyTreeDef type registration"):
        tree_util.register_pytree_node(Pair, lambda p: ((), None), lambda aux, c: None)

    @dataclasses.dataclass
    class Two:
        x: int = 0
        y: int = 0

    for kwargs, error, message in (
        ({"data_fields": ["x"], "meta_fields": []}, ValueError, "Missing fields: {'y'}"),
        ({"data_fields": ["x"], "meta_fields": ["y", "z"]}, ValueError, "Unexpected fields: {'z'}"),
        (
            {"data_fields": ["x"], "meta_fields": ["x", "y"]},
            ValueError,
            "Overlapping fields: {'x'}",
        ),
        ({"data_fields": ["x"]}, TypeError, "must both be specified"),
    ):
        with pytest.raises(error, match=message):
            tree_util.register_dataclass(Two, **kwargs)
    with pytest.raises(TypeError, match="required when nodetype is not a dataclass"):
        tree_util.register_dataclass(int)


@pytest.mark.parametrize(
    ("prefix", "tree", "message"),
    [
        ([1, 2], [7], r"List arity mismatch: 1 != 2; list: \[7\]"),
        ({"a": 1}, {"b": 7}, r"Dict key mismatch; expected keys: \['a'\]"),
        ({"a": (1,)}, {"a": [7]}, r"Expected tuple, got \[7\]"),
        ([Point(1, 2)], [(1, 2)], r"Expected named tuple, got \(1, 2\)"),
        (None, [2], r"Expected None, got \[2\]"),
    ],
)
def test_what_a_tree_lacks_is_said(prefix, tree, message):
    with pytest.raises(ValueError, match=message):
        tree_util.tree_structure(prefix).flatten_up_to(tree)


def test_structures_as_bytes():
    treedef = tree_util.tree_structure([1, (2, None), {"k": {"l": 3}}])
    made = tree_util.PyTreeDef.deserialize_using_proto(
        tree_util.default_registry, treedef.serialize_using_proto()
    )
    assert made == treedef
    with pytest.raises(ValueError, match="only tuples, lists, dicts and None"):
        tree_util.tree_structure(Pair(1, 2)).serialize_using_proto()


def test_walk_goes_through_containers_from_below():
    treedef = tree_util.tree_structure({"b": 2, "a": [1, 3]})
    seen = []
    out = treedef.walk(
        lambda parts, data: (seen.append(data), sum(parts))[1], lambda x: -x, [1, 2, 3]
    )
    assert out == -6 and seen == [None, ["a", "b"]]


@pytest.mark.parametrize("made", ["hello", (1, 2, 3), 5])
def test_a_flatten_function_must_give_a_pair(made):
    class Bad:
        pass

    tree_util.register_pytree_node(Bad, lambda x: made, lambda aux, children: Bad())
    with pytest.raises(ValueError, match=r"should return a \(children, aux_data\) tuple, got"):
        tree_util.tree_flatten(Bad())


def test_mapping_with_paths_over_trees_that_differ():
    with pytest.raises(ValueError, match=r"pytree structure error.*different types"):
        tree_util.tree_map_with_path(lambda path, *x: x, {"a": [1, 2]}, {"a": None})

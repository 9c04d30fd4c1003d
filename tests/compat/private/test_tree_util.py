"""The table of container types, one level of a container, errors of prefixes."""

import pytest

import calque
from calque.compat.private import tree_util


def test_registry_of_containers():
    class Plain:
        pass

    @calque.tree_util.register_pytree_node_class
    class Node:
        def tree_flatten(self):
            return (), None

        @classmethod
        def tree_unflatten(cls, aux, children):
            return cls()

    registry = tree_util._registry
    assert list in registry and dict in registry and type(None) in registry and Node in registry
    assert Plain not in registry and int not in registry
    assert tree_util.flatten_one_level((1, [2, 3])) == ([1, [2, 3]], None)


@pytest.mark.parametrize("tree", [(1, [2, 3]), [1, None], {"b": 1, "a": (2,)}, (), {"x": {}}])
def test_one_level(tree):
    children, _ = tree_util.flatten_one_level(tree)
    if isinstance(tree, dict):
        assert children == [tree[k] for k in sorted(tree)]
    else:
        assert children == list(tree)


def test_leaves_have_no_levels():
    with pytest.raises(ValueError, match="can't tree-flatten type"):
        tree_util.flatten_one_level(3)


def test_errors_of_prefixes():
    assert tree_util.prefix_errors((1, 2), ((1, 2), {"a": 3})) == []
    errors = tree_util.prefix_errors({"a": (1, 2), "b": [1]}, {"a": (1, 2, 3), "b": (1,)})
    assert len(errors) == 2
    texts = [str(e("in_axes")) for e in errors]
    assert all("in_axes" in t and isinstance(e("x"), ValueError) for t, e in zip(texts, errors))
    assert "['a']" in texts[0] and "['b']" in texts[1]
    none = tree_util.prefix_errors((None,), ((1, 2),), is_leaf=lambda x: x is None)
    assert none == []
    assert calque.tree_util.tree_structure is tree_util.tree_structure

"""Classes of users as containers of trees."""

import dataclasses

import pytest

from calque.core import containers, pytrees
from calque.core.key_paths import GetAttrKey, keystr


def test_a_class_by_functions_and_by_methods():
    class Pair:
        def __init__(self, x, y):
            self.x, self.y = x, y

        def tree_flatten(self):
            return (self.x, self.y), "kept"

        def tree_flatten_with_keys(self):
            return [(GetAttrKey("x"), self.x), (GetAttrKey("y"), self.y)], "kept"

        @classmethod
        def tree_unflatten(cls, aux, children):
            assert aux == "kept"
            return cls(*children)

    by_methods = containers.register_pytree_node_class(type("A", (Pair,), {}))
    by_keys = containers.register_pytree_with_keys_class(type("B", (Pair,), {}))
    by_functions = type("C", (Pair,), {})
    containers.register_pytree_node(
        by_functions, lambda p: ((p.x, p.y), None), lambda aux, c: by_functions(*c)
    )
    for cls in (by_methods, by_keys, by_functions):
        leaves, treedef = pytrees.flatten(cls(1, [2, 3]))
        assert leaves == [1, 2, 3]
        assert pytrees.unflatten(treedef, [4, 5, 6]).y == [5, 6]
    paths = [keystr(p) for p, _ in pytrees.flatten_with_path(by_keys(1, [2]))[0]]
    assert paths == [".x", ".y[0]"]
    with pytest.raises(ValueError, match="Duplicate custom PyTreeDef type registration"):
        containers.register_pytree_node_class(by_methods)


def test_dataclasses_and_static_objects():
    @containers.register_dataclass
    @dataclasses.dataclass
    class Layer:
        w: float
        name: str = dataclasses.field(default="a", metadata={"static": True})

    leaves, treedef = pytrees.flatten(Layer(1.0, "b"))
    assert leaves == [1.0] and pytrees.unflatten(treedef, [2.0]) == Layer(2.0, "b")

    @containers.register_static
    @dataclasses.dataclass(frozen=True)
    class Choice:
        name: str

    assert pytrees.leaves([Choice("x"), 1]) == [1]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"data_fields": ["x"]}, "must both be specified"),
        ({"data_fields": ["x"], "meta_fields": ["x"]}, "must not overlap"),
        ({"data_fields": ["x"], "meta_fields": []}, "Missing fields: {'y'}"),
        ({"data_fields": ["x", "y", "z"], "meta_fields": []}, "Unexpected fields: {'z'}"),
    ],
)
def test_fields_that_do_not_fit(fields, message):
    made = dataclasses.make_dataclass("Made", ["x", "y"])
    with pytest.raises((TypeError, ValueError), match=message):
        containers.register_dataclass(made, **fields)
    with pytest.raises(TypeError, match="required when nodetype is not a dataclass"):
        containers.register_dataclass(int)

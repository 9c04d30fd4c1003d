"""The form of exported programs: types and trees are read as they were written."""

from __future__ import annotations

import collections
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from calque.core import pytrees
from calque.core.avals import ShapedArray
from calque.core.dtypes import float0
from calque.ops.random.keys import IMPLEMENTATIONS
from calque.xla.exporting.scopes import Scope
from calque.xla.exporting.written import (
    Node,
    maker,
    read_aval,
    read_tree,
    register_node,
    written_aval,
    written_tree,
)

KEYS = {impl.dtype.name: impl.dtype for impl in IMPLEMENTATIONS.values()}


@pytest.mark.parametrize(
    "dtype",
    ["bool", "int8", "uint64", "float16", "complex128", "bfloat16", "int4", "float8_e4m3fn"],
)
def test_types(dtype: str) -> None:
    aval = ShapedArray((2, 3), np.dtype(getattr(ml_dtypes, dtype, dtype)))
    assert read_aval(written_aval(aval), KEYS.__getitem__, Scope()) == aval


def test_types_that_numpy_does_not_know() -> None:
    """Of random keys those that the format has numbers for."""
    known = [KEYS[f"key<{name}>"] for name in ("fry", "rbg", "urbg")]
    for dtype in (float0, *known):
        aval = ShapedArray((4,), dtype)
        assert read_aval(written_aval(aval), KEYS.__getitem__, Scope()) == aval
    for dtype in set(KEYS.values()) - set(known):
        with pytest.raises(TypeError, match="exported programs have no arrays of key<"):
            written_aval(ShapedArray((4,), dtype))


def test_free_sizes() -> None:
    written = {**written_aval(ShapedArray((2,), np.dtype("f4"))), "shape": ["b", "2*b + 1"]}
    aval = read_aval(written, KEYS.__getitem__, Scope())
    assert str(aval.shape) == "(b, 2*b + 1)" and aval.shape[1] == 2 * aval.shape[0] + 1
    assert written_aval(aval) == written


Point = collections.namedtuple("Point", "x y")


class Box:
    """A container of the tests."""

    def __init__(self, content: Any, label: str) -> None:
        self.content, self.label = content, label


pytrees.register(
    Box, lambda b: ((b.content,), b.label), lambda label, children: Box(*children, label)
)
register_node(Node(Box, "tests.Box", str.encode, bytes.decode, maker(Box)))


@pytest.mark.parametrize(
    "tree",
    [
        1,
        None,
        (),
        [],
        {},
        (1, [2, {"b": 3, "a": (None, 4)}]),
        collections.OrderedDict([("z", 1), ("a", 2)]),
        {"box": Box((1, 2), "label")},
    ],
)
def test_trees(tree: Any) -> None:
    structure = pytrees.structure(tree)
    assert read_tree(written_tree(structure), range(structure.num_leaves)) == structure


def test_trees_that_cannot_be_written() -> None:
    with pytest.raises(ValueError, match=r"unregistered type .*Point"):
        written_tree(pytrees.structure(Point(1, 2)))
    with pytest.raises(TypeError, match=r"string keys\. Found key 1"):
        written_tree(pytrees.structure({1: 2}))
    with pytest.raises(ValueError, match="unregistered type `nobody`"):
        read_tree({"kind": 5, "children": None, "custom_name": "nobody"}, ())


def test_names_and_classes_are_registered_once() -> None:
    with pytest.raises(ValueError, match="Duplicate serialization registration for type"):
        register_node(Node(Box, "other", str.encode, bytes.decode, maker(Box)))
    with pytest.raises(ValueError, match=r"for serialized_name `tests\.Box`"):
        register_node(Node(Point, "tests.Box", str.encode, bytes.decode, maker(Box)))
    with pytest.raises(ValueError, match="you must call first"):
        maker(Point)

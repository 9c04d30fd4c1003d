"""How calls are described to machine code, and that it serves them so."""

import itertools
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.core import pytrees
from calque.machine.call import functions as callpath
from calque.transforms.jit.teaching import (
    Inexpressible,
    Lesson,
    argument,
    call_arguments,
    elsewhere,
    of_any_size,
    result_of,
    teach,
    with_leaves,
)


def described(x: Any) -> Any:
    return argument(x, itertools.count())


def test_arguments() -> None:
    x, y = jnp.ones((2, 3)), np.ones(4, np.float32)
    assert described(x) == ("array", x.aval, 0)
    assert described(y) == ("ndarray", y.dtype, (4,), 0)
    assert described(None) == ("none",) and described(1.5)[0] == "pyfloat"
    assert described([x, (x, None)]) == (
        "list",
        [("array", x.aval, 0), ("tuple", [("array", x.aval, 1), ("none",)])],
    )


def test_items_of_a_dict_are_inputs_in_the_order_of_their_keys() -> None:
    x, y = jnp.ones(2), jnp.ones(3)
    kind, items = described({"b": x, "a": y})
    assert kind == "dict" and list(items) == ["b", "a"]
    assert items == {"b": ("array", x.aval, 1), "a": ("array", y.aval, 0)}


def test_what_machine_code_does_not_know() -> None:
    swapped = np.ones(3, np.dtype(np.float32).newbyteorder())
    for x in (object(), {1: 1.0, "a": 2.0}, swapped, np.ones(3, [("a", "f4")])):
        with pytest.raises((Inexpressible, TypeError)):
            described(x)


def test_arguments_of_programs_elsewhere() -> None:
    """Their arrays say where they live, at any depth."""
    x, y, place = jnp.ones((2, 3)), np.ones((4, 5), np.float32), object()
    leaf = elsewhere([None, "unused", place])
    assert with_leaves(described((x, [y, x])), leaf) == (
        "tuple",
        [
            ("elsewhere", x.aval, None, 0),
            ("list", [("ndarray", y.dtype, (4, 5), 1), ("elsewhere", x.aval, place, 2)]),
        ],
    )


def test_arguments_of_any_size() -> None:
    """The same but for the sizes, at any depth."""
    x, y = jnp.ones((2, 3)), np.ones((4, 5), np.float32)
    assert with_leaves(described({"a": [x], "b": (y, 2)}), of_any_size) == (
        "dict",
        {
            "a": ("list", [("kind", x.aval, 0)]),
            "b": ("tuple", [("ndarray_kind", y.dtype, 2, 1), described(2)[:2] + (2,)]),
        },
    )


def test_static_arguments_are_values() -> None:
    x = jnp.ones(2)
    f = len
    assert call_arguments((3, x, f), {"mode": "a", "y": x}, (0, 2), ("mode",)) == [
        ("eq", 3),
        ("array", x.aval, 0),
        ("is", f),
        ("eq", "a"),
        ("array", x.aval, 1),
    ]


def test_results() -> None:
    tree = pytrees.structure({"a": (1, [2]), "b": None})
    assert result_of(tree) == (
        "dict",
        {"a": ("tuple", [("out", 0), ("list", [("out", 1)])]), "b": ("none",)},
    )


@pytest.mark.skipif(not callpath.LEARNS, reason="without machine code every call asks Python")
def test_a_taught_call_asks_nobody() -> None:
    jitted = calque.jit(lambda x, y: x + y)
    x = jnp.arange(3.0)
    asked = []
    function = callpath.Jitted(lambda args, kwargs: asked.append(args))
    executable = jitted._function.trace((x, x), {})[0].compiled()
    arguments = call_arguments((x, x), {}, (), ())
    teach(function, Lesson(arguments, executable.program, ("tuple", [("out", 0), ("none",)])))
    assert function(x, x)[0].tolist() == [0, 2, 4] and function(x, x)[1] is None and not asked
    function(x, jnp.arange(4.0))
    assert len(asked) == 1
    teach(function, Lesson(arguments, executable.program, ("out", 0)), number=callpath.epoch() + 1)
    assert callpath.entry_count(function) == 2 and len(function(x, x)) == 2

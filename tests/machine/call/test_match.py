"""Arguments against the description of an entry: what fits, and what goes into the program."""

from __future__ import annotations

import itertools
import random
import sys
from typing import Any

import numpy as np
import pytest

from calque.machine.call.entries import PythonProgram
from calque.machine.call.functions import (
    Entry,
    clear_entries,
)
from calque.machine.objects.array_type import (
    ArrayImpl,
    as_numpy,
    new_array,
)
from tests.machine.call.helpers import (
    F4,
    F32,
    Aval,
    Pair,
    add_program,
    array,
    copy_program,
    fixed_epoch,
    jitted,
    values,
)

epoch = fixed_epoch


SCALAR_CASES: list[tuple[str, str, Any, bool]] = [
    ("pyfloat", "float32", 1.5, True),
    ("pyfloat", "float64", -2.25, True),
    ("pyfloat", "complex64", 3.5, True),
    ("pyfloat", "float32", 1, False),
    ("pyfloat", "float32", np.float64(1.5), False),
    ("pyint", "int32", -(2**31), True),
    ("pyint", "int32", 2**31, False),
    ("pyint", "int8", 127, True),
    ("pyint", "int8", 128, False),
    ("pyint", "int16", -32769, False),
    ("pyint", "uint8", 255, True),
    ("pyint", "uint8", -1, False),
    ("pyint", "uint16", 65535, True),
    ("pyint", "uint32", 2**32 - 1, True),
    ("pyint", "uint32", 2**32, False),
    ("pyint", "int64", -(2**63), True),
    ("pyint", "int64", 2**63, False),
    ("pyint", "uint64", 2**64 - 1, True),
    ("pyint", "uint64", 2**64, False),
    ("pyint", "uint64", -1, False),
    ("pyint", "float32", 10**20, True),
    ("pyint", "float64", 10**400, False),
    ("pyint", "complex128", 7, True),
    ("pyint", "int32", True, False),
    ("pybool", "bool", True, True),
    ("pybool", "bool", False, True),
    ("pybool", "int32", True, True),
    ("pybool", "bool", 1, False),
    ("pycomplex", "complex64", 1.5 - 2j, True),
    ("pycomplex", "complex128", 1.5 - 2j, True),
    ("pycomplex", "complex64", 1.5, False),
    ("fraction", "float32", 1.7, True),
    ("fraction", "float64", 1.5, False),
    ("fraction", "float64", 1.5 + 2**-52, True),
    ("fraction", "float32", 1.5 + 2**-52, False),
    ("fraction", "float32", -3.0, False),
    ("fraction", "float64", 1e15, True),
    ("fraction", "float32", 2, False),
]


@pytest.mark.parametrize(("spec", "dtype", "value", "fits"), SCALAR_CASES)
def test_scalars(spec: str, dtype: str, value: Any, fits: bool) -> None:
    f = jitted(Entry([(spec, np.dtype(dtype), 0)], (), copy_program(1), ("out", 0), 7))
    out = f(value)
    if not fits:
        assert out == ("miss", (value,), {})
        return
    got = as_numpy(out, np.dtype(dtype), (1,))[0]
    assert got == np.dtype(dtype).type(value), got


def test_ndarrays() -> None:
    f = jitted(Entry([("ndarray", F32, (2, 2), 0)], (), copy_program(1), ("out", 0), 7))
    good = np.arange(4, dtype=np.float32).reshape(2, 2)
    assert values(f(good)) == [0, 1, 2, 3]
    for bad in (
        good.T,
        good[:1],
        good.astype("f8"),
        good.astype(">f4"),
        np.ma.array(good),
        good.tolist(),
        good.reshape(4),
    ):
        assert f(bad)[0] == "miss"
    scalar = jitted(Entry([("ndarray", np.complex128, (), 0)], (), copy_program(1), ("out", 0), 7))
    assert as_numpy(scalar(np.array(3 + 4j)), np.dtype(complex), (1,))[0] == 3 + 4j
    with pytest.raises(ValueError, match="cannot be passed"):
        Entry([("ndarray", object, (2,), 0)], (), copy_program(1), ("out", 0), 7)


def test_static_floats_are_compared_by_their_bits() -> None:
    nan = float("nan")
    f = jitted(
        Entry([("eq", 0.1), ("eq", -0.0), ("eq", nan)], (), copy_program(0), ("const", "yes"), 7)
    )
    assert f(float("0.1"), float("-0.0"), float("nan")) == "yes"
    for other in (
        (0.2, -0.0, nan),
        (0.1, 0.0, nan),
        (0.1, -0.0, 1.0),
        (np.float64(0.1), -0.0, nan),
    ):
        assert f(*other)[0] == "miss"


def test_static_arguments() -> None:
    marker = object()
    specs = [
        ("is", marker),
        ("eq", "text" + str(len(sys.argv))),
        ("eq", 10**30),
        ("eq", True),
        ("none",),
    ]
    f = jitted(Entry(specs, (), copy_program(0), ("const", "yes"), 7))
    same = (marker, "text" + str(len(sys.argv)), 10**29 * 10, True, None)
    assert f(*same) == "yes"
    for place, other in enumerate((object(), "text", 10**30 + 1, 1, False)):
        changed = list(same)
        changed[place] = other
        assert f(*changed)[0] == "miss"


def test_arrays_that_say_where_they_live() -> None:
    here, there = "device" + str(len(sys.argv)), object()
    seen: list[Any] = []

    def run(*args: Any) -> list[Any]:
        seen.append(args)
        return ["ran"]

    for place in (here, there, None):
        f = jitted(
            Entry([("elsewhere", F4, place, 0)], (), PythonProgram(1, 1, run), ("out", 0), 7)
        )
        for given in (here, there, None):
            x = array()
            x._extra = given
            assert (f(x) == "ran") is (given is place)
        assert f(new_array(Aval(), 16))[0] == "miss" and f(1.0)[0] == "miss"
    assert len(seen) == 3
    placed = array()
    placed._extra = here
    exact = jitted(Entry([("array", F4, None)], (), copy_program(0), ("const", 1), 7))
    assert exact(placed)[0] == "miss" and exact(array()) == 1


def test_equal_means_of_the_same_type() -> None:
    class Text(str):
        pass

    things: list[Any] = [0, 1, True, False, 1.0, 0.0, "1", "", Text("1"), 2**70, -(2**70), 1.5]
    for wanted in things:
        f = jitted(Entry([("eq", wanted)], (), copy_program(0), ("const", "hit"), 7))
        for given in things:
            if type(given) in (int, float) and given:
                given = type(given)(str(given))  # another object
            same = type(wanted) is type(given) and wanted == given
            if type(wanted) is Text:  # of which the value is not compared
                same = wanted is given
            assert (f(given) == "hit") is same, (wanted, given)


def test_dicts_in_another_order() -> None:
    spec = ("dict", {"a": ("array", F4, 0), 2: ("eq", "x"), "c": ("array", F4, 1)})
    f = jitted(Entry([spec], (), add_program(), ("out", 0), 7))
    items: dict[Any, Any] = {"a": array(1, 1, 1, 1), 2: "x", "c": array(1, 2, 3, 4)}
    for order in itertools.permutations(items):
        assert values(f({key: items[key] for key in order})) == [2, 3, 4, 5]
    for wrong in (
        {"c": items["c"], "a": items["a"], 3: "x"},
        {"c": items["c"], "a": items["a"], 2: "y"},
        {"c": items["c"], "a": 1, 2: "x"},
        {"c": items["c"], "a": items["a"], 2.0: "x"},
        {"c": items["c"], ("a",): items["a"], 2: "x"},
    ):
        assert f(wrong)[0] == "miss"


def test_a_call_that_does_not_match_leaves_the_arguments_alone() -> None:
    x, marker = array(), object()
    spec = ("tuple", [("array", F4, 0), ("list", [("is", marker), ("array", F4, 1)])])
    f = jitted(Entry([spec], (), add_program(), ("out", 0), 7))
    f((x, [marker, x]))
    before = sys.getrefcount(x), sys.getrefcount(marker)
    for _ in range(50):
        assert f((x, [marker, 3]))[0] == f((x, [None, x]))[0] == f((x, [marker]))[0] == "miss"
    assert (sys.getrefcount(x), sys.getrefcount(marker)) == before


def test_dicts_with_keys_that_run_python_match_in_order_only() -> None:
    class Key:
        def __hash__(self) -> int:
            return 1

        def __eq__(self, other: object) -> bool:
            raise RuntimeError("must not be called")

    a, b = Key(), "b"
    f = jitted(
        Entry(
            [("dict", {a: ("array", F4, 0), b: ("array", F4, 1)})], (), add_program(), ("out", 0), 7
        )
    )
    x = array()
    assert type(f({a: x, b: x})) is ArrayImpl
    assert f({b: x, a: x})[0] == "miss"


# ---- random trees against a matcher written in Python ----


def random_tree(rng: random.Random, depth: int) -> Any:
    kind = rng.choice("aaafibnsetldp" if depth else "aaafibns")
    many = range(rng.randrange(4))
    match kind:
        case "a":
            return array(*(rng.randrange(9) for _ in range(4)))
        case "f" | "i" | "b" | "n" | "s" | "e":
            return {
                "f": rng.random(),
                "i": rng.randrange(-5, 5),
                "b": rng.random() < 0.5,
                "n": None,
                "s": "s" * 3,
            }.get(kind, ())
        case "t":
            return tuple(random_tree(rng, depth - 1) for _ in many)
        case "l":
            return [random_tree(rng, depth - 1) for _ in many]
        case "p":
            return Pair(random_tree(rng, depth - 1), random_tree(rng, depth - 1))
        case _:
            return {
                rng.choice(["k", 1, ("t", i), f"k{i}"]): random_tree(rng, depth - 1) for i in many
            }


def spec_of(tree: Any) -> tuple[Any, ...]:
    """The description that fits exactly this tree; every leaf is dead."""
    if isinstance(tree, dict):
        return "dict", {key: spec_of(item) for key, item in tree.items()}
    if isinstance(tree, Pair):
        return "namedtuple", Pair, [spec_of(item) for item in tree]
    if isinstance(tree, tuple | list):
        return type(tree).__name__, [spec_of(item) for item in tree]
    if tree is None:
        return ("none",)
    if isinstance(tree, ArrayImpl):
        return "array", tree.aval, None
    names = {float: ("pyfloat", np.float64), int: ("pyint", np.int64), bool: ("pybool", np.bool_)}
    return ("eq", tree) if isinstance(tree, str) else (*names[type(tree)], None)


def same(spec: Any, other: Any) -> bool:
    """Whether two trees have the same description (dicts with str and int keys in any order)."""
    if spec[0] != other[0]:
        return False
    if spec[0] == "dict":
        a, b = spec[1], other[1]
        ordered = list(a) == list(b) or all(type(key) in (str, int) for key in [*a, *b])
        return ordered and a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if spec[0] in ("tuple", "list", "namedtuple"):
        return len(spec[-1]) == len(other[-1]) and all(map(same, spec[-1], other[-1]))
    return spec == other


def test_random_trees_match_what_they_should() -> None:
    rng = random.Random(5)
    trees = [random_tree(rng, 3) for _ in range(120)]
    for tree in trees:
        f = jitted(Entry([spec_of(tree)], (), copy_program(0), ("const", "hit"), 7))
        shuffled = (
            dict(rng.sample(list(tree.items()), len(tree))) if isinstance(tree, dict) else tree
        )
        for other in (tree, shuffled, *trees):
            assert (f(other) == "hit") == same(spec_of(tree), spec_of(other)), (tree, other)


class Told:
    """Equal where the number is; says how often it was asked, and may do something then."""

    asked = 0

    def __init__(self, number: int, then: Any = None) -> None:
        self.number, self.then = number, then

    def __eq__(self, other: object) -> bool:
        Told.asked += 1
        if self.then is not None:
            self.then()
        return isinstance(other, Told) and self.number == other.number

    __hash__ = None  # type: ignore[assignment]


def _with_static(*spec: Any) -> Any:
    return jitted(Entry(list(spec), (), add_program(), ("out", 0), 7))


def test_static_values_that_are_equal() -> None:
    f = _with_static(("array", F4, 0), ("equals", Told(1)), ("array", F4, 1))
    x = array(1.0, 2.0, 3.0, 4.0)
    assert values(f(x, Told(1), x)) == [2.0, 4.0, 6.0, 8.0]
    assert f(x, Told(2), x)[0] == "miss"
    Told.asked = 0
    assert f(x, 1, x)[0] == "miss" and Told.asked == 0  # of another type: nobody asks
    value = Told(1)
    g = _with_static(("equals", value), ("array", F4, 0), ("array", F4, 1))
    assert values(g(value, x, x)) == [2.0, 4.0, 6.0, 8.0] and Told.asked == 0  # this very object
    assert g(Told(1), x, 1.0)[0] == "miss"


def test_comparing_static_values_may_fail_and_change_the_entries() -> None:
    x = array(1.0, 2.0, 3.0, 4.0)

    def fail() -> None:
        raise ValueError("on purpose")

    f = _with_static(("array", F4, 0), ("equals", Told(1)), ("array", F4, 1))
    assert f(x, Told(1, fail), x)[0] == "miss"
    clearing = Told(1, lambda: clear_entries(f))
    assert values(f(x, clearing, x)) == [2.0, 4.0, 6.0, 8.0]  # the entry goes while it is asked
    assert len(f._entries) == 0 and f(x, Told(1), x)[0] == "miss"

"""The call path: what matches and what does not, and what comes back."""

from __future__ import annotations

import functools
import random
import sys
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

from calque.machine.call import entries as callpath_entries
from calque.machine.call.functions import (
    Entry,
    Jitted,
    OpFunction,
    add_entry,
    clear_entries,
    entry_count,
    run_program,
    set_epoch,
)
from calque.machine.driver.builder import ProgramBuilder
from calque.machine.objects.array_type import ArrayImpl, as_numpy, new_array, share
from tests.machine.call.helpers import (
    ARRAYS,
    F4,
    F32,
    Aval,
    Pair,
    add_program,
    array,
    copy_program,
    fixed_epoch,
    jitted,
    missing,
    values,
)

epoch = fixed_epoch


def test_a_hit_runs_the_program() -> None:
    f = jitted(Entry(ARRAYS, (), add_program(), ("out", 0), 7))
    out = f(array(1, 2, 3, 4), array(10, 20, 30, 40))
    assert type(out) is ArrayImpl and out.aval is F4
    assert values(out) == [11, 22, 33, 44]
    assert out._ptr % 64 == 0 and entry_count(f) == 1


def test_epochs() -> None:
    f = jitted(Entry(ARRAYS, (), add_program(), ("out", 0), 7))
    x = array()
    for number, hit in ((0, False), (6, False), (7, True)):
        set_epoch(number)
        assert (type(f(x, x)) is ArrayImpl) is hit
    with pytest.raises(ValueError, match="positive"):
        Entry(ARRAYS, (), add_program(), ("out", 0), 0)
    with pytest.raises(TypeError):
        set_epoch("x")  # type: ignore[arg-type]


def test_odd_calls_go_to_python() -> None:
    f = jitted(Entry(ARRAYS, (), add_program(), ("out", 0), 7))
    x = array()
    for args in (
        (),
        (x,),
        (x, x, x),
        (x, 1),
        (None, x),
        (x, new_array(Aval(), 16)),
        (x, [x]),
        tuple(range(300)),
    ):
        assert f(*args) == ("miss", args, {})
    assert f(x, b=x) == ("miss", (x,), {"b": x})
    assert f(x, x, k=1) == ("miss", (x, x), {"k": 1})
    assert f(a=1, b=2) == ("miss", (), {"a": 1, "b": 2})
    assert f.__call__(x) == ("miss", (x,), {})
    assert type(functools.partial(f, x)(x)) is ArrayImpl


def test_keywords() -> None:
    f = jitted(Entry(ARRAYS, ("b",), add_program(), ("out", 0), 7))
    x, y = array(), array(5, 6, 7, 8)
    assert values(f(x, b=y)) == [6, 8, 10, 12]
    assert values(f(x, **{"".join(("b",)): y})) == [6, 8, 10, 12]
    assert f(x, y)[0] == f(x, c=y)[0] == f(a=x, b=y)[0] == "miss"
    g = jitted(Entry(ARRAYS, ("a", "b"), add_program(), ("out", 0), 7))
    assert type(g(a=x, b=y)) is ArrayImpl and g(b=y, a=x)[0] == "miss"


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


def test_scalars_that_cannot_be() -> None:
    for spec, dtype in (
        ("pyfloat", "int32"),
        ("pycomplex", "float32"),
        ("pyint", "bool"),
        ("pyfloat", "float16"),
    ):
        with pytest.raises(ValueError, match="cannot be passed"):
            Entry([(spec, dtype, 0)], (), copy_program(1), ("out", 0), 7)


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


def test_containers_in_and_out() -> None:
    leaves = [("array", F4, i) for i in range(5)]
    spec = (
        "dict",
        {
            "w": ("tuple", [leaves[0], ("list", [leaves[1], ("none",)])]),
            3: leaves[2],
            "p": ("namedtuple", Pair, leaves[3:]),
        },
    )
    result = (
        "tuple",
        [
            ("dict", {"b": ("out", 0), "a": ("list", [("out", 1), ("none",)])}),
            ("namedtuple", Pair, [("out", 2), ("input", 3)]),
            ("const", 5),
            ("out", 0),
            ("tuple", []),
            ("dict", {}),
            ("list", []),
        ],
    )
    f = jitted(Entry([spec], (), copy_program(5), result, 7))
    xs = [array(i, i, i, i) for i in range(5)]

    def tree(order: list[Any]) -> Any:
        whole = {"w": (xs[0], [xs[1], None]), 3: xs[2], "p": Pair(xs[3], xs[4])}
        return {key: whole[key] for key in order}

    for order in (["w", 3, "p"], ["p", 3, "w"], ["w", "p", 3]):
        out = f(tree(order))
        assert (
            list(out[0]) == ["b", "a"]
            and values(out[0]["b"]) == [0] * 4
            and values(out[0]["a"][0]) == [1] * 4
        )
        assert type(out[1]) is Pair and values(out[1].first) == [2] * 4 and out[1].second is xs[3]
        assert out[2:] == (5, out[0]["b"], (), {}, []) and out[0]["a"][1] is None
    good = tree(["w", 3, "p"])
    bad = [
        {**good, "extra": 1},
        {"w": good["w"], 3: xs[2]},
        {"w": good["w"], 4: xs[2], "p": good["p"]},
        OrderedDict(good),
        {**good, "w": [xs[0], [xs[1], None]]},
        {**good, "w": (xs[0], (xs[1], None))},
        {**good, "w": (xs[0], [xs[1], 0])},
        {**good, "w": (xs[0], [xs[1]])},
        {**good, "p": (xs[3], xs[4])},
        list(good),
    ]
    for one in bad:
        assert f(one)[0] == "miss"


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


def test_dead_inputs_and_inputs_given_back() -> None:
    specs = [("array", F4, None), ("array", F4, 1), ("pyint", np.int32, 2), ("array", F4, 0)]
    f = jitted(
        Entry(specs, (), add_program(), ("tuple", [("input", 2), ("input", 1), ("out", 0)]), 7)
    )
    x, y = array(), array(1, 1, 1, 1)
    number = 123456789
    out = f(x, x, number, y)
    assert out[0] is number and out[1] is x and values(out[2]) == [2, 3, 4, 5]
    assert f(None, x, number, y)[0] == "miss"


def test_results_may_pass_through_python() -> None:
    seen: list[Any] = []

    def finish(*parts: Any) -> Any:
        seen.append(parts)
        if type(parts[1]) is str and parts[1] == "bad":
            raise LookupError("from finish")
        return list(parts)

    out = (
        "tuple",
        [
            ("call", finish, [("out", 0), ("const", "good")]),
            ("call", finish, [("none",), ("input", 0)]),
        ],
    )
    f = jitted(Entry([("array", F4, 0)], (), copy_program(1), out, 7))
    x = array(5, 6, 7, 8)
    result = f(x)
    assert (
        values(result[0][0]) == [5, 6, 7, 8] and result[0][1] == "good" and result[1] == [None, x]
    )
    assert len(seen) == 2
    bad = ("list", [("out", 0), ("call", finish, [("out", 0), ("const", "bad")])])
    g = jitted(Entry([("array", F4, 0)], (), copy_program(1), bad, 7))
    for _ in range(10):
        with pytest.raises(LookupError, match="from finish"):
            g(x)


def test_results_of_unknown_size() -> None:
    builder = ProgramBuilder(1, [(F4, -1), (F4, 16)])
    block = builder.owned()
    builder.copy(builder.output(1), builder.input(0), 16)
    builder.alloc(block, 16)
    builder.copy(block, builder.input(0), 16)
    builder.give(0, block)
    program = builder.build()
    actual = Aval()
    out = ("call", lambda made, fixed: (share(made, actual), fixed), [("out", 0), ("out", 1)])
    f = jitted(Entry([("array", F4, 0)], (), program, out, 7))
    made, fixed = f(array(1, 2, 3, 9))
    assert made.aval is actual and values(made) == values(fixed) == [1, 2, 3, 9]
    again = run_program(program, [array(4, 4, 4, 5)])
    assert again[0]._block == again[0]._ptr != 0 and values(again[0]) == [4, 4, 4, 5]
    failing = ProgramBuilder(0, [(F4, -1)])
    spare = failing.owned()
    failing.alloc(spare, 64)
    failing.give(0, spare)
    failing.fail(ValueError, "after giving")
    g = jitted(Entry([], (), failing.build(), ("out", 0), 7))
    for _ in range(10):
        with pytest.raises(ValueError, match="after giving"):
            g()


def test_bad_descriptions_are_refused() -> None:
    program = add_program()
    cases: list[tuple[Any, Any, Any, str]] = [
        ([("array", F4, 0)], (), ("out", 0), "no argument is input 1"),
        ([("array", F4, 0), ("array", F4, 0)], (), ("out", 0), "given twice"),
        ([*ARRAYS, ("array", F4, 3)], (), ("out", 0), "no argument is input 2"),
        (ARRAYS, (), ("out", 1), "no output 1"),
        (ARRAYS, (), ("input", 5), "no input 5"),
        (ARRAYS, (), ("what", 5), "unknown kind of result"),
        (ARRAYS, ("a", "b", "c"), ("out", 0), "kw_names"),
        (ARRAYS, (1,), ("out", 0), "kw_names"),
        ([*ARRAYS, ("set", [])], (), ("out", 0), "unknown kind of argument"),
        ([*ARRAYS, 5], (), ("out", 0), "no description"),
        ([("array", F4, -1), ("array", F4, 1)], (), ("out", 0), "input index"),
        ([*ARRAYS, ("namedtuple", tuple, [])], (), ("out", 0), "no namedtuple"),
    ]
    for in_spec, names, out_spec, message in cases:
        with pytest.raises(ValueError, match=message):
            Entry(in_spec, names, program, out_spec, 7)
    deep: Any = ("none",)
    for _ in range(1200):
        deep = ("tuple", [deep])
    with pytest.raises((ValueError, RecursionError), match=r"deep|depth"):
        Entry([*ARRAYS, deep], (), program, ("out", 0), 7)
    with pytest.raises(TypeError):
        add_entry(Jitted(missing), "no entry")
    with pytest.raises(TypeError):
        add_entry(missing, Entry(ARRAYS, (), program, ("out", 0), 7))
    for make in (Jitted, OpFunction):
        for args in ((), (1,), (missing, missing)):
            with pytest.raises(TypeError):
                make(*args)
        with pytest.raises(TypeError):
            make(miss=missing)


def test_many_entries_the_last_used_is_tried_first() -> None:
    avals = [Aval() for _ in range(200)]
    f = Jitted(missing)
    for i, aval in enumerate(avals):
        add_entry(f, Entry([("array", aval, None)], (), copy_program(0), ("const", i), 7))
    assert entry_count(f) == callpath_entries.JITTED_LIMIT
    for i in (199, 100, 199, 72, 150):
        assert f(new_array(avals[i], 4)) == i
        assert f._entries[0] is not f._entries[1]
    assert f(new_array(avals[10], 4))[0] == "miss"
    assert len(set(map(id, f._entries))) == callpath_entries.JITTED_LIMIT
    clear_entries(f)
    assert entry_count(f) == 0 and f(new_array(avals[199], 4))[0] == "miss"


def test_large_frames() -> None:
    count = 500
    leaves = [("array", F4, i) for i in range(count)]
    f = jitted(
        Entry(
            [("list", leaves)],
            (),
            copy_program(count),
            ("list", [("out", i) for i in range(count)]),
            7,
        )
    )
    xs = [array(i, 0, 0, 0) for i in range(count)]
    out = f(xs)
    assert [values(o)[0] for o in out] == list(range(count))
    assert f([*xs[:-1], None])[0] == "miss"


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

"""The result of a call: containers, arguments given back, what Python makes of the parts."""

from __future__ import annotations

import gc
import random
import sys
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

from calque.machine import memory
from calque.machine.call.functions import (
    Entry,
    run_program,
)
from calque.machine.driver.builder import ProgramBuilder
from calque.machine.objects.array_type import (
    share,
)
from tests.machine.call.helpers import (
    F4,
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


def described(tree: Any) -> tuple[Any, ...]:
    """The description of a result that looks like this tree."""
    if isinstance(tree, dict):
        return "dict", {key: described(item) for key, item in tree.items()}
    if isinstance(tree, Pair):
        return "namedtuple", Pair, [described(item) for item in tree]
    if type(tree) in (tuple, list):
        return type(tree).__name__, [described(item) for item in tree]
    return ("const", tree) if tree is not None else ("none",)


def random_result(rng: random.Random, depth: int) -> Any:
    items = [random_result(rng, depth - 1) for _ in range(rng.randrange(4))] if depth else []
    keys = rng.sample(["a", 1, ("t",), 2.5, None, "b"], len(items))
    pair = Pair(*[*items, 0, 0][:2])
    many = (tuple(items), items, dict(zip(keys, items)), pair)
    return rng.choice([*many, *many, rng.randrange(9), None])


def same_types(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return list(a) == list(b) and all(same_types(a[key], b[key]) for key in a)
    children = zip(a, b) if isinstance(a, tuple | list) else ()
    return type(a) is type(b) and all(same_types(x, y) for x, y in children)


def test_random_results_are_built_as_described() -> None:
    rng = random.Random(7)
    for _ in range(300):
        want = random_result(rng, 3)
        f = jitted(Entry([], (), copy_program(0), described(want), 7))
        first, second = f(), f()
        assert first == second == want and same_types(first, want) and same_types(second, want)


def test_each_call_makes_containers_of_its_own() -> None:
    f = jitted(Entry([], (), copy_program(0), described({"list": [1], "dict": {"a": 2}}), 7))
    first = f()
    first["list"].append(5)
    first["dict"]["a"] = 6
    del first["list"]
    assert f() == {"list": [1], "dict": {"a": 2}}


@pytest.mark.usefixtures("no_garbage")
def test_a_part_that_fails_leaks_nothing() -> None:
    constant, x = object(), array()
    parts = [("const", constant), ("out", 0), ("call", lambda: 1 / 0, [])]
    for container in (
        ("tuple", parts),
        ("list", parts),
        ("namedtuple", Pair, parts[1:]),
        ("dict", dict(zip("abc", parts))),
        ("call", lambda *args: args, parts),
        ("tuple", [("const", constant), ("list", [("out", 0), ("tuple", parts)])]),
    ):
        f = jitted(Entry([("array", F4, 0)], (), copy_program(1), container, 7))
        gc.collect()  # what other tests have left
        before = sys.getrefcount(constant), sys.getrefcount(x), memory.stats().live_blocks
        for _ in range(20):
            with pytest.raises(ZeroDivisionError):
                f(x)
        del f
        gc.collect()
        after = sys.getrefcount(constant), sys.getrefcount(x), memory.stats().live_blocks
        assert after[1:] == before[1:] and after[0] <= before[0]

"""Entries as words: what is written of a description, what it keeps alive, what is refused."""

from __future__ import annotations

import array as words
from typing import Any

import numpy as np
import pytest

from calque.machine.call.entries import PythonProgram
from calque.machine.call.functions import (
    Entry,
)
from calque.machine.call.layout import (
    CELL,
    Build,
    Guard,
    Header,
    Match,
    ScalarKind,
)
from calque.machine.call.spec import (
    ProgramHeaderView,
    count_uses,
    encode,
    key_of,
)
from tests.machine.call.helpers import (
    ARRAYS,
    F4,
    F32,
    Aval,
    Pair,
    add_program,
    array,
    copy_program,
    failing_program,
    fixed_epoch,
)

epoch = fixed_epoch


def decoded(*description: Any, **more: Any) -> tuple[dict[str, int], list[int], list[int]]:
    """The header of an entry by name, its matching and its building program."""
    data, _ = encode(*description, **more)
    numbers = words.array("q", data).tolist()
    header = dict(zip(Header.fields, numbers))
    matching, building, guards = (
        header[name] // 8 for name in ("matching", "building", "guard_words")
    )
    assert matching == len(header)
    return header, numbers[matching:building], numbers[building:guards]


def test_the_words_of_an_entry() -> None:
    program, marker = add_program(), object()
    in_spec = [
        ("array", F4, 1),
        ("tuple", [("pyint", np.int8, 2), ("none",)]),
        ("pyfloat", np.float64, None),
        ("array", F4, 0),
    ]
    out_spec = ("list", [("out", 0), ("input", 2), ("out", 0), ("const", marker)])
    header, matching, building = decoded(in_spec, ("k", "l"), program, out_spec, 9)
    assert matching == [
        *(Match.ARRAY, id(F4), 1),
        *(Match.TUPLE, id(tuple), 2),
        *(Match.INT, ScalarKind.I8, 2, 0),
        *(Match.IS, id(None)),
        *(Match.FLOAT, ScalarKind.F64, -1, 1),
        *(Match.ARRAY, id(F4), 0),
    ]
    assert building == [
        *(Build.LIST, 4),
        *(Build.SHARE, 0),
        *(Build.INPUT, 2),
        *(Build.TAKE, 0),  # the last use of it
        *(Build.CONST, id(marker)),
    ]
    assert (header["positional"], header["keywords"], header["epoch"]) == (2, 2, 9)
    assert (header["n_in"], header["n_out"], header["slots"]) == (2, 1, 3)
    assert header["program"] == program.handle and header["hold"] == header["choose"] == 0
    assert header["frame_bytes"] == 16 * 3 + 16 * 1 + 2 * CELL


def test_an_entry_keeps_alive_what_its_words_point_to() -> None:
    class Thing:
        pass

    aval, key, constant, holder, value = (Thing() for _ in range(5))
    program = copy_program(1)
    guards = [("item", {"k": holder}, "k", holder), ("list", [value], (value,))]
    in_spec = [("dict", {key: ("array", aval, 0)}), ("is", value)]
    data, keeps = encode(in_spec, (), program, ("dict", {key: ("const", constant)}), 7, guards)
    kept = {id(x) for x in keeps}
    assert kept >= {id(x) for x in (program, aval, key, constant, holder, value)}
    objects = {id(x) for x in (aval, key, constant, holder, value, guards[0][1], guards[1][1])}
    assert objects <= set(words.array("q", data).tolist())


def test_python_may_run_only_where_the_entry_says_so() -> None:
    class Key:
        pass

    plain_keys = ("dict", {"a": ("out", 0), 1: ("none",), None: ("none",), 2.5: ("none",)})
    for out_spec, held in (
        (plain_keys, 0),
        (("list", [("dict", {Key(): ("out", 0)})]), 1),
        (("tuple", [("call", print, [("out", 0)])]), 1),
    ):
        assert decoded(ARRAYS, (), add_program(), out_spec, 7)[0]["hold"] == held


def test_what_a_choice_is_given_stands_in_the_order_of_the_inputs() -> None:
    in_spec = [
        ("ndarray_kind", F32, 1, 1),
        ("pyint", np.int32, 2),
        ("ndarray_kind", F32, 2, 0),
    ]
    header, matching, _ = decoded(
        in_spec, (), add_program(), ("out", 0), 7, choose=lambda *avals: None
    )
    first = header["chosen_at"]
    assert header["chosen_by"] == 2 and first == CELL + 8
    assert matching[4] == first + 8 and matching[-1] == first
    assert header["frame_bytes"] == 16 * 3 + 16 * 1 + CELL + 3 * 8


def test_questions_are_four_words_each() -> None:
    table, cell, items = {"k": 1}, (lambda: table).__closure__[0], [1]  # type: ignore[index]
    value = (1,)
    data, _ = encode(
        *(ARRAYS, (), add_program(), ("out", 0), 7),
        [
            ("item", table, "k", 1),
            ("cell", cell, table),
            ("list", items, value),
            ("length", table, 1),
        ],
    )
    numbers = words.array("q", data).tolist()
    header = dict(zip(Header.fields, numbers))
    assert header["guards"] == 4 and numbers[header["guard_words"] // 8 :] == [
        *(Guard.ITEM, id(table), id("k"), id(1)),
        *(Guard.CELL, id(cell), 0, id(table)),
        *(Guard.LIST, id(items), 0, id(value)),
        *(Guard.LENGTH, id(table), 0, 1),
    ]
    with pytest.raises(ValueError, match="unknown question 'why'"):
        encode(ARRAYS, (), add_program(), ("out", 0), 7, [("why", table)])


def test_uses_of_outputs_are_counted_in_every_container() -> None:
    uses: dict[int, int] = {}
    out = ("out", 0)
    spec = ("dict", {"a": ("list", [out, ("out", 2)]), "b": ("call", print, [out, ("none",)])})
    count_uses(("tuple", [spec, ("namedtuple", Pair, [out, ("input", 0)])]), 3, uses)
    assert uses == {0: 3, 2: 1}
    for wrong in (3, -1, None):
        with pytest.raises(ValueError, match="the program has 3"):
            count_uses(("list", [("out", wrong)]), 3, uses)


def test_the_key_depends_on_types_and_avals_alone() -> None:
    other = Aval()
    specs: list[list[Any]] = [
        [("array", F4, 0)],
        [("array", other, 0)],
        [("array", F4, 0), ("array", other, 1)],
        [("array", other, 0), ("array", F4, 1)],
        [("pyint", np.int32, 0)],
        [("pyfloat", np.float32, 0)],
        [("pybool", np.bool_, 0)],
        [("none",)],
        [("tuple", [])],
        [("namedtuple", Pair, [("none",), ("none",)])],
        [("ndarray", F32, (2,), 0)],
        [],
    ]
    keys = [key_of(spec) for spec in specs]
    assert len(set(keys)) == len(specs) and all(0 <= key < 1 << 64 for key in keys)
    for one, same in (
        (("array", F4, 0), ("array", F4, None)),
        (("array", F4, 0), ("elsewhere", F4, "place", 3)),
        (("array", F4, 0), ("is", array())),
        (("pyint", np.int8, 0), ("eq", 5)),
        (("pyfloat", np.float32, 0), ("fraction", np.float64, 1)),
        (("ndarray", F32, (2,), 0), ("ndarray_kind", F32, 1, 0)),
        (("tuple", []), ("tuple", [("none",)])),
        (("none",), ("eq", None)),
    ):
        assert key_of([one]) == key_of([same])


def test_the_header_of_a_program() -> None:
    head = ProgramHeaderView(copy_program(3))
    assert (head.n_in, head.n_out, head.flags) == (3, 3, 0)
    assert ProgramHeaderView(failing_program(ValueError)).flags != 0
    with pytest.raises(ValueError, match="no handle"):
        ProgramHeaderView(PythonProgram(1, 1, print))


def test_elements_that_machine_code_cannot_read() -> None:
    for dtype in (object, np.dtype(np.float32).newbyteorder(), np.dtype([("a", "f4")])):
        for spec in (("ndarray", dtype, (2,), 0), ("ndarray_kind", dtype, 1, 0)):
            with pytest.raises(ValueError, match="cannot be passed"):
                encode([spec], (), copy_program(1), ("out", 0), 7, choose=print)


def test_scalars_that_cannot_be() -> None:
    for spec, dtype in (
        ("pyfloat", "int32"),
        ("pycomplex", "float32"),
        ("pyint", "bool"),
        ("pyfloat", "float16"),
    ):
        with pytest.raises(ValueError, match="cannot be passed"):
            Entry([(spec, dtype, 0)], (), copy_program(1), ("out", 0), 7)


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

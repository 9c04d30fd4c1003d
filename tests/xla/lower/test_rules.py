"""The table of rules, and what a builder writes."""

from typing import Any

import numpy as np
import pytest

from calque.core.dtypes import bfloat16
from calque.xla.lower.rules import (
    EQUATION_RULES,
    RULES,
    array_i64,
    boolean,
    comparison,
    equation_rule,
    rule,
)
from calque.xla.text.types import TOKEN, Tensor
from tests.xla.lower.shared import blank, f32, i32, operations, written
from tests.xla.mlir import needs_jaxlib, printed


def test_no_function_has_the_name_of_another() -> None:
    names = blank()[0].state
    asked = ["sort", "sort", "sort", "main", "sort_0", "sort"]
    found = [names.unique_name(n) for n in asked]
    assert found[:4] == ["sort", "sort_0", "sort_1", "main"]
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("enter", [rule, equation_rule])
def test_a_primitive_has_one_rule(enter: Any) -> None:
    for taken in ("neg", "while"):
        with pytest.raises(AssertionError, match=taken):
            enter(taken)(lambda *_: None)
    assert not RULES.keys() & EQUATION_RULES.keys()


def test_numbers_are_spread_over_the_shape_of_the_other() -> None:
    b, (x, n) = blank(f32(2, 3), f32())
    assert b.binary("add", n, x).shape == (2, 3) == b.binary("add", x, n).shape
    assert b.compare("LT", n, x).type == Tensor((2, 3), np.dtype(bool))
    assert b.select(b.compare("EQ", n, n), n, x).shape == (2, 3)
    assert b.binary("add", n, n).shape == ()
    assert operations(written(b))["broadcast_in_dim"] == 4


def test_what_changes_nothing_is_not_written() -> None:
    b, (x,) = blank(f32(2, 3))
    assert b.reshape(x, [2, 3]) is x and b.transpose(x, [0, 1]) is x
    assert b.convert(x, np.dtype("float32")) is x and b.concatenate([x], 1) is x
    assert b.spread(x, (2, 3)) is x and b.region.ops == []


def test_types_of_results() -> None:
    b, (x, y) = blank(f32(2, 6), f32(1, 6))
    assert b.transpose(x, (1, 0)).shape == (6, 2)
    assert b.concatenate([x, y, x], 0).shape == (5, 6)
    assert b.slice(x, (0, 1), (2, 6), (1, 2)).shape == (2, 3)
    assert b.along(x, 1, 2, 5).shape == (2, 3)
    assert b.convert(x, np.dtype("int8")).dtype == np.dtype("int8")
    assert b.iota("uint8", (4, 2), 1).type == Tensor((4, 2), np.dtype("uint8"))


@needs_jaxlib
def test_mlir_agrees_with_the_types() -> None:
    b, (x, y, i) = blank(f32(2, 6), f32(1, 6), i32())
    found = [
        b.transpose(x, (1, 0)),
        b.concatenate([x, y], 0),
        b.slice(x, (0, 1), (2, 6), (1, 2)),
        b.dynamic_slice(x, [i, i], (1, 3)),
        b.dynamic_update_slice(x, y, [i, i]),
        b.bitcast(x, i32(2, 6)),
        b.chlo("erf", f32(2, 6), x),
        b.filled(np.inf, f32(2)),
        b.iota("int64", (3,), 0),
        b.select(b.compare("GE", i, i), x, x),
    ]
    text = written(b, *found)
    assert printed(text).strip() == text.strip()


def test_how_elements_are_compared() -> None:
    kinds = {"bool": "UNSIGNED", "uint8": "UNSIGNED", "int64": "SIGNED", "float16": "FLOAT"}
    assert {d: comparison(np.dtype(d)) for d in kinds} == kinds
    assert comparison(np.dtype(bfloat16)) == "FLOAT" == comparison(np.dtype("complex64"))
    b, (x,) = blank(Tensor((2,), np.dtype("float32")))
    b.compare("LT", x, x, "TOTALORDER")
    assert "compare LT, %arg0, %arg0, TOTALORDER" in written(b)


def test_one_token_begins_all_effects() -> None:
    b, _ = blank()
    token = b.ordered()
    assert b.ordered() is token and token.type is TOKEN
    later = b.one(TOKEN, "stablehlo.after_all ", token, f" : {TOKEN}")
    b.token = later
    assert b.ordered() is later and operations(written(b))["create_token"] == 1


def test_integers_and_floats_are_named_apart() -> None:
    b, _ = blank()
    b.constant(np.int8([1])), b.constant(np.float32(1)), b.constant(True)
    text = written(b)
    assert "%c = " in text and "%cst = " in text and "%c_0 = " in text


def test_attributes_stand_in_order() -> None:
    b, (x,) = blank(f32(2))
    inner, args = b.inside([f32(), f32()])
    inner.returns(args[0])
    b.generic("an.op", [f32()], [x], {"b": "2", "a": "1"}, inner.region)
    assert '"an.op"(%arg0) <{a = 1, b = 2}> ({' in written(b)
    assert inner.nested and "stablehlo.return %arg1" in written(b)


def test_lists_and_truth_as_text() -> None:
    assert array_i64([]) == "array<i64>" and array_i64((1, 2)) == "array<i64: 1, 2>"
    assert (boolean(1), boolean(None)) == ("true", "false")

"""Modules as MLIR prints them: names, regions, places."""

import numpy as np
import pytest

from calque.xla.text.printing import Names, printed
from calque.xla.text.tree import Function, Location, Module, Op, Region, Value
from calque.xla.text.types import Tensor
from tests.xla.mlir import needs_jaxlib
from tests.xla.mlir import printed as by_mlir

F32 = Tensor((), np.dtype("float32"))


def value(hint: str = "") -> Value:
    return Value(F32, hint)


def module(*functions: Function) -> Module:
    return Module("m", list(functions))


def negated(x: Value, y: Value, location: Location | None = None) -> Op:
    return Op(["stablehlo.negate ", x, f" : {F32}"], [y], location)


def returned(x: Value) -> Op:
    return Op(["return ", x, f" : {F32}"], [])


def test_values_are_counted_and_hints_are_made_unique() -> None:
    names = Names()
    a, b, first, second, third, plain = [value(h) for h in ("", "it", "cst", "cst", "cst", "")]
    names.argument(a)
    names.argument(b)
    names.results([first])
    names.results([second])
    names.results([plain])
    names.results([third])
    given = [names.text[v] for v in (a, b, first, second, plain, third)]
    assert given == ["%arg0", "%it", "%cst", "%cst_0", "%0", "%cst_1"]


def test_results_of_one_operation_share_a_number() -> None:
    names, pair, hinted = Names(), [value(), value()], [value("x"), value("y")]
    names.results(pair)
    names.results([])
    names.results(hinted)
    last = value()
    names.results([last])
    assert [names.text[v] for v in pair] == ["%0#0", "%0#1"]
    assert [names.text[v] for v in hinted] == ["%x", "%y"] and names.text[last] == "%1"


def test_regions_side_by_side_use_the_same_names() -> None:
    outer = Names()
    x = value()
    outer.argument(x)
    left, right = Names(outer), Names(outer)
    a, b = value(), value()
    left.argument(a)
    right.argument(b)
    assert left.text[a] == right.text[b] == "%arg1" and left.text[x] == "%arg0"
    assert a not in outer.text


def test_a_function_line_by_line() -> None:
    x, y = value(), value()
    f = Function("main", Region([x], [negated(x, y), returned(y)]), [F32], public=True)
    assert printed(module(f)) == (
        "module @m {\n"
        "  func.func public @main(%arg0: tensor<f32>) -> tensor<f32> {\n"
        "    %0 = stablehlo.negate %arg0 : tensor<f32>\n"
        "    return %0 : tensor<f32>\n"
        "  }\n"
        "}\n"
    )


def test_attributes_put_the_result_in_brackets() -> None:
    x = value()
    f = Function("f", Region([x], [returned(x)]), [F32], False, ["{a = 1}"], ["{b = 2}"])
    m = Module("m", [f], ["sdy.mesh @mesh"], attributes=["c = 3 : i32"])
    lines = printed(m).splitlines()
    assert lines[0] == "module @m attributes {c = 3 : i32} {"
    assert lines[1] == "  sdy.mesh @mesh"
    assert lines[2] == (
        "  func.func private @f(%arg0: tensor<f32> {a = 1}) -> (tensor<f32> {b = 2}) {"
    )


@needs_jaxlib
@pytest.mark.parametrize("header", [True, False])
def test_regions_with_and_without_a_header(header: bool) -> None:
    """A case has arms without arguments, a reduction one whose arguments stand ahead of it."""
    x, i, out = Value(Tensor((3,), F32.dtype)), Value(Tensor((), np.dtype("int32"))), value()
    start, a, b, c = value(), value(), value(), value()
    if header:
        arm = Region([a, b], [Op(["stablehlo.add ", a, ", ", b, f" : {F32}"], [c])])
        arm.ops.append(Op(["stablehlo.return ", c, f" : {F32}"], []))
        attributes = " <{dimensions = array<i64: 0>}>"
        ending = f") : ({x.type}, {F32}) -> {F32}"
        op = Op(['"stablehlo.reduce"(', x, ", ", start, ")", attributes, " (", arm, ending], [out])
        text = printed(module(Function("main", Region([x, start], [op, returned(out)]), [F32])))
        assert "^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):" in text
    else:
        arm = Region([], [negated(start, c), Op(["stablehlo.return ", c, f" : {F32}"], [])])
        op = Op(
            ['"stablehlo.case"(', i, ") (", arm, f") : ({i.type}) -> {F32}"],
            [out],
        )
        text = printed(module(Function("main", Region([i, start], [op, returned(out)]), [F32])))
        assert "^bb0" not in text and "\n      %1 = stablehlo.negate %arg1" in text
    read = by_mlir(text)
    assert by_mlir(read) == read


def test_places_are_explained_once_at_the_end() -> None:
    x, y, z = value(), value(), value()
    here = Location("jit(f)/neg", 'a"b.py', 7, "f")
    f = Function("main", Region([x], [negated(x, y, here), negated(y, z, here)]), [F32])
    f.arg_names = ["weights"]
    f.body.ops.append(returned(z))
    text = printed(module(f), located=True)
    assert text.count('loc("jit(f)/neg"') == 1 and text.count('\\22b.py":7:0') == 1
    assert 'loc("weights")' in text
    names = [line.split(" = ")[0] for line in text.splitlines() if line.startswith("#")]
    assert len(names) == len(set(names)) and names[:2] == ["#loc", "#loc1"]
    assert "loc" not in printed(module(f))


@needs_jaxlib
def test_mlir_reads_places() -> None:
    x, y = value(), value()
    places = [Location("jit(f)/neg", "C:\\a.py", 7, "f"), Location("only a path")]
    ops = [negated(x, y, places[0]), negated(y, z := value(), places[1]), returned(z)]
    text = printed(module(Function("main", Region([x], ops), [F32])), located=True)
    assert "stablehlo.negate" in by_mlir(text)

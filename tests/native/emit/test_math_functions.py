"""Definitions of math functions: strict, by dtype, with operands in place."""

import numpy as np
import pytest

from calque.native.emit import math_functions
from calque.native.emit.math_functions import MathFunction, definition
from calque.native.loops.tree import (
    For,
    Store,
)
from calque.native.scalars.expr import (
    ex,
    load,
    make,
    ref,
    var,
    walk,
)
from tests.native.emit.shared import (
    f32,
)
from tests.native.run_kernel import (
    NP,
    array,
    run,
)


def test_math_functions_are_strict_in_line_and_shared():
    """The same bits in line, called, as vectors, as scalars and in tails."""
    assert all(
        e.attr == "strict"
        for e in walk(definition("exp", ("f32",), "f32"), set())
        if e.op in ("add", "sub", "mul") and e.dtype == "f32"
    )
    n = var("n")
    i, x, y = var("i", n), array("x", "f32", n), array("y", "f32", n)
    a = np.linspace(-20, 20, 77).astype("f4")
    results = []
    for name in ("exp", "sin", "tanh"):
        e = make(name, (load(x, (i,)),), "f32")
        for kind, width in (("serial", 1), ("vector", 16), ("vector", 32)):
            out = np.zeros(77, "f4")
            run((For(i, (Store(y, (i,), e),), (), kind, width),), {x: a, y: out, "n": 77})
            results.append(out)
            out = np.zeros(77, "f4")
            run(
                (
                    For(
                        i,
                        (
                            Store(
                                y,
                                (i,),
                                ex(
                                    "add",
                                    make("exp", (e,), "f32"),
                                    ex("sub", make("log", (e,), "f32"), e),
                                ),
                            ),
                        ),
                        (),
                        kind,
                        width,
                    ),
                ),
                {x: a, y: out, "n": 77},
            )
        for r in results[1:]:
            np.testing.assert_array_equal(results[0], r)
        results.clear()


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_math_of_narrow_floats(dtype):
    n = var("n")
    i, x, y = var("i", n), array("x", dtype, n), array("y", dtype, n)
    a, out = np.linspace(-3, 3, 45).astype(NP[dtype]), np.zeros(45, NP[dtype])
    run(
        (For(i, (Store(y, (i,), make("exp", (load(x, (i,)),), dtype)),), (), "vector", 32),),
        {x: a, y: out, "n": 45},
    )
    np.testing.assert_array_equal(out, np.exp(a.astype("f8")).astype("f4").astype(NP[dtype]))


def test_symbols_tell_all_forms_apart():
    forms = [
        MathFunction("exp", ("f32",), "f32", 8),
        MathFunction("exp", ("f32",), "f32", 0),
        MathFunction("exp", ("f64",), "f64", 8),
        MathFunction("exp", ("f16",), "f16", 8),
        MathFunction("pow", ("f32", "f32"), "f32", 8),
    ]
    assert len({f.symbol("") for f in forms}) == len(forms)
    assert forms[1].symbol("_o2") == "vm_exp_f32_s_o2"


def test_a_definition_of_another_dtype_is_refused():
    with pytest.raises(TypeError, match="exp of f32 gives f32, f64 was asked for"):
        definition("exp", ("f32",), "f64")


def test_strict_marks_what_could_be_contracted():
    """Additions and products of floats, in shared parts too; integers and the rest stay."""
    x = ref("x", "f32")
    shared = ex("mul", x, x)
    e = ex("add", shared, ex("sqrt", shared))
    marked = math_functions.strict(e)
    assert {a.op for a in walk(marked, set()) if a.attr == "strict"} == {"add", "mul"}
    assert marked.args[0] is marked.args[1].args[0]
    whole = ex("add", ref("k", "i32"), ref("l", "i32"))
    assert math_functions.strict(whole) is whole and math_functions.strict(marked) is marked


def test_operands_take_the_place_of_arguments():
    y = ex("add", ref("y", "f32"), f32(1.0))
    e = math_functions.inline_math(make("tanh", (y,), "f32"))
    assert e.names == {"y"} and y in walk(e, set())
    assert not any(a.op == "tanh" for a in walk(e, set()))

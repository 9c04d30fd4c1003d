"""Uses of math functions: in line, or calls of the one copy."""

import pytest

from calque.native.emit.lanes import SCALAR
from calque.native.emit.math_functions import MathFunction
from calque.native.emit.values import value
from calque.native.emit.writer import CodeOptions, Writer
from calque.native.scalars.expr import (
    ex,
    make,
    ref,
)
from tests.native.emit.test_emitter import math, written


def test_calls_of_math_functions_are_reported():
    f = written(math(), outline=True, tag="_o2")
    assert set(f.shared) == {"vm_exp2_f32_8_o2"}
    assert f.shared["vm_exp2_f32_8_o2"] == MathFunction("exp2", ("f32",), "f32", 8)


@pytest.mark.parametrize("outline", [False, True])
def test_in_line_in_whole_vectors_called_in_rests(outline):
    f = written(math(), outline=outline, tag="_o2")
    assert f.text.count("call <8 x float> @vm_exp2") == (2 if outline else 1)
    assert any("declare <8 x float> @vm_exp2_f32_8_o2(<8 x float>)" in d for d in f.declared)


def test_uses_are_counted():
    """Two of one function and one of another, with an operand that both share."""
    w = Writer("f", CodeOptions(outline=True, tag="_t"), frozenset())
    w.bind("x", "%x")
    x = ref("x", "f64")
    a, b = make("exp", (x,), "f64"), make("log", (x,), "f64")
    value(w, ex("add", ex("mul", a, b), make("exp", (a,), "f64")), SCALAR)
    assert w.math_calls == 3 and set(w.shared) == {"vm_exp_f64_s_t", "vm_log_f64_s_t"}
    assert sum("call double @vm_exp_f64_s_t(double %x)" in line for line in w.out.lines) == 1

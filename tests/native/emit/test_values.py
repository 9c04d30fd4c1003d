"""Values: each once, spread over lanes where that is wanted, without deep recursion."""

import ctypes

import numpy as np
import pytest

from calque.native.emit import values
from calque.native.emit.lanes import SCALAR, Lanes
from calque.native.emit.values import operand
from calque.native.emit.writer import CodeOptions, Writer
from calque.native.loops.tree import (
    For,
    Store,
)
from calque.native.scalars.expr import (
    const,
    ex,
    load,
    make,
    ref,
)
from tests.native.emit.shared import (
    address_of,
    c,
    f32,
    i,
    n,
)
from tests.native.run_kernel import (
    array,
    run_plain,
)


def test_deep_expressions():
    x, y = array("x", "f32", n), array("y", "f32", n)
    e = load(x, (i,))
    for k in range(10_000):
        e = ex("add", e, const(float(k % 7), "f32")) if k % 2 else ex("sub", e, load(x, (i,)))
    out = np.zeros(20, "f4")
    text = run_plain(
        (For(i, (Store(y, (i,), e),), (), "serial", 1),), {x: np.zeros(20, "f4"), y: out, "n": 20}
    )
    assert out[0] == sum(k % 7 for k in range(10_000) if k % 2) and len(text) > 10_000


def written(e, lanes=SCALAR, **bound):
    w = Writer("f", CodeOptions(), frozenset())
    for name in e.names:
        w.bind(name, f"%{name}")
    return w, operand(w, e, lanes)


def test_deep_expressions_of_shared_parts_are_written_once():
    """2^200 paths, 200 lines."""
    e = ref("x", "f32")
    for _ in range(200):
        e = ex("add", e, e)
    w, _ = written(e)
    assert len(w.out.lines) == 200


@pytest.mark.parametrize("t", ["i8", "i16", "i64"])
def test_steps_of_an_index(t):
    """First and offsets, wrapped into the type."""
    w = Writer("f", CodeOptions(), frozenset())
    w.bind("i", "%i")
    lanes = Lanes(8, "i", frozenset({"i"}))
    at = ex("sub", c(3), ex("mul", i, c(50)))
    r = values.steps(w, at, -50, t, lanes)
    w.put(f" store <8 x {t}> {r}, ptr %out, align 1")
    f = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(
        address_of(w, "define void @f(ptr %out, i64 %i)")
    )
    out = np.zeros(8, t.replace("i", "int"))
    f(out.ctypes.data, 5)
    np.testing.assert_array_equal(out, (3 - 50 * (5 + np.arange(8))).astype(out.dtype))


def test_a_table_for_each_kind_of_operand():
    assert values.rule_for(ex("add", f32(1.0), ref("x", "f32"))).__module__.endswith(".floats")
    assert values.rule_for(ex("add", ref("k", "i32"), const(1, "i32"))).__module__.endswith(
        "integers"
    )
    assert values.rule_for(make("exp", (f32(1.0),), "f32")).__module__.endswith(".math_calls")
    with pytest.raises(TypeError, match="no code for frobnicate of i8"):
        values.rule_for(make("frobnicate", (ref("b", "i8"),), "i8"))


def test_constants_need_no_code():
    for lanes, text in ((SCALAR, "7"), (Lanes(4), "splat (i64 7)")):
        w, r = written(c(7), lanes)
        assert r == text and not w.out.lines

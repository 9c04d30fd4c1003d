"""One of two values, and sides that are seldom taken."""

import numpy as np
import pytest

from calque.native.loops.tree import (
    For,
    Store,
)
from calque.native.scalars.expr import (
    ex,
    load,
    make,
    param,
    select,
    var,
)
from tests.native.emit.shared import (
    ALL,
    check,
    f32,
    i,
    n,
)
from tests.native.run_kernel import (
    array,
    run_plain,
)


@pytest.mark.parametrize("dtype", ALL)
def test_select_and_copy(dtype):
    check(lambda c, a, b: select(c, a, b), ("i1", dtype, dtype), dtype, np.where)
    check(lambda a: a, (dtype,), dtype, np.copy)


def test_what_is_rare():
    n = var("n")
    i, x, y = var("i", n), array("x", "f32", n), array("y", "f32", n)
    v = load(x, (i,))
    e = make("rare", (ex("gt", v, f32(10.0)), v, ex("neg", ex("sqrt", v))), "f32")
    for kind, width in (("serial", 1), ("vector", 32)):
        for a in (np.arange(50, dtype="f4"), np.zeros(50, "f4")):
            out = np.zeros(50, "f4")
            text = run_plain(
                (For(i, (Store(y, (i,), e),), (), kind, width),), {x: a, y: out, "n": 50}
            )
            np.testing.assert_array_equal(out, np.where(a > 10, -np.sqrt(a), a))
            assert "label %r" in text


def test_a_seldom_side_sees_no_lanes_that_do_not_exist():
    """What such lanes hold may ask for it; it is jumped over where no lane that exists does."""
    x, y = array("x", "f32", n), array("y", "f32", n)
    v = load(x, (i,))
    zero = ex("eq", v, f32(0.0))  # as lanes are that do not exist
    e = make("rare", (zero, ex("neg", v), ex("add", v, f32(9.0))), "f32")
    body = (For(i, (Store(y, (i,), e),), (), "vector", 16),)
    a, out = np.arange(1, 20, dtype="f4"), np.zeros(19, "f4")
    text = run_plain(body, {x: a, y: out, "n": 19}, avx512=True)
    np.testing.assert_array_equal(out, -a)
    assert text.count("vector.reduce.or") > 2


def test_a_seldom_side_outside_of_its_scope_is_a_choice():
    """Its operands are known further out than where it is written: no branch can stand there."""
    x, y, p = array("x", "f32", n), array("y", "f32", n), param("p", "f32")
    e = make("rare", (ex("lt", p, f32(0.0)), ex("sqrt", p), ex("neg", p)), "f32")
    body = (For(i, (Store(y, (i,), ex("mul", load(x, (i,)), e)),), (), "serial", 1),)
    for v, want in ((4.0, 2), (-3.0, 3)):
        a, out = np.arange(5, dtype="f4"), np.zeros(5, "f4")
        text = run_plain(body, {x: a, y: out, "n": 5, p: v})
        np.testing.assert_array_equal(out, a * want)
        assert " = select i1 " in text

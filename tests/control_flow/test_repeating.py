"""Loops over traced values: what is carried, and in which types."""

import re

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.control_flow.repeating import Carried, counting, must_fit, repeated
from calque.control_flow.values import UNBOUND, Unbound
from calque.core.avals import ShapedArray
from calque.core.trace import typeof
from calque.errors import ControlFlowError


def looped(names, values, body, test=None, rows=None):
    """The loop as a program, run on these values; what is traced are the arrays."""
    kept_of = []

    def f(*args):
        out, kept = repeated(names, list(args), body, test, rows, "file:1")
        kept_of[:] = kept
        return out

    return f(*values), kept_of


def test_types_join_until_they_stay():
    """The second variable is a float from the second round on, and so is what is made of it."""

    def body(values, row):
        n, x, y = values
        return [(n + 1, False), (n * 0.5, False), (x + y, False)]

    out, kept = looped(["n", "x", "y"], [0, 0, 0], body, rows=jnp.arange(4.0))
    assert [float(v) for v in out] == [4, 1.5, 0.0 + 0 + 0.5 + 1.0] and kept == [False] * 3
    assert out[1].dtype == np.float32 and out[0].dtype == np.int32


def test_rounds_run_while_the_test_holds():
    def body(values):
        x, steps = values
        return [(x * 2, False), (steps + 1, False)]

    (x, steps), _ = looped(
        ["x", "steps"], [jnp.float32(1), 0], body, lambda values: values[0] < 100
    )
    assert float(x) == 128 and int(steps) == 7


def test_what_every_round_sets_needs_no_value_before():
    def body(values, row):
        return [(row * 2, False)]

    (last,), _ = looped(["last"], [UNBOUND], body, rows=jnp.arange(3.0))
    assert float(last) == 4


def test_what_a_loop_may_leave_unset_says_why():
    def body(values):
        n, _ = values
        return [(n - 1, False), (n, False)]

    (_, t), _ = looped(["n", "t"], [jnp.int32(3), UNBOUND], body, lambda values: values[0] > 0)
    assert isinstance(t, Unbound) and "may run no round: set it before the loop" in t.reason


@pytest.mark.parametrize(
    "second, words",
    [
        (lambda x: jnp.stack([x, x]), r"from float32\[\] to float32\[2\]"),
        (lambda x: (x, x), r"from float32\[\] to \(float32\[\], float32\[\]\)"),
        (lambda x: "text", r"from Array\(0.*\) to 'text'"),
        (lambda x: Unbound("deleted in the loop"), "deleted in the loop"),
    ],
)
def test_variables_that_change_their_kind_are_dropped(second, words):
    def body(values, row):
        return [(second(jnp.float32(1)), False)]

    (v,), _ = looped(["v"], [jnp.float32(0)], body, rows=jnp.arange(3.0))
    assert isinstance(v, Unbound)
    assert re.search(words, v.reason)


def test_what_stays_one_value_is_not_carried():
    carried = Carried("mode", {"kind": "fast", "x": 1.0}, True, "here")
    assert len(carried.carried) == 1 and carried.text() == "{'kind': 'fast', 'x': float32[]}"
    assert carried.value(iter([5.0])) == {"kind": "fast", "x": 5.0}
    assert Carried("t", UNBOUND, True, "here").carried == []


I8 = ShapedArray((), np.dtype("int8"))


def test_bounds_get_one_dtype():
    first, last = counting([0, np.int8(5)])
    assert typeof(first) is typeof(last) is I8
    first, last = counting([np.int32(0), np.int8(5)])
    assert typeof(first).dtype == typeof(last).dtype == np.int32
    with pytest.raises(ControlFlowError, match=r"bound 300 .* does not fit the type int8\[\]"):
        counting([300, np.int8(5)])
    for bad in ([0.5, 3], [0, np.ones(2, int)]):
        with pytest.raises(TypeError, match=r"range\(\) needs integer scalars"):
            counting(bad)
    must_fit(127, I8, "it")
    for x in (128, -129):
        with pytest.raises(ControlFlowError, match="it of range"):
            must_fit(x, I8, "it")


def test_containers_that_a_round_changes_in_place_are_kept():
    def body(values, row):
        (box,) = values
        box[0] = box[0] + row
        return [(box, True)]

    (box,), kept = looped(["box"], [[jnp.float32(0), 1.0]], body, rows=jnp.arange(3.0))
    assert kept == [True] and float(box[0]) == 3 and float(box[1]) == 1
    assert calque.tree.structure(box).num_leaves == 2

"""The values of variables on the ways through a traced construct."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.control_flow.jumps import RESULT, RETURNED
from calque.control_flow.values import (
    UNBOUND,
    Unbound,
    branched,
    common,
    described,
    is_value,
    record,
    same,
    zeros,
)
from calque.core.avals import ShapedArray
from calque.errors import ControlFlowError


def aval(dtype, weak=False, shape=()):
    return ShapedArray(shape, np.dtype(dtype), weak)


@pytest.mark.parametrize(
    "a, b, want",
    [
        (aval("float32"), aval("float32"), aval("float32")),
        (aval("float32"), aval("float32", True), aval("float32")),
        (aval("float32", True), aval("float32", True), aval("float32", True)),
        (aval("int32", True), aval("float32", True), aval("float32", True)),
        (aval("int8"), aval("int32", True), aval("int8")),
        (aval("int8"), aval("int32"), aval("int32")),
        (aval("float32", False, (2,)), aval("float32"), None),
        (aval("float32", False, (2,)), aval("int32", False, (2,)), aval("float32", False, (2,))),
    ],
)
def test_types_of_both(a, b, want):
    assert common(a, b) is want and common(b, a) is want


def test_keys_and_numbers_have_nothing_in_common():
    key = calque.typeof(calque.random.key(0))
    assert common(key, aval("float32")) is None and common(key, key) is key


def test_what_can_be_a_result():
    for x in (1, 2.0, True, 1j, np.ones(2), np.float32(1), jnp.ones(2), calque.random.key(0)):
        assert is_value(x)
    for x in ("text", None, [1], 2**40, object(), np.array(["a"])):
        assert not is_value(x)


def test_what_is_one_value():
    x = jnp.ones(2)
    for a, b in ((x, x), (1, 1), ("a", "a"), (float("nan"), float("nan")), (None, None)):
        assert same(a, b)
    for a, b in ((x, jnp.ones(2)), (1, 1.0), (1, True), (0.0, -0.0), ([1], [1]), ("a", b"a")):
        assert not same(a, b)


def test_recorded_values_of_all_kinds():
    got = record(
        lambda x: [({"a": x + 1, "mode": "fast", "n": 3}, True), (Unbound("why"), False)],
        [aval("float32")], "part", "if",
    )  # fmt: skip
    v, unset = got.variables
    assert v.kept and unset == Unbound("why") and len(got.part.closed.out_avals) == 2
    assert described(v, got) == "{'a': float32[], 'mode': 'fast', 'n': int32[]}"
    assert [leaf.out for leaf in v.leaves] == [0, None, 1]


def test_zeros_of_types():
    for a in (aval("float32", True), aval("bool", False, (2,)), aval("complex64")):
        made = zeros(a)
        assert calque.typeof(made) is a and not np.asarray(made).any()


# ---------------------------------------------------------------- branches


def chosen(then, other, names, *args):
    """What `branched` makes of two ways, for both values of the condition."""

    def f(p, *args):
        out, kept = branched(
            p,
            lambda: [(v, False) for v in then(*args)],
            lambda: [(v, False) for v in other(*args)],
            names, "file:1",
        )  # fmt: skip
        notes.append((out, kept))
        return [v for v in out if not isinstance(v, (Unbound, str))]

    notes = []
    results = [calque.jit(f)(p, *args) for p in (True, False)]
    return [calque.tree.map(lambda v: np.asarray(v).tolist(), r) for r in results], notes[0][0]


def test_values_take_the_type_of_both():
    (yes, no), out = chosen(lambda x: [x, 1], lambda x: [2 * x, 2.5], ["a", "b"], 3.0)
    assert (yes, no) == ([3, 1.0], [6, 2.5]) and out[1].dtype == np.float32


def test_what_is_the_same_in_both_is_no_result():
    closed = calque.make_jaxpr(
        lambda p, x: branched(
            p, lambda: [(("mode", x), False)], lambda: [(("mode", x), False)], ["v"], "f:1"
        )[0][0][1]
    )(True, 1.0)
    assert "cond" not in [e.primitive.name for e in closed.eqns]


def test_a_variable_of_one_branch_is_unset_afterwards():
    (_, _), out = chosen(lambda x: [x, x], lambda x: [x, UNBOUND], ["a", "t"], 3.0)
    assert isinstance(out[1], Unbound) and "only one branch of the `if` at file:1" in out[1].reason
    (_, _), out = chosen(lambda x: [x, x], lambda x: [x, "text"], ["a", "t"], 3.0)
    assert "float32[] in one branch and 'text' in the other" in out[1].reason


def test_what_is_returned_is_read_only_where_it_was_set():
    (yes, no), _ = chosen(lambda x: [x, True], lambda x: [UNBOUND, False], [RESULT, RETURNED], 3.0)
    assert yes == [3, True] and no == [0, False]
    with pytest.raises(ControlFlowError, match="the value that is returned is float32"):
        chosen(lambda x: [x], lambda x: ["text"], [RESULT], 3.0)


def test_after_a_branch_that_returned_the_other_one_counts():
    (yes, no), out = chosen(
        lambda x: [True, x, UNBOUND],
        lambda x: [False, UNBOUND, "mode"],
        [RETURNED, RESULT, "t"],
        3.0,
    )
    assert out[2] == "mode" and yes[1] == 3 and no[0] is False


def test_objects_that_are_no_pytrees_are_named():
    class Own:
        pass

    (_, _), out = chosen(lambda x: [Own()], lambda x: [Own()], ["v"], 3.0)
    assert "Own is no pytree: register it" in out[0].reason


def test_containers_that_both_keep():
    def f(p, x):
        box = [x]
        out, kept = branched(p, lambda: [(box, True)], lambda: [(box, True)], ["box"], "f:1")
        assert kept == [True]
        out, kept = branched(p, lambda: [(box, True)], lambda: [([x], False)], ["box"], "f:1")
        assert kept == [False]
        return out[0][0]

    assert float(calque.jit(f)(True, 2.0)) == 2

"""Counted loops and loops with states, in one lane and in many."""

import numpy as np
import pytest

from calque.native.loops.tree import (
    Acc,
    For,
    LoopValue,
    Recurrence,
    Store,
)
from calque.native.scalars.expr import (
    const,
    ex,
    load,
    param,
    ref,
    select,
    var,
)
from tests.native.emit.shared import (
    c,
    f32,
    i,
    j,
    m,
    n,
    reduction,
    rng,
)
from tests.native.run_kernel import (
    array,
    run,
    run_plain,
)


def test_serial_sums_go_in_order():
    x, y, body = reduction("sum", "f32", "serial", 1)
    a = rng.standard_normal(100).astype("f4")
    out, want = np.zeros((), "f4"), np.float32(0)
    run(body, {x: a, y: out, "n": 100})
    for v in a:
        want += v
    assert out == want


def test_parallel_bounds():
    x, y = array("x", "f32", n, m), array("y", "f32", n, m)
    body = (
        For(
            i,
            (For(j, (Store(y, (i, j), ex("add", load(x, (i, j)), f32(1.0))),), (), "vector", 16),),
            (),
            "parallel",
        ),
    )
    a, out = rng.standard_normal((7, 20)).astype("f4"), np.zeros((7, 20), "f4")
    k = run(body, {x: a, y: out, "n": 7, "m": 20}, begin=2, end=5)
    assert k.parallel
    np.testing.assert_array_equal(out[2:5], a[2:5] + 1)
    assert not out[:2].any() and not out[5:].any()


def test_while_with_states():
    y = array("y", "i64", 2)
    a, steps = ref("a", "i64"), ref("s", "i64")
    even = ex("eq", ex("and", a, c(1)), c(0))
    step = select(even, ex("ashr", a, c(1)), ex("add", ex("mul", a, c(3)), c(1)))
    body = (
        Recurrence((
            LoopValue("a", param("p", "i64"), step),
            LoopValue("s", c(0), ex("add", steps, c(1))),
        ), (), cond=ex("ne", a, c(1))),
        Store(y, (c(0),), a),
        Store(y, (c(1),), steps),
    )  # fmt: skip
    out = np.zeros(2, "i8")
    for start, count in ((27, 111), (1, 0), (6, 8)):
        run(body, {y: out, param("p", "i64"): start})
        assert list(out) == [1, count]


def test_scan_with_states_and_arrays():
    """Fibonacci numbers; all states change at once."""
    y = array("y", "i64", n)
    a, b = ref("a", "i64"), ref("b", "i64")
    body = (
        Recurrence(
            (LoopValue("a", c(0), b), LoopValue("b", c(1), ex("add", a, b))),
            (Store(y, (i,), a),),
            var=i,
        ),
    )
    out = np.zeros(12, "i8")
    run(body, {y: out, "n": 12})
    assert list(out) == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89]
    run(body, {y: out, "n": 0})


def test_states_differ_from_lane_to_lane():
    """z -> z*z + c, a fixed number of times, in every lane."""
    x, y = array("x", "f32", m), array("y", "f32", m)
    z, k = ref("z", "f32"), var("k", n)
    body = (
        For(j, (
            Recurrence((
                LoopValue("z", f32(0.0), ex("add", ex("mul", z, z), load(x, (j,)))),
                LoopValue("q", f32(1.0), f32(2.0)),
            ), (), var=k),
            Store(y, (j,), ex("mul", z, ref("q", "f32"))),
        ), (), "vector", 16),
    )  # fmt: skip
    for size in (5, 16, 40):
        a, out = (rng.random(size) * 0.2).astype("f4"), np.zeros(size, "f4")
        run(body, {x: a, y: out, "n": 5, "m": size}, exact=True)
        want = np.zeros(size, "f4")
        for _ in range(5):
            want = want * want + a
        np.testing.assert_array_equal(out, want * 2)


def test_lanes_end_at_different_rounds():
    """A lane that has ended keeps its states, and stores no more."""
    x, y, z = (array(s, "i64", n) for s in "xyz")
    a, steps = ref("a", "i64"), ref("s", "i64")
    odd = ex("ne", ex("and", a, c(1)), c(0))
    following = select(odd, ex("add", ex("mul", a, c(3)), c(1)), ex("ashr", a, c(1)))
    states = (
        LoopValue("a", load(x, (i,)), following),
        LoopValue("s", c(0), ex("add", steps, c(1))),
    )
    count = Store(z, (i,), ex("add", load(z, (i,)), c(1)))
    loop = Recurrence(states, (count,), cond=ex("gt", a, c(1)))
    body = (For(i, (loop, Store(y, (i,), steps)), (), "vector", 8),)

    def collatz(v):
        k = 0
        while v > 1:
            v, k = 3 * v + 1 if v & 1 else v >> 1, k + 1
        return k

    for size in (1, 8, 29):
        start = rng.integers(0, 300, size)
        out, stored_rounds = np.zeros(size, "i8"), np.zeros(size, "i8")
        run(body, {x: start, y: out, z: stored_rounds, "n": size})
        want = [collatz(int(v)) for v in start]
        assert out.tolist() == want and stored_rounds.tolist() == want


def test_a_fixed_count_of_none():
    """The value of a fold over nothing is its start, also where no code of the loop is left."""
    y, k = array("y", "f32"), var("k", 0)
    fold = Acc("a", "sum", f32(1.0), init=f32(7.0), order="sequential")
    out = np.zeros((), "f4")
    run((For(k, (), (fold,)), Store(y, (), ref("a", "f32"))), {y: out})
    assert out == 7


def test_a_count_and_a_condition_together():
    """The rounds end with the first of both, and the states are those of that round."""
    y, p = array("y", "i64", 1), param("p", "i64")
    s = ref("s", "i64")
    loop = Recurrence((LoopValue("s", c(1), ex("add", s, s)),), (), var=i, cond=ex("lt", s, p))
    body = (loop, Store(y, (c(0),), s))
    out = np.zeros(1, "i8")
    for rounds, limit, want in ((3, 1000, 8), (100, 1000, 1024), (0, 5, 1), (5, 0, 1)):
        run(body, {y: out, "n": rounds, p: limit})
        assert out[0] == want


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 8, 11, 100])
def test_turns_that_write_one_place_keep_their_order(size):
    """A few turns are written one after the other: what each reads is what those before wrote."""
    places, x, y = array("places", "i64", n), array("x", "f32", n), array("y", "f32", const(3))
    at = load(places, (i,))
    inside = ex("lt", at, const(3))
    total = ex("add", ex("mul", load(y, (at,), inside), f32(0.5)), load(x, (i,)))
    body = (For(i, (Store(y, (at,), total, inside),), colliding=True),)
    p, a = rng.integers(0, 5, size), rng.standard_normal(size).astype("f4")
    got, want = np.ones(3, "f4"), np.ones(3, "f4")
    text = run_plain(body, {places: p, x: a, y: got, "n": size})
    for k, v in zip(p, a, strict=True):
        if k < 3:
            want[k] = np.float32(want[k] * np.float32(0.5)) + v
    np.testing.assert_array_equal(got, want)
    assert text.count("load float, ptr") >= 2 * 5  # four turns, and one of the rest

"""What converted code calls, on concrete and on traced values."""

import itertools

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.control_flow import running as r
from calque.control_flow.values import UNBOUND, Unbound
from calque.errors import ControlFlowError

BOOLS = list(itertools.product((False, True), repeat=2))


def traced(f, *args):
    return calque.jit(f)(*args)


def test_conditions():
    for x, want in ((3, True), (0.0, False), ([], False), (jnp.array([2]), True)):
        assert r.truth(x) is want
    for x, want in ((jnp.float32(2), True), (jnp.zeros((1, 1)), False), (jnp.array(True), True)):
        assert bool(traced(r.truth, x)) is want and bool(traced(r.not_, x)) is not want
    with pytest.raises(ValueError, match=r"more than one element.*any\(\) or .all\(\)"):
        traced(r.truth, jnp.ones(2))


@pytest.mark.parametrize("a, b", BOOLS)
def test_and_or_of_conditions(a, b):
    for f, g in ((r.and_, lambda a, b: a and b), (r.or_, lambda a, b: a or b)):
        assert f(a, lambda: b) is g(a, b)
        assert bool(traced(lambda x, y, f=f: f(x, lambda: y), a, b)) is g(a, b)
        assert bool(traced(lambda x, f=f: f(x, lambda: b), a)) is g(a, b)
        assert bool(traced(lambda y, f=f: f(a, lambda: y), b)) is g(a, b)


def test_and_or_of_values_give_one_of_them():
    for x, y in itertools.product((0, 3), (0, 5)):
        assert int(traced(lambda x, y: r.and_(x, lambda: y), x, y)) == (x and y)
        assert int(traced(lambda x, y: r.or_(x, lambda: y), x, y)) == (x or y)
    asked = []
    assert r.and_(0, lambda: asked.append(1)) == 0 and r.or_(1, lambda: asked.append(1)) == 1
    assert asked == []


@pytest.mark.parametrize("values", list(itertools.product((1, 2), repeat=3)))
def test_chains_of_comparisons(values):
    a, b, c = values

    def chain(a, b, c):
        return r.compare(a, "<", lambda: b, "<=", lambda: c, "!=", lambda: 5)

    want = a < b <= c != 5
    assert bool(chain(a, b, c)) is want and bool(traced(chain, a, b, c)) is want
    asked = []
    assert r.compare(2, "<", lambda: 1, "<", lambda: asked.append(1)) is False and asked == []
    assert r.compare(1, "in", lambda: [1, 2], "is not", lambda: None)


def test_conditional_expressions():
    def f(p, x):
        return r.choose(p, lambda: x * 2, lambda: x - 1, 7)

    assert f(True, 3) == 6 and f(False, 3) == 2
    assert [float(traced(f, p, 3.0)) for p in (True, False)] == [6, 2]
    with pytest.raises(ControlFlowError, match=r"conditional expression is .*test_running.py:7"):
        traced(lambda p: r.choose(p, lambda: 1.0, lambda: None, 7), True)


def test_assertions():
    assert r.asserted(1, 3) is True and r.asserted([], 3) is False
    with pytest.raises(ControlFlowError, match=r"line 3 asserts a traced condition.*calque.check"):
        traced(lambda x: r.asserted(x > 0, 3), 1.0)


# ---------------------------------------------------------------- ranges


def looped(*bounds):
    """The items of a range with traced bounds, as a loop goes through them."""

    def f(*traced_bounds):
        out, n = jnp.full(12, -99), 0

        def body(i):
            nonlocal out, n
            out = out.at[n].set(i)
            n = n + 1

        r.Scope().for_(r.range_(*traced_bounds), body, lambda *_: (n, out), None, 1)
        return out, n

    steps = bounds[2:]
    out, n = calque.jit(lambda *b: f(*b, *steps))(*bounds[:2])
    return [int(v) for v in out[: int(n)]]


@pytest.mark.parametrize(
    "bounds",
    [(5,), (0,), (-3,), (2, 6), (6, 2), (1, 9, 3), (1, 10, 3), (9, 1, -3), (5, -1, -1), (3, 3, 2)],
)
def test_ranges_as_in_python(bounds):
    assert looped(*bounds) == list(range(*bounds))
    assert r.range_(*bounds) == range(*bounds)


def test_ranges_of_narrow_types_stop_before_they_overflow():
    assert looped(np.int8(100), np.int8(127), 20) == [100, 120]
    assert looped(np.int8(-100), np.int8(-128), -15) == [-100, -115]


def test_what_is_not_known_of_ranges():
    for ask in (len, list, lambda v: v[0], lambda v: 3 in v, reversed):
        with pytest.raises(ControlFlowError, match="length of a range with a traced bound"):
            traced(lambda n, ask=ask: ask(r.range_(n)), 3)
    with pytest.raises(ControlFlowError, match="traced step"):
        traced(lambda s: r.range_(0, 5, s), 1)
    with pytest.raises(ValueError, match="must not be zero"):
        traced(lambda n: r.range_(0, n, 0), 1)


# ---------------------------------------------------------------- variables and statements


def test_variables_are_the_cells_of_the_lambda():
    x = y = None
    x, y = 1, UNBOUND
    state = r.State(lambda *_: (x, y))
    assert state.names == ("x", "y") and state.read() == [1, UNBOUND]
    state.write([5, 6])
    assert (x, y) == (5, 6)
    state.write([Unbound("gone"), 7])
    with pytest.raises(NameError):
        _ = x
    assert y == 7
    state.write([UNBOUND, 8])  # unset already
    assert state.read() == [UNBOUND, 8]


def test_concrete_conditions_run_one_side_alone():
    scope, ran = r.Scope(), []
    scope.if_(True, lambda: ran.append("then"), lambda: ran.append("else"), lambda *_: (), 1)
    scope.if_(0, lambda: ran.append("then"), lambda: ran.append("else"), lambda *_: (), 1)
    scope.if_(0, lambda: ran.append("then"), None, lambda *_: (), 1)
    n = 0

    def body():
        nonlocal n
        n += 1

    scope.while_(lambda: n < 3, body, lambda *_: (n,), 1)
    scope.for_("ab", lambda item: ran.append(item), lambda *_: (), lambda: len(ran) > 2, 1)
    assert ran == ["then", "else", "a"] and n == 3


def test_a_container_that_a_branch_changes_is_the_same_object_after_it():
    def f(p):
        box, copy = [0.0], [0.0]
        same = box

        def then():
            box[0] = 1.0

        def other():
            nonlocal copy
            copy = [5.0]

        r.Scope().if_(p, then, other, lambda *_: (box, copy), 1)
        assert box is same
        return box, copy

    for p, want in ((True, ([1.0], [0.0])), (False, ([0.0], [5.0]))):
        assert calque.tree.map(float, traced(f, p)) == want == calque.tree.map(float, f(p))


def test_variables_are_as_before_where_a_branch_fails():
    seen = []

    def f(p):
        x = 1.0

        def then():
            nonlocal x
            x = 2.0
            raise KeyError("mine")

        try:
            r.Scope().if_(p, then, None, lambda *_: (x,), 1)
        except KeyError:
            seen.append(x)
        return x

    assert float(traced(f, True)) == 1 and seen == [1.0]


def test_a_function_that_may_end_without_return():
    def f(p, value):
        scope = r.Scope()
        return scope.result(lambda: p, lambda: value)

    assert f(True, 3) == 3 and f(False, 3) is None
    assert traced(lambda p: (f(p, None), p)[1], True)
    with pytest.raises(ControlFlowError, match="nothing otherwise: add a `return`"):
        traced(lambda p: f(p, 1.0), True)


def test_raising_and_storing_under_traced_conditions():
    scope, error = r.Scope(), KeyError("mine")
    assert scope.raising(error, 3) is error
    scope.store(object(), False, "box.x", 4)
    scope.tracing = 1
    refused = scope.raising(error, 3)
    assert isinstance(refused, ControlFlowError) and refused.__cause__ is error
    assert "line 3 raises KeyError('mine')" in str(refused)
    scope.store([1], True, "box[0]", 4)  # copied for each branch
    with pytest.raises(ControlFlowError, match=r"line 4 sets box.x under a traced condition"):
        scope.store(object(), False, "box.x", 4)


def test_why_a_variable_is_unset():
    scope = r.Scope()
    scope.reasons["t"] = "only one branch sets it"
    error = UnboundLocalError("cannot access local variable 't' where it is not associated")
    scope.explain(error)
    assert str(error) == "variable 't' cannot be used here: only one branch sets it."
    other = NameError("name 'u' is not defined")
    scope.explain(other)
    assert str(other) == "name 'u' is not defined"


def test_endless_recursion_is_named():
    def forever():
        return forever()

    with pytest.raises(ControlFlowError, match="whether it stops is not known"):
        r.ending(forever)
    assert r.ending(lambda: 3) == 3

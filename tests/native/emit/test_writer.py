"""Where the code of an expression goes, and how long it is known there."""

from calque.native.emit.emitter import SUBJECTS
from calque.native.emit.lanes import SCALAR, Lanes
from calque.native.emit.values import OPERATIONS, operand, value
from calque.native.emit.writer import CodeOptions, Writer
from calque.native.scalars.expr import const, ex, load, param, var
from tests.native.run_kernel import array

n = var("n")
i, j = var("i", n), var("j", n)


def writer(mutable=frozenset()):
    """In two loops, one in the other."""
    w = Writer("k", CodeOptions(), frozenset(mutable))
    w.bind("n", "%n")
    w.bind("p", "%p")
    for name in "ij":
        w.open(f"b{name}")
        w.bind(name, f"%{name}")
    return w


def lines(w):
    return [len(s.lines) for s in w.scopes]


def test_an_expression_is_written_once_where_its_names_are_known():
    w = writer()
    e = ex("mul", i, n)
    assert value(w, e, SCALAR) == value(w, e, SCALAR)
    assert lines(w) == [0, 1, 0]
    value(w, ex("add", e, j), SCALAR)
    value(w, ex("mul", n, n), SCALAR)
    assert lines(w) == [1, 1, 1]


def test_what_a_closed_scope_computed_is_forgotten():
    w = writer()
    e = ex("mul", j, n)
    first = value(w, e, SCALAR)
    w.close()
    w.open("again")
    w.bind("j", "%again")
    assert value(w, e, SCALAR) != first and len(w.out.lines) == 1


def test_nothing_leaves_a_side_that_may_not_run():
    w = writer()
    w.open("side", lazy=True)
    w.open("inside")
    value(w, ex("mul", n, n), SCALAR)
    assert lines(w) == [0, 0, 0, 1, 0]


def test_reads_stay_behind_barriers_and_inside_loops_that_write():
    x, y = array("x", "f32", n), array("y", "f32", n)
    w = writer(mutable={y})
    w.pointers[x], w.pointers[y] = "%x", "%y"
    w.scopes[1].writes = frozenset({y})
    k = const(3)
    value(w, load(x, (k,)), SCALAR)
    assert lines(w) == [2, 0, 0]
    before = value(w, load(y, (k,)), SCALAR)
    assert lines(w)[1] == 2
    w.forget(frozenset({y}))
    assert value(w, load(y, (k,)), SCALAR) != before
    w.open("maybe", barrier=True)
    value(w, load(x, (const(5),)), SCALAR)
    value(w, ex("mul", n, const(7)), SCALAR)
    assert len(w.out.lines) == 2 and lines(w)[0] == 3


def test_a_uniform_value_is_spread_where_it_is_made():
    w = writer()
    lanes = Lanes(8, "j", frozenset({"j"}))
    p = param("p", "f32")
    assert operand(w, p, SCALAR) == "%p"
    v = operand(w, p, lanes)
    assert operand(w, p, lanes) == v and lines(w) == [2, 0, 0]
    assert operand(w, const(2.0, "f32"), lanes) == "splat (float 0x4000000000000000)"
    assert value(w, j, lanes) != "%j" and value(w, j, SCALAR) == "%j"


def test_every_subject_fills_the_tables():
    names = {f.__module__.rpartition(".")[2] for f in OPERATIONS.values()}
    subjects = {m.__name__.rpartition(".")[2] for m in SUBJECTS}
    assert names - {"values"} <= subjects and {"loads", "choices", "math_calls"} <= names

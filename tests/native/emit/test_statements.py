"""Statements, each by the function of its type; what they write."""

import numpy as np
import pytest

from calque.native.emit.lanes import SCALAR
from calque.native.emit.statements import STATEMENTS, statements, writes
from calque.native.emit.writer import CodeOptions, Writer
from calque.native.loops.tree import For, If, Let, Recurrence, Store
from calque.native.scalars.expr import ex, load, ref
from tests.native.emit.shared import array, c, f32, i, j, m, n
from tests.native.run_kernel import run


def test_every_type_of_statement_has_its_function() -> None:
    assert set(STATEMENTS) == {For, If, Let, Recurrence}  # stores look at the one that follows

    class Unknown:
        pass

    with pytest.raises(KeyError):
        statements(Writer("k", CodeOptions(), frozenset()), (Unknown(),), SCALAR)  # type: ignore[arg-type]


def test_only_buffers_that_are_read_elsewhere_count_as_written() -> None:
    x, y = array("x", "f32", n), array("y", "f32", n)
    body = For(i, (Store(x, (i,), f32(1.0)), Store(y, (i,), f32(2.0))))
    w = Writer("k", CodeOptions(), frozenset({y}))
    assert writes(w, body) == {y} and writes(w, body.body[0]) == frozenset()
    assert writes(Writer("k", CodeOptions(), frozenset()), body) == frozenset()


def test_what_is_written_is_found_once() -> None:
    """Nests ask it at every level: it is kept by the statement, which is kept alive for it."""
    y = array("y", "f32", n)
    w = Writer("k", CodeOptions(), frozenset({y}))
    body = For(i, (Store(y, (i,), load(y, (c(0),))),))
    found = writes(w, body)
    assert writes(w, body) is found and w.written[id(body)][0] is body


def test_a_name_is_bound_where_it_stands() -> None:
    """In lanes or in one for all, before what reads it."""
    x, y = array("x", "f32", n, m), array("y", "f32", n, m)
    body = (
        For(i, (
            Let("a", load(x, (i, c(0)))),
            For(j, (
                Let("b", ex("add", load(x, (i, j)), ref("a", "f32"))),
                Store(y, (i, j), ex("mul", ref("b", "f32"), ref("a", "f32"))),
            ), (), "vector", 8),
        )),
    )  # fmt: skip
    a = np.arange(39, dtype="f4").reshape(3, 13)
    out = np.zeros_like(a)
    run(body, {x: a, y: out, "n": 3, "m": 13})
    np.testing.assert_array_equal(out, (a + a[:, :1]) * a[:, :1])

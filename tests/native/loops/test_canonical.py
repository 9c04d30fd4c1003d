"""Keys of kernels: what stands in them, and what does not."""

import numpy as np

from calque.machine.records import replace
from calque.native.loops.canonical import canonical
from calque.native.loops.tree import (
    Acc,
    For,
    If,
    Let,
    LoopValue,
    Recurrence,
    Store,
)
from calque.native.scalars.expr import (
    Buffer,
    ex,
    load,
    ref,
    var,
)
from tests.native.emit.test_kernels import c, f32, rows, scaled


def test_names_stand_in_no_key():
    assert canonical(scaled()).key == canonical(scaled("abcd")).key
    assert canonical(rows()).key == canonical(rows("yxmn")).key
    assert canonical(rows()).key != canonical(scaled()).key


def test_what_matters_stands_in_the_key():
    keys = {
        canonical(scaled(extra=v, factor=f)).key
        for v in (1.0, 2.0)
        for f in (None, f32(3.0), f32(-0.0), f32(0.0))
    }
    assert len(keys) == 8
    assert (
        canonical(rows()).key != canonical(rows(inner=c(5))).key != canonical(rows(inner=c(6))).key
    )


def test_leading_extents_stand_in_no_key():
    def first(extent):
        i, x = var("i", var("n")), Buffer("x", (extent, 4), "f32")
        return (For(i, (Store(x, (i, c(0)), f32(1.0)),)),)

    assert (
        canonical(first(c(10))).key == canonical(first(c(20))).key == canonical(first(var("q"))).key
    )


def test_order_of_arguments():
    o = canonical(rows("abkl"))
    assert (
        [b.name for b in o.buffers] == ["a", "b"] and set(o.sizes) == {"k", "l"} and o.params == []
    )
    assert [p.attr[0] for p in canonical(scaled("qrst")).params] == ["qp"]


def test_keys_of_deep_and_shared_expressions_are_linear():
    n = var("n")
    i, x = var("i", n), Buffer("x", (n,), "f32")
    e = load(x, (i,))
    for _ in range(20_000):
        e = ex("add", e, e)
    assert len(canonical((For(i, (Store(x, (i,), e),)),)).key) < 1_000_000


def test_every_kind_of_statement_stands_in_the_key():
    """A change of any part of a statement is another key; a change of its names is not."""
    n = var("n")
    i, x = var("i", n), Buffer("x", (n,), "f32")
    v, s = load(x, (i,)), ref("s", "f32")
    plain = For(i, (Store(x, (i,), v),))
    bodies = [
        (plain,),
        (replace(plain, kind="vector", width=8),),
        (replace(plain, kind="vector", width=16),),
        (For(i, (Store(x, (i,), v, ex("lt", v, f32(1.0))),)),),
        (For(i, (Let("s", v), Store(x, (i,), s))),),
        (For(i, (), (Acc("s", "sum", v),)), Store(x, (c(0),), s)),
        (For(i, (), (Acc("s", "max", v),)), Store(x, (c(0),), s)),
        (For(i, (Store(x, (i,), s),), (Acc("s", "sum", v, running=True),)),),
        (For(i, (), (Acc("s", "sum", v, init=f32(1.0)),)), Store(x, (c(0),), s)),
        (For(i, (If(ex("lt", v, f32(0.0)), (Store(x, (i,), v),)),)),),
        (For(i, (If(ex("lt", v, f32(0.0)), (), (Store(x, (i,), v),)),)),),
        (Recurrence((LoopValue("s", f32(0.0), v),), (), var=i), Store(x, (c(0),), s)),
        (Recurrence((LoopValue("s", f32(1.0), v),), (), var=i), Store(x, (c(0),), s)),
        (Recurrence((LoopValue("s", f32(0.0), s),), (), cond=ex("lt", s, f32(1.0))),
        Store(x, (c(0),), s)),
    ]  # fmt: skip
    assert len({canonical(b).key for b in bodies}) == len(bodies)


def test_constants_of_a_buffer_stand_in_the_key():
    def table(data, name="t"):
        k = var("k", 2)
        t, y = Buffer(name, (2,), "f32", "const", data), Buffer("y", (2,), "f32")
        return (For(k, (Store(y, (k,), load(t, (k,))),)),)

    one, two = np.array([1, 2], "f4").tobytes(), np.array([1, 3], "f4").tobytes()
    assert canonical(table(one)).key != canonical(table(two)).key
    assert canonical(table(one)).key == canonical(table(one, "other")).key
    assert [b.name for b in canonical(table(one)).buffers] == ["y"]


def test_operands_that_are_one_are_told_from_two():
    """x[i] + x[i] and x[i] + y[i]; a loop in itself and two beside each other."""
    n = var("n")
    i = var("i", n)
    x, y, z = (Buffer(s, (n,), "f32") for s in "xyz")

    def added(a, b):
        return (For(i, (Store(z, (i,), ex("add", load(a, (i,)), load(b, (i,)))),)),)

    assert canonical(added(x, x)).key != canonical(added(x, y)).key
    assert canonical(added(x, y)).key == canonical(added(y, x)).key
    one = added(x, y)
    assert canonical((*one, *one)).key != canonical(one).key


def test_what_is_brought_near_stands_in_the_key():
    i = var("i", var("n"))
    x, y = Buffer("x", (var("n"),), "f32"), Buffer("y", (var("n"),), "f32")
    loop = For(i, (Store(y, (i,), load(x, (i,))),))
    near = [replace(loop, ahead=(load(b, (i,)),)) for b in (x, y)]
    assert len({canonical((f,)).key for f in (loop, *near)}) == 3

"""Loop trees: printed, walked, and changed."""

from calque.native.loops.tree import (
    Acc,
    For,
    If,
    Let,
    Recurrence,
    Store,
    as_fold,
    loaded,
    map_exprs,
    map_stores,
    nodes,
    pretty,
    statements,
    stored,
    with_buffers,
)
from calque.native.scalars.expr import (
    const,
    ex,
    load,
    ref,
)
from tests.native.emit.shared import (
    f32,
    i,
    j,
    m,
    n,
)
from tests.native.run_kernel import (
    array,
)


def sample():
    x, y = array("x", "f32", n, m), array("y", "f32", n)
    v = load(x, (i, j))
    return (
        x,
        y,
        (
            For(
                i,
                (
                    For(j, (), (Acc("a", "sum", ex("mul", v, v)),), "vector", 64),
                    Store(y, (i,), ref("a", "f32")),
                ),
            ),
        ),
    )


def test_printing():
    _x, _y, body = sample()
    assert (
        pretty(body)
        == "for i < n:\n  for j < m @vector(64):\n    a = sum((x[i, j] * x[i, j]))\n  y[i] = a"
    )


def test_traversal():
    x, y, body = sample()
    assert stored(body) == {y} and loaded(body) == {x}
    assert [type(s).__name__ for s in statements(body)] == ["For", "For", "Store"]
    assert {e.op for e in nodes(body)} == {"var", "mul", "load", "ref"}
    assert map_exprs(body, lambda e: e) == body
    assert as_fold(Acc("a", "max", f32(0.0))).combine[0].op == "max"


def test_stores_are_changed_wherever_they_stand():
    y, z = array("y", "f32", n), array("z", "f32", n)
    one = const(1.0, "f32")
    store = Store(y, (i,), one)
    body = (
        For(i, (store,)),
        If(const(True, "i1"), (store,), (store,), ()),
        Recurrence((), (store,), i, None, (store,)),
        Let("x", one),
    )
    made = map_stores(body, lambda s: Store(z, s.idx, s.value))
    assert stored(body) == {y} and stored(made) == {z}
    assert sum(isinstance(s, Store) for s in statements(made)) == 5


def test_other_buffers():
    """Loads in loads, guards and folds, and stores; two may change places."""
    x, y, body = sample()
    table = array("t", "i64", n)
    far = load(x, (load(table, (i,)), j), ex("lt", load(table, (j,)), n))
    body = (*body, For(i, (Store(y, (load(table, (i,)),), far),)))
    u, v, other = array("u", "f32", n, m), array("v", "f32", n), array("o", "i64", n)
    made = with_buffers(body, {x: u, y: v, table: other})
    assert loaded(made) == {u, other} and stored(made) == {v}
    text = pretty(body)
    for old, new in (("x[", "u["), ("y[", "v["), ("t[", "o[")):
        text = text.replace(old, new)
    assert pretty(made) == text
    assert with_buffers(made, {u: x, v: y, other: table}) == body
    a, b = array("a", "f32", n), array("b", "f32", n)
    swapped = with_buffers((For(i, (Store(a, (i,), load(b, (i,))),)),), {a: b, b: a})
    assert pretty(swapped) == "for i < n:\n  b[i] = a[i]"

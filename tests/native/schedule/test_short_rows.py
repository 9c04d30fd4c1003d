"""Rows of a few elements on the stack become names, and the loops over them are unrolled."""

from typing import Any

import calque.numpy as jnp
from calque import lax
from calque.machine.records import replace
from calque.native.loops.tree import Body, For, Let, Store, loaded, statements, stored
from calque.native.plan.steps import Call, walk
from calque.native.scalars.expr import Buffer, const, ex, load, var
from calque.native.schedule.short_rows import with_brief_written_out, without_short_rows
from tests.native.programs import check, normal

N = var("n")
X, Y = Buffer("x", (N, const(3)), "f32"), Buffer("y", (N,), "f32")
J, C = var("d0", N), var("d1", const(3))


def row(extent: int = 3) -> Buffer:
    return Buffer("t", (const(extent),), "f32", "stack")


def kernel(t: Buffer, before: Any = (), after: Any = ()) -> Body:
    """for j: (for c < 3: t[c] = x[j, c] * 2); y[j] = t[0] + t[2]"""
    write = Store(t, (C,), ex("mul", load(X, (J, C)), const(2.0, "f32")))
    total = ex("add", load(t, (const(0),)), load(t, (const(2),)))
    return (For(J, (*before, For(C, (write,)), Store(Y, (J,), total), *after)),)


def test_a_short_row_becomes_names() -> None:
    made = without_short_rows(kernel(row()))
    assert [s.name for s in statements(made) if isinstance(s, Let)] == ["t.0", "t.1", "t.2"]
    assert sum(isinstance(s, For) for s in statements(made)) == 1
    assert stored(made) == {Y} and loaded(made) == {X}


def test_loops_that_read_the_row_are_unrolled_as_well() -> None:
    t = row()
    z = Buffer("z", (N, const(3)), "f32")
    again = For(C, (Store(z, (J, C), ex("add", load(t, (C,)), load(t, (const(1),)))),))
    made = without_short_rows(kernel(t, after=(again,)))
    assert sum(isinstance(s, For) for s in statements(made)) == 1 and stored(made) == {Y, z}
    assert loaded(made) == {X}


def test_other_rows_stay() -> None:
    t = row()
    k = var("d2", N)
    for body in (
        kernel(row(8)),  # fills a vector
        kernel(t, before=(Store(Y, (J,), load(t, (const(0),))),)),  # read before it is written
        kernel(t, before=(Store(t, (const(1),), const(0.0, "f32")),)),  # written twice
        kernel(t, after=(For(k, (Store(Y, (k,), load(t, (const(1),))),)),)),  # read further inside
    ):
        assert without_short_rows(body) == body


def test_pairwise_forces_run_along_the_pairs() -> None:
    def f(x: Any) -> Any:
        def step(x: Any, _: Any) -> Any:
            d = x[:, None] - x[None]
            d = d - 12 * jnp.round(d / 12)
            w = 1 / ((d**2).sum(-1) + 1.0)
            return x + 0.01 * (d * w[..., None]).sum(1), None

        return lax.scan(step, x, None, length=3)[0]

    e = check(f, normal(70, 3), tol=1e-3)
    pairs = [s for s in walk(e.steps) if isinstance(s, Call) and "round" in str(s.body)]
    assert pairs
    rows = {b for s in pairs for b in stored(s.body) if b.place == "stack" and len(b.shape) == 1}
    assert all(b.shape[0] is not const(3) for b in rows)


def test_short_loops_in_a_vector_are_written_out() -> None:
    """Each turn reads places that it names, in place of places that differ from lane to lane."""
    i, c = var("i", var("n")), var("c", 3)
    x, y = Buffer("x", (var("n"), const(3)), "f32"), Buffer("y", (var("n"), const(3)), "f32")
    turned = ex("mod", ex("add", c, const(1)), const(3))
    short = For(c, (Store(y, (i, c), load(x, (i, turned))),))
    last = Store(y, (i, const(0)), load(y, (i, const(2))))
    made = with_brief_written_out(For(i, (short, last)))
    assert [type(s) for s in made.body] == [Store] * 4
    assert [s.value.args[1].attr for s in made.body if isinstance(s, Store)] == [1, 2, 0, 2]
    for other in (For(i, (last,)), For(i, (replace(short, var=var("c", 5)), last))):
        assert with_brief_written_out(other) is other

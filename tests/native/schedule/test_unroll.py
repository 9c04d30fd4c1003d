"""Short loops around reductions, unrolled inside them."""

from typing import Any

import numpy as np
import pytest

from calque.machine.records import replace
from calque.native.loops.tree import Acc, For, Let, Store, statements
from calque.native.lower.sizes import Sizes
from calque.native.scalars.expr import Buffer, cast, const, ex, load, make, ref, var
from calque.native.schedule import unroll
from tests.native.run_kernel import run

n = var("n")
X, Y, OUT = Buffer("x", (n,), "f32"), Buffer("y", (8, n), "f32"), Buffer("out", (8,), "f32")


def nest(turns: int = 3, dear: bool = True, **changes: Any) -> For:
    """out[c] = sum over k of y[c, k] * exp(x[k])"""
    c, k = var("c", turns), var("k", n)
    g = load(X, (k,))
    value = ex("mul", load(Y, (c, k)), make("exp", (g,), "f32") if dear else g)
    fold = replace(For(k, (), (Acc("r", "sum", value),)), **changes)
    return For(c, (fold, Store(OUT, (c,), ref("r", "f32"))))


def exps(body: Any) -> int:
    return sum(a.value.args[1].op == "exp" for s in statements(body) if isinstance(s, For) for a in
    s.accs if isinstance(a, Acc) and a.value.op == "mul")  # fmt: skip


@pytest.mark.parametrize("turns", [2, 3, 8])
def test_one_pass_for_all_turns(turns: int) -> None:
    """The same sums, in their order, in one loop over k; the exponential is one expression."""
    made = unroll.unrolled((nest(turns),))
    loops = [s for s in statements(made) if isinstance(s, For)]
    assert len(loops) == 1 and len(loops[0].accs) == turns
    assert [a.name for a in loops[0].accs] == [f"r.{k}" for k in range(turns)]
    shared = {a.value.args[1] for a in loops[0].accs if isinstance(a, Acc)}
    assert len(shared) == 1
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal(70).astype("f4"), rng.standard_normal((8, 70)).astype("f4")
    got, want = np.zeros(8, "f4"), np.zeros(8, "f4")
    vector = [replace(s, kind="vector", width=64) if isinstance(s, For) else s for s in made]
    run(tuple(vector), {X: x, Y: y, OUT: got, "n": 70})
    for row in range(turns):
        want[row] = np.sum(y[row].astype("f8") * np.exp(x.astype("f8")))
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-5)


def test_what_stays_a_loop() -> None:
    """Cheap work, too many turns or sums, orders that would change, loops that are not alike."""
    k = var("k", n)
    for f in (
        nest(1),
        nest(9),
        nest(dear=False),
        nest(accs=(Acc("r", "sum", load(X, (k,)), running=True),)),
        nest(kind="vector", width=8),
        replace(nest(), colliding=True),
        replace(nest(), kind="vector", width=4),
        replace(nest(), var=var("c", n)),
        replace(nest(), body=(Let("v", const(1.0, "f32")), *nest().body)),
    ):
        assert not unroll.suits(f, True) and unroll.unrolled((f,)) == (f,)
    assert unroll.suits(nest(), True)


def in_order(turns: int = 3) -> For:
    """out[c] = sum over k of y[c, k], in the order of k"""
    each = load(Y, (var("c", turns), var("k", n)))
    return nest(turns, accs=(Acc("r", "sum", each, order="sequential"),))


def test_few_sums_in_the_order_of_their_loop_go_on_beside_each_other() -> None:
    """Each addition waits for the one before, so that others have the time to be made."""
    made, *stores = unroll.unrolled((in_order(4),))
    assert isinstance(made, For) and [a.name for a in made.accs] == [f"r.{k}" for k in range(4)]
    assert len(stores) == 4
    y, got = np.random.default_rng(0).standard_normal((8, 70)).astype("f4"), np.zeros(8, "f4")
    run((made, *stores), {Y: y, OUT: got, "n": 70})
    want = [np.cumsum(row)[-1] for row in y[:4]]
    assert got[:4].tolist() == np.array(want).tolist()
    two = For(var("b", 2), (in_order(4),))
    assert sum(len(s.accs) for s in statements(unroll.unrolled((two,))) if isinstance(s, For)) == 8
    mixed = For(var("k", n), (), (*in_order().body[0].accs, *nest().body[0].accs))  # type: ignore[union-attr]
    assert not unroll.suits(replace(nest(), body=(mixed,)), True)


def test_many_sums_in_order_stay_in_turns() -> None:
    """A long loop around them is a vector of them."""
    long = For(var("b", n), (in_order(),))
    assert unroll.unrolled((long,)) == (long,)
    many = For(var("b", unroll.FEW + 1), (in_order(),))
    assert unroll.unrolled((many,)) == (many,)
    wide = in_order(unroll.FEW + 1)
    assert unroll.unrolled((wide,)) == (wide,)


def test_sums_that_read_what_the_turns_store_stay_in_turns() -> None:
    c, k = var("c", 3), var("k", n)
    value = ex("mul", load(OUT, (c,)), make("exp", (load(X, (k,)),), "f32"))
    fold = For(k, (), (Acc("r", "sum", value),))
    assert not unroll.suits(For(c, (fold, Store(OUT, (c,), ref("r", "f32")))), True)


def test_extents_that_depend_on_the_turn_stay() -> None:
    c = var("c", 3)
    inner = var("k", ex("add", c, const(5)))
    value = make("exp", (cast(inner, "f32"),), "f32")
    assert not unroll.suits(For(c, (For(inner, (), (Acc("r", "sum", value),)),)), True)


def test_nests_inside_of_loops() -> None:
    """Of an outer loop the inside is unrolled; its own turns go on."""
    b = var("b", n)
    made = unroll.unrolled((For(b, (nest(),)),))
    assert isinstance(made[0], For) and made[0].var is b
    assert len([s for s in made[0].body if isinstance(s, Store)]) == 3
    assert unroll.repeated(nest(), nest().body[0]) >= unroll.SHARED  # type: ignore[arg-type]
    assert Sizes().known


def test_turns_of_sums_are_written_beside_each_other() -> None:
    n = var("n")
    x, y = Buffer("x", (n, const(3), n), "f32"), Buffer("y", (n, const(3)), "f32")
    i, c, k = var("d0", n), var("d1", const(3)), var("d2", n)
    total = For(k, (), (Acc("r", "sum", load(x, (k, c, i))),))
    short = For(c, (total, Store(y, (i, c), ref("r", "f32"))))
    made = unroll.written_out(For(i, (short,)))
    assert [type(s) for s in made.body] == [For, Store] * 3
    assert [s.idx[1].attr for s in made.body if isinstance(s, Store)] == [0, 1, 2]
    for other in (
        For(i, (short, short)),
        For(i, (total,)),
        For(i, (For(c, (Store(y, (i, c), const(0.0, "f32")),)),)),
        For(i, (For(var("d1", const(5)), short.body),)),
        For(i, (For(var("d1", const(0)), short.body),)),
        For(i, (For(k, short.body),)),
    ):
        assert unroll.written_out(other) is other


def rows_times_columns(columns: int = 3, order: Any = "sequential", row: Any = None) -> For:
    """for i: for c: (for k: s = sum(x[i, k] * w[k, c])); z[i, c] = s"""
    i, c, k = var("i", n), var("c", columns), var("k", var("m"))
    x, w = Buffer("x", (n, var("m")), "f32"), Buffer("w", (var("m"), const(columns)), "f32")
    z = Buffer("z", (n, const(columns)), "f32")
    value = ex("mul", load(x, (i, k)) if row is None else row, load(w, (k, c)))
    fold = For(k, (), (Acc("s", "sum", value, order=order),))
    return For(i, (For(c, (fold, Store(z, (i, c), ref("s", "f32")))),))


def test_sums_that_read_the_same_row_stand_beside_each_other() -> None:
    made = unroll.with_sums_beside(rows_times_columns())
    sums, *stores = made.body
    assert isinstance(sums, For) and [a.name for a in sums.accs] == ["s.0", "s.1", "s.2"]
    assert [s.value.attr[0] for s in stores if isinstance(s, Store)] == ["s.0", "s.1", "s.2"]


def test_sums_that_stay_one_after_the_other() -> None:
    """In blocks, of many columns, and where each reads something else."""
    other = load(X, (ex("add", var("k", var("m")), var("c", 3)),))
    for f in (
        rows_times_columns(order="blocked"),
        rows_times_columns(9),
        rows_times_columns(row=other),
        replace(rows_times_columns(), body=()),
    ):
        assert unroll.with_sums_beside(f) is f

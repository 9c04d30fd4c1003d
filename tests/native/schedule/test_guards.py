"""What stores wait for stands around the loops that do not change it."""

from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.native.loops.tree import Acc, Body, For, If, Let, Statement, Store, statements
from calque.native.lower.sizes import Sizes
from calque.native.scalars.expr import Buffer, Expr, both, const, ex, load, ref, var
from calque.native.schedule.guards import conjuncts, with_conditions_outside
from tests.native.programs import compiled, normal
from tests.native.run_kernel import run

SIZES = Sizes()
N, M = SIZES.dim(30), SIZES.dim(40)
ROWS, COLUMNS = var("d", N), var("c", M)
X, Y = Buffer("x", (N, M), "f32"), Buffer("y", (SIZES.dim(20), M), "f32")
I = Buffer("i", (N,), "i64")
PLACE = load(I, (ROWS,))
INSIDE = ex("lt", PLACE, const(20))


def add(guard: Expr, columns: Expr = COLUMNS) -> Store:
    """y[i[d], c] += x[d, c] if guard"""
    at = (PLACE, columns)
    return Store(Y, at, ex("add", load(Y, at, guard), load(X, (ROWS, columns))), guard)


def nest(*inner: Statement, kind: Any = "vector") -> For:
    """for d @colliding: for c @kind: ..."""
    width = 8 if kind == "vector" else 1
    return For(ROWS, (For(COLUMNS, inner, kind=kind, width=width),), colliding=True)


def outside(*body: Statement, sizes: Sizes = SIZES) -> Body:
    return with_conditions_outside(body, sizes)


def guards(body: Body) -> list[Expr | None]:
    return [s.guard for s in statements(body) if isinstance(s, Store)]


def conditions(body: Body) -> list[Expr]:
    return [s.cond for s in statements(body) if isinstance(s, If)]


@pytest.mark.parametrize("kind", ["vector", "serial"])
def test_a_condition_of_the_row_stands_around_its_columns(kind: Any) -> None:
    made = outside(nest(add(INSIDE), kind=kind))
    (rows,) = made
    assert isinstance(rows, For) and rows.colliding
    (asked,) = rows.body
    assert isinstance(asked, If) and asked.cond is INSIDE and guards(made) == [None]
    (columns,) = asked.then
    assert isinstance(columns, For) and columns.kind == kind
    (store,) = columns.body
    assert isinstance(store, Store) and store.value is add(const(True, "i1")).value


def test_it_stores_what_it_did() -> None:
    r = np.random.default_rng(0)
    i = r.integers(-3, 25, 30)
    body = nest(add(both(INSIDE, ex("ge", PLACE, const(0)))))
    results = []
    for made in ((body,), outside(body)):
        values: dict[Any, Any] = {X: normal(30, 40), Y: normal(20, 40, seed=1), I: i}
        values |= {"s30": 30, "s40": 40, "s20": 20}
        run(made, values)
        results.append(values[Y])
    want = normal(20, 40, seed=1)
    for row, x in zip(i, normal(30, 40), strict=True):
        if 0 <= row < 20:
            want[row] += x
    assert results[0].tobytes() == results[1].tobytes() == want.tobytes()


def test_only_what_the_loop_does_not_change_moves() -> None:
    odd = ex("lt", COLUMNS, const(7))
    made = outside(nest(add(both(odd, INSIDE))))
    assert conditions(made) == [INSIDE] and guards(made) == [odd]
    body = (nest(add(odd)),)
    assert with_conditions_outside(body, SIZES) == body
    own = For(COLUMNS, (Store(Y, (const(0), COLUMNS), const(1.0, "f32"), INSIDE),))
    changed = For(ROWS, (For(COLUMNS, (add(INSIDE), Store(I, (ROWS,), COLUMNS))),))
    assert conditions(outside(For(ROWS, (own,)))) == [INSIDE]
    assert conditions(outside(changed)) == []  # the loop writes what the condition reads


def test_neighbours_that_wait_for_the_same_stand_together() -> None:
    small = For(ROWS, tuple([add(INSIDE, const(k)) for k in range(3)]), colliding=True)
    made = outside(small)
    assert conditions(made) == [INSIDE] and guards(made) == [None] * 3
    single = For(ROWS, (add(INSIDE),))
    assert outside(single) == (single,)  # it asks by itself
    other = ex("lt", PLACE, const(9))
    mixed = For(ROWS, (add(INSIDE), add(INSIDE, const(1)), add(other)))
    assert conditions(outside(mixed)) == [INSIDE]
    (rows,) = outside(mixed)
    assert isinstance(rows, For) and isinstance(rows.body[1], Store)


def test_names_stay_with_their_statements() -> None:
    twice = Let("t", ex("mul", load(X, (ROWS, COLUMNS)), const(2.0, "f32")))
    store = Store(Y, (PLACE, COLUMNS), ref("t", "f32"), INSIDE)
    made = outside(nest(twice, store))
    assert conditions(made) == [INSIDE] and guards(made) == [None]
    above = ex("gt", ref("t", "f32"), const(0.0, "f32"))
    own = nest(twice, Store(Y, (PLACE, COLUMNS), ref("t", "f32"), above))
    assert outside(own) == (own,)
    folded = Acc("s", "sum", load(X, (ROWS, COLUMNS)))
    sums = For(ROWS, (For(COLUMNS, (add(INSIDE),), (folded,)),))
    assert outside(sums) == (sums,)  # its sum is wanted in any case


def test_a_loop_without_turns_reads_nothing() -> None:
    sizes = Sizes(known=False)
    made = outside(nest(add(INSIDE)), sizes=sizes)
    (asked,) = conditions(made)
    turns, then = conjuncts(asked)
    assert turns is ex("gt", M, const(0)) and then is not INSIDE
    assert all(e is turns for e in [conjuncts(load_of(then))[0]])
    beside = For(ROWS, (For(COLUMNS, (add(INSIDE), add(INSIDE, const(0)))), add(INSIDE)))
    assert conditions(outside(beside, sizes=sizes)) == [asked]


def load_of(e: Expr) -> Expr:
    """The guard of the read in a comparison."""
    (read,) = [a for a in e.args if a.op == "load"]
    return read.args[-1]


@pytest.mark.parametrize("mode", ["drop", "promise_in_bounds"])
@pytest.mark.parametrize("shape", [(50, 3), (50, 7), (50, 64), (50, 4, 20)], ids=str)
def test_rows_left_out_need_no_masks(mode: str, shape: tuple[int, ...]) -> None:
    r = np.random.default_rng(3)
    i = r.integers(-60, 60, 200)
    u = normal(200, *shape[1:])

    def f(x: Any, u: Any) -> Any:
        return x.at[i].add(u, mode=mode)

    text = compiled(f, np.ones(shape, np.float32), u).as_text()
    assert "if " in text and " if " not in text.replace("  if ", "")
    want = np.ones(shape, np.float32)
    for row, x in zip(i, u, strict=True):
        if -50 <= row < 50:
            want[row] += x
    got = calque.jit(f)(jnp.ones(shape), u)
    assert np.asarray(got).tobytes() == want.tobytes()
    assert np.asarray(f(jnp.ones(shape), u)).tobytes() == want.tobytes()

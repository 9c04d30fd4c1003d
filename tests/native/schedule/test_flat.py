"""Rows that do not fill vectors become one loop over all elements."""

from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.native.loops.tree import Acc, For, If, Let, Store, statements
from calque.native.lower.sizes import Sizes
from calque.native.scalars.expr import Buffer, Expr, cast, const, ex, linear, load, stride, var
from calque.native.schedule import flat
from calque.native.schedule.flat import as_one, flattened, wastes
from calque.native.schedule.threads import PARALLEL_NS
from tests.native.programs import check, compiled, normal
from tests.native.run_kernel import run

SIZES = Sizes()
WIDTH = 64


def nest(*shape: int, value: Any = None, to: Any = None) -> For:
    """y = 2 x, in loops over all axes"""
    dims = [SIZES.dim(n) for n in shape]
    loops = [var(f"d{k}", d) for k, d in enumerate(dims)]
    x, y = Buffer("x", dims, "f32"), Buffer("y", dims, "f32")
    twice = ex("mul", load(x, loops), const(2.0, "f32"))
    body: Any = Store(y, tuple(loops), twice)
    if value is not None:
        body = Store(y, tuple(loops), value(x, loops))
    if to is not None:
        body = to(loops, twice)
    for v in reversed(loops):
        body = For(v, (body,))
    return body


def loops_of(f: For) -> list[str]:
    return [s.name for s in statements((f,)) if isinstance(s, For)]


@pytest.mark.parametrize(
    "shape,left",
    [
        ((100, 65), 1),
        ((100, 3), 1),
        ((100, 20, 3, 3), 2),
        ((90, 30, 3), 1),
        ((30, 85, 3), 2),
        ((90, 7, 7, 20), 2),  # rows of 980 waste little
        ((100, 128), 2),
        ((100, 1000), 2),  # the last vector of a row is nothing beside it
        ((5, 7), 2),  # no vector is full in any case
        ((50, 128, 2), 2),
        ((70,), 1),
    ],
)
def test_short_rows_become_one_loop(shape: tuple[int, ...], left: int) -> None:
    f = nest(*shape)
    made = flattened(f, SIZES, WIDTH)
    assert len(loops_of(made)) == left
    (store,) = [s for s in statements((made,)) if isinstance(s, Store)]
    last = loops_of(made)[-1]
    assert stride(linear(store.buf.shape, store.idx), last) == 1
    if left == len(shape):
        assert made is f
    x, y = normal(*shape), np.zeros(shape, np.float32)
    buffers = {b.name: b for b in (store.buf, *store.value.bufs)}
    run((made,), {buffers["x"]: x, buffers["y"]: y, **SIZES.values})
    np.testing.assert_array_equal(y, 2 * x)


def at_column(x: Buffer, loops: list[Expr]) -> Expr:
    return cast(loops[-1], "f32")


def turned(x: Buffer, loops: list[Expr]) -> Expr:
    return load(Buffer("z", x.shape[::-1], "f32"), loops[::-1])


def of_a_row(x: Buffer, loops: list[Expr]) -> Expr:
    return load(Buffer("z", x.shape[1:], "f32"), loops[1:])


def guarded(x: Buffer, loops: list[Expr]) -> Expr:
    return load(x, loops, ex("lt", loops[1], const(3)))


def longer_rows(x: Buffer, loops: list[Expr]) -> Expr:
    return load(Buffer("z", [x.shape[0], SIZES.dim(80)], "f32"), loops)


@pytest.mark.parametrize("value", [at_column, turned, of_a_row, guarded, longer_rows])
def test_what_depends_on_rows_or_columns_keeps_its_loops(value: Any) -> None:
    f = nest(100, 65, value=value)
    assert flattened(f, SIZES, WIDTH) is f


def test_other_nests_stay() -> None:
    f = nest(100, 65)
    (inner,) = f.body
    assert isinstance(inner, For)
    total = (Acc("r", "sum", const(1.0, "f32")),)
    row = Buffer("row", (4,), "f32", "stack")
    for other in (
        For(f.var, (For(inner.var, inner.body, total),)),
        For(f.var, (inner, inner)),
        For(f.var, (Let("a", const(1.0, "f32")), inner)),
        For(f.var, (inner,), colliding=True),
        For(f.var, (For(inner.var, inner.body, kind="vector", width=4),)),
        For(f.var, (For(inner.var, (If(const(True, "i1"), inner.body, (), ()),)),)),
        nest(100, 65, to=lambda loops, v: Store(row, (const(0),), v)),
    ):
        assert flattened(other, SIZES, WIDTH) is other
    assert flattened(f, Sizes(known=False), WIDTH) is f
    assert as_one([f, inner]) is not None


def test_threads_rather_share_rows_than_few_elements() -> None:
    f = nest(100, 65)
    heavy = nest(100, 65, value=lambda x, loops: dear(load(x, loops)))
    assert len(loops_of(flattened(f, SIZES, WIDTH))) == 1
    assert flattened(heavy, SIZES, WIDTH) is heavy


def dear(e: Expr) -> Expr:
    for _ in range(int(PARALLEL_NS / 50)):
        e = ex("add", e, ex("mul", e, const(0.5, "f32")))
    return e


def test_what_wastes_vectors() -> None:
    assert wastes(3, 64) and wastes(63, 64) and wastes(65, 64) and wastes(100, 64)
    assert not wastes(64, 64) and not wastes(128, 64) and not wastes(1000, 64)


def test_programs_with_odd_rows() -> None:
    x = normal(37, 65)
    check(lambda x: (jnp.tanh(x) * x, x + x[0], x.T * 2, jnp.flip(x, 1) + x), x)
    check(lambda x: jnp.sin(x) * (x + 1j), x)
    check(lambda x: jnp.pad(x, 1) * 2, x)
    check(lambda x: jnp.where(x > 0, x, 0).astype(jnp.int8) + jnp.int8(1), x)
    check(lambda x: x[:, None, :3] * x[:, :3, None], x)
    check(lambda x: jnp.choose((x > 0).astype(int), [x[0, 0], x * 2], mode="wrap"), x)
    (call,) = compiled(lambda x: jnp.tanh(x) * x, x).calls
    assert len(loops_of(call.body[0])) == 1  # type: ignore[arg-type]


def test_a_loop_used_in_parts_is_two() -> None:
    """before: for v < 60: y[v] = x[v % 6, v // 6]      after: for q < 10: for r < 6: ..."""
    x, y = Buffer("x", (6, 10), "f32"), Buffer("y", (60,), "f32")
    v = var("v", const(60))
    read = load(x, (ex("mod", v, const(6)), ex("floordiv", v, const(6))))
    q, r = flat.divided([For(v, (Store(y, (v,), read),))], Sizes())
    assert (q.extent, r.extent) == (const(10), const(6))
    (s,) = r.body
    assert isinstance(s, Store) and s.value is load(x, (r.var, q.var))
    whole = For(v, (Store(y, (v,), load(y, (v,))),))
    assert flat.divided([whole], Sizes()) == [whole]


def test_loops_that_collide_are_divided_in_their_order() -> None:
    """Their turns may write the same places, so that the last one stays."""
    index, values = np.array([3, 1, 3, 3, 0, 1] * 20, "i4"), np.arange(40, dtype="f")

    def put(index: Any, values: Any) -> Any:
        spread = jnp.broadcast_to(values[:, None], (40, 3)).ravel()
        return jnp.zeros(4).at[index].set(spread), jnp.zeros(4).at[index].add(spread)

    text = check(put, index, values, tol=1e-6).as_text("loops")
    assert text.count("@colliding") == 4 and "[d0.q]" in text
    grid = normal(5, 8) > 0  # running sums say which places are written
    rows, columns = calque.jit(lambda x: jnp.nonzero(x, size=40, fill_value=-1))(grid)
    want = np.nonzero(grid)
    assert np.array_equal(np.asarray(rows)[: want[0].size], want[0])
    assert np.array_equal(np.asarray(columns)[: want[1].size], want[1])


def test_loops_that_go_on() -> None:
    """Of three loops those that nothing parts are one."""
    i, j, k = (var(n, const(e)) for n, e in (("i", 4), ("j", 5), ("k", 6)))
    x, y = Buffer("x", (5, 6, 4), "f32"), Buffer("y", (4, 5, 6), "f32")
    leaf = For(k, (Store(y, (i, j, k), load(x, (j, k, i))),))
    loops = flat.joined(flat.nest_of(flat.nested([For(i, ()), For(j, ()), leaf])))
    assert [f.extent for f in loops] == [const(4), const(30)]


def test_deep_nests_have_few_loops() -> None:
    """However many axes an array has: what one of them parts is three loops, of any length."""
    at = [var(f"d{k}", const(2)) for k in range(18)]
    x, y = Buffer("x", (2,) * 18, "f32"), Buffer("y", (2,) * 18, "f32")
    read = load(x, (*at[:9], const(1), *at[10:]))
    value = ex("add", read, cast(at[9], "f32"))
    leaf = For(at[17], (Store(y, tuple(at), value),))
    f = flat.nested([*[For(v, ()) for v in at[:17]], leaf])
    made = flattened(f, SIZES, WIDTH)
    assert [s.extent for s in flat.nest_of(made)] == [const(512), const(2), const(256)]
    given = np.random.default_rng(0).standard_normal((2,) * 18).astype("f")
    got = np.zeros_like(given)
    run((made,), {x: given, y: got})
    want = given[(slice(None),) * 9 + (1,)][(slice(None),) * 9 + (None,)]
    assert np.array_equal(got, want + np.arange(2, dtype="f").reshape(2, *[1] * 8))
    few = flat.nested([*[For(v, ()) for v in at[:3]], leaf])
    assert flat.shallow(few, SIZES) is few


def test_what_only_counts_elements_is_not_divided():
    """Rows that waste vectors were made one loop just before."""
    rows = nest(128, 65)
    one = flattened(rows, SIZES, WIDTH)
    assert len(loops_of(one)) == 1
    assert flat.divided([one], SIZES) == [one]


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_rows_that_waste_vectors_are_one_loop_of_the_kernel(dtype):
    x = normal(128, 65).astype(dtype)
    text = check(lambda x: x * x + 1, x, tol=1e-6).as_text("loops")
    assert text.count("for ") == 1, text


def test_slices_of_pictures_with_three_colours() -> None:
    """A row of a slice lies in one piece, though it does not begin where rows do."""

    def edges(x: Any) -> Any:
        return (x[2:, 1:-1] - x[:-2, 1:-1]) * (x[1:-1, 2:] + x[1:-1, :-2])

    x = normal(40, 50, 3)
    loops = compiled(edges, x).as_text("loops")
    assert "< (s48 * 3) @vector" in loops
    check(edges, x)

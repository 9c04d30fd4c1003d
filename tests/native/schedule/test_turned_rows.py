"""Rows that do not fill vectors stand beside each other: which do, what of them is touched, and the
bits of a row alone."""

from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax, nn
from calque.core.config import config
from calque.machine.code.target import describe
from calque.machine.records import replace
from calque.native.loops.tree import (
    Acc,
    Body,
    For,
    If,
    Let,
    Store,
    loaded,
    nodes,
    statements,
    stored,
)
from calque.native.lower.sizes import Sizes
from calque.native.scalars.expr import Buffer, Expr, const, ex, load, ref, var
from calque.native.schedule.turned_rows import LONGEST, filled_by, in_turned_rows

COLUMNS = 9
SIZES = Sizes()
N = SIZES.dim(1000)
I, C = var("i", N), var("c", COLUMNS)
X, Y = (Buffer(name, (N, const(COLUMNS)), "f32") for name in "xy")
T = Buffer("t", (const(COLUMNS),), "f32", "stack")
LANES = 16


def softmax_like(read: Expr | None = None, to: Any = (I, C), guard: Expr | None = None) -> For:
    """for i: (for c: t[c] = x[i, c]); for c: y[i, c] = t[c] - t[0]"""
    value = load(X, (I, C)) if read is None else read
    first = For(C, (Store(T, (C,), value),))
    less = ex("sub", load(T, (C,)), load(T, (const(0),)))
    return For(I, (first, For(C, (Store(Y, to, less, guard),))))


def made(f: For, lanes: int = LANES) -> For | None:
    return in_turned_rows(f, SIZES, lanes)


def test_rows_are_read_and_written_whole() -> None:
    f = made(softmax_like())
    assert f is not None
    read, first, second, written = f.body
    assert isinstance(read, For) and isinstance(written, For)
    (into,), (out_of,) = read.body, written.body
    assert isinstance(into, Store) and isinstance(out_of, Store)
    assert into.value.attr is X and into.buf.place == "lane" and out_of.buf is Y
    inside = (first, second)
    assert {b.place for b in loaded(inside) | stored(inside)} == {"lane"}
    assert [b.shape[0].attr for b in (into.buf, out_of.value.attr)] == [LANES, LANES]


@pytest.mark.parametrize(
    "f",
    [
        softmax_like(
            load(X, (ex("add", I, const(1)), C), ex("lt", C, const(3)))
        ),  # perhaps not there
        softmax_like(load(X, (I, C), ex("lt", I, const(3)))),  # differs from row to row
        softmax_like(guard=ex("lt", C, const(3))),
        softmax_like(load(X, (ex("add", I, C), C))),  # another row at each element
        softmax_like(to=(const(3), C)),  # all lanes would write the same
    ],
)
def test_what_is_touched_otherwise_stays(f: For) -> None:
    assert made(f) is None


def test_few_rows_long_rows_and_wide_vectors_stay() -> None:
    few = var("i", SIZES.dim(LANES))
    copy = Store(Y, (few, C), load(X, (few, C)))
    assert made(For(few, (For(C, (copy,)),))) is None
    assert made(softmax_like(), 32) is None
    long = Buffer("x", (N, const(LONGEST + 1)), "f32")
    c = var("c", LONGEST + 1)
    assert made(For(I, (For(c, (Store(long, (I, c), const(1.0, "f32")),)),))) is None


def test_what_all_lanes_read_or_each_its_own_element_stays_where_it_is() -> None:
    b, w = Buffer("b", (N,), "f32"), Buffer("w", (const(COLUMNS),), "f32")
    f = made(softmax_like(ex("add", load(X, (I, C)), ex("mul", load(w, (C,)), load(b, (I,))))))
    assert f is not None and {b, w, X} <= loaded(f.body)


def test_an_array_that_changes_is_touched_in_one_row_alone() -> None:
    other = load(Y, (ex("sub", I, const(1)), C))
    assert made(softmax_like(other)) is None
    f = made(softmax_like(load(Y, (I, C))))
    assert f is not None
    assert sum(isinstance(s, Store) and s.buf is Y for s in statements(f.body)) == 1


def test_parts_of_small_elements_may_not_be_masked() -> None:
    x, y = (Buffer(name, (N, const(COLUMNS)), "i16") for name in "xy")
    f = For(I, (For(C, (Store(y, (I, C), load(x, (I, C))),)),))
    assert in_turned_rows(f, SIZES, 8, 4) is None and in_turned_rows(f, SIZES, 8, 1) is not None


def test_what_a_turn_finds_on_the_stack_stays() -> None:
    """A row that turns hand on to each other, and one that is read in another way."""
    again = For(C, (Store(T, (C,), ex("add", load(T, (C,)), load(X, (I, C)))),))
    assert made(For(I, (again, For(C, (Store(Y, (I, C), load(T, (C,))),))))) is None
    z = Buffer("z", (N, N), "f32")
    row = For(C, (Store(z, (I, C), load(X, (I, C))),))
    assert made(For(I, (row, Store(Y, (I, const(0)), load(z, (const(3), I)))))) is None


def test_of_a_row_in_the_lanes_is_read_what_a_guard_allows() -> None:
    f = made(softmax_like(load(X, (I, ex("add", C, const(1))), ex("lt", C, const(8)))))
    assert f is not None
    (read,) = [
        e
        for e in nodes(f.body[1:2])
        if e.op == "load" and e.attr.place == "lane" and len(e.args) > 1
    ]
    assert read.args[-1] is ex("lt", C, const(8))


def test_the_rest_of_a_row_that_is_written_in_part_stays() -> None:
    """It is read before, and written back."""
    f = made(softmax_like(to=(I, const(3))))
    assert f is not None
    copies = [(s.value.attr, s.buf) for s in statements(f.body) if isinstance(s, Store)]
    (lane,) = [to for of, to in copies if of is Y]
    assert lane.place == "lane" and copies[-1] == (lane, Y)


def test_stacks_of_short_loops_have_room() -> None:
    """Rows on the stack that are read in the loop in which they are written, and longer ones than
    those that are turned; not where a loop is long enough for vectors."""

    def f(inner: int, outer: int) -> For:
        a, b = var("a", outer), var("b", inner)
        t = Buffer("t", (const(outer), const(inner)), "f32", "stack")
        write = For(b, (Store(t, (a, b), load(X, (I, C))),))
        use = Store(Y, (I, C), load(t, (a, const(0))))
        return For(I, (For(C, (For(a, (write, use)),)),))

    assert made(f(5, 12)) is not None
    assert made(f(LONGEST + 1, 1)) is None and made(f(20, 20)) is None


def test_short_loops_are_written_out_and_their_rows_written_at_once() -> None:
    x, y = (Buffer(name, (N, const(3)), "f32") for name in "xy")
    t, c, d = Buffer("t", (const(3),), "f32", "stack"), var("c", 3), var("d", 3)
    first = ex("lt", c, const(1))
    chosen = ex("select", first, load(x, (I, const(1)), first), load(x, (I, const(0))))
    body = (
        For(c, (Store(t, (c,), chosen),)),
        For(d, (Store(y, (I, d), load(t, (d,))),)),
    )
    f = made(For(I, body))
    assert f is not None
    assert all(isinstance(s, Store) for s in f.body) and len(f.body) == 9
    assert not any(e.op == "select" or len(e.args) > 2 for e in nodes(f.body))


def test_single_elements_far_apart_are_no_rows() -> None:
    z = Buffer("z", (N, const(6)), "f32")
    body = softmax_like().body
    f = made(For(I, (*body, Store(z, (I, var("r", 6)), load(X, (I, const(0)))))))
    assert f is not None
    assert [s.idx for s in f.body if isinstance(s, Store)] == [(I, var("r", 6))]


def test_rows_that_are_made_here_are_summed_here() -> None:
    """The sum reads the lanes, not memory, which gets the rows at the end."""
    t = Buffer("t", (N, const(COLUMNS)), "f32")
    z, k = Buffer("z", (N,), "f32"), var("k", COLUMNS)
    write = For(C, (Store(t, (I, C), load(X, (I, C))),))
    sums = For(k, (), (Acc("s", "sum", load(t, (I, k)), order="sequential"),))
    f = made(For(I, (write, sums, Store(z, (I,), ref("s", "f32")))))
    assert f is not None
    acc = next(a for s in f.body if isinstance(s, For) for a in s.accs)
    assert isinstance(acc, Acc) and acc.value.attr.place == "lane"


def test_choices_stay() -> None:
    f = softmax_like()
    assert made(replace(f, body=(If(ex("lt", I, const(9)), f.body),))) is None


def test_rows_of_several_indices_are_one() -> None:
    x, y = (Buffer(name, (N, const(3), const(3)), "f32") for name in "xy")
    a, b = var("a", 3), var("b", 3)
    loop = For(a, (For(b, (Store(y, (I, a, b), load(x, (I, b, a))),)),))
    f = made(For(I, (loop,)))
    assert f is not None and len(f.body) == 3
    inside = next(s for s in statements(f.body[1:2]) if isinstance(s, Store))
    assert {n for i in inside.idx for n in i.names} == {"a", "b"}


def test_places_that_a_store_fills() -> None:
    shape = const(3), const(2)
    assert list(filled_by(shape, (var("a", 3), const(1)))) == [1, 3, 5]
    assert list(filled_by(shape, (const(2), const(0)))) == [4]
    assert list(filled_by(shape, (var("a", N), const(0)))) == []


def test_sums_that_read_a_row_again_stand_beside_each_other() -> None:
    w = Buffer("w", (const(40), const(8)), "f32")
    x, y = Buffer("x", (N, const(40)), "f32"), Buffer("y", (N, const(8)), "f32")
    k, c = var("k", const(40)), var("c", 8)
    product = ex("mul", load(x, (I, k)), load(w, (k, c)))
    sums = For(k, (), (Acc("s", "sum", product, order="sequential"),))
    f = made(For(I, (For(c, (sums, Store(y, (I, c), ref("s", "f32")))),)))
    assert f is not None
    loops = [s for s in f.body if isinstance(s, For)]
    assert len(loops[0].accs) == 8 and loops[-1].var.attr[0] == "y.row0.c"


# --- whole programs -------------------------------------------------------------------------------


def normed(x: Any) -> Any:
    return x / jnp.sqrt((x * x).sum(-1, keepdims=True))


PROGRAMS: dict[str, Any] = {
    "softmax": nn.softmax,
    "log_softmax": nn.log_softmax,
    "normed": normed,
    "standardized": lambda x: (x - x.mean(-1, keepdims=True)) / jnp.sqrt(
        x.var(-1, keepdims=True) + 1e-5
    ),
    "sum": lambda x: x.sum(-1) * 2,
    "product": lambda x: jnp.prod(x, -1),
    "largest": lambda x: [x.max(-1), x.argmax(-1)],
    "both ways": lambda x: (x[:, ::-1] - x.mean(-1, keepdims=True)) * x[:, :1],
    "narrow": lambda x: jnp.tanh(x @ jnp.cos(jnp.arange(6.0 * x.shape[1]).reshape(-1, 6))),
    "classes": lambda x: nn.log_softmax(x @ jnp.cos(jnp.arange(7.0 * x.shape[1]).reshape(-1, 7))),
    "gradient": calque.grad(lambda x: (nn.log_softmax(x) * jnp.sin(x)).sum()),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("columns", [5, 8, 10, 17, 31])
def test_bits_of_eager_execution(name: str, columns: int) -> None:
    """Whole vectors of rows, and what is left of them; squares, and what is left of them."""
    x = jnp.asarray(np.random.default_rng(columns).normal(size=(101, columns)), "float32")
    f = PROGRAMS[name]
    with config.override("calque_exact", True):
        got = calque.tree_util.tree_leaves(calque.jit(f, dynamic="never")(x))
        want = calque.tree_util.tree_leaves(f(x))
    for g, w in zip(got, want, strict=True):
        assert np.asarray(g).tobytes() == np.asarray(w).tobytes()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int32", "int16"])
def test_other_types(dtype: str) -> None:
    r = np.random.default_rng(3)
    with calque.enable_x64(dtype == "float64"):
        x = jnp.asarray(r.normal(size=(70, 11)) * 8, dtype)
        f = lambda x: (x - x.max(-1, keepdims=True)) * x[:, :1]  # noqa: E731
        np.testing.assert_array_equal(np.asarray(calque.jit(f)(x)), np.asarray(f(x)))


def test_rows_of_any_number_are_one_program() -> None:
    f = calque.jit(nn.softmax)
    for rows in (3, 70, 33, 16, 1):
        x = np.random.default_rng(rows).normal(size=(rows, 10)).astype("f")
        got = np.asarray(f(x))
        np.testing.assert_allclose(got.sum(-1), 1, rtol=1e-5)
        np.testing.assert_allclose(got, np.asarray(nn.softmax(x)), rtol=1e-6)


def test_an_array_is_updated_in_its_place() -> None:
    x = np.random.default_rng(5).normal(size=(200, 12)).astype("f")
    f = calque.jit(lambda x: normed(x), donate_argnums=0)
    want = x / np.sqrt((x * x).sum(-1, keepdims=True))
    np.testing.assert_allclose(np.asarray(f(jnp.asarray(x))), want, rtol=1e-6)


@pytest.mark.skipif(describe().vector_bytes < 32, reason="parts of rows are read under masks")
def test_which_rows_stand_beside_each_other() -> None:
    def beside(f: Any, *shapes: tuple[int, ...]) -> bool:
        args = [np.ones(s, "f") for s in shapes]
        text = calque.jit(f).lower(*args).compile().as_text("loops")
        return "rows beside each other" in text

    assert beside(nn.softmax, (1000, 10))
    assert not beside(nn.softmax, (1000, 200)) and not beside(nn.softmax, (4, 10))
    assert not beside(lambda x: x * 2, (1000, 10))
    assert beside(lambda x, w: x @ w, (1000, 64), (64, 8))
    assert not beside(lambda x, w: x @ w, (1000, 64), (64, 64))


def quaternions(q: Any, w: Any) -> Any:
    """Bodies that turn, each by itself: rows of three and four, cross products, norms."""

    def one(q: Any, w: Any) -> Any:
        def step(c: Any, _: Any) -> Any:
            q, w = c
            w = w + 0.01 * jnp.cross(jnp.array([1.0, 2.0, 3.0]) * w, w)
            v = jnp.stack([-q[1:] @ w, *(q[0] * w + jnp.cross(q[1:], w))])
            q = q + 0.005 * v
            return (q / jnp.linalg.norm(q), w), q

        return lax.scan(step, (q, w), None, length=20)

    return calque.vmap(one)(q, w)


def bodies(x: Any, v: Any) -> Any:
    """Few bodies that attract each other, many times."""

    def one(x: Any, v: Any) -> Any:
        def step(c: Any, _: Any) -> Any:
            x, v = c
            r = x[None] - x[:, None]
            d = (r**2).sum(-1) + 0.1
            v = v + 0.01 * (r / (d * jnp.sqrt(d))[..., None]).sum(1)
            return (x + 0.01 * v, v), (v**2).sum()

        return lax.scan(step, (x, v), None, length=10)

    return calque.vmap(one)(x, v)


SYSTEMS: dict[str, Any] = {
    "quaternions": (quaternions, (150, 4), (150, 3)),
    "three bodies": (bodies, (100, 3, 3), (100, 3, 3)),
    "five bodies": (bodies, (70, 5, 2), (70, 5, 2)),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_small_systems_beside_each_other(name: str) -> None:
    f, *shapes = SYSTEMS[name]
    r = np.random.default_rng(7)
    args = [jnp.asarray(r.normal(size=s), "float32") for s in shapes]
    with config.override("calque_exact", True):
        jitted = calque.jit(f, dynamic="never")
        text = jitted.lower(*args).compile().as_text("loops")
        if describe().vector_bytes >= 32:
            assert "rows beside each other" in text
        got = calque.tree_util.tree_leaves(jitted(*args))
        with calque.disable_jit():
            want = calque.tree_util.tree_leaves(f(*args))
    for g, w in zip(got, want, strict=True):
        np.testing.assert_array_equal(np.asarray(g), np.asarray(w))


def test_no_lane_reads_beyond_a_row_on_the_stack() -> None:
    """Places far outside, which are asked for nothing."""

    def f(x: Any) -> Any:
        s = nn.softmax(x)
        return jnp.exp(s) + jnp.take(s, jnp.arange(9) * 10**8, axis=1, mode="fill", fill_value=0.0)

    x = np.random.default_rng(1).normal(size=(2000, 9)).astype("f")
    s = np.asarray(nn.softmax(x))
    want = np.exp(s)
    want[:, 0] += s[:, 0]
    np.testing.assert_allclose(np.asarray(calque.jit(f, dynamic="never")(x)), want, rtol=1e-6)


def test_values_of_a_turn_stay_before_its_rows() -> None:
    body: Body = (
        Let("v", load(X, (I, const(2)))),
        For(C, (Store(Y, (I, C), ex("add", load(X, (I, C)), ref("v", "f32"))),)),
    )
    f = made(For(I, body))
    assert f is not None
    assert [type(s) for s in f.body] == [For, Let, For, For]


@pytest.mark.parametrize("columns", [5, 7, 8])
def test_a_row_that_is_read_at_a_place_found_in_the_turn(columns: int) -> None:
    """The distance to the nearest of some points, and which one it is: lanes find other places."""
    r = np.random.default_rng(3)
    x, y = r.normal(size=(50, 3)).astype("f"), r.normal(size=(columns, 3)).astype("f")

    def f(x: Any, y: Any) -> Any:
        far = jnp.linalg.norm(x[:, None] - y, axis=-1)
        nearest = jnp.argmin(far, -1)
        return nearest, calque.vmap(lambda row, k: row[k])(far, nearest)

    for got, want in zip(calque.jit(f)(x, y), f(jnp.asarray(x), jnp.asarray(y)), strict=True):
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-6)

"""Sums in lanes: each column has the bits that it would have alone, whatever is known of the
extent."""

from typing import Any

import numpy as np
import pytest

import calque
from calque.machine.records import replace
from calque.native.loops.tree import Acc, For, Let, Store, statements
from calque.native.lower.sizes import Sizes
from calque.native.scalars.expr import Buffer, const, ex, load, ref, var
from calque.native.schedule import lanes
from tests.native.emit.shared import ordered_sum
from tests.native.run_kernel import run

n = var("n")
i = var("i", n)
X = Buffer("x", (n, n), "f32")


def column_sums(
    rows: int, sizes: Sizes, streaming: bool = False, op: str = "sum"
) -> tuple[Any, Buffer, Buffer]:
    extent = sizes.dim(rows) if sizes.known else var("rows")
    k = var("k", extent)
    x, y = Buffer("x", (extent, n), "f32"), Buffer("y", (n,), "f32")
    inner = For(k, (), (Acc("a", op, load(x, (k, i))),))
    made = lanes.in_lanes(inner, sizes, 1, streaming)
    return (For(i, (*made, Store(y, (i,), ref("a", "f32"))), (), "vector", 16),), x, y


@pytest.mark.parametrize("rows", [1, 5, 15, 16, 17, 40, 63, 64, 65, 127, 200, 330, 1000])
@pytest.mark.parametrize("known", [True, False])
def test_the_order_of_a_vector_along_the_sum(rows: int, known: bool) -> None:
    """Few blocks in registers, many streaming, and rests of every length."""
    a = np.random.default_rng(rows).standard_normal((rows, 19)).astype("f4")
    want = np.array([ordered_sum(c) for c in a.T], "f4")
    for streaming in (False, True):
        sizes = Sizes(known)
        body, x, y = column_sums(rows, sizes, streaming)
        out = np.zeros(19, "f4")
        run(body, {x: a, y: out, "n": 19, "rows": rows, **sizes.values})
        assert out.tobytes() == want.tobytes()


def test_products_too() -> None:
    a = np.random.default_rng(0).uniform(0.9, 1.1, (70, 5)).astype("f4")
    sizes = Sizes()
    body, x, y = column_sums(70, sizes, op="prod")
    out = np.zeros(5, "f4")
    run(body, {x: a, y: out, "n": 5, **sizes.values})
    want = np.array([ordered_sum(c, np.multiply, 1) for c in a.T], "f4")
    assert out.tobytes() == want.tobytes()


def test_several_folds_and_what_needs_no_order() -> None:
    """Ordered sums in lanes beside a maximum, which stays a fold of the loop."""
    k = var("k", const(80))
    x, y, z = Buffer("x", (80, n), "f32"), Buffer("y", (n,), "f32"), Buffer("z", (n,), "f32")
    v = load(x, (k, i))
    accs = (Acc("a", "sum", v), Acc("b", "max", v), Acc("c", "sum", ex("mul", v, v)))
    made = lanes.in_lanes(For(k, (), accs), Sizes(), 1)
    assert [a.name for s in made if isinstance(s, For) for a in s.accs] == ["b"]
    last = ex("add", ref("b", "f32"), ref("c", "f32"))
    stores = (Store(y, (i,), ref("a", "f32")), Store(z, (i,), last))
    a = np.random.default_rng(1).standard_normal((80, 9)).astype("f4")
    out, other = np.zeros(9, "f4"), np.zeros(9, "f4")
    run((For(i, (*made, *stores), (), "vector", 16),), {x: a, y: out, z: other, "n": 9}, exact=True)
    assert out.tobytes() == np.array([ordered_sum(c) for c in a.T], "f4").tobytes()
    want = np.array([c.max() + ordered_sum(c * c) for c in a.T], "f4")
    np.testing.assert_array_equal(other, want)


def test_who_keeps_blocks() -> None:
    v, w = ref("v", "f32"), ref("w", "i32")
    assert lanes.keeps_blocks(Acc("a", "sum", v)) and lanes.keeps_blocks(Acc("a", "prod", v))
    for a in (Acc("a", "max", v), Acc("a", "sum", w), Acc("a", "sum", v, order="sequential")):
        assert not lanes.keeps_blocks(a)


def test_what_the_body_stores_is_read_again() -> None:
    """Where each turn has a place of its own, alone and without a guard."""
    k = var("k", n)
    y, z = Buffer("y", (n, n), "f32"), Buffer("z", (n,), "f32")
    e = ex("sqrt", load(X, (k, i)))
    s = Store(y, (k, i), e)
    assert lanes.kept_values(For(k, (s,))) == {e: load(y, (k, i))}
    for body in (
        (replace(s, guard=ex("lt", k, const(3))),),
        (Store(z, (i,), e),),
        (s, Store(y, (k, i), ref("v", "f32"))),
        (Store(y, (k, i), load(X, (k, i))),),
    ):
        assert lanes.kept_values(For(k, body)) == {}
    made = lanes.in_lanes(For(k, (s,), (Acc("a", "sum", ex("mul", e, e)),)), Sizes(), 1)
    roots = [x for t in statements(tuple(made)) if isinstance(t, Store) for x in (t.value,)]
    assert sum(x is e for x in roots) == 1 and any(isinstance(t, Let) for t in made)


@pytest.mark.parametrize(
    "k, is_short", [(16, False), (32, True), (48, True), (40, False), (64, False)]
)
def test_sums_of_parts_of_a_block_fill_vectors(k: int, is_short: bool) -> None:
    """As many elements as a block adds to each partial sum, and the bits of the same sums taken
    along columns."""
    r = np.random.default_rng(k)
    w, x = r.normal(size=(90, k)).astype("f"), r.normal(size=k).astype("f")

    def rows(w, x):
        return k, w @ x

    def columns(w, x):
        return k, x @ w

    compiled = calque.jit(rows).lower(w, x).compile()
    if k != 16:  # such rows may as well stand beside each other
        assert ("< 16 @vector(16)" in compiled.as_text("loops")) == is_short
    if is_short or k % 64 == 0:
        turned = calque.jit(columns)(np.ascontiguousarray(w.T), x)[1]
        assert np.asarray(compiled(w, x)[1]).tobytes() == np.asarray(turned).tobytes()


@pytest.mark.parametrize("extent", [0, 1, 2, 3, 5, 8, 15, 16])
@pytest.mark.parametrize("op", ["sum", "prod"])
def test_short_sums_are_expressions_in_the_same_order(extent: int, op: Any) -> None:
    x = Buffer("x", (const(16),), "f32")
    y, z = (Buffer(name, (const(1),), "f32") for name in "yz")
    k = var("k", extent)
    f = For(k, (), (Acc("s", op, load(x, (k,))),))
    made = lanes.as_expressions(f, 16)
    assert made is not None
    whole = replace(f, kind="vector", width=16)
    body = (*made, Store(y, (const(0),), ref("s", "f32")))
    other = replace(whole, accs=(replace(whole.accs[0], name="t"),))
    a = np.random.default_rng(extent).normal(size=16).astype("f")
    got, want = np.zeros(1, "f"), np.zeros(1, "f")
    run((*body, other, Store(z, (const(0),), ref("t", "f32"))), {x: a, y: got, z: want})
    assert got.tobytes() == want.tobytes()


def test_sums_that_are_no_expressions() -> None:
    x, k = Buffer("x", (const(17),), "f32"), var("k", 5)
    value = load(x, (k,))
    for f in (
        For(var("k", 17), (), (Acc("s", "sum", value),)),
        For(k, (), (Acc("s", "sum", value, order="sequential"),)),
        For(var("k", var("n")), (), (Acc("s", "sum", value),)),
    ):
        assert lanes.as_expressions(f, 16) is None
    assert lanes.as_expressions(For(k, (), (Acc("s", "sum", value),)), 4) is None

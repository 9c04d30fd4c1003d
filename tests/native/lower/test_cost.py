"""What things cost: weights of operations and expressions, nests with a vector, time."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.native.loops.tree import Acc, For, If, LoopValue, Recurrence, Store
from calque.native.lower.cost import (
    UNKNOWN_TURNS,
    body_size,
    body_weight,
    code_size,
    element_weight,
    nanoseconds,
    nest_cost,
    operation_weight,
    primitive_weight,
    step_along,
    turns,
    weight,
)
from calque.native.lower.graph import graph_of
from calque.native.lower.sizes import Sizes
from calque.native.passes.pipeline import run as run_passes
from calque.native.scalars.expr import Buffer, cast, const, ex, linear, load, ref, stride, var

SIZES = Sizes()
n, m = SIZES.dim(1000), SIZES.dim(100)
i, j = var("i", n), var("j", m)
X, Y = Buffer("x", (n, m), "f32"), Buffer("y", (n, m), "f32")
AT = load(X, (i, j))


def test_operations_weigh_what_their_names_say() -> None:
    assert operation_weight("add") == 1 < operation_weight("div") < operation_weight("tanh")
    assert primitive_weight("tanh") == operation_weight("tanh")
    assert primitive_weight("reshape") == primitive_weight("transpose") == 0
    assert primitive_weight("integer_pow") > primitive_weight("mul")


def test_what_stands_twice_weighs_once() -> None:
    e = ex("exp", AT)
    assert weight([e]) == 1 + operation_weight("exp")  # the load, and what is made of it
    assert weight([ex("add", e, e)]) == weight([e]) + 1
    assert weight([e, e]) == weight([e])


def test_places_names_and_constants_weigh_nothing() -> None:
    assert weight([ex("add", ex("mul", i, m), j), const(2.0, "f32"), ref("a", "f32")]) == 0
    assert weight([cast(load(Buffer("k", (n,), "i32"), (i,)), "i64")]) == 2


def test_strides_are_those_of_whole_addresses() -> None:
    """What the indices tell one by one, or the address alone: rows of a length that is not known,
    and quotients and remainders that meet again."""
    z, k = Buffer("z", (8, 6, 4), "f32"), var("k", 192)
    split = (ex("floordiv", k, const(24)), const(0), ex("mod", k, const(4)))
    again = (const(1), ex("floordiv", k, const(4)), ex("mod", k, const(4)))
    assert step_along(X.shape, (i, j), "j") == 1
    assert step_along(X.shape, (i, j), "i") is None  # rows of any length
    assert step_along(X.shape, (i, j), "k") == 0
    assert step_along(z.shape, (i, ex("sub", const(5), j), ex("mul", i, const(2))), "i") == 24 + 2
    assert step_along(z.shape, (i, ex("sub", const(5), j), j), "j") == 1 - 4
    assert step_along(z.shape, split, "k") is None
    assert step_along(z.shape, again, "k") == 1
    for idx in [(i, j, i), (j, j, const(3)), split, again]:
        for name in "ijk":
            assert step_along(z.shape, idx, name) == stride(linear(z.shape, idx), name)


def test_weight_and_size_of_bodies() -> None:
    body = (For(i, (For(j, (Store(Y, (i, j), ex("exp", AT)),)),)),)
    assert body_weight(body) == weight([ex("exp", AT)])
    assert body_size(body) == code_size([ex("exp", AT), n, m])


def test_vectors_along_memory_are_cheap() -> None:
    nest = For(i, (For(j, (Store(Y, (i, j), ex("exp", AT)),)),))
    costs = {v: nest_cost(nest, SIZES, 8, v) for v in ("i", "j")}
    assert costs["j"] < costs["i"]
    assert nest_cost(nest, SIZES, 8, None) == costs["j"]  # the innermost loop
    assert nest_cost(nest, SIZES, 8, "j") < nest_cost(nest, SIZES, 1, "j")


@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
@pytest.mark.parametrize("steps", [0, 6])
def test_columns_of_a_matrix_are_added_side_by_side(lanes: int, steps: int) -> None:
    """However few lanes there are: down a column every element is in a row of its own."""
    e = load(X, (i, j))
    for _ in range(steps):
        e = ex("mul", e, e)
    sums = For(i, (), (Acc("s", "sum", e),))
    nest = For(j, (sums, Store(Buffer("z", (m,), "f32"), (j,), ref("s", "f32"))))
    around = nest_cost(nest, SIZES, lanes, "j")
    assert around < nest_cost(nest, SIZES, lanes, None)


def test_what_does_not_depend_on_a_loop_is_counted_outside() -> None:
    row = load(Buffer("r", (n,), "f32"), (i,))

    def cost(e):
        return nest_cost(For(i, (For(j, (Store(Y, (i, j), e),)),)), SIZES, 8, "j")

    inside = cost(ex("add", AT, ex("exp", AT)))
    outside = cost(ex("add", AT, ex("exp", row)))
    assert outside < inside
    held = cost(
        ex("add", AT, ex("exp", ref("state", "f32")))
    )  # changes in the loop, for all we know
    assert held > outside


def test_sums_in_a_vector_cost_a_fold() -> None:
    k = var("k", SIZES.dim(64))
    x = load(Buffer("x", (SIZES.dim(64),), "f32"), (k,))
    loop = For(k, (), (Acc("s", "sum", x),))
    assert nest_cost(loop, SIZES, 8, "k") > nest_cost(
        For(k, (), (Acc("s", "sum", x),)), SIZES, 64, "k"
    )


def test_time_goes_with_turns_and_work() -> None:
    def nest(e):
        return (For(i, (For(j, (Store(Y, (i, j), e),)),)),)

    light, heavy = nanoseconds(nest(AT), SIZES), nanoseconds(nest(ex("tanh", AT)), SIZES)
    assert heavy > 5 * light
    assert nanoseconds((*nest(AT), *nest(AT)), SIZES) == pytest.approx(2 * light)
    one = (Store(Buffer("c", (), "f32"), (), const(0.0, "f32")),)
    choice = (If(const(True, "i1"), one, one),)
    assert nanoseconds(choice, SIZES) > nanoseconds(one, SIZES)


def test_turns_of_loops() -> None:
    assert turns(n, SIZES) == 1000
    free = Sizes(known=False)
    assert turns(free.dim(1000), free) == UNKNOWN_TURNS
    rounds = Recurrence(
        (LoopValue("a", const(0), ex("add", ref("a", "i64"), const(1))),), (), cond=None, var=i
    )
    until = Recurrence(rounds.states, (), cond=ex("lt", ref("a", "i64"), const(5)))
    assert nanoseconds((rounds,), SIZES) > nanoseconds((until,), SIZES)


def element_weights(f, *args):
    """The weight of an element of each result, of operands that weigh nothing."""
    g = graph_of(run_passes(calque.make_jaxpr(f)(*args)))
    return [element_weight(o, 0) for o in g.outputs]


def test_weights_of_nodes() -> None:
    x = np.ones((6, 4), np.float32)
    assert element_weights(lambda x: jnp.tanh(x), x) == [primitive_weight("tanh")]
    assert element_weights(lambda x: lax.transpose(x, (1, 0)), x) == [0]
    assert element_weights(lambda x: x.sum(1), x) == [4]  # small: an expression of four terms
    assert element_weights(lambda x: x.sum(1), np.ones((6, 400), np.float32)) == [1]


def test_rows_that_are_turned_cost_their_squares() -> None:
    """A copy of rows into lanes is a read for each row, and a few instructions for each element;
    a sum in order reads its rows so, too, where there are many."""
    rows, c = var("i", 64), var("c", 8)
    x = Buffer("x", (const(64), const(8)), "f32")
    lane = Buffer("x.row", (const(16),), "f32", "lane")
    copy = For(rows, (For(c, (Store(lane, (c,), load(x, (rows, c))),)),))
    turned = nest_cost(copy, Sizes(), 16, "i")
    assert 64 < turned < 64 * 8
    c, x = var("c", 40), Buffer("x", (const(64), const(40)), "f32")
    y = Buffer("y", (const(64),), "f32")
    fold = For(c, (), (Acc("s", "sum", load(x, (rows, c)), order="sequential"),))
    sums = For(rows, (fold, Store(y, (rows,), ref("s", "f32"))))
    assert nest_cost(sums, Sizes(), 16, "i", rows=True) < nest_cost(sums, Sizes(), 16, "i")
    assert nest_cost(sums, Sizes(), 16, None, rows=True) > nest_cost(sums, Sizes(), 16, None)

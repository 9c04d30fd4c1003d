"""Homes: what is stored, what is part of its readers, where, and why; decided from the graph
alone."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.core.backends import Options
from calque.machine.records import replace
from calque.native import backend
from calque.native.control.emitters import EMITTERS, copies_left
from calque.native.lower.graph import Node, graph_of
from calque.native.lower.sizes import Sizes
from calque.native.passes.pipeline import run as run_passes
from calque.native.plan.homes import Around, Home, Homes, homes_of, needed
from calque.native.plan.text import home_text
from calque.native.plan.verify import MalformedHomes, verify_homes
from tests.native.programs import check, normal, traced


def homes(fun: Callable[..., Any], *args: Any, donated: bool = False) -> Homes:
    """The homes of a function, found with nothing but its graph."""
    g = graph_of(run_passes(traced(fun, *args)))
    around = Around(
        frozenset(g.inputs).__contains__,
        lambda n: "donated" if donated else "foreign",
        lambda n: n.op in EMITTERS,
        Sizes(),
        copies=copies_left,
    )
    results = list(dict.fromkeys(g.outputs))
    made = homes_of("program", needed([*results, *g.effects], g.inputs), results, around)
    verify_homes(made)
    return made


def only(h: Homes, op: str) -> Node:
    (n,) = [n for n in h.order if n.op == op]
    return n


def test_what_is_dear_and_read_by_several_is_stored() -> None:
    h = homes(lambda x: [(y := jnp.exp(x)) + 1.0, y[::-1]], normal(100))
    assert h.of[only(h, "exp")] == Home("stored", "several read it")
    h = homes(lambda x: [(y := x * 3.0) + 1.0, y[::-1]], normal(100))
    assert h.of[only(h, "mul")].how == "inlined" and h.weight[only(h, "mul")] == 1
    h = homes(lambda x: jnp.exp(x) + 1.0, normal(100))
    assert h.of[only(h, "exp")] == Home("inlined", "it is read once")


def test_what_a_broadcast_would_compute_for_each_row_is_stored() -> None:
    h = homes(lambda x, y: jnp.exp(x) + y, normal(40), normal(30, 40))
    assert "more often than it has elements" in h.of[only(h, "exp")].why
    h = homes(lambda x, y: jnp.exp(x)[:, None] + y, normal(30), normal(30, 40))
    assert h.of[only(h, "exp")].how == "inlined"  # once for each row, outside of its loop


def test_long_expressions_are_cut() -> None:
    def chain(x: Any) -> Any:
        for k in range(40):
            x = jnp.sin(x) + k
        return x

    h = homes(chain, normal(10))
    cut = [n for n in h.order if "too long" in h.of[n].why]
    assert 2 < len(cut) < 10


def messages(x: Any, i: Any, w: Any) -> Any:
    return jnp.concatenate([x[i], jnp.maximum(x[i[::-1]], 0.0)], 1) @ w


def test_rows_that_products_copy_are_gathered_there() -> None:
    x, w = normal(500, 64), normal(128, 64)
    many, few = (np.random.default_rng(0).integers(0, 500, n) for n in (4000, 400))
    h = homes(messages, x, many, w)
    assert h.of[only(h, "concatenate")] == Home("inlined", "products copy these rows")
    h = homes(calque.grad(lambda w, x, i: jnp.sin(messages(x, i, w)).sum()), w, x, many)
    assert h.of[only(h, "concatenate")].how == "inlined"  # the product of the derivative, too

    def stored(f: Any, *args: Any) -> bool:
        h = homes(f, *args)
        return bool(h.of[only(h, "concatenate")].how == "stored")

    assert stored(messages, x, few, w)  # little memory
    assert stored(messages, x, many, normal(128, 9000))  # read again for each panel of columns

    def also_read(x: Any, i: Any, w: Any) -> Any:
        rows = jnp.concatenate([x[i], x[i[::-1]]], 1)
        return rows @ w, jnp.cumsum(rows, 0)

    assert stored(also_read, x, many, w)

    def as_right_side(x: Any, i: Any, w: Any) -> Any:
        rows = jnp.concatenate([x[i], x[i[::-1]]], 1)
        return rows @ w, w @ rows.T

    assert stored(as_right_side, x, many, normal(128, 128))


def test_what_gives_the_memory_of_two_for_one_is_stored() -> None:
    def block(x: Any, w: Any) -> Any:
        y = jnp.maximum(jnp.cumsum(x, 0) + jnp.cumsum(x, 1), 0.0)
        return jnp.cumsum(y, 1) + y[::-1] @ w

    h = homes(block, normal(600, 600), normal(600, 600))
    assert h.of[only(h, "max")] == Home("stored", "what it is made of would have to be kept")
    h = homes(block, normal(60, 60), normal(60, 60))
    assert h.of[only(h, "max")].how == "inlined"  # little memory

    def kept(x: Any, w: Any) -> Any:
        a, b = jnp.cumsum(x, 0), jnp.cumsum(x, 1)
        y = jnp.maximum(a + b, 0.0)
        return jnp.cumsum(y, 1) + y[::-1] @ w, a - b[::-1]

    h = homes(kept, normal(600, 600), normal(600, 600))
    assert h.of[only(h, "max")].how == "inlined"  # both are kept for something else


def test_a_product_computes_what_alone_reads_it() -> None:
    x, w, b = normal(64, 48), normal(48, 96), normal(96)
    h = homes(lambda x, w, b: jnp.tanh(x @ w + b), x, w, b)
    n = only(h, "matmul_tiled")
    assert h.of[only(h, "tanh")].how == "fused" and h.ends[n] is only(h, "tanh")
    assert home_text(h, only(h, "add")).endswith(
        f"fused into %{n.id}: it alone reads it, element by element (weight 1)"
    )
    # reshapes may lead away and back, not elsewhere
    h = homes(lambda x, w: jnp.tanh((x @ w).reshape(8, 8, 96)).reshape(64, 96) * 2.0, x, w)
    assert h.ends[only(h, "matmul_tiled")] is only(h, "mul")
    # a second reader, and an operand that is not known by then, end the chain
    h = homes(lambda x, w: (y := x @ w) + y[::-1], x, w)
    assert h.ends[only(h, "matmul_tiled")] is only(h, "matmul_tiled")
    h = homes(lambda x, w: jnp.tanh(x @ w) * jnp.sort(x[:, :1] * 2.0, axis=0), x, w)
    assert h.ends[only(h, "matmul_tiled")] is only(h, "tanh")


def test_a_product_of_a_batch_of_one_computes_what_follows_it() -> None:
    def f(x: Any, w: Any, b: Any) -> Any:
        y = jnp.tanh(jnp.einsum("bij,bjk->bik", x, w) + b)
        return y, jnp.einsum("bij,bjk->bik", x, w + 1.0).reshape(64, 96) * 2.0

    x, w, b = normal(1, 64, 48), normal(1, 48, 96), normal(96)
    h = homes(f, x, w, b)
    assert {n.op for n in h.ends.values()} == {"tanh", "mul"}
    check(f, x, w, b)


def test_an_update_is_written_over_an_operand_that_dies_with_it() -> None:
    def twice(x: Any, i: Any) -> Any:
        return jnp.sin(x).at[i].set(1.0).at[i + 1].set(2.0) + 1.0

    h = homes(twice, normal(100), 3)
    first, second = [n for n in h.order if n.op == "scatter"]
    assert h.of[only(h, "sin")].how == "inlined"  # the first update has nothing to stand over
    assert [h.of[n].place for n in (first, second)] == ["new", "over"]
    assert h.of[second].other is first and f"over %{first.id}" in home_text(h, second)

    def kept(x: Any, i: Any) -> Any:
        y = jnp.sin(x)
        return y.at[i].set(1.0) + y

    h = homes(kept, normal(100), 3)
    assert h.of[only(h, "scatter")].place == "new"


def test_only_donated_memory_takes_a_result() -> None:
    def update(x: Any, i: Any) -> Any:
        return x.at[i].set(1.0)

    h = homes(update, normal(100), 3)
    assert h.of[only(h, "scatter")].place == "result"
    h = homes(update, normal(100), 3, donated=True)
    assert h.of[only(h, "scatter")].place == "over"
    # what is computed from many other places of the operand may not be written over it
    h = homes(lambda x, i: x.at[i].set(x[::-1][i]), normal(100), jnp.arange(60), donated=True)
    assert h.of[only(h, "scatter")].place == "result"


def test_an_update_of_what_a_loop_left_as_it_came_leaves_that_alone() -> None:
    def f(x: Any, n: Any) -> Any:
        def step(c: Any) -> Any:
            k, kept, y = c
            return k + 1, kept, jnp.cumsum(y) * 0.5

        _, kept, y = lax.while_loop(lambda c: c[0] < n, step, (0, x, x))
        return kept.at[0].set(7.0) + y, x * 2.0

    check(f, normal(40), 3)


def test_homes_of_what_is_inside_a_loop_follow_those_around_it() -> None:
    f = calque.jit(lambda x: lax.scan(lambda c, y: (jnp.cumsum(c) + y, c.sum()), x[0], x))
    text = f.lower(normal(30, 40)).compile().as_text("homes")
    names = [line for line in text.splitlines() if line.startswith("homes of")]
    assert names[0] == "homes of program:"
    assert names[-1].startswith("homes of body of %")


def test_lowering_again_finds_the_same_homes() -> None:
    closed = traced(lambda x, w: jnp.tanh(x @ w).sum(0), normal(64, 48), normal(48, 96))
    texts = {backend.compile(closed, Options()).as_text("homes") for _ in range(2)}
    assert len(texts) == 1


def broken(h: Homes) -> dict[str, Homes]:
    """Homes of `exp(x)`, its sum and an update, each with something wrong."""
    exp, fold, update = only(h, "exp"), only(h, "reduce_sum"), only(h, "scatter")

    def having(n: Node, home: Home) -> Homes:
        return replace(h, of={**h.of, n: home})

    return {
        "has no home": replace(h, of={n: home for n, home in h.of.items() if n is not exp}),
        "no expression": having(fold, Home("inlined", "")),
        "a result has no memory": having(update, Home("inlined", "")),
        "too long": replace(having(exp, Home("inlined", "")), weight={**h.weight, exp: 1000}),
        "no part of anything": having(exp, Home("part", "")),
        "into no product": having(exp, Home("fused", "", other=fold)),
        "updates nothing": having(exp, Home("stored", "", "over", exp.args[0])),
        "needed later": having(update, Home("stored", "", "over", update.args[0])),
        "before it is made": replace(h, reads={**h.reads, exp: frozenset((update,))}),
        "after its end": replace(h, last={**h.last, exp: 0}),
    }


def test_homes_that_mean_nothing_are_refused() -> None:
    def f(x: Any, i: Any) -> Any:
        y = jnp.exp(x)
        return x.at[i].set(y.sum()), y[::-1] * x

    h = homes(f, normal(100), 3)
    for why, wrong in broken(h).items():
        with pytest.raises(MalformedHomes, match=why):
            verify_homes(wrong)

"""What makes way for an update: order, and small values stored before it."""

from collections.abc import Callable
from typing import Any

import calque.numpy as jnp
from calque.native.lower.graph import Graph, Node, graph_of
from calque.native.lower.sizes import Sizes
from calque.native.passes.pipeline import run as run_passes
from calque.native.plan.homes import Around, Homes, homes_of, needed
from calque.native.plan.overwriting import Reads, Update, dependents, is_free, way_for
from calque.native.plan.verify import verify_homes
from tests.native.programs import normal, traced

UPDATES = ("scatter", "dynamic_update_slice", "scatter-add")


def graph(fun: Callable[..., Any], *args: Any) -> Graph:
    return graph_of(run_passes(traced(fun, *args)))


def reads(g: Graph, stored: tuple[str, ...]) -> Reads:
    """Who reads what when these operations are in memory."""
    order = [n for n in g.nodes if n not in g.inputs]
    below: dict[Node, frozenset[Node]] = {}

    def direct(n: Node) -> frozenset[Node]:
        return frozenset((n,)) if n.op in (*stored, "input") else below[n]

    last: dict[Node, int] = {}
    for i, n in enumerate(order):
        below[n] = frozenset[Node]().union(*[direct(a) for a in n.args])
        if n.op in stored:
            last |= dict.fromkeys(below[n], i)
    at = {n: i for i, n in enumerate(order)}
    return Reads(order, at, last, direct, lambda n: n.op in stored, {}, ())


def update(g: Graph, op: str = "scatter", alone: bool = False) -> Update:
    (n,) = [n for n in g.nodes if n.op == op]
    return Update(n, 0, alone)


def test_an_update_that_reads_its_operand_elsewhere_stores_that_first() -> None:
    g = graph(lambda x, i: x.at[i].set(jnp.sin(x[i - 1]) * 2), normal(80, 4), 3)
    u, r = update(g), reads(g, ("scatter",))
    assert not is_free(u, r) and is_free(u._replace(alone=True), r)
    way = way_for(u, r)
    assert way is not None and way.order == list(r.order)
    (small,) = way.stored
    assert small is u.by.args[2] and small.op == "mul" and small.shape == (4,)


def test_readers_that_need_no_update_go_before_it() -> None:
    g = graph(lambda x, i: (x.at[i].set(1.0), jnp.cumsum(x)), normal(100), 3)
    u, r = update(g), reads(g, ("scatter", "cumsum"))
    assert not is_free(u, r)
    way = way_for(u, r)
    assert way is not None and way.stored == ()
    (fold,) = [n for n in g.nodes if n.op == "cumsum"]
    assert way.order.index(fold) < way.order.index(u.by)
    assert dependents(u.by, r.order, {fold: (u.by,)}) == {u.by, fold}
    # they stay where they are when both have effects
    assert way_for(u, r._replace(rigid={u.by, fold})) is None


def test_who_needs_both_gets_what_it_reads_of_the_old_value_stored() -> None:
    g = graph(lambda x, i: jnp.cumsum(x.at[i].set(1.0) * x[2]), normal(100), 3)
    u, r = update(g), reads(g, ("scatter", "cumsum"))
    way = way_for(u, r)
    assert way is not None
    (small,) = way.stored
    assert small.shape in ((), (1,))  # not its broadcast

    def whole(x: Any, i: Any) -> Any:
        return jnp.cumsum(x.at[i].set(1.0) * x)

    def half(x: Any, i: Any) -> Any:
        return jnp.cumsum(x.at[i].set(1.0)[40:] * x[40:])

    for f in (whole, half):
        g = graph(f, normal(100), 3)
        assert way_for(update(g), reads(g, ("scatter", "cumsum"))) is None


def test_small_arrays_are_copied() -> None:
    g = graph(lambda x, i: x.at[i].set(x[i - 1] * 2), normal(10, 4), 3)
    assert way_for(update(g), reads(g, ("scatter",))) is None


def test_homes_make_way_and_say_so() -> None:
    def homes(fun: Callable[..., Any]) -> Homes:
        g = graph(fun, normal(80, 4), 3)
        around = Around(
            frozenset(g.inputs).__contains__, lambda n: "donated", lambda n: False, Sizes()
        )
        results = list(dict.fromkeys(g.outputs))
        made = homes_of("program", needed(results, g.inputs), results, around)
        verify_homes(made)
        return made

    h = homes(lambda x, i: (x.at[i].set(jnp.sin(x[i - 1])), jnp.cumsum(x, 0)))
    (new,) = [n for n in h.order if n.op == "scatter"]
    (sin,) = [n for n in h.order if n.op == "sin"]
    assert h.of[new].place == "over" and h.order[-1] is new
    assert h.of[sin].how == "stored" and "written over what it reads" in h.of[sin].why

    # of two updates of one array only the last is written over it
    h = homes(lambda x, i: (x.at[i].set(1.0), x.at[i + 1].set(2.0)))
    assert sorted(h.of[n].place for n in h.order if n.op == "scatter") == ["over", "result"]

"""Loops taken apart: what comes in, what is carried, what is read and written slice by slice."""

from typing import Any

import numpy as np

import calque
import calque.numpy as jnp
from calque import lax
from calque.native.control import loops
from calque.native.control.emitters import EMITTERS
from calque.native.control.loops import LoopParts
from calque.native.lower.graph import Graph, graph_of
from calque.native.lower.rules import View, buffer_of
from calque.native.lower.sizes import Sizes
from calque.native.passes.pipeline import run as run_passes
from calque.native.plan.blocks import Planner
from calque.native.plan.steps import Call
from calque.native.scalars.expr import const, show
from tests.native.programs import check, compiled, normal, run, traced


def taken_apart(f: Any, *args: Any) -> tuple[Planner, LoopParts, Graph]:
    g = graph_of(run_passes(traced(f, *args)))
    p = Planner(Sizes(), EMITTERS)
    for k, n in enumerate(g.inputs):
        p.view[n] = View(buffer_of(f"in{k}", tuple(p.sizes.dim(d) for d in n.shape), n.dtype))
    (n,) = [n for n in g.nodes if n.op in ("scan", "while")]
    return p, loops.loop_parts(p, n, g.nodes, "t"), g


def test_the_parts_of_a_scan() -> None:
    w, x = normal(3), normal(20, 3)
    p, loop, g = taken_apart(
        lambda w, x: lax.scan(lambda c, v: (c * w + v, c.sum()), jnp.ones(3), x), w, x
    )
    assert loop.test is None and loop.length == 20 and loop.count is None
    assert [n.shape for n in loop.inner_consts] == [(3,)]
    assert [n.shape for n in loop.carries] == [n.shape for n in loop.next] == [(3,)]
    assert [n.shape for n in loop.stacked] == [()]
    assert loop.var is loop.t is loop.at and sorted(loop.gets) == [0, 1]
    slice_ = loop.body.inputs[-1]
    outer, prefix = p.alias[slice_]
    assert outer is g.inputs[1] and prefix == (loop.t,)
    assert show(p.at(slice_, (const(2),))) == "in1[t, 2]"


def test_reversed_scans_read_from_the_end() -> None:
    _, loop, _ = taken_apart(
        lambda x: lax.scan(lambda c, v: (c + v, c), 0.0, x, reverse=True), normal(20)
    )
    assert show(loop.at) == "(s19 - t)"
    x = normal(20)
    check(lambda x: lax.scan(lambda c, v: (c + v, c), 0.0, x, reverse=True), x, tol=1e-4)


def test_the_parts_of_a_while_loop() -> None:
    """What only its test reads, what only its body reads, and what both carry."""

    def f(limit: Any, step: Any, x: Any) -> Any:
        return lax.while_loop(lambda c: c[0] < limit, lambda c: (c[0] + step, c[1] * 2), (x, x))

    p, loop, g = taken_apart(f, np.float32(9), np.float32(2), np.float32(1))
    assert loop.test is not None and loop.length is None and loop.var is None
    assert len(loop.carries) == len(loop.test_carries) == 2 and not loop.stacked
    (inside,) = loop.inner_consts
    assert p.alias[inside] == (g.inputs[1], ())
    tested = loop.test.inputs[0]
    assert p.alias[tested] == (g.inputs[0], ())


def test_a_condition_for_each_lane_is_one_condition() -> None:
    """From vmap: the loop goes on while any lane does, and lanes that have ended keep their
    values."""
    f = calque.vmap(lambda v: lax.while_loop(lambda c: c < 10, lambda c: c * 2, v))
    x = np.array([1, 3, 9, 50], np.float32)
    np.testing.assert_array_equal(run(compiled(f, x), x)[0], [16, 12, 18, 50])


def test_carries_that_never_change() -> None:
    """Recognised by the node; a copy of one that changes is none."""
    _, loop, _ = taken_apart(
        lambda a, b: lax.fori_loop(0, 5, lambda i, c: (c[0], c[1] + c[0], c[1]), (a, b, b)),
        normal(3),
        normal(3, seed=1),
    )
    same = loops.unchanged(loop)
    kept = [i for i, c in enumerate(loop.carries) if c.shape == (3,)]
    assert set(same) == {kept[0]} and same[kept[0]] is loop.init[kept[0]]


def test_matrices_are_turned_once_for_many_rounds() -> None:
    """W @ h runs along the rows of W.T, which is made before the loop."""

    def f(w: Any, h: Any) -> Any:
        return lax.fori_loop(0, 6, lambda i, h: jnp.tanh((w * h[None]).sum(1)), h)

    w, h = normal(60, 60) * np.float32(0.1), normal(60)
    e = check(f, w, h, tol=1e-3)
    turned = [s for s in e.steps if isinstance(s, Call)]
    assert len(turned) == 1 and "tiles" in turned[0].schedule.reasons[0]
    small = normal(3, 3)
    assert not any(isinstance(s, Call) for s in check(f, small, normal(3), tol=1e-4).steps[:-1])


def test_three_ways() -> None:
    assert loops.split([1, 2, 3, 4, 5], 2, 1) == ([1, 2], [3], [4, 5])  # type: ignore[list-item]

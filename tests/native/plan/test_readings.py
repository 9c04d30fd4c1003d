"""How nodes are read, and what becomes of those that are read so."""

from typing import Any

import calque.numpy as jnp
from calque import lax
from calque.native.lower.graph import graph_of
from calque.native.passes.pipeline import run as run_passes
from calque.native.plan.readings import Readings
from tests.native.plan.test_homes import homes, only
from tests.native.programs import check, normal, traced


def test_readings() -> None:
    """Each of its kinds, of one program."""

    def program(x: Any) -> Any:
        y = jnp.exp(x)
        pooled = lax.reduce_window(y, 0.0, lax.add, (1, 5), (1, 1), "VALID")
        turned = jnp.stack([y[0], y[1]], -1).reshape(-1)
        return pooled, turned, y[:, ::2] + 1.0, y[:, None] * jnp.ones((1, 7, 1)), y @ y.T

    g = graph_of(run_passes(traced(program, normal(4, 20))))
    r = Readings(g.nodes, g.outputs)
    (y,) = [n for n in g.nodes if n.op == "exp"]
    (stack,) = [n for n in g.nodes if n.op == "concatenate"]
    assert r.windows[y] == 5 and r.steps[y] == 0.5 and y in r.spread and r.readers[y] >= 5
    assert stack in r.in_turn and not r.picked


def test_what_is_stacked_for_short_sums_is_not_written() -> None:
    """Each term of the sum is one of the arrays."""

    def stacked(x, *more):
        w = jnp.stack([jnp.roll(x, -k, -1)[..., ::2] for k in range(5)], -1)
        return (w * jnp.arange(5.0)).sum(-1), w.max(-1), *[f(w) for f in more]

    for more, how in (((), "inlined"), ((lambda w: w[0],), "stored"), ((jnp.cumsum,), "stored")):
        h = homes(lambda x, more=more: stacked(x, *more), normal(30, 40))
        (wide,) = [n for n in h.order if n.op == "concatenate" and len(n.args) == 5]
        assert h.of[wide].how == how
    check(stacked, normal(30, 40), tol=1e-6)


def test_what_windows_that_overlap_read_is_stored() -> None:
    """As often as that is less than to compute it for each of them."""

    def pooled(x: Any, size: int, stride: int = 1) -> Any:
        window, strides = (1, size, size), (1, stride, stride)
        return lax.reduce_window(jnp.tanh(x), 0.0, lax.add, window, strides, "VALID")

    def stored(size: int, stride: int = 1) -> list[str]:
        h = homes(lambda x: pooled(x, size, stride), normal(2, 40, 40))
        return [n.op for n in h.order if h.of[n].how == "stored" and n.op in ("tanh", "reduce_sum")]

    assert stored(7) == ["tanh", "reduce_sum", "reduce_sum"]
    assert stored(2) == ["tanh", "reduce_sum"]  # four numbers
    assert stored(3, 3) == ["tanh", "reduce_sum", "reduce_sum"]  # read once, but in steps
    for size, stride in ((7, 1), (2, 1), (3, 3), (2, 5)):
        check(lambda x, s=size, t=stride: pooled(x, s, t), normal(2, 40, 40), tol=1e-5)


def test_what_is_read_in_steps_is_stored_if_all_of_it_is() -> None:
    h = homes(lambda x: (y := x * 2.0)[::2] + y[1::2], normal(1000))
    assert "steps" in h.of[only(h, "mul")].why
    h = homes(lambda x: (x * 2.0)[::2] + 1.0, normal(1000))
    assert h.of[only(h, "mul")].how == "inlined"


def test_rows_in_turn_are_written() -> None:
    """Next to each other, and not asked for which of them each element comes from."""

    def in_turn(x: Any) -> Any:
        return jnp.stack([x + 1.0, x - 1.0], -1).reshape(-1) * 3.0

    h = homes(in_turn, normal(1000))
    assert h.of[only(h, "concatenate")].how == "stored"
    h = homes(lambda x: jnp.stack([x + 1.0, x - 1.0], -1) * 3.0, normal(1000))
    assert h.of[only(h, "concatenate")].how == "inlined"
    check(in_turn, normal(1000), tol=1e-6)

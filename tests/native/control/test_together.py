"""Lanes that call Python: one call for the whole batch."""

from typing import Any

import numpy as np

import calque
import calque.numpy as jnp
from calque import lax
from calque.core.jaxprs import ClosedJaxpr
from calque.native.control import together
from calque.native.control.emitters import EMITTERS
from calque.native.lower.sizes import Sizes
from calque.native.plan.blocks import Planner
from calque.native.plan.steps import Host, Repeat, walk
from tests.native.programs import check, compiled, normal, traced

SIDE = 4


def host(x: Any) -> Any:
    """What has no kernel."""
    return jnp.sort(jnp.linalg.eigvals(jnp.diag(x) + 2).real) / 8


def fade(v: Any, n: Any) -> Any:
    return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, host(c[1])), (0, v))[1]


def hosts(e: Any) -> list[tuple[int, ...]]:
    return [s.arg_avals[0].shape for s in walk(e.steps) if isinstance(s, Host)]


def test_one_call_a_round_for_all_lanes() -> None:
    """As many rounds as the longest lane has; the others keep what they had."""
    v, n = np.abs(normal(5, SIDE)) + 1, np.array([3, 0, 5, 1, 2], np.int32)
    e = check(calque.vmap(fade), v, n, tol=1e-3, native=False)
    assert hosts(e) == [(5, SIDE, SIDE)]
    (loop,) = [s for s in walk(e.steps) if isinstance(s, Repeat)]
    assert loop.flag is not None


def test_a_choice_with_small_calls() -> None:
    f = calque.vmap(lambda p, v: lax.cond(p, host, lambda v: v * 2, v))
    p, v = np.array([True, False, True]), np.abs(normal(3, SIDE)) + 1
    e = check(f, p, v, tol=1e-3, native=False)
    assert hosts(e) == [(3, SIDE, SIDE)] and not any(isinstance(s, Repeat) for s in walk(e.steps))


def suits(f: Any, *args: Any) -> bool:
    closed = traced(f, *args)
    last = ClosedJaxpr(closed.jaxpr.replace(eqns=closed.eqns[-1:]), closed.consts)
    return together.suits(Planner(Sizes(), EMITTERS), last)


def test_what_goes_together() -> None:
    """A loop, or a choice without loops, with a small call that the user did not write."""
    v, k = np.abs(normal(SIDE)) + 1, np.int32(3)
    assert suits(fade, v, k)
    assert suits(lambda p, v: lax.cond(p, host, lambda v: v, v), np.bool_(True), v)
    dear = lambda v: lax.fori_loop(0, 9, lambda i, c: host(c), v)  # noqa: E731
    assert not suits(lambda p, v: lax.cond(p, dear, lambda v: v, v), np.bool_(True), v)
    plain = lambda v, n: lax.while_loop(lambda c: c[0] < n, lambda c: c * 2, v)  # noqa: E731
    assert not suits(plain, v, np.float32(9))
    side = int(together.SMALL**0.5) + 1
    assert not suits(fade, np.ones(side, np.float32), k)  # the work, not the call, is what it costs

    def asks(v: Any, n: Any) -> Any:
        def body(c: Any) -> Any:
            return c[0] + 1, calque.pure_callback(lambda x: x, v, c[1])

        return lax.while_loop(lambda c: c[0] < n, body, (0, v))[1]

    assert not suits(asks, v, k)


def test_lanes_that_stay_apart() -> None:
    """Without calls of Python each lane goes its own way."""
    f = calque.vmap(lambda v: lax.while_loop(lambda c: c.sum() < 50, lambda c: c * 2 + 1, v))
    assert not compiled(f, np.abs(normal(3, SIDE))).host_calls

"""What nobody reads is dropped, in loops and calls as well; what has an effect stays."""

from typing import Any

import numpy as np

import calque as cq
import calque.numpy as jnp
from calque import lax
from calque.core import reference
from calque.core.arrays import to_array
from calque.core.jaxprs import ClosedJaxpr, check_jaxpr
from calque.native.passes.dead_code import dead_code, dead_parts, has_effect
from tests.native.passes.shared import X, named
from tests.native.programs import traced


def test_dead_code() -> None:
    closed = traced(lambda x: [jnp.sin(x), jnp.cos(x)][0], X)
    assert [e.primitive.name for e in dead_code(closed.jaxpr).eqns] == ["sin"]
    assert dead_code(dead_code(closed.jaxpr)) is not None


def test_dead_parts_of_loops_and_calls() -> None:
    def f(x):
        step = cq.checkpoint(lambda c, i, d: (jnp.sin(c), i + 1, jnp.cos(d)))
        (c, _, _), (kept, _) = lax.scan(
            lambda c, _: ((new := step(*c)), (c[0], new[1])), (x, 0, x), length=3
        )
        back = lax.scan(lambda t, row: (t * row[0], row[1]), 1.0, (kept[:, 0], kept), reverse=True)[
            0
        ]
        return lax.cond(
            c[0] > 0, lambda a, b, u: (a, b), lambda a, b, u: (b, a), back, c[0], kept[1]
        )[0]

    closed = traced(f, X)
    pruned = dead_parts(closed.jaxpr)
    check_jaxpr(pruned)
    first, second = [e for e in pruned.eqns if e.primitive.name == "scan"]
    assert (first.params["num_carry"], len(first.outvars)) == (
        1,
        2,
    )  # neither counter nor cosines, kept once
    (call,) = first.params["jaxpr"].eqns
    assert [e.primitive.name for e in call.params["jaxpr"].eqns] == ["sin"]
    assert (len(second.outvars), len(second.invars)) == (1, 2)
    choice = next(e for e in pruned.eqns if e.primitive.name == "cond")
    assert (len(choice.outvars), len(choice.invars)) == (1, 3)
    a, b = (
        reference.run(closed, to_array(X)),
        reference.run(ClosedJaxpr(pruned, closed.consts), to_array(X)),
    )
    assert np.array_equal(a[0], b[0])
    assert dead_parts(pruned) is pruned


def test_whole_programs_are_given_back() -> None:
    closed = traced(lambda x: jnp.sin(x) * 2, X)
    assert dead_code(closed.jaxpr) is closed.jaxpr and dead_parts(closed.jaxpr) is closed.jaxpr


def test_chains_that_end_in_nothing_go_as_a_whole() -> None:
    def f(x: Any) -> Any:
        y = x
        for _ in range(50):
            y = jnp.sin(y)
        return x * 2

    assert named(dead_code(traced(f, X).jaxpr)) == ["mul"]


def test_effects_inside_of_loops_keep_them() -> None:
    def loud(c: Any, x: Any) -> Any:
        cq.debug.callback(lambda v: None, x)
        return c, None

    def f(x: Any) -> Any:
        lax.scan(loud, 0.0, x)
        lax.scan(lambda c, x: (c + x, None), 0.0, x)
        return x + 1

    closed = traced(f, X)
    assert named(dead_code(closed.jaxpr)).count("scan") == 1
    assert [has_effect(e) for e in closed.eqns if e.primitive.name == "scan"] == [True, False]
    kept = dead_parts(dead_code(closed.jaxpr))
    assert named(kept) == ["scan", "add"] and has_effect(kept.eqns[0])

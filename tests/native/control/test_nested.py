"""Loops in registers: nested loops and choices as statements, and what is too much for that."""

from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.native.control import nested
from calque.native.loops.tree import For, If, Recurrence, statements
from calque.native.lower.graph import graph_of
from calque.native.plan.steps import Call, Repeat, walk
from calque.native.scalars.expr import const, ex, param, ref
from tests.native.programs import check, compiled, normal, traced


def inside(f: Any, *args: Any) -> list[str]:
    """The kinds of statements in the kernels, if no loop is left to the driver."""
    e = compiled(f, *args)
    assert not any(isinstance(s, Repeat) for s in walk(e.steps))
    return [
        type(s).__name__ for c in walk(e.steps) if isinstance(c, Call) for s in statements(c.body)
    ]


def in_driver(f: Any, *args: Any) -> bool:
    return any(isinstance(s, Repeat) for s in walk(compiled(f, *args).steps))


def test_loops_and_choices_in_loops() -> None:
    """All in one statement: a loop around a choice around a loop."""

    def step(c: Any, x: Any) -> Any:
        def dear(c: Any) -> Any:
            return lax.while_loop(lambda d: d > 1, lambda d: jnp.sin(jnp.tanh(d)) * 0.9, c + x)

        return lax.cond(x > 0, dear, lambda c: c - 1, c), c

    f = lambda x: lax.scan(step, np.float32(3), x)  # noqa: E731
    x = normal(20)
    check(f, x, tol=1e-4)
    kinds = inside(f, x)
    assert kinds.count("Recurrence") == 2 and kinds.count("If") == 1


@pytest.mark.parametrize("index", [-1, 0, 1, 2, 3, 9])
def test_choices_between_many(index: int) -> None:
    """As nested ifs; an index out of range takes the first or last."""

    def f(i: Any, x: Any) -> Any:
        dear = [
            lambda c, k=k: lax.fori_loop(0, 9, lambda j, d: jnp.sin(d) + k, c) for k in range(4)
        ]
        return lax.fori_loop(0, 3, lambda j, c: lax.switch(i, dear, c), x)

    i, x = np.int32(index), np.float32(0.5)
    check(f, i, x, tol=1e-4)
    assert inside(f, i, x).count("If") == 3


def test_what_is_stacked_element_by_element() -> None:
    def f(x: Any) -> Any:
        c, (a, b) = lax.scan(lambda c, v: (c + v[0], (c, v * 2)), np.float32(0), x)
        return c, a, b

    x = normal(9, 3)
    check(f, x, tol=1e-5)
    assert "Recurrence" in inside(f, x)


@pytest.mark.parametrize(
    "f, args",
    [
        (lambda x: lax.fori_loop(0, 3, lambda i, c: jnp.roll(c, 1) * c[0], x),
         (normal(nested.LARGEST + 1),)),
        (lambda x: lax.scan(lambda c, v: (jnp.sort(c), c[0]), x, None, length=3), (normal(3),)),
        (lambda x, y: lax.scan(lambda c, i: (c + 1, y * c[0]), x, None, length=3),
         (normal(2), normal(nested.MOST_ELEMENTS + 1))),
    ],
)  # fmt: skip
def test_what_is_too_much_for_registers(f: Any, args: Any) -> None:
    check(f, *args, tol=1e-4)
    assert in_driver(f, *args)


def test_lanes_without_carries_are_a_loop_of_their_own() -> None:
    def halve(v: Any) -> Any:
        return lax.while_loop(lambda c: c > 1, lambda c: c * 0.5, v)

    x = np.abs(normal(30)) * 100
    check(calque.vmap(halve), x)
    e = compiled(calque.vmap(halve), x)
    nests = [s for c in walk(e.steps) if isinstance(c, Call) for s in c.body]
    assert any(isinstance(s, For) and isinstance(s.body[0], Recurrence) for s in nests)


def test_how_many_elements_are_few() -> None:
    def nodes(*sizes: int) -> Any:
        return graph_of(traced(lambda *x: x[0], *[normal(n) for n in sizes])).inputs

    most = nested.MOST_ELEMENTS
    assert nested.few(nodes(most)) and nested.few(nodes(most - 1, 1)) and nested.few([])
    assert not nested.few(nodes(most, 1))


def test_both_sides_give_each_name() -> None:
    names = [ref("y0", "f32"), ref("y1", "f32")]
    x, one, two = param("x", "f32"), const(1.0, "f32"), const(2.0, "f32")
    cond = ex("lt", x, one)
    made = nested.either(cond, ([], [one, x]), ([], [two, one]), names)
    assert isinstance(made, If) and made.cond is cond
    assert [(o.name, o.then, o.orelse) for o in made.outs] == [("y0", one, two), ("y1", x, one)]

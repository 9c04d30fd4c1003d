"""Elements outside, rounds inside: which loops commute, and that they give the same."""

from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.native.control import pointwise
from calque.native.loops.tree import For, Recurrence, Store
from calque.native.plan.steps import Call, Repeat, walk
from calque.native.scalars.expr import Buffer, const, var
from tests.native.programs import check, compiled, normal

X = normal(40, 30)


def rounds_inside(f: Any, *args: Any) -> bool:
    """Is there a nest whose innermost statement is the loop?"""
    e = compiled(f, *args)
    bodies = [s for c in walk(e.steps) if isinstance(c, Call) for s in c.body]
    while any(isinstance(s, For) for s in bodies):
        bodies = [t for s in bodies for t in (s.body if isinstance(s, For) else (s,))]
    return any(isinstance(s, Recurrence) for s in bodies) and not any(
        isinstance(s, Repeat) for s in walk(e.steps)
    )


COMMUTE: dict[str, Any] = {
    "an array": lambda x: lax.fori_loop(0, 9, lambda i, c: c * 0.9 + i, x),
    "two arrays": lambda x: lax.fori_loop(0, 9, lambda i, c: (c[1] * 0.5, c[0] + i), (x, x + 1)),
    "and a scalar": lambda x: lax.fori_loop(0, 9, lambda i, c: (c[0] * 0.9, c[1] + c[0]),
    (jnp.float32(2), x)),
    "complex numbers": lambda x: lax.fori_loop(0, 9, lambda i, c: c * (0.5 + 0.5j), x + 1j * x),
    "stacked": lambda x: lax.scan(lambda c, v: (c * 0.5 + v, c), jnp.zeros(30), x),
    "while": lambda x: lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * 0.5),
    (jnp.float32(0), x))[1],
}  # fmt: skip


@pytest.mark.parametrize("name", COMMUTE)
def test_loops_that_commute(name: str) -> None:
    check(COMMUTE[name], X, tol=1e-4)
    assert rounds_inside(COMMUTE[name], X)


STAY: dict[str, Any] = {
    "neighbours": lambda x: lax.fori_loop(0, 3, lambda i, c: jnp.roll(c, 1) * 0.5, x),
    "sums": lambda x: lax.fori_loop(0, 3, lambda i, c: c * 0.5 + c.sum() * 1e-3, x),
    "two shapes": lambda x: lax.fori_loop(0, 3, lambda i, c: (c[0] * 0.5, c[1] * 2), (x, x[0])),
    "scalars of arrays": lambda x: lax.fori_loop(0, 3, lambda i, c: (c[0] + c[1][0, 0], c[1] * 2),
    (jnp.float32(0), x))[0],
    "tests of elements": lambda x: lax.while_loop(lambda c: c[0, 0] < 9, lambda c: c + 1, x),
}  # fmt: skip


@pytest.mark.parametrize("name", STAY)
def test_loops_that_do_not(name: str) -> None:
    check(STAY[name], X, tol=1e-3)
    assert not rounds_inside(STAY[name], X)


def test_too_much_for_registers() -> None:
    """More states than fit, or more work in a round."""
    many = tuple(X * k for k in range(pointwise.MOST_STATES + 1))
    f = lambda *c: lax.fori_loop(0, 3, lambda i, c: tuple(v * 0.5 for v in c), c)  # noqa: E731
    check(f, *many, tol=1e-4)
    assert not rounds_inside(f, *many) and rounds_inside(f, *many[:3])

    def long(i: Any, c: Any) -> Any:
        for k in range(pointwise.MOST_NODES):
            c = c * 0.999 + 0.001 * k
        return c

    assert not rounds_inside(lambda x: lax.fori_loop(0, 3, long, x), X)


def test_marks_of_elements_are_kept_by_each() -> None:
    """Was any element ever out of range, in any round?"""

    def f(x: Any) -> Any:
        def body(i: Any, c: Any) -> Any:
            calque.check(jnp.isfinite(c).all(), "not finite")
            return c * 10.0

        return lax.fori_loop(0, 4, body, x)

    assert rounds_inside(f, X)
    np.testing.assert_allclose(calque.jit(f)(X), X * 1e4, rtol=1e-5)
    with pytest.raises(ValueError, match="not finite"):
        calque.jit(f)(np.where(np.arange(30) == 7, np.inf, X))


def test_loops_around_a_body() -> None:
    i, j = var("i", 3), var("j", 4)
    y = Buffer("y", (3, 4), "f32")
    s = Store(y, (i, j), const(1.0, "f32"))
    (outer,) = pointwise.nested([i, j], (s,))
    assert isinstance(outer, For) and outer.var is i
    (inner,) = outer.body
    assert isinstance(inner, For) and inner.var is j and inner.body == (s,)
    assert pointwise.nested([], (s,)) == (s,)


def test_arrays_of_which_each_round_writes_little_lie_in_memory() -> None:
    """Else every round would look at every element."""

    def filled(x: Any, width: int) -> Any:
        def body(c: Any) -> Any:
            return c[0] + 1, lax.dynamic_update_slice(c[1], jnp.full(width, c[0] * 1.0), (c[0],))

        return lax.while_loop(lambda c: c[0] < 9, body, (jnp.int32(0), x))[1]

    x = normal(640)
    for width, inside in ((1, False), (640 // pointwise.WORTH, False), (300, True)):
        f = lambda x, w=width: filled(x, w)  # noqa: E731
        check(f, x)
        assert rounds_inside(f, x) is inside
    assert rounds_inside(lambda x: filled(x, 1), normal(8))  # all of it fits into a register


def test_updates_beside_work_on_every_element() -> None:
    def body(i: Any, c: Any) -> Any:
        a, b = c
        return lax.dynamic_update_index_in_dim(a, b.dtype.type(2), i, 0), b * 0.5

    x = normal(640)
    f = lambda x: lax.fori_loop(0, 9, body, (x, x))  # noqa: E731
    check(f, x)
    assert rounds_inside(f, x)

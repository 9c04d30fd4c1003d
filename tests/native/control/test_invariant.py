"""What every round does alike is done once, and only that."""

from typing import Any

import numpy as np

import calque.numpy as jnp
from calque import lax
from calque.native.plan.steps import Call, Repeat, Routine, Step, walk
from tests.native.programs import check, normal


def loops(e: Any) -> list[Repeat]:
    return [s for s in walk(e.steps) if isinstance(s, Repeat)]


def calls(steps: Any) -> list[Step]:
    return [s for s in walk(steps) if isinstance(s, Call | Routine)]


def written(steps: Any) -> set[str]:
    return {b.name for s in calls(steps) for b in s.writes()}


def test_panels_of_a_matrix_are_packed_before_the_loop() -> None:
    w, h = normal(100, 60) / 10, normal(5, 60)

    def f(w, h):
        return lax.scan(lambda h, _: (jnp.tanh((h @ w.T)[:, :60]), h.sum()), h, None, length=6)

    e = check(f, w, h, tol=1e-4)
    (loop,) = loops(e)
    panels = {n for n in written(e.steps) if n.startswith("panels")}
    assert panels and panels.isdisjoint(written(loop.body))


def test_also_out_of_two_loops() -> None:
    w, h = normal(100, 60) / 10, normal(5, 60)

    def inner(w, h):
        return lax.fori_loop(0, 3, lambda _, h: jnp.tanh((h @ w.T)[:, :60]), h)

    e = check(lambda w, h: lax.fori_loop(0, 4, lambda _, h: inner(w, h) + 1, h), w, h, tol=1e-4)
    outer = loops(e)[0]
    assert len(loops(e)) == 2
    assert not {n for n in written(outer.body) if n.startswith("panels")}
    assert {n for n in written(e.steps) if n.startswith("panels")}


def test_factors_of_constants() -> None:
    a = normal(40, 40)
    a = (a @ a.T + 40 * np.eye(40)).astype("f4")

    def f(a, b):
        def step(x, _):
            c = jnp.linalg.cholesky(a)
            return c @ x * 0.1, x[:3]

        return lax.scan(step, b, None, length=5)

    e = check(f, a, normal(40, 4), tol=1e-3)
    routines = [s for s in walk(e.steps) if isinstance(s, Routine)]
    inside = [s for loop in loops(e) for s in walk(loop.body) if isinstance(s, Routine)]
    assert routines and not inside


def test_what_a_round_changes_stays() -> None:
    w, h = normal(4, 100, 60) / 10, normal(5, 60)

    def slices(w, h):  # another matrix in each round
        return lax.scan(lambda h, w: (jnp.tanh((h @ w.T)[:, :60]), None), h, w)[0]

    def carried(w, h):  # a matrix that a round changes
        def step(c, _):
            w, h = c
            return (w * 0.9, jnp.tanh((h @ w.T)[:, :60])), None

        return lax.scan(step, (w[0], h), None, length=4)[0]

    def counted(w, h):  # a matrix that the number of the round chooses
        return lax.fori_loop(0, 4, lambda i, h: jnp.tanh((h @ w[i].T)[:, :60]), h)

    def until(w, h):
        def step(c):
            w, h, n = c
            return w + 0.01, jnp.tanh((h @ w.T)[:, :60]), n + 1

        return lax.while_loop(lambda c: c[2] + 0 * c[1].sum() < 4, step, (w[0], h, 0.0))

    for f in (slices, carried, counted, until):
        e = check(f, w, h, tol=1e-3)
        (loop,) = loops(e)
        assert {n for n in written(loop.body) if n.startswith("panels")}, f.__name__


def test_arrays_of_constants_are_made_once() -> None:
    a = normal(200, 200)

    def f(a, x):
        def step(x, _):
            b = jnp.sort(a, axis=0)  # kept for both products
            return jnp.tanh(b @ x * 0.01 + b.T @ x * 0.01), None

        return lax.scan(step, x, None, length=3)[0]

    e = check(f, a, normal(200, 30), tol=1e-3)
    (loop,) = loops(e)
    assert not [s for s in walk(loop.body) if isinstance(s, Routine)]


def test_no_round_at_all() -> None:
    w, h = normal(100, 60) / 10, normal(5, 60)
    check(
        lambda w, h, n: lax.fori_loop(0, n, lambda _, h: jnp.tanh((h @ w.T)[:, :60]), h),
        w,
        h,
        np.int32(0),
    )

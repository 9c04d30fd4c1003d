"""Loops and branches: in registers, pointwise, in the driver; in place where that is legal."""

from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.native.plan.steps import Repeat, Switch, walk
from calque.transforms.primitives.scan import bind_counted
from tests.native.programs import check, compiled, normal, run


def has(e: Any, kind: type) -> bool:
    return any(isinstance(s, kind) for s in walk(e.steps))


def test_scalars_stay_in_registers() -> None:
    v = normal(50)
    e = check(lambda x: lax.scan(lambda c, s: (c + s, c * 2.0), jnp.float32(0), x), v, tol=1e-4)
    assert not has(e, Repeat)
    e = check(
        lambda x: lax.while_loop(
            lambda c: c[0] < 1000, lambda c: (c[0] + 1, c[1] * 0.99 + 1e-3), (0, x)
        ),
        np.float32(1),
        tol=1e-4,
    )
    assert not has(e, Repeat)
    check(lambda x: lax.while_loop(lambda c: c < 0, lambda c: c + 1, x), np.int32(5))


def test_small_arrays_are_taken_apart() -> None:
    def step(s, _):
        x, y, z = s[0], s[1], s[2]
        s = s + 0.01 * jnp.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])
        return s, s

    e = check(lambda s: lax.scan(step, s, None, length=50), np.ones(3, np.float32), tol=1e-3)
    assert not has(e, Repeat)


def test_complex_carries() -> None:
    c = (np.linspace(-2, 1, 26)[None] + 1j * np.linspace(-1.5, 1.5, 25)[:, None]).astype(
        np.complex64
    )

    def body(_, s):
        z, n = s
        z = jnp.where(jnp.abs(z) < 2, z * z + c, z)
        return z, n + (jnp.abs(z) < 2)

    e = check(
        lambda c: lax.fori_loop(0, 20, body, (jnp.zeros_like(c), jnp.zeros(c.shape, jnp.int32)))[1],
        c,
    )
    assert not has(e, Repeat)


@pytest.mark.parametrize("reverse", [False, True])
def test_pointwise_loops(reverse: bool) -> None:
    for shape in ((37, 50), (5, 4, 70), (0, 50), (3, 0)):
        x = normal(*shape)

        def f(x):
            return lax.scan(
                lambda c, s: (c * 0.5 + s, c * 2.0), jnp.zeros(x.shape[1:]), x, reverse=reverse
            )

        assert not has(check(f, x, tol=1e-4), Repeat)
    check(lambda x: lax.fori_loop(0, 5, lambda i, c: c * 0.5 + i, x), normal(300))
    check(
        lambda x: lax.fori_loop(0, 5, lambda i, c: (c[0] + 1, c[1] * c[0]), (jnp.int32(0), x))[0],
        normal(30),
    )


@pytest.mark.parametrize("length", [0, 1, 2, 7, 8])
def test_driver_loops(length: int) -> None:
    def f(h, w, xs):
        return lax.scan(lambda h, x: (jnp.tanh(w @ h + x), h), h, xs)

    check(
        f, np.zeros(70, np.float32), normal(70, 70) * np.float32(0.1), normal(length, 70), tol=1e-3
    )

    def f(x):
        return lax.fori_loop(0, length, lambda i, c: jnp.roll(c, 1) + c[0], x)

    check(f, normal(100), tol=1e-2)


def test_carries_that_change_places_or_stay() -> None:
    a, b = normal(50), normal(50, seed=1)
    for n in (4, 5):
        check(
            lambda a, b: lax.fori_loop(0, n, lambda i, c: (c[1], jnp.roll(c[0], 1)), (a, b)), a, b
        )
        check(
            lambda a, b: lax.fori_loop(0, n, lambda i, c: (c[0], jnp.roll(c[1], 1) + c[0]), (a, b)),
            a,
            b,
            tol=1e-4,
        )
        check(
            lambda a, b: lax.fori_loop(
                0, n, lambda i, c: (c[0], c[0], jnp.roll(c[2], 1)), (a, b, a)
            ),
            a,
            b,
        )


def test_updates_in_place() -> None:
    v = normal(50)
    e = check(lambda x: lax.fori_loop(0, 40, lambda i, x: x.at[i].set(i * 1.0), x), v)
    assert has(e, Repeat) and all(not s.swaps for s in walk(e.steps) if isinstance(s, Repeat))
    check(lambda x: lax.fori_loop(1, 40, lambda i, x: x.at[i].set(x[i - 1] * 0.5 + 1), x), v)
    check(lambda x: lax.fori_loop(1, 40, lambda i, x: x.at[i].add(1.0).at[i - 1].mul(2.0), x), v)
    check(lambda x: lax.fori_loop(1, 9, lambda i, x: x.at[1:].set(x[:-1] + i), x), v)
    check(
        lambda x: lax.fori_loop(1, 9, lambda i, x: x.at[i].set(x.sum()), x),
        v * np.float32(0.1),
        tol=1e-3,
    )
    check(
        lambda x: lax.scan(lambda x, i: (x.at[i].add(1.0), x[i] + x[0]), x, jnp.arange(9)),
        v,
        tol=1e-4,
    )
    check(lambda x: lax.scan(lambda x, i: (x.at[i].add(1.0), x), x, jnp.arange(9)), v)


def test_updates_outside_loops() -> None:
    v = normal(50)
    check(lambda x: [x.at[3].set(1.0), x * 2.0], v)
    check(lambda x: (x * 2.0).at[3].set(1.0).at[5].add(2.0), v)
    check(lambda x: (lambda y: [y.at[1:].set(y[:-1]), 1.0])(x * 2.0), v)
    check(lambda x: (lambda y: [y.at[1:].add(1.0), y])(x * 2.0), v)
    check(lambda x: (lambda y: y.at[2].set(3.0).sum() + (y + 1).sum())(x * 2.0), v, tol=1e-4)


def test_stencils() -> None:
    def sweep(_, u):
        return u.at[1:-1, 1:-1].set(
            0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        )

    for n in (9, 10):
        check(lambda u: lax.fori_loop(0, n, sweep, u), normal(20, 30), tol=1e-4)


def test_nested_loops() -> None:
    def f(x):
        return lax.fori_loop(
            0, 3, lambda i, c: lax.fori_loop(0, 4, lambda j, d: d * 0.5 + i + j, c), x
        )

    check(f, normal(50), tol=1e-4)

    def g(x):
        return lax.fori_loop(
            0, 3, lambda i, c: lax.fori_loop(0, 4, lambda j, d: jnp.roll(d, 1) * 0.5 + j, c) + i, x
        )

    check(g, normal(50), tol=1e-4)

    def rows(c, s):
        d, ys = lax.scan(lambda d, u: (d * 0.5 + u, d * u), c, s)
        return d, ys.sum()

    check(lambda x: lax.scan(rows, jnp.float32(0), x), normal(7, 20), tol=1e-3)


def test_while_loops_over_arrays() -> None:
    v = np.abs(normal(50))
    check(
        lambda x: lax.while_loop(lambda c: jnp.sum(c) < 500, lambda c: c * 1.5 + 1, x), v, tol=1e-4
    )
    check(
        lambda x: lax.while_loop(
            lambda c: c[1] < 5, lambda c: (jnp.roll(c[0], 1), c[1] + 1), (x, 0)
        ),
        v,
    )
    check(
        lambda x: lax.while_loop(
            lambda c: c[1] < 0, lambda c: (jnp.roll(c[0], 1), c[1] + 1), (x, 0)
        ),
        v,
    )


def test_branches() -> None:
    v = normal(50)
    for limit in (-1e9, 1e9):
        check(lambda x: lax.cond(x.sum() > limit, lambda y: y + 1, lambda y: y * 2, x), v)
        check(
            lambda x: lax.cond(x.sum() > limit, lambda y: (y, y.sum()), lambda y: (y * 2, y[0]), x),
            v,
            tol=1e-4,
        )
    for i in (-3, 0, 1, 2, 9):

        def f(i, x):
            return lax.switch(i, [lambda x: x, lambda x: x * 2, lambda x: jnp.roll(x, 1)], x)

        check(f, np.int32(i), v)


def test_only_one_branch_runs() -> None:
    def big(x):
        return lax.fori_loop(0, 10, lambda i, c: jnp.roll(c, 1) * 1.5, x)

    e = compiled(lambda p, x: lax.cond(p, big, lambda x: x, x), np.bool_(False), normal(100))
    assert has(e, Switch)
    assert np.array_equal(run(e, np.bool_(False), normal(100))[0], normal(100))


def test_branches_in_loops() -> None:
    v = normal(50)

    def f(x):
        return lax.scan(
            lambda c, s: (lax.cond(s > 0, lambda c: c + s, lambda c: c * 0.5, c), c),
            jnp.float32(0),
            x,
        )

    check(f, v, tol=1e-4)

    def g(x):
        return lax.fori_loop(
            0,
            6,
            lambda i, c: lax.cond(i % 2 == 0, lambda c: jnp.roll(c, 1), lambda c: c * 2.0, c),
            x,
        )

    check(g, v)


def test_lanes_of_a_while_loop_stop_one_by_one() -> None:
    def f(n):
        return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 2.0), (0, 1.0))

    check(calque.vmap(f), np.array([1, 4, 2], np.int32))
    check(calque.vmap(calque.vmap(f)), np.arange(20, dtype=np.int32).reshape(4, 5))

    def rows(x):
        return lax.while_loop(lambda c: c.sum() < 10, lambda c: c * 1.5 + 1, x)

    check(calque.vmap(rows), np.abs(normal(4, 5)), tol=1e-5)


def test_a_first_value_is_read_again_after_the_loop() -> None:
    def f(x, n):
        one = jnp.ones(50)
        y = lax.while_loop(
            lambda c: c[0] < n, lambda c: (c[0] + 1, jnp.cumsum(c[1] * x)), (0, one)
        )[1]
        return y * x + one

    for n in range(3):
        check(f, 0.1 * normal(50), np.int32(n), tol=1e-4)

    def g(x):
        return lax.scan(lambda c, _: (jnp.cumsum(c * x), None), jnp.ones(50), None, length=3)[
            0
        ] + jnp.ones(50)

    check(g, 0.1 * normal(50), tol=1e-4)


def test_buffers_that_changed_places_keep_their_memory() -> None:
    def f(x, n):
        y = lax.while_loop(
            lambda c: c[0] < n, lambda c: (c[0] + 1, jnp.cumsum(jnp.sin(c[1]))[::-1]), (0, x)
        )[1]
        return y + jnp.cumsum(jnp.cumsum(jnp.cos(x))[::-1] * x)[::-1]

    for n in range(4):
        check(f, normal(50), np.int32(n), tol=1e-4)


def test_stacked_results_live_in_all_rounds() -> None:
    def step(c, x):
        y = jnp.cumsum(c) * 0.1
        y = lax.while_loop(
            lambda s: s[0] < 3, lambda s: (s[0] + 1, jnp.cumsum(s[1][::-1]) * 0.1), (0, y)
        )[1]
        return y, y * x

    check(
        lambda x: jnp.cumsum(lax.scan(step, x[0], x)[1][::-1], axis=1).T,
        normal(5, 40) * 0.1,
        tol=1e-4,
    )


def test_a_small_carry_read_at_a_computed_place() -> None:
    def run(x):  # type: ignore[no-untyped-def]
        return calque.lax.scan(lambda c, y: (c + y, c[jnp.argmax(c >= 2)]), x, jnp.arange(4))

    x = jnp.array([1, 0, -9])
    carry, picked = calque.jit(run)(x)
    np.testing.assert_array_equal(carry, [7, 6, -3])
    np.testing.assert_array_equal(picked, [1, 1, 2, 4])


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("shape", [(), (5,), (70, 3)])
def test_rounds_counted_while_running(reverse: bool, shape: tuple[int, ...]) -> None:
    """In registers, pointwise and in the driver."""
    xs, c = normal(9, *shape), np.ones(shape, np.float32)
    turn = (lambda c: jnp.roll(c, 1)) if len(shape) > 1 else (lambda c: c)
    body = calque.make_jaxpr(lambda c, x: (turn(c) * 0.5 + x, c * 2))(c, xs[0])

    def f(n, c, xs):
        return bind_counted(n, [], [c], [xs], jaxpr=body, length=9, reverse=reverse)

    rows = np.arange(9).reshape(9, *[1] * len(shape))

    def first(n: Any, c: Any, xs: Any) -> list[Any]:
        out, ys = f(n, c, xs)
        return [out, jnp.where(rows < n, ys, 0)]

    for n in (0, 1, 4, 9):
        check(first, np.int32(n), c, xs)

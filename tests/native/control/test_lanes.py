"""Lanes that part: loops that end and choices that fall out differently in each lane of a vector,
or in each round of a driver loop."""

from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.native.loops.tree import For, If, LoopValue, Out, Recurrence, Store, statements
from calque.native.plan.steps import Call, Repeat, Switch, walk
from calque.native.scalars.expr import cast, const, ex, load, ref, var
from tests.native.programs import check, compiled, normal
from tests.native.run_kernel import array, run, run_plain

SIZES = (0, 1, 5, 16, 17, 40, 100)
n = var("n")
i = var("i", n)
x, y = array("x", "f32", n), array("y", "f32", n)


def f32(v):
    return const(v, "f32")


X = load(x, (i,))


def halvings(name: str, start: Any) -> Recurrence:
    """How often `start` is halved until it is below 1, and what is left."""
    a, k = ref(f"{name}.a", "f32"), ref(f"{name}.k", "i64")
    states = (
        LoopValue(f"{name}.a", start, ex("mul", a, f32(0.5))),
        LoopValue(f"{name}.k", const(0), ex("add", k, const(1))),
    )
    return Recurrence(states, (), cond=ex("ge", a, f32(1.0)))


def python_halvings(v: float) -> tuple[float, int]:
    k = 0
    while v >= 1:
        v, k = v * 0.5, k + 1
    return v, k


def everywhere(body: Any, want: Any, values: Any) -> None:
    """As a serial loop and as vectors of two widths, with masked tails and without, over sizes
    around the widths."""
    for kind, width in (("serial", 1), ("vector", 4), ("vector", 16)):
        nest = (For(i, body, (), kind, width),)
        for size in SIZES:
            given = np.resize(np.float32(values), size)
            out = np.full(size + 1, -7, np.float32)
            expected = np.float32([want(float(v)) for v in given])
            run(nest, {x: given, y: out, "n": size})
            np.testing.assert_array_equal(out[:size], expected)
            assert out[size] == -7
            if size == 40:
                out[:] = -7
                run_plain(nest, {x: given, y: out, "n": size}, avx512=False)
                np.testing.assert_array_equal(out[:size], expected)


WILD = [0.5, 3.0, 1000.0, 1.0, 7.5, 0.0, 1e30, 2.0, -4.0, 17.0, 5e5]


def test_a_loop_ends_lane_by_lane() -> None:
    body = (
        halvings("h", X),
        Store(y, (i,), ex("add", ref("h.a", "f32"), cast(ref("h.k", "i64"), "f32"))),
    )
    everywhere(body, lambda v: np.float32(sum(python_halvings(v))), WILD)


def test_loops_inside_loops() -> None:
    """The inner loop would never end for a lane that has left the outer one."""
    a, s = ref("o.a", "f32"), ref("o.s", "f32")
    b = ref("w.b", "f32")
    inner = Recurrence(
        (LoopValue("w.b", a, ex("mul", b, f32(2.0))),), (), cond=ex("lt", b, f32(64.0))
    )
    states = (
        LoopValue("o.a", X, ex("sub", a, f32(1.0))),
        LoopValue("o.s", f32(0.0), ex("add", s, b)),
    )
    body = (Recurrence(states, (inner,), cond=ex("gt", a, f32(0.0))), Store(y, (i,), s))

    def want(v: float) -> float:
        total = np.float32(0)
        while v > 0:
            w = np.float32(v)
            while w < 64:
                w = w * np.float32(2)
            total, v = total + w, v - 1
        return float(total)

    everywhere(body, want, [3.0, 0.0, -5.0, 7.0, 1.0, 12.0])


def test_a_choice_by_lane() -> None:
    big = ex("ge", X, f32(5.0))
    body = (
        If(big, (halvings("h", X),), (), (Out("r", ref("h.a", "f32"), ex("mul", X, f32(3.0))),)),
        Store(y, (i,), ref("r", "f32")),
    )
    everywhere(
        body,
        lambda v: np.float32(python_halvings(v)[0] if v >= 5 else np.float32(v) * np.float32(3)),
        WILD,
    )


def test_stores_of_some_lanes_only() -> None:
    body = (Store(y, (i,), f32(1.0)), If(ex("gt", X, f32(2.0)), (Store(y, (i,), X),)))
    everywhere(body, lambda v: np.float32(v if v > 2 else 1), WILD)


# --- programs -------------------------------------------------------------------------------------


def steps_of(f: Any, *args: Any) -> list[Any]:
    return list(walk(compiled(f, *args).steps))


def collatz(v: Any) -> Any:
    def step(s):
        return (jnp.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1)

    return lax.while_loop(lambda s: s[0] != 1, step, (v, 0))[1]


def vector_loops(steps: list[Any]) -> list[For]:
    bodies = [s for c in steps if isinstance(c, Call) for s in statements(c.body)]
    return [
        s
        for s in bodies
        if isinstance(s, For)
        and s.kind == "vector"
        and any(isinstance(b, (Recurrence, If)) for b in s.body)
    ]


@pytest.mark.parametrize("lanes", [1, 3, 16, 50])
def test_scalar_loops_are_vectors_that_part(lanes: int) -> None:
    v = np.arange(1, lanes + 1, dtype=np.int32)
    check(calque.vmap(collatz), v)
    steps = steps_of(calque.vmap(collatz), v)
    assert not any(isinstance(s, Repeat) for s in steps) and (lanes == 1 or vector_loops(steps))


def test_small_arrays_and_complex_numbers() -> None:
    def orbit(c: Any) -> Any:
        return lax.while_loop(
            lambda s: (abs(s[0]) < 2) & (s[1] < 30),
            lambda s: (s[0] * s[0] + c, s[1] + 1),
            (0 * c, 0),
        )

    c = (normal(40) + 1j * normal(40, seed=1)).astype(np.complex64)
    check(calque.vmap(orbit), c, tol=1e-3)
    assert vector_loops(steps_of(calque.vmap(orbit), c))

    def spiral(s: Any) -> Any:
        def turn(s):
            return jnp.stack([s[0] * 0.9 - s[1] * 0.2, s[0] * 0.2 + s[1] * 0.9, s[2] + 1])

        return lax.while_loop(lambda s: s[0] ** 2 + s[1] ** 2 > 0.1, turn, s)

    s = normal(33, 3)
    check(calque.vmap(spiral), s, tol=1e-3)
    assert vector_loops(steps_of(calque.vmap(spiral), s))


def test_dear_branches_run_for_their_lanes_only() -> None:
    """In one kernel: behind a condition, not selected from."""

    def dear(v):
        return lax.fori_loop(0, 1000, lambda i, c: jnp.sin(c) + 0.1, v)

    f = calque.vmap(lambda p, v: lax.cond(p, dear, lambda v: 2 * v, v))
    p, v = np.arange(37) % 10 == 0, normal(37)
    check(f, p, v, tol=1e-3)
    (nest,) = vector_loops(steps_of(f, p, v))
    (choice,) = [s for s in nest.body if isinstance(s, If)]
    assert [type(s) for s in (*choice.then, *choice.orelse)] == [Recurrence]


def test_many_branches() -> None:
    powers = [
        lambda v, k=k: lax.fori_loop(0, 100, lambda i, c: jnp.sin(c / (k + 2)) + 0.1, v)
        for k in range(4)
    ]
    f = calque.vmap(lambda k, v: lax.switch(k, powers, v))
    check(f, np.array([0, 3, 2, 9, -1, 1, 0, 2, 3] * 4, np.int32), normal(36), tol=1e-3)


def test_arrays_go_lane_by_lane_through_the_driver() -> None:
    def dear(v):
        return lax.fori_loop(0, 20, lambda i, c: jnp.tanh(W @ c), v)

    f = calque.vmap(lambda p, v: lax.cond(p, dear, lambda v: 2 * v, v))
    p, v = np.arange(6) % 3 == 0, normal(6, 40)
    check(f, p, v, tol=1e-3)
    (loop,) = [s for s in compiled(f, p, v).steps if isinstance(s, Repeat)]
    assert any(isinstance(s, Switch) for s in loop.body)
    grown = calque.vmap(
        lambda v: lax.while_loop(lambda c: c.sum() < 50, lambda c: jnp.roll(c, 1) * 2 + 1, v)
    )
    check(grown, normal(5, 30), tol=1e-2)


W = normal(40, 40) * np.float32(0.1)


def test_nested_loops_in_registers() -> None:
    def f(v: Any) -> Any:
        def inner(c):
            return lax.while_loop(lambda d: d > 0.5, lambda d: d * 0.7, c)

        return lax.scan(lambda c, s: (inner(c) + s, c), 0.0, v)

    v = np.abs(normal(30))
    check(f, v, tol=1e-4)
    assert not any(isinstance(s, Repeat) for s in steps_of(f, v))


def test_lanes_share_what_is_not_mapped() -> None:
    table = normal(50)

    def find(v, table):
        return lax.while_loop(lambda k: (table[k] < v) & (k < 49), lambda k: k + 1, 0)

    check(calque.vmap(find, (0, None)), normal(20), table)


@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.uint32])
def test_element_types(dtype: Any) -> None:
    v = np.arange(1, 30).astype(dtype)
    check(calque.vmap(lambda v: lax.while_loop(lambda c: c < 50, lambda c: c + c // 2 + 1, v)), v)


def test_lanes_that_call_python_step_together() -> None:
    """One call for the batch in each round, not one for each lane; a dear branch stays with its
    lanes."""

    def fade(v, n):
        return lax.fori_loop(
            0, n, lambda i, x: jnp.sort(jnp.linalg.eigvals(jnp.diag(x) + 2).real) / 8, v
        )

    v, n = np.abs(normal(6, 4)) + 1, np.array([3, 0, 5, 1, 2, 2], np.int32)
    e = check(calque.vmap(fade), v, n, tol=1e-3, native=False)
    (loop,) = [s for s in e.steps if isinstance(s, Repeat)]
    assert (
        e.host_calls and loop.flag is not None and not any(isinstance(s, Repeat) for s in loop.body)
    )

    def solve(v):
        return jnp.linalg.solve(jnp.diag(v) + 1, v) + 2  # settles

    dear = calque.vmap(
        lambda p, v: lax.cond(
            p, lambda v: lax.fori_loop(0, 100, lambda i, x: solve(x), v), lambda v: v, v
        )
    )
    p = n > 1
    e = check(dear, p, v, tol=1e-2, native=False)
    assert any(
        isinstance(s, Repeat) and any(isinstance(t, Switch) for t in s.body) for s in e.steps
    )

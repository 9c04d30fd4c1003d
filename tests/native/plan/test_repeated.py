"""What was scheduled once serves nests that have the same loops over other buffers and numbers."""

import numpy as np

import calque as jax
import calque.numpy as jnp
from calque import lax
from calque.native.loops.tree import Acc, Body, For, Store, pretty
from calque.native.lower.sizes import Sizes
from calque.native.plan.repeated import Repeated
from calque.native.plan.scheduling import scheduled
from calque.native.plan.steps import Call, Nest, Repeat
from calque.native.scalars.expr import Buffer, Expr, const, ex, load, param, ref, var
from tests.native.programs import compiled

SIZES = Sizes()


def scaled(x: Buffer, y: Buffer, by: Expr, extent: int = 64) -> Body:
    """y = x * by"""
    i = var("d0", SIZES.dim(extent))
    return (For(i, (Store(y, (i,), ex("mul", load(x, (i,)), by)),)),)


def buffers(names: str, *shape: int) -> list[Buffer]:
    return [Buffer(n, tuple(SIZES.dim(d) for d in shape), "f32") for n in names]


def made(*bodies: Body) -> list[Call]:
    steps = scheduled([Nest(b, in_order=True) for b in bodies], SIZES)
    assert all(isinstance(s, Call) for s in steps)
    return [s for s in steps if isinstance(s, Call)]


def test_the_second_nest_has_the_schedule_of_the_first() -> None:
    x, y, u, v = buffers("xyuv", 64)
    p, q = param("p", "f32"), param("q", "f32")
    body = scaled(u, v, q)
    first, second = made(scaled(x, y, p), body)
    assert second.schedule is first.schedule and second.nest is body
    assert second.names == {x: u, y: v} and second.numbers == {p: q}
    assert (second.reads(), second.writes()) == ({u}, {v})
    assert "v[d0] = (u[d0] * q)" in pretty(second.body)
    assert second.parameters([p]) == [q] and second.buffers([y, x]) == [v, u]


def test_what_differs_in_more_than_names_is_scheduled_anew() -> None:
    x, y, u, v = buffers("xyuv", 64)
    p = param("p", "f32")
    i = var("d0", SIZES.dim(64))
    others = {
        "numbers": scaled(u, v, const(3.0, "f32")),
        "loops": scaled(u, v, p, 32),
        "operations": (For(i, (Store(v, (i,), ex("add", load(u, (i,)), p)),)),),
        "what is one": (For(i, (Store(u, (i,), ex("mul", load(u, (i,)), p)),)),),
        "extents of buffers": scaled(*buffers("uv", 128), p),
    }
    for name, body in others.items():
        first, second = made(scaled(x, y, p), body)
        assert second.schedule is not first.schedule and not second.names, name


def test_kinds_of_nests_are_found_among_each_other() -> None:
    x, y, u, v = buffers("xyuv", 64)
    p = param("p", "f32")
    three, four = const(3.0, "f32"), const(4.0, "f32")  # the same outline, three kinds
    calls = made(*[scaled(a, b, c) for a, b in ((x, y), (u, v)) for c in (p, three, four)])
    assert len({c.schedule for c in calls}) == 3
    assert all(a.schedule is b.schedule for a, b in zip(calls[:3], calls[3:], strict=True))


def test_the_counter_of_a_loop_is_part_of_the_loops() -> None:
    x, y, u, v = buffers("xyuv", 8, 64)

    def row(x: Buffer, y: Buffer, counter: str) -> Body:
        k, i = var(counter, None), var("d0", SIZES.dim(64))
        return (For(i, (Store(y, (k, i), load(x, (k, i))),)),)

    def loop(counter: str, *bodies: Body) -> Repeat:
        body = [Nest(b, in_order=True) for b in bodies]
        return Repeat(body, (), const(8), counter)

    one = loop("k1", row(x, y, "k1"), row(u, v, "k1"))
    other = loop("k2", row(x, y, "k2"))
    first, second = scheduled([one, other], SIZES)
    assert isinstance(first, Repeat) and isinstance(second, Repeat)
    a, b, c = (s.schedule for s in (*first.body, *second.body) if isinstance(s, Call))
    assert a is b and c is not a


def test_free_sizes_repeat_nothing() -> None:
    x, y, u, v = buffers("xyuv", 64)
    p = param("p", "f32")
    free = Repeated(Sizes(known=False))
    for body in (scaled(x, y, p), scaled(u, v, p)):
        parts, names, _ = free.served(body, 1.0, lambda body=body: [(body, None)])
        assert parts[0][0] is body and not names


def test_long_chains_are_scheduled_once() -> None:
    """Each number stays with its own piece, whether temporaries share memory or not."""
    for n in (64, 5000):
        x = np.linspace(-1, 1, n, dtype="f")
        numbers = [1.5 + k / 7 for k in range(200)]

        def f(x):
            for c in numbers:
                x = jnp.sin(x) * c
            return x

        e = compiled(f, x)
        want = x
        for c in numbers:
            want = np.asarray(jnp.sin(want)) * np.float32(c)
        np.testing.assert_allclose(e.call([x])[0], want, rtol=2e-5, atol=2e-5)
        assert len(e.calls) > 6
        shared = [c for c in e.calls if c.numbers]
        assert len(shared) > 4 if n == 64 else not shared  # a body of its own in shared memory
        assert len({k.code for k in e.kernels}) < 4


def test_layers_and_their_updates_share_schedules() -> None:
    r = np.random.default_rng(0)
    params = [r.normal(size=(48, 48)).astype("f") / 7 for _ in range(8)]
    x = r.normal(size=(40, 48)).astype("f")

    def loss(ps, x):
        for p in ps:
            x = x + jnp.tanh(jax.nn.standardize(x) @ p)
        return (x**2).mean()

    def step(ps, ms, x):
        g = jax.grad(loss)(ps, x)
        ms = [0.9 * m + 0.1 * d for m, d in zip(ms, g)]
        return [p - 0.01 * m / (jnp.abs(m) + 1e-3) for p, m in zip(ps, ms)], ms

    ms = [np.zeros_like(p) for p in params]
    lowered = jax.jit(step).lower(params, ms, x)
    got = lowered.compile()(params, ms, x)
    with jax.disable_jit():
        want = step(params, ms, x)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)


def test_repeated_nests_in_loops_run() -> None:
    x = np.linspace(0, 1, 3000, dtype="f")

    def f(x):
        def body(k, c):
            a, b, d = c
            a, b, d = jnp.cumsum(a) * 1.5, jnp.cumsum(b) * 2.5, jnp.cumsum(d) * 3.5
            return a / a.max(), b / b.max(), d / d.max()

        return lax.fori_loop(0, 3, body, (x, x + 1, x + 2))

    got = compiled(f, x).call([x])
    for k, g in enumerate(got):
        want = (x + k).astype("f8")
        for _ in range(3):
            want = np.cumsum(want)
            want /= want.max()
        np.testing.assert_allclose(g, want, rtol=1e-4)


def test_accumulators_of_repeated_nests() -> None:
    x, y, u, v = buffers("xyuv", 64)
    one, other = (buffers(n, 1)[0] for n in "ab")
    i = var("d0", SIZES.dim(64))

    def total(x: Buffer, out: Buffer, name: str) -> Body:
        fold = For(i, (), (Acc(name, "sum", load(x, (i,)), order="blocked"),))
        return (fold, Store(out, (const(0),), ref(name, "f32")))

    first, second = made(total(x, one, "r.a"), total(u, other, "r.b"))
    assert second.schedule is first.schedule and second.names == {x: u, one: other}

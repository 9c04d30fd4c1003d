"""Nests to kernels: loops that threads can share do not wait in one kernel with short ones."""

import numpy as np

import calque.numpy as jnp
from calque import lax
from calque.native.loops.tree import Acc, For, Store, pretty
from calque.native.lower.sizes import Sizes
from calque.native.plan.scheduling import hand_on_scalars, pieces, products, scheduled
from calque.native.plan.steps import Nest
from calque.native.scalars.expr import Buffer, const, ex, load, ref, var
from tests.native.programs import compiled


def loops(e) -> list[tuple[int, bool]]:
    """(top-level loops, shared by threads?) of every kernel."""
    return [(len(c.body), c.schedule.extent is not None) for c in e.calls]


def test_a_long_product_after_a_short_loop_is_shared() -> None:
    r = np.random.default_rng(0)
    x, w = r.normal(size=256).astype("f"), r.normal(size=(256, 4096)).astype("f")

    def f(x, w):
        return jnp.tanh(jnp.tanh(x) @ w)

    e = compiled(f, x, w)
    assert any(shared for _, shared in loops(e))
    np.testing.assert_allclose(e.call([x, w])[0], np.tanh(np.tanh(x) @ w), rtol=1e-3, atol=1e-4)


def test_short_loops_stay_together() -> None:
    x, w = np.ones(16, "f"), np.ones((16, 16), "f")
    assert len(compiled(lambda x, w: jnp.tanh(x) @ w, x, w).calls) == 1


def test_kernels_are_cut_only_around_long_loops() -> None:
    sizes = Sizes()
    short, long = sizes.dim(20), sizes.dim(40_000_000)
    x, y, z = (Buffer(n, (long,), "f32") for n in "xyz")

    def loop(name: str, n, source: Buffer, to: Buffer) -> For:
        i = var(name, n)
        return For(i, (Store(to, (i,), ex("add", load(source, (i,)), load(x, (i,)))),))

    body = (
        loop("a", short, x, y),
        loop("b", short, y, z),
        loop("c", long, z, y),
        loop("d", short, y, z),
    )
    made = pieces(body, sizes)
    assert [len(b) for b, _ in made] == [2, 1, 1]
    assert [s.extent is not None for _, s in made] == [False, True, False]
    assert [s for b, _ in made for s in b] == list(body)
    assert len(pieces(body[:2], sizes)) == 1


def test_threads_that_a_loop_keeps_awake_share_shorter_kernels() -> None:
    r = np.random.default_rng(1)
    x, w = r.normal(size=256).astype("f"), r.normal(size=(256, 256)).astype("f") / 16
    w = np.concatenate([w, w, w], 1)  # a product of some 16 us

    def once(x, w):
        return jnp.tanh(x @ w)

    def often(x, w):
        return lax.fori_loop(0, 5, lambda i, x: once(x[:256], w), jnp.concatenate([x, x, x]))

    assert not any(shared for _, shared in loops(compiled(once, x, w)))
    e = compiled(often, x, w)
    assert any(shared for _, shared in loops(e))
    want = np.concatenate([x, x, x])
    for _ in range(5):
        want = np.tanh(want[:256] @ w)
    np.testing.assert_allclose(e.call([x, w])[0], want, rtol=1e-3, atol=1e-5)


def test_loops_that_hand_on_what_they_fold_stay_together() -> None:
    n = Sizes().dim(40_000_000)
    x, y = Buffer("x", (n,), "f32"), Buffer("y", (n,), "f32")
    row = Buffer("row", (8,), "f32", "stack")
    k, i = var("k", n), var("i", n)
    fold = For(k, (), (Acc("r", "sum", load(x, (k,))),))
    reads = For(i, (Store(y, (i,), ref("r", "f32")),))
    assert hand_on_scalars([fold, reads]) and not hand_on_scalars([reads])
    writes = For(k, (Store(row, (const(0),), load(x, (k,))),))
    looks = For(i, (Store(y, (i,), load(row, (const(0),))),))
    assert hand_on_scalars([writes, looks])
    assert not hand_on_scalars([writes, reads])


def test_nests_that_are_alike_share_a_schedule() -> None:
    """Each keeps its own buffers."""
    n = const(64)
    x, y, u, v = (Buffer(name, (n,), "f32") for name in "xyuv")
    i = var("i", n)
    body = (For(i, (Store(y, (i,), load(x, (i,))),), kind="vector", width=16),)
    first = Nest(body, vectors=True)
    second = Nest(None, vectors=True, like=first, names={x: u, y: v})
    one, two = scheduled([first, second], Sizes())
    assert one.schedule is two.schedule and not one.names
    assert (one.reads(), one.writes()) == ({x}, {y}) and (two.reads(), two.writes()) == ({u}, {v})
    assert pretty(two.body) == pretty(second.body) != pretty(one.body)
    made = products([first, second], Sizes())
    assert made[first] is made[second]
    (alone,) = scheduled([second], Sizes())  # the other one is nowhere
    assert (alone.reads(), alone.writes()) == ({u}, {v}) and not alone.names

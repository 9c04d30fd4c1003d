"""Reverse mode through loops of any number of rounds."""

import itertools

import numpy as np
import pytest

import calque.numpy as jnp
from calque import lax
from calque.core.config import config
from calque.core.jaxprs import ClosedJaxpr, subjaxprs
from calque.core.primitives import REGISTRY
from calque.native import backend
from calque.transforms.functions.autodiff import grad, jvp, linear_transpose, vjp
from calque.transforms.functions.callbacks import debug_callback
from calque.transforms.functions.loops import fori_loop, scan, while_loop
from calque.transforms.functions.remat import checkpoint
from calque.transforms.functions.shapes import make_jaxpr
from calque.transforms.functions.vmap import vmap
from calque.transforms.jit.decorator import jit
from calque.transforms.primitives import while_reverse
from tests.transforms.programs import check, close, primitives_of, reference_backend, verified  # noqa: F401

pytestmark = pytest.mark.usefixtures("reference_backend")


def grow(x):
    return while_loop(lambda c: c < 30.0, lambda c: (c + 1) * c, x)


@pytest.mark.parametrize("trips", [0, 1, 3, 4, 5, 16, 17, 70])
def test_levels_of_checkpoints(monkeypatch, trips):
    monkeypatch.setattr(while_reverse, "MOST_ROUNDS", 4)
    monkeypatch.setattr(while_reverse, "MOST_SLOTS", 4)
    monkeypatch.setattr(while_reverse, "LEAST_SLOTS", 4)
    monkeypatch.setattr(while_reverse, "ROUNDS", 8)

    def loop(x, w):
        return while_loop(
            lambda c: c[0] < trips, lambda c: (c[0] + 1, jnp.sin(c[1] * w) + 0.1), (0, x)
        )[1]

    def unrolled(x, w):
        for _ in range(trips):
            x = jnp.sin(x * w) + 0.1
        return x + 0 * w

    close(
        grad(loop, argnums=(0, 1))(0.7, 1.3), grad(unrolled, argnums=(0, 1))(0.7, 1.3), 1e-4, 1e-6
    )


@pytest.mark.parametrize("trips", [3, 5, 16, 21])
def test_levels_of_checkpoints_to_third_order(monkeypatch, trips):
    monkeypatch.setattr(while_reverse, "MOST_ROUNDS", 2)
    monkeypatch.setattr(while_reverse, "MOST_SLOTS", 3)
    monkeypatch.setattr(while_reverse, "LEAST_SLOTS", 2)
    monkeypatch.setattr(while_reverse, "ROUNDS", 6)

    def loop(x, w):
        return while_loop(
            lambda c: c[0] < trips, lambda c: (c[0] + 1, jnp.sin(c[1] * w) + 0.1), (0, x)
        )[1]

    def same(x, w):
        return scan(lambda c, _: (jnp.sin(c * w) + 0.1, None), x, length=trips)[0]

    def derivatives(f):
        return (
            grad(grad(f), argnums=(0, 1)),
            lambda x, w: jvp(grad(f, 1), (x, w), (0.3, 0.4))[1],
            grad(grad(grad(f, 1)), argnums=(0, 1)),
            grad(lambda x, w: jvp(grad(f, 1), (x, w), (0.3, 0.4))[1], argnums=(0, 1)),
        )

    with config.override("enable_x64", True):
        for ours, theirs in zip(derivatives(loop), derivatives(same)):
            close(jit(ours)(0.7, 1.3), jit(theirs)(0.7, 1.3), 1e-9, 1e-12)


def test_equations_of_derivatives_of_any_order():
    """Each order costs a small constant factor in equations, as it does for a scan, and none keeps
    more than the budget."""

    def loop(n, x):
        return fori_loop(0, n, lambda i, c: jnp.sin(c) * x, x)

    counts, f = [], loop
    for _ in range(4):
        f = grad(f, 1)
        total, largest, todo = 0, 0, [make_jaxpr(f)(5, 1.1).jaxpr]
        while todo:
            for e in todo.pop().eqns:
                total += 1
                largest = max([largest, *(v.aval.size * v.aval.dtype.itemsize for v in e.outvars)])
                todo += subjaxprs(e.params)
        counts.append(total)
        assert largest <= while_reverse.BUDGET
    assert counts[0] <= 100
    assert all(b <= 4 * a for a, b in itertools.pairwise(counts)), counts


def test_a_loop_of_linear_maps_has_a_transpose():
    def f(x):
        return while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, 2 * c[1]), (0, x))[1]

    close(linear_transpose(f, 1.0)(1.0), (8.0,))
    with pytest.raises(TypeError, match="condition"):
        linear_transpose(lambda x: while_loop(lambda c: c < 3, lambda c: 2 * c, x), 1.0)(1.0)


def test_residuals_of_the_rounds_are_not_kept():
    closed = make_jaxpr(lambda x: vjp(grow, x)[1].fixed and grow(x))(1.5)
    assert all(v.aval.shape == () for e in closed.eqns for v in e.outvars)


def test_a_call_that_reads_tangents_for_nothing():
    """The ranks come of values alone, though the differentiated call takes tangents as well."""
    ranks = checkpoint(lambda v: jnp.argsort(v))

    def f(x):
        return while_loop(
            lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * 0.5 + ranks(s[1]) * x), (0, x)
        )[1]

    check(f, np.array([0.3, -0.4, 0.9]), second=False)


def sines(x, n):
    return fori_loop(0, n, lambda i, c: jnp.sin(c) * 0.9 + 0.1, x)


@pytest.mark.parametrize("kept", [8, 1 << 17])
def test_rounds_that_are_run_are_linear_in_the_trips(monkeypatch, kept):
    """What the gradient computes for each round of the loop, counted: once forward, then to count,
    to keep, to take back."""
    monkeypatch.setattr(while_reverse, "MOST_ROUNDS", kept)
    monkeypatch.setattr(while_reverse, "LEAST_SLOTS", 8)
    calls, meaning = [], REGISTRY["sin"].meaning
    monkeypatch.setattr(
        REGISTRY["sin"], "meaning", lambda *a, **k: calls.append(1) or meaning(*a, **k)
    )

    def count(n):
        calls.clear()
        grad(sines)(0.3, n)
        return len(calls)

    counts = [count(n) for n in (16, 32, 64, 256)]
    per_round = [c / n for c, n in zip(counts, (16, 32, 64, 256))]
    assert max(per_round) <= (4 if kept > 256 else 6)
    assert counts[3] <= 4 * counts[2] + 64


def test_what_is_kept_is_bounded():
    """A tape up to a budget of bytes, which lanes use one after the other."""

    def f(x, n):
        return sines(x, n).sum()

    x, n = np.ones(10, np.float32), np.int32(5)

    def temporaries(g, *args):
        return native(g, *args).memory_analysis().temp_size_in_bytes

    alone = temporaries(grad(f), x, n)
    assert alone <= 2 * while_reverse.BUDGET
    lanes = temporaries(vmap(grad(f)), np.ones((50, 10), np.float32), np.arange(50, dtype=np.int32))
    assert lanes <= 2 * alone + 50 * 10 * 4 * 8
    together = temporaries(vmap(grad(f), (0, None)), np.ones((5000, 10), np.float32), n)
    assert together <= 6 * while_reverse.BUDGET


def native(f, *args):
    closed = make_jaxpr(f)(*args)
    return backend.compile(ClosedJaxpr(closed.jaxpr, closed.consts))


def test_lanes_of_different_lengths_in_reverse():
    xs, ns = np.linspace(-1, 1, 5, dtype=np.float32), np.array([0, 3, 1, 40, 7], np.int32)
    for g in (
        grad(sines),
        grad(grad(sines)),
        lambda x, n: jvp(lambda x: grad(sines)(x, n), (x,), (1.0,))[1],
    ):
        want = np.float32([g(x, n) for x, n in zip(xs, ns)])
        close(vmap(g)(xs, ns), want, 1e-4, 1e-6)
        close(jit(vmap(g))(xs, ns), want, 1e-4, 1e-6)
    close(grad(lambda x: vmap(sines)(x, ns).sum())(xs), vmap(grad(sines))(xs, ns), 1e-5)
    same = vmap(grad(sines), (0, None))(xs, 4)
    close(same, np.float32([grad(sines)(x, 4) for x in xs]), 1e-5)
    close(
        vmap(vmap(grad(sines), (None, 0)), (0, None))(xs, ns),
        np.float32([[grad(sines)(x, n) for n in ns] for x in xs]),
        1e-4,
    )


def test_lanes_of_a_part_of_the_gradient():
    """What nobody needs of a gradient is taken out of it before it is batched."""

    def loop(x, w, n):
        return fori_loop(0, n, lambda i, c: jnp.sin(c) * w, x)

    first = jit(lambda x, n: grad(loop, argnums=(0, 1))(x, 1.3, n)[0])

    def second(x, n):
        return grad(first)(x, n)

    xs = np.linspace(0.1, 1, 4, dtype=np.float32)
    for f in (first, second):
        close(vmap(f, (0, None))(xs, 3), np.float32([f(x, 3) for x in xs]), 1e-4)
        close(
            vmap(f)(xs, np.array([3, 0, 2, 3], np.int32)),
            np.float32([f(x, n) for x, n in zip(xs, (3, 0, 2, 3))]),
            1e-4,
        )


def test_what_never_changes_is_not_kept():
    big = np.ones((200, 200), np.float32)

    def f(x):
        return while_loop(
            lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1], jnp.sin(c[2] * c[1][0, 0])), (0, big, x)
        )[2]

    sizes = [v.aval.size for e in make_jaxpr(grad(f))(0.5).eqns for v in e.outvars]
    assert max(sizes) <= big.size
    assert (
        native(grad(f), np.float32(0.5)).memory_analysis().temp_size_in_bytes < while_reverse.BUDGET
    )
    close(grad(f)(0.5), grad(lambda x: jnp.sin(jnp.sin(jnp.sin(x))))(0.5), 1e-5)


def test_lanes_that_step_together_in_reverse():
    def f(x):
        def step(c):
            return (c[0] + 1, jnp.sin(c[1]) * 0.5 + 0.1 * lax.psum(c[1], "i"))

        return while_loop(lambda c: c[0] < lax.axis_index("i") + 2, step, (0, x))[1]

    def python(xs):
        v = [xs[i] for i in range(3)]
        for k in range(4):
            total = 0.1 * sum(v)
            v = [jnp.sin(a) * 0.5 + total if k < i + 2 else a for i, a in enumerate(v)]
        return sum(v)

    xs = np.array([0.3, -0.5, 0.9], np.float32)

    def whole(xs):
        return vmap(f, axis_name="i")(xs).sum()

    close(whole(xs), python(xs), 1e-5)
    close(grad(whole)(xs), grad(python)(xs), 1e-5)


def test_values_are_shown_once():
    seen = []

    def f(x, n):
        def step(i, c):
            debug_callback(lambda i: seen.append(int(i)), i)
            return jnp.sin(c)

        return fori_loop(0, n, step, x)

    jit(grad(f))(0.5, 3)
    assert seen == [0, 1, 2]


@pytest.mark.parametrize("size, kept", [(1, 1 << 17), (1 << 8, 1 << 16), (1 << 30, 16)])
def test_how_many_carries_are_kept(size, kept):
    """A power of two of them, within the budget, but never fewer than the least."""
    assert while_reverse._most(size, while_reverse.MOST_ROUNDS) == kept
    assert kept == while_reverse.LEAST_SLOTS or kept * size <= while_reverse.BUDGET


def test_levels_reach_every_number_of_rounds():
    carry = make_jaxpr(lambda x: (x + 1,))(np.ones((64, 1024), np.float32))
    parts = while_reverse._Parts(None, carry, carry, carry, (0, 0, 0))
    loop = while_reverse._Loop(parts, carry.in_avals)
    assert loop.reach(loop.levels) >= 1 << while_reverse.ROUNDS > loop.reach(loop.levels - 1)
    for level in range(2, loop.levels + 1):
        blocks = loop.length(level)
        assert blocks <= loop.slots
        assert blocks == loop.slots or blocks * loop.reach(level - 1) >= 1 << while_reverse.ROUNDS


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 8, 9])
def test_blocks_of_rounds(count):
    blocks = int(np.asarray(while_reverse._blocks(np.int32(count), 4)))
    assert blocks == max(-(-count // 4), 1)
    each = [int(while_reverse._rounds_in(np.int32(k), 4, np.int32(count))) for k in range(blocks)]
    assert sum(each) == count and all(0 <= n <= 4 for n in each)

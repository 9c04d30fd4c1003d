"""Loops over what was joined from parts are cut where one part ends."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.native.loops.tree import Acc, For, Store
from calque.native.lower.sizes import Sizes
from calque.native.scalars.expr import Buffer, const, ex, load, select, var, walk
from calque.native.schedule.cuts import cut
from tests.native.programs import check

S = Sizes()
N = S.dim(100)
J = var("j", N)
A, B, Y = Buffer("a", (40,), "f32"), Buffer("b", (60,), "f32"), Buffer("y", (N,), "f32")
IN_A = ex("lt", J, const(40))
BEHIND = ex("sub", J, const(40))


def joined(value=None) -> For:
    parts = load(A, (J,), IN_A), load(B, (BEHIND,), ex("ge", BEHIND, const(0)))
    whole = select(IN_A, *parts)
    return For(J, (Store(Y, (J,), whole if value is None else value(whole)),))


def test_each_part_has_a_loop():
    first, second = cut(joined(), S, 8)
    assert first.extent is const(40) and S.interval(second.extent) == (60, 60)
    (a,), (b,) = first.body, second.body
    assert a.value is load(A, (first.var,)) and b.value is load(B, (second.var,))
    assert first.name != second.name


def test_parts_that_fill_no_vector():
    """They are cut off where others are long, and something is read less often for it."""
    short = ex("lt", J, const(3))
    whole = select(short, load(A, (J,), short), load(B, (ex("sub", J, const(3)),)))
    first, second = cut(For(J, (Store(Y, (J,), whole),)), S, 12)
    assert first.extent is const(3) and S.interval(second.extent) == (97, 97)
    assert len(cut(For(J, (Store(Y, (J,), whole),)), S, 16)) == 1  # little beside it
    padded = select(short, const(0.0, "f32"), load(B, (ex("sub", J, const(3)),)))
    assert len(cut(For(J, (Store(Y, (J,), padded),)), S, 12)) == 1


def test_what_is_not_cut():
    assert len(cut(joined(), S, 41)) == 1  # too short
    heavy = joined(lambda x: ex("sin", ex("sin", ex("sin", ex("sin", x)))))
    assert len(cut(heavy, S, 8)) == 1
    folded = For(J, (), (Acc("s", "sum", select(IN_A, load(A, (J,), IN_A), const(0.0, "f32"))),))
    assert len(cut(folded, S, 8)) == 1


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["float32", "int8", "complex64", "bool"])
def test_arrays_joined(axis, dtype):
    rng = np.random.default_rng(0)
    shapes = [[3, 40, 50] for _ in range(3)]
    for k, n in enumerate((40, 33, 64)):
        shapes[k][axis] = n
    xs = [(rng.normal(size=s) * 30).astype(dtype) for s in shapes]
    check(lambda *xs: jnp.concatenate(xs, axis), *xs, tol=0)
    check(lambda *xs: jnp.concatenate([xs[0], xs[1][::-1], xs[2]], axis), *xs, tol=0)
    check(lambda x: jnp.stack([x, jnp.flip(x, 1), x], axis), xs[0], tol=0)
    check(lambda *xs: jnp.concatenate(xs, axis).T, *xs, tol=0)


def test_rows_of_different_arrays_in_one_kernel():
    x = np.ones((200, 300), np.float32)
    text = check(lambda a, b: jnp.concatenate([a, b], 1), x, x).as_text("loops")
    assert "select" not in text and text.count("@vector") == 2


def test_fewer_turns_decide_what_all_of_them_do_not():
    """A part that is nothing but zeros there, and reads nothing."""
    C, nothing = Buffer("c", (60,), "f32"), const(0.0, "f32")
    padded = select(
        ex("ge", BEHIND, const(0)), load(C, (BEHIND,), ex("ge", BEHIND, const(0))), nothing
    )
    first, second = cut(joined(lambda x: ex("add", x, padded)), S, 8)
    (a,), (b,) = first.body, second.body
    assert C not in a.value.bufs and C in b.value.bufs
    assert not any(e.op in ("select", "ge", "lt") for s in (a, b) for e in walk(s.value, set()))


def test_heavy_parts_that_share_nothing_are_cut():
    """As the gradients of what was split: each part is computed where it is."""

    def heavy(x):
        for _ in range(4):
            x = ex("sin", x)
        return x

    parts = heavy(load(A, (J,), IN_A)), heavy(load(B, (BEHIND,), ex("ge", BEHIND, const(0))))
    both = For(J, (Store(Y, (J,), select(IN_A, *parts)),))
    assert len(cut(both, S, 8)) == 2


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_gradients_of_what_was_split(axis, count):
    x = np.random.default_rng(0).normal(size=(24, 48)).astype(np.float32)
    functions = jnp.sin, jnp.tanh, jnp.square, jnp.cos

    def f(x):
        parts = jnp.split(x, count, axis)
        return sum((g(p) * parts[0]).sum() for g, p in zip(functions, parts))

    check(calque.grad(f), x, tol=1e-5)
    check(lambda x: jnp.pad(x, ((0, 0), (20, 9))) + jnp.pad(x * x, ((0, 0), (9, 20))), x, tol=1e-6)

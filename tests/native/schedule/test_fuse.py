"""Sharing loops never changes the order of a fold."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax, nn
from calque.core.config import config
from calque.machine.code.target import describe
from calque.native.loops.tree import For, own_exprs, statements
from calque.native.plan.steps import Call, walk

RNG = np.random.default_rng(3)


def apart(f, g, x):
    """g(f(x)) in two programs, and in one."""
    (inner, outer, both) = (calque.jit(h) for h in (f, g, lambda x: g(f(x))))
    return np.asarray(outer(inner(x))), np.asarray(both(x))


@pytest.mark.parametrize("rows", [20, 100, 1000])
@pytest.mark.parametrize(
    "fold", [jnp.sum, jnp.cumsum, jnp.prod], ids=["sum", "running sum", "product"]
)
@pytest.mark.parametrize(
    "inner", [lambda x: x.sum(1), lambda x: nn.logsumexp(x, axis=1), lambda x: x.max(1)]
)
def test_a_fold_over_folded_rows_has_the_bits_of_one_over_stored_rows(rows, fold, inner) -> None:
    x = (1.0 + RNG.normal(size=(rows, 40)) / 40).astype(np.float32)

    def scaled(x):
        return inner(x) / 10 if fold is not jnp.prod else 1 + inner(x) / 1000

    two, one = apart(scaled, fold, x)
    np.testing.assert_array_equal(one, two)


def test_folds_beside_folded_rows_keep_their_blocks() -> None:
    """Here the sum reads what the rows read, not what they make."""
    x = RNG.normal(size=(300, 40)).astype(np.float32)
    w = RNG.normal(size=300).astype(np.float32)

    def f(x, w):
        return (x * w[:, None]).sum(1), w.sum(), lax.cumsum(w)

    one = calque.jit(f)(x, w)
    np.testing.assert_array_equal(one[1], calque.jit(jnp.sum)(w))
    np.testing.assert_array_equal(one[2], calque.jit(jnp.cumsum)(w))


def test_sums_that_show_no_order_share_the_loop_of_rows() -> None:
    x = RNG.integers(0, 9, (300, 40)).astype(np.int32)
    e = calque.jit(lambda x: (x.sum(1) * 2).sum(0)).lower(x).compile()
    assert e.as_text("loops").count("for d0") == 1


@pytest.mark.parametrize("rows", [40, 4096])
@pytest.mark.parametrize("fold", [jnp.max, jnp.argmax, jnp.any], ids=["max", "argmax", "any"])
def test_a_fold_without_order_leaves_long_loops_to_threads(rows, fold) -> None:
    """The rows of a product are shared by threads, and what is folded of them is read again; where
    there are few, they are folded in the same loop."""
    x, w = RNG.normal(size=256).astype(np.float32), RNG.normal(size=(rows, 256)).astype(np.float32)
    f = calque.jit(lambda x, w: fold(w @ x))
    text = f.lower(x, w).compile().as_text("steps")
    shared = [part for part in text.split("call")[1:] if "@parallel" in part]
    assert len(shared) == (rows > 1000)
    assert all(part.count("for d0") == 1 and "256" in part for part in shared)
    y = np.asarray(calque.jit(lambda x, w: w @ x)(x, w))
    np.testing.assert_array_equal(f(x, w), np.asarray(fold(y)))


def test_loops_whose_turns_collide_are_shared_with_such_only() -> None:
    from tests.native.programs import compiled

    x, at = RNG.normal(size=500).astype(np.float32), RNG.integers(0, 500, 200)
    u = RNG.normal(size=200).astype(np.float32)
    e = compiled(lambda x, at, u: (x.at[at].add(u), jnp.sin(u) * 2.0), x, at, u)
    loops = [
        s
        for c in walk(e.steps)
        if isinstance(c, Call)
        for s in statements(c.nest)
        if isinstance(s, For)
    ]
    assert [s for s in loops if s.colliding]
    for s in loops:
        heavy = any(x.op == "sin" for t in statements(s.body) for x in own_exprs(t))
        assert not (s.colliding and heavy)


def test_a_sum_in_order_is_not_taken_turn_by_turn_beside_rows_that_are_vectors() -> None:
    """The rows of a product with one column are the lanes of its sums; what is made of each row
    after it has loops of its own."""
    x, v = RNG.normal(size=(128, 64)).astype(np.float32), RNG.normal(size=(64, 1))
    v = v.astype(np.float32)

    def loss(x, v):
        return ((jnp.maximum(x, 0) @ v - 1) ** 2).mean()

    f = calque.jit(calque.value_and_grad(loss, (0, 1)))
    lines = f.lower(x, v).compile().as_text("loops").splitlines()
    sums = [k for k, line in enumerate(lines) if "sequential sum" in line and " * " in line]
    assert sums
    for k in sums:
        depth = len(lines[k]) - len(lines[k].lstrip())
        around = [s for s in lines[:k] if s.startswith(" " * (depth - 4) + "for ")][-1]
        assert "@vector" in around
    h = np.maximum(x, 0).astype(np.float64)
    r = h @ v - 1
    value, (gx, gv) = f(x, v)
    np.testing.assert_allclose(value, (r**2).mean(), rtol=1e-5)
    np.testing.assert_allclose(gx, 2 * r * v.T * (x > 0) / 128, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(gv, h.T @ (2 * r) / 128, rtol=1e-4, atol=1e-5)


def test_sums_of_many_rows_have_a_loop_of_their_own() -> None:
    """What is made of a sum follows it; loops beside it would keep rows from being lanes."""
    x, w = np.ones((100, 40), "f"), np.ones((40, 6), "f")

    def loops(f, x):  # type: ignore[no-untyped-def]
        text = calque.jit(f).lower(x, w).compile().as_text("loops")
        return text.count("kernel k_"), "beside each other" in text or "in squares" in text

    assert loops(lambda x, w: jnp.tanh(x @ w) + 1, x) == (1, True)
    assert loops(lambda x, w: nn.log_softmax(x @ w), x)[1]
    assert loops(lambda x, w: [jnp.maximum(x, 0), jnp.maximum(x, 0) @ w], x)[1]
    if describe().vector_bytes == 64:  # rows enough for shorter vectors
        assert loops(lambda x, w: nn.log_softmax(x @ w), x[:20]) == (1, False)


@pytest.mark.parametrize("columns", [1, 2, 4])
def test_a_sum_in_order_and_one_in_blocks_have_loops_of_their_own(columns: int) -> None:
    """Both have the bits that they have alone, also where another loop could hold them."""
    r = np.random.default_rng(columns)
    x, w = r.normal(size=(100, 20)).astype("f"), r.normal(size=(20, columns)).astype("f")
    f = lambda x, w: [jnp.where(x > 0, x, x * -2), x @ w, x.sum(-1)]  # noqa: E731
    x, w = jnp.asarray(x), jnp.asarray(w)
    with config.override("calque_exact", True):
        together, alone = calque.jit(f, dynamic="never")(x, w), f(x, w)
    for got, want in zip(together, alone, strict=True):
        assert np.asarray(got).tobytes() == np.asarray(want).tobytes()


def test_products_of_complex_numbers_keep_their_order_beside_sums() -> None:
    """Complex numbers are multiplied one after the other, sums are folded in blocks."""
    for n in (4, 10, 17, 40):
        x = (RNG.normal(size=n) + 1j * RNG.normal(size=n)).astype(np.complex64)

        def f(x):
            return jnp.prod(x), jnp.sum(jnp.log(jnp.abs(x)))

        with config.override("calque_exact", True):
            together, alone = calque.jit(f)(x), f(jnp.asarray(x))
        for got, want in zip(together, alone, strict=True):
            assert np.asarray(got).tobytes() == np.asarray(want).tobytes()

"""Generators with a state: their numbers, their transformations, their mistakes."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax, random
from calque.experimental.random import StatefulPRNG, stateful_rng


def test_numbers_are_those_of_the_key_with_the_count():
    rng, key = stateful_rng(7), random.key(7)
    for i in range(3):
        np.testing.assert_array_equal(
            random.key_data(rng.key()), random.key_data(random.fold_in(key, i))
        )
    assert rng._counter[...] == 3 and (rng._base_key == key).all()
    assert rng.key((2, 3)).shape == (2, 3) and rng.key(4).shape == (4,)


def test_distributions():
    rng = stateful_rng(1)
    low, high = np.array([0, 5]), np.array([2, 9])
    for draw in (
        lambda size: rng.uniform(low, high, size),
        lambda size: rng.integers(low, high, size),
        lambda size: rng.normal(low, high, size, dtype="float16"),
    ):
        assert draw(None).shape == (2,) and draw((3, 2)).shape == (3, 2)
    assert rng.normal(low, high, dtype="float16").dtype == np.float16
    values = np.asarray(rng.integers(low, high, (500, 2)))
    assert (values.min(0) == low).all() and (values.max(0) == high - 1).all()
    assert set(np.asarray(rng.integers(3, size=100)).tolist()) == {0, 1, 2}
    assert rng.random().shape == () and rng.random((2,), "float16").dtype == np.float16
    spread = np.asarray(rng.normal(3.0, 2.0, 4000))
    assert abs(spread.mean() - 3) < 0.2 and abs(spread.std() - 2) < 0.2


def test_under_transformations():
    def three(rng):
        return jnp.stack([rng.uniform() for _ in range(3)])

    want = three(stateful_rng(5))
    np.testing.assert_array_equal(calque.jit(three)(stateful_rng(5)), want)
    rng = stateful_rng(5)
    draw = calque.jit(rng.uniform)
    np.testing.assert_array_equal([draw() for _ in range(3)], want)

    def scanned(seed):
        rng = stateful_rng(seed)
        return lax.scan(lambda c, _: (c, rng.uniform()), None, length=3)[1]

    for run in (scanned, calque.jit(scanned)):
        np.testing.assert_array_equal(run(5), want)


def test_one_for_each_row():
    spawned = [rng.uniform() for rng in stateful_rng(9).spawn(4)]
    mapped = calque.vmap(lambda rng, x: x + rng.uniform())(stateful_rng(9).split(4), np.zeros(4))
    np.testing.assert_array_equal(mapped, spawned)
    parts = stateful_rng(9).split((2, 3))
    assert parts._base_key.shape == parts._counter.shape == (2, 3)
    with pytest.raises(ValueError, match="split stateful generator: give it to vmap"):
        parts.key()
    rng = stateful_rng(9)
    with pytest.raises(ValueError, match="addupdate within vmap"):
        calque.vmap(lambda r, x: x + r._counter.addupdate(x), in_axes=(None, 0))(rng, np.arange(2))


def test_lanes_do_not_share_a_generator_from_outside():
    """They would all get the same number."""
    rng, rows = stateful_rng(3), jnp.zeros(4)
    jitted = calque.jit(rng.uniform)
    jitted()
    for draw in (rng.uniform, jitted, calque.jit(lambda: rng.normal())):
        with pytest.raises(ValueError, match="every lane would write to it"):
            calque.vmap(lambda x, draw=draw: x + draw())(rows)
    with pytest.raises(ValueError, match="every lane"):
        calque.vmap(lambda r, x: x + r.uniform(), in_axes=(None, 0))(rng, rows)
    assert rng._counter[...] == 1
    own = calque.vmap(lambda x: x + stateful_rng(3).uniform())(rows)
    np.testing.assert_array_equal(own, np.full(4, stateful_rng(3).uniform()))


def test_seeds():
    assert (stateful_rng()._base_key != stateful_rng()._base_key).all()
    assert stateful_rng(0, impl="rbg").key().dtype.name == "key<rbg>"
    for transform in (calque.jit, calque.grad):
        with pytest.raises(TypeError, match="requires an explicit seed"):
            transform(lambda x: x + stateful_rng().uniform())(1.0)
    with pytest.raises(ValueError, match="typed PRNG key"):
        StatefulPRNG(jnp.zeros(2, "uint32"), calque.new_ref(0))
    with pytest.raises(ValueError, match="scalar integer ref"):
        StatefulPRNG(random.key(0), 0)


@pytest.mark.peer
def test_jax_draws_the_same():
    jax = pytest.importorskip("jax")
    theirs = pytest.importorskip("jax.experimental.random")
    a, b = stateful_rng(11), theirs.stateful_rng(11)
    for draw in (
        lambda r: r.uniform(1.0, 3.0, (4,)),
        lambda r: r.integers(0, 100, (4,)),
        lambda r: r.random(3),
        lambda r: r.spawn(2)[1].uniform(),
    ):
        np.testing.assert_array_equal(draw(a), draw(b))
    np.testing.assert_allclose(a.normal(2, 3, 5), b.normal(2, 3, 5), rtol=1e-5)
    rows = [m.vmap(lambda r: r.uniform())(r.split(3)) for m, r in ((calque, a), (jax, b))]
    np.testing.assert_array_equal(*rows)

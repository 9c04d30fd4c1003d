"""Collectives over two axes are those over the one axis that counts through both."""

import numpy as np
import pytest

import calque
from calque import lax

SIZES = (2, 3)
AXES = ("i", "j")
N = 6
RNG = np.random.default_rng(0)


def over(f, x):
    return calque.vmap(calque.vmap(f, axis_name="j"), axis_name="i")(
        x.reshape(*SIZES, *x.shape[1:])
    )


def one_axis(f, x):
    return calque.vmap(f, axis_name="n")(x)


def values(*shape):
    return RNG.integers(-9, 9, (N, *shape)).astype(np.float32)


@pytest.mark.parametrize(
    "f, shape",
    [
        (lambda v, n: lax.all_gather(v, n), (2,)),
        (lambda v, n: lax.all_gather(v, n, axis=1), (2, 3)),
        (lambda v, n: lax.all_gather(v, n, axis=1, tiled=True), (2, 3)),
        (lambda v, n: lax.psum_scatter(v, n), (N, 2)),
        (lambda v, n: lax.psum_scatter(v, n, scatter_dimension=1, tiled=True), (2, 2 * N)),
        (lambda v, n: lax.all_to_all(v, n, 0, 0), (N,)),
        (lambda v, n: lax.all_to_all(v, n, 0, 1), (N, 2)),
        (lambda v, n: lax.all_to_all(v, n, 1, 0, tiled=True), (2, 2 * N)),
        (lambda v, n: lax.ppermute(v, n, [(0, 5), (5, 1), (2, 2), (4, 3)]), (2,)),
        (lambda v, n: lax.axis_index(n) * v, (1,)),
        (lambda v, n: lax.all_gather(v, n, axis_index_groups=[[0, 4, 2], [5, 3, 1]]), (2,)),
        (lambda v, n: lax.psum(v, n, axis_index_groups=[[0, 4, 2], [5, 3, 1]]), (2,)),
        (
            lambda v, n: lax.psum_scatter(
                v, n, axis_index_groups=[[0, 4, 2], [5, 3, 1]], scatter_dimension=1, tiled=True
            ),
            (2, 6),
        ),
    ],
)
def test_as_over_one_axis(f, shape):
    x = values(*shape)
    want = np.asarray(one_axis(lambda v: f(v, "n"), x))
    got = np.asarray(over(lambda v: f(v, AXES), x))
    np.testing.assert_array_equal(got.reshape(want.shape), want)


def test_gradients_as_over_one_axis():
    x = values(N)

    def f(name):
        return lambda v: lax.psum_scatter(lax.all_to_all(v * v, name, 0, 0), name) * v.sum()

    def loss(run, name):
        return calque.grad(lambda x: (run(f(name), x) ** 2).sum())(x)

    np.testing.assert_array_equal(loss(over, AXES), loss(one_axis, "n"))


@pytest.mark.parametrize(
    "f, text",
    [
        (lambda v: lax.psum_scatter(v, AXES), r"dimension 0 of size 4 must match the size 6"),
        (lambda v: lax.all_to_all(v, AXES, 0, 0, tiled=True), r"must be divisible by the size 6"),
        (lambda v: lax.ppermute(v, AXES, [(0, 1), (2, 1)]), r"unique and lie in range\(6\)"),
        (lambda v: lax.ppermute(v, AXES, [(0, 6)]), r"unique and lie in range\(6\)"),
        (
            lambda v: lax.psum_scatter(v, AXES, axis_index_groups=[[0, 1, 2], [3, 4, 5]]),
            r"of size 4 must match the size 3 of the groups",
        ),
    ],
)
def test_refusals(f, text):
    with pytest.raises(ValueError, match=text):
        over(f, values(4))


def test_groups_of_positions_counted_through_two_axes():
    x = np.arange(12.0).reshape(2, 2, 3)
    groups = [[0, 3], [2, 1]]

    def f(v):
        return (
            lax.all_gather(v, ("i", "j"), axis_index_groups=groups),
            lax.psum(v, ("i", "j"), axis_index_groups=groups),
            lax.psum_scatter(v[:2], ("i", "j"), axis_index_groups=groups),
        )

    everyone, total, part = calque.vmap(calque.vmap(f, axis_name="j"), axis_name="i")(x)
    rows = x.reshape(4, 3)
    mates = {0: (0, 3), 3: (0, 3), 2: (2, 1), 1: (2, 1)}
    for i in range(4):
        own = rows[list(mates[i])]
        np.testing.assert_array_equal(everyone.reshape(4, 2, 3)[i], own)
        np.testing.assert_array_equal(total.reshape(4, 3)[i], own.sum(0))
        assert part.reshape(4)[i] == own.sum(0)[mates[i].index(i)]

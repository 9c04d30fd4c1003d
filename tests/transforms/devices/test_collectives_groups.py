"""Collectives within groups: what each group would compute as an axis of its own."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from tests.transforms.programs import check

X = np.arange(24, dtype=np.float32).reshape(4, 6) + 1
NEIGHBOURS, CROSSED, UNEVEN = [[0, 1], [2, 3]], [[0, 2], [3, 1]], [[2], [1, 3, 0]]


def over(f, x=X):
    return calque.vmap(f, axis_name="i")(x)


def one_by_one(f, groups, x=X):
    """`f(value, groups)` without groups, over each group alone."""
    out = {}
    for g in groups:
        rows = calque.vmap(lambda v: f(v, None), axis_name="i")(x[list(g)])
        out.update(zip(g, rows))
    return np.stack([out[i] for i in range(len(x))])


REDUCTIONS = {
    "psum": lambda v, g: lax.psum(v, "i", axis_index_groups=g),
    "pmean": lambda v, g: lax.pmean(v, "i", axis_index_groups=g),
    "pmax": lambda v, g: lax.pmax(v, "i", axis_index_groups=g),
    "pmin": lambda v, g: lax.pmin(v, "i", axis_index_groups=g),
    "constant": lambda v, g: v / lax.psum(1, "i", axis_index_groups=g),
    "the same for all": lambda v, g: v + lax.psum(jnp.float32(3), "i", axis_index_groups=g),
}
MOVEMENTS = {
    "all_gather": lambda v, g: lax.all_gather(v, "i", axis_index_groups=g),
    "all_gather tiled": lambda v, g: lax.all_gather(
        v, "i", axis=-1, axis_index_groups=g, tiled=True
    ),
    "all_to_all": lambda v, g: lax.all_to_all(v.reshape(2, 3), "i", 0, 1, axis_index_groups=g),
    "all_to_all tiled": lambda v, g: lax.all_to_all(v, "i", 0, 0, axis_index_groups=g, tiled=True),
    "pswapaxes": lambda v, g: lax.pswapaxes(v.reshape(3, 2), "i", 1, axis_index_groups=g),
    "psum_scatter": lambda v, g: lax.psum_scatter(v.reshape(2, 3), "i", axis_index_groups=g),
    "psum_scatter tiled": lambda v, g: lax.psum_scatter(v, "i", axis_index_groups=g, tiled=True),
}


@pytest.mark.parametrize("groups", [NEIGHBOURS, CROSSED, UNEVEN])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name, groups):
    f = REDUCTIONS[name]
    np.testing.assert_allclose(over(lambda v: f(v, groups)), one_by_one(f, groups))


@pytest.mark.parametrize("groups", [NEIGHBOURS, CROSSED])
@pytest.mark.parametrize("name", MOVEMENTS)
def test_movements(name, groups):
    f = MOVEMENTS[name]
    np.testing.assert_array_equal(over(lambda v: f(v, groups)), one_by_one(f, groups))


@pytest.mark.parametrize("name", [*REDUCTIONS, *MOVEMENTS])
def test_derivatives(name):
    f = {**REDUCTIONS, **MOVEMENTS}[name]
    check(
        lambda x: calque.vmap(lambda v: f(v * v, CROSSED), axis_name="i")(x),
        X.astype(np.float64) / 7,
    )


def test_inside_programs_and_other_maps():
    def f(v):
        return lax.psum(v, "i", axis_index_groups=CROSSED)

    want = np.stack([X[0] + X[2], X[1] + X[3], X[0] + X[2], X[1] + X[3]])
    np.testing.assert_array_equal(calque.jit(over, static_argnums=0)(f), want)
    np.testing.assert_array_equal(over(calque.jit(f)), want)
    twice = calque.vmap(lambda x: over(f, x), in_axes=2, out_axes=2)(np.stack([X, 2 * X], axis=2))
    np.testing.assert_array_equal(twice, np.stack([want, 2 * want], axis=2))
    text = str(
        calque.make_jaxpr(MOVEMENTS["all_gather"], axis_env=[("i", 4)], static_argnums=1)(
            X[0], ((0, 1), (2, 3))
        )
    )
    assert "axis_index_groups=((0, 1), (2, 3))" in text and "axis_size=2" in text


@pytest.mark.parametrize(
    "groups, error, text",
    [
        (
            [[0, 1]],
            ValueError,
            r"psum: .* must cover all indices exactly once: the positions 0 to 3 of the axis 'i'",
        ),
        ([[0, 1], [1, 2]], ValueError, "exactly once"),
        ([[0, 1, 2, 3], []], ValueError, "exactly once"),
        ([0, 1, 2, 3], TypeError, "list of lists"),
    ],
)
def test_bad_groups(groups, error, text):
    with pytest.raises(error, match=text):
        over(lambda v: lax.psum(v, "i", axis_index_groups=groups))


def test_refusals():
    with pytest.raises(
        ValueError,
        match=r"all_gather: axis_index_groups must all be of one size, got sizes \[1, 3\]",
    ):
        over(lambda v: lax.all_gather(v, "i", axis_index_groups=UNEVEN))
    with pytest.raises(ValueError, match="just named axes"):
        over(lambda v: lax.psum(v, ("i", 0), axis_index_groups=NEIGHBOURS))
    with pytest.raises(NotImplementedError, match="one axis"):
        calque.vmap(
            lambda x: over(lambda v: lax.pmax(v, ("i", "j"), axis_index_groups=[[0], [1]]), x),
            axis_name="j",
        )(np.ones((1, 2)))

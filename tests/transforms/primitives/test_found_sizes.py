"""Bodies of loops and branches that find sizes."""

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import lax
from calque.core.jaxprs import subjaxprs
from calque.errors import DataDependentSizeError
from calque.transforms.primitives.flow import staged
from calque.transforms.primitives.found_sizes import found_in, recomputed, refuse_escaping

X = np.arange(6, dtype=np.float32) - 2.5


def body(f):
    x = jnp.asarray(X)
    return staged(f, (x,), [jax.typeof(x)], "scan")


def test_bodies_without_found_sizes_stay_as_they_are():
    part = body(jnp.sin)
    assert recomputed(part, jnp.sin, "scan") is part


def test_bodies_with_found_sizes_are_computed_again():
    def f(x):
        return x[x < 0].sum()

    part = recomputed(body(f), f, "scan")
    assert [e.primitive.name for e in part.closed.eqns] == ["remat2"]
    assert len(part.closed.in_avals) == len(body(f).closed.in_avals)

    def loss(x):
        return lax.scan(lambda c, t: (c + (x[x < t] ** 2).sum(), None), 0.0, jnp.arange(2.0))[0]

    want = 2 * X * ((X < 0).astype(int) + (X < 1))
    np.testing.assert_allclose(jax.jit(jax.grad(loss))(X), want)


def test_sizes_are_found_at_any_depth():
    def f(x):
        looped = lax.fori_loop(0, 2, lambda i, c: c + x[x < i].sum(), 0.0)
        return looped + x[x > 1].sum()

    j = jax.make_jaxpr(f)(X).jaxpr
    inner = [found_in(s) for e in j.eqns for s in subjaxprs(e.params)]
    assert found_in(jax.make_jaxpr(jnp.sin)(X).jaxpr) == set()
    assert len(found_in(j)) == 2 and any(s and s < found_in(j) for s in inner)


def test_a_size_that_leaves_its_body_is_refused_by_name():
    def part(x):
        return x[x < 0]

    j = jax.make_jaxpr(part)(X).jaxpr
    with pytest.raises(DataDependentSizeError, match=r"scan: the function part .*:\d+"):
        refuse_escaping(j, part, "scan")
    refuse_escaping(jax.make_jaxpr(lambda x: part(x).sum())(X).jaxpr, part, "scan")


def total(x):
    return (x[x < 0] ** 2).sum()


SLOPE = np.where(X < 0, 2 * X, 0)


def test_gradients_of_loops():
    def f(x):
        return lax.scan(lambda c, t: (c + (x[x < t] ** 2).sum(), None), 0.0, jnp.arange(2.0))[0]

    np.testing.assert_allclose(
        jax.jit(jax.grad(f))(X), np.where(X < 0, 2 * X, 0) + np.where(X < 1, 2 * X, 0), rtol=1e-6
    )

    def fixed(x):
        return lax.fori_loop(0, 3, lambda i, c: c + total(x), 0.0)

    np.testing.assert_allclose(jax.jit(jax.grad(fixed))(X), 3 * SLOPE, rtol=1e-6)

    def free(x, n):
        return lax.fori_loop(0, n, lambda i, c: c + total(x), 0.0)

    np.testing.assert_allclose(jax.jit(jax.grad(free))(X, 2), 2 * SLOPE, rtol=1e-6)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: lax.cond(x.sum() > 0, lambda: x[x < 0], lambda: x[x < 0]),
        lambda x: lax.scan(lambda c, t: (c, x[x < t]), 0.0, jnp.arange(3.0)),
        lambda x: lax.fori_loop(0, 3, lambda i, c: c[c < i], x),
        lambda x: lax.while_loop(lambda c: True, lambda c: c[c < 0], x),
    ],
    ids=["cond", "scan", "fori", "while"],
)
def test_sizes_of_a_round_do_not_escape(f):
    with pytest.raises(jax.errors.DataDependentSizeError, match="same size in every round"):
        jax.jit(f)(X)


BODIES = {
    "slice": lambda c, row: row[: (row != 0).sum()].sum() * c,
    "slice alone": lambda c, row: row[: (row != 0).sum()].sum(),
    "ends": lambda c, row: jnp.trim_zeros(row).sum(),
    "ones": lambda c, row: (c * jnp.ones((row != 0).sum())).sum(),
    "repeat": lambda c, row: (jnp.repeat(row, (row != 0).astype(int)) * c).sum(),
    "joined": lambda c, row: jnp.concatenate([jnp.full((row != 0).sum(), c), row]).sum(),
    "update": lambda c, row: row.at[: (row != 0).sum()].set(c).sum(),
}
ROWS = np.array([[0, 2, 1], [1, 0, 3], [0, 0, 0], [3, 4, 5]], np.float32)


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_slopes_whose_types_alone_speak_of_a_size(body):
    """The linear program may need a size of which no value is kept."""

    def scanned(rows):
        return lax.scan(lambda c, row: (c + 0.1 * body(c, row), None), jnp.float32(1), rows)[0]

    def by_row(rows):
        c = jnp.float32(1)
        for row in rows:
            c = c + 0.1 * body(c, row)
        return c

    def branched(rows):
        return lax.cond(rows[0, 1] > 0, lambda: body(rows[0, 1], rows[0]), lambda: rows[0, 0])

    checkpointed = jax.checkpoint(lambda rows: body(rows[0, 1], rows[0]))
    plain = jax.grad(lambda rows: body(rows[0, 1], rows[0]))(ROWS)
    cases = [(scanned, jax.grad(by_row)(ROWS)), (branched, plain), (checkpointed, plain)]
    for f, want in cases:
        for g in (jax.grad(f), jax.jit(jax.grad(f)), jax.grad(jax.jit(f))):
            np.testing.assert_allclose(g(ROWS), want, rtol=1e-5)
        along = jax.jvp(f, (ROWS,), (np.ones_like(ROWS),))[1]
        np.testing.assert_allclose(along, np.sum(want), rtol=1e-5)

"""vmap of choices and loops that differ from lane to lane: each lane does its own work."""

import subprocess
import sys

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import custom_batching, lax
from calque.core.jaxprs import subjaxprs
from calque.transforms.engines.axes import Axis
from calque.transforms.functions.callbacks import debug_callback, io_callback, pure_callback
from calque.transforms.functions.shapes import make_jaxpr
from calque.transforms.primitives import lanes
from tests.transforms.programs import check, close, primitives_of, reference_backend, verified  # noqa: F401

pytestmark = pytest.mark.usefixtures("reference_backend")
X = np.array([0.4, -0.3, 0.8, -0.1])


def dear(x):
    return lax.fori_loop(0, 200, lambda i, c: jnp.sin(c) * 0.9 + x, x)


def choose(x):
    return lax.cond(x > 0, dear, lambda x: 2 * x, x)


def grow(x):
    return lax.while_loop(lambda c: c < 3, lambda c: c * 1.5 + 0.1, abs(x) + 0.1)


def inner_primitives(closed):
    """The primitives of a program at any depth."""
    found, todo = set(), [closed.jaxpr]
    while todo:
        for e in todo.pop().eqns:
            found.add(e.primitive.name)
            todo += subjaxprs(e.params)
    return found


def test_the_program_of_one_lane_is_kept():
    closed = verified(calque.vmap(choose), X)
    (loop,) = [e for e in closed.eqns if e.primitive.name == "scan"]
    assert loop.params["num_carry"] == 0 and loop.params["length"] == 4
    assert [e.primitive.name for e in loop.params["jaxpr"].eqns] == ["cond"]
    (loop,) = [e for e in verified(calque.vmap(grow), X).eqns if e.primitive.name == "scan"]
    assert [e.primitive.name for e in loop.params["jaxpr"].eqns] == ["while"]


def test_cheap_branches_are_selected_from():
    f = calque.vmap(lambda x: lax.cond(x > 0, lambda x: jnp.sin(x), lambda x: 2 * x, x))
    assert primitives_of(verified(f, X))[-1] == "select_n"


def test_operands_that_are_not_mapped_are_not_repeated():
    w = np.ones((30, 30), np.float32)

    def f(p, w):
        return lax.cond(
            p, lambda w: lax.fori_loop(0, 9, lambda i, c: w @ c, w[0]), lambda w: w[1], w
        )

    closed = make_jaxpr(calque.vmap(f, (0, None)))(np.array([True, False]), w)
    assert max(v.aval.size for e in closed.eqns for v in e.outvars) == 60


@pytest.mark.parametrize("f", [choose, grow])
def test_every_transformation(f):
    check(f, 0.4, batched=False)
    check(calque.vmap(f), X)
    close(calque.vmap(f)(X.astype("f")), np.float32([f(x) for x in X.astype("f")]), 1e-5)
    close(calque.vmap(calque.grad(f))(X), np.float32([calque.grad(f)(x) for x in X]), 1e-4)
    close(
        calque.jit(calque.vmap(calque.vmap(f)))(X.reshape(2, 2)),
        calque.vmap(f)(X).reshape(2, 2),
        1e-5,
    )
    close(calque.vmap(f, axis_size=3, in_axes=None)(0.4), np.repeat(np.float32(f(0.4)), 3), 1e-5)
    twice = calque.vmap(calque.grad(calque.grad(f)))(X)
    close(twice, np.float32([calque.grad(calque.grad(f))(x) for x in X]), 1e-4, 1e-5)


def test_lanes_of_lanes():
    def f(p, x):
        return lax.cond(p > 0, dear, lambda x: 2 * x, x)

    p, x = (
        np.array([1.0, -1.0, 2.0], np.float32),
        np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3),
    )
    want = [[float(f(a, b)) for a, b in zip(p, row)] for row in x]
    close(calque.vmap(calque.vmap(f), (None, 0))(p, x), np.float32(want), 1e-5)
    want = [[float(f(a, b)) for b in x[:, 0]] for a in p]
    close(calque.vmap(calque.vmap(f, (None, 0)), (0, None))(p, x[:, 0]), np.float32(want), 1e-5)


def test_no_lanes():
    assert calque.vmap(choose)(np.zeros((0,), np.float32)).shape == (0,)
    assert calque.vmap(grow)(np.zeros((0,), np.float32)).shape == (0,)


def test_only_what_a_lane_needs_is_run():
    seen = []

    def loud(x):
        debug_callback(lambda v: seen.append(round(float(v), 2)), x)
        return dear(x)

    f = calque.vmap(lambda x: lax.cond(x > 0, loud, lambda x: 2 * x, x))
    f(X)
    assert seen == [0.4, 0.8]
    calque.jit(f)(X)
    assert seen == [0.4, 0.8] * 2
    seen.clear()

    def step(c):
        debug_callback(lambda v: seen.append(round(float(v), 2)), c)
        return c + 1

    calque.vmap(lambda x: lax.while_loop(lambda c: c < 2, step, x))(
        np.array([0.5, 3.0, 1.5], np.float32)
    )
    assert seen == [0.5, 1.5, 1.5]


def test_lanes_that_speak_to_each_other_step_together():
    def f(x):
        def step(c):
            return (c[0] + lax.psum(c[0], "i"), c[1] + 1)

        return lax.while_loop(lambda c: (c[0] < 50) & (c[1] < 20), step, (x, 0))

    total, rounds = calque.vmap(f, axis_name="i")(np.array([1.0, 2.0, 60.0], np.float32))
    v, n = np.array([1.0, 2.0, 60.0]), np.zeros(3, int)
    while (go := v < 50).any():
        v, n = np.where(go, v + v.sum(), v), n + go
    close(total, v.astype("f"), 1e-6)
    np.testing.assert_array_equal(np.asarray(rounds), n)
    mean = calque.vmap(
        lambda x: lax.cond(x > 0, lambda: lax.pmean(x, "i") + dear(x) * 0, lambda: x), axis_name="i"
    )(X)
    close(mean, np.where(X > 0, X.mean(), X).astype("f"), 1e-6)


def test_rules_of_batches_are_still_asked():
    asked = []

    @custom_batching.custom_vmap
    def scaled(x):
        return dear(x)

    @scaled.def_vmap
    def rule(size, batched, x):
        asked.append(size)
        return calque.vmap(dear)(x), True

    calque.vmap(lambda x: lax.cond(x > 0, scaled, lambda x: x, x))(X)
    assert asked == [4]


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda x: pure_callback(np.sin, calque.ShapeDtypeStruct((), np.float32), x),
        NotImplementedError, "vmap_method"),
        (lambda x: io_callback(np.sin, calque.ShapeDtypeStruct((), np.float32), x, ordered=True),
        ValueError, "ordered IO"),
    ],
)  # fmt: skip
def test_what_cannot_be_batched_is_refused(call, error, text):
    x = X.astype("f")
    with pytest.raises(error, match=text):
        calque.vmap(lambda x: lax.cond(x > 0, lambda x: call(x) + dear(x), lambda x: x, x))(x)
    with pytest.raises(error, match=text):
        calque.vmap(lambda x: lax.while_loop(lambda c: c < 1, lambda c: call(c) + 1, x))(x)


def test_the_same_program_for_the_same_equation():
    first, second = (calque.make_jaxpr(calque.vmap(choose))(X) for _ in range(2))
    assert inner_primitives(first) == inner_primitives(second) >= {"scan", "cond"}
    branches = make_jaxpr(choose)(0.5).eqns[-1].params["branches"]
    assert not lanes.cheap(branches) and not lanes.together(Axis("i", 4), branches)


_ALONE = """
import numpy as np
import calque
f = lambda x: calque.pure_callback(np.sin, calque.ShapeDtypeStruct((), np.float32), x,
                                   vmap_method="sequential")
assert calque.vmap(f)(np.zeros(3, np.float32)).tolist() == [0, 0, 0]
"""


def test_lanes_bring_the_loop_that_they_become():
    subprocess.run([sys.executable, "-c", _ALONE], check=True)

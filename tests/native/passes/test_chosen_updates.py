"""Updates that a choice takes or leaves: nothing of the size of the array is chosen any more, and
every element is what it was."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import calque as cq
import calque.numpy as jnp
from calque import lax
from calque.native.passes import pipeline
from calque.native.passes.chosen_updates import chosen_updates
from tests.native.passes.shared import outputs
from tests.native.programs import check, normal, traced

ROWS, WIDTH = 40, 6
X = normal(ROWS, WIDTH)
LANES = normal(3, ROWS, WIDTH, seed=1)
YES = np.array([True, False, True])
PLACES = np.array([3, 3, 39], np.int32)
MODES = ("drop", "clip", "promise_in_bounds")


def chosen_sizes(f: Callable[..., Any], *args: Any) -> list[Any]:
    """The sizes of the floats that are chosen once all passes have run."""
    eqns = pipeline.run(traced(f, *args)).eqns
    outs = [e.outvars[0].aval for e in eqns if e.primitive.name == "select_n"]
    return [a.size for a in outs if a.dtype == np.float32]


def row(x: Any, i: Any) -> Any:
    return lax.dynamic_update_slice(x, x[:1] * 2, (i, 0))


def twice(x: Any, p: Any, i: Any) -> Any:
    y = jnp.where(p, row(x, i), x)
    return jnp.where(p[3, 2], row(y, i + 1), y)


SLICES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "taken": (lambda x, p, i: jnp.where(p, row(x, i), x), (X, True, 7)),
    "left": (lambda x, p, i: jnp.where(p, row(x, i), x), (X, False, 7)),
    "the other way round": (lambda x, p, i: jnp.where(p, x, row(x, i)), (X, False, 7)),
    "moved inside": (lambda x, p, i: jnp.where(p, row(x, i), x), (X, True, 4000)),
    "element by element": (lambda x, p, i: jnp.where(p, row(x, i), x), (X, X > 0, 39)),
    "by rows": (lambda x, p, i: jnp.where(p[:, None], row(x, i), x), (X, X[:, 0] > 0, 5)),
    "spread along": (lambda x, p, i: jnp.where(p, row(x, i), x), (X, X[:1] > 0, 5)),
    "twice": (twice, (X, X > 0, 7)),
}


@pytest.mark.parametrize("name", SLICES)
def test_slices(name: str) -> None:
    f, args = SLICES[name]
    args = tuple(np.asarray(a) for a in args)
    closed = traced(f, *args)
    check(f, *args, tol=0)
    assert set(chosen_sizes(f, *args)) == {WIDTH}
    for got, want in zip(outputs(pipeline.run(closed), *args), outputs(closed, *args)):
        np.testing.assert_array_equal(got, want)


def in_lanes(lane: Callable[..., Any]) -> Callable[..., Any]:
    """A choice for each lane between an array and what an update makes of it."""

    def f(x: Any, p: Any, *more: Any) -> Any:
        return cq.vmap(lambda x, p, *more: jnp.where(p, lane(x, *more), x))(x, p, *more)

    return f


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["set", "add", "multiply", "min", "max", "apply"])
def test_lanes_of_scatters(kind: str, mode: str) -> None:
    """Also where several updates go to one place, and where some go nowhere."""

    def lane(x: Any, i: Any) -> Any:
        at = x.at[jnp.stack([i, i * 0, i, i + 1]), 1]
        if kind == "apply":
            return at.apply(jnp.sin)
        return getattr(at, kind)(jnp.arange(4.0) - 1.5, mode=mode)

    f = in_lanes(lane)
    check(f, LANES, YES, PLACES, tol=1e-6)
    assert all(n < LANES.size for n in chosen_sizes(f, LANES, YES, PLACES)) or (
        kind != "set" and mode == "clip"
    )


@pytest.mark.parametrize("mode", MODES)
def test_choices_that_are_not_for_lanes(mode: str) -> None:
    """Every place that is written is looked up in the choice."""

    def f(x: Any, p: Any, i: Any) -> Any:
        return jnp.where(p, x.at[i].set(x[:4] * 2 + jnp.arange(4.0)[:, None], mode=mode), x)

    for i in ([1, 2, 3, 39], [5, 5, 5, 5], [39, 40, 77, 0]):
        args = (X, X > 0, np.array(i, np.int32))
        check(f, *args, tol=0)
        assert max(chosen_sizes(f, *args)) == 4 * WIDTH


def test_positions_without_a_sign() -> None:
    """There is no number that is outside for sure."""
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    f = in_lanes(lambda x, i: lax.scatter(x, i[None], jnp.float32(9), numbers, mode="drop"))
    args = (normal(2, 255), YES[:2], np.array([254, 3], np.uint8))
    check(f, *args, tol=0)
    assert max(chosen_sizes(f, *args)) == 2


KEPT: dict[str, Callable[..., Any]] = {
    "the update is read": lambda x, p, i: [jnp.where(p, row(x, i), x), row(x, i)],
    "another array": lambda x, p, i: jnp.where(p, row(x, i), x + 1),
    "a sum element by element": lambda x, p, i: jnp.where(x > 0, x.at[i].add(1.0), x),
    "most of it is written": lambda x, p, i: jnp.where(
        p, lax.dynamic_update_slice(x, x[:30] * 2, (i, 0)), x
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_choices_that_stay(name: str) -> None:
    args = (X, np.asarray(True), np.asarray(3, np.int32))
    check(KEPT[name], *args, tol=0)
    assert ROWS * WIDTH in chosen_sizes(KEPT[name], *args)


def test_programs_without_such_a_choice_are_handed_back() -> None:
    for f in (lambda x: jnp.where(x > 0, x, 0.0), lambda x: row(x, 3), jnp.sin):
        jaxpr = traced(f, X).jaxpr
        assert chosen_updates(jaxpr) is jaxpr


def test_lanes_that_end_one_by_one() -> None:
    """Each lane fills its own row up to its own end, by either kind of update."""

    def filled(n: Any, x: Any) -> Any:
        def body(c: Any) -> Any:
            i, x = c
            x = x.at[i].set(jnp.float32(1) + i)
            return i + 1, lax.dynamic_update_index_in_dim(x, x[i] * 2, i + 100, 0)

        return lax.while_loop(lambda c: c[0] < n, body, (0, x))[1]

    ends = np.array([3, 90, 41], np.int32)
    got = cq.jit(cq.vmap(filled))(ends, np.zeros((3, 200), np.float32))
    steps = np.arange(100)
    want = np.where(steps < ends[:, None], steps + 1, 0)
    np.testing.assert_array_equal(got, np.concatenate([want, 2 * want], axis=1))

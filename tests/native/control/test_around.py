"""Rounds that write the same box of a carry: what lies around it stands in both of its buffers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from tests.native.programs import compiled, normal


def inner(u: Any) -> Any:
    return 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])


def sweep(u: Any) -> Any:
    return u.at[1:-1, 1:-1].set(inner(u))


def crossed(i: Any, c: Any) -> Any:
    """What lies around each box comes from the other carry."""
    return c[1].at[1:-1, 1:-1].set(inner(c[0])), c[0].at[1:-1, 1:-1].set(inner(c[1]))


def moving(i: Any, u: Any) -> Any:
    return lax.dynamic_update_slice(u, 2 * u[1:3, 1:4], (i % 3, i % 2))


# n rounds over x
PROGRAMS: dict[str, Callable[[int, Any], Any]] = {
    "counted": lambda n, x: lax.fori_loop(0, n, lambda i, u: sweep(u), x),
    "from what is computed": lambda n, x: lax.fori_loop(0, n, lambda i, u: sweep(u), jnp.tanh(x)),
    "while": lambda n, x: lax.while_loop(
        lambda c: c[0] < n, lambda c: (c[0] + 1, sweep(c[1])), (0, x)
    )[1],
    "read by what is stacked": lambda n, x: lax.scan(
        lambda u, _: ((v := sweep(u)), (v.sum(), u.max(), v[0], v[1])), x, None, length=n
    ),
    "two carries": lambda n, x: lax.fori_loop(
        0, n, lambda i, c: (sweep(c[0]), sweep(c[1]) * 2), (x, 2 * x)
    ),
    "crossed": lambda n, x: lax.fori_loop(0, n, crossed, (x, 2 * x)),
    "two boxes": lambda n, x: lax.fori_loop(
        0, n, lambda i, u: sweep(u).at[0].set(u[-1]).at[:, 0].set(u[:, 1]), x
    ),
    "a box that moves": lambda n, x: lax.fori_loop(0, n, moving, x),
    "a box moved inside": lambda n, x: lax.fori_loop(
        0, n, lambda i, u: lax.dynamic_update_slice(u, 2 * u[0:2, 1:4], (100, 100)), x
    ),
    "in loops": lambda n, x: lax.fori_loop(
        0, 3, lambda j, u: lax.fori_loop(0, n, lambda i, u: sweep(u), u) + 1, x
    ),
    "all of it": lambda n, x: lax.fori_loop(
        0, n, lambda i, u: lax.dynamic_update_slice(u, u[::-1] * 2, (0, 0)), x
    ),
    "lanes": lambda n, x: calque.vmap(lambda s: lax.fori_loop(0, n, lambda i, u: sweep(u), s * x))(
        jnp.arange(3.0)
    ),
    "gradients": lambda n, x: calque.grad(
        lambda x: (lax.fori_loop(0, n, lambda i, u: sweep(u), x) ** 2).sum()
    )(x),
}


@pytest.mark.parametrize("n", [1, 3, 4, 5, 6, 9])
@pytest.mark.parametrize("name", PROGRAMS)
def test_rounds_give_what_single_steps_give(name: str, n: int) -> None:
    f, x = PROGRAMS[name], normal(11, 14)
    free = calque.jit(lambda x: f(n, x), dynamic={0: (0, 1)})
    got = [calque.jit(lambda x: f(n, x), dynamic="never")(x), free(x)]
    with calque.disable_jit():
        wanted = f(n, jnp.asarray(x))
    for g in got:
        calque.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4), g, wanted
        )
    again = normal(20, 14)
    with calque.disable_jit():
        wanted = f(n, jnp.asarray(again))
    calque.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4), free(again), wanted
    )


def round_of(f: Callable[[Any], Any], x: Any) -> str:
    """The text of a round."""
    text: str = compiled(f, x).as_text("steps")
    return text.partition("repeat")[2].partition("swap")[0]


@pytest.mark.parametrize("name", ["counted", "while", "from what is computed"])
def test_a_round_writes_its_box_alone(name: str) -> None:
    f = PROGRAMS[name]
    assert round_of(lambda x: f(10, x), normal(64, 64)).count("for d") == 2


@pytest.mark.parametrize("name", ["crossed", "two boxes"])
def test_what_changes_around_a_box_is_written(name: str) -> None:
    f = PROGRAMS[name]
    assert round_of(lambda x: f(10, x), normal(64, 64)).count("for d") > 4


@pytest.mark.parametrize("n", [2, 100])
def test_what_lies_around_is_copied_before_the_first_round(n: int) -> None:
    """And not what the round writes: arrays may be large, and rounds few."""
    f = PROGRAMS["counted"]
    text = compiled(lambda x: f(n, x), normal(64, 64)).as_text("steps")
    before = text.partition("repeat")[0]
    assert before.count("copy") == 1
    assert before.count("for d0") == 4  # two rows, two columns

"""Small branches as choices: when, and that each index chooses its own."""

from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.native.lower import branches
from tests.native.lower.shared import Elements, check
from tests.native.programs import normal, traced

X = normal(4)


def switched(x: Any, i: Any) -> Any:
    return lax.switch(i, [lambda x: x + 1, lambda x: x * 2, lambda x: -x], x)


@pytest.mark.parametrize("index", [-3, 0, 1, 2, 9])
def test_every_index(index: int) -> None:
    e = check(switched, X, np.int32(index))
    assert all(n.op != "cond" for n in e.graph.nodes)


@pytest.mark.parametrize("flag", [False, True])
def test_a_flag(flag: bool) -> None:
    """Several results; what both sides give alike is no choice."""

    def f(x: Any, p: Any) -> Any:
        return lax.cond(p, lambda x: (x + 1, x, x), lambda x: (x * 2, x, -x), x)

    e = check(f, X, np.bool_(flag))
    assert sum(n.op == "select_n" for n in e.graph.nodes) == 2


@pytest.mark.parametrize(
    "name, f, args",
    [
        ("dear", lambda x, p: lax.cond(p, lambda x: jnp.sin(jnp.sin(jnp.sin(jnp.sin(x)))),
         lambda x: jnp.cos(jnp.cos(jnp.cos(x))), x), (X, np.bool_(True))),
        ("large", lambda x, p: lax.cond(p, lambda x: x + 1, lambda x: x, x), (normal(65),
         np.bool_(True))),
        ("a sum", lambda x, p: lax.cond(p, jnp.sum, lambda x: x[0], x), (X, np.bool_(True))),
        ("an effect", lambda x, p: lax.cond(p, lambda x: (calque.debug.callback(print, x), x)[1],
         lambda x: x, x), (X, np.bool_(True))),
    ],
)  # fmt: skip
def test_what_stays_a_branch(name: str, f: Any, args: Any) -> None:
    assert any(n.op == "cond" for n in Elements(f, *args).graph.nodes), name


def test_work_is_counted_once_for_each_operation() -> None:
    one = branches.work(traced(lambda x: x * 2, X))
    assert branches.work(traced(lambda x: x * 2 * 3 * 4, X)) == 3 * one > 0
    assert branches.work(traced(lambda x: jnp.sum(x), X)) == float("inf")
    table = jnp.arange(4.0)
    assert branches.work(traced(lambda x: x + table, X)) == float("inf")

"""Planned programs."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.core.backends import Options
from calque.native.executable import NativeExecutable, is_long


def planned(f, *args, **options) -> NativeExecutable:
    return NativeExecutable(calque.make_jaxpr(f)(*args), Options(**options))


def test_donated_inputs_name_the_results_that_take_their_memory() -> None:
    x, y = np.arange(6, dtype="f"), np.arange(3, dtype="f")
    e = planned(lambda x, y: (y + 1, x * 2), x, y, donated=(0,))
    assert e.donations() == [(0, 1)]
    assert e.memory_analysis().alias_size_in_bytes == 24
    assert planned(lambda x, y: (y + 1, x * 2), x, y).donations() == []


def test_long_programs_let_other_threads_run() -> None:
    small, large = np.ones(8, "f"), np.ones((400, 400), "f")
    assert not is_long(planned(lambda x: x + 1, small))
    assert is_long(planned(lambda x: x @ x, large))


def test_cost_counts_products_and_bytes() -> None:
    x = np.ones((8, 16), "f")
    cost = planned(lambda x: x @ x.T, x).cost_analysis()
    assert cost["flops"] >= 2 * 8 * 16 * 8
    assert cost["bytes accessed"] >= x.nbytes + 4 * 8 * 8


def test_temporaries_lie_in_results() -> None:
    """Three sorted arrays come one after the other, the last of which a product reads: the others
    lie in its result."""
    x = np.random.default_rng(0).standard_normal((64, 64)).astype("f")
    big = np.ones((3 * 64, 64), "f")

    def f(x: Any, big: Any) -> Any:
        for _ in range(3):
            x = jnp.sort(x, 1).T
        return big @ x

    e = planned(f, x, big)
    assert temporaries(e) <= 2 * x.nbytes
    assert re.search(r"sort\(.* out0", e.as_text("loops"))
    y = x
    for _ in range(3):
        y = np.sort(y, 1).T
    np.testing.assert_allclose(e.call([x, big])[0], big @ y, rtol=1e-4, atol=1e-4)


# ---------------------------------------------------------------- checkpoint

P = calque.checkpoint_policies
LAYERS, ROWS, WIDTH, HIDDEN = 6, 64, 48, 192  # what a layer computes is four times what it is given
GIVEN = 4 * ROWS * WIDTH  # bytes
INSIDE = 4 * ROWS * HIDDEN


def layer(x: Any, w: Any) -> Any:
    h = jnp.tanh(calque.ad_checkpoint.checkpoint_name(x @ w[0], "hidden"))
    return x + jnp.sin(h) @ w[1]


def model(f: Callable[..., Any], looped: bool = False) -> Callable[..., Any]:
    def loss(ws: Any, x: Any) -> Any:
        if looped:
            return (lax.scan(lambda x, w: (f(x, w), None), x, ws)[0] ** 2).mean()
        for a, b in zip(*ws):
            x = f(x, (a, b))
        return (x**2).mean()

    return calque.grad(loss, argnums=1)


def operands() -> tuple[Any, Any]:
    g = np.random.default_rng(0)
    shapes = (LAYERS, WIDTH, HIDDEN), (LAYERS, HIDDEN, WIDTH)
    ws = tuple([(g.standard_normal(s) / 10).astype("f") for s in shapes])
    return ws, g.standard_normal((ROWS, WIDTH)).astype("f")


def step(looped: bool = False, **options: Any) -> NativeExecutable:
    f = calque.checkpoint(layer, **options) if options else layer
    return planned(model(f, looped), *operands())


def temporaries(e: NativeExecutable) -> int:
    return e.memory_analysis().temp_size_in_bytes


def count(e: NativeExecutable, name: str) -> int:
    return [q.primitive.name for q in e.simplified.eqns].count(name)


POLICIES: dict[str, tuple[Any, int, int, int]] = {  # what a layer computes again, and keeps
    "nothing": (P.nothing_saveable, 1, 1, GIVEN),
    "everything": (P.everything_saveable, 0, 0, GIVEN + INSIDE),
    "dots": (P.dots_saveable, 1, 0, GIVEN + INSIDE),
    "dots without batches": (P.dots_with_no_batch_dims_saveable, 1, 0, GIVEN + INSIDE),
    "a name": (P.save_only_these_names("hidden"), 1, 0, GIVEN + INSIDE),
    "another name": (P.save_only_these_names("other"), 1, 1, GIVEN),
    "all but a name": (P.save_any_names_but_these("hidden"), 1, 1, GIVEN),
    "another memory": (P.offload_dot_with_no_batch_dims("device", "host"), 1, 0, GIVEN + INSIDE),
}


@pytest.mark.parametrize("name", POLICIES)
def test_policies_decide_what_lives_until_the_backward_pass(name: str) -> None:
    policy, tanh, dots, kept = POLICIES[name]
    plain, e = step(), step(policy=policy)
    assert count(e, "tanh") - count(plain, "tanh") == tanh * LAYERS
    assert count(e, "dot_general") - count(plain, "dot_general") == dots * LAYERS
    # beside what is kept: what one layer works with
    assert temporaries(e) <= LAYERS * kept + 4 * (GIVEN + INSIDE)
    assert (temporaries(e) <= temporaries(plain) / 2) == (kept == GIVEN)


def test_what_is_computed_again_has_the_same_bits() -> None:
    want = plain_results(step())
    for policy, *_ in POLICIES.values():
        assert np.array_equal(plain_results(step(policy=policy)), want)


def plain_results(e: NativeExecutable) -> np.ndarray:
    (ws, x) = operands()
    return np.asarray(e.call([*ws, x])[0])


def test_temporaries_of_checkpointed_layers_do_not_grow_with_what_is_inside() -> None:
    """Another layer costs what it is given. The second computation of each begins when the
    backward pass arrives there, so that what it makes lies where the one before was."""

    def at(n: int, **options: Any) -> int:
        (a, b), x = operands()
        f = calque.checkpoint(layer, **options) if options else layer
        return temporaries(planned(model(f), (a[:n], b[:n]), x))

    assert at(6, policy=None) - at(3, policy=None) <= 3 * GIVEN
    assert at(6) - at(3) >= 3 * INSIDE


def test_merging_is_allowed_again() -> None:
    same = step(prevent_cse=False)
    assert count(same, "tanh") == count(step(), "tanh")
    assert temporaries(same) == temporaries(step())


@pytest.mark.parametrize("prevent_cse", [True, False])
def test_loops_over_checkpointed_layers_keep_what_each_is_given(prevent_cse: bool) -> None:
    """What is computed again stands in the loop that goes back, which has nothing to merge it
    with."""
    plain, again = step(looped=True), step(looped=True, prevent_cse=prevent_cse)
    assert temporaries(plain) > LAYERS * INSIDE
    assert temporaries(again) <= LAYERS * GIVEN + 4 * (GIVEN + INSIDE)
    assert np.array_equal(plain_results(again), plain_results(plain))
    dots = step(looped=True, policy=P.dots_saveable)
    assert temporaries(again) + (LAYERS - 2) * INSIDE <= temporaries(dots) < temporaries(plain)

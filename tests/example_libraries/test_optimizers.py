"""Optimizers and schedules: steps as JAX's take them, trees, states as trees, refusals; each finds
a minimum."""

import importlib
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.example_libraries import optimizers
from tests.peers import compare, jax

MAKERS: dict[str, tuple[Any, ...]] = {
    "sgd": (0.1,), "momentum": (0.05, 0.8), "nesterov": (0.05, 0.8), "adagrad": (0.5,),
    "rmsprop": (0.05,), "rmsprop_momentum": (0.01,),
    "adam": (0.2,), "adamax": (0.2,), "sm3": (0.5,),
}  # fmt: skip
PARAMS = {"w": np.array([[1.0, -2.0], [0.5, 3.0], [0.0, 1.0]], np.float32), "b": (np.float32(2.0),)}
SCHEDULES: dict[str, tuple[Any, ...]] = {
    "constant": (0.1,), "exponential_decay": (0.1, 3, 0.5), "inverse_time_decay": (0.1, 3, 0.5),
    "polynomial_decay": (0.1, 5, 0.01, 2.0),
    "piecewise_constant": ([2, 5], [0.3, 0.2, 0.1]),
}  # fmt: skip


def loss(p: Any) -> Any:
    return ((p["w"] - 1) ** 2).sum() + (p["b"][0] + 1) ** 2


def run(m: Any, grad: Any, name: str, steps: int) -> Any:
    init, update, get = getattr(m, name)(*MAKERS[name])
    state = init(PARAMS)
    for i in range(steps):
        state = update(i, grad(loss)(get(state)), state)
    return get(state)


@pytest.mark.parametrize("name", MAKERS)
def test_minimum(name: str) -> None:
    init, update, get = getattr(optimizers, name)(*MAKERS[name])

    @calque.jit
    def many(state: Any) -> Any:
        return calque.lax.fori_loop(
            0, 300, lambda i, s: update(i, calque.grad(loss)(get(s)), s), state
        )

    out = get(many(init(calque.tree_util.tree_map(jnp.asarray, PARAMS))))
    assert out["w"].shape == (3, 2) and out["b"][0].shape == ()
    np.testing.assert_allclose(out["w"], np.ones((3, 2)), atol=0.05)
    np.testing.assert_allclose(out["b"][0], -1, atol=0.05)


@pytest.mark.peer
def test_steps_of_jax() -> None:
    jax()
    theirs = importlib.import_module("jax.example_libraries.optimizers")
    names = [n for n in MAKERS if n != "sm3"]  # whose state JAX cannot trace
    want = jax().jit(lambda: [run(theirs, jax().grad, n, 2) for n in names])()
    for name, w in zip(names, want, strict=True):
        got = run(optimizers, calque.grad, name, 2)
        compare([got["w"], got["b"][0]], [w["w"], w["b"][0]], 1e-5)
    for name, args in SCHEDULES.items():
        for i in (0, 2, 3, 9):
            compare(
                jnp.asarray(getattr(optimizers, name)(*args)(i)),
                np.asarray(getattr(theirs, name)(*args)(i), np.float32),
                1e-6,
            )


def test_schedules() -> None:
    assert [
        float(optimizers.inverse_time_decay(1.0, 2, 1.0, staircase=True)(i)) for i in (0, 1, 2, 5)
    ] == [
        1,
        1,
        0.5,
        pytest.approx(1 / 3),
    ]
    init, update, get = optimizers.sgd(optimizers.piecewise_constant([0], [1.0, 0.5]))
    assert float(get(update(1, jnp.ones(()), init(jnp.zeros(()))))) == -0.5
    for bad in (
        lambda: optimizers.piecewise_constant([1.0], [1.0]),
        lambda: optimizers.piecewise_constant(1.0, [1.0]),
    ):
        with pytest.raises(ValueError, match="boundaries"):
            bad()
    with pytest.raises(TypeError, match="step size"):
        optimizers.sgd(jnp.ones(2))


def test_states() -> None:
    init, update, get = optimizers.adam(0.1)
    state = update(0, PARAMS, init(PARAMS))
    again = optimizers.pack_optimizer_state(optimizers.unpack_optimizer_state(state))
    assert again.tree_def == state.tree_def and again.subtree_defs == state.subtree_defs
    np.testing.assert_array_equal(get(again)["w"], get(state)["w"])
    assert len(calque.tree_util.tree_leaves(state)) == 6
    with pytest.raises(TypeError, match="did not match the parameter tree"):
        update(0, [1.0], state)
    with pytest.raises(TypeError, match="JoinPoints"):
        optimizers.pack_optimizer_state([1])
    broken = optimizers.optimizer(lambda: (lambda x: x, lambda i, g, s: (s, g), lambda s: s))()
    with pytest.raises(TypeError, match="output structure"):
        broken.update_fn(0, 1.0, broken.init_fn(1.0))


def test_sm3_keeps_a_cover_of_the_squares() -> None:
    init, update, get = optimizers.sm3(0.5, momentum=0.0)
    x, g = np.array([[1.0, -2.0], [0.5, 3.0]]), np.array([[0.1, 0.2], [0.4, -0.3]])
    state = update(1, g, update(0, g, init(jnp.asarray(x, "float32"))))
    rows, columns = (g**2).max(1), (g**2).max(0)
    second = np.minimum(rows[:, None], columns) + g**2
    np.testing.assert_allclose(
        get(state), x - 0.5 * np.sign(g) - 0.5 * g / np.sqrt(second), rtol=1e-5
    )
    at_zero = update(0, jnp.zeros(2), init(jnp.ones(2)))
    assert get(at_zero).tolist() == [1, 1]


def test_norms() -> None:
    tree = {"a": jnp.array([3.0, 0.0]), "b": jnp.array([[4.0]])}
    assert float(optimizers.l2_norm(tree)) == 5
    assert float(optimizers.l2_norm(optimizers.clip_grads(tree, 1.0))) == pytest.approx(1)
    assert optimizers.clip_grads(tree, 6.0)["a"].tolist() == [3, 0]

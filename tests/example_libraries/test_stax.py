"""Layers: shapes and values as JAX's for the same keys, training, dropout, refusals."""

import importlib
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.example_libraries import optimizers, stax
from tests.peers import compare, jax

IMAGES = np.random.default_rng(0).normal(size=(2, 8, 7, 3)).astype(np.float32)
SIGNALS = np.random.default_rng(1).normal(size=(2, 6, 3)).astype(np.float32)

NETWORKS: dict[str, tuple[Any, np.ndarray]] = {
    "dense": (lambda s: s.serial(s.Dense(5), s.Tanh, s.Dense(2), s.LogSoftmax), SIGNALS[:, 0]),
    "image": (lambda s: s.serial(s.Conv(4, (3, 3), (2, 1), "SAME"), s.BatchNorm(), s.Relu,
    s.MaxPool((2, 2), (2, 2)), s.Flatten, s.Dense(3)), IMAGES),
    "pools": (lambda s: s.serial(s.AvgPool((3, 2), padding="SAME"), s.SumPool((2, 2), (1, 2)),
    s.Gelu), IMAGES),
    "planes": (lambda s: s.serial(s.GeneralConv(("NCHW", "OIHW", "NHWC"), 2, (2, 3)), s.Elu),
    IMAGES.transpose(0, 3, 1, 2)),
    "pool of planes": (lambda s: s.AvgPool((2, 2), spec="NCHW"), IMAGES.transpose(0, 3, 1, 2)),
    "up": (lambda s: s.serial(s.ConvTranspose(2, (3, 3), (2, 2), "SAME"), s.LeakyRelu), IMAGES),
    "up in one": (lambda s: s.serial(s.Conv1DTranspose(2, (3,), (2,)), s.Selu, s.Sigmoid), SIGNALS),
    "branches": (lambda s: s.serial(s.FanOut(2), s.parallel(s.Dense(4), s.Identity),
    s.FanInConcat(), s.Softmax), SIGNALS),
    "residual": (lambda s: s.serial(s.FanOut(2), s.parallel(s.serial(s.Dense(3), s.Softplus),
    s.Identity), s.FanInSum, s.Exp), SIGNALS),
    "by shape": (lambda s: s.shape_dependent(lambda shape: s.Dense(shape[-1] * 2)), SIGNALS),
    "dropout": (lambda s: s.serial(s.Dropout(0.7), s.Dense(3)), SIGNALS),
    "norm": (lambda s: s.serial(s.BatchNorm((0, 1), scale=False), s.BatchNorm(0, center=False)),
    SIGNALS),
}  # fmt: skip


@pytest.mark.parametrize("name", NETWORKS)
def test_shapes(name: str) -> None:
    make, x = NETWORKS[name]
    init, apply = make(stax)
    if name != "by shape" and not name.startswith("norm"):
        assert init(calque.random.key(1), (-1, *x.shape[1:]))[0][0] == -1
    shape, params = init(calque.random.key(1), x.shape)
    out = calque.jit(lambda p, x: apply(p, x, rng=calque.random.key(2)))(params, x)
    assert tuple(shape) == out.shape
    slopes = calque.grad(lambda p: apply(p, x, rng=calque.random.key(2)).sum())(params)
    assert all(np.isfinite(v).all() for v in calque.tree_util.tree_leaves(slopes))


@pytest.mark.peer
def test_values_of_jax() -> None:
    theirs = importlib.import_module("jax.example_libraries.stax") if jax() else None

    def results(s: Any, random: Any) -> list[Any]:
        out = []
        for make, x in map(NETWORKS.get, ("up", "branches")):
            init, apply = make(s)
            _, params = init(random.key(1), x.shape)
            out.append(apply(params, x, rng=random.key(2)))
        return out

    for got, want in zip(
        results(stax, calque.random),
        jax().jit(lambda: results(theirs, jax().random))(),
        strict=True,
    ):
        compare(got, want, 2e-4)


def test_training() -> None:
    init, apply = stax.serial(stax.Dense(16), stax.Relu, stax.Dense(1))
    _, params = init(calque.random.key(0), (-1, 1))
    x = jnp.linspace(-1, 1, 32)[:, None]

    def loss(p):
        return jnp.mean((apply(p, x) - x**2) ** 2)

    start, update, get = optimizers.adam(1e-2)
    step = calque.jit(lambda i, s: update(i, calque.grad(loss)(get(s)), s))
    state = start(params)
    for i in range(200):
        state = step(i, state)
    assert float(loss(get(state))) < 1e-2 < float(loss(params))


def test_dropout() -> None:
    _, apply = stax.Dropout(0.5)
    with pytest.raises(ValueError, match="PRNG key"):
        apply((), SIGNALS)
    assert stax.Dropout(0.5, mode="test")[1]((), SIGNALS, rng=calque.random.key(0)) is SIGNALS
    out = np.asarray(apply((), np.ones(1000, np.float32), rng=calque.random.key(0)))
    assert set(out.tolist()) == {0.0, 2.0} and 400 < (out > 0).sum() < 600

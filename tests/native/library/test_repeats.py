"""What a program does again with other arrays is lowered once, and what differs is not."""

from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.native.library.matmul import Product
from calque.native.library.repeats import Unlike, frozen
from tests.native.programs import compiled

N = 96
R = np.random.default_rng(0)
X, Y = R.normal(size=(N, N)).astype("f"), R.normal(size=(N, N)).astype("f")


@pytest.fixture
def lowered(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The products that were lowered."""
    seen: list[Any] = []
    steps = Product.steps

    def counted(self: Product) -> Any:
        seen.append(self)
        return steps(self)

    monkeypatch.setattr(Product, "steps", counted)
    return seen


def check(f: Any, *args: Any) -> Any:
    """The program, whose results are those that NumPy computes in double numbers."""
    program = compiled(f, *args)
    wide = [np.asarray(a, "f8") for a in args]
    with calque.enable_x64(True):
        want = calque.tree_util.tree_leaves(f(*wide))
    for got, w in zip(program.call(list(args)), want, strict=True):
        np.testing.assert_allclose(got, w, rtol=2e-3, atol=2e-3)
    return program


def test_layers(lowered: list[Any]) -> None:
    """Of six layers the first two are lowered: the first one reads an argument."""
    weights = R.normal(size=(6, N, N)).astype("f") / 10
    parts = [*weights]

    def f(x: Any, *ws: Any) -> Any:
        for w in ws:
            x = jnp.tanh(x @ w + 0.5) + x
        return x

    program = check(f, X, *parts)
    assert len(lowered) == 2
    calls = [c for c in program.calls if c.names]
    assert len({c.schedule for c in program.calls}) < len(program.calls) and calls


def test_backward_layers(lowered: list[Any]) -> None:
    weights = [w / 10 for w in R.normal(size=(5, N, N)).astype("f")]

    def loss(*ws: Any) -> Any:
        x = jnp.asarray(X)
        for w in ws:
            x = jnp.tanh(x @ w) + x
        return (x * x).sum()

    check(calque.grad(loss, tuple(range(5))), *weights)
    assert len(lowered) == 9  # of 14


@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: (x @ y * 2.0, y @ x * 3.0),
        lambda x, y: (x @ y + 0.25, y @ x - 0.25),
        lambda x, y: (x @ y, x @ x),  # one buffer for two
        lambda x, y: (x @ y, x @ y.T, x.T @ y),
        lambda x, y: (x @ y, (x @ y).T, x[::-1] @ y),
        lambda x, y: (jnp.sin(x) @ y, jnp.cos(x) @ y),
        lambda x, y: (x @ y + x, x @ y + y),
        lambda x, y: (x @ y + x[0], y @ x + x[1], x @ x + x[:, :1]),
        lambda x, y: (x @ (y * 1.5), x @ (y * 2.5)),
        lambda x, y: (jnp.maximum(x @ y, 0.0), jnp.minimum(y @ x, 0.0)),
        lambda x, y: (x @ y[:, :64], x @ y[:, 32:]),
        lambda x, y: (x @ np.eye(N, dtype="f"), x @ np.tri(N, dtype="f")),
    ],
)
def test_what_differs_stays_apart(f: Any) -> None:
    check(f, X, Y)


def test_products_in_place_of_what_dies() -> None:
    def f(x: Any, y: Any) -> Any:
        for _ in range(4):
            x = x + (x @ y) / N
            y = (y @ x) / N - y
        return x, y

    check(f, X, Y)


def test_convolutions_and_their_tables(lowered: list[Any]) -> None:
    x = R.normal(size=(2, 18, 18, 8)).astype("f")
    kernels = [k / 8 for k in R.normal(size=(4, 3, 3, 8, 8)).astype("f")]

    def f(x: Any, *ks: Any) -> Any:
        for k in ks:
            numbers = ("NHWC", "HWIO", "NHWC")
            x = jnp.tanh(lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=numbers))
        return x

    check(f, x, *kernels)
    assert len(lowered) == 2


def test_loops_have_pieces_of_their_own() -> None:
    def f(x: Any, y: Any) -> Any:
        def turn(_: Any, c: Any) -> Any:
            a, b = c
            return jnp.tanh(a @ y), jnp.tanh(b @ y)

        a, b = lax.fori_loop(0, 3, turn, (x, x + 1.0))
        return a @ y, b @ y

    check(f, X, Y)


def test_parameters_in_a_key() -> None:
    assert frozen(0.0) != frozen(-0.0) and frozen(1) != frozen(True) and frozen(1) != frozen(1.0)
    assert frozen(np.float32(0)) != frozen(np.float32(-0.0)) and frozen((1, "a")) == frozen(
        (1, "a")
    )
    assert frozen(np.arange(3)) == frozen(np.arange(3)) != frozen(np.arange(3.0))
    assert frozen(float("nan")) == frozen(float("nan"))
    for x in ({}, np.array([None])):
        with pytest.raises(Unlike):
            frozen(x)

"""The demonstration that `make demo` runs: trace, look, time, and train a small network on data
made here."""

import timeit

import numpy as np
from terminal import Progress

import calque as jax
import calque.numpy as jnp


def show_the_program() -> None:
    def affine(w, b, x):
        return jnp.tanh(x @ w + b)

    args = jnp.ones((4, 2)), jnp.zeros(2), jnp.arange(4.0)
    print("The program that calque sees in `tanh(x @ w + b)`:\n")
    print(jax.make_jaxpr(affine)(*args))
    print("\nThe loops that it becomes:\n")
    print(jax.jit(affine).lower(*args).compile().as_text("loops"))


def time_a_call() -> None:
    w, b, x = np.ones((4, 2), np.float32), np.zeros(2, np.float32), np.arange(4, dtype=np.float32)
    affine = jax.jit(lambda w, b, x: x @ w + b)
    arrays = [jnp.asarray(a) for a in (w, b, x)]
    affine(*arrays)
    ours = best(lambda: affine(*arrays))
    theirs = best(lambda: x @ w + b)
    print(f"\nOne call of `x @ w + b`: calque {ours * 1e9:.0f} ns, NumPy {theirs * 1e9:.0f} ns")
    big = jnp.linspace(-3.0, 3.0, 1_000_000)
    copy = np.asarray(big)
    gelu = jax.jit(lambda x: 0.5 * x * (1 + jnp.tanh(0.79788456 * (x + 0.044715 * x**3))))
    gelu(big)
    ours = best(lambda: gelu(big), 20)
    theirs = best(
        lambda: (
            0.5
            * copy
            * (1 + np.tanh(np.float32(0.79788456) * (copy + np.float32(0.044715) * copy**3)))
        ),
        3,
    )
    print(f"gelu of a million numbers: calque {ours * 1e3:.2f} ms, NumPy {theirs * 1e3:.2f} ms")


def best(call, number: int = 20_000) -> float:
    return min(timeit.repeat(call, number=number, repeat=5)) / number


def spirals(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Two interleaved spirals: points and which spiral they are on."""
    rng = np.random.default_rng(0)
    t = np.sqrt(rng.uniform(0.05, 1, n)) * 3 * np.pi
    side = rng.integers(0, 2, n)
    angle = t + np.pi * side
    points = np.stack([t * np.cos(angle), t * np.sin(angle)], 1) / (3 * np.pi) + rng.normal(
        0, 0.01, (n, 2)
    )
    return points.astype(np.float32), side.astype(np.float32)


def train(steps: int = 3000) -> None:
    x, y = map(jnp.asarray, spirals(512))
    keys = jax.random.split(jax.random.key(1), 3)
    sizes = (2, 64, 64, 1)
    params = [
        {"w": jax.random.normal(k, (m, n)) * (2 / m) ** 0.5, "b": jnp.zeros(n)}
        for k, m, n in zip(keys, sizes, sizes[1:])
    ]

    def predict(params, x):
        for layer in params[:-1]:
            x = jnp.tanh(x @ layer["w"] + layer["b"])
        return (x @ params[-1]["w"] + params[-1]["b"])[:, 0]

    def loss(params):
        z = predict(params, x)
        return jnp.mean(jnp.maximum(z, 0) - z * y + jnp.log1p(jnp.exp(-jnp.abs(z))))

    @jax.jit
    def step(params, velocity):
        value, gradient = jax.value_and_grad(loss)(params)
        velocity = jax.tree.map(lambda v, g: 0.9 * v - 0.1 * g, velocity, gradient)
        return jax.tree.map(lambda p, v: p + v, params, velocity), velocity, value

    velocity = jax.tree.map(jnp.zeros_like, params)
    print("\nTraining a network of 2-64-64-1 units to tell two spirals apart:")
    for i in (bar := Progress(steps, "  training")):
        params, velocity, value = step(params, velocity)
        if i % 60 == 59:
            bar.note = f"loss {float(value):.4f}"
    right = float(jnp.mean((predict(params, x) > 0) == (y > 0.5)))
    print(f"  loss {float(value):.4f}; {right:.1%} of the points are told apart")


if __name__ == "__main__":
    show_the_program()
    time_a_call()
    train()

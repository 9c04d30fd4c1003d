"""Training with optax, on calque in JAX's place: two spirals are told apart.

    python examples/optax_spirals.py

optax says `import jax`. After `calque.as_jax()` that gives calque's modules, here and in all
that is imported later. Needs `pip install optax`, which brings JAX along; it is never loaded."""

import sys

import numpy as np
from pictures import Picture
from terminal import Progress, options, report

import calque

jax = calque.as_jax()  # before anything that imports JAX
try:
    import optax
except ModuleNotFoundError as error:
    sys.exit(f"This example needs {error.name}: pip install optax")

jnp = jax.numpy


def spirals(count):
    """Points of two spirals that wind around each other, and which of them each is on."""
    rng = np.random.default_rng(0)
    angle = np.sqrt(rng.uniform(0.05, 1, count)) * 3 * np.pi
    side = rng.integers(0, 2, count)
    turned = angle + np.pi * side
    points = np.stack([np.cos(turned), np.sin(turned)], 1) * angle[:, None] / (3 * np.pi)
    noise = rng.normal(0, 0.01, (count, 2))
    return jnp.asarray(points + noise, jnp.float32), jnp.asarray(side, jnp.float32)


def initial(key, sizes=(2, 64, 64, 1)):
    keys = jax.random.split(key, len(sizes) - 1)
    make = jax.nn.initializers.he_normal()
    return [(make(k, (m, n)), jnp.zeros(n)) for k, m, n in zip(keys, sizes, sizes[1:])]


def score(params, x):
    """Above zero for the second spiral."""
    for w, b in params[:-1]:
        x = jnp.tanh(x @ w + b)
    w, b = params[-1]
    return (x @ w + b)[..., 0]


def loss(params, x, side):
    return optax.sigmoid_binary_cross_entropy(score(params, x), side).mean()


def main(small: bool, picture: str) -> None:
    x, side = spirals(512)
    steps = 400 if small else 3000
    rate = optax.warmup_cosine_decay_schedule(0.0, 0.02, steps // 20, steps)
    optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(rate, weight_decay=1e-4))

    @jax.jit
    def step(params, state):
        value, gradient = jax.value_and_grad(loss)(params, x, side)
        change, state = optimiser.update(gradient, state, params)
        return optax.apply_updates(params, change), state, value

    params = initial(jax.random.key(1))
    state = optimiser.init(params)
    for _ in (bar := Progress(steps, "training")):
        params, state, value = step(params, state)
        bar.note = f"loss {float(value):.4f}"
    right = float(jnp.mean((score(params, x) > 0) == (side > 0.5)))

    drawn = Picture("Which spiral? Scores of the network", "x", "y")
    places = jnp.linspace(-1.1, 1.1, 120)
    grid = jnp.stack(jnp.meshgrid(places, places), axis=-1)
    drawn.field(jnp.tanh(score(params, grid)), (-1.1, 1.1), (-1.1, 1.1))
    for which in (0, 1):
        drawn.points(*x[np.asarray(side) == which].T)
    drawn.save(picture)
    report(picture, version_served=jax.__version__, loss=float(value), told_apart=right)


if __name__ == "__main__":
    main(*options(__doc__, "optax_spirals.svg"))

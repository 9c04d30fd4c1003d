"""A line through points, by following the gradient of the error.

    python examples/linear_regression.py

The first program of most introductions: a loss, its gradient, a jitted step. What the steps arrive
at is compared with the solution that linear algebra gives at once."""

from pictures import Picture
from terminal import Progress, options, report

import calque as jax
import calque.numpy as jnp


def predict(params, x):
    """Parameters are any tree of arrays: here a dictionary of two numbers."""
    return params["slope"] * x + params["offset"]


def loss(params, x, y):
    """The mean of the squares of what the prediction is off."""
    return jnp.mean((predict(params, x) - y) ** 2)


@jax.jit
def step(params, x, y, rate):
    """Parameters a little further downhill, and the loss where they were.

    The gradient is a tree like the parameters; `tree.map` goes through both side by side."""
    value, gradient = jax.value_and_grad(loss)(params, x, y)
    return jax.tree.map(lambda p, g: p - rate * g, params, gradient), value


def main(small: bool, picture: str) -> None:
    # Random numbers come from keys, and each key is used once: split makes new ones.
    key_x, key_noise = jax.random.split(jax.random.key(0))
    x = jax.random.uniform(key_x, (200,), minval=-1.0, maxval=2.0)
    y = 3.0 * x - 1.0 + 0.3 * jax.random.normal(key_noise, (200,))

    params = {"slope": jnp.zeros(()), "offset": jnp.zeros(())}
    losses = []
    for _ in (bar := Progress(150 if small else 1000, "descending")):
        params, value = step(params, x, y, 0.1)
        losses.append(float(value))
        bar.note = f"loss {losses[-1]:.4f}"

    # Least squares: the columns are what the slope and the offset are multiplied by.
    columns = jnp.stack([x, jnp.ones_like(x)], axis=1)
    (slope, offset), *_ = jnp.linalg.lstsq(columns, y)

    drawn = Picture("A line through points", "x", "y")
    drawn.points(x, y, "points")
    ends = jnp.array([-1.0, 2.0])
    drawn.line(ends, predict(params, ends), f"after {len(losses)} steps")
    drawn.save(picture)
    off = max(abs(params["slope"] - slope), abs(params["offset"] - offset))
    report(
        picture,
        loss_at_the_start=losses[0],
        loss=losses[-1],
        slope=float(params["slope"]),
        offset=float(params["offset"]),
        distance_from_least_squares=float(off),
    )


if __name__ == "__main__":
    main(*options(__doc__, "linear_regression.svg"))

"""A network of three layers learns to read digits.

    python examples/digits.py

The network is written for one image; `vmap` makes it one for a batch. Parameters are a list of
dictionaries, the optimiser is stochastic gradient descent with momentum."""

import numpy as np
from digit_images import SIDE, draw
from pictures import Picture
from terminal import Progress, options, report

import calque as jax
import calque.numpy as jnp

SIZES = (SIDE * SIDE, 128, 64, 10)


def initial(key):
    """Random weights, scaled so that signals keep their size from layer to layer."""
    keys = jax.random.split(key, len(SIZES) - 1)
    return [
        {"w": jax.random.normal(k, (m, n)) * (2 / m) ** 0.5, "b": jnp.zeros(n)}
        for k, m, n in zip(keys, SIZES, SIZES[1:])
    ]


def scores(params, image):
    """The logarithms of how likely each digit is, for one image."""
    x = image.ravel()
    for layer in params[:-1]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return jax.nn.log_softmax(x @ params[-1]["w"] + params[-1]["b"])


batch_scores = jax.vmap(scores, in_axes=(None, 0))  # one set of parameters, many images


def loss(params, images, digits):
    """How surprised the network is at the right digits, on average."""
    return -jnp.mean(jnp.take_along_axis(batch_scores(params, images), digits[:, None], axis=1))


@jax.jit
def step(params, velocity, images, digits):
    value, gradient = jax.value_and_grad(loss)(params, images, digits)
    velocity = jax.tree.map(lambda v, g: 0.9 * v - 0.05 * g, velocity, gradient)
    return jax.tree.map(jnp.add, params, velocity), velocity, value


@jax.jit
def accuracy(params, images, digits):
    return jnp.mean(jnp.argmax(batch_scores(params, images), axis=1) == digits)


def main(small: bool, picture: str) -> None:
    images, digits = draw(seed=1, count=3000 if small else 20_000, travel=1)
    unseen = draw(seed=2, count=1000, travel=1)
    params = initial(jax.random.key(0))
    velocity = jax.tree.map(jnp.zeros_like, params)
    rng, seen, right = np.random.default_rng(0), [], []
    for epoch in (bar := Progress(8 if small else 20, "learning")):
        order = rng.permutation(len(images))
        for rows in order.reshape(-1, 50):
            params, velocity, _ = step(params, velocity, images[rows], digits[rows])
        right.append(float(accuracy(params, *unseen)))
        seen.append(epoch + 1)
        bar.note = f"{right[-1]:.1%} of new digits are read"

    drawn = Picture("Digits read rightly, of 1,000 new ones", "passes through the images", "share")
    drawn.line(seen, right)
    drawn.save(picture)
    report(
        picture,
        loss=float(loss(params, *unseen)),
        accuracy=right[-1],
    )


if __name__ == "__main__":
    main(*options(__doc__, "digits.svg"))

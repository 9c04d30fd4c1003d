"""A convolutional network reads digits wherever they stand in the image.

    python examples/convnet.py

The digits of `digits.py` again, now anywhere in the image: the same small windows are looked at
everywhere, so that the place does not matter. A pass over the images is one program: `scan` goes
through the batches, and only the losses come back."""

import numpy as np
from digit_images import SIDE, draw
from pictures import Picture
from terminal import Progress, options, report

import calque as jax
import calque.numpy as jnp
from calque import lax

CHANNELS = (1, 16, 32)
LAYOUT = ("NHWC", "HWIO", "NHWC")  # images, windows, results: channels last


def initial(key):
    first, second, last = jax.random.split(key, 3)
    features = CHANNELS[-1] * (SIDE // 4) ** 2
    return {
        "windows": [
            jax.random.normal(k, (3, 3, m, n)) * (2 / (9 * m)) ** 0.5
            for k, m, n in zip((first, second), CHANNELS, CHANNELS[1:])
        ],
        "biases": [jnp.zeros(n) for n in CHANNELS[1:]],
        "out": jax.random.normal(last, (features, 10)) * features**-0.5,
    }


def halve(x):
    """The greatest of each square of four."""
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def scores(params, images):
    x = images[..., None]
    for window, bias in zip(params["windows"], params["biases"]):
        x = lax.conv_general_dilated(x, window, (1, 1), "SAME", dimension_numbers=LAYOUT)
        x = halve(jax.nn.relu(x + bias))
    return jax.nn.log_softmax(x.reshape(len(images), -1) @ params["out"])


def loss(params, images, digits):
    return -jnp.mean(jnp.take_along_axis(scores(params, images), digits[:, None], axis=1))


def step(state, batch):
    """One step of Adam: the state is the parameters, two running means, and a count."""
    params, mean, square, count = state
    value, gradient = jax.value_and_grad(loss)(params, *batch)
    count = count + 1
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradient)
    square = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, square, gradient)
    far = 0.004 * jnp.sqrt(1 - 0.99**count) / (1 - 0.9**count)
    params = jax.tree.map(lambda p, m, s: p - far * m / (jnp.sqrt(s) + 1e-8), params, mean, square)
    return (params, mean, square, count), value


@jax.jit
def one_pass(state, images, digits, order):
    """Through all images once, in batches: `order` has a row of indices for each."""
    return lax.scan(lambda state, rows: step(state, (images[rows], digits[rows])), state, order)


@jax.jit
def accuracy(params, images, digits):
    return jnp.mean(jnp.argmax(scores(params, images), axis=1) == digits)


def main(small: bool, picture: str) -> None:
    images, digits = map(jnp.asarray, draw(seed=1, count=2000 if small else 10_000, travel=3))
    unseen = draw(seed=2, count=1000, travel=3)
    params = initial(jax.random.key(0))
    nothing = jax.tree.map(jnp.zeros_like, params)
    state, losses = (params, nothing, nothing, jnp.zeros(())), []
    rng = np.random.default_rng(0)
    for _ in (bar := Progress(5 if small else 10, "learning")):
        order = rng.permutation(len(images)).reshape(-1, 50)
        state, values = one_pass(state, images, digits, order)
        losses.extend(values.tolist())
        bar.note = f"loss {np.mean(losses[-20:]):.3f}"

    drawn = Picture("Learning to read digits", "steps", "loss")
    drawn.line(np.arange(len(losses)), losses)
    drawn.save(picture)
    report(picture, loss=losses[-1], accuracy=float(accuracy(state[0], *unseen)))


if __name__ == "__main__":
    main(*options(__doc__, "convnet.svg"))

"""A transformer of flax, trained with optax on calque in JAX's place: it learns to sort.

    python examples/flax_transformer.py

It reads eight numbers and says all of them in order at once. Needs `pip install flax optax`, which
bring JAX along; `calque.as_jax()` serves calque in its place, so that it is never loaded."""

import sys

import numpy as np
from pictures import Picture
from terminal import Progress, options, report

import calque

jax = calque.as_jax()  # before anything that imports JAX
try:
    import optax
    from flax import linen as nn
except ModuleNotFoundError as error:
    sys.exit(f"This example needs {error.name}: pip install flax optax")

jnp = jax.numpy
LENGTH, NUMBERS, WIDTH = 8, 10, 32


class Block(nn.Module):
    """Attention among the places, then a network for each."""

    @nn.compact
    def __call__(self, x):
        y = nn.LayerNorm()(x)
        x = x + nn.MultiHeadDotProductAttention(num_heads=4)(y, y)
        y = nn.gelu(nn.Dense(4 * WIDTH)(nn.LayerNorm()(x)))
        return x + nn.Dense(WIDTH)(y)


class Sorter(nn.Module):
    blocks: int = 2

    @nn.compact
    def __call__(self, numbers):
        x = nn.Embed(NUMBERS, WIDTH)(numbers)
        x = x + self.param("places", nn.initializers.normal(0.1), (LENGTH, WIDTH))
        for _ in range(self.blocks):
            x = Block()(x)
        return nn.Dense(NUMBERS)(nn.LayerNorm()(x))


def main(small: bool, picture: str) -> None:
    model, steps = Sorter(), 250 if small else 1500
    rng = np.random.default_rng(0)

    def examples(count):
        numbers = rng.integers(0, NUMBERS, (count, LENGTH))
        return numbers, np.sort(numbers, axis=1)

    optimiser = optax.adam(optax.cosine_decay_schedule(0.004, steps))

    def loss(params, numbers, ordered):
        scores = model.apply(params, numbers)
        return optax.softmax_cross_entropy_with_integer_labels(scores, ordered).mean()

    @jax.jit
    def step(params, state, numbers, ordered):
        value, gradient = jax.value_and_grad(loss)(params, numbers, ordered)
        change, state = optimiser.update(gradient, state)
        return optax.apply_updates(params, change), state, value

    params = model.init(jax.random.key(0), examples(1)[0])
    state = optimiser.init(params)
    losses = []
    for _ in (bar := Progress(steps, "training")):
        params, state, value = step(params, state, *examples(64))
        losses.append(float(value))
        bar.note = f"loss {losses[-1]:.4f}"

    numbers, ordered = examples(500)
    said = jnp.argmax(jax.jit(model.apply)(params, numbers), axis=-1)
    drawn = Picture("Learning to sort", "steps", "loss")
    drawn.line(np.arange(steps), losses)
    drawn.save(picture)
    print(f"{numbers[0].tolist()} becomes {said[0].tolist()}")
    report(picture, loss=losses[-1], numbers_in_their_place=float(jnp.mean(said == ordered)))


if __name__ == "__main__":
    main(*options(__doc__, "flax_transformer.svg"))

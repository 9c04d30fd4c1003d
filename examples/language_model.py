"""A small transformer learns to write sentences, letter by letter.

    python examples/language_model.py

The text comes from a grammar of a few words. The model sees 32 letters, looks back from each of
them (attention, masked so that nothing to come is seen) and says what follows. Then it writes."""

import numpy as np
from pictures import Picture
from terminal import Progress, options, report

import calque as jax
import calque.numpy as jnp
from calque.example_libraries.optimizers import adam, polynomial_decay

PARTS = "the a my no, red old sly small, fox bird king cat, sees finds likes has, moon. stone. one."
WORDS = [part.split() for part in PARTS.split(", ")]
KNOWN = set(PARTS.replace(",", "").split())
LETTERS = sorted(set(PARTS) - {","})
SEEN, HEADS, BLOCKS = 32, 4, 2


def sentences(rng, count):
    return " ".join(rng.choice(words) for _ in range(count) for words in WORDS)


def initial(key):
    block = {"qkv": (32, 96), "mix": (32, 32), "up": (32, 128), "down": (128, 32)}
    sizes = {"letters": (len(LETTERS), 32), "places": (SEEN, 32), "blocks": [block] * BLOCKS}
    leaves, tree = jax.tree.flatten(sizes, is_leaf=lambda size: isinstance(size, tuple))
    keys = jax.random.split(key, len(leaves))
    weights = [jax.random.normal(k, size) * size[0] ** -0.5 for k, size in zip(keys, leaves)]
    return jax.tree.unflatten(tree, weights)


def normal(x):
    return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)


def attend(block, x):
    """Each place gathers from the places up to its own what looks like what it asks for."""
    parts = jnp.split(normal(x) @ block["qkv"], 3, axis=1)
    q, k, v = (part.reshape(len(x), HEADS, -1) for part in parts)
    match = jnp.einsum("ihc,jhc->hij", q, k) * q.shape[-1] ** -0.5
    past = jnp.tril(jnp.ones((len(x), len(x)), bool))
    share = jax.nn.softmax(jnp.where(past, match, -jnp.inf))
    return jnp.einsum("hij,jhc->ihc", share, v).reshape(x.shape) @ block["mix"]


def scores(params, text):
    """For each place of one text, the logarithms of how likely each letter is to follow."""
    x = params["letters"][text] + params["places"][: len(text)]
    for block in params["blocks"]:
        x = x + attend(block, x)
        x = x + jax.nn.gelu(normal(x) @ block["up"]) @ block["down"]
    return jax.nn.log_softmax(normal(x) @ params["letters"].T)


def loss(params, texts):
    found = jax.vmap(scores, (None, 0))(params, texts[:, :-1])
    return -jnp.mean(jnp.take_along_axis(found, texts[:, 1:, None], axis=-1))


@jax.jit
def write(params, key, start):
    """Letters after `start`, each drawn from what the model expects."""

    def add(text, key):
        letter = jax.random.categorical(key, 1.5 * scores(params, text)[-1])
        return jnp.concatenate([text[1:], letter[None]]), letter

    return jax.lax.scan(add, start, jax.random.split(key, 200))[1]


def main(small: bool, picture: str) -> None:
    rng, losses, steps = np.random.default_rng(0), [], 250 if small else 1500
    text = np.array([LETTERS.index(c) for c in sentences(rng, 3000)])
    start, update, params_of = adam(polynomial_decay(0.01, steps, 0.001, 1.0))

    @jax.jit
    def step(i, state, texts):
        value, gradient = jax.value_and_grad(loss)(params_of(state), texts)
        return update(i, gradient, state), value

    state = start(initial(jax.random.key(0)))
    for i in (bar := Progress(steps, "reading")):
        places = rng.integers(0, len(text) - SEEN, (32, 1)) + np.arange(SEEN)
        state, value = step(i, state, text[places])
        losses.append(float(value))
        bar.note = f"loss {losses[-1]:.3f}"
    written = write(params_of(state), jax.random.key(1), text[: SEEN - 1])
    print(*(words := "".join(LETTERS[i] for i in written).split()[1:-1]))  # none that is cut
    drawn = Picture("Learning to write", "steps", "loss")
    drawn.line(np.arange(steps), losses)
    drawn.save(picture)
    report(picture, loss=losses[-1], words_that_exist=sum(w in KNOWN for w in words) / len(words))


if __name__ == "__main__":
    main(*options(__doc__, "language_model.svg"))

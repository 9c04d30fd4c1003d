"""A wave meets a wall with two slits.

    python examples/waves.py

The wave equation on a grid: what a point does next follows from its neighbours. Walls are points
held at zero. A `scan` runs all steps; the energy that the scheme keeps is computed beside them."""

from pictures import Picture
from terminal import options, report

import calque as jax
import calque.numpy as jnp
from calque import lax

COURANT = 0.5  # how far a wave gets in a step, in points of the grid; at most 0.7 is stable


def differences(u):
    """To the neighbour below and to the right; the edge of the grid is held at zero."""
    padded = jnp.pad(u, 1)
    return jnp.diff(padded, axis=0)[:, 1:-1], jnp.diff(padded, axis=1)[1:-1]


def bend(u):
    """How far a point is below the mean of its four neighbours, four times."""
    down, right = differences(u)
    return jnp.diff(down, axis=0) + jnp.diff(right, axis=1)


def energy(before, now):
    """Of motion and of tension: this sum is the one that the steps below leave as it is."""
    motion = jnp.sum((now - before) ** 2)
    tension = sum(jnp.sum(a * b) for a, b in zip(differences(before), differences(now)))
    return 0.5 * (motion + COURANT**2 * tension)


def packet(x):
    """Waves of one length, with a beginning and an end."""
    return jnp.exp(-(((x - 0.22) / 0.06) ** 2)) * jnp.cos(2 * jnp.pi * x / 0.06)


def step(state, _, free):
    before, now = state
    after = free * (2 * now - before + COURANT**2 * bend(now))
    return (now, after), energy(now, after)


@jax.jit(static_argnums=2)
def run(before, now, steps, free):
    return lax.scan(lambda state, x: step(state, x, free), (before, now), length=steps)


def main(small: bool, picture: str) -> None:
    size = 80 if small else 320
    rows, columns = (jnp.mgrid[0:size, 0:size] + 0.5) / size

    # The wall is a column of points, with two gaps; `free` is 0 where nothing moves.
    gap = (jnp.abs(rows - 0.4) < 0.04) | (jnp.abs(rows - 0.6) < 0.04)
    free = jnp.where((jnp.abs(columns - 0.45) < 0.01) & ~gap, 0.0, 1.0)

    # Where the waves were a step ago decides where they go: here to the right.
    before, now = free * packet(columns + COURANT / size), free * packet(columns)
    steps = int(0.65 * size / COURANT)
    (_, wave), energies = run(before, now, steps, free)

    drawn = Picture("A wave behind two slits", "", "", square=True)
    bound = float(jnp.max(jnp.abs(wave))) * 0.3  # louder, so that the faint is seen
    shown = jnp.where(free == 0, bound, jnp.clip(wave, -bound, bound))
    drawn.field(shown.at[0, 0].set(-bound))
    drawn.save(picture)
    behind = columns > 0.47
    report(
        picture,
        steps=steps,
        change_of_energy=float(jnp.max(jnp.abs(energies / energies[0] - 1))),
        share_behind_the_wall=float(jnp.sum(wave**2 * behind) / jnp.sum(wave**2)),
        asymmetry=float(jnp.max(jnp.abs(wave - wave[::-1]))),
    )


if __name__ == "__main__":
    main(*options(__doc__, "waves.svg"))

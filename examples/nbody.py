"""Three bodies chase each other along a figure of eight.

    python examples/nbody.py

Forces are the gradient of the energy, written once for any number of bodies. The leapfrog method
keeps the energy; `scan` makes the whole journey one loop of machine code. The orbit, which Moore
found and Chenciner and Montgomery proved to exist, closes after a time of 6.3259."""

from pictures import Picture
from terminal import options, report

import calque as jax
import calque.numpy as jnp
from calque import lax

PERIOD = 6.32591398


def potential(places):
    """The energy of gravity between all pairs of bodies, each of mass 1."""
    apart = places[:, None] - places[None, :]
    square = jnp.sum(apart**2, axis=-1)
    one = jnp.eye(len(places), dtype=bool)
    # A body does not pull itself. The inner `where` keeps 1/0 out of the gradient, too.
    pulls = jnp.where(one, 0.0, 1 / jnp.sqrt(jnp.where(one, 1.0, square)))
    return -0.5 * jnp.sum(pulls)


def energy(places, speeds):
    return 0.5 * jnp.sum(speeds**2) + potential(places)


def pull(places):
    return -jax.grad(potential)(places)


def leap(state, _, dt):
    """Half a push, a step, half a push."""
    places, speeds = state
    speeds = speeds + 0.5 * dt * pull(places)
    places = places + dt * speeds
    speeds = speeds + 0.5 * dt * pull(places)
    return (places, speeds), (places, energy(places, speeds))


@jax.jit(static_argnums=2)
def journey(places, speeds, steps, dt):
    """Where the bodies are after each step, and the energy."""
    return lax.scan(lambda state, x: leap(state, x, dt), (places, speeds), length=steps)


def main(small: bool, picture: str) -> None:
    steps = 2000 if small else 20_000
    x, y = 0.97000436, -0.24308753
    places = jnp.array([[x, y], [-x, -y], [0.0, 0.0]])
    vx, vy = -0.93240737, -0.86473146
    speeds = jnp.array([[-vx / 2, -vy / 2], [-vx / 2, -vy / 2], [vx, vy]])

    (end, end_speeds), (path, energies) = journey(places, speeds, steps, PERIOD / steps)

    start = energy(places, speeds)
    drawn = Picture("Three bodies on a figure of eight", "x", "y", square=True)
    third = steps // 3
    for body in range(3):
        drawn.line(*path[:third, body].T, f"body {body + 1}, a third of its way")
    drawn.points(*places.T)
    drawn.save(picture)
    report(
        picture,
        steps=steps,
        energy=float(start),
        change_of_energy=float(jnp.max(jnp.abs(energies / start - 1))),
        momentum=float(jnp.max(jnp.abs(end_speeds.sum(0)))),
        distance_from_the_start_after_a_period=float(jnp.max(jnp.abs(end - places))),
        distance_after_half_a_period=float(jnp.max(jnp.abs(path[steps // 2] - places))),
    )


if __name__ == "__main__":
    main(*options(__doc__, "nbody.svg"))

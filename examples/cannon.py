"""Aim a ball through thick air: gradients through a loop that ends when the ball lands.

    python examples/cannon.py

The flight is an ordinary Python `while` whose condition is a traced value. `jit` converts it into a
loop of machine code; how often it runs is found while it runs, and reverse mode goes back through
it. The landing place depends smoothly on the aim, so that Newton's method finds the aim."""

import functools

from pictures import Picture
from terminal import Progress, options, report

import calque as jax
import calque.numpy as jnp

DRAG, GRAVITY, STEP = 0.02, 9.81, 0.01
compiled = functools.partial(jax.jit, control_flow="convert")


def acceleration(speed):
    return jnp.array([0.0, -GRAVITY]) - DRAG * jnp.linalg.norm(speed) * speed


def launch(aim):
    """Place and speed of a ball that leaves with a speed at an angle."""
    return jnp.array([0.0, 0.0]), aim[0] * jnp.stack([jnp.cos(aim[1]), jnp.sin(aim[1])])


@compiled
def landing(aim):
    """How far the ball gets, and how long it flies."""
    place, speed = launch(aim)
    before, time = place, 0.0
    while place[1] >= 0:
        before = place
        middle = speed + 0.5 * STEP * acceleration(speed)
        place = place + STEP * middle
        speed = speed + STEP * acceleration(middle)
        time = time + STEP
    # Where the line between the last two places meets the ground.
    share = before[1] / (before[1] - place[1])
    return before[0] + share * (place[0] - before[0]), time - (1 - share) * STEP


@compiled
def flight(aim, times):
    """The places at equal times, for the picture."""

    def move(state, _):
        place, speed = state
        middle = speed + 0.5 * STEP * acceleration(speed)
        return (place + STEP * middle, speed + STEP * acceleration(middle)), place

    return jax.lax.scan(move, launch(aim), times)[1]


def miss(aim, target):
    """What is to be zero: off the target, and off the time of the flight."""
    return jnp.stack(landing(aim)) - target


@compiled
def better(aim, target):
    """Newton's method for two equations in two unknowns."""
    return aim - jnp.linalg.solve(jax.jacrev(miss)(aim, target), miss(aim, target))


def main(small: bool, picture: str) -> None:
    target = jnp.array([40.0, 4.0])  # metres away, seconds later
    aim = jnp.array([25.0, 0.8])
    aims, misses = [aim], [float(jnp.linalg.norm(miss(aim, target)))]
    for _ in (bar := Progress(8 if small else 12, "aiming")):
        aim = better(aim, target)
        aims.append(aim)
        misses.append(float(jnp.linalg.norm(miss(aim, target))))
        bar.note = f"off by {misses[-1]:.3g}"

    drawn = Picture("Balls through thick air, to land at 40 m after 4 s", "metres", "height")
    for i in (0, 1, 2, len(aims) - 1):
        path = flight(aims[i], jnp.zeros(600))
        path = path[path[:, 1] >= 0]
        drawn.line(*path.T, f"try {i + 1}: off by {misses[i]:.2g}")
    drawn.save(picture)
    nudge = jnp.array([0.05, 0.0])
    # The gradient through the loop, beside a difference of two flights.
    slope = jax.grad(lambda aim: landing(aim)[0])(aim)[0]
    difference = (landing(aim + nudge)[0] - landing(aim - nudge)[0]) / 0.1
    report(
        picture,
        off_at_first=misses[0],
        off_at_the_end=misses[-1],
        speed=float(aim[0]),
        angle=float(jnp.rad2deg(aim[1])),
        gradient_to_the_difference=float(slope / difference),
    )


if __name__ == "__main__":
    main(*options(__doc__, "cannon.svg"))

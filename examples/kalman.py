"""A Kalman filter follows a moving thing, and learns how noisy the world is.

    python examples/kalman.py

The filter is a `scan` over the measurements. It also gives how likely they are, and the gradient of
that likelihood, through all steps of the filter, finds the two levels of noise."""

import numpy as np
from pictures import Picture
from terminal import Progress, options, report

import calque as jax
import calque.numpy as jnp
from calque import lax

STEP = 0.1
MOVE = jnp.array([[1.0, STEP], [0.0, 1.0]])  # place and speed, a moment later
LOOK = jnp.array([1.0, 0.0])  # only the place is measured
PUSH = jnp.array([[STEP**3 / 3, STEP**2 / 2], [STEP**2 / 2, STEP]])  # what random pushes add up to


def measurements(steps):
    """Where a thing was that was pushed at random, and where it was seen."""
    rng = np.random.default_rng(0)
    speed = np.cumsum(rng.normal(0, 1.5 * STEP**0.5, steps))
    place = np.cumsum(speed * STEP)
    return place.astype(np.float32), (place + rng.normal(0, 0.5, steps)).astype(np.float32)


@jax.jit
def follow(noise, seen):
    """The places by the filter, and the logarithm of how likely the measurements are."""
    push, blur = jnp.exp(noise["push"]), jnp.exp(noise["blur"])

    def step(state, y):
        mean, covariance = state
        mean, covariance = MOVE @ mean, MOVE @ covariance @ MOVE.T + push**2 * PUSH
        surprise = y - LOOK @ mean
        spread = LOOK @ covariance @ LOOK + blur**2
        gain = covariance @ LOOK / spread
        mean = mean + gain * surprise
        covariance = covariance - jnp.outer(gain, LOOK @ covariance)
        likely = -0.5 * (surprise**2 / spread + jnp.log(2 * jnp.pi * spread))
        return (mean, covariance), (mean[0], likely)

    start = jnp.zeros(2), 10 * jnp.eye(2)
    _, (places, likely) = lax.scan(step, start, seen)
    return places, jnp.sum(likely)


@jax.jit
def learn(noise, seen):
    """Noise that explains the measurements better, and how likely they were before."""
    value, slope = jax.value_and_grad(lambda noise: follow(noise, seen)[1] / len(seen))(noise)
    return jax.tree.map(lambda n, s: n + 0.5 * s, noise, slope), value


def error(places, truth):
    return float(jnp.sqrt(jnp.mean((places - truth) ** 2)))


def main(small: bool, picture: str) -> None:
    truth, seen = measurements(400 if small else 2000)
    noise = {"push": jnp.log(0.2), "blur": jnp.log(3.0)}
    first, _ = follow(noise, seen)
    for _ in (bar := Progress(150 if small else 500, "learning")):
        noise, value = learn(noise, seen)
        bar.note = f"log likelihood {float(value):.4f} a measurement"
    places, _ = follow(noise, seen)

    drawn = Picture("A thing that is pushed at random", "seconds", "place")
    shown = np.arange(100)
    drawn.points(shown * STEP, seen[:100], "seen")
    drawn.line(shown * STEP, truth[:100], "truth")
    drawn.line(shown * STEP, places[:100], "filter")
    drawn.save(picture)
    report(
        picture,
        error_of_the_measurements=error(seen, truth),
        error_before_learning=error(first, truth),
        error_of_the_filter=error(places, truth),
        push=float(jnp.exp(noise["push"])),
        blur=float(jnp.exp(noise["blur"])),
    )


if __name__ == "__main__":
    main(*options(__doc__, "kalman.svg"))

"""Three heaps of points, and which is which: expectation maximisation.

    python examples/mixture.py

Each round says how much each heap owns of each point, then where the heaps are and how they lie.
All is written for one heap and one point; `vmap` makes it for all. The likelihood never falls."""

import numpy as np
from pictures import Picture
from terminal import Progress, options, report

import calque as jax
import calque.numpy as jnp

CENTRES = np.array([[0.0, 0.0], [4.0, 1.0], [1.0, 4.0]], np.float32)
SHAPES = np.array([[[1, 0.6], [0.6, 1]], [[0.4, 0], [0, 2]], [[2, -0.5], [-0.5, 0.4]]], np.float32)


def log_density(x, mean, covariance):
    """Of one point in one heap."""
    off = x - mean
    _, log_volume = jnp.linalg.slogdet(2 * jnp.pi * covariance)
    return -0.5 * (off @ jnp.linalg.solve(covariance, off) + log_volume)


def expect(heaps, points):
    """What each heap owns of each point, and the logarithm of how likely the points are."""
    weights, means, covariances = heaps
    of_heaps = jax.vmap(log_density, (None, 0, 0))  # a point, all heaps
    logs = jax.vmap(of_heaps, (0, None, None))(points, means, covariances) + jnp.log(weights)
    return jax.nn.softmax(logs, axis=1), jnp.mean(jax.nn.logsumexp(logs, axis=1))


def maximise(owned, points):
    """The heaps that suit what they own best."""

    def heap(share):
        mean = share @ points / jnp.sum(share)
        off = points - mean
        return jnp.mean(share), mean, (share * off.T) @ off / jnp.sum(share) + 1e-6 * jnp.eye(2)

    return jax.vmap(heap, in_axes=1)(owned)


@jax.jit
def round_of_em(heaps, points):
    owned, likelihood = expect(heaps, points)
    return maximise(owned, points), likelihood


def main(small: bool, picture: str) -> None:
    rng = np.random.default_rng(0)
    sizes = (300, 200, 250) if small else (3000, 2000, 2500)
    heaps = [
        rng.multivariate_normal(centre, shape, size)
        for centre, shape, size in zip(CENTRES, SHAPES, sizes)
    ]
    points = jnp.asarray(np.concatenate(heaps), jnp.float32)
    owner = np.repeat(np.arange(3), sizes)

    state = (
        jnp.full(3, 1 / 3),
        jnp.array([[1.0, 1.0], [2.0, 1.0], [1.0, 2.0]]),
        jnp.stack([jnp.eye(2)] * 3),
    )
    likelihoods = []
    for _ in (bar := Progress(60, "sorting")):
        state, likelihood = round_of_em(state, points)
        likelihoods.append(float(likelihood))
        bar.note = f"log likelihood {likelihoods[-1]:.4f} a point"
    owned, _ = expect(state, points)
    found = np.asarray(jnp.argmax(owned, axis=1))

    drawn = Picture("Three heaps of points, as they were found", "x", "y", square=True)
    for heap in range(3):
        drawn.points(*points[found == heap].T, f"heap {heap + 1}")
    drawn.points(*state[1].T, "centres")
    drawn.save(picture)
    report(
        picture,
        log_likelihood_at_first=likelihoods[0],
        log_likelihood=likelihoods[-1],
        worst_change_of_the_likelihood=float(np.diff(likelihoods).min()),
        centres_off=float(jnp.max(jnp.linalg.norm(state[1] - CENTRES, axis=1))),
        sorted_rightly=float((found == owner).mean()),
    )


if __name__ == "__main__":
    main(*options(__doc__, "mixture.svg"))

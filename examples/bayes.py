"""Bayesian regression: what the data say about a curve, by Hamiltonian Monte Carlo.

    python examples/bayes.py

Only the logarithm of the posterior is written down; its gradient drives the sampler, and `vmap`
runs many chains side by side. With Gaussian noise and priors the posterior is known in closed form,
so that the samples can be compared with it."""

import numpy as np
from pictures import Picture
from terminal import options, report

import calque as jax
import calque.numpy as jnp
from calque import lax

NOISE, PRIOR, POWERS = 0.3, 2.0, 4
TRUTH = np.array([0.5, -1.0, 0.0, 1.2], np.float32)


def columns(x):
    return x[:, None] ** jnp.arange(POWERS)


def log_posterior(weights, x, y):
    """Up to a constant: how well the curve fits, and how likely its weights were before."""
    off = (y - columns(x) @ weights) / NOISE
    return -0.5 * jnp.sum(off**2) - 0.5 * jnp.sum((weights / PRIOR) ** 2)


def hmc_step(key, weights, log_density, size, leaps):
    """Push the weights off in a random direction, follow the slope, accept or stay."""
    key_push, key_accept = jax.random.split(key)
    slope = jax.grad(log_density)
    push = jax.random.normal(key_push, weights.shape)

    def leap(state, _):
        place, speed = state
        speed = speed + 0.5 * size * slope(place)
        place = place + size * speed
        return (place, speed + 0.5 * size * slope(place)), None

    (place, speed), _ = lax.scan(leap, (weights, push), length=leaps)
    gain = log_density(place) - 0.5 * speed @ speed - log_density(weights) + 0.5 * push @ push
    accept = jnp.log(jax.random.uniform(key_accept)) < gain
    return jnp.where(accept, place, weights), accept


@jax.jit(static_argnums=3)
def sample(key, x, y, count):
    """One chain from a random start: `count` samples, and how many moves were accepted."""
    key, key_start = jax.random.split(key)

    def step(weights, key):
        weights, accept = hmc_step(key, weights, lambda w: log_posterior(w, x, y), 0.05, 20)
        return weights, (weights, accept)

    start = jax.random.normal(key_start, (POWERS,))
    return lax.scan(step, start, jax.random.split(key, count))[1]


def exact(x, y):
    """Mean and covariance of the posterior, by algebra."""
    a = columns(x)
    covariance = jnp.linalg.inv(a.T @ a / NOISE**2 + jnp.eye(POWERS) / PRIOR**2)
    return covariance @ a.T @ y / NOISE**2, covariance


def main(small: bool, picture: str) -> None:
    key_x, key_noise, key_chains = jax.random.split(jax.random.key(3), 3)
    x = jax.random.uniform(key_x, (30,), minval=-1.5, maxval=1.0)
    y = columns(x) @ TRUTH + NOISE * jax.random.normal(key_noise, (30,))

    chains, count = (8, 300) if small else (16, 2000)
    keys = jax.random.split(key_chains, chains)
    samples, accepted = jax.vmap(lambda key: sample(key, x, y, count))(keys)
    kept = samples[:, count // 5 :].reshape(-1, POWERS)  # the first have not forgotten the start
    mean, covariance = exact(x, y)
    spread = jnp.sqrt(jnp.diag(covariance))

    drawn = Picture("Curves that the data allow: the middle, and nine of ten", "x", "y")
    drawn.points(x, y, "data")
    places = jnp.linspace(-1.7, 1.7, 80)
    low, middle, high = jnp.quantile(columns(places) @ kept.T, jnp.array([0.05, 0.5, 0.95]), axis=1)
    for curve, label in ((middle, "median"), (low, "5 %"), (high, "95 %")):
        drawn.line(places, curve, label)
    drawn.save(picture)
    report(
        picture,
        accepted=float(jnp.mean(accepted)),
        mean_off_in_standard_deviations=float(jnp.max(jnp.abs(kept.mean(0) - mean) / spread)),
        spread_to_the_exact_one=float(jnp.max(jnp.abs(jnp.std(kept, axis=0) / spread - 1))),
        truth_off_in_standard_deviations=float(jnp.max(jnp.abs(TRUTH - kept.mean(0)) / spread)),
    )


if __name__ == "__main__":
    main(*options(__doc__, "bayes.svg"))

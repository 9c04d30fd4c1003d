"""Arrays whose size the program finds while it runs: primes, and how they thin out.

    python examples/primes.py

A sieve under `jit`: `nonzero`, a mask as an index, sizes that depend on values. Other compilers of
array programs refuse these or want a bound; here the compiled program finds the sizes itself. A
second size of the argument compiles nothing anew."""

import math

from pictures import Picture
from terminal import Progress, options, report

import calque as jax
import calque.numpy as jnp


@jax.jit
def primes(small_primes, numbers):
    """Those of `numbers` that no smaller prime divides."""
    divided = jnp.any(numbers % small_primes[:, None] == 0, axis=0)
    return numbers[~divided]


@jax.jit
def twins(found):
    """The primes that another one follows at a distance of two."""
    return found[:-1][jnp.diff(found) == 2]


def main(small: bool, picture: str) -> None:
    limit = 10_000 if small else 1_000_000
    found, known = jnp.array([2, 3]), 4  # all primes below 4
    rounds = math.ceil(math.log2(math.log(limit, known)))
    for _ in (bar := Progress(rounds, "sieving")):
        # Primes below n divide all that is not prime below n * n.
        end = min(known * known, limit)
        chunks = [found]
        for start in range(known, end, 1 << 16):
            numbers = jnp.arange(start, min(start + (1 << 16), end))
            chunks.append(primes(found[found * found < end], numbers))
        found, known = jnp.concatenate(chunks), end
        bar.note = f"{len(found)} primes below {known}"
    pairs = twins(found)

    drawn = Picture("Primes up to n, beside n / log n", "n", "how many")
    places = jnp.linspace(10, limit, 200)
    drawn.line(places, jnp.searchsorted(found, places), "primes")
    drawn.line(places, places / jnp.log(places), "n / log n")
    drawn.line(places, jnp.searchsorted(pairs, places), "twins")
    drawn.save(picture)
    report(picture, primes=len(found), twins=len(pairs), greatest=int(found[-1]))


if __name__ == "__main__":
    main(*options(__doc__, "primes.svg"))

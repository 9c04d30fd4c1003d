"""calque.scipy.cluster.vq: observations and the codes nearest to them."""

from calque import numpy as jnp
from calque.core import guards as _guards
from calque.core.arrays import Array
from calque.core.types import ArrayLike
from calque.numpy.promotion import arrays, promote_inexact

__all__ = ["vq"]


def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """The nearest of given vectors, for each observation.

    Args:
        obs: observations, the rows of a matrix; a vector is observations of one number.
        code_book: the vectors to choose from, rows too.
        check_finite: has no effect: nan passes through.
    Returns:
        A pair: the number of the nearest vector, and the distance to it.

    >>> scipy.cluster.vq.vq(jnp.array([[0.9, 0.0]]), jnp.array([[0.0, 0.0], [1.0, 0.0]]))[0]
    Array([1], dtype=int32)"""
    obs, code_book = (
        jnp.asarray(x) for x in promote_inexact(*arrays("scipy.cluster.vq.vq", obs, code_book))
    )
    if obs.ndim != code_book.ndim:
        raise ValueError("Observation and code_book should have the same rank")
    if obs.ndim == 1:
        obs, code_book = obs[:, None], code_book[:, None]
    if obs.ndim != 2:
        raise ValueError("ndim different than 1 or 2 are not supported")
    distances = jnp.linalg.norm(obs[:, None, :] - code_book[None, :, :], axis=-1)
    code = jnp.argmin(distances, axis=-1)
    return code, jnp.take_along_axis(distances, code[:, None], -1)[:, 0]


_guards.guard_public(globals())

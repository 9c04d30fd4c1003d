"""calque.scipy.cluster.vq: observations and the codes nearest to them."""

from calque import numpy as jnp
from calque.core.arrays import Array
from calque.core.types import ArrayLike
from calque.numpy.promotion import arrays, promote_inexact

__all__ = ["vq"]


def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """For each observation (row of `obs`) the number of the nearest row of `code_book`, and how far
    it is. Vectors stand for observations of one number. Values are not checked: nan gives nan,
    whatever `check_finite`.

    >>> import calque.scipy.cluster.vq as cluster
    >>> cluster.vq(jnp.array([0.5, 4.0]), jnp.array([0.0, 3.0]))
    (Array([0, 1], dtype=int32), Array([0.5, 1. ], dtype=float32))"""
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

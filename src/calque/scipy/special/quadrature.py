"""Integrals over an interval or a half line as weighted sums, for special functions that are
defined by them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from calque import numpy as jnp
from calque.core.arrays import Array
from calque.core.dtypes import real_part
from calque.core.trace import typeof
from calque.machine.caches import memo
from calque.scipy.special.gammas import full


@memo("rules of Gauss and Legendre", 64)
def unit_interval(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss's nodes and weights for integrals from 0 to 1."""
    nodes, weights = np.polynomial.legendre.leggauss(n)
    return (nodes + 1) / 2, weights / 2


@memo("rules of Gauss and Laguerre", 64)
def half_line(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss's nodes and weights for integrals of exp(-u) f(u) from 0 on, without those that count
    for nothing."""
    nodes, weights = np.polynomial.laguerre.laggauss(n)
    keep = weights > 1e-19
    return nodes[keep], weights[keep] / weights.sum()


def integral(f: Callable[[Any], Any], rule: tuple[np.ndarray, np.ndarray], like: Array) -> Array:
    """The integral of `f`, which takes the nodes as one more, last axis of `like`."""
    nodes, weights = (v.astype(typeof(like).dtype) for v in rule)
    return jnp.sum(f(nodes) * weights, axis=-1)


def real_operands(name: str, *args: Any) -> tuple[list[Any], Any]:
    """Operands as floats of one shape, of single precision at least, and the dtype that the result
    shall have."""
    xs = full(name, *args)
    dtype = typeof(xs[0]).dtype
    return [x.astype("float32" if real_part(dtype).itemsize < 4 else dtype) for x in xs], dtype

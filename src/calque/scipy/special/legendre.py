"""Tables of the associated Legendre functions, by the recurrence that goes up in the degree."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from calque import lax
from calque import numpy as jnp
from calque.core.arrays import Array
from calque.core.dims import whole
from calque.core.trace import typeof
from calque.core.types import ArrayLike
from calque.numpy.promotion import array_of
from calque.transforms.functions.autodiff import jvp

__all__ = ["lpmn", "lpmn_values"]


def lpmn(m: int, n: int, z: ArrayLike) -> tuple[Array, Array]:
    """The associated Legendre functions of the first kind and their derivatives.

    Args:
        m: the last order.
        n: the last degree.
        z: a vector of float32 or float64, between -1 and 1.
    Returns:
        A pair of arrays of shape `(m + 1, n + 1, len(z))`: the values, and their derivatives in
        `z`. Both are 0 where the order is above the degree.
    Differs from SciPy:
        `z` is a vector and the results have an axis for it.

    >>> values, slopes = special.lpmn(1, 1, jnp.array([0.5]))
    >>> [round(float(v), 4) for v in values[:, :, 0].ravel()]
    [1.0, 0.5, 0.0, -0.866]"""
    m, n, z = _checked("lpmn", m, n, z)
    sine, shares = _sine(z), _double_factorials(m)
    diagonal, slopes = _powers(sine, shares), _slopes(z, sine, shares)
    values, derivatives = jvp(
        lambda d, x: _up(d, x, *_plain(m, n)), (diagonal, z), (slopes, jnp.ones_like(z))
    )
    return values, _at_the_ends(derivatives, z)


def lpmn_values(m: int, n: int, z: ArrayLike, is_normalized: bool) -> Array:
    """The associated Legendre functions of the first kind.

    Args:
        m: the last order.
        n: the last degree.
        z: a vector of float32 or float64, between -1 and 1.
        is_normalized: whether they are scaled as parts of spherical harmonics, whose squares have
            the integral 1 over the sphere. High orders overflow without.
    Returns:
        An array of shape `(m + 1, n + 1, len(z))`, 0 where the order is above the degree.
    Differs from SciPy:
        SciPy has no such function.

    >>> float(special.lpmn_values(0, 2, jnp.array([0.0]), False)[0, 2, 0])
    -0.5"""
    m, n, z = _checked("lpmn_values", m, n, z)
    shares = _normal_shares(m) if is_normalized else _double_factorials(m)
    tables = _normal(m, n) if is_normalized else _plain(m, n)
    return _up(_powers(_sine(z), shares), z, *tables)


def _checked(name: str, m: Any, n: Any, z: Any) -> tuple[int, int, Any]:
    m, n, z = whole(m, "m"), whole(n, "n"), array_of(name, z)
    aval = typeof(z)
    if aval.dtype not in (np.float32, np.float64):
        raise TypeError(f"{name}: z must be of float32 or float64, got dtype {aval.dtype}")
    if len(aval.shape) != 1:
        raise ValueError(f"{name}: z must be a vector, got shape {aval.shape}")
    if m < 0 or n < 0:
        raise ValueError(f"{name}: the order and the degree begin at 0, got m={m} and n={n}")
    return m, n, z


# ---------------------------------------------------------------- order = degree


def _sine(z: Any) -> Any:
    return jnp.sqrt((1 - z) * (1 + z))


def _double_factorials(m: int) -> Any:
    """`(-1)^k (2k - 1)!!` for each order k."""
    return np.cumprod([1.0, *(-(2.0 * k - 1) for k in range(1, m + 1))])


def _normal_shares(m: int) -> Any:
    factors = (-math.sqrt((2 * k + 1) / (2 * k)) for k in range(1, m + 1))
    return np.cumprod([0.5 / math.sqrt(math.pi), *factors])


def _powers(sine: Any, shares: Any) -> Any:
    """`shares[k] * sine ** k`, a row for each order."""
    dtype = typeof(sine).dtype
    rows = [jnp.ones_like(sine)]
    for _ in shares[1:]:
        rows.append(rows[-1] * sine)
    return jnp.stack(rows) * shares.astype(dtype)[:, None]


def _slopes(z: Any, sine: Any, shares: Any) -> Any:
    """The derivatives of `_powers` in z: without the sine in a denominator from order 2 on, since
    it is 0 at the ends."""
    rows = [jnp.zeros_like(z)]
    if len(shares) > 1:
        rows.append(-z / sine)
    power = jnp.ones_like(z)
    for k in range(2, len(shares)):
        rows.append(-k * z * power)
        power = power * sine
    return jnp.stack(rows) * shares.astype(typeof(z).dtype)[:, None]


def _at_the_ends(slopes: Any, z: Any) -> Any:
    """Functions of order 1 begin with a root: at both ends they are as steep as can be."""
    if slopes.shape[0] == 1:
        return slopes
    degrees = np.arange(slopes.shape[1])[:, None]
    steep = np.where(degrees > 0, np.inf, 0.0).astype(typeof(slopes).dtype)
    left = np.where(degrees % 2, -steep, steep)
    row = jnp.where(jnp.abs(z) == 1, jnp.where(z < 0, left, steep), slopes[1])
    return slopes.at[1].set(row)


# ---------------------------------------------------------------- up in the degree


def _plain(m: int, n: int) -> tuple[Any, Any]:
    """What the last two degrees are multiplied by, for each degree and order; 0 where the order is
    not below the degree."""
    degree, order = np.arange(n + 1.0)[:, None], np.arange(m + 1.0)
    below = degree > order
    gap = np.where(below, degree - order, 1)
    return (
        np.where(below, (2 * degree - 1) / gap, 0),
        np.where(below, (degree + order - 1) / gap, 0),
    )


def _normal(m: int, n: int) -> tuple[Any, Any]:
    """`_plain` for normalised functions."""
    degree, order = np.arange(n + 1.0)[:, None], np.arange(m + 1.0)
    below = degree > order
    gap = np.where(below, degree**2 - order**2, 1)
    scale = np.sqrt(np.where(below, (4 * degree**2 - 1) / gap, 0))
    before = np.where(below, (degree - 1) ** 2 - order**2, 0) / (4 * (degree - 1) ** 2 - 1)
    return scale, scale * np.sqrt(np.maximum(before, 0))


def _up(diagonal: Any, z: Any, last: Any, before: Any) -> Any:
    """The table, from its diagonal: each degree is made of the two below."""
    dtype = typeof(z).dtype
    orders, degrees = last.shape[1], last.shape[0]
    new = (np.arange(degrees)[:, None] == np.arange(orders)).astype(dtype)

    def following(state: Any, tables: Any) -> Any:
        high, low = state
        a, b, fresh = (t[:, None] for t in tables)
        value = a * (z * high) - b * low + fresh * diagonal
        return (value, high), value

    none = jnp.zeros_like(diagonal)
    tables = (last.astype(dtype), before.astype(dtype), new)
    _, table = lax.scan(following, (none, none), tables)
    return jnp.swapaxes(table, 0, 1)

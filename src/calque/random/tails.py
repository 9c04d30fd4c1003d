"""The tails of the normal distribution, where erf is too near to 1 to tell numbers apart."""

from typing import Any, Final

import numpy as np

from calque import numpy as jnp
from calque.core.arrays import all_concrete
from calque.transforms.functions.branches import cond

# beyond this, differences of erf have less than some thousand values in the dtype
_BEGIN: Final = {2: 3.0, 4: 4.0, 8: 7.5}  # by the bytes of the dtype
_TERMS: Final = 16  # enough for all digits of float64 at 7.5, of float32 at 3
_STEPS: Final = 14


def in_tails(lower: Any, upper: Any, dtype: Any) -> Any:
    """Where both ends lie in one tail of numbers of this dtype; None where it is known that none
    do."""
    begin = _BEGIN[dtype.itemsize]
    known = all_concrete((lower, upper))
    lower, upper = (np.asarray(v) if known else jnp.asarray(v) for v in (lower, upper))
    tail = ((lower > begin) | (upper < -begin)) & (lower < upper)
    return None if known and not np.any(tail) else tail


def with_tails(out: Any, uniform: Any, tail: Any, lower: Any, upper: Any) -> Any:
    """`out`, numbers between two ends, with those that the `uniform` numbers stand for where both
    ends lie in a `tail`."""

    def far(out: Any) -> Any:
        single = jnp.promote_types(out.dtype, np.float32)
        begin, right = _BEGIN[out.dtype.itemsize], lower > 0
        near, end = jnp.where(right, lower, -upper), jnp.where(right, upper, -lower)
        near, end = jnp.where(tail, near, begin), jnp.where(tail, end, np.inf)
        x = _within(uniform.astype(single), near.astype(single), end.astype(single))
        return jnp.where(tail, jnp.where(right, x, -x).astype(out.dtype), out)

    return cond(jnp.any(tail), far, lambda out: out, out)


def _within(u: Any, near: Any, end: Any) -> Any:
    """The number x >= near for which a part u of what lies between `near` and `end` is nearer. With
    x = near + y, the mass beyond x is that beyond `near` times exp(-y (near + y / 2)) times the
    quotient of their Mills ratios, which y hardly changes: so each step gains digits."""
    ratio = _mills(near)
    endless = end == np.inf
    end = jnp.where(endless, near, end)
    beyond = jnp.log(_mills(end) / ratio) - (end - near) * (end / 2 + near / 2)
    beyond = jnp.where(endless, -np.inf, beyond)
    depth = -jnp.log1p(u * jnp.expm1(beyond))
    y = jnp.zeros_like(depth + near)
    for _ in range(_STEPS):
        e = jnp.maximum(depth + jnp.log(_mills(near + y) / ratio), 0) / near
        y = 2 * e / (1 + jnp.sqrt(1 + 2 * e / near))
    return near + y


def _mills(x: Any) -> Any:
    """The mass beyond x through the density at x, by its continued fraction."""
    below = x
    for k in range(_TERMS, 0, -1):
        below = x + k / below
    return 1 / below

"""Softmax and its relatives, standardisation: functions that look along axes."""

import math
from typing import Any

import numpy as np

from calque.core.arrays import to_array
from calque.core.dtypes import is_complex
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.nn.functions import inexact, operand
from calque.numpy import reductions
from calque.numpy.promotion import broadcast_to, canonical_axes, check_arraylike, promote_inexact
from calque.numpy.shaping import where as where_
from calque.numpy.ufuncs import UFUNCS

__all__ = ["log_softmax", "logmeanexp", "logsumexp", "softmax", "standardize"]


def _largest(x: Any, axis: Any, where: Any) -> Any:
    return do.stop_gradient(reductions.max(x, axis, keepdims=True, where=where, initial=-np.inf))


def softmax(x: Any, axis: Any = -1, where: Any = None) -> Any:
    """exp(x) divided by its sum over axes; 0 where `where` is false.

    >>> import calque.numpy as jnp, calque.nn as nn
    >>> nn.softmax(jnp.zeros(4))
    Array([0.25, 0.25, 0.25, 0.25], dtype=float32)"""
    x = inexact("softmax", x)
    shifted = x - _largest(x, axis, where)
    if where is not None:  # what is left out must not spoil the derivative by an overflow
        shifted = where_(where, shifted, -np.inf)
    e = UFUNCS["exp"](shifted)
    out = e / reductions.sum(e, axis, keepdims=True, where=where)
    return out if where is None else where_(where, out, 0)


def log_softmax(x: Any, axis: Any = -1, where: Any = None) -> Any:
    """The logarithm of softmax, without overflow; -inf where `where` is false.

    >>> import calque.numpy as jnp, calque.nn as nn
    >>> nn.log_softmax(jnp.zeros(1))
    Array([0.], dtype=float32)"""
    x = inexact("log_softmax", x)
    shifted = x - _largest(x, axis, where)
    if where is not None:
        shifted = where_(where, shifted, -np.inf)
    total = reductions.sum(UFUNCS["exp"](shifted), axis, keepdims=True, where=where)
    out = shifted - UFUNCS["log"](total)
    return out if where is None else where_(where, out, -np.inf)


def logsumexp(
    a: Any,
    axis: Any = None,
    b: Any = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: Any = None,
) -> Any:
    """log(sum(b * exp(a))) over axes, without overflow; with `return_sign`, of the modulus, and the
    sign.

    >>> import calque.numpy as jnp, calque.nn as nn
    >>> float(nn.logsumexp(jnp.array([1000.0, -1000.0])))
    1000.0"""
    check_arraylike("logsumexp", a)
    if b is not None:
        check_arraylike("logsumexp", b)
        a, b = promote_inexact(a, b)
        a = where_(UFUNCS["not_equal"](b, 0), a, -np.inf)
    else:
        (a,) = promote_inexact(a)
    axes = canonical_axes(axis, typeof(a).ndim)
    scale = do.real(a) if is_complex(typeof(a).dtype) else a
    top = reductions.max(scale, axes, keepdims=True, where=where, initial=-np.inf)
    top = do.stop_gradient(where_(UFUNCS["isfinite"](top), top, 0))
    terms = UFUNCS["exp"](UFUNCS["subtract"](a, top))
    if b is not None:
        terms = UFUNCS["multiply"](terms, b)
    total = reductions.sum(terms, axes, keepdims=keepdims, where=where)
    shift = top if keepdims else do.squeeze(top, dimensions=axes) if axes else top
    sign = UFUNCS["sign"](total)
    if return_sign or not is_complex(typeof(total).dtype):
        size = UFUNCS["absolute"](total)
        out = UFUNCS["add"](UFUNCS["log"](size), shift)
        if return_sign:
            return out, sign
        return out if b is None else where_(UFUNCS["less"](sign, 0), np.nan, out)
    return UFUNCS["add"](UFUNCS["log"](total), shift)


def logmeanexp(x: Any, axis: Any = None, where: Any = None, keepdims: bool = False) -> Any:
    """log(mean(exp(x))) over axes, without overflow.

    >>> import calque.numpy as jnp, calque.nn as nn
    >>> float(nn.logmeanexp(jnp.full(3, 50.0)))
    50.0"""
    x = operand("logmeanexp", x)
    out = logsumexp(x, axis=axis, where=where, keepdims=keepdims)
    shape = typeof(x).shape
    axes = canonical_axes(axis, len(shape))
    if where is None:
        n: Any = np.asarray(
            math.log(size) if (size := math.prod(shape[i] for i in axes)) else -np.inf
        )
        return UFUNCS["subtract"](out, n.astype(typeof(out).dtype))
    counted = reductions.sum(broadcast_to(to_array(where), shape), axes, keepdims=keepdims)
    return UFUNCS["subtract"](out, UFUNCS["log"](counted.astype(typeof(out).dtype)))


def standardize(
    x: Any,
    axis: Any = -1,
    mean: Any = None,
    variance: Any = None,
    epsilon: Any = 1e-5,
    where: Any = None,
    *,
    algorithm: str = "fast",
) -> Any:
    """x shifted and scaled to mean 0 and variance 1 over axes. The variance is mean(x^2) -
    mean(x)^2, or with `algorithm="stable"` mean((x - mean(x))^2).

    >>> import calque.numpy as jnp, calque.nn as nn
    >>> nn.standardize(jnp.array([1.0, 3.0]), epsilon=0)
    Array([-1.,  1.], dtype=float32)"""
    if algorithm not in ("fast", "stable"):
        raise ValueError(f"standardize: algorithm must be 'fast' or 'stable', got {algorithm!r}")
    x = inexact("standardize", x)
    if mean is None:
        mean = reductions.mean(x, axis, keepdims=True, where=where)
    if variance is None and algorithm == "stable":
        variance = reductions.mean(UFUNCS["square"](x - mean), axis, keepdims=True, where=where)
    elif variance is None:
        squares = reductions.mean(UFUNCS["square"](x), axis, keepdims=True, where=where)
        variance = UFUNCS["maximum"](squares - UFUNCS["square"](mean), 0)
    spread = UFUNCS["add"](variance, np.asarray(epsilon).astype(typeof(x).dtype))
    return UFUNCS["subtract"](x, mean) * do.rsqrt(spread)

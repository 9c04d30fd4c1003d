"""How the gamma distribution moves with its shape parameter, in float64: the meaning of
igamma_grad_a and random_gamma_grad.

With p the density and P the distribution function of Gamma(a), the derivative of P(a, x) by a is an
integral of (log t - digamma(a)) p(t), over [0, x] or, with the other sign, over [x, inf): the one
without cancellation is taken. In logarithmic variables both are smooth,

    log x < digamma(a):   G = -x/a integral of (log x - v/a - digamma(a)) exp(-x (exp(-v/a) - 1) -
    v) dv        t = x exp(-v/a) otherwise:            G =  x integral of (log x + w - digamma(a))
    exp(a w - x (exp(w) - 1)) dw            t = x exp(w)

where G = -(dP/da) / p(x) is the derivative by a of a random number drawn as x."""

from __future__ import annotations

import numpy as np

from calque.core.lazy import LazyModule

special = LazyModule("scipy.special")

_PANELS, _NODES = 24, 16
_DEPTH = 45.0  # integrands are followed until they have fallen by exp(-45)
_CHUNK = 2048


def sample_gradient(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The derivative by `a` of a number `x` drawn from Gamma(a)."""
    a, x = np.broadcast_arrays(a, x)
    out = np.full(a.shape, np.nan)
    inside = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
    flat_a, flat_x = a[inside], x[inside]
    pieces = [
        _ratio(flat_a[i : i + _CHUNK], flat_x[i : i + _CHUNK])
        for i in range(0, flat_a.size, _CHUNK)
    ]
    out[inside] = np.concatenate(pieces) if pieces else 0.0
    out[(x == 0) & (a > 0)] = 0.0
    return out


def distribution_gradient(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The derivative by `a` of the regularised lower incomplete gamma function."""
    a, x = np.broadcast_arrays(a, x)
    with np.errstate(all="ignore"):
        log_density = special.xlogy(a - 1, x) - x - special.gammaln(a)
        out = np.asarray(-sample_gradient(a, x) * np.exp(log_density))
    return np.where((a > 0) & ((x == 0) | np.isposinf(x)), 0.0, out)


def _ratio(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    lower = np.log(x) < special.digamma(a)
    out = np.empty(a.shape)
    out[lower] = _lower(a[lower], x[lower])
    out[~lower] = _upper(a[~lower], x[~lower])
    return out


def _lower(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    a, x = a[:, None], x[:, None]

    def fall(v: np.ndarray) -> np.ndarray:
        return x * np.expm1(-v / a) + v

    v, weight = _nodes(fall, a.shape)
    values = (np.log(x) - v / a - special.digamma(a)) * np.exp(-fall(v))
    return np.asarray(-x[:, 0] / a[:, 0] * np.sum(values * weight, axis=1))


def _upper(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    a, x = a[:, None], x[:, None]

    def fall(w: np.ndarray) -> np.ndarray:
        return x * np.expm1(w) - a * w

    w, weight = _nodes(fall, a.shape)
    values = (np.log(x) + w - special.digamma(a)) * np.exp(-fall(w))
    return np.asarray(x[:, 0] * np.sum(values * weight, axis=1))


def _nodes(fall: object, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes and weights in equal panels from 0 to where the convex function `fall`
    reaches _DEPTH."""
    assert callable(fall)
    end = np.full(shape, 1e-300)
    end = np.maximum(end, 1e-9)
    with np.errstate(over="ignore"):
        while np.any(short := fall(end) < _DEPTH):
            end = np.where(short, 2 * end, end)
        low = end / 2
        for _ in range(12):
            middle = (low + end) / 2
            short = fall(middle) < _DEPTH
            low, end = np.where(short, middle, low), np.where(short, end, middle)
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    unit = (np.arange(_PANELS)[:, None] + (nodes[None, :] + 1) / 2).ravel() / _PANELS
    return end * unit, end * np.tile(weights / (2 * _PANELS), _PANELS)

"""calque.experimental.ode: initial value problems, by the adaptive method of Dormand and Prince,
with the adjoint equation for gradients."""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from calque import lax
from calque import numpy as jnp
from calque.core import guards as _guards
from calque.core.arrays import Array
from calque.core.dtypes import PYTHON_SCALARS, float0, is_complex, is_float, is_inexact
from calque.core.types import ArrayLike
from calque.flatten_util import ravel_pytree
from calque.numpy.promotion import is_arraylike
from calque.numpy.promotion import promote_inexact as promote_dtypes_inexact
from calque.transforms.functions.autodiff import vjp
from calque.transforms.functions.custom_gradient import closure_convert
from calque.transforms.functions.custom_vjp import custom_vjp
from calque.transforms.functions.shapes import eval_shape
from calque.tree_util import tree_flatten, tree_leaves, tree_map, tree_unflatten

__all__ = [
    "abs2", "fit_4th_order_polynomial", "initial_step_size", "interp_fit_dopri", "map",
    "mean_error_ratio", "odeint", "optimal_step_size",
    "promote_dtypes_inexact", "ravel_first_arg", "ravel_pytree", "runge_kutta_step", "safe_map",
    "safe_zip", "tree_leaves", "tree_map", "zip",
]  # fmt: skip

_strict_zip = functools.partial(zip, strict=True)


def safe_zip(*args: Any) -> list[tuple[Any, ...]]:
    """Zips iterables that must be of one length.

    Args:
        *args: The iterables.

    Returns:
        A list of tuples.

    >>> from calque.experimental import ode
    >>> ode.safe_zip([1, 2], [3, 4])
    [(1, 3), (2, 4)]"""
    return list(_strict_zip(*args))


def safe_map(f: Callable[..., Any], *args: Any) -> list[Array]:
    """Maps a function over iterables that must be of one length.

    Args:
        f: The function.
        *args: The iterables.

    Returns:
        A list.

    >>> from calque.experimental import ode
    >>> ode.safe_map(max, [1, 4], [3, 2])
    [3, 4]"""
    return [f(*xs) for xs in _strict_zip(*args)]


map, zip = safe_map, safe_zip

# ---------------------------------------------------------- the tableau of Dormand and Prince, 5(4)

_NODES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
_STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_FIFTH = np.array([*_STAGES[-1], 0.0])
# the embedded method of order four, Shampine's
_FOURTH = np.array([1951 / 21600, 0, 22642 / 50085, 451 / 720, -12231 / 42400, 649 / 6300, 1 / 60])
# Shampine's value in the middle of the step
_MIDDLE = 0.5 * np.array([
    6025192743 / 30085553152, 0, 51252292925 / 65400821598, -2691868925 / 45128329728,
    187940372067 / 1594534317056,
    -1776094331 / 19743644256, 11237099 / 235043384,
])  # fmt: skip


def abs2(x: Array) -> Array:
    """Gives the square of the absolute value of each element.

    Args:
        x: An array.

    Returns:
        An array of real numbers.

    >>> from calque.experimental import ode
    >>> ode.abs2(jnp.array([3 + 4j]))
    Array([25.], dtype=float32)"""
    x = jnp.asarray(x)
    return x.real**2 + x.imag**2 if is_complex(x.dtype) else x**2


def _combined(weights: Any, k: Any) -> Any:
    return jnp.tensordot(np.asarray(weights).astype(k.dtype), k, 1)


def runge_kutta_step(
    func: Callable[..., Any], y0: Array, f0: Array, t0: Array, dt: Array
) -> tuple[Any, Any, Any, Any]:
    """Takes one step by the method of Dormand and Prince.

    Args:
        func: The derivative, a function of (y, t).
        y0: The state, a vector.
        f0: The derivative at the state.
        t0: The time.
        dt: The length of the step.

    Returns:
        (the new state, its derivative, an estimate of the error, the derivatives at the seven
        stages).

    >>> from calque.experimental import ode
    >>> y0, dt = jnp.ones(1), jnp.float32(0.1)
    >>> ode.runge_kutta_step(lambda y, t: -y, y0, -y0, 0.0, dt)[0].round(4)
    Array([0.9048], dtype=float32)"""
    step = dt.astype(f0.dtype)
    k = [f0]
    for node, row in safe_zip(_NODES, _STAGES):
        k.append(
            func(y0 + step * _combined(row, jnp.stack(k)), t0 + dt * np.asarray(node, dt.dtype))
        )
    stages = jnp.stack(k)
    y1 = y0 + step * _combined(_FIFTH, stages)
    return y1, k[-1], step * _combined(_FIFTH - _FOURTH, stages), stages


def fit_4th_order_polynomial(
    y0: Array, y1: Array, y_mid: Array, dy0: Array, dy1: Array, dt: Array
) -> tuple[Array, ...]:
    """Gives the polynomial in (t - t0) / dt with given values and derivatives.

    Args:
        y0: The value at the beginning.
        y1: The value at the end.
        y_mid: The value in the middle.
        dy0: The derivative at the beginning.
        dy1: The derivative at the end.
        dt: The length of the step.

    Returns:
        Its five coefficients, the highest first.

    >>> from calque.experimental import ode
    >>> one, zero = jnp.ones(1), jnp.zeros(1)
    >>> ode.fit_4th_order_polynomial(zero, one, one / 2, one, one, 1.0)[3]
    Array([1.], dtype=float32)"""
    dt = jnp.asarray(dt).astype(y0.dtype)
    rise, fall = dt * dy0, dt * dy1
    a = 2 * (fall - rise) - 8 * (y0 + y1) + 16 * y_mid
    b = 5 * rise - 3 * fall + 18 * y0 + 14 * y1 - 32 * y_mid
    c = fall - 4 * rise - 11 * y0 - 5 * y1 + 16 * y_mid
    return a, b, c, rise, y0


def interp_fit_dopri(y0: Array, y1: Array, k: Array, dt: Array) -> Array:
    """Gives the polynomial that follows the solution through a step.

    Args:
        y0: The state before.
        y1: The state after.
        k: The derivatives at the stages of the step.
        dt: The length of the step.

    Returns:
        An array with the five coefficients, the highest first.

    >>> from calque.experimental import ode
    >>> y = jnp.ones(1)
    >>> ode.interp_fit_dopri(y, y, jnp.zeros((7, 1)), 0.1).shape
    (5, 1)"""
    y_mid = y0 + jnp.asarray(dt).astype(y0.dtype) * _combined(_MIDDLE, k)
    return jnp.stack(fit_4th_order_polynomial(y0, y1, y_mid, k[0], k[-1], dt))


# ---------------------------------------------------------------- the size of steps


def initial_step_size(
    fun: Callable[..., Any], t0: Array, y0: Array, order: int, rtol: float, atol: float, f0: Array
) -> Array:
    """Chooses the first step of a method.

    Args:
        fun: The derivative, a function of (y, t).
        t0: The first time.
        y0: The first state.
        order: The order of the method.
        rtol: The relative error that is allowed.
        atol: The absolute error that is allowed.
        f0: The derivative at the first state.

    Returns:
        The length of the step.

    >>> from calque.experimental import ode
    >>> y0 = jnp.ones(1)
    >>> ode.initial_step_size(lambda y, t: -y, 0.0, y0, 4, 1e-3, 1e-3, -y0) > 0
    Array(True, dtype=bool)"""
    y0, f0 = (jnp.asarray(v) for v in promote_dtypes_inexact(y0, f0))
    scale = (atol + jnp.abs(y0) * rtol).astype(y0.dtype)

    def size(v: Any) -> Any:
        return jnp.linalg.norm(v / scale)

    d0, d1 = size(y0), size(f0)
    flat = (d0 < 1e-5) | (d1 < 1e-5)
    h0 = jnp.where(flat, 1e-6, 0.01 * d0 / jnp.where(flat, 1.0, d1))
    f1 = fun(y0 + h0.astype(y0.dtype) * f0, t0 + h0)
    steepest = jnp.maximum(d1, size(f1 - f0) / h0)
    still = steepest <= 1e-15
    h1 = jnp.where(
        still,
        jnp.maximum(1e-6, h0 * 1e-3),
        (0.01 / jnp.where(still, 1.0, steepest)) ** (1.0 / (order + 1.0)),
    )
    return jnp.minimum(100.0 * h0, h1)


def mean_error_ratio(
    error_estimate: Array, rtol: float, atol: float, y0: Array, y1: Array
) -> Array:
    """Gives the error of a step in units of what is allowed, as a root mean square.

    Args:
        error_estimate: The estimate of the error.
        rtol: The relative error that is allowed.
        atol: The absolute error that is allowed.
        y0: The state before.
        y1: The state after.

    Returns:
        A number; up to 1 is good enough.

    >>> from calque.experimental import ode
    >>> y = jnp.ones(2)
    >>> ode.mean_error_ratio(0.25 * y, 0.5, 0.0, y, y)
    Array(0.5, dtype=float32)"""
    allowed = atol + rtol * jnp.maximum(jnp.abs(y0), jnp.abs(y1))
    return jnp.sqrt(jnp.mean(abs2(error_estimate / allowed.astype(error_estimate.dtype))))


def optimal_step_size(
    last_step: Array,
    mean_error_ratio: Array,
    safety: float = 0.9,
    ifactor: float = 10.0,
    dfactor: float = 0.2,
    order: float = 5.0,
) -> Array:
    """Chooses the length of the next step.

    Args:
        last_step: The length of the last one.
        mean_error_ratio: Its error, as `mean_error_ratio` gives it.
        safety: A factor of caution.
        ifactor: By how much steps may grow at most.
        dfactor: By how much steps may shrink at most, which only happens after one that was not
            good enough.
        order: The order of the method.

    Returns:
        The length.

    >>> from calque.experimental import ode
    >>> ode.optimal_step_size(0.1, 0.0)
    Array(1., dtype=float32)"""
    ratio = jnp.asarray(mean_error_ratio)
    least = jnp.where(ratio < 1, 1.0, dfactor)
    safe = jnp.where(ratio == 0, 1.0, ratio)
    factor = jnp.minimum(ifactor, jnp.maximum(safe ** (-1.0 / order) * safety, least))
    return (last_step * jnp.where(ratio == 0, ifactor, factor)).astype(jnp.asarray(last_step).dtype)


# ---------------------------------------------------------------- integration


_Options = tuple[float, float, float, float]  # rtol, atol, mxstep, hmax


class _Progress(NamedTuple):
    """Where the integration stands: the last accepted state, the next step, and the polynomial of
    the step that led here."""

    y: Any
    f: Any
    t: Any
    dt: Any
    last_t: Any
    polynomial: Any


def _advance(
    fun: Callable[..., Any], now: _Progress, rtol: float, atol: float, hmax: float
) -> _Progress:
    y, f, error, k = runge_kutta_step(fun, now.y, now.f, now.t, now.dt)
    t = now.t + now.dt
    ratio = mean_error_ratio(error, rtol, atol, now.y, y)
    following = jnp.clip(optimal_step_size(now.dt, ratio), 0.0, hmax).astype(now.dt.dtype)
    new = _Progress(y, f, t, following, now.t, interp_fit_dopri(now.y, y, k, now.dt))
    kept = now._replace(dt=following)
    return tree_map(functools.partial(jnp.where, ratio <= 1.0), new, kept)


def _integrate(fun: Callable[..., Any], options: _Options, y0: Any, ts: Any) -> Any:
    """The vectors at the times, one row each; `fun` takes and gives vectors."""
    rtol, atol, mxstep, hmax = options
    t0 = ts[0]
    f0 = fun(y0, t0)
    dt = jnp.clip(initial_step_size(fun, t0, y0, 4, rtol, atol, f0), 0.0, hmax).astype(ts.dtype)
    start = _Progress(y0, f0, t0, dt, t0, jnp.stack([jnp.zeros_like(y0)] * 4 + [y0]))

    def up_to(now: _Progress, target: Any) -> tuple[_Progress, Any]:
        def unfinished(state: Any) -> Any:
            return (state[1].t < target) & (state[0] < mxstep) & (state[1].dt > 0)

        def step(state: Any) -> Any:
            return (state[0] + 1, _advance(fun, state[1], rtol, atol, hmax))

        _, now = lax.while_loop(unfinished, step, (jnp.zeros((), np.int32), now))
        # no step has been made yet for times that are the first
        there = target == now.t
        place = jnp.where(there, 1, (target - now.last_t) / jnp.where(there, 1, now.t - now.last_t))
        return now, jnp.polyval(now.polynomial, place.astype(y0.dtype))

    _, ys = lax.scan(up_to, start, ts[1:])
    return jnp.concatenate([y0[None], ys])


def ravel_first_arg(
    f: Callable[..., Any], unravel: Callable[[Any], Any], debug_info: Any = None
) -> Callable[..., Any]:
    """Makes a function whose first argument and result are vectors in place of trees.

    Args:
        f: The function.
        unravel: Makes the tree of a vector.
        debug_info: Not used.

    Returns:
        A function.

    >>> from calque.experimental import ode
    >>> flat, unravel = jax.flatten_util.ravel_pytree({"a": jnp.ones(2)})
    >>> ode.ravel_first_arg(lambda y: y, unravel)(flat)
    Array([1., 1.], dtype=float32)"""

    def flat(y: Any, *args: Any) -> Any:
        return ravel_pytree(f(unravel(y), *args))[0].astype(y.dtype)

    return flat


def odeint(
    func: Callable[..., Any],
    y0: ArrayLike,
    t: ArrayLike,
    *args: Any,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = np.inf,
    hmax: float = np.inf,
) -> Array:
    """Solves the differential equation dy/dt = func(y, t, *args).

    Steps of the method of Dormand and Prince are chosen so that the error stays below atol + rtol
    |y|. The derivative in y0, t and args, in reverse mode, is found by solving the adjoint equation
    backwards.

    Args:
        func: The derivative; it gives a tree like `y0`.
        y0: The state at `t[0]`, a tree of arrays.
        t: The increasing times at which the solution is asked for, an array of floats.
        *args: Further arguments of `func`.
        rtol: The relative error that is allowed.
        atol: The absolute error that is allowed.
        mxstep: The most steps from one time to the next.
        hmax: The length of the longest step.

    Returns:
        A tree like `y0`, with a first axis for the times.

    >>> from calque.experimental.ode import odeint
    >>> odeint(lambda y, t: -y, 1.0, jnp.array([0.0, 1.0])).round(4)
    Array([1.    , 0.3679], dtype=float32)"""
    for arg in tree_leaves(args):
        if not isinstance(arg, PYTHON_SCALARS) and not is_arraylike(arg):
            raise TypeError(
                f"The contents of odeint *args must be arrays or scalars, but got {arg}."
            )
    t = jnp.asarray(t)
    if not is_float(t.dtype):
        raise TypeError(f"t must be an array of floats, but got {t}.")
    if t.ndim != 1 or t.size == 0:
        raise TypeError(f"odeint: t must be a vector of at least one time, got shape {t.shape}")
    y0 = tree_map(lambda v: jnp.asarray(promote_dtypes_inexact(jnp.asarray(v))[0]), y0)
    y0, t = tree_map(lambda v: v.astype(v.dtype), (y0, t))
    args = tree_map(jnp.asarray, args)
    converted, consts = closure_convert(func, y0, t[0], *args)
    flat, unravel = ravel_pytree(y0)
    _check(converted, y0, t[0], (*args, *consts))
    solve = _solver(converted, unravel, (rtol, atol, mxstep, hmax))
    rows = solve(flat, t, tuple(args), tuple(consts))
    return _unravel_rows(rows, y0)


def _unravel_rows(rows: Any, like: Any) -> Any:
    leaves, begin = [], 0
    for leaf in tree_leaves(like):
        part = rows[:, begin : begin + leaf.size].reshape((rows.shape[0], *leaf.shape))
        leaves.append(part.astype(leaf.dtype))
        begin += leaf.size
    values = iter(leaves)
    return tree_map(lambda _: next(values), like)


def _check(func: Callable[..., Any], y0: Any, t0: Any, args: tuple[Any, ...]) -> None:
    """What func gives must have as many elements as y0, whatever tree holds them."""
    out = eval_shape(func, y0, t0, *args)
    shapes = [tree_map(lambda v: tuple(v.shape), v) for v in (out, y0)]
    sizes = [sum(math.prod(v.shape) for v in tree_leaves(tree)) for tree in (out, y0)]
    if sizes[0] != sizes[1]:
        raise TypeError(
            f"odeint: func must give what y0 is, {sizes[1]} numbers in arrays of shapes"
            f" {shapes[1]}, but gives {shapes[0]}"
        )


def _solver(
    func: Callable[..., Any], unravel: Callable[[Any], Any], options: _Options
) -> Callable[..., Any]:
    """Integration of vectors as a function of (y0, ts, args, consts) with the adjoint gradient."""
    vector = ravel_first_arg(func, unravel)

    @custom_vjp
    def solve(y0: Any, ts: Any, args: Any, consts: Any) -> Any:
        return _integrate(lambda y, t: vector(y, t, *args, *consts), options, y0, ts)

    def forward(y0: Any, ts: Any, args: Any, consts: Any) -> tuple[Any, Any]:
        ys = solve(y0, ts, args, consts)
        return ys, (ys, ts, args, consts)

    def backward(residuals: Any, g: Any) -> tuple[Any, ...]:
        ys, ts, args, consts = tree_map(jnp.asarray, residuals)

        def rhs(y: Any, t: Any, extra: Any) -> Any:
            return vector(y, t, *extra[0], *extra[1])

        return _adjoint(rhs, options, ys, ts, (args, consts), g)

    solve.defvjp(forward, backward)
    return solve


def _adjoint(
    rhs: Callable[..., Any], options: _Options, ys: Any, ts: Any, extra: Any, g: Any
) -> tuple[Any, ...]:
    """Backwards in time: y, its cotangent, and the cotangents of t and of `extra`, whose
    derivatives are products with the Jacobian."""
    inexact, _ = _inexact_part(extra)

    def dynamics(state: Any, s: Any, *given: Any) -> Any:
        """In s = -t."""
        moving, rebuild = _inexact_part((given[: len(extra[0])], given[len(extra[0]) :]))
        y, y_bar = state[0], state[1]
        value, pull = vjp(lambda y, t, e: rhs(y, t, rebuild(e)), y, -s, moving)
        y_dot, t_dot, e_dot = pull(y_bar)
        return -value, y_dot, t_dot, e_dot

    def between(carry: Any, row: Any) -> tuple[Any, Any]:
        y_bar, t0_bar, e_bar = carry
        y, t, before, g_row, g_before = row
        t_bar = jnp.sum((rhs(y, t, extra) * g_row).real).astype(t.dtype)
        start = (y, y_bar, t0_bar - t_bar, e_bar)
        flat, unravel = ravel_pytree(start)
        # by the same rule, so that its own derivative is an adjoint equation too
        solve = _solver(dynamics, unravel, options)
        final = unravel(solve(flat, jnp.stack([-t, -before]), *extra)[1])
        return (final[1] + g_before, final[2], final[3]), t_bar

    start = (g[-1], jnp.zeros((), ts.dtype), tree_map(jnp.zeros_like, inexact))
    rows = (ys[1:], ts[1:], ts[:-1], g[1:], g[:-1])
    (y_bar, t0_bar, e_bar), t_bars = lax.scan(between, start, rows, reverse=True)
    args_bar, consts_bar = _with_float0(extra, e_bar)
    return y_bar, jnp.concatenate([t0_bar[None], t_bars]), args_bar, consts_bar


def _inexact_part(extra: Any) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    """The leaves that have derivatives, and the tree with others in their place."""
    leaves, tree = tree_flatten(extra)
    moving = [is_inexact(x.dtype) for x in leaves]

    def rebuild(values: list[Any]) -> Any:
        rest = iter(values)
        return tree_unflatten(tree, [next(rest) if m else x for x, m in safe_zip(leaves, moving)])

    return [x for x, m in safe_zip(leaves, moving) if m], rebuild


def _with_float0(extra: Any, bars: list[Any]) -> Any:
    """The cotangents of all leaves: of integers, zeros of float0."""
    rest = iter(bars)
    return tree_map(
        lambda x: next(rest) if is_inexact(x.dtype) else np.zeros(x.shape, float0), extra
    )


_guards.guard_public(globals())

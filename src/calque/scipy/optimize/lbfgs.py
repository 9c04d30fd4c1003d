"""The limited-memory BFGS method (Nocedal and Wright, algorithm 7.5), for complex variables as
well."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from calque import numpy as jnp
from calque.core.arrays import Array
from calque.numpy import linalg
from calque.scipy.optimize.line_search import line_search, product
from calque.transforms.functions.autodiff import value_and_grad
from calque.transforms.functions.loops import fori_loop, while_loop


class LbfgsState(NamedTuple):
    """Where the search stands; `moves` and `changes` are the last steps and the changes of the
    gradient, newest last."""

    converged: Any
    failed: Any
    steps: Any
    evaluations: Any
    x: Any
    value: Any
    gradient: Any
    moves: Any
    changes: Any
    weights: Any
    scale: Any
    status: Any


def minimize_lbfgs(
    fun: Callable[[Any], Any],
    x0: Array,
    maxiter: float | None = None,
    norm: float = np.inf,
    maxcor: int = 10,
    ftol: float = 2.220446049250313e-09,
    gtol: float = 1e-05,
    maxfun: float | None = None,
    maxgrad: float | None = None,
    maxls: int = 20,
) -> tuple[LbfgsState, Any]:
    """The last state, and its status: 0 converged, 1 too many steps, 2 or 3 too many evaluations, 4
    too little gained, 5 the line search failed."""
    if maxiter is None and maxfun is None and maxgrad is None:
        maxiter = x0.size * 200
    limits = [np.inf if n is None else n for n in (maxiter, maxfun, maxgrad)]

    def body(s: LbfgsState) -> LbfgsState:
        direction = _direction(s)
        found = line_search(fun, s.x, direction, s.value, s.gradient, None, maxls)
        moved = found.step.astype(x0.dtype) * direction
        change = found.gradient - s.gradient
        curvature = jnp.real(product(change, moved))
        converged = linalg.norm(found.gradient, ord=norm) < gtol
        status = _status(s, found, limits, ftol)
        return LbfgsState(
            converged=converged,
            failed=(status > 0) & ~converged,
            steps=s.steps + 1,
            evaluations=s.evaluations + found.evaluations,
            x=s.x + moved,
            value=found.value,
            gradient=found.gradient,
            moves=_appended(s.moves, moved),
            changes=_appended(s.changes, change),
            weights=_appended(s.weights, (1 / curvature).astype(x0.dtype)),
            scale=(curvature / jnp.real(product(jnp.conj(change), change))).astype(x0.dtype),
            status=jnp.where(converged, 0, status),
        )

    value, gradient = value_and_grad(fun)(x0)
    no = jnp.zeros((), bool)
    start = LbfgsState(
        converged=no,
        failed=no,
        steps=jnp.asarray(0),
        evaluations=jnp.asarray(1),
        x=x0,
        value=value,
        gradient=gradient,
        moves=jnp.zeros((maxcor, x0.size), x0.dtype),
        changes=jnp.zeros((maxcor, x0.size), x0.dtype),
        weights=jnp.zeros((maxcor,), x0.dtype),
        scale=jnp.ones((), x0.dtype),
        status=jnp.asarray(0),
    )
    end = while_loop(lambda s: ~s.converged & ~s.failed, body, start)
    return end, end.status


def _status(s: LbfgsState, found: Any, limits: list[Any], ftol: float) -> Any:
    """Why to stop, before this step is looked at for convergence; later conditions outrank earlier
    ones."""
    reasons = (
        (s.value - found.value < ftol, 4),
        (s.evaluations >= limits[2], 3),
        (s.evaluations >= limits[1], 2),
        (s.steps >= limits[0], 1),
        (found.failed, 5),
    )
    status = jnp.asarray(0)
    for condition, code in reasons:
        status = jnp.where(condition, code, status)
    return status


def _appended(history: Any, new: Any) -> Any:
    return jnp.concatenate([history[1:], new[None]])


def _direction(s: LbfgsState) -> Any:
    """Minus the inverse Hessian, as the history knows it, times the gradient: the two-loop
    recursion."""
    size = s.weights.shape[0]
    known = jnp.minimum(s.steps, size)

    def back(j: Any, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        q, parts = carry
        i = size - 1 - j
        part = s.weights[i] * jnp.real(product(jnp.conj(s.moves[i]), q)).astype(q.dtype)
        return q - part * jnp.conj(s.changes[i]), parts.at[i].set(part)

    def forth(j: Any, q: Any) -> Any:
        i = size - known + j
        part = s.weights[i] * jnp.real(product(s.changes[i], q)).astype(q.dtype)
        return q + (parts[i] - part) * s.moves[i]

    q, parts = fori_loop(0, known, back, (-jnp.conj(s.gradient), jnp.zeros_like(s.weights)))
    return fori_loop(0, known, forth, s.scale * q)

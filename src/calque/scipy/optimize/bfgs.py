"""The BFGS method (Nocedal and Wright, algorithm 6.1)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from calque import numpy as jnp
from calque.core.arrays import Array
from calque.numpy import linalg
from calque.scipy.optimize.line_search import line_search, product
from calque.transforms.functions.autodiff import value_and_grad
from calque.transforms.functions.loops import while_loop


class BfgsState(NamedTuple):
    """Where the search stands."""

    converged: Any
    failed: Any
    steps: Any
    evaluations: Any
    x: Any
    value: Any
    gradient: Any
    inverse_hessian: Any
    value_before: Any
    line_status: Any


def minimize_bfgs(
    fun: Callable[[Any], Any],
    x0: Array,
    maxiter: int | None = None,
    norm: float = np.inf,
    gtol: float = 1e-5,
    line_search_maxiter: int = 10,
) -> tuple[BfgsState, Any]:
    """The last state, and its status: 0 converged, 1 too many steps, 3 or 5 the line search failed,
    -1 otherwise."""
    limit = x0.size * 200 if maxiter is None else maxiter
    one = jnp.eye(x0.size, dtype=x0.dtype)

    def body(s: BfgsState) -> BfgsState:
        direction = -product(s.inverse_hessian, s.gradient)
        found = line_search(
            fun, s.x, direction, s.value, s.gradient, s.value_before, line_search_maxiter
        )
        moved = found.step * direction
        change = found.gradient - s.gradient
        weight = 1 / product(change, moved)
        left = one - weight * jnp.outer(moved, change)
        updated = product(product(left, s.inverse_hessian), left.T) + weight * jnp.outer(
            moved, moved
        )
        return BfgsState(
            converged=linalg.norm(found.gradient, ord=norm) < gtol,
            failed=found.failed,
            steps=s.steps + 1,
            evaluations=s.evaluations + found.evaluations,
            x=s.x + moved,
            value=found.value,
            gradient=found.gradient,
            inverse_hessian=jnp.where(jnp.isfinite(weight), updated, s.inverse_hessian),
            value_before=s.value,
            line_status=found.status,
        )

    value, gradient = value_and_grad(fun)(x0)
    start = BfgsState(
        converged=linalg.norm(gradient, ord=norm) < gtol,
        failed=jnp.zeros((), bool),
        steps=jnp.asarray(0),
        evaluations=jnp.asarray(1),
        x=x0,
        value=value,
        gradient=gradient,
        inverse_hessian=one,
        value_before=value + linalg.norm(gradient) / 2,
        line_status=jnp.asarray(0),
    )
    end = while_loop(lambda s: ~s.converged & ~s.failed & (s.steps < limit), body, start)
    failure = jnp.where(end.steps == limit, 1, jnp.where(end.failed, 2 + end.line_status, -1))
    return end, jnp.where(end.converged, 0, failure)

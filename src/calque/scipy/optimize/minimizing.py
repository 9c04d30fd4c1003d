"""minimize: the door to the methods."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from calque import numpy as jnp
from calque.core.dtypes import is_complex
from calque.core.types import ArrayLike
from calque.numpy.promotion import array_of, promote_inexact
from calque.scipy.optimize.bfgs import minimize_bfgs
from calque.scipy.optimize.lbfgs import minimize_lbfgs

_LIMITED = "l-bfgs-experimental-do-not-rely-on-this"


class OptimizeResults(NamedTuple):
    """What `minimize` found: the point, whether it is one, why the search ended (0 for success),
    value, gradient, the estimate of the inverse Hessian (BFGS only) and the numbers of evaluations,
    of gradients and of steps."""

    x: Any
    success: Any
    status: Any
    fun: Any
    jac: Any
    hess_inv: Any
    nfev: Any
    njev: Any
    nit: Any


def minimize(
    fun: Callable[..., Any],
    x0: ArrayLike,
    args: tuple[Any, ...] = (),
    *,
    method: str,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults:
    """The minimum of `fun(x, *args)`, a number, near the vector x0. It may be used under jit and
    vmap.

    The method is "BFGS"; options: maxiter, norm, gtol, line_search_maxiter.

    >>> import calque.numpy as jnp
    >>> from calque.scipy.optimize import minimize
    >>> minimize(lambda x: jnp.sum((x - 2) ** 2), jnp.zeros(2), method="BFGS").x
    Array([2., 2.], dtype=float32)"""
    if not isinstance(args, tuple):
        raise TypeError(f"minimize: args argument must be a tuple, got {args!r}")
    name = method.lower()
    if name not in ("bfgs", _LIMITED):
        raise ValueError(f"minimize: method {method!r} not recognized; it must be 'BFGS'")
    (x0,) = promote_inexact(array_of("minimize", x0))
    x0 = jnp.asarray(x0)
    if x0.ndim != 1:
        raise TypeError(
            f"minimize: x0 must be a vector, got shape {x0.shape}; use flatten_util.ravel_pytree"
        )
    if name == "bfgs" and is_complex(x0.dtype):
        raise TypeError(f"minimize: BFGS takes real vectors, got x0 of dtype {x0.dtype.name}")
    chosen = dict(options or {})
    if tol is not None:
        chosen.setdefault("gtol", tol)

    def of_x(x: Any) -> Any:
        return fun(x, *args)

    end: Any
    if name == "bfgs":
        end, status = minimize_bfgs(of_x, x0, **chosen)
        inverse = end.inverse_hessian
    else:
        end, status = minimize_lbfgs(of_x, x0, **chosen)
        inverse = None
    return OptimizeResults(
        x=end.x,
        success=end.converged & ~end.failed,
        status=status,
        fun=end.value,
        jac=end.gradient,
        hess_inv=inverse,
        nfev=end.evaluations,
        njev=end.evaluations,
        nit=end.steps,
    )

"""minimize: the door to the methods."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from calque import numpy as jnp
from calque.core.arrays import Array
from calque.core.dtypes import is_complex
from calque.core.types import ArrayLike
from calque.numpy.promotion import array_of, promote_inexact
from calque.scipy.optimize.bfgs import minimize_bfgs
from calque.scipy.optimize.lbfgs import minimize_lbfgs

_LIMITED = "l-bfgs-experimental-do-not-rely-on-this"


class OptimizeResults(NamedTuple):
    """What `minimize` found.

    Args:
        x: the vector.
        success: whether the search ended well.
        status: why it ended: 0 is well.
        fun: the value there.
        jac: the gradient there.
        hess_inv: an estimate of the inverse of the Hessian; None of methods without one.
        nfev: how many values were computed.
        njev: how many gradients.
        nit: how many steps were made.

    >>> scipy.optimize.minimize(lambda x: (x**2).sum(), jnp.ones(1), method="BFGS").success
    Array(True, dtype=bool)"""

    x: Array
    success: Array
    status: Array
    fun: Array
    jac: Array
    hess_inv: Array | None
    nfev: Array
    njev: Array
    nit: Array


def minimize(
    fun: Callable[..., Any],
    x0: ArrayLike,
    args: tuple[Any, ...] = (),
    *,
    method: str,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults:
    """Looks for the smallest value of a function near a point.

    Args:
        fun: a traceable function of a vector, and of `args`, which returns a number.
        x0: the vector to begin with.
        args: further arguments, a tuple.
        method: "BFGS"; it has to be given.
        tol: the limit for the size of the gradient; None is 1e-5.
        options: a dict of `maxiter`, `norm`, `gtol` and `line_search_maxiter`.
    Returns:
        An `OptimizeResults`.
    Differs from SciPy:
        Gradients are derived, not given; there are no bounds. It runs under jit and vmap.

    >>> found = scipy.optimize.minimize(lambda x: ((x - 1) ** 2).sum(), jnp.zeros(2), method="BFGS")
    >>> found.x.round(3)
    Array([1., 1.], dtype=float32)"""
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

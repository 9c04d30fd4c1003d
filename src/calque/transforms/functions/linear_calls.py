"""Linear functions with a transpose of their own, for users: `linear_call`, `custom_transpose`."""

from collections.abc import Callable
from typing import Any

import numpy as np

from calque.core import pytrees
from calque.core.jaxprs import ClosedJaxpr
from calque.core.trace import typeof
from calque.transforms.engines.trees import arrays, name_of, wrapping
from calque.transforms.primitives.flow import staged
from calque.transforms.primitives.linear_call import Thunk, linear_call_p


def linear_call(
    fun: Callable[[Any, Any], Any],
    fun_transpose: Callable[[Any, Any], Any],
    residual_args: Any,
    linear_args: Any,
) -> Any:
    """Calls a function that is linear in its second argument, with a transpose of its own.

    Args:
        fun: The function of (residuals, linear arguments).
        fun_transpose: `fun_transpose(residuals, cotangent)` gives the cotangents of the linear
            arguments.
        residual_args: The first argument, a tree of arrays.
        linear_args: The second argument, a tree of arrays.

    Returns:
        What the function returns.

    >>> def f(x):
    ...     return jax.custom_derivatives.linear_call(
    ...         lambda r, x: r * x, lambda r, ct: r * ct, 2.0, x)
    >>> jax.linear_transpose(f, 1.0)(3.0)
    (Array(6., dtype=float32, weak_type=True),)"""
    res, res_tree = pytrees.flatten(residual_args)
    lin, _ = pytrees.flatten(linear_args)
    res = arrays(res, "linear_call", fun, (residual_args,), {})
    lin = arrays(lin, "linear_call", fun, (linear_args,), {})
    res_avals, lin_avals = [typeof(x) for x in res], [typeof(x) for x in lin]
    part = staged(fun, (residual_args, linear_args), res_avals + lin_avals, "linear_call")
    out_avals = part.closed.out_avals

    def transpose() -> ClosedJaxpr:
        cts = pytrees.unflatten(part.out_tree, out_avals)
        back = staged(
            fun_transpose,
            (pytrees.unflatten(res_tree, res), cts),
            res_avals + out_avals,
            "the transpose of linear_call",
        )
        found = [a.str_short() for a in back.closed.out_avals]
        if found != [a.str_short() for a in lin_avals]:
            raise TypeError(
                "transpose output pytree and types must match those of the linear arguments:"
                f" {name_of(fun_transpose)} gives {found}, but the linear arguments of"
                f" {name_of(fun)} are {[a.str_short() for a in lin_avals]}"
            )
        jaxpr = back.closed.jaxpr
        n = len(back.consts)
        # captured values are constants of the program: the residuals of the call are its only
        # traced operands
        return ClosedJaxpr(
            jaxpr.replace(constvars=jaxpr.invars[:n], invars=jaxpr.invars[n:]), back.consts
        )

    outs = linear_call_p.bind(
        *part.consts,
        *res,
        *lin,
        callee=part.closed,
        num_callee_consts=len(part.consts),
        num_res=len(res),
        transpose_thunk=Thunk(transpose),
    )
    return pytrees.unflatten(part.out_tree, outs)


class custom_transpose:
    """A function of (residuals, linear arguments) whose transpose is given by a rule.

    It is called as `f(out_types, residuals, linear)`; `out_types` tells the shapes and dtypes of
    its results. `def_transpose` sets the rule.

    Args:
        fun: The function.

    >>> scaled = jax.custom_derivatives.custom_transpose(lambda r, x: r * x)
    >>> @scaled.def_transpose
    ... def rule(r, ct):
    ...     return r * ct
    >>> jax.grad(lambda x: scaled(jax.ShapeDtypeStruct((), jnp.float32), 2.0, x))(3.0)
    Array(2., dtype=float32, weak_type=True)"""

    def __init__(self, fun: Callable[[Any, Any], Any]):
        wrapping(self, fun)
        self.fun = fun
        self.transpose: Callable[[Any, Any], Any] | None = None

    def def_transpose(self, transpose: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """Sets the rule; works as a decorator.

        Args:
            transpose: `transpose(residuals, cotangent)` gives the cotangents of the linear
                arguments.

        Returns:
            The rule, as it was given."""
        self.transpose = transpose
        return transpose

    def __call__(self, out_types: Any, res_arg: Any, lin_arg: Any) -> Any:
        """The function; `out_types` is a tree of the shapes and dtypes of its results, which it
        must have."""
        if self.transpose is None:
            raise AttributeError(
                f"No transpose rule defined for the custom_transpose function {name_of(self.fun)}"
            )
        out = linear_call(self.fun, self.transpose, res_arg, lin_arg)
        wanted, tree = pytrees.flatten(out_types)
        found, out_tree = pytrees.flatten(out)
        types = [f"{typeof(x).dtype}{list(typeof(x).shape)}" for x in found]
        expected = [f"{np.dtype(t.dtype)}{list(t.shape)}" for t in wanted]
        if tree != out_tree or types != expected:
            raise TypeError(
                f"custom_transpose: {name_of(self.fun)} gives {types} in the structure {out_tree},"
                f" but its out_types say {expected} in the structure {tree}"
            )
        return out

"""More ways to give derivatives: `custom_gradient`, `closure_convert`, `linear_call`."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calque.core import pytrees, reference
from calque.core.avals import ShapedArray
from calque.core.jaxprs import ClosedJaxpr
from calque.core.primitives import UndefinedPrimal
from calque.core.trace import eval_jaxpr, trace_to_jaxpr, typeof
from calque.core.trace_state import Tracer
from calque.ops.common import front, instantiate
from calque.transforms.engines.axes import Axis, AxisPrimitive
from calque.transforms.engines.batching import Dim, batch_jaxpr
from calque.transforms.engines.jvp import jvp_jaxpr
from calque.transforms.engines.slices import hoisted
from calque.transforms.engines.trees import FlatFunction, arrays, name_of
from calque.transforms.engines.zeros import (
    add_tangents,
    has_tangent,
    nonzero,
    only_nonzero,
    with_zeros,
    zero_like,
)
from calque.transforms.primitives.custom_vjp import custom_vjp
from calque.transforms.primitives.flow import split, staged

# ---------------------------------------------------------------- closures


def closure_convert(
    fun: Callable[..., Any], *example_args: Any
) -> tuple[Callable[..., Any], list[Any]]:
    """`fun` with the traced values that it closes over as further arguments: (converted, these
    values).

    >>> converted, consts = calque.closure_convert(lambda x: x * 2, 1.0)
    >>> converted(3.0, *consts)
    Array(6., dtype=float32, weak_type=True)"""
    leaves, in_tree = pytrees.flatten((example_args, {}))
    flat = FlatFunction(fun, in_tree, "closure_convert")
    closed = trace_to_jaxpr(
        flat,
        [typeof(x) for x in arrays(leaves, "closure_convert", fun, example_args, {})],
        name_of(fun),
    )
    closed, consts = hoisted(closed, lambda c: isinstance(c, Tracer) and has_tangent(typeof(c)))
    out_tree, n = flat.out_tree, len(consts)

    def converted(*args: Any) -> Any:
        own, given = args[: len(args) - n], args[len(args) - n :]
        leaves, tree = pytrees.flatten((own, {}))
        if tree != in_tree:
            raise TypeError(
                f"closure_convert: {name_of(fun)} was converted for arguments {in_tree}, and is"
                f" called with {tree}"
            )
        return pytrees.unflatten(out_tree, eval_jaxpr(closed.jaxpr, closed.consts, *given, *leaves))

    converted.__name__ = name_of(fun)
    return converted, consts


class _Pullback:
    """A function from cotangents to cotangents as a container of what it closes over."""

    def __init__(self, fun: Callable[..., Any], consts: Sequence[Any]):
        self.fun, self.consts = fun, consts

    def __call__(self, ct: Any) -> Any:
        return self.fun(ct, *self.consts)


pytrees.register(
    _Pullback, lambda p: (p.consts, p.fun), lambda fun, consts: _Pullback(fun, list(consts))
)


def custom_gradient(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function that returns its value and, as a function of the cotangent, its gradient.

    >>> @calque.custom_gradient
    ... def f(x):
    ...     return x**2, lambda g: (g * x,)
    >>> calque.grad(f)(3.0)
    Array(3., dtype=float32)"""

    @functools.wraps(fun)
    def wrapped_fun(*args: Any, **kwargs: Any) -> Any:
        out, _ = fun(*args, **kwargs)
        return out

    def fwd(*args: Any) -> tuple[Any, Any]:
        out, rule = fun(*args)
        cts = pytrees.tree_map(lambda x: instantiate(zero_like(x)), out)
        converted, consts = _converted(rule, cts)
        return out, _Pullback(converted, consts)

    def bwd(pullback: _Pullback, ct: Any) -> Any:
        out = pullback(ct)
        return out if isinstance(out, (tuple, list)) else (out,)

    wrapped = custom_vjp(wrapped_fun)
    wrapped.defvjp(fwd, bwd)
    return wrapped


def _converted(rule: Callable[..., Any], cts: Any) -> tuple[Callable[..., Any], list[Any]]:
    """As closure_convert, with everything that the rule closes over as arguments: it outlives the
    values."""
    part = staged(rule, (cts,), [typeof(x) for x in pytrees.leaves(cts)], "custom_gradient")

    def converted(ct: Any, *consts: Any) -> Any:
        outs = eval_jaxpr(part.closed.jaxpr, part.closed.consts, *consts, *pytrees.leaves(ct))
        return pytrees.unflatten(part.out_tree, outs)

    return converted, part.consts


# ---------------------------------------------------------------- linear_call


class _Thunk:
    """The transpose of a linear function as a program of (residuals, cotangents), traced when it is
    first needed."""

    def __init__(self, make: Callable[[], ClosedJaxpr]):
        self.make = make
        self.made: ClosedJaxpr | None = None

    def __call__(self) -> ClosedJaxpr:
        if self.made is None:
            self.made = self.make()
        return self.made

    def __repr__(self) -> str:
        return "transpose"


def linear_call(
    fun: Callable[[Any, Any], Any],
    fun_transpose: Callable[[Any, Any], Any],
    residual_args: Any,
    linear_args: Any,
) -> Any:
    """Call a function that is linear in its second argument, with a transpose of its own:
    `fun_transpose(residuals, ct)`."""
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
        transpose_thunk=_Thunk(transpose),
    )
    return pytrees.unflatten(part.out_tree, outs)


def _meaning(*args: Any, callee: ClosedJaxpr, **_: Any) -> list[Any]:
    return reference.run(callee, *args)


def _shape(*avals: ShapedArray, callee: ClosedJaxpr, **_: Any) -> list[ShapedArray]:
    return callee.out_avals


def _jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    callee: ClosedJaxpr,
    num_callee_consts: int,
    num_res: int,
    **params: Any,
) -> Any:
    n = num_callee_consts + num_res
    bind = functools.partial(
        linear_call_p.bind,
        callee=callee,
        num_callee_consts=num_callee_consts,
        num_res=num_res,
        **params,
    )
    outs = bind(*primals)
    total = [zero_like(o) for o in outs]
    if any(nonzero(tangents[n:])):
        total = bind(*primals[:n], *map(instantiate, tangents[n:]))
    active = (*nonzero(tangents[:n]), *(False for _ in primals[n:]))
    if any(active):  # the residuals vary too: by the program itself
        both, mask = jvp_jaxpr(callee, active)
        found = eval_jaxpr(both.jaxpr, both.consts, *primals, *only_nonzero(tangents[:n]))
        more = with_zeros(found[len(outs) :], mask, callee.out_avals)
        total = [add_tangents(a, b) for a, b in zip(total, more)]
    return outs, total


def _transpose(
    cts: Sequence[Any],
    *args: Any,
    callee: ClosedJaxpr,
    num_callee_consts: int,
    num_res: int,
    transpose_thunk: _Thunk,
) -> list[Any]:
    n = num_callee_consts + num_res
    if any(type(x) is UndefinedPrimal for x in args[:n]):
        raise TypeError(
            "linear_call is not linear in its residual arguments: it has no transpose in them"
        )
    swapped = _Thunk(lambda: _of_residuals(callee, args[:num_callee_consts]))
    back = transpose_thunk()
    outs = linear_call_p.bind(
        *args[num_callee_consts:n],
        *map(instantiate, cts),
        callee=back,
        num_callee_consts=0,
        num_res=num_res,
        transpose_thunk=swapped,
    )
    return [None] * n + list(outs)


def _of_residuals(callee: ClosedJaxpr, consts: Sequence[Any]) -> ClosedJaxpr:
    """The callee with its captured values as constants."""
    j, n = callee.jaxpr, len(consts)
    return ClosedJaxpr(
        j.replace(constvars=j.constvars + j.invars[:n], invars=j.invars[n:]),
        [*callee.consts, *consts],
    )


def _batch(
    axis: Axis,
    args: Sequence[Any],
    dims: Sequence[Dim],
    *,
    callee: ClosedJaxpr,
    num_callee_consts: int,
    num_res: int,
    transpose_thunk: _Thunk,
) -> Any:
    n = num_callee_consts + num_res
    args = [*args[:n], *(front(x, d, axis.size) for x, d in zip(args[n:], dims[n:]))]
    dims = [
        *dims[:n],
        *(0 for _ in dims[n:]),
    ]  # so that cotangents of linear arguments are mapped as those of results
    _, res_dims, _ = split(dims, num_callee_consts, num_res)
    batched, out_dims = batch_jaxpr(callee, axis, tuple(dims), True)

    def transpose() -> ClosedJaxpr:
        back, _ = batch_jaxpr(transpose_thunk(), axis, (*res_dims, *out_dims), True)
        return back

    outs = linear_call_p.bind(
        *args,
        callee=batched,
        num_callee_consts=num_callee_consts,
        num_res=num_res,
        transpose_thunk=_Thunk(transpose),
    )
    return outs, list(out_dims)


linear_call_p = AxisPrimitive(
    "linear_call",
    meaning=_meaning,
    shape=_shape,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    multiple_results=True,
)


# ---------------------------------------------------------------- custom_transpose


class custom_transpose:
    """A function of (residuals, linear arguments) whose transpose is given by a rule.

    >>> @calque.custom_derivatives.custom_transpose
    ... def scaled(r, x):
    ...     return r * x
    >>> @scaled.def_transpose
    ... def scaled_transpose(r, ct):
    ...     return r * ct
    >>> calque.grad(lambda x: scaled(calque.ShapeDtypeStruct((), jnp.float32), 2.0, x))(3.0)
    Array(2., dtype=float32, weak_type=True)"""

    def __init__(self, fun: Callable[[Any, Any], Any]):
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.transpose: Callable[[Any, Any], Any] | None = None

    def def_transpose(self, transpose: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """The rule: `transpose(residuals, cotangent)` gives the cotangents of the linear
        arguments."""
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

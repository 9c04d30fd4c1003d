"""Gradients that a function returns itself, and captured values as arguments: `custom_gradient`,
`closure_convert`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from calque.core import pytrees
from calque.core.trace import eval_jaxpr, trace_to_jaxpr, typeof
from calque.core.trace_state import Tracer
from calque.ops.common import instantiate
from calque.transforms.engines.slices import hoisted
from calque.transforms.engines.trees import FlatFunction, arrays, name_of
from calque.transforms.engines.zeros import has_tangent, zero_like
from calque.transforms.functions.custom_vjp import custom_vjp
from calque.transforms.primitives.flow import staged

if TYPE_CHECKING:
    from calque.core.generics import P, R


def closure_convert(
    fun: Callable[..., Any], *example_args: Any
) -> tuple[Callable[..., Any], list[Any]]:
    """Makes the traced values that a function closes over further arguments of it.

    Functions that take functions and have rules of their own for derivatives need this: what is an
    argument can be differentiated.

    Args:
        fun: The function.
        *example_args: Arguments of the types that it will be called with.

    Returns:
        A pair: the function with the captured values as last arguments, and the list of these
        values.

    >>> converted, consts = jax.closure_convert(lambda x: x * 2, 1.0)
    >>> converted(3.0, *consts)
    Array(6., dtype=float32, weak_type=True)"""
    leaves, in_tree = pytrees.flatten((example_args, {}))
    flat = FlatFunction(fun, in_tree, "closure_convert")
    closed = trace_to_jaxpr(
        flat,
        [typeof(x) for x in arrays(leaves, "closure_convert", fun, example_args, {})],
        name_of(fun),
        hoisting=True,
    )
    closed, consts = hoisted(closed, lambda c: isinstance(c, Tracer) and has_tangent(typeof(c)))
    out_tree, n = flat.out_tree, len(consts)

    def converted(*args: Any) -> Any:
        own, given = args[: len(args) - n], args[len(args) - n :]
        leaves, tree = pytrees.flatten((own, {}))
        if tree != in_tree:
            raise TypeError(
                "The inputs to the closure produced by closure_convert must have the structure of"
                f" those that {name_of(fun)} was converted for: {in_tree}, got {tree}"
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


def custom_gradient(fun: Callable[P, tuple[R, Any]]) -> Callable[P, R]:
    """Makes a differentiable function from one that returns its value and its gradient.

    Args:
        fun: A function that returns a pair: its value, and a function that takes the cotangent of
            the value and returns a tuple with a cotangent for each argument (or a single one).

    Returns:
        A function of the value alone, whose reverse-mode derivative is the one given.

    >>> f = jax.custom_gradient(lambda x: (jnp.sin(x), lambda g: (g * x,)))
    >>> f(0.0), jax.grad(f)(3.0)
    (Array(0., dtype=float32, weak_type=True), Array(3., dtype=float32, weak_type=True))"""

    of_any: Callable[..., tuple[R, Any]] = fun

    @functools.wraps(fun)
    def wrapped_fun(*args: Any, **kwargs: Any) -> Any:
        out, _ = fun(*args, **kwargs)
        return out

    def fwd(*args: Any) -> tuple[Any, Any]:
        out, rule = of_any(*args)
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

"""Differentiation for users: jvp, vjp, linearize, linear_transpose, grad and value_and_grad."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Literal, overload

from calque.core import pytrees
from calque.core.avals import ShapedArray
from calque.core.dtypes import float0, is_inexact, is_integer
from calque.core.trace import trace_to_jaxpr, typeof
from calque.core.tracebacks import boundary
from calque.ops.common import const
from calque.transforms.engines import jvp as forward
from calque.transforms.engines import linear
from calque.transforms.engines.signatures import check_callable
from calque.transforms.engines.trees import FlatFunction, argument_name, arrays, name_of, wrapping
from calque.transforms.engines.zeros import has_tangent, tangent_aval, zero_like
from calque.transforms.functions.backward import VJP, vjp_of
from calque.transforms.functions.differentiated import (
    check_argnums,
    check_grad_input,
    check_grad_output,
    diff_name,
    partial_function,
)
from calque.transforms.functions.linearized import (
    Linearized,
    LinearProgram,
    LinearTransposed,
    TransposedProgram,
    derivative_value,
)
from calque.transforms.functions.shapes import aval_of
from calque.transforms.primitives.refs import Ref, store_all, values_of
from calque.transforms.primitives.refs_arguments import fresh, with_values

if TYPE_CHECKING:
    from calque.core.arrays import Array
    from calque.core.generics import Arg, Aux, Derivative, OfAnything, OfNumbers, P, R
    from calque.core.types import ArrayLike

# ---------------------------------------------------------------- forward mode


@overload
def jvp(
    fun: Callable[..., R], primals: Any, tangents: Any, has_aux: Literal[False] = False
) -> tuple[R, R]: ...


@overload
def jvp(
    fun: Callable[..., tuple[R, Aux]], primals: Any, tangents: Any, has_aux: Literal[True]
) -> tuple[R, R, Aux]: ...


@overload
def jvp(fun: Callable[..., Any], primals: Any, tangents: Any, has_aux: bool) -> tuple[Any, ...]: ...


@boundary
def jvp(fun: Callable[..., Any], primals: Any, tangents: Any, has_aux: bool = False) -> Any:
    """Gives the value of a function and its derivative along a direction, by forward mode.

    Args:
        fun: The function, of arrays and trees of them.
        primals: The point: a tuple or list of arguments.
        tangents: The direction: a tangent for each argument, of the same tree, shapes and dtypes.
            Those of integers are of dtype float0; that of a Ref is a Ref.
        has_aux: Whether `fun` returns a pair of which the second part is not differentiated.

    Returns:
        A pair (value, tangent of the value); with `has_aux` the auxiliary output follows.

    >>> jax.jvp(lambda x: x * x, (3.0,), (1.0,))
    (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))"""
    check_callable(fun)
    primals, refs, places = with_values(primals, "jvp")
    if refs:
        return _jvp_with_refs(fun, (primals, refs, places), tangents, has_aux)
    if not (isinstance(primals, (tuple, list)) and isinstance(tangents, (tuple, list))):
        raise TypeError(
            "primal and tangent arguments to calque.jvp must be tuples or lists; found"
            f" {type(primals).__name__} and {type(tangents).__name__}, for {name_of(fun)}."
        )
    if type(primals) is type(tangents):
        primals, tangents = tuple(primals), tuple(tangents)
    leaves, in_tree = pytrees.flatten((primals, {}))
    tangent_leaves, tangent_tree = pytrees.flatten((tangents, {}))
    if in_tree != tangent_tree:
        raise TypeError(
            "primal and tangent arguments to calque.jvp must have the same tree structure, for"
            f" {name_of(fun)}; primals have tree structure {pytrees.structure(primals)}"
            f" whereas tangents have tree structure {pytrees.structure(tangents)}."
        )
    flat = FlatFunction(fun, in_tree, "jvp", has_aux)
    values = arrays(leaves, "jvp", fun, primals, {})
    ts = [_tangent(x, t, i, fun, primals) for i, (x, t) in enumerate(zip(values, tangent_leaves))]
    outs, out_tangents = forward.jvp(flat, values, ts)
    result = (
        pytrees.unflatten(flat.out_tree, outs),
        pytrees.unflatten(flat.out_tree, map(derivative_value, out_tangents)),
    )
    return (*result, forward.lowered(flat.aux)) if has_aux else result


def _jvp_with_refs(
    fun: Callable[..., Any], given: tuple[Any, list[Ref], list[int]], tangents: Any, has_aux: bool
) -> Any:
    """jvp at Refs, the tangents of which are Refs too: what the function writes goes to both."""
    primals, refs, places = given
    tangents, tangent_refs, tangent_places = with_values(tangents, "jvp")
    if places != tangent_places:
        raise TypeError(
            f"jvp of {name_of(fun)}: the tangent of a Ref is a Ref, and that of an array an array"
        )

    def with_last(*args: Any) -> Any:
        args, made = fresh(args, places)
        out = fun(*args)
        return ((values_of(made), out[0]), out[1]) if has_aux else (values_of(made), out)

    (last, out), (last_tangents, out_tangents), *aux = jvp(
        wrapping(with_last, fun), primals, tangents, has_aux
    )
    store_all(refs, last)
    store_all(tangent_refs, last_tangents)
    return (out, out_tangents, *aux)


def _tangent(x: Any, t: Any, leaf: int, fun: Any, args: Sequence[Any]) -> Any:
    """The tangent given for a value, checked against the type that it must have."""
    aval, got = tangent_aval(typeof(x)), typeof(t)
    if got.shape != aval.shape:
        raise ValueError(
            f"jvp called with different primal and tangent shapes; Got primal shape {aval.shape}"
            f" and tangent shape as {got.shape} for the argument"
            f" {argument_name(fun, args, {}, leaf)} of {name_of(fun)}."
        )
    if got.dtype != aval.dtype:
        raise TypeError(
            "primal and tangent arguments to calque.jvp do not match. Their dtypes must be"
            " equal, or in case of int/bool primal dtype the tangent dtype must be float0. Got"
            f" primal dtype {typeof(x).dtype} and so expected tangent dtype {_name(aval.dtype)},"
            f" but got tangent dtype {_name(got.dtype)} instead, for the argument"
            f" {argument_name(fun, args, {}, leaf)} of {name_of(fun)}."
        )
    return zero_like(x) if aval.dtype == float0 else t


def _name(dtype: Any) -> str:
    return "float0" if dtype == float0 else str(dtype)


# ---------------------------------------------------------------- linear programs at a point


@overload
def linearize(
    fun: Callable[..., R], *primals: Any, has_aux: Literal[False] = False
) -> tuple[R, Callable[..., R]]: ...


@overload
def linearize(
    fun: Callable[..., tuple[R, Aux]], *primals: Any, has_aux: Literal[True]
) -> tuple[R, Callable[..., R], Aux]: ...


@overload
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool) -> tuple[Any, ...]: ...


@boundary
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Gives the value of a function and, as a function, its derivative at that point.

    The derivative may be called many times without computing `fun` again.

    Args:
        fun: The function, of arrays and trees of them.
        *primals: The point: the arguments of `fun`.
        has_aux: Whether `fun` returns a pair of which the second part is not differentiated.

    Returns:
        A pair (value, f_jvp), where `f_jvp(*tangents)` gives the tangent of the value; with
        `has_aux` the auxiliary output follows.

    >>> y, f_jvp = jax.linearize(jnp.sin, 0.0)
    >>> f_jvp(2.0)
    Array(2., dtype=float32, weak_type=True)"""
    check_callable(fun)
    leaves, in_tree = pytrees.flatten((primals, {}))
    flat = FlatFunction(fun, in_tree, "linearize", has_aux)
    values = arrays(leaves, "linearize", fun, primals, {})
    active = [has_tangent(typeof(x)) for x in values]
    outs, nonzeros, tape = linear.linearize(flat, values, active)
    f_jvp = Linearized(
        LinearProgram(
            name_of(fun),
            tape.jaxpr,
            tuple(active),
            tuple(nonzeros),
            in_tree,
            flat.out_tree,
            tuple([typeof(x) for x in values]),
            tuple([typeof(o) for o in outs]),
            tuple([argument_name(fun, primals, {}, i) for i in range(len(values))]),
        ),
        tape.consts,
    )
    out = pytrees.unflatten(flat.out_tree, outs)
    return (out, f_jvp, forward.lowered(flat.aux)) if has_aux else (out, f_jvp)


@overload
def vjp(
    fun: Callable[..., R],
    *primals: Any,
    has_aux: Literal[False] = False,
    reduce_axes: Sequence[Any] = (),
) -> tuple[R, VJP]: ...


@overload
def vjp(
    fun: Callable[..., tuple[R, Aux]],
    *primals: Any,
    has_aux: Literal[True],
    reduce_axes: Sequence[Any] = (),
) -> tuple[R, VJP, Aux]: ...


@overload
def vjp(
    fun: Callable[..., Any], *primals: Any, has_aux: bool, reduce_axes: Sequence[Any] = ()
) -> tuple[Any, ...]: ...


@boundary
def vjp(
    fun: Callable[..., Any], *primals: Any, has_aux: bool = False, reduce_axes: Sequence[Any] = ()
) -> Any:
    """Gives the value of a function and, as a function, its backward pass at that point.

    Args:
        fun: The function, of arrays and trees of them.
        *primals: The point: the arguments of `fun`.
        has_aux: Whether `fun` returns a pair of which the second part is not differentiated.
        reduce_axes: Must be empty: apply `lax.psum` to the result instead.

    Returns:
        A pair (value, f_vjp), where `f_vjp(cotangent)` takes a cotangent of the value, of its tree,
        shapes and dtypes, and gives a tuple with a cotangent for each argument; with `has_aux` the
        auxiliary output follows.

    >>> y, f_vjp = jax.vjp(lambda x, y: x * y, 2.0, 3.0)
    >>> f_vjp(1.0)
    (Array(3., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))"""
    check_callable(fun)
    _no_reduce_axes(reduce_axes)
    leaves, in_tree = pytrees.flatten((primals, {}))
    flat = FlatFunction(fun, in_tree, "vjp", has_aux)
    values = arrays(leaves, "vjp", fun, primals, {})
    outs, f_vjp = vjp_of(flat, values, pytrees.structure(primals), with_arguments=True)
    out = pytrees.unflatten(flat.out_tree, outs)
    return (out, f_vjp, forward.lowered(flat.aux)) if has_aux else (out, f_vjp)


def _no_reduce_axes(reduce_axes: Sequence[Any]) -> None:
    if reduce_axes:
        raise NotImplementedError(
            "reduce_axes argument to grad and vjp is deprecated: apply psum to the result instead"
        )


@boundary
def linear_transpose(
    fun: Callable[..., Any], *primals: Any, reduce_axes: Sequence[Any] = ()
) -> Callable[..., tuple[Any, ...]]:
    """Makes the transpose of a function that is linear.

    Args:
        fun: The function, of arrays and trees of them.
        *primals: Arguments, or ShapeDtypeStructs: only their shapes and dtypes matter.
        reduce_axes: Must be empty: apply `lax.psum` to the result instead.

    Returns:
        A function from a cotangent of the result to a tuple of cotangents of the arguments.

    >>> f_transpose = jax.linear_transpose(lambda x: 3 * x, 1.0)
    >>> f_transpose(2.0)
    (Array(6., dtype=float32, weak_type=True),)"""
    check_callable(fun)
    _no_reduce_axes(reduce_axes)
    leaves, in_tree = pytrees.flatten((primals, {}))
    avals = [aval_of(x) for x in leaves]
    flat = FlatFunction(fun, in_tree, "linear_transpose")
    closed = trace_to_jaxpr(flat, avals, name_of(fun))
    if not _is_linear_kind(avals, closed.out_avals):
        raise TypeError(
            "linear_transpose only supports [float or complex] -> [float or complex], and integer"
            f" -> integer functions, but {name_of(fun)} takes"
            f" {', '.join(str(a.dtype) for a in avals)} and gives"
            f" {', '.join(str(a.dtype) for a in closed.out_avals)}"
        )
    program = TransposedProgram(
        name_of(fun), closed.jaxpr, pytrees.structure(primals), flat.out_tree
    )
    return LinearTransposed(program, closed.consts)


def _is_linear_kind(ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> bool:
    """Whether a function between such types may be linear."""
    dtypes = [a.dtype for a in (*ins, *outs) if a.dtype != float0]
    return all(map(is_inexact, dtypes)) or all(map(is_integer, dtypes))


# ---------------------------------------------------------------- grad


@overload
def value_and_grad(
    fun: OfAnything[P, R],
    argnums: Literal[0] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Derivative[P, tuple[R, Any]]: ...


@overload
def value_and_grad(
    fun: OfNumbers[P, R],
    argnums: Literal[0] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[Concatenate[ArrayLike, P], tuple[R, Array]]: ...


@overload
def value_and_grad(
    fun: Callable[Concatenate[Arg, P], R],
    argnums: Literal[0] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[Concatenate[Arg, P], tuple[R, Arg]]: ...


@overload
def value_and_grad(
    fun: Callable[P, R],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, tuple[R, Any]]: ...


def value_and_grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[..., Any]:
    """Makes a function that gives both the value of a scalar function and its gradient.

    Args:
        fun: The function; it returns a number, or with `has_aux` a pair of which the first part is
            one.
        argnums: The position, or positions, of the arguments to differentiate in.
        has_aux: Whether `fun` returns a pair of which the second part is not differentiated.
        holomorphic: Whether `fun` is a holomorphic function of complex numbers.
        allow_int: Whether integers may be differentiated in; their gradients are of dtype float0.
        reduce_axes: Must be empty: apply `lax.psum` to the result instead.

    Returns:
        A function of the same arguments. It returns (value, gradient), with `has_aux` ((value,
        aux), gradient). The gradient has the tree, shapes and dtypes of the argument; for several
        `argnums` it is a tuple.

    >>> jax.value_and_grad(lambda x: x * x)(5.0)
    (Array(25., dtype=float32, weak_type=True), Array(10., dtype=float32, weak_type=True))"""
    check_callable(fun)
    _no_reduce_axes(reduce_axes)
    chosen = check_argnums(argnums)
    doc = (
        f"Value and gradient of {name_of(fun)}: takes the same arguments, returns (value,"
        " gradient)."
    )

    @boundary
    def value_and_grad_f(*args: Any, **kwargs: Any) -> Any:
        wanted, partial, diff_args = partial_function(fun, chosen, args, kwargs, "value_and_grad")
        leaves, in_tree = pytrees.flatten((diff_args, {}))
        values = arrays(
            leaves, "grad", fun, diff_args, {}, lambda i: diff_name(fun, args, kwargs, wanted, i)
        )
        for i, x in enumerate(values):
            check_grad_input(
                x, holomorphic, allow_int, lambda: diff_name(fun, args, kwargs, wanted, i)
            )
        flat = FlatFunction(partial, in_tree, "value_and_grad", has_aux)
        outs, f_vjp = vjp_of(flat, values, in_tree)
        check_grad_output(outs, flat.out_tree, holomorphic, fun)
        found = pytrees.unflatten(in_tree, map(derivative_value, f_vjp.flat([const(outs[0], 1)])))[
            0
        ][0]
        gradient = found if not isinstance(chosen, int) else found[0]
        value = pytrees.unflatten(flat.out_tree, outs)
        return ((value, forward.lowered(flat.aux)), gradient) if has_aux else (value, gradient)

    return wrapping(value_and_grad_f, fun, doc)


@overload
def grad(
    fun: OfAnything[P, Any],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Derivative[P, Any]: ...


@overload
def grad(
    fun: OfNumbers[P, Any],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[Concatenate[ArrayLike, P], Array]: ...


@overload
def grad(
    fun: Callable[Concatenate[Arg, P], Any],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[Concatenate[Arg, P], Arg]: ...


@overload
def grad(
    fun: Callable[P, tuple[Any, Aux]],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, tuple[Any, Aux]]: ...


@overload
def grad(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, Any]: ...


def grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[..., Any]:
    """Makes a function that gives the gradient of a scalar function.

    Args:
        fun: The function; it returns a number, or with `has_aux` a pair of which the first part is
            one.
        argnums: The position, or positions, of the arguments to differentiate in.
        has_aux: Whether `fun` returns a pair of which the second part is not differentiated.
        holomorphic: Whether `fun` is a holomorphic function of complex numbers.
        allow_int: Whether integers may be differentiated in; their gradients are of dtype float0.
        reduce_axes: Must be empty: apply `lax.psum` to the result instead.

    Returns:
        A function of the same arguments. It returns the gradient, with `has_aux` (gradient, aux).
        The gradient has the tree, shapes and dtypes of the argument; for several `argnums` it is a
        tuple.

    >>> jax.grad(lambda x: x * x)(5.0)
    Array(10., dtype=float32, weak_type=True)
    >>> jax.grad(lambda x, y: x * y, argnums=(0, 1))(2.0, 3.0)
    (Array(3., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))"""
    both = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)
    doc = f"Gradient of {name_of(fun)}: takes the same arguments."

    @boundary
    def grad_f(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapping(grad_f, fun, doc)

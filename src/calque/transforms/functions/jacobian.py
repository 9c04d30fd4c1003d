"""Whole derivatives for users: jacfwd, jacrev, hessian."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Literal, overload

import numpy as np

from calque.core import pytrees
from calque.core.avals import ShapedArray
from calque.core.dtypes import is_complex, is_inexact
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.tracebacks import boundary
from calque.ops.common import instantiate, move, repeated, scalar_of, zero_like
from calque.transforms.engines import jvp as forward
from calque.transforms.engines.axes import Axis
from calque.transforms.engines.batching import batch
from calque.transforms.engines.trees import FlatFunction, arrays, name_of, wrapping
from calque.transforms.engines.zeros import has_tangent, nonzero, only_nonzero, with_zeros
from calque.transforms.functions.backward import vjp_of
from calque.transforms.functions.differentiated import (
    check_argnums,
    check_output_dtype,
    diff_name,
    partial_function,
)

if TYPE_CHECKING:
    from calque.core.arrays import Array
    from calque.core.generics import Derivative, OfAnything, OfNumbers, P
    from calque.core.types import ArrayLike


def _basis(avals: Sequence[ShapedArray]) -> list[Any]:
    """The standard basis of all these values together: for each, its part of every basis vector,
    stacked."""
    total = sum(a.size for a in avals)
    out, at = [], 0
    i32 = np.dtype("int32")
    for a in avals:
        rows = do.iota(dtype=i32, shape=(total, a.size), dimension=0)
        columns = do.iota(dtype=i32, shape=(total, a.size), dimension=1)
        hit = do.eq(rows, columns if not at else do.add(columns, scalar_of(i32, at)))
        part = do.convert_element_type(hit, new_dtype=a.dtype, weak_type=a.weak_type)
        out.append(do.reshape(part, new_sizes=(total, *a.shape)))
        at += a.size
    return out


def _cut(x: Any, axis: int, avals: Sequence[ShapedArray]) -> list[Any]:
    """`x` cut along `axis` into one part for each value, shaped like it there."""
    shape = typeof(x).shape
    parts, at = [], 0
    for a in avals:
        lo, hi = [0] * len(shape), list(shape)
        lo[axis], hi[axis] = at, at + a.size
        part = (
            x
            if a.size == shape[axis]
            else do.slice(x, start_indices=tuple(lo), limit_indices=tuple(hi))
        )
        new = (*shape[:axis], *a.shape, *shape[axis + 1 :])
        parts.append(part if typeof(part).shape == new else do.reshape(part, new_sizes=new))
        at += a.size
    return parts


def _check_input(what: str, x: Any, holomorphic: bool, allow_int: bool, name: str) -> None:
    """Refuse a value that cannot be differentiated in; `name` is that of the argument and of the
    function."""
    dtype = typeof(x).dtype
    kind = getattr(dtype, "name", dtype)
    if holomorphic:
        if not is_complex(dtype):
            raise TypeError(
                f"{what} with holomorphic=True requires inputs with complex dtype, but got {kind}"
                f" for {name}."
            )
    elif what == "jacrev":
        if not is_inexact(dtype) and not allow_int:
            raise TypeError(
                "jacrev requires real- or complex-valued inputs (input dtype that is a sub-dtype"
                f" of np.inexact), but got {kind} for {name}. If you want to use Boolean- or"
                " integer-valued inputs, use vjp or set allow_int to True."
            )
    elif not is_inexact(dtype) or is_complex(dtype):
        raise TypeError(
            "jacfwd requires real-valued inputs (input dtype that is a sub-dtype of np.floating),"
            f" but got {kind} for {name}. For holomorphic differentiation, pass holomorphic=True."
            " For differentiation of non-holomorphic functions involving complex inputs or integer"
            " inputs, use calque.jvp directly."
        )


def _prepared(
    what: str,
    fun: Callable[..., Any],
    argnums: Any,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    has_aux: bool,
) -> tuple[FlatFunction, list[Any], pytrees.PyTreeDef]:
    """The function of the differentiated arguments alone, their leaves and structure."""
    wanted, partial, diff_args = partial_function(fun, argnums, args, kwargs, what)
    leaves, in_tree = pytrees.flatten((diff_args, {}))
    flat = FlatFunction(partial, in_tree, what, has_aux)
    diff = diff_args[0] if not isinstance(argnums, int) else diff_args[0][0]
    return (
        flat,
        arrays(leaves, what, fun, diff_args, {}, lambda i: diff_name(fun, args, kwargs, wanted, i)),
        pytrees.structure(diff),
    )


def _named(
    fun: Any, args: Sequence[Any], kwargs: dict[str, Any], argnums: int | tuple[int, ...], leaf: int
) -> str:
    wanted = [n % len(args) for n in ((argnums,) if isinstance(argnums, int) else argnums)]
    return f"the argument {diff_name(fun, args, kwargs, wanted, leaf)} of {name_of(fun)}"


def _nested(
    out_tree: pytrees.PyTreeDef, in_tree: pytrees.PyTreeDef, rows: Sequence[Sequence[Any]]
) -> Any:
    """rows[i][j] as a tree of outputs whose leaves are trees of inputs."""
    return pytrees.unflatten(out_tree, [pytrees.unflatten(in_tree, row) for row in rows])


@overload
def jacfwd(
    fun: OfAnything[P, Any],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
) -> Derivative[P, Any]: ...


@overload
def jacfwd(
    fun: OfNumbers[P, Array],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
) -> Callable[Concatenate[ArrayLike, P], Array]: ...


@overload
def jacfwd(
    fun: Callable[Concatenate[Array, P], Array],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
) -> Callable[Concatenate[Array, P], Array]: ...


@overload
def jacfwd(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[P, Any]: ...


def jacfwd(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """Makes a function that gives the Jacobian of `fun`, by forward mode.

    All columns are computed at once, one for each element of the arguments: good where there are
    fewer of these than of results.

    Args:
        fun: The function; the arguments in question and its results are arrays or trees of them.
        argnums: The position, or positions, of the arguments to differentiate in.
        has_aux: Whether `fun` returns a pair of which the second part is not differentiated.
        holomorphic: Whether `fun` is a holomorphic function of complex numbers.

    Returns:
        A function of the same arguments. Its result has the tree of the results of `fun`, with the
        trees of the arguments inside; each leaf has the shape of the result followed by that of the
        argument. With `has_aux` it is (jacobian, aux).

    >>> jax.jacfwd(lambda x: x * x)(jnp.array([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)"""
    chosen = check_argnums(argnums)

    @boundary
    def jacfun(*args: Any, **kwargs: Any) -> Any:
        flat, values, in_tree = _prepared("jacfwd", fun, chosen, args, kwargs, has_aux)
        for i, x in enumerate(values):
            _check_input("jacfwd", x, holomorphic, False, _named(fun, args, kwargs, chosen, i))
        avals = [typeof(x) for x in values]
        size = sum(a.size for a in avals)
        mask: tuple[bool, ...] = ()
        out_avals: list[ShapedArray] = []

        def pushforward(*tangents: Any) -> list[Any]:
            nonlocal mask, out_avals
            outs, out_tangents = forward.jvp(flat, values, tangents)
            mask, out_avals = nonzero(out_tangents), [typeof(o) for o in outs]
            return [*outs, *only_nonzero(out_tangents)]

        basis = _basis(avals)
        found, dims = batch(pushforward, Axis(None, size), basis, [0] * len(basis))
        n = len(out_avals)
        tangents = with_zeros(list(range(n, len(found))), mask, out_avals)
        rows = []
        for o, t in zip(found[:n], tangents):
            if holomorphic:
                check_output_dtype("jacfwd", typeof(o), True)
            column = (
                _last(instantiate(zero_like(o)), None, size)
                if not isinstance(t, int)
                else _last(found[t], dims[t], size)
            )
            rows.append(_cut(column, typeof(o).ndim, avals))
        jac = _nested(flat.out_tree, in_tree, rows)
        return (jac, forward.lowered(flat.aux)) if has_aux else jac

    doc = f"Jacobian of {name_of(fun)} in forward mode: takes the same arguments."
    return wrapping(jacfun, fun, doc)


def _last(x: Any, dim: int | None, size: int) -> Any:
    """`x` with its batch dimension last."""
    ndim = typeof(x).ndim
    return repeated(x, size, ndim) if dim is None else move(x, dim, ndim - 1)


@overload
def jacrev(
    fun: OfAnything[P, Any],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Derivative[P, Any]: ...


@overload
def jacrev(
    fun: OfNumbers[P, Array],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[Concatenate[ArrayLike, P], Array]: ...


@overload
def jacrev(
    fun: Callable[Concatenate[Array, P], Array],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[Concatenate[Array, P], Array]: ...


@overload
def jacrev(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, Any]: ...


def jacrev(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """Makes a function that gives the Jacobian of `fun`, by reverse mode.

    All rows are computed at once, one for each element of the results: good where there are fewer
    of these than of arguments.

    Args:
        fun: The function; the arguments in question and its results are arrays or trees of them.
        argnums: The position, or positions, of the arguments to differentiate in.
        has_aux: Whether `fun` returns a pair of which the second part is not differentiated.
        holomorphic: Whether `fun` is a holomorphic function of complex numbers.
        allow_int: Whether integers may be differentiated in; their derivatives are of dtype float0.

    Returns:
        A function of the same arguments. Its result has the tree of the results of `fun`, with the
        trees of the arguments inside; each leaf has the shape of the result followed by that of the
        argument. With `has_aux` it is (jacobian, aux).

    >>> jax.jacrev(lambda x: x * x)(jnp.array([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)"""
    chosen = check_argnums(argnums)

    @boundary
    def jacfun(*args: Any, **kwargs: Any) -> Any:
        flat, values, in_tree = _prepared("jacrev", fun, chosen, args, kwargs, has_aux)
        for i, x in enumerate(values):
            _check_input("jacrev", x, holomorphic, allow_int, _named(fun, args, kwargs, chosen, i))
        outs, pullback = vjp_of(flat, values, in_tree)
        out_avals = [typeof(o) for o in outs]
        for a in out_avals:
            check_output_dtype("jacrev", a, holomorphic)
        size = sum(a.size for a in out_avals)
        basis = _basis(out_avals)
        found, dims = batch(
            lambda *cts: [instantiate(c) for c in pullback.flat(cts)],
            Axis(None, size),
            basis,
            [0] * len(basis),
        )
        columns = [repeated(x, size) if d is None else move(x, d, 0) for x, d in zip(found, dims)]
        cut = [
            _cut(c, 0, out_avals) if has_tangent(typeof(v)) else [c] * len(outs)
            for c, v in zip(columns, values)
        ]
        jac = _nested(flat.out_tree, in_tree, list(zip(*cut)))
        return (jac, forward.lowered(flat.aux)) if has_aux else jac

    doc = f"Jacobian of {name_of(fun)} in reverse mode: takes the same arguments."
    return wrapping(jacfun, fun, doc)


jacobian = jacrev


@overload
def hessian(
    fun: OfAnything[P, Any],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
) -> Derivative[P, Any]: ...


@overload
def hessian(
    fun: OfNumbers[P, Array],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
) -> Callable[Concatenate[ArrayLike, P], Array]: ...


@overload
def hessian(
    fun: Callable[Concatenate[Array, P], Array],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
) -> Callable[Concatenate[Array, P], Array]: ...


@overload
def hessian(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[P, Any]: ...


def hessian(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """Makes a function that gives the second derivatives of `fun`: forward mode over reverse mode.

    Args:
        fun: The function; the arguments in question and its results are arrays or trees of them.
        argnums: The position, or positions, of the arguments to differentiate in.
        has_aux: Whether `fun` returns a pair of which the second part is not differentiated.
        holomorphic: Whether `fun` is a holomorphic function of complex numbers.

    Returns:
        A function of the same arguments. For an argument of shape s and a scalar result, a leaf has
        the shape s + s. With `has_aux` the result is (hessian, aux).

    >>> jax.hessian(lambda x: (x**3).sum())(jnp.array([1.0, 2.0]))
    Array([[ 6.,  0.],
           [ 0., 12.]], dtype=float32)"""
    return jacfwd(jacrev(fun, argnums, has_aux, holomorphic), argnums, has_aux, holomorphic)

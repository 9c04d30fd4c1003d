"""sparsify: functions of dense arrays applied to sparse ones, by rules for their primitives."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from calque import lax
from calque import numpy as jnp
from calque.core import pytrees
from calque.core.avals import ShapedArray
from calque.core.jaxprs import ClosedJaxpr, Var
from calque.core.primitives import REGISTRY, Primitive
from calque.core.trace import literal_value, trace_to_jaxpr, typeof
from calque.core.trace_state import Tracer
from calque.experimental.sparse import products, reshaping
from calque.experimental.sparse.base import dense_p, is_sparse
from calque.experimental.sparse.bcoo import BCOO, like
from calque.experimental.sparse.bcsr import BCSR
from calque.experimental.sparse.layouts import (
    bcoo_sum_duplicates,
    bcoo_transpose,
    bcoo_update_layout,
)
from calque.transforms.engines.trees import wrapping
from calque.transforms.functions import shapes

Rule = Callable[..., Any]


class SparseTracer(Tracer):
    """The type of traced sparse values in JAX. calque's `sparsify` makes none of them.

    Args:
        trace: The trace that the value belongs to.
        aval: Its type.

    >>> issubclass(sparse.SparseTracer, object)
    True"""


def sparsify(f: Callable[..., Any], use_tracer: bool = False) -> Callable[..., Any]:
    """Makes a function that takes sparse arrays: it does to their values what it did to dense ones.

    Args:
        f: The function, of dense arrays.
        use_tracer: It chooses between two ways of JAX that give the same; here there is one.

    Returns:
        A function of the same arguments, any of which may be sparse.

    >>> sparse.sparsify(lambda a, x: jnp.sin(a) @ x)(sparse.eye(2), jnp.zeros(2))
    Array([0., 0.], dtype=float32)"""
    if not isinstance(use_tracer, bool):
        raise TypeError(f"sparsify: use_tracer must be True or False, got {use_tracer!r}")

    def sparse_f(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = pytrees.flatten((args, kwargs), is_leaf=is_sparse)
        leaves = [_as_known(x) for x in leaves]
        trees: list[Any] = []

        def flat(*dense: Any) -> list[Any]:
            inner, named = pytrees.unflatten(tree, dense)
            outs, out_tree = pytrees.flatten(f(*inner, **named), is_leaf=is_sparse)
            trees.append(out_tree)
            return [jnp.asarray(x) for x in outs]

        closed = trace_to_jaxpr(flat, [aval_of(x) for x in leaves], getattr(f, "__name__", ""))
        return pytrees.unflatten(trees[0], run(closed, leaves))

    return wrapping(sparse_f, f)


def _as_known(x: Any) -> Any:
    if is_sparse(x) and not isinstance(x, BCOO):
        return x.to_bcoo()
    return x if is_sparse(x) else jnp.asarray(x)


def aval_of(x: Any) -> ShapedArray:
    """The aval of a dense array, or of what a sparse one stands for."""
    return ShapedArray(x.shape, x.dtype, typeof(x.data).weak_type) if is_sparse(x) else typeof(x)


def run(closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    """Run a program on values some of which are sparse."""
    jaxpr = closed.jaxpr
    env: dict[Var, Any] = dict(zip(jaxpr.constvars, closed.consts))
    env.update(zip(jaxpr.invars, args))

    def read(a: Any) -> Any:
        return env[a] if isinstance(a, Var) else literal_value(a)

    for e in jaxpr.eqns:
        values = [read(a) for a in e.invars]
        if any(is_sparse(x) for x in values):
            out = _apply(e.primitive, values, e.params)
        else:
            out = e.primitive.bind(*values, **e.params)
        env.update(zip(e.outvars, out if e.primitive.multiple_results else (out,)))
    return [read(a) for a in jaxpr.outvars]


def _apply(primitive: Primitive, values: Sequence[Any], params: dict[str, Any]) -> Any:
    rule = RULES.get(primitive.name)
    if rule is not None:
        return rule(*values, **params)
    if primitive.name in _DENSIFYING:
        raise NotImplementedError(
            f"sparse rule for {primitive.name} is not implemented because it would result in dense"
            " output. If this is your intent, use sparse.todense() to convert your arguments to"
            " dense matrices."
        )
    raise NotImplementedError(f"sparse rule for {primitive.name} is not implemented.")


# ---------------------------------------------------------------- rules: elementwise

_LINEAR = ("conj", "copy", "copy_p", "imag", "neg", "real", "stop_gradient", "device_put")
_ZERO_AT_ZERO = (
    "abs", "asin", "asinh", "atan", "atanh", "bessel_i1e", "convert_element_type", "erf", "expm1",
    "is_nan", "log1p", "round", "ceil",
    "floor", "sign", "sin", "sinh", "sqrt", "cbrt", "square", "tan", "tanh",
)  # fmt: skip
_DENSIFYING = (
    "acos", "acosh", "bessel_i0e", "cos", "cosh", "eq", "exp", "exp2", "ge", "gt", "le",
    "logistic", "log", "lt", "ne", "xor", "pow",
)  # fmt: skip


def _on_values(name: str, linear: bool) -> Rule:
    def rule(x: BCOO, **params: Any) -> BCOO:
        if not linear and not x.unique_indices:
            x = bcoo_sum_duplicates(x, nse=x.nse)
        return like(x, REGISTRY[name].bind(x.data, **params))

    return rule


def _integer_pow(x: BCOO, *, y: int) -> BCOO:
    if y <= 0:
        raise NotImplementedError(
            f"sparse rule for integer_pow with non-positive exponent {y} is not implemented: zeros"
            " that are not stored would be raised to it. Convert with todense() first"
        )
    return _on_values("integer_pow", False)(x, y=y)


def _add(x: Any, y: Any, **params: Any) -> Any:
    if not (is_sparse(x) and is_sparse(y)):
        if x.shape == y.shape:
            return jnp.add(*[v.todense() if is_sparse(v) else v for v in (x, y)])
        raise NotImplementedError(
            "Addition between a sparse array X and a dense array Y is not implemented where their"
            f" shapes differ, {x.shape} and {y.shape}. Use sparse.todense() or sparse values for"
            " both."
        )
    if x.shape != y.shape:
        raise NotImplementedError(
            f"Addition of sparse arrays of different shapes, {x.shape} and {y.shape}."
        )
    if x.indices is y.indices:
        return like(x, x.data + y.data)
    n, m = min(x.n_batch, y.n_batch), min(x.n_dense, y.n_dense)
    x, y = (bcoo_update_layout(v, n_batch=n, n_dense=m) for v in (x, y))
    whole = [v.batch_shape for v in (x, y)]
    parts = []
    for field in ("data", "indices"):
        pieces = [
            jnp.broadcast_to(getattr(v, field), b + getattr(v, field).shape[n:])
            for v, b in zip((x, y), whole)
        ]
        parts.append(jnp.concatenate(pieces, axis=n))
    return BCOO((parts[0], parts[1]), shape=x.shape)


def _sub(x: Any, y: Any, **params: Any) -> Any:
    return _add(x, like(y, -y.data) if is_sparse(y) else -y)


def _mul(x: Any, y: Any, **params: Any) -> Any:
    if is_sparse(x) and is_sparse(y):
        if x.indices is y.indices and x.unique_indices:
            return like(x, x.data * y.data)
        return products.bcoo_multiply_sparse(x, y)
    mat, dense = (x, y) if is_sparse(x) else (y, x)
    return like(mat, products.bcoo_multiply_dense(mat, dense))


def _div(x: Any, y: Any, **params: Any) -> Any:
    if is_sparse(y):
        raise NotImplementedError(
            "Division by sparse array: zeros that are not stored would be divided by."
        )
    return like(x, products.bcoo_divide_dense(x, y))


# ---------------------------------------------------------------- rules: shapes


def _broadcast_in_dim(x: BCOO, *, shape: Any, broadcast_dimensions: Any, sharding: Any) -> BCOO:
    return reshaping.bcoo_broadcast_in_dim(
        x, shape=shape, broadcast_dimensions=broadcast_dimensions, sharding=sharding
    )


def _reshape(x: BCOO, *, new_sizes: Any, dimensions: Any, sharding: Any) -> BCOO:
    return reshaping.bcoo_reshape(x, new_sizes=new_sizes, dimensions=dimensions, sharding=sharding)


def _concatenate(*xs: Any, dimension: int) -> BCOO:
    if not all(is_sparse(x) for x in xs):
        raise NotImplementedError(
            "Concatenation of sparse and dense arrays. Convert the dense ones with BCOO.fromdense,"
            " or the sparse ones with todense()"
        )
    return reshaping.bcoo_concatenate(xs, dimension=dimension)


def _reduce_sum(x: BCOO, *, axes: Any, out_sharding: Any = None) -> BCOO:
    return reshaping.bcoo_reduce_sum(x, axes=axes)


def _dynamic_slice(x: Any, *start: Any, slice_sizes: Any, **params: Any) -> BCOO:
    return reshaping.bcoo_dynamic_slice(x, start, slice_sizes)


def _gather(
    x: Any, start: Any, *, dimension_numbers: Any, slice_sizes: Any, mode: Any, **params: Any
) -> BCOO:
    # Indexing asks for clipping or filling: indices outside of a sparse array are moved inside.
    return reshaping.bcoo_gather(x, start, dimension_numbers, slice_sizes)


def _dot_general(
    x: Any, y: Any, *, dimension_numbers: Any, preferred_element_type: Any = None, **params: Any
) -> Any:
    return products.bcoo_dot_general(
        x, y, dimension_numbers=dimension_numbers, preferred_element_type=preferred_element_type
    )


def _conv(x: Any, y: Any, **params: Any) -> BCOO:
    return products.bcoo_conv_general_dilated(x, y, **params)


# ---------------------------------------------------------------- rules: programs within programs


def _call(*values: Any, jaxpr: ClosedJaxpr, **params: Any) -> list[Any]:
    return run(jaxpr, values)


def _custom_jvp(*values: Any, call_jaxpr: ClosedJaxpr, **params: Any) -> list[Any]:
    return run(call_jaxpr, values)


def _while(
    *values: Any,
    cond_jaxpr: ClosedJaxpr,
    body_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_nconsts: int,
) -> Any:
    test, step = values[:cond_nconsts], values[cond_nconsts : cond_nconsts + body_nconsts]
    init = tuple(values[cond_nconsts + body_nconsts :])

    def condition(carry: Any) -> Any:
        return run(cond_jaxpr, [*test, *carry])[0]

    return list(
        lax.while_loop(condition, lambda carry: tuple(run(body_jaxpr, [*step, *carry])), init)
    )


def _cond(index: Any, *values: Any, branches: Any, **params: Any) -> Any:
    kinds = [[is_sparse(o) for o in _kinds_of(b, values)] for b in branches]
    if any(k != kinds[0] for k in kinds):
        raise TypeError(
            "sparsified true_fun output must have same type structure as sparsified false_fun"
            " output: what is sparse in one is dense in the other. Use sparse.todense() in one of"
            " them"
        )
    choices = [lambda *v, b=b: tuple(run(b, v)) for b in branches]
    return list(lax.switch(index, choices, *values))


def _kinds_of(branch: ClosedJaxpr, values: Sequence[Any]) -> list[Any]:
    """What a branch gives for such operands, traced alone."""
    found: list[Any] = []

    def call(*given: Any) -> list[Any]:
        found[:] = run(branch, given)
        return [jnp.zeros(())]

    shapes.eval_shape(call, *values)
    return found


def _scan(
    *values: Any, jaxpr: ClosedJaxpr, length: int, num_carry: int, num_consts: int, reverse: bool,
    unroll: int, **params: Any
) -> Any:  # fmt: skip
    consts, init = values[:num_consts], tuple(values[num_consts : num_consts + num_carry])
    xs = tuple(values[num_consts + num_carry :])
    if any(is_sparse(x) for x in xs):
        raise NotImplementedError(
            "scan over the elements of a sparse array: carry it, or convert it with todense()."
        )

    def body(carry: Any, x: Any) -> Any:
        outs = run(jaxpr, [*consts, *carry, *x])
        return tuple(outs[:num_carry]), tuple(outs[num_carry:])

    carry, ys = lax.scan(body, init, xs, length=length, reverse=reverse, unroll=unroll)
    return [*carry, *ys]


RULES: Final[dict[str, Rule]] = {
    **{name: _on_values(name, True) for name in _LINEAR if name in REGISTRY},
    **{name: _on_values(name, False) for name in _ZERO_AT_ZERO if name in REGISTRY},
    "integer_pow": _integer_pow,
    "add": _add,
    "add_any": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "broadcast_in_dim": _broadcast_in_dim,
    "reshape": _reshape,
    "concatenate": _concatenate,
    "reduce_sum": _reduce_sum,
    "dynamic_slice": _dynamic_slice,
    "gather": _gather,
    "dot_general": _dot_general,
    "conv_general_dilated": _conv,
    dense_p.name: lambda x: x.todense(),
    "transpose": lambda x, permutation: bcoo_transpose(x, permutation=permutation),
    "squeeze": lambda x, dimensions: reshaping.bcoo_squeeze(x, dimensions=dimensions),
    "rev": lambda x, dimensions: reshaping.bcoo_rev(x, dimensions),
    "slice": lambda x, **cut: reshaping.bcoo_slice(x, **cut),
    "jit": _call,
    "custom_jvp_call": _custom_jvp,
    "while": _while,
    "cond": _cond,
    "scan": _scan,
}

__all__ = ["BCSR", "RULES", "SparseTracer", "run", "sparsify"]

"""Free sizes in programs that are exported for any: as numbers of the running program, and as the
shapes that operations of StableHLO take as operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from calque.core.dims import Dim
from calque.core.jaxprs import Eqn

INT: Final = np.dtype("int32")
_OPERATIONS: Final = {"min": "minimum", "max": "maximum", "floordiv": "divide", "mod": "remainder"}
# operations that are written for free sizes, too; elementwise ones are in any case
FREE: Final = frozenset((
    "all_gather", "all_gather_invariant", "all_gather_reduced", "all_to_all", "approx_top_k",
    "argmax", "argmin", "bessel_i0e", "broadcast_in_dim", "call_exported", "cholesky",
    "closed_call", "concatenate", "cond", "conv_general_dilated", "cumlogsumexp", "cummax",
    "cummin", "cumprod", "cumsum", "custom_jvp_call", "custom_lin", "custom_linear_solve",
    "custom_vjp_call", "dot_general", "dynamic_slice", "dynamic_update_slice", "eigh", "empty",
    "fft", "gather", "householder_product", "igamma", "igamma_grad_a", "igammac", "iota", "jit",
    "linear_call", "lu", "lu_pivots_to_permutation", "pad", "pbroadcast", "pmax", "pmin",
    "ppermute", "preduced", "psum", "psum_invariant", "pvary", "qr", "random_bits", "random_clone",
    "random_fold_in", "random_gamma_grad", "random_seed", "random_split", "random_unwrap",
    "random_wrap", "reduce", "reduce_and", "reduce_max", "reduce_min", "reduce_or", "reduce_prod",
    "reduce_scatter", "reduce_sum", "reduce_window", "reduce_window_max", "reduce_window_min",
    "reduce_window_sum", "reduce_xor", "reduced_vary_cast", "regularized_incomplete_beta", "remat2",
    "reshape", "rev", "scan", "scatter", "scatter-add", "scatter-max", "scatter-min", "scatter-mul",
    "scatter-sub", "select_and_gather_add", "select_and_scatter_add", "shard_map",
    "sharding_constraint", "slice", "sort", "split", "squeeze", "stack", "svd", "threefry2x32",
    "top_k", "transpose", "triangular_solve", "unreduced_psum", "unreduced_reduce_scatter",
    "unstack", "vary_unreduced_cast", "while",
))  # fmt: skip


class SizeOutOfReach(NotImplementedError):
    """A program that sees nothing of what is around it needs the number of a free size."""


def is_free(*shapes: Sequence[Any]) -> bool:
    """Whether a size of these shapes is free."""
    return any(type(d) is Dim for shape in shapes for d in shape)


def size_of(b: Any, d: Any) -> Any:
    """A size as a number of the running program."""
    if type(d) is not Dim:
        return b.scalar(d, INT)
    return _polynomial(b, d.symbols, d.poly)


def _polynomial(b: Any, scope: Any, poly: Any) -> Any:
    total = None
    for monomial, c in poly:
        term = None if c == 1 and monomial else b.scalar(c, INT)
        for i in monomial:
            x = _atom(b, scope, i)
            term = x if term is None else b.binary("multiply", term, x)
        total = term if total is None else b.binary("add", total, term)
    return b.scalar(0, INT) if total is None else total


def _atom(b: Any, scope: Any, i: int) -> Any:
    op, x, y = scope.atoms[i]
    if op == "size":
        if x not in b.state.sizes:
            raise SizeOutOfReach(f"the number of the free size {x} is not known here")
        return b.state.sizes[x]
    left, right = _polynomial(b, scope, x), _polynomial(b, scope, y)
    if op not in ("floordiv", "mod"):
        return b.binary(_OPERATIONS[op], left, right)
    rest = b.binary("remainder", left, right)  # of the sign of what is divided
    zero = b.scalar(0, INT)
    apart = b.compare("NE", b.compare("LT", rest, zero), b.compare("LT", right, zero))
    odd = b.binary("and", b.compare("NE", rest, zero), apart)
    if op == "mod":
        return b.select(odd, b.binary("add", rest, right), rest)
    whole = b.binary("divide", left, right)
    return b.select(odd, b.binary("subtract", whole, b.scalar(1, INT)), whole)


def shape_operand(b: Any, shape: Sequence[Any]) -> Any:
    """A shape, or places along the dimensions of an array, as a row of numbers."""
    if not is_free(shape):
        return b.constant(np.array(shape, INT))
    return b.concatenate([b.reshape(size_of(b, d), (1,)) for d in shape], 0)


def check_free(e: Eqn, rule: Any) -> None:
    """An error where an operation, which has this rule, is not written for free sizes."""
    name = e.primitive.name
    elementwise = getattr(rule, "__module__", "").endswith(".elementwise")
    fixed = name != "fft" or not is_free(e.params["fft_lengths"])
    if (
        elementwise
        or (name in FREE and fixed)
        or (rule is None and e.primitive.program is not None)
    ):
        return
    if is_free(*(a.aval.shape for a in (*e.invars, *e.outvars))):
        where = f" at {e.source.file}:{e.source.line}" if e.source is not None else ""
        raise NotImplementedError(
            f"export: {name}{where} has no form for free sizes; export the program once for each"
            " size that is needed"
        )


__all__ = ["FREE", "INT", "SizeOutOfReach", "check_free", "is_free", "shape_operand", "size_of"]

"""Forms of square matrices, and what is solved or multiplied with them: eigenvalues, Schur,
Hessenberg and tridiagonal forms, by the routines of LAPACK that come with jaxlib.

Elsewhere than on the CPU, and where a routine does not take the operands, the host is called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calque.core.avals import ShapedArray
from calque.core.dtypes import is_complex
from calque.core.jaxprs import Eqn
from calque.core.primitives import do
from calque.core.trace import trace_to_jaxpr, typeof
from calque.ops.linalg import common as la
from calque.ops.linalg import factors
from calque.ops.linalg.spectral import middle_sizes
from calque.xla.lower.callbacks import host_call
from calque.xla.lower.elementwise import complex_
from calque.xla.lower.factor_parts import LETTERS, call, info_of, where_done
from calque.xla.lower.linalg import factor_rule, has_routine, letter, routine
from calque.xla.lower.programs import lower_function, lower_program
from calque.xla.lower.rules import Builder, equation_rule
from calque.xla.lower.sizes import is_free
from calque.xla.text.tree import Value
from calque.xla.text.types import Tensor


def has_plain_routine(b: Builder, x: Value) -> bool:
    """Whether a routine takes such matrices, whose sizes are all known."""
    return has_routine(b, x) and not is_free(x.shape)


def of_middle_size(x: Any) -> list[Any]:
    """Matrices divided by a number each that brings them to a middle size, and these numbers."""
    aval = typeof(x)
    real, axes = la.real_dtype(aval.dtype), (aval.ndim - 2, aval.ndim - 1)
    parts = [do.real(x), do.imag(x)] if is_complex(aval.dtype) else [x]
    sizes = [do.reduce_max(do.abs(p), axes=axes) for p in parts]
    size = sizes[0] if len(sizes) == 1 else do.max(*sizes)
    least, most = (np.asarray(v, real) for v in middle_sizes(real))
    apart = do.or_(do.lt(size, least), do.gt(size, most))
    apart = do.and_(apart, do.gt(size, np.asarray(0, real)))
    scale = do.select_n(
        apart,
        do.broadcast_in_dim(np.asarray(1, real), shape=typeof(size).shape, broadcast_dimensions=()),
        size,
    )
    every = la.columns(la.columns(scale, aval.shape[-2]), aval.shape[-1])
    return [do.div(x, la.as_dtype(every, aval.dtype)), scale]


def of_own_size(values: Any, scale: Any) -> list[Any]:
    """The eigenvalues of matrices from those of the same divided by a number."""
    aval = typeof(values)
    return [do.mul(values, la.as_dtype(la.columns(scale, aval.shape[-1]), aval.dtype))]


@equation_rule("eig")
def eig(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
    (x,) = args
    p: dict[str, Any] = e.params
    if not has_plain_routine(b, x):
        return host_call(b, e, outs, args)
    w, vectors = outs[0], outs[0].with_shape(x.shape)
    wanted = (p["compute_left_eigenvectors"], p["compute_right_eigenvectors"])
    sides = ("compute_left", "compute_right")
    options = {name: letter("V" if asked else "N") for name, asked in zip(sides, wanted)}
    parts = [w] if is_complex(x.dtype) else [w.with_dtype(la.real_dtype(w.dtype))] * 2
    types = [*parts, vectors, vectors, info_of(x)]
    kind = e.invars[0].aval
    x, scale = lower_program(b, trace_to_jaxpr(of_middle_size, [kind], "eig"), [x])
    *values, left, right, info = routine(b, "geev", [x], types, options, aliased=None)
    found = values[0] if len(values) == 1 else complex_(b, w, *values)
    scales = ShapedArray(kind.shape[:-2], la.real_dtype(kind.dtype))
    own = trace_to_jaxpr(of_own_size, [e.outvars[0].aval, scales], "eig")
    (found,) = lower_program(b, own, [found, scale])
    kept = [found, *[v for v, asked in zip((left, right), wanted) if asked]]
    return [where_done(b, info, v) for v in kept]


@equation_rule("schur")
def schur(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
    (x,) = args
    if not has_plain_routine(b, x) or e.params["sort_eig_vals"]:
        return host_call(b, e, outs, args)
    values = [x.tensor.with_shape(x.shape[:-1])] * (1 if is_complex(x.dtype) else 2)
    options = {"mode": letter("V" if len(outs) == 2 else "N"), "sort": letter("N")}
    types = [x.tensor, x.tensor, *values, info_of(x), info_of(x)]
    found = routine(b, "gees", [x], types, options)
    return [where_done(b, found[-1], v) for v in found[: len(outs)]]


@equation_rule("hessenberg")
def hessenberg(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
    (x,) = args
    if not has_plain_routine(b, x) or x.shape[-1] < 2:
        return host_call(b, e, outs, args)
    options = {"low": "1 : i32", "high": f"{x.shape[-1]} : i32"}
    *found, info = routine(b, "gehrd", [x], [*outs, info_of(x)], options)
    return [where_done(b, info, v) for v in found]


@factor_rule("tridiagonal")
def tridiagonal(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
    (x,) = args
    if not has_plain_routine(b, x) or x.shape[-1] < 2:
        return host_call(b, e, outs, args)
    name = "hetrd" if is_complex(x.dtype) else "sytrd"
    options = {"uplo": letter("L" if e.params["lower"] else "U")}
    *found, info = routine(b, name, [x], [*outs, info_of(x)], options)
    return [where_done(b, info, v) for v in found]


@factor_rule("tridiagonal_solve")
def tridiagonal_solve(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
    right = args[3]
    if not has_plain_routine(b, right) or e.params["perturb_singular"]:
        return host_call(b, e, outs, args)
    types = [*(x.tensor for x in args), info_of(right)]
    target = f"lapack_{LETTERS[right.dtype.name]}gtsv_ffi"
    *_, x, info = call(b, target, args, types, {}, aliased=None, batch=right.ndim - 2)
    return [where_done(b, info, x)]


def _multiplied(a: Any, taus: Any, c: Any, *, left: bool, transpose: bool) -> Any:
    """Q c, Q^H c, c Q or c Q^H, for the square Q of the reflections."""
    m, n = typeof(a).shape[-2:]
    square = la.part(a, m, m) if n > m else la.enlarged(a, m, m)
    q = do.householder_product(square, taus)
    q = la.adjoint(q) if transpose else q
    return la.matmul(q, c) if left else la.matmul(c, q)


@equation_rule("ormqr")
def ormqr(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
    return lower_function(b, e, _multiplied, args)


@equation_rule("cholesky_update")
def cholesky_update(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
    return lower_function(b, e, factors.update_program, args)


@equation_rule("symmetric_product")
def symmetric_product(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
    return lower_function(b, e, factors.product_program, args)

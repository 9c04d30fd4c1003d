"""Orthogonal reductions: QR, Householder products, Hessenberg, tridiagonal and Schur form;
tridiagonal systems."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calque.core.arrays import Array
from calque.core.avals import ShapedArray
from calque.core.dtypes import is_complex
from calque.core.extents import smaller
from calque.core.lazy import LazyModule
from calque.core.primitives import NotApplicable, Primitive, UndefinedPrimal, Zero, do
from calque.core.trace import typeof
from calque.core.types import ArrayLike
from calque.ops import common
from calque.ops.common import add_tangents, zero_like
from calque.ops.common import operand as as_operand
from calque.ops.linalg import common as la

scipy_linalg, lapack = LazyModule("scipy.linalg"), LazyModule("scipy.linalg.lapack")

# ---------------------------------------------------------------- qr


def _qr_shape(
    x: ShapedArray, *, pivoting: bool, full_matrices: bool, use_magma: Any
) -> list[ShapedArray]:
    batch, m, n = la.check_matrix("qr", x)
    k = m if full_matrices else smaller(m, n)
    out = [ShapedArray((*batch, m, k), x.dtype), ShapedArray((*batch, k, n), x.dtype)]
    return [*out, ShapedArray((*batch, n), la.INT)] if pivoting else out


def _qr_meaning(
    x: np.ndarray, *, pivoting: bool, full_matrices: bool, use_magma: Any
) -> list[np.ndarray]:
    avals = _qr_shape(
        ShapedArray(x.shape[-2:], x.dtype),
        pivoting=pivoting,
        full_matrices=full_matrices,
        use_magma=None,
    )
    m, n = x.shape[-2:]

    def one(a: np.ndarray) -> Sequence[np.ndarray]:
        if m == 0 or n == 0:
            return [
                np.eye(avals[0].shape[0], avals[0].shape[1]),
                np.zeros(avals[1].shape),
                *([np.arange(n)] if pivoting else []),
            ]
        mode = "full" if full_matrices else "economic"
        return scipy_linalg.qr(a, mode=mode, pivoting=pivoting, check_finite=False)

    return la.for_each(one, [(x, 2)], [(a.shape, a.dtype) for a in avals])


def _qr_jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    pivoting: bool,
    full_matrices: bool,
    **p: Any,
) -> Any:
    """With A = Q R and Q^H dA R^-1 = W: dQ = Q O + (I - Q Q^H) dA R^-1, where O, the anti-Hermitian
    part of the strict lower triangle of W, is what keeps dR = (W - O) R upper triangular. Columns
    beyond the rows follow from R = Q^H A. The columns that complete a square Q are those of one
    of many bases: the one meant here turns no further than the first columns make it.
    """
    out = do.qr(primals[0], pivoting=pivoting, full_matrices=full_matrices, **p)
    dx = tangents[0]
    if type(dx) is Zero:
        return out, [zero_like(o) for o in out]
    q, r, *order = out
    m, n = typeof(primals[0]).shape[-2:]
    if pivoting:
        dx = la.transposed(la.take_rows(la.transposed(dx), order[0]))
    k = smaller(m, n)
    scaled = la.solve_triangular(la.part(r, k, k), la.part(dx, m, k), left=False, lower=False)
    inner = la.matmul(la.adjoint(q), scaled)
    completed = full_matrices and m > n
    inner = la.enlarged(inner, m, m) if completed else inner
    strict = la.tril(inner, -1)
    turn = do.sub(strict, la.adjoint(strict))
    if is_complex(typeof(q).dtype):  # the diagonal of R stays real
        dtype = typeof(q).dtype
        diagonal = do.mul(inner, la.eye(typeof(inner)))
        turn = do.add(turn, do.sub(diagonal, la.as_dtype(do.real(diagonal), dtype)))
    if completed:
        dq = la.matmul(q, turn)
    else:
        dq = do.add(la.matmul(q, do.sub(turn, inner)), scaled)
    # Q^H dA = Q^H dQ R + dR, and Q^H dQ = turn
    dr = do.sub(la.matmul(la.adjoint(q), dx), la.matmul(turn, r))
    return out, [dq, la.triu(dr), *map(zero_like, order)]


qr_p = Primitive(
    "qr",
    meaning=_qr_meaning,
    shape=_qr_shape,
    jvp=_qr_jvp,
    transpose=NotApplicable("qr is not linear"),
    batch=la.batched("qr"),
    multiple_results=True,
)


def qr(
    x: ArrayLike,
    *,
    pivoting: bool = False,
    full_matrices: bool = True,
    use_magma: bool | None = None,
) -> tuple[Array, ...]:
    """Gives the QR decomposition of a matrix.

    Args:
        x: The matrix, or a batch of them.
        pivoting: Whether columns are permuted, so that the diagonal of r descends.
        full_matrices: Whether q is square.
        use_magma: Speaks of a library for GPUs; it changes nothing here.

    Returns:
        (q, r), with `pivoting` (q, r, p), where x[:, p] = q r.

    >>> [v.shape for v in lax.linalg.qr(jnp.ones((4, 2)), full_matrices=False)]
    [(4, 2), (2, 2)]"""
    return tuple(
        do.qr(as_operand(x), pivoting=pivoting, full_matrices=full_matrices, use_magma=use_magma)
    )


# ---------------------------------------------------------------- Householder products


def _householder_shape(a: ShapedArray, taus: ShapedArray) -> ShapedArray:
    la.check_dtype("householder_product", a, taus)
    batch, m, n = la.check_matrix("householder_product", a)
    if (
        la.check_batches("householder_product", (a, 2), (taus, 1)) != batch
        or m < n
        or taus.shape[-1] > n
    ):
        raise ValueError(
            "householder_product needs matrices with no more columns than rows, and no more taus"
            f" than columns, got {a.str_short()} and {taus.str_short()}"
        )
    return ShapedArray(a.shape, a.dtype)


def _reflections(
    a: np.ndarray, taus: np.ndarray, c: np.ndarray, order: Sequence[int], adjoint: bool
) -> np.ndarray:
    """H c for the product H of the reflections `order`, the last applied first; `adjoint`: each
    one's adjoint."""
    for i in reversed(order):
        v = np.concatenate(
            [
                np.zeros((*a.shape[:-2], i), a.dtype),
                np.ones((*a.shape[:-2], 1), a.dtype),
                a[..., i + 1 :, i],
            ],
            -1,
        )
        tau = np.conj(taus[..., i]) if adjoint else taus[..., i]
        c = c - (tau[..., None, None] * v[..., :, None]) * (np.conj(v)[..., None, :] @ c)
    return c


def _householder_meaning(a: np.ndarray, taus: np.ndarray) -> np.ndarray:
    m, n = a.shape[-2:]
    eye = np.broadcast_to(np.eye(m, n, dtype=a.dtype), a.shape)
    return np.asarray(_reflections(a, taus, eye, range(taus.shape[-1]), False)).astype(a.dtype)


def _column(x: Any, i: int) -> Any:
    """Column `i` as a matrix of one column."""
    return la.part(x, typeof(x).shape[-2], 1, 0, i)


def _reflected(a: Any, taus: Any, c: Any, order: Sequence[int], adjoint: bool) -> Any:
    """As `_reflections`, by primitives."""
    below = la.tril(a, -1)
    one = la.eye(typeof(a), typeof(a).shape[-2])
    aval = typeof(c)
    for i in reversed(order):
        v = do.add(_column(below, i), _column(one, i))
        tau = do.slice(
            taus,
            start_indices=(*(0,) * (typeof(taus).ndim - 1), i),
            limit_indices=(*typeof(taus).shape[:-1], i + 1),
        )
        tau = la.conjugated(tau) if adjoint else tau
        dims = (*range(aval.ndim - 2), aval.ndim - 1)
        tau = do.broadcast_in_dim(tau, shape=aval.shape, broadcast_dimensions=dims)
        c = do.sub(c, do.mul(tau, la.matmul(v, la.matmul(la.adjoint(v), c))))
    return c


def _householder_program(a: Any, taus: Any) -> Any:
    n = typeof(a).shape[-1]
    eye = la.part(la.eye(typeof(a), typeof(a).shape[-2]), typeof(a).shape[-2], n)
    return _reflected(a, taus, eye, range(typeof(taus).shape[-1]), False)


householder_product_p = Primitive(
    "householder_product",
    meaning=_householder_meaning,
    shape=_householder_shape,
    jvp=la.jvp_by_program("householder_product", _householder_program),
    transpose=NotApplicable("householder_product is not linear"),
    batch=la.batched("householder_product"),
)


def householder_product(a: ArrayLike, taus: ArrayLike) -> Array:
    """Gives the first columns of the product of Householder reflections.

    Args:
        a: The reflections, below the diagonal of a matrix.
        taus: Their factors.

    Returns:
        An array of the shape of `a`.

    >>> lax.linalg.householder_product(jnp.zeros((2, 2)), jnp.zeros(2))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)"""
    return do.householder_product(
        *common.same_dtypes("householder_product", [as_operand(a), as_operand(taus)])
    )


def _ormqr_shape(
    a: ShapedArray, taus: ShapedArray, c: ShapedArray, *, left: bool, transpose: bool
) -> ShapedArray:
    la.check_dtype("ormqr", a, taus, c)
    _, m, n = la.check_matrix("ormqr", a)
    la.check_batches("ormqr", (a, 2), (taus, 1), (c, 2))
    if taus.shape[-1] > min(m, n) or c.shape[-2 if left else -1] != m:
        raise ValueError(
            f"ormqr: operands {a.str_short()}, {taus.str_short()} and {c.str_short()} do not fit"
            f" with left={left}"
        )
    return ShapedArray(c.shape, c.dtype)


def _apply_q(reflect: Callable[..., Any], adjoint: Callable[[Any], Any]) -> Callable[..., Any]:
    """Q c, Q^H c, c Q or c Q^H, for c on the right by c Q = (Q^H c^H)^H."""

    def apply(a: Any, taus: Any, c: Any, *, left: bool, transpose: bool) -> Any:
        count = range(taus.shape[-1] if isinstance(taus, np.ndarray) else typeof(taus).shape[-1])
        backward = transpose == left
        order = list(reversed(count)) if backward else list(count)
        out = reflect(a, taus, c if left else adjoint(c), order, backward)
        return out if left else adjoint(out)

    return apply


_ormqr_numpy = _apply_q(_reflections, lambda x: np.conj(np.swapaxes(x, -1, -2)))

ormqr_p = Primitive(
    "ormqr",
    meaning=lambda a, taus, c, **p: np.asarray(_ormqr_numpy(a, taus, c, **p)).astype(c.dtype),
    shape=_ormqr_shape,
    jvp=la.jvp_by_program("ormqr", _apply_q(_reflected, la.adjoint)),
    transpose=NotApplicable("ormqr appears in no tangent"),
    batch=la.batched("ormqr"),
)


def ormqr(
    a: ArrayLike, taus: ArrayLike, c: ArrayLike, *, left: bool = True, transpose: bool = False
) -> Array:
    """Multiplies a matrix by the Q of Householder reflections.

    Args:
        a: The reflections, below the diagonal of a matrix.
        taus: Their factors.
        c: The matrix.
        left: Whether Q stands on the left of `c`.
        transpose: Whether the conjugate transpose of Q is taken.

    Returns:
        An array of the shape of `c`.

    >>> lax.linalg.ormqr(jnp.zeros((2, 2)), jnp.zeros(2), jnp.ones((2, 1))).shape
    (2, 1)"""
    return do.ormqr(
        *common.same_dtypes("ormqr", [as_operand(a), as_operand(taus), as_operand(c)]),
        left=left,
        transpose=transpose,
    )


# ---------------------------------------------------------------- hessenberg, tridiagonal, schur

NO_DERIVATIVE = "{} has no derivative; differentiate through eigh, eig or qr instead"


def _reduction(name: str, meaning: Callable[..., Any], shape: Callable[..., Any]) -> Primitive:
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **p: Any) -> Any:
        out = do[name](*primals, **p)
        if all(type(t) is Zero for t in tangents):
            return out, [zero_like(o) for o in out]
        raise NotImplementedError(NO_DERIVATIVE.format(name))

    return Primitive(
        name,
        meaning=meaning,
        shape=shape,
        jvp=jvp,
        transpose=NotApplicable(f"{name} is not linear"),
        batch=la.batched(name),
        multiple_results=True,
    )


def _hessenberg_shape(a: ShapedArray) -> list[ShapedArray]:
    batch, n, _ = la.check_matrix("hessenberg", a, square=True)
    return [ShapedArray(a.shape, a.dtype), ShapedArray((*batch, max(n - 1, 0)), a.dtype)]


def _hessenberg_meaning(a: np.ndarray) -> list[np.ndarray]:
    n = a.shape[-1]
    gehrd = lapack.get_lapack_funcs("gehrd", (a,))

    def one(x: np.ndarray) -> Sequence[np.ndarray]:
        return gehrd(x)[:2] if n > 1 else [x, np.zeros(max(n - 1, 0), a.dtype)]

    return la.for_each(one, [(a, 2)], [((n, n), a.dtype), ((max(n - 1, 0),), a.dtype)])


hessenberg_p = _reduction("hessenberg", _hessenberg_meaning, _hessenberg_shape)


def hessenberg(a: ArrayLike) -> tuple[Array, Array]:
    """Gives the Hessenberg form of a square matrix.

    Args:
        a: The matrix, or a batch of them.

    Returns:
        A pair: the form with the reflections below it, and their factors.

    >>> [v.shape for v in lax.linalg.hessenberg(jnp.eye(3))]
    [(3, 3), (2,)]"""
    h, taus = do.hessenberg(as_operand(a))
    return h, taus


def _tridiagonal_shape(a: ShapedArray, *, lower: bool) -> list[ShapedArray]:
    batch, n, _ = la.check_matrix("tridiagonal", a, square=True)
    real, less = la.real_dtype(a.dtype), max(n - 1, 0)
    return [
        a.strip_weak_type(),
        ShapedArray((*batch, n), real),
        ShapedArray((*batch, less), real),
        ShapedArray((*batch, less), a.dtype),
    ]


def _tridiagonal_meaning(a: np.ndarray, *, lower: bool) -> list[np.ndarray]:
    n, real = a.shape[-1], la.real_dtype(a.dtype)
    trd = lapack.get_lapack_funcs("hetrd" if is_complex(a.dtype) else "sytrd", (a,))
    less = max(n - 1, 0)

    def one(x: np.ndarray) -> Sequence[np.ndarray]:
        if n < 2:
            return [x, np.diagonal(x).real, np.zeros(less), np.zeros(less)]
        return trd(x, lower=int(lower))[:4]

    return la.for_each(
        one, [(a, 2)], [((n, n), a.dtype), ((n,), real), ((less,), real), ((less,), a.dtype)]
    )


tridiagonal_p = _reduction("tridiagonal", _tridiagonal_meaning, _tridiagonal_shape)


def tridiagonal(a: ArrayLike, *, lower: bool = True) -> tuple[Array, Array, Array, Array]:
    """Gives the tridiagonal form of a Hermitian matrix.

    Args:
        a: The matrix, or a batch of them.
        lower: Whether the lower triangle is read.

    Returns:
        (the matrix with the reflections, diagonal, off-diagonal, factors of the reflections).

    >>> [v.shape for v in lax.linalg.tridiagonal(jnp.eye(3))]
    [(3, 3), (3,), (2,), (2,)]"""
    out, d, e, taus = do.tridiagonal(as_operand(a), lower=bool(lower))
    return out, d, e, taus


def _schur_shape(
    x: ShapedArray, *, compute_schur_vectors: bool, sort_eig_vals: bool, select_callable: Any
) -> list[ShapedArray]:
    la.check_matrix("schur", x, square=True)
    if sort_eig_vals and select_callable is None:
        raise ValueError(
            "schur: sort_eig_vals=True needs a select_callable that says which eigenvalues come"
            " first"
        )
    return [ShapedArray(x.shape, x.dtype)] * (2 if compute_schur_vectors else 1)


def _schur_meaning(
    x: np.ndarray, *, compute_schur_vectors: bool, sort_eig_vals: bool, select_callable: Any
) -> list[np.ndarray]:
    n = x.shape[-1]
    kind = "complex" if is_complex(x.dtype) else "real"

    def one(a: np.ndarray) -> Sequence[np.ndarray]:
        if n == 0:
            return [a, a][: 1 + compute_schur_vectors]
        if not np.isfinite(a).all():
            return [np.triu(np.full_like(a, np.nan)), np.full_like(a, np.nan)][
                : 1 + compute_schur_vectors
            ]
        sort = select_callable if sort_eig_vals else None
        return scipy_linalg.schur(a, output=kind, sort=sort, check_finite=False)[
            : 1 + compute_schur_vectors
        ]

    return la.for_each(one, [(x, 2)], [((n, n), x.dtype)] * (1 + compute_schur_vectors))


schur_p = _reduction("schur", _schur_meaning, _schur_shape)


def schur(
    x: ArrayLike,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Any = None,
) -> tuple[Array, ...]:
    """Gives the Schur form of a square matrix: x = z t z^H.

    Args:
        x: The matrix, or a batch of them.
        compute_schur_vectors: Whether to give z.
        sort_eig_vals: Whether eigenvalues that `select_callable` takes come first.
        select_callable: A function from an eigenvalue to a bool; needed with `sort_eig_vals`.

    Returns:
        (t, z), or (t,).

    >>> [v.shape for v in lax.linalg.schur(jnp.eye(3))]
    [(3, 3), (3, 3)]"""
    p = {"compute_schur_vectors": compute_schur_vectors, "sort_eig_vals": sort_eig_vals}
    return tuple(do.schur(as_operand(x), select_callable=select_callable, **p))


# ---------------------------------------------------------------- tridiagonal_solve


def _tridiagonal_solve_shape(
    dl: ShapedArray, d: ShapedArray, du: ShapedArray, b: ShapedArray, *, perturb_singular: bool
) -> ShapedArray:
    la.check_dtype("tridiagonal_solve", dl, d, du, b)
    batch, m, _ = la.check_matrix("tridiagonal_solve", b)
    if not dl.shape == d.shape == du.shape == (*batch, m):
        raise ValueError(
            "tridiagonal_solve needs three diagonals of one length, that of the columns of b, got"
            f" {dl.str_short()}, {d.str_short()}, {du.str_short()} and {b.str_short()}"
        )
    return ShapedArray(b.shape, b.dtype)


def _tridiagonal_solve_meaning(
    dl: np.ndarray, d: np.ndarray, du: np.ndarray, b: np.ndarray, *, perturb_singular: bool
) -> np.ndarray:
    n = d.shape[-1]
    if b.size == 0:
        return np.zeros(b.shape, b.dtype)
    gtsv = lapack.get_lapack_funcs("gtsv", (b,))

    def one(dl: np.ndarray, d: np.ndarray, du: np.ndarray, b: np.ndarray) -> Sequence[np.ndarray]:
        if perturb_singular:
            scale = max(np.abs(v).max(initial=0) for v in (dl[1:], d, du[:-1]))
            tiny = np.finfo(d.dtype).eps * (scale or 1)
        if n == 1:
            by = d + tiny if perturb_singular and d == 0 else d
            return [b / by if by != 0 else np.full_like(b, np.nan)]
        *_, x, info = gtsv(dl[1:], d, du[:-1], b)
        if info and perturb_singular:
            *_, x, info = gtsv(dl[1:], d + tiny, du[:-1], b)
        return [np.full_like(b, np.nan) if info else x]

    return la.for_each(one, [(dl, 1), (d, 1), (du, 1), (b, 2)], [(b.shape[-2:], b.dtype)])[0]


def _times(dl: Any, d: Any, du: Any, x: Any) -> Any:
    """The product of a tridiagonal matrix, some of whose diagonals may be Zero, with the columns of
    x."""
    k = typeof(x).shape[-1]
    total: Any = Zero(typeof(x))
    for t, shift in ((dl, 1), (d, 0), (du, -1)):
        if type(t) is not Zero:
            pad = (*[(0, 0, 0)] * (typeof(x).ndim - 2), (shift, -shift, 0), (0, 0, 0))
            moved = (
                do.pad(x, common.scalar_of(typeof(x).dtype, 0), padding_config=pad) if shift else x
            )
            total = add_tangents(total, do.mul(la.columns(t, k), moved))
    return total


def _tridiagonal_solve_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], **p: Any
) -> tuple[Any, Any]:
    dl, d, du, b = primals
    x = do.tridiagonal_solve(dl, d, du, b, **p)
    if all(type(t) is Zero for t in tangents):
        return x, zero_like(x)
    moved = _times(tangents[0], tangents[1], tangents[2], x)
    right = add_tangents(tangents[3], moved if type(moved) is Zero else do.neg(moved))
    return x, do.tridiagonal_solve(dl, d, du, right, **p)


def _tridiagonal_solve_transpose(
    ct: Any, dl: Any, d: Any, du: Any, b: UndefinedPrimal, **p: Any
) -> list[Any]:
    if type(ct) is Zero:
        return [None, None, None, Zero(b.aval)]
    ndim, zero = typeof(d).ndim, common.scalar_of(typeof(d).dtype, 0)

    def shifted(v: Any, k: int) -> Any:
        return do.pad(v, zero, padding_config=(*[(0, 0, 0)] * (ndim - 1), (k, -k, 0)))

    return [None, None, None, do.tridiagonal_solve(shifted(du, 1), d, shifted(dl, -1), ct, **p)]


tridiagonal_solve_p = Primitive(
    "tridiagonal_solve",
    meaning=_tridiagonal_solve_meaning,
    shape=_tridiagonal_solve_shape,
    jvp=_tridiagonal_solve_jvp,
    transpose=_tridiagonal_solve_transpose,
    batch=la.batched("tridiagonal_solve"),
)


def tridiagonal_solve(
    dl: ArrayLike, d: ArrayLike, du: ArrayLike, b: ArrayLike, *, perturb_singular: bool = False
) -> Array:
    """Solves a tridiagonal system.

    Args:
        dl: The lower diagonal; its first entry is not read.
        d: The diagonal.
        du: The upper diagonal; its last entry is not read.
        b: The right side, a matrix, or a batch of them.
        perturb_singular: Whether a small number is added to the diagonal of a singular system;
            otherwise its x is NaN.

    Returns:
        x, of the shape of `b`.

    >>> z = jnp.zeros(2)
    >>> lax.linalg.tridiagonal_solve(z, jnp.array([1.0, 2.0]), z, jnp.array([[3.0], [4.0]]))
    Array([[3.],
           [2.]], dtype=float32)"""
    xs = common.same_dtypes("tridiagonal_solve", [as_operand(v) for v in (dl, d, du, b)])
    return do.tridiagonal_solve(*xs, perturb_singular=perturb_singular)

"""Matrices with a pattern: Toeplitz and its kin, companions, and the named ones."""

import math
from typing import Any, Final

import numpy as np

from calque import numpy as jnp
from calque.core.arrays import Array
from calque.core.dims import whole
from calque.core.dtypes import asked, canonicalize, is_complex
from calque.core.types import ArrayLike, DTypeLike
from calque.numpy.promotion import array_of, arrays, promote_dtypes, promote_inexact

__all__ = [
    "block_diag", "circulant", "companion", "convolution_matrix", "dft", "fiedler",
    "fiedler_companion", "hadamard", "hankel", "helmert",
    "hilbert", "invhilbert", "invpascal", "leslie", "pascal", "toeplitz",
]  # fmt: skip

# ---------------------------------------------------------------- from vectors


def _picked(c: Any, r: Any, index: np.ndarray) -> Any:
    """Matrices whose elements are those of the vectors c and r, put end to end, at these places."""
    c, r = promote_dtypes(c, r)
    lead = jnp.broadcast_shapes(c.shape[:-1], r.shape[:-1])
    both = jnp.concatenate([jnp.broadcast_to(v, (*lead, v.shape[-1])) for v in (c, r)], axis=-1)
    if 0 in index.shape:
        return jnp.zeros((*lead, *index.shape), both.dtype)
    return both[..., index.astype(np.int32)]


def _row_and_column(m: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(m)[:, None], np.arange(n)[None, :]


def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """The matrix that is constant along its diagonals.

    Args:
        c: its first column.
        r: its first row, whose first element is not used; None is the conjugate of `c`.
    Returns:
        A matrix. Further axes of `c` and `r` come first.

    >>> scipy.linalg.toeplitz(jnp.array([1, 2, 3]))
    Array([[1, 2, 3],
           [2, 1, 2],
           [3, 2, 1]], dtype=int32)"""
    if r is None:
        c = jnp.atleast_1d(array_of("toeplitz", c))
        r = jnp.conj(c)
    else:
        c, r = (jnp.atleast_1d(v) for v in arrays("toeplitz", c, r))
    m, n = c.shape[-1], r.shape[-1]
    i, j = _row_and_column(m, n)
    out = _picked(c, r, np.where(i >= j, i - j, m + j - i))
    return out.astype(out.dtype)  # of numbers, too, a matrix of no weak type


def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """The matrix that is constant along its anti-diagonals.

    Args:
        c: its first column.
        r: its last row, whose first element is not used; None is zeros.
    Returns:
        A matrix.

    >>> scipy.linalg.hankel(jnp.array([1, 2, 3]))
    Array([[1, 2, 3],
           [2, 3, 0],
           [3, 0, 0]], dtype=int32)"""
    c = array_of("hankel", c)
    r = jnp.zeros_like(c) if r is None else array_of("hankel", r)
    for name, v in (("c", c), ("r", r)):
        if v.ndim == 0:
            raise ValueError(f"hankel: {name} must be at least 1-dimensional, got a scalar.")
    m, n = c.shape[-1], r.shape[-1]
    i, j = _row_and_column(m, n)
    # the corner belongs to c
    return _picked(c, r, np.where(i + j < m, i + j, i + j + 1))


def circulant(c: ArrayLike) -> Array:
    """The matrix whose columns are one vector, each turned one place further.

    Args:
        c: the first column.
    Returns:
        A square matrix.

    >>> scipy.linalg.circulant(jnp.array([1, 2, 3]))
    Array([[1, 3, 2],
           [2, 1, 3],
           [3, 2, 1]], dtype=int32)"""
    c = jnp.atleast_1d(array_of("circulant", c))
    n = c.shape[-1]
    if n == 0:
        return jnp.zeros((*c.shape, 0), c.dtype)
    i, j = _row_and_column(n, n)
    return c[..., ((i - j) % n).astype(np.int32)]


def fiedler(a: ArrayLike) -> Array:
    """The matrix of the distances between numbers.

    Args:
        a: the numbers, a vector.
    Returns:
        A symmetric matrix with the elements `abs(a[i] - a[j])`.

    >>> scipy.linalg.fiedler(jnp.array([1, 4]))
    Array([[0, 3],
           [3, 0]], dtype=int32)"""
    a = jnp.atleast_1d(array_of("fiedler", a))
    return jnp.abs(a[..., :, None] - a[..., None, :])


def leslie(f: Any, s: ArrayLike) -> Array:
    """The matrix of Leslie's model of a population.

    Args:
        f: the fertility of each age, the first row.
        s: the rate of survival to the next age, below the diagonal; one less.
    Returns:
        A square matrix.

    >>> scipy.linalg.leslie(jnp.array([0.0, 2.0]), jnp.array([0.5]))
    Array([[0. , 2. ],
           [0.5, 0. ]], dtype=float32)"""
    f, s = (jnp.atleast_1d(v) for v in promote_dtypes(*arrays("leslie", f, s)))
    n = f.shape[-1]
    if n < 2:
        raise ValueError(
            f"The length of f along the last axis must be at least 2; got shape {f.shape}."
        )
    if s.shape[-1] != n - 1:
        raise ValueError(
            "Incorrect lengths for f and s. The length of s along the last axis must be one less"
            f" than the length of f; got f shape {f.shape} and s shape {s.shape}."
        )
    lead = jnp.broadcast_shapes(f.shape[:-1], s.shape[:-1])
    return _below_row(jnp.broadcast_to(f, (*lead, n)), jnp.broadcast_to(s, (*lead, n - 1)))


def _below_row(row: Any, diagonal: Any) -> Any:
    """The matrix with this first row and this first diagonal below the main one."""
    n = row.shape[-1]
    eye = np.eye(n - 1, n).astype(bool)
    below = jnp.where(eye, diagonal[..., :, None], jnp.zeros((), diagonal.dtype))
    return jnp.concatenate([row[..., None, :], below], axis=-2)


def companion(a: ArrayLike) -> Array:
    """The companion matrix of a polynomial, whose eigenvalues are its roots.

    Args:
        a: the coefficients, the highest power first.
    Returns:
        A square matrix.

    >>> scipy.linalg.companion(jnp.array([1.0, -3.0, 2.0]))
    Array([[ 3., -2.],
           [ 1.,  0.]], dtype=float32)"""
    a = jnp.atleast_1d(promote_inexact(array_of("companion", a))[0])
    if a.shape[-1] < 2:
        raise ValueError(
            f"The length of `a` along the last axis must be at least 2; got shape {a.shape}."
        )
    row = -a[..., 1:] / a[..., :1]
    return _below_row(row, jnp.ones((*a.shape[:-1], a.shape[-1] - 2), a.dtype))


def fiedler_companion(a: ArrayLike) -> Array:
    """A companion matrix of a polynomial with five diagonals.

    Args:
        a: the coefficients, the highest power first.
    Returns:
        A square matrix, whose eigenvalues are the roots.

    >>> scipy.linalg.fiedler_companion(jnp.array([1.0, -3.0, 2.0]))
    Array([[ 3., -2.],
           [ 1.,  0.]], dtype=float32)"""
    a = jnp.atleast_1d(promote_inexact(array_of("fiedler_companion", a))[0])
    n = a.shape[-1] - 1
    if n < 0:
        raise ValueError(
            "fiedler_companion requires the last axis of 'a' to have nonzero length, but got an"
            f" array of shape {a.shape}."
        )
    if n == 0:
        return a[..., :0, None][..., :0]
    source = _fiedler_places(n)
    values = jnp.concatenate(
        [
            -a[..., 1:] / a[..., :1],
            jnp.ones((*a.shape[:-1], 1), a.dtype),
            jnp.zeros((*a.shape[:-1], 1), a.dtype),
        ],
        axis=-1,
    )
    return values[..., source]


def _fiedler_places(n: int) -> np.ndarray:
    """Which coefficient stands where: k for -a[k + 1] / a[0], n for one, n + 1 for zero. SciPy's
    arrangement: coefficients on the diagonals -1 and +1 (after the corner), ones on the diagonals
    -2 and +2."""
    out = np.full((n, n), n + 1, np.int32)
    out[0, 0] = 0
    if n == 1:
        return out
    out[1, 0] = n
    out[0, 1] = 1
    for k in range(2, n):
        if k % 2:  # odd: in the row of its predecessor
            out[k - 1, k] = k
        else:
            out[k, k - 1] = k
    for k in range(n - 2):
        if k % 2:
            out[k + 2, k] = n
        else:
            out[k, k + 2] = n
    return out


def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """The matrix whose product with a vector is its convolution with another.

    Args:
        a: the other vector.
        n: how many elements the vector has.
        mode: "full", "same" or "valid", as of `jnp.convolve`.
    Returns:
        A matrix with `n` columns.

    >>> scipy.linalg.convolution_matrix(jnp.array([1, 2]), 2)
    Array([[1, 0],
           [2, 1],
           [0, 2]], dtype=int32)"""
    n = whole(n, "n")
    if n <= 0:
        raise ValueError(f"n must be a positive integer; got {n}.")
    a = array_of("convolution_matrix", a)
    if a.ndim == 0:
        raise ValueError("convolution_matrix: a must be at least 1-dimensional, got a scalar.")
    m = a.shape[-1]
    if m < 1:
        raise ValueError(f"len(a) must be at least 1; got shape {a.shape}.")
    if mode not in ("full", "valid", "same"):
        raise ValueError(f"mode must be one of 'full', 'valid', 'same'; got {mode!r}.")
    rows = {"full": m + n - 1, "same": max(m, n), "valid": max(m, n) - min(m, n) + 1}[mode]
    first = {"full": 0, "same": (min(m, n) - 1) // 2, "valid": min(m, n) - 1}[mode]
    i, j = _row_and_column(rows, n)
    place = i + first - j
    there = (place >= 0) & (place < m)
    return jnp.where(
        there, a[..., np.clip(place, 0, m - 1).astype(np.int32)], jnp.zeros((), a.dtype)
    )


def block_diag(*arrs: ArrayLike) -> Array:
    """Matrices along the diagonal of a larger one.

    Args:
        *arrs: the matrices; a vector counts as a row.
    Returns:
        A matrix, zero elsewhere.

    >>> scipy.linalg.block_diag(jnp.array([[1, 2]]), jnp.array([[3]]))
    Array([[1, 2, 0],
           [0, 0, 3]], dtype=int32)"""
    if not arrs:
        arrs = (jnp.zeros((1, 0)),)
    blocks = arrays("block_diag", *arrs)
    for i, b in enumerate(blocks):
        if b.ndim > 2:
            raise ValueError(
                f"Arguments to jax.scipy.linalg.block_diag must have at most 2 dimensions, got {b}"
                f" at argument {i}."
            )
    blocks = [jnp.asarray(b) for b in promote_dtypes(*(jnp.atleast_2d(b) for b in blocks))]
    width = sum(b.shape[1] for b in blocks)
    rows, left = [], 0
    for b in blocks:
        rows.append(jnp.pad(b, ((0, 0), (left, width - left - b.shape[1]))))
        left += b.shape[1]
    return jnp.concatenate(rows, axis=0)


# ---------------------------------------------------------------- named


def _size(n: Any) -> int:
    """A size; below zero is none."""
    return max(whole(n, "n"), 0)


def _constant(value: np.ndarray, dtype: Any = float) -> Any:
    return jnp.asarray(value.astype(asked(dtype)))


def hilbert(n: int) -> Array:
    """Hilbert's matrix, with the elements `1 / (i + j + 1)`.

    Args:
        n: the size.
    Returns:
        A square matrix.

    >>> scipy.linalg.hilbert(2)
    Array([[1.        , 0.5       ],
           [0.5       , 0.33333334]], dtype=float32)"""
    if whole(n, "n") < 0:
        raise TypeError(f"hilbert: n must not be negative, got {n}")
    i, j = _row_and_column(n, n)
    return _constant(1 / (1.0 + i + j))


def invhilbert(n: int) -> Array:
    """The inverse of Hilbert's matrix.

    Args:
        n: the size.
    Returns:
        A square matrix of whole numbers, as floats.
    Differs from SciPy:
        There is no `exact`.

    >>> scipy.linalg.invhilbert(2)
    Array([[ 4., -6.],
           [-6., 12.]], dtype=float32)"""
    n = _size(n)
    out = np.zeros((n, n))
    for i in range(1, n + 1):
        for j in range(1, n + 1):
            size = (
                (i + j - 1)
                * math.comb(n + i - 1, n - j)
                * math.comb(n + j - 1, n - i)
                * math.comb(i + j - 2, i - 1) ** 2
            )
            out[i - 1, j - 1] = -size if (i + j) % 2 else size
    return _constant(out)


_KINDS: Final = ["symmetric", "lower", "upper"]


def _binomials(n: int) -> np.ndarray:
    """Pascal's triangle: [i, j] is i over j."""
    return np.array([[float(math.comb(i, j)) for j in range(n)] for i in range(n)]).reshape(n, n)


def pascal(n: int, kind: str | None = None) -> Array:
    """Pascal's triangle as a matrix.

    Args:
        n: the size.
        kind: "symmetric" (as None), "lower" or "upper".
    Returns:
        A square matrix of whole numbers, as float32.
    Differs from SciPy:
        There is no `exact`.

    >>> scipy.linalg.pascal(3)
    Array([[1., 1., 1.],
           [1., 2., 3.],
           [1., 3., 6.]], dtype=float32)"""
    kind = "symmetric" if kind is None else kind
    if kind not in _KINDS:
        raise ValueError(f"Expected kind to be on of: {_KINDS}; got {kind}")
    n = _size(n)
    lower = _binomials(n)
    if kind == "symmetric":
        lower = np.array([[float(math.comb(i + j, i)) for j in range(n)] for i in range(n)])
    values = lower.reshape(n, n)
    return _constant(values.T if kind == "upper" else values, np.float32)


def invpascal(n: int, kind: str | None = None) -> Array:
    """The inverse of `pascal(n, kind)`.

    Args:
        n: the size.
        kind: "symmetric" (as None), "lower" or "upper".
    Returns:
        A square matrix of whole numbers, as floats.
    Differs from SciPy:
        There is no `exact`.

    >>> scipy.linalg.invpascal(3, "lower")
    Array([[ 1.,  0.,  0.],
           [-1.,  1.,  0.],
           [ 1., -2.,  1.]], dtype=float32)"""
    kind = "symmetric" if kind is None else kind
    if kind not in _KINDS:
        raise ValueError(f"Expected kind to be one of: {_KINDS}; got {kind}")
    n = _size(n)
    i, j = _row_and_column(n, n)
    lower = _binomials(n) * np.where((i + j) % 2, -1.0, 1.0)
    lower = np.where(i >= j, lower, 0.0)
    return _constant({"lower": lower, "upper": lower.T, "symmetric": lower.T @ lower}[kind])


def helmert(n: int, full: bool = False) -> Array:
    """Helmert's matrix, whose rows are orthonormal and add up to 0.

    Args:
        n: the number of columns.
        full: whether the constant row is there as well, as the first.
    Returns:
        A matrix.

    >>> scipy.linalg.helmert(2).round(3)
    Array([[ 0.707, -0.707]], dtype=float32)"""
    n = whole(n, "n")
    if n < 1:
        raise ValueError(f"n must be a positive integer; got {n}.")
    i, j = _row_and_column(n, n)
    scale = np.sqrt(np.maximum(i * (i + 1.0), 1.0))
    out = np.where(j < i, 1.0, np.where(j == i, -1.0 * i, 0.0)) / scale
    out[0] = 1 / math.sqrt(n)
    return _constant(out if full else out[1:])


def hadamard(n: int, dtype: DTypeLike = int) -> Array:
    """Hadamard's matrix of 1 and -1, whose rows are orthogonal.

    Args:
        n: the size, a power of 2.
        dtype: of the elements.
    Returns:
        A square matrix.

    >>> scipy.linalg.hadamard(2)
    Array([[ 1,  1],
           [ 1, -1]], dtype=int32)"""
    if n < 1 or n != int(n) or int(n) & (int(n) - 1):
        raise ValueError(f"n must be a positive power of 2; got {n}.")
    out = np.ones((1, 1), np.int8)
    while len(out) < n:
        out = np.block([[out, out], [out, -out]])
    return _constant(out, dtype)


def dft(n: int, scale: str | None = None, *, dtype: DTypeLike | None = None) -> Array:
    """The matrix of the discrete Fourier transform.

    Args:
        n: the size.
        scale: what it is divided by: "sqrtn", "n", or None for nothing.
        dtype: of the elements, complex; None is the default one.
    Returns:
        A square matrix.

    >>> scipy.linalg.dft(2).real.round(3)
    Array([[ 1.,  1.],
           [ 1., -1.]], dtype=float32)"""
    if scale not in (None, "sqrtn", "n"):
        raise ValueError(f"scale must be None, 'sqrtn', or 'n'; got {scale!r}.")
    chosen = canonicalize(complex) if dtype is None else asked(dtype)
    if not is_complex(chosen):
        raise ValueError(f"dtype must be a complex floating-point type; got {dtype}.")
    n = _size(n)
    k = np.arange(n)
    angle = -2j * np.pi * (k[:, None] * k[None, :] % max(n, 1)) / max(n, 1)
    factor = {None: 1.0, "sqrtn": math.sqrt(n), "n": float(n)}[scale]
    return _constant(np.exp(angle) / max(factor, 1.0), chosen)

"""What an accelerator has no routine for, as programs of other primitives: singular values on TPUs,
tridiagonal systems.

Singular values are found by one-sided Jacobi rotations: of A = Q R the columns of B = R^H are
turned two by two until all are orthogonal, B V = U S, so that A = (Q V) S U^H. Half of all pairs
are turned at once, in the order of a tournament in which everybody meets everybody, which needs
neither gathers nor scatters. The rotations add up to a V that is a little off an orthogonal matrix;
one step of Newton and Schulz brings it back, B V is computed once more, and QR of it gives a U that
is orthogonal also where singular values are zero."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from calque.core.primitives import do
from calque.core.trace import typeof
from calque.ops.common import filled_like
from calque.ops.layout import permuted
from calque.ops.linalg import common as la
from calque.transforms.functions.loops import fori_loop, scan, while_loop

MOST_SWEEPS: Final = 50  # ten are enough, thirty where nearly all singular values are tiny


def svd(x: Any, *, full_matrices: bool, compute_uv: bool, **_: Any) -> list[Any]:
    """The values in descending order, and both sides if they are asked for."""
    m, n = typeof(x).shape[-2:]
    if m >= n:
        s, u, vt = _of_tall(x, full_matrices)
    else:
        s, v, ut = _of_tall(la.adjoint(x), full_matrices)
        u, vt = la.adjoint(ut), la.adjoint(v)
    return [s, u, vt] if compute_uv else [s]


def _of_tall(x: Any, full: bool) -> tuple[Any, Any, Any]:
    aval = typeof(x)
    m, n = aval.shape[-2:]
    size = do.reduce_max(do.abs(x), axes=(aval.ndim - 2, aval.ndim - 1))
    unit = do.select_n((size > 0.0) & do.is_finite(size), filled_like(size, 1.0), size)
    q, r = do.qr(_times(x, 1.0 / unit), pivoting=False, full_matrices=full, use_magma=None)
    columns = la.adjoint(la.part(r, n, n))
    v = orthogonal(turned(columns))
    s, columns, v = _in_order(la.matmul(columns, v), v)
    u, triangle = do.qr(columns, pivoting=False, full_matrices=False, use_magma=None)
    u = do.mul(u, la.rows(_phase(la.diagonal(triangle)), n))
    left = la.matmul(la.part(q, m, n), v)
    if full and m > n:
        left = do.concatenate(left, la.part(q, m, m - n, 0, n), dimension=aval.ndim - 1)
    known = do.is_finite(size)
    return tuple([_where(known, found) for found in (_times(s, unit), left, la.adjoint(u))])  # type: ignore[return-value]


def _spread(v: Any, like: Any) -> Any:
    """A value for each matrix, or row, as an array of this shape."""
    shape = typeof(like).shape
    dims = tuple(range(typeof(v).ndim))
    return do.broadcast_in_dim(v, shape=shape, broadcast_dimensions=dims)


def _times(x: Any, factor: Any) -> Any:
    """Each matrix, or row, with its real factor."""
    return do.mul(x, _spread(la.as_dtype(factor, typeof(x).dtype), x))


def _where(known: Any, x: Any) -> Any:
    """Results of matrices of finite elements; NaN for the others."""
    return do.select_n(_spread(known, x), filled_like(x, np.nan), x)


def _phase(x: Any) -> Any:
    """x / |x|, and 1 for 0."""
    size = do.abs(x)
    one = filled_like(size, 1.0)
    divisor = la.as_dtype(do.select_n(size > 0.0, one, size), typeof(x).dtype)
    return do.select_n(size > 0.0, filled_like(x, 1.0), do.div(x, divisor))


def _in_order(columns: Any, v: Any) -> tuple[Any, Any, Any]:
    """The lengths of the columns from the longest on, and the columns of both in that order."""
    axis = typeof(columns).ndim - 2
    lengths = do.sqrt(do.reduce_sum(_squares(columns), axes=(axis,)))
    order = la.position(typeof(lengths).shape, -1)
    less, order = do.sort(-lengths, order, dimension=axis, is_stable=True, num_keys=1)
    rows = [la.take_rows(la.transposed(x), order) for x in (columns, v)]
    return (-less, *map(la.transposed, rows))  # type: ignore[return-value]


def _squares(x: Any) -> Any:
    return la.real(do.mul(la.conjugated(x), x))


def orthogonal(v: Any) -> Any:
    """A nearly orthogonal matrix brought to where it is orthogonal: v (3 - v^H v) / 2."""
    apart = la.scaled(la.eye(typeof(v)), 3.0) - la.matmul(la.adjoint(v), v)
    return la.scaled(la.matmul(v, apart), 0.5)


def turned(columns: Any) -> Any:
    """The product of the rotations that make the columns of square matrices orthogonal.

    Pair i of a round is row i of `top` and of `bottom`: a column, and behind it the same column of
    the product so far. With an odd number of columns one of zeros sits out."""
    aval = typeof(columns)
    n, axis = aval.shape[-1], aval.ndim - 1
    pairs = (n + 1) // 2
    rows = do.concatenate(la.transposed(columns), la.eye(aval), dimension=axis)
    rows = la.enlarged(rows, 2 * pairs, 2 * n)
    halves = la.part(rows, pairs, 2 * n), la.part(rows, pairs, 2 * n, pairs)

    def turn(_: Any, state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        top, bottom, again = state
        top, bottom, active = _rotated(top, bottom, n)
        again = again | do.reduce_or(active, axes=tuple(range(typeof(active).ndim)))
        return (*next_round(top, bottom), again)

    def sweep(state: tuple[Any, Any, Any, Any]) -> tuple[Any, Any, Any, Any]:
        count, top, bottom, _ = state
        # everybody is back in his place after so many rounds
        top, bottom, again = fori_loop(0, max(2 * pairs - 1, 1), turn, (top, bottom, np.False_))
        return count + 1, top, bottom, again

    def goes_on(state: tuple[Any, Any, Any, Any]) -> Any:
        return state[3] & (state[0] < MOST_SWEEPS)

    _, top, bottom, _ = while_loop(goes_on, sweep, (np.int32(0), *halves, np.True_))
    rows = do.concatenate(top, bottom, dimension=axis - 1)
    return la.transposed(la.part(rows, n, n, 0, n))


def next_round(top: Any, bottom: Any) -> tuple[Any, Any]:
    """The first of all stays; the others move on by one place, around the table."""
    shape = typeof(top).shape
    pairs, width, axis = shape[-2], shape[-1], len(shape) - 2
    if pairs == 1:
        return top, bottom
    first, last = la.part(top, 1, width), la.part(top, 1, width, pairs - 1)
    middle = [la.part(top, pairs - 2, width, 1)] if pairs > 2 else []
    moved = do.concatenate(first, la.part(bottom, 1, width), *middle, dimension=axis)
    return moved, do.concatenate(la.part(bottom, pairs - 1, width, 1), last, dimension=axis)


def _rotated(top: Any, bottom: Any, n: int) -> tuple[Any, Any, Any]:
    """Pairs turned until their first n elements are orthogonal, and which needed it."""
    dtype = typeof(top).dtype
    info = np.finfo(dtype)
    pairs = typeof(top).shape[-2]
    x, y = la.part(top, pairs, n), la.part(bottom, pairs, n)
    axes = (typeof(top).ndim - 1,)
    a, b = (do.reduce_sum(_squares(v), axes=axes) for v in (x, y))
    between = do.reduce_sum(do.mul(la.conjugated(x), y), axes=axes)
    size = do.abs(between)
    least = filled_like(a, float(info.tiny))  # smaller squares are lost
    lengths = do.sqrt(do.max(a, least)) * do.sqrt(do.max(b, least))
    active = size > lengths * float(info.eps / 2 * np.sqrt(n))
    one = filled_like(size, 1.0)
    cotangent = (b - a) / (do.select_n(active, one, size) * 2.0)  # of twice the angle
    t = do.select_n(active, filled_like(a, 0.0), _tangent(cotangent))
    c = do.rsqrt(t * t + 1.0)
    phase = do.select_n(active, filled_like(between, 1.0), _phase(between))
    y = do.mul(bottom, _spread(la.conjugated(phase), bottom))
    return _times(top, c) - _times(y, c * t), _times(top, c * t) + _times(y, c), active


def _tangent(z: Any) -> Any:
    """Of the smaller angle whose double has the cotangent z: a root of t^2 + 2 z t = 1."""
    size, one = do.abs(z), filled_like(z, 1.0)
    long, short = do.max(size, one), do.min(size, one)
    ratio = short / long
    root = long * do.sqrt(ratio * ratio + 1.0)  # of 1 + z^2, whose square may be beyond all numbers
    return do.select_n(z < 0.0, one, -one) / (size + root)


# ---------------------------------------------------------------- tridiagonal systems


def tridiagonal_solve(dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool) -> Any:
    """x of all columns of b, by an elimination that takes the larger one of two rows; NaN where the
    matrix is singular."""
    axis = typeof(d).ndim - 1
    batch = tuple(range(axis))
    dl, d, du = (permuted(v, (axis, *batch)) for v in (dl, d, du))
    b = permuted(b, (axis, *batch, axis + 1))
    below, above = _entries(dl, 1, None), _entries(du, None, -1)  # what is read of them
    x, singular = _eliminated(below, d, above, b)
    found = filled_like(x, np.nan) if typeof(d).shape[0] > 1 else x
    if perturb_singular:
        x_there, still = _eliminated(below, d + _little(below, d, above), above, b)
        found = do.select_n(_across(still, b), x_there, filled_like(x, np.nan))
    x = do.select_n(_across(singular, b), x, found)
    return permuted(x, (*range(1, axis + 1), 0, axis + 1))


def _entries(v: Any, start: int | None, stop: int | None) -> Any:
    """v[start:stop]"""
    shape = typeof(v).shape
    first, last, _ = slice(start, stop).indices(shape[0])
    zeros = (0,) * (len(shape) - 1)
    return do.slice(v, start_indices=(first, *zeros), limit_indices=(last, *shape[1:]))


def _little(below: Any, d: Any, above: Any) -> Any:
    """What is added to the diagonals of singular matrices: next to nothing, beside the largest."""
    size = do.reduce_max(do.abs(do.concatenate(below, d, above, dimension=0)), axes=(0,))
    size = do.select_n(size > 0.0, filled_like(size, 1.0), size)
    little = la.as_dtype(la.scaled(size, float(np.finfo(typeof(d).dtype).eps)), typeof(d).dtype)
    dims = tuple(range(1, typeof(d).ndim))
    return do.broadcast_in_dim(little, shape=typeof(d).shape, broadcast_dimensions=dims)


def _across(which: Any, b: Any) -> Any:
    """What is known of each matrix, for each entry of its right sides."""
    dims = tuple(range(1, typeof(b).ndim - 1))
    return do.broadcast_in_dim(which, shape=typeof(b).shape, broadcast_dimensions=dims)


def _eliminated(below: Any, d: Any, above: Any, b: Any) -> tuple[Any, Any]:
    """The solution, and which matrices are singular. All run over the first dimension."""
    last = do.concatenate(above, la.zeros_like(_entries(d, 0, 1)), dimension=0)
    first = [do.squeeze(_entries(v, 0, 1), dimensions=(0,)) for v in (d, last, b)]
    if not typeof(below).shape[0]:
        return do.div(b, _across(first[0], b)), first[0] == 0.0
    later = [_entries(v, 1, None) for v in (d, last, b)]
    (p, _, right), upper = scan(_eliminate, tuple(first), (below, *later))
    x = do.div(right, _spread(p, right))
    _, others = scan(_substitute, (x, la.zeros_like(x)), upper, reverse=True)
    singular = (p == 0.0) | do.reduce_or(upper[0] == 0.0, axes=(0,))
    return do.concatenate(others, _row(x), dimension=0), singular


def _row(x: Any) -> Any:
    """An entry as an array of one entry."""
    shape = typeof(x).shape
    dims = tuple(range(1, len(shape) + 1))
    return do.broadcast_in_dim(x, shape=(1, *shape), broadcast_dimensions=dims)


def _eliminate(row: tuple[Any, Any, Any], following: tuple[Any, Any, Any, Any]) -> Any:
    """What is left of the first of two rows, or of the second, without the first unknown: (p, q, r)
    for p x + q y = r; and the other one, by which x is found later."""
    (p, q, r), (first, second, third, right) = row, following
    swaps = do.abs(first) > do.abs(p)

    def chosen(yes: Any, no: Any) -> Any:
        return do.select_n(_spread(swaps, yes), no, yes)

    zero = la.zeros_like(p)
    upper = chosen(first, p), chosen(second, q), chosen(third, zero), chosen(right, r)
    lower = chosen(p, first), chosen(q, second), chosen(zero, third), chosen(r, right)
    factor = lower[0] / upper[0]
    left = lower[1] - factor * upper[1], lower[2] - factor * upper[2]
    return (*left, lower[3] - _spread(factor, r) * upper[3]), upper


def _substitute(after: tuple[Any, Any], row: tuple[Any, Any, Any, Any]) -> Any:
    """The unknown of a row, of the two after it."""
    x, y = after
    p, q, s, right = row
    found = (right - _spread(q, x) * x - _spread(s, x) * y) / _spread(p, x)
    return (found, x), found

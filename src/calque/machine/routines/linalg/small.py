"""Factors and triangular systems of small real matrices: plain loops over rows, in f64 whatever the
elements are.

Elements are loaded into a square of f64 (the scratch), worked on there, and rounded once when they
are stored. All inner loops run along rows and update elements one by one: they become vectors, and
the order of every sum is the same on every processor.
"""

from __future__ import annotations

import enum

from calque.machine.lang.unit import (
    Unit,
    f32,
    f64,
    i64,
    load_f32,
    load_f64,
    load_i32,
    ptr,
    sqrt,
    store_f32,
    store_f64,
    store_i32,
)

LARGEST = 1.7976931348623157e308


class ElementType(enum.IntEnum):
    """The types of elements."""

    F32 = 0
    F64 = 1
    C64 = 2
    C128 = 3


unit = Unit("linalg_small")

# ---------------------------------------------------------------- elements


@unit.helper
def small_load(kind: i64, to: ptr, to_step: i64, source: ptr, step: i64, n: i64) -> None:
    """Load `n` elements as f64. Steps are counted in elements."""
    if kind == ElementType.F32:
        for i in range(n):
            store_f64(to, 8 * i * to_step, f64(load_f32(source, 4 * i * step)))
    else:
        for i in range(n):
            store_f64(to, 8 * i * to_step, load_f64(source, 8 * i * step))


@unit.helper
def small_store(kind: i64, to: ptr, to_step: i64, source: ptr, step: i64, n: i64) -> None:
    """Store `n` numbers as elements."""
    if kind == ElementType.F32:
        for i in range(n):
            store_f32(to, 4 * i * to_step, f32(load_f64(source, 8 * i * step)))
    else:
        for i in range(n):
            store_f64(to, 8 * i * to_step, load_f64(source, 8 * i * step))


@unit.helper
def subtract(to: ptr, source: ptr, factor: f64, begin: i64, end: i64) -> None:
    """to -= factor * source, for a part of two rows."""
    for j in range(begin, end):
        store_f64(to, 8 * j, load_f64(to, 8 * j) - factor * load_f64(source, 8 * j))


# ---------------------------------------------------------------- cholesky


@unit.helper
def small_cholesky(u: ptr, n: i64) -> i64:
    """The upper factor U of the symmetric matrix U^T U, whose upper triangle it replaces. Gives 0
    when the matrix is not positive definite."""
    for k in range(n):
        row = u + 8 * k * n
        d = load_f64(row, 8 * k)
        if not (d > 0.0 and d <= LARGEST):
            return 0
        root = sqrt(d)
        store_f64(row, 8 * k, root)
        for j in range(k + 1, n):
            store_f64(row, 8 * j, load_f64(row, 8 * j) / root)
        for i in range(k + 1, n):
            subtract(u + 8 * i * n, row, load_f64(row, 8 * i), i, n)
    return 1


# ---------------------------------------------------------------- lu


@unit.helper
def magnitude(x: f64) -> f64:
    return -x if x < 0.0 else x


@unit.helper
def pivot_below(a: ptr, m: i64, n: i64, k: i64) -> i64:
    """The row of the largest element of column `k`, from row `k` on."""
    best = k
    most = magnitude(load_f64(a, 8 * (k * n + k)))
    for i in range(k + 1, m):
        x = magnitude(load_f64(a, 8 * (i * n + k)))
        if x > most:
            most = x
            best = i
    return best


@unit.helper
def small_lu(a: ptr, m: i64, n: i64, pivots: ptr) -> None:
    """The factors in the place of a matrix, and which row (from 0) each row has changed places
    with."""
    for k in range(min(m, n)):
        row = a + 8 * k * n
        best = pivot_below(a, m, n, k)
        store_i32(pivots, 4 * k, best)
        if best != k:
            other = a + 8 * best * n
            for j in range(n):
                x = load_f64(row, 8 * j)
                store_f64(row, 8 * j, load_f64(other, 8 * j))
                store_f64(other, 8 * j, x)
        pivot = load_f64(row, 8 * k)
        for i in range(k + 1, m):
            below = a + 8 * i * n
            factor = load_f64(below, 8 * k)
            if pivot != 0.0:
                factor = factor / pivot
                store_f64(below, 8 * k, factor)
            subtract(below, row, factor, k + 1, n)


@unit.helper
def order_of(pivots: ptr, count: i64, order: ptr, m: i64) -> None:
    """The order of rows that a sequence of exchanges leads to; negative numbers count from the end,
    rows that are not there stay out of it."""
    for i in range(m):
        store_i32(order, 4 * i, i)
    for k in range(count):
        other = i64(load_i32(pivots, 4 * k))
        if other < 0:
            other += m
        if other < 0 or other >= m:
            continue
        x = load_i32(order, 4 * k)
        store_i32(order, 4 * k, load_i32(order, 4 * other))
        store_i32(order, 4 * other, x)


# ---------------------------------------------------------------- triangular systems


@unit.helper
def small_solve(s: ptr, n: i64, upper: i64, unit_diagonal: i64, x: ptr) -> None:
    """The row vector x of x S = b, in the place of b, for a triangular S."""
    for step in range(n):
        k = step if upper != 0 else n - 1 - step
        row = s + 8 * k * n
        value = load_f64(x, 8 * k)
        if unit_diagonal == 0:
            value = value / load_f64(row, 8 * k)
            store_f64(x, 8 * k, value)
        if upper != 0:
            subtract(x, row, value, k + 1, n)
        else:
            subtract(x, row, value, 0, k)

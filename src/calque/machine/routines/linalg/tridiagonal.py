"""Tridiagonal systems of batches of real matrices, with exchanges of neighbouring rows.

It is called as `routine(args, begin, end)`; the range means nothing, `args` are words, see the
layout. Some columns of the right side at a time are worked on where their solution will stand,
row by row: the diagonals are f64 whatever the elements are, and each step along a row is rounded
once. Threads share matrices and columns."""

from __future__ import annotations

from calque.machine.driver.interpreter import NO_MEMORY, calque_poll
from calque.machine.lang.unit import (
    NULL,
    Unit,
    f32,
    f64,
    i1,
    i64,
    layout,
    load_f32,
    load_f64,
    load_ptr,
    memcpy,
    ptr,
    store_f32,
    store_f64,
)
from calque.machine.memory import calque_alloc, calque_free
from calque.machine.routines.ending import stop
from calque.machine.routines.linalg.elements import item_of, write_nan
from calque.machine.routines.linalg.small import ElementType, magnitude
from calque.machine.threads import calque_parallel_for

_COLUMNS = 128  # of a right side that are worked on at once
_GRAIN = 1 << 12  # elements that are worth a thread
_BETWEEN_POLLS = 1 << 12  # rows
_EPS_32 = 1.1920928955078125e-07
_EPS_64 = 2.220446049250313e-16

# How many matrices of `n` rows, the type of elements, the columns of b; the parameter of the
# primitive.
Tridiagonal = layout(
    "Tridiagonal", batch=i64, kind=i64, n=i64, columns=i64, lower=ptr, diagonal=ptr, upper=ptr,
    b=ptr, target=ptr, perturbs=i64,
)  # fmt: skip

tridiagonal = Unit("linalg_tridiagonal")


@tridiagonal.helper
def element(kind: i64, place: ptr, k: i64) -> f64:
    """An element as f64."""
    return f64(load_f32(place, 4 * k)) if kind == ElementType.F32 else load_f64(place, 8 * k)


@tridiagonal.helper
def subtract_row(kind: i64, row: ptr, other: ptr, factor: f64, count: i64) -> None:
    """row -= factor * other"""
    if kind == ElementType.F32:
        for j in range(count):
            x = f64(load_f32(row, 4 * j)) - factor * f64(load_f32(other, 4 * j))
            store_f32(row, 4 * j, f32(x))
    else:
        for j in range(count):
            store_f64(row, 8 * j, load_f64(row, 8 * j) - factor * load_f64(other, 8 * j))


@tridiagonal.helper
def exchange_rows(kind: i64, row: ptr, other: ptr, factor: f64, count: i64) -> None:
    """row, other = other - factor * row, row"""
    if kind == ElementType.F32:
        for j in range(count):
            x = f64(load_f32(row, 4 * j))
            store_f32(row, 4 * j, f32(f64(load_f32(other, 4 * j)) - factor * x))
            store_f32(other, 4 * j, f32(x))
    else:
        for j in range(count):
            y = load_f64(row, 8 * j)
            store_f64(row, 8 * j, load_f64(other, 8 * j) - factor * y)
            store_f64(other, 8 * j, y)


@tridiagonal.helper
def divide_row(kind: i64, row: ptr, by: f64, count: i64) -> None:
    """row /= by"""
    if kind == ElementType.F32:
        for j in range(count):
            store_f32(row, 4 * j, f32(f64(load_f32(row, 4 * j)) / by))
    else:
        for j in range(count):
            store_f64(row, 8 * j, load_f64(row, 8 * j) / by)


@tridiagonal.helper
def solve_row(
    kind: i64, row: ptr, next_: ptr, u: f64, far: ptr, v: f64, by: f64, count: i64
) -> None:
    """row = (row - u * next - v * far) / by"""
    if kind == ElementType.F32:
        for j in range(count):
            x = f64(load_f32(row, 4 * j)) - u * f64(load_f32(next_, 4 * j))
            store_f32(row, 4 * j, f32((x - v * f64(load_f32(far, 4 * j))) / by))
    else:
        for j in range(count):
            y = load_f64(row, 8 * j) - u * load_f64(next_, 8 * j)
            store_f64(row, 8 * j, (y - v * load_f64(far, 8 * j)) / by)


@tridiagonal.helper
def larger(most: f64, x: f64) -> f64:
    """The larger of a number and the magnitude of another."""
    size = magnitude(x)
    return size if size > most else most


@tridiagonal.function
def load_diagonals(args: ptr, k: i64, w: ptr, perturbed: i1) -> None:
    """The three diagonals of a matrix, each element beside those of its column's row above and
    below: `w` has rows of the lower, the main, the upper and the second upper one."""
    kind = Tridiagonal(args).kind
    n = Tridiagonal(args).n
    at = k * n * item_of(kind)
    lower = Tridiagonal(args).lower + at
    diagonal = Tridiagonal(args).diagonal + at
    upper = Tridiagonal(args).upper + at
    most = 0.0
    for i in range(n):
        d = element(kind, diagonal, i)
        most = larger(most, d)
        store_f64(w, 8 * (n + i), d)
        store_f64(w, 8 * (3 * n + i), 0.0)
        if i + 1 < n:
            below, above = element(kind, lower, i + 1), element(kind, upper, i)
            most = larger(larger(most, below), above)
            store_f64(w, 8 * i, below)
            store_f64(w, 8 * (2 * n + i), above)
    if perturbed:
        tiny = (_EPS_32 if kind == ElementType.F32 else _EPS_64) * (1.0 if most == 0.0 else most)
        for i in range(n):
            store_f64(w, 8 * (n + i), load_f64(w, 8 * (n + i)) + tiny)


@tridiagonal.function
def eliminate(args: ptr, w: ptr, x: ptr, count: i64) -> i1:
    """Make the matrix an upper one, with two diagonals beside the main one, and do the same to some
    columns. Whether it is not singular, as far as one has come."""
    kind = Tridiagonal(args).kind
    n = Tridiagonal(args).n
    step = Tridiagonal(args).columns * item_of(kind)
    d = w + 8 * n
    u = w + 16 * n
    v = w + 24 * n
    for i in range(n - 1):
        if i % _BETWEEN_POLLS == _BETWEEN_POLLS - 1 and calque_poll(load_ptr(args, -8)) != 0:
            return True
        row = x + (i + 1) * step
        pivot, below = load_f64(d, 8 * i), load_f64(w, 8 * i)
        if magnitude(pivot) >= magnitude(below):
            if pivot == 0.0:
                return False
            factor = below / pivot
            store_f64(d, 8 * (i + 1), load_f64(d, 8 * (i + 1)) - factor * load_f64(u, 8 * i))
            subtract_row(kind, row, row - step, factor, count)
        else:
            factor = pivot / below
            main = load_f64(d, 8 * (i + 1))
            store_f64(d, 8 * i, below)
            store_f64(d, 8 * (i + 1), load_f64(u, 8 * i) - factor * main)
            store_f64(u, 8 * i, main)
            if i + 2 < n:
                store_f64(v, 8 * i, load_f64(u, 8 * (i + 1)))
                store_f64(u, 8 * (i + 1), -factor * load_f64(v, 8 * i))
            exchange_rows(kind, row, row - step, factor, count)
    return load_f64(d, 8 * (n - 1)) != 0.0


@tridiagonal.function
def substitute(args: ptr, w: ptr, x: ptr, count: i64) -> None:
    """The solution of what `eliminate` has left, from the last row on."""
    kind = Tridiagonal(args).kind
    n = Tridiagonal(args).n
    step = Tridiagonal(args).columns * item_of(kind)
    d = w + 8 * n
    u = w + 16 * n
    v = w + 24 * n
    divide_row(kind, x + (n - 1) * step, load_f64(d, 8 * (n - 1)), count)
    if n > 1:
        row = x + (n - 2) * step
        subtract_row(kind, row, row + step, load_f64(u, 8 * (n - 2)), count)
        divide_row(kind, row, load_f64(d, 8 * (n - 2)), count)
    for k in range(3, n + 1):
        if k % _BETWEEN_POLLS == _BETWEEN_POLLS - 1 and calque_poll(load_ptr(args, -8)) != 0:
            return
        i = n - k
        row = x + i * step
        above, second, by = load_f64(u, 8 * i), load_f64(v, 8 * i), load_f64(d, 8 * i)
        solve_row(kind, row, row + step, above, row + 2 * step, second, by, count)


@tridiagonal.helper
def copy_columns(args: ptr, source: ptr, to: ptr, count: i64) -> None:
    """Some columns of a right side, to where their solution will stand."""
    item = item_of(Tridiagonal(args).kind)
    step = Tridiagonal(args).columns * item
    for i in range(Tridiagonal(args).n):
        memcpy(to + i * step, source + i * step, count * item)


@tridiagonal.helper
def refuse_columns(args: ptr, to: ptr, count: i64) -> None:
    """Some columns of NaN."""
    kind = Tridiagonal(args).kind
    item = item_of(kind)
    for i in range(Tridiagonal(args).n):
        for j in range(count):
            write_nan(kind, to + (i * Tridiagonal(args).columns + j) * item)


@tridiagonal.function
def solve_parts(args: ptr, first: i64, last: i64) -> None:
    """Some of all the systems, counted in parts of the columns of each."""
    n = Tridiagonal(args).n
    columns = Tridiagonal(args).columns
    item = item_of(Tridiagonal(args).kind)
    parts = (columns + _COLUMNS - 1) // _COLUMNS
    w = calque_alloc(4 * 8 * n)
    if w == NULL:
        stop(load_ptr(args, -8), NO_MEMORY)
        return
    for part in range(first, last):
        if calque_poll(load_ptr(args, -8)) != 0:
            break
        k, left = part // parts, part % parts * _COLUMNS
        count = min(_COLUMNS, columns - left)
        at = (k * n * columns + left) * item
        source, to = Tridiagonal(args).b + at, Tridiagonal(args).target + at
        copy_columns(args, source, to, count)
        load_diagonals(args, k, w, False)
        good = eliminate(args, w, to, count)
        if not good and Tridiagonal(args).perturbs != 0:
            copy_columns(args, source, to, count)
            load_diagonals(args, k, w, True)
            good = eliminate(args, w, to, count)
        if good:
            substitute(args, w, to, count)
        else:
            refuse_columns(args, to, count)
    calque_free(w)


@tridiagonal.function
def calque_tridiagonal(args: ptr, begin: i64, end: i64) -> None:
    """The solutions of all systems."""
    n = Tridiagonal(args).n
    columns = Tridiagonal(args).columns
    if n == 0 or columns == 0:
        return
    parts = (columns + _COLUMNS - 1) // _COLUMNS
    each = n * (min(columns, _COLUMNS) + 8)
    calque_parallel_for(
        solve_parts, args, 0, Tridiagonal(args).batch * parts, max(_GRAIN // each, 1)
    )

"""Cholesky and LU factors and triangular systems of batches of matrices: the routines behind the
primitives.

Each is called as `routine(args, begin, end)`; the range means nothing, `args` are words, see the
layouts. Small real matrices are worked on by plain loops (`linalg_small`), many of them by several
threads; others by LAPACK and BLAS, whose functions come with the arguments. A matrix in rows is its
transpose in columns, so that only LU has to turn matrices round; results are in rows."""

from __future__ import annotations

from calque.machine.driver.interpreter import NO_MEMORY, calque_poll
from calque.machine.lang.unit import (
    NULL,
    Unit,
    alloca,
    f64,
    i1,
    i64,
    layout,
    load_f32,
    load_f64,
    load_i32,
    load_ptr,
    memcpy,
    memset,
    ptr,
    signature,
    store_f32,
    store_f64,
    store_i8,
    store_i32,
)
from calque.machine.memory import calque_alloc, calque_free
from calque.machine.routines.ending import stop
from calque.machine.routines.linalg.elements import item_of, turn, write_nan, write_one
from calque.machine.routines.linalg.small import (
    LARGEST,
    ElementType,
    order_of,
    small_cholesky,
    small_load,
    small_lu,
    small_solve,
    small_store,
)
from calque.machine.threads import calque_parallel_for

SMALL = 32  # rows and columns up to which our own loops are quicker
FEW = 64  # right-hand sides of small systems, likewise
_NEAR_BYTES = 8 * SMALL * SMALL
_VECTOR_BYTES = 8 * SMALL
_GRAIN = 1 << 15  # multiplications that are worth a thread
_BETWEEN_POLLS = 64  # small matrices
_L, _N, _R, _T, _U = b"LNRTU"

# What all begin with: how many matrices, the type of elements, the function of LAPACK or NULL.
Cholesky = layout("Cholesky", batch=i64, kind=i64, lapack=ptr, n=i64, source=ptr, target=ptr)
# Rows and columns; results that nobody wants are NULL.
Lu = layout(
    "Lu",
    batch=i64,
    kind=i64,
    lapack=ptr,
    m=i64,
    n=i64,
    source=ptr,
    factors=ptr,
    pivots=ptr,
    order=ptr,
)
# So many exchanges of `n` rows.
Exchanges = layout("Exchanges", batch=i64, count=i64, n=i64, pivots=ptr, order=ptr)
# A of n rows, B of so many rows and columns; the parameters of the primitive.
Triangular = layout(
    "Triangular", batch=i64, kind=i64, lapack=ptr, n=i64, rows=i64, columns=i64, a=ptr, b=ptr,
    target=ptr, left=i64,
    lower=i64, transposed=i64, conjugated=i64, unit=i64,
)  # fmt: skip

potrf_type = signature(None, ptr, ptr, ptr, ptr, ptr)
getrf_type = signature(None, ptr, ptr, ptr, ptr, ptr, ptr)
trsm_type = signature(None, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr)

# One unit for each routine: who calls one compiles no other.
cholesky = Unit("linalg_cholesky")
lu = Unit("linalg_lu")
triangular = Unit("linalg_triangular")


@cholesky.helper
def is_small(kind: i64, m: i64, n: i64) -> i1:
    """Whether our own loops are to be used."""
    return kind in (ElementType.F32, ElementType.F64) and m <= SMALL and n <= SMALL


@cholesky.helper
def grain_of(products: i64) -> i64:
    """How many matrices of so many multiplications are worth a thread."""
    return max(_GRAIN // (products + 1), 1)


@cholesky.helper
def told_to_end(args: ptr, k: i64) -> i1:
    """Asked before matrix `k`."""
    return k % _BETWEEN_POLLS == _BETWEEN_POLLS - 1 and calque_poll(load_ptr(args, -8)) != 0


# ---------------------------------------------------------------- cholesky


@cholesky.helper
def refuse(kind: i64, to: ptr, n: i64) -> None:
    """Write NaN in the lower triangle, zeros above it."""
    item = item_of(kind)
    memset(to, 0, n * n * item)
    for i in range(n):
        for j in range(i + 1):
            write_nan(kind, to + (i * n + j) * item)


@cholesky.function
def cholesky_small(args: ptr, first: i64, last: i64) -> None:
    """The factors of some small matrices."""
    kind = Cholesky(args).kind
    n = Cholesky(args).n
    size = n * n * item_of(kind)
    line = n * item_of(kind)
    u = alloca(_NEAR_BYTES)
    for k in range(first, last):
        if told_to_end(args, k):
            return
        source = Cholesky(args).source + k * size
        to = Cholesky(args).target + k * size
        for i in range(n):
            small_load(kind, u + 8 * i, n, source + i * line, 1, i + 1)
        if small_cholesky(u, n) == 0:
            refuse(kind, to, n)
        else:
            memset(to, 0, size)
            for i in range(n):
                small_store(kind, to + i * line, 1, u + 8 * i, n, i + 1)


@cholesky.helper
def is_finite(kind: i64, place: ptr) -> i1:
    """Whether the real part of an element is a number."""
    x = (
        f64(load_f32(place, 0))
        if kind in (ElementType.F32, ElementType.C64)
        else load_f64(place, 0)
    )
    return x <= LARGEST and x >= -LARGEST


@cholesky.helper
def cholesky_large(args: ptr) -> None:
    """The factors by LAPACK. The lower triangle in rows is the upper one in columns."""
    kind = Cholesky(args).kind
    n = Cholesky(args).n
    item = item_of(kind)
    words = alloca(16)
    store_i32(words, 0, n)
    for k in range(Cholesky(args).batch):
        if calque_poll(load_ptr(args, -8)) != 0:
            return
        to = Cholesky(args).target + k * n * n * item
        memcpy(to, Cholesky(args).source + k * n * n * item, n * n * item)
        store_i32(words, 4, 0)
        potrf_type(Cholesky(args).lapack, "U", words, to, words, words + 4)
        good = load_i32(words, 4) == 0
        for i in range(n):  # what is no number anywhere has come into the diagonal as well
            good = good and is_finite(kind, to + (i * n + i) * item)
            memset(to + (i * n + i + 1) * item, 0, (n - 1 - i) * item)
        if not good:
            refuse(kind, to, n)


@cholesky.function
def calque_cholesky(args: ptr, begin: i64, end: i64) -> None:
    """Lower factors of all matrices."""
    n = Cholesky(args).n
    if n == 0:
        return
    if is_small(Cholesky(args).kind, n, n):
        calque_parallel_for(
            cholesky_small, args, 0, Cholesky(args).batch, grain_of(n * n * n // 6 + 4 * n * n)
        )
    else:
        cholesky_large(args)


# ---------------------------------------------------------------- lu


@lu.function
def lu_small(args: ptr, first: i64, last: i64) -> None:
    """The factors of some small matrices."""
    kind = Lu(args).kind
    m = Lu(args).m
    n = Lu(args).n
    count = min(m, n)
    size = m * n * item_of(kind)
    a = alloca(_NEAR_BYTES)
    near = alloca(4 * SMALL)
    for k in range(first, last):
        if told_to_end(args, k):
            return
        pivots = near if Lu(args).pivots == NULL else Lu(args).pivots + 4 * k * count
        small_load(kind, a, 1, Lu(args).source + k * size, 1, m * n)
        small_lu(a, m, n, pivots)
        if Lu(args).factors != NULL:
            small_store(kind, Lu(args).factors + k * size, 1, a, 1, m * n)
        if Lu(args).order != NULL:
            order_of(pivots, count, Lu(args).order + 4 * k * m, m)


@lu.helper
def lu_large(args: ptr, block: ptr) -> None:
    """The factors by LAPACK, in a block for a matrix in columns and its pivots."""
    m = Lu(args).m
    n = Lu(args).n
    count = min(m, n)
    item = item_of(Lu(args).kind)
    near = block + m * n * item
    words = alloca(16)
    store_i32(words, 0, m)
    store_i32(words, 4, n)
    for k in range(Lu(args).batch):
        if calque_poll(load_ptr(args, -8)) != 0:
            return
        pivots = near if Lu(args).pivots == NULL else Lu(args).pivots + 4 * k * count
        turn(item, block, Lu(args).source + k * m * n * item, m, n)
        getrf_type(Lu(args).lapack, words, words + 4, block, words, pivots, words + 8)
        for i in range(count):
            store_i32(pivots, 4 * i, load_i32(pivots, 4 * i) - 1)
        if Lu(args).factors != NULL:
            turn(item, Lu(args).factors + k * m * n * item, block, n, m)
        if Lu(args).order != NULL:
            order_of(pivots, count, Lu(args).order + 4 * k * m, m)


@lu.function
def calque_lu(args: ptr, begin: i64, end: i64) -> None:
    """Factors, pivots and the order of rows of all matrices."""
    m = Lu(args).m
    n = Lu(args).n
    kind = Lu(args).kind
    if m == 0 or n == 0:
        if Lu(args).order != NULL:
            for k in range(Lu(args).batch):
                order_of(NULL, 0, Lu(args).order + 4 * k * m, m)
        return
    if is_small(kind, m, n):
        grain = grain_of(m * n * min(m, n) // 2 + 4 * m * n)
        calque_parallel_for(lu_small, args, 0, Lu(args).batch, grain)
        return
    block = calque_alloc(m * n * item_of(kind) + 4 * min(m, n))
    if block == NULL:
        stop(load_ptr(args, -8), NO_MEMORY)
        return
    lu_large(args, block)
    calque_free(block)


@lu.function
def calque_lu_pivots_to_permutation(args: ptr, begin: i64, end: i64) -> None:
    """The order of rows that each sequence of exchanges leads to."""
    n = Exchanges(args).n
    count = Exchanges(args).count
    for k in range(Exchanges(args).batch):
        order_of(
            Exchanges(args).pivots + 4 * k * count, count, Exchanges(args).order + 4 * k * n, n
        )


# ---------------------------------------------------------------- triangular systems


@triangular.function
def triangular_small(args: ptr, first: i64, last: i64) -> None:
    """The solutions of some small systems. Each column (A on the left) or row of B is a row vector
    b of x S = b, where S is A or its transpose."""
    kind = Triangular(args).kind
    n = Triangular(args).n
    left = Triangular(args).left
    item = item_of(kind)
    length = Triangular(args).rows * Triangular(args).columns
    count = Triangular(args).columns if left != 0 else Triangular(args).rows
    to_next = item if left != 0 else n * item
    step = Triangular(args).columns if left != 0 else 1
    turned = left != Triangular(args).transposed
    upper = i64(turned) if Triangular(args).lower != 0 else i64(not turned)
    s = alloca(_NEAR_BYTES)
    x = alloca(_VECTOR_BYTES)
    for k in range(first, last):
        if told_to_end(args, k):
            return
        a = Triangular(args).a + k * n * n * item
        if turned:
            for i in range(n):
                small_load(kind, s + 8 * i, n, a + i * n * item, 1, n)
        else:
            small_load(kind, s, 1, a, 1, n * n)
        at = k * length * item
        for _ in range(count):
            small_load(kind, x, 1, Triangular(args).b + at, step, n)
            small_solve(s, n, upper, Triangular(args).unit, x)
            small_store(kind, Triangular(args).target + at, step, x, 1, n)
            at += to_next


@triangular.function
def conjugate(kind: i64, x: ptr, n: i64) -> None:
    """Conjugate complex numbers where they are."""
    if kind == ElementType.C64:
        for i in range(n):
            store_f32(x, 8 * i + 4, -load_f32(x, 8 * i + 4))
    else:
        for i in range(n):
            store_f64(x, 16 * i + 8, -load_f64(x, 16 * i + 8))


@triangular.helper
def triangular_large(args: ptr) -> None:
    """The solutions by BLAS. In columns the system is transposed: A on the left stands on the
    right, its lower triangle is the upper one; that A is transposed is the same for both. conj(A) x
    = b, which BLAS does not know, is A conj(x) = conj(b).
    """
    kind = Triangular(args).kind
    n = Triangular(args).n
    item = item_of(kind)
    length = Triangular(args).rows * Triangular(args).columns
    conjugated = Triangular(args).conjugated != 0 and kind in (ElementType.C64, ElementType.C128)
    words = alloca(16)
    one = alloca(16)
    write_one(kind, one)
    store_i32(words, 0, Triangular(args).columns)
    store_i32(words, 4, Triangular(args).rows)
    store_i32(words, 8, n)
    side = words + 12
    store_i8(side, 0, _R if Triangular(args).left != 0 else _L)
    store_i8(side, 1, _U if Triangular(args).lower != 0 else _L)
    store_i8(side, 2, _T if Triangular(args).transposed != 0 else _N)
    store_i8(side, 3, _U if Triangular(args).unit != 0 else _N)
    for k in range(Triangular(args).batch):
        if calque_poll(load_ptr(args, -8)) != 0:
            return
        a = Triangular(args).a + k * n * n * item
        to = Triangular(args).target + k * length * item
        memcpy(to, Triangular(args).b + k * length * item, length * item)
        if conjugated:
            conjugate(kind, to, length)
        trsm_type(
            Triangular(args).lapack,
            side,
            side + 1,
            side + 2,
            side + 3,
            words,
            words + 4,
            one,
            a,
            words + 8,
            to,
            words,
        )
        if conjugated:
            conjugate(kind, to, length)


@triangular.function
def calque_triangular(args: ptr, begin: i64, end: i64) -> None:
    """The solutions of all systems."""
    n = Triangular(args).n
    count = Triangular(args).columns if Triangular(args).left != 0 else Triangular(args).rows
    if n == 0 or count == 0:
        return
    if is_small(Triangular(args).kind, n, n) and count <= FEW:
        calque_parallel_for(
            triangular_small, args, 0, Triangular(args).batch, grain_of(n * n * (count + 2))
        )
    else:
        triangular_large(args)

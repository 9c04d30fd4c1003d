"""QR, eigenvalues of Hermitian matrices and singular values of batches of matrices, by LAPACK: the
routines behind the primitives.

Each is called as `routine(args, begin, end)`; the range means nothing, `args` are words, see the
layouts. Matrices are turned into columns, and the results into rows, so that they are those of a
call of LAPACK for the matrix itself, with its signs.
"""

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
    memset,
    ptr,
    signature,
    store_i8,
    store_i32,
)
from calque.machine.memory import calque_alloc, calque_free
from calque.machine.routines.ending import stop
from calque.machine.routines.linalg.elements import item_of, turn, write_nan, write_one
from calque.machine.routines.linalg.small import LARGEST, ElementType
from calque.machine.routines.sort.moves import copy_element
from calque.machine.threads import calque_parallel_for

# What all begin with: how many matrices, the type of elements, functions of LAPACK; results that
# nobody wants are NULL.
Qr = layout(
    "Qr", batch=i64, kind=i64, factor=ptr, form=ptr, m=i64, n=i64, full=i64, pivoting=i64,
    source=ptr, q=ptr, r=ptr,
    order=ptr,
)  # fmt: skip
Eigh = layout(
    "Eigh", batch=i64, kind=i64, lapack=ptr, n=i64, lower=i64, source=ptr, vectors=ptr, values=ptr
)
Svd = layout(
    "Svd", batch=i64, kind=i64, lapack=ptr, m=i64, n=i64, full=i64, with_vectors=i64, source=ptr,
    values=ptr, u=ptr,
    vt=ptr,
)  # fmt: skip
# The parts of a block of memory, and the sizes that LAPACK is told.
Room = layout("Room", a=ptr, b=ptr, c=ptr, work=ptr, real_work=ptr, whole_work=ptr, block=ptr)
_ROOM_BYTES = 56
_WORDS_BYTES = 48
_OWN_THREADS = 64  # rows or columns from which on LAPACK may have some
_GRAIN = 1 << 14  # multiplications, by a guess, that are worth a thread: a dozen microseconds
_L, _N, _S, _A, _U, _V = b"LNSAUV"

geqrf_type = signature(None, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr)
geqp3_type = signature(None, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr)
geqp3_complex_type = signature(None, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr)
orgqr_type = signature(None, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr)
evd_type = signature(None, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr)
evd_complex_type = signature(None, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr)
gesdd_type = signature(None, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr)
gesdd_complex_type = signature(
    None, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr
)

# One unit for each routine: who calls one compiles no other.
parts = Unit("linalg_parts", plain=True)
triangle = Unit("linalg_triangle")
qr = Unit("linalg_qr", leads=True)
eigh = Unit("linalg_eigh", leads=True)
svd = Unit("linalg_svd", leads=True)


# ---------------------------------------------------------------- parts


@parts.helper
def is_complex(kind: i64) -> i1:
    return kind in (ElementType.C64, ElementType.C128)


@parts.helper
def part_of(kind: i64) -> i64:
    """The bytes of a real number of the precision."""
    return 4 if kind in (ElementType.F32, ElementType.C64) else 8


@parts.function
def all_finite(kind: i64, x: ptr, n: i64) -> i64:
    """Whether all elements are numbers."""
    item = part_of(kind)
    end = x + n * item_of(kind)
    if item == 4:
        while x < end:
            v = f64(load_f32(x, 0))
            if not (v <= LARGEST and v >= -LARGEST):
                return 0
            x += 4
        return 1
    while x < end:
        w = load_f64(x, 0)
        if not (w <= LARGEST and w >= -LARGEST):
            return 0
        x += 8
    return 1


@parts.function
def fill_nan(kind: i64, to: ptr, n: i64) -> None:
    """Write NaN everywhere."""
    if to == NULL:
        return
    item = item_of(kind)
    memset(to, 0, n * item)
    for i in range(n):
        write_nan(kind, to + i * item)


@parts.function
def write_identity(kind: i64, to: ptr, m: i64, n: i64) -> None:
    """Ones on the diagonal, zeros elsewhere."""
    if to == NULL:
        return
    item = item_of(kind)
    memset(to, 0, m * n * item)
    for i in range(min(m, n)):
        write_one(kind, to + (i * n + i) * item)


@triangle.function
def store_r(item: i64, to: ptr, a: ptr, m: i64, rows: i64, n: i64) -> None:
    """The upper triangle of a matrix in columns of `m`, as so many rows."""
    memset(to, 0, rows * n * item)
    for i in range(min(m, n)):
        for j in range(i, n):
            copy_element(to + (i * n + j) * item, a + (j * m + i) * item, item)


@parts.helper
def wanted_work(kind: i64, place: ptr) -> i64:
    """The size that LAPACK asks for, which it gives as an element; in f32 it may have been rounded
    down."""
    size = i64(load_f32(place, 0)) if part_of(kind) == 4 else i64(load_f64(place, 0))
    return max(size + (size >> 20), 1)


@parts.helper
def real_kind(kind: i64) -> i64:
    return ElementType.F32 if part_of(kind) == 4 else ElementType.F64


@parts.helper
def allocate(
    args: ptr, room: ptr, a: i64, b: i64, c: i64, work: i64, real_work: i64, whole_work: i64
) -> i1:
    """Take memory of so many bytes for each part; False, and the run is told to end, when there is
    none."""
    at = calque_alloc(a + b + c + work + real_work + whole_work + 96)
    if at == NULL:
        stop(load_ptr(args, -8), NO_MEMORY)
        return False
    Room(room).block = at
    Room(room).a = at
    at += (a + 15) & -16
    Room(room).b = at
    at += (b + 15) & -16
    Room(room).c = at
    at += (c + 15) & -16
    Room(room).work = at
    at += (work + 15) & -16
    Room(room).real_work = at
    at += (real_work + 15) & -16
    Room(room).whole_work = at
    return True


@parts.helper
def few_for(batch: i64, m: i64, n: i64) -> i64:
    """How many matrices are worth a thread: all of them where they are so large that LAPACK has
    threads of its own."""
    if max(m, n) > _OWN_THREADS:
        return batch
    return max(_GRAIN // (m * n * (min(m, n) + 8)), 1)


# ---------------------------------------------------------------- qr


@qr.helper
def factor_qr(args: ptr, room: ptr, words: ptr) -> None:
    """words: m, n, lwork, info. In the room: the matrix, tau, pivots."""
    function = Qr(args).factor
    a = Room(room).a
    tau = Room(room).b
    pivots = Room(room).c
    work = Room(room).work
    if Qr(args).pivoting == 0:
        geqrf_type(function, words, words + 4, a, words, tau, work, words + 8, words + 12)
    elif is_complex(Qr(args).kind):
        real = Room(room).real_work
        geqp3_complex_type(
            function, words, words + 4, a, words, pivots, tau, work, words + 8, real, words + 12
        )
    else:
        geqp3_type(function, words, words + 4, a, words, pivots, tau, work, words + 8, words + 12)


@qr.helper
def form_q(args: ptr, room: ptr, words: ptr) -> None:
    """words: m, columns of q, lwork, info, reflections."""
    a = Room(room).a
    tau = Room(room).b
    orgqr_type(
        Qr(args).form,
        words,
        words + 4,
        words + 16,
        a,
        words,
        tau,
        Room(room).work,
        words + 8,
        words + 12,
    )


@qr.helper
def qr_sizes(args: ptr, room: ptr, words: ptr) -> i64:
    """Ask LAPACK how many elements of work it wants."""
    Room(room).a = words
    Room(room).b = words
    Room(room).c = words
    answer = alloca(16)
    Room(room).work = answer
    Room(room).real_work = words
    store_i32(words, 4, Qr(args).n)
    factor_qr(args, room, words)
    work = wanted_work(Qr(args).kind, answer)
    store_i32(words, 4, columns_of_q(args))
    form_q(args, room, words)
    return max(work, wanted_work(Qr(args).kind, answer))


@qr.helper
def columns_of_q(args: ptr) -> i64:
    return Qr(args).m if Qr(args).full != 0 else min(Qr(args).m, Qr(args).n)


@qr.helper
def qr_one(args: ptr, room: ptr, words: ptr, k: i64) -> None:
    """The factors of one matrix."""
    m = Qr(args).m
    n = Qr(args).n
    item = item_of(Qr(args).kind)
    columns = columns_of_q(args)
    turn(item, Room(room).a, Qr(args).source + k * m * n * item, m, n)
    memset(Room(room).c, 0, 4 * n)
    store_i32(words, 4, n)
    factor_qr(args, room, words)
    if Qr(args).r != NULL:
        store_r(item, Qr(args).r + k * columns * n * item, Room(room).a, m, columns, n)
    if Qr(args).pivoting != 0 and Qr(args).order != NULL:
        for i in range(n):
            store_i32(Qr(args).order, 4 * (k * n + i), load_i32(Room(room).c, 4 * i) - 1)
    if Qr(args).q != NULL:
        store_i32(words, 4, columns)
        form_q(args, room, words)
        turn(item, Qr(args).q + k * m * columns * item, Room(room).a, columns, m)


@qr.helper
def qr_empty(args: ptr) -> None:
    """The factors of matrices without elements."""
    m = Qr(args).m
    n = Qr(args).n
    columns = columns_of_q(args)
    item = item_of(Qr(args).kind)
    for k in range(Qr(args).batch):
        if Qr(args).q != NULL:
            write_identity(Qr(args).kind, Qr(args).q + k * m * columns * item, m, columns)
        if Qr(args).order != NULL:
            for i in range(n):
                store_i32(Qr(args).order, 4 * (k * n + i), i)


@qr.function
def qr_some(args: ptr, first: i64, last: i64) -> None:
    """Q, R and the order of columns of some matrices."""
    m = Qr(args).m
    n = Qr(args).n
    item = item_of(Qr(args).kind)
    room = alloca(_ROOM_BYTES)
    words = alloca(_WORDS_BYTES)
    store_i32(words, 0, m)
    store_i32(words, 8, -1)
    store_i32(words, 16, min(m, n))
    work = qr_sizes(args, room, words)
    columns = max(columns_of_q(args), n)
    if not allocate(
        args, room, m * columns * item, min(m, n) * item, 4 * n, work * item, 2 * n * item, 0
    ):
        return
    store_i32(words, 8, work)
    for k in range(first, last):
        if calque_poll(load_ptr(args, -8)) != 0:
            break
        qr_one(args, room, words, k)
    calque_free(Room(room).block)


@qr.function
def calque_qr(args: ptr, begin: i64, end: i64) -> None:
    """Q, R and the order of columns of all matrices."""
    m = Qr(args).m
    n = Qr(args).n
    if m == 0 or n == 0:
        qr_empty(args)
    else:
        calque_parallel_for(qr_some, args, 0, Qr(args).batch, few_for(Qr(args).batch, m, n))


# ---------------------------------------------------------------- eigh


@eigh.helper
def call_evd(args: ptr, room: ptr, words: ptr, values: ptr) -> None:
    """words: n, lwork, lrwork, liwork, info, job and triangle. In the room: the matrix."""
    a = Room(room).a
    work = Room(room).work
    whole = Room(room).whole_work
    if is_complex(Eigh(args).kind):
        evd_complex_type(
            Eigh(args).lapack, words + 20, words + 21, words, a, words, values, work, words + 4,
            Room(room).real_work,
            words + 8, whole, words + 12, words + 16,
        )  # fmt: skip
    else:
        evd_type(
            Eigh(args).lapack, words + 20, words + 21, words, a, words, values, work, words + 4,
            whole, words + 12,
            words + 16,
        )  # fmt: skip


@eigh.helper
def eigh_one(args: ptr, room: ptr, words: ptr, k: i64) -> None:
    """The eigenvalues and eigenvectors of one matrix; NaN when it holds what is no number, or
    LAPACK fails."""
    n = Eigh(args).n
    kind = Eigh(args).kind
    item = item_of(kind)
    values = (
        Room(room).b if Eigh(args).values == NULL else Eigh(args).values + k * n * part_of(kind)
    )
    vectors: ptr = NULL
    if Eigh(args).vectors != NULL:
        vectors = Eigh(args).vectors + k * n * n * item
    source = Eigh(args).source + k * n * n * item
    good = all_finite(kind, source, n * n) != 0
    if good:
        turn(item, Room(room).a, source, n, n)
        call_evd(args, room, words, values)
        good = load_i32(words, 16) == 0
    if not good:
        fill_nan(kind, vectors, n * n)
        fill_nan(real_kind(kind), values, n)
    elif vectors != NULL:
        turn(item, vectors, Room(room).a, n, n)


@eigh.function
def eigh_some(args: ptr, first: i64, last: i64) -> None:
    """Eigenvectors and eigenvalues of some matrices."""
    n = Eigh(args).n
    kind = Eigh(args).kind
    item = item_of(kind)
    room = alloca(_ROOM_BYTES)
    words = alloca(_WORDS_BYTES)
    answer = alloca(48)
    store_i32(words, 0, n)
    store_i32(words, 4, -1)
    store_i32(words, 8, -1)
    store_i32(words, 12, -1)
    store_i8(words, 20, _V)
    store_i8(words, 21, _L if Eigh(args).lower != 0 else _U)
    Room(room).a = words
    Room(room).work = answer
    Room(room).real_work = answer + 16
    Room(room).whole_work = answer + 32
    call_evd(args, room, words, words)
    work = wanted_work(kind, answer)
    real_work = wanted_work(kind, answer + 16) if is_complex(kind) else 0
    whole = i64(load_i32(answer, 32))
    part = part_of(kind)
    if not allocate(
        args, room, n * n * item, n * part, 0, work * item, real_work * part, 4 * whole
    ):
        return
    store_i32(words, 4, work)
    store_i32(words, 8, real_work)
    store_i32(words, 12, whole)
    for k in range(first, last):
        if calque_poll(load_ptr(args, -8)) != 0:
            break
        eigh_one(args, room, words, k)
    calque_free(Room(room).block)


@eigh.function
def calque_eigh(args: ptr, begin: i64, end: i64) -> None:
    """Eigenvectors and eigenvalues of all matrices."""
    n = Eigh(args).n
    if n != 0:
        calque_parallel_for(eigh_some, args, 0, Eigh(args).batch, few_for(Eigh(args).batch, n, n))


# ---------------------------------------------------------------- svd


@svd.helper
def call_gesdd(args: ptr, room: ptr, words: ptr, values: ptr) -> None:
    """words: m, n, rows of v^H, lwork, info, job. In the room: the matrix, u, v^H."""
    a = Room(room).a
    u = Room(room).b
    vt = Room(room).c
    work = Room(room).work
    whole = Room(room).whole_work
    job = words + 20
    if is_complex(Svd(args).kind):
        gesdd_complex_type(
            Svd(args).lapack, job, words, words + 4, a, words, values, u, words, vt, words + 8,
            work, words + 12,
            Room(room).real_work, whole, words + 16,
        )  # fmt: skip
    else:
        gesdd_type(
            Svd(args).lapack, job, words, words + 4, a, words, values, u, words, vt, words + 8,
            work, words + 12,
            whole, words + 16,
        )  # fmt: skip


@svd.helper
def svd_one(args: ptr, room: ptr, words: ptr, values: ptr, k: i64, left: i64, right: i64) -> None:
    """The decomposition of one matrix, with `left` columns of u and `right` rows of v^H; NaN as for
    eigenvalues."""
    m = Svd(args).m
    n = Svd(args).n
    kind = Svd(args).kind
    item = item_of(kind)
    u: ptr = NULL
    vt: ptr = NULL
    if Svd(args).u != NULL:
        u = Svd(args).u + k * m * left * item
    if Svd(args).vt != NULL:
        vt = Svd(args).vt + k * right * n * item
    source = Svd(args).source + k * m * n * item
    good = all_finite(kind, source, m * n) != 0
    if good:
        turn(item, Room(room).a, source, m, n)
        call_gesdd(args, room, words, values)
        good = load_i32(words, 16) == 0
    if not good:
        fill_nan(real_kind(kind), values, min(m, n))
        fill_nan(kind, u, m * left)
        fill_nan(kind, vt, right * n)
        return
    if u != NULL:
        turn(item, u, Room(room).b, left, m)
    if vt != NULL:
        turn(item, vt, Room(room).c, n, right)


@svd.helper
def svd_empty(args: ptr, left: i64, right: i64) -> None:
    """The singular vectors of matrices without elements."""
    kind = Svd(args).kind
    item = item_of(kind)
    m = Svd(args).m
    n = Svd(args).n
    for k in range(Svd(args).batch):
        if Svd(args).u != NULL:
            write_identity(kind, Svd(args).u + k * m * left * item, m, left)
        if Svd(args).vt != NULL:
            write_identity(kind, Svd(args).vt + k * right * n * item, right, n)


@svd.helper
def svd_room(args: ptr, room: ptr, words: ptr, left: i64, right: i64) -> i1:
    """Take the memory for a decomposition."""
    m = Svd(args).m
    n = Svd(args).n
    kind = Svd(args).kind
    item = item_of(kind)
    few = min(m, n)
    answer = alloca(16)
    Room(room).a = words
    Room(room).b = words
    Room(room).c = words
    Room(room).work = answer
    Room(room).real_work = words
    Room(room).whole_work = words
    store_i32(words, 12, -1)
    call_gesdd(args, room, words, words)
    work = wanted_work(kind, answer)
    store_i32(words, 12, work)
    real_work = (
        few * (5 * few + 7 + 2 * max(m, n) + 2 * few) * part_of(kind) if is_complex(kind) else 0
    )
    u = m * left * item + few * item  # and the singular values, when nobody wants them
    return allocate(args, room, m * n * item, u, right * n * item, work * item, real_work, 32 * few)


@svd.helper
def columns_of_u(args: ptr) -> i64:
    """How many left singular vectors are wanted of each matrix."""
    if Svd(args).with_vectors == 0:
        return 0
    return Svd(args).m if Svd(args).full != 0 else min(Svd(args).m, Svd(args).n)


@svd.helper
def rows_of_vt(args: ptr) -> i64:
    """How many right singular vectors are wanted of each matrix."""
    if Svd(args).with_vectors == 0:
        return 0
    return Svd(args).n if Svd(args).full != 0 else min(Svd(args).m, Svd(args).n)


@svd.function
def svd_some(args: ptr, first: i64, last: i64) -> None:
    """Singular values and vectors of some matrices."""
    m = Svd(args).m
    n = Svd(args).n
    kind = Svd(args).kind
    few = min(m, n)
    full = Svd(args).full != 0
    left = columns_of_u(args)
    right = rows_of_vt(args)
    room = alloca(_ROOM_BYTES)
    words = alloca(_WORDS_BYTES)
    store_i32(words, 0, m)
    store_i32(words, 4, n)
    store_i32(words, 8, max(right, 1))
    store_i8(words, 20, _N if Svd(args).with_vectors == 0 else (_A if full else _S))
    if not svd_room(args, room, words, left, right):
        return
    for k in range(first, last):
        if calque_poll(load_ptr(args, -8)) != 0:
            break
        values = Room(room).b + m * left * item_of(kind)
        if Svd(args).values != NULL:
            values = Svd(args).values + k * few * part_of(kind)
        svd_one(args, room, words, values, k, left, right)
    calque_free(Room(room).block)


@svd.function
def calque_svd(args: ptr, begin: i64, end: i64) -> None:
    """Singular values and vectors of all matrices."""
    m = Svd(args).m
    n = Svd(args).n
    if min(m, n) == 0:
        svd_empty(args, columns_of_u(args), rows_of_vt(args))
    else:
        calque_parallel_for(svd_some, args, 0, Svd(args).batch, few_for(Svd(args).batch, m, n))

"""Sorting along an axis of arrays: the kernel behind `sort` and `top_k`.

`calque_sort(args, begin, end)` sorts all rows; the range means nothing. `args` are words, see
`Args`: sizes, the operands that decide the order (`Key`), and where operands go (`Move`). A row of
one operand is sorted as it is: its keys, then the elements they stand for. With several operands,
or where places are asked for, records of key and place are sorted, and everything is moved by their
places, which makes the order stable.

Keys of 8 bytes, and further keys, first count with what fits in half a record; then neighbours
whose records agree are compared in full. Where that is much work, the places are sorted by one key
after the other instead, the last one first.
"""

from __future__ import annotations

from calque.machine.driver.interpreter import NO_MEMORY, TOO_LARGE, calque_poll
from calque.machine.lang.unit import (
    NULL,
    Unit,
    alloca,
    i1,
    i64,
    load_i64,
    load_ptr,
    load_u8,
    load_u32,
    lshr,
    memcpy,
    memset,
    ptr,
    store_i8,
    store_i32,
    store_i64,
    ult,
)
from calque.machine.memory import calque_alloc, calque_free
from calque.machine.routines.ending import stop
from calque.machine.routines.sort.keys import (
    Key,
    KeyKind,
    Row,
    key_at,
    keys_load,
    keys_store,
    nan_of,
    raw_of,
    sign_of,
)
from calque.machine.routines.sort.moves import GRAIN, copy_element, sort_copy
from calque.machine.routines.sort.network import PAD, network_sort
from calque.machine.routines.sort.radix import RECORDS_BYTES, Records, bits_of
from calque.machine.routines.sort.records import PLACES_BYTES, ROOM, records_survey, sort_records
from calque.machine.routines.sort.select import MOST, SHARE, select_records
from calque.machine.routines.sort.work import (
    FEW,
    ROW_BYTES,
    WORK_BYTES,
    Args,
    Move,
    Work,
    first_element,
    in_order,
    is_stopped,
    is_wide,
    job_of,
    key_number,
    key_place,
    move_number,
    sort_load,
    sort_move,
)
from calque.machine.threads import calque_parallel_for, threads_in_use

_NEAR = 256  # rows up to this length need no memory but the stack
_NEAR_BYTES = 8 * (_NEAR + PAD)
_LONG = 1 << 16  # rows from this length on are each shared by several threads
_LONG_ROOM = 30_000  # so long rows may be split into parts
_SHORT = 100  # rows up to this length are read and written many at a time
_BATCH = 2048  # elements of them
_BETWEEN_POLLS = 1 << 17
_PIECE = 1 << 20
_ALL_4 = 0xFFFFFFFF

unit = Unit("sort")


# ---------------------------------------------------------------- one operand


@unit.function
def sort_bytes(work: ptr, key: ptr, move: ptr) -> None:
    """Sort bytes: count the ranks, then put each byte where those of its rank stand."""
    args = Work(work).args
    n = Args(args).n
    counts = alloca(2048)
    memset(counts, 0, 2048)
    source = key_place(work, key)
    to = Move(move).target + first_element(args, Work(work).row, n)
    step = Args(args).inner
    table = Key(key).table
    for i in range(n):
        if i % _BETWEEN_POLLS == 0 and calque_poll(Work(work).run) != 0:
            return
        rank = load_u8(table + load_u8(source, i * step), 0)
        store_i64(counts, 8 * rank, load_i64(counts, 8 * rank) + 1)
    total = 0
    for rank in range(256):
        some = load_i64(counts, 8 * rank)
        store_i64(counts, 8 * rank, total)
        total += some
    for i in range(n):
        if i % _BETWEEN_POLLS == 0 and calque_poll(Work(work).run) != 0:
            return
        byte = load_u8(source, i * step)
        rank = load_u8(table + byte, 0)
        at = load_i64(counts, 8 * rank)
        store_i64(counts, 8 * rank, at + 1)
        store_i8(to, at * step, byte)


@unit.helper
def first_not_below(records: ptr, wide: i64, n: i64, key: i64) -> i64:
    """The place of the first of the sorted keys that is not less than one."""
    low = 0
    high = n
    while low < high:
        middle = (low + high) >> 1
        some = load_i64(records, 8 * middle) if wide != 0 else load_u32(records, 4 * middle)
        if ult(some, key):
            low = middle + 1
        else:
            high = middle
    return low


@unit.helper
def repair_some(work: ptr, key: ptr, kind: i64, item: i64, to: ptr, zeros: i64, nans: i64) -> None:
    """Write zeros and nans from two places on, in the order in which they stand."""
    step = Args(Work(work).args).inner * item
    source = key_place(work, key)
    infinity = Key(key).infinity
    for i in range(Args(Work(work).args).n):
        place = source + i * step
        magnitude = raw_of(kind, place) & (sign_of(kind) - 1)
        if magnitude == 0:
            copy_element(to + zeros * step, place, item)
            zeros += 1
        elif magnitude > infinity:
            copy_element(to + nans * step, place, item)
            nans += 1


@unit.function
def sort_repair(work: ptr, key: ptr, to: ptr) -> None:
    """Give the zeros and nans of a sorted row of floats the bits they had."""
    n = Args(Work(work).args).n
    wide = is_wide(key)
    zero = 1 << (8 * Key(key).item - 1)
    zeros = first_not_below(Work(work).records, wide, n, zero)
    nans = first_not_below(Work(work).records, wide, n, nan_of(Key(key).infinity) | zero)
    match Key(key).kind:
        case KeyKind.FLOAT_2:
            repair_some(work, key, KeyKind.FLOAT_2, 2, to, zeros, nans)
        case KeyKind.FLOAT_4:
            repair_some(work, key, KeyKind.FLOAT_4, 4, to, zeros, nans)
        case _:
            repair_some(work, key, KeyKind.FLOAT_8, 8, to, zeros, nans)


@unit.helper
def sort_alone(work: ptr) -> i64:
    """Sort a row of the only operand. Gives 0 when there is no memory or the run is stopped."""
    args = Work(work).args
    n = Args(args).n
    key = key_number(args, 0)
    move = move_number(args, 0)
    if Key(key).kind == KeyKind.TABLE:
        sort_bytes(work, key, move)
        return 1
    to = Move(move).target + first_element(args, Work(work).row, n) * Key(key).item
    step = Args(args).inner * Key(key).item
    odd = sort_load(work, key, Work(work).records)
    job = job_of(work, Work(work).records, is_wide(key), n)
    if in_order(job):
        sort_copy(key_place(work, key), step, to, step, Key(key).item, n)
        return 1
    if sort_records(job) == 0:
        return 0
    row = alloca(ROW_BYTES)
    Row(row).key = key
    Row(row).data = Work(work).other if step != Key(key).item else to
    Row(row).keys = Work(work).records
    calque_parallel_for(keys_store, row, 0, n, GRAIN)
    if step != Key(key).item:
        sort_copy(Work(work).other, Key(key).item, to, step, Key(key).item, n)
    if odd != 0:
        sort_repair(work, key, to)
    return 1


@unit.function
def sort_short(work: ptr, first: i64, last: i64) -> None:
    """Sort short rows of the only operand that follow each other: their keys are loaded and stored
    many rows at a time."""
    args = Work(work).args
    n = Args(args).n
    key = key_number(args, 0)
    wide = is_wide(key)
    size = n * (4 << wide)
    row = alloca(ROW_BYTES)
    Row(row).key = key
    Row(row).keys = Work(work).records
    at = first
    while at < last and calque_poll(Work(work).run) == 0:
        count = min(_BATCH // n, last - at)
        Row(row).data = Key(key).data + at * n * Key(key).item
        Row(row).odd = 0
        keys_load(row, 0, count * n)
        if Row(row).odd != 0:
            for k in range(count):
                Work(work).row = at + k
                sort_alone(work)
        else:
            for k in range(count):
                place = Work(work).records + k * size
                memcpy(Work(work).other, place, size)
                network_sort(Work(work).other, n, wide)
                memcpy(place, Work(work).other, size)
            Row(row).data = Move(move_number(args, 0)).target + at * n * Key(key).item
            keys_store(row, 0, count * n)
        at += count


# ---------------------------------------------------------------- several operands


@unit.function
def sort_pack(work: ptr, begin: i64, end: i64) -> None:
    """Records of what fits in of each key, and its place."""
    keys = Work(work).keys
    records = Work(work).records
    least = Work(work).least
    shift = Work(work).shift
    if Work(work).wide != 0:
        for i in range(begin, end):
            store_i64(records, 8 * i, (lshr(load_i64(keys, 8 * i) - least, shift) << 32) | i)
    else:
        for i in range(begin, end):
            store_i64(records, 8 * i, (load_u32(keys, 4 * i) << 32) | i)


@unit.helper
def comes_before(work: ptr, a: i64, b: i64) -> i1:
    """Whether the element at one place is less than that at another, when their records agree."""
    args = Work(work).args
    if Work(work).wide != 0:
        x = load_i64(Work(work).keys, 8 * a)
        y = load_i64(Work(work).keys, 8 * b)
        if x != y:
            return ult(x, y)
    for k in range(1, Args(args).n_keys):
        key = key_number(args, k)
        place = key_place(work, key)
        step = Args(args).inner * Key(key).item
        x = key_at(key, place + a * step)
        y = key_at(key, place + b * step)
        if x != y:
            return ult(x, y)
    return False


@unit.function
def sort_tidy(work: ptr) -> i64:
    """Put records whose keys agree in their full order, one after the other. Gives 0 when that is
    much work, or the run is stopped."""
    records = Work(work).records
    compared = 0
    for i in range(1, Args(Work(work).args).n):
        if i % _BETWEEN_POLLS == 0 and calque_poll(Work(work).run) != 0:
            return 0
        r = load_i64(records, 8 * i)
        if lshr(r, 32) != load_u32(records, 8 * i - 4):
            continue
        k = i
        while k > 0 and lshr(r, 32) == load_u32(records, 8 * k - 4):
            compared += 1
            if not comes_before(work, r & _ALL_4, load_u32(records, 8 * k - 8)):
                break
            store_i64(records, 8 * k, load_i64(records, 8 * k - 8))
            k -= 1
        store_i64(records, 8 * k, r)
        if compared > 4 * i + FEW:
            return 0
    return 1


@unit.function
def sort_pack_places(work: ptr, begin: i64, end: i64) -> None:
    """Records of half of the key of each place, and the place's number."""
    keys = Work(work).keys + 4 * Work(work).half
    records = Work(work).records
    places = Work(work).places
    size = 4 << Work(work).wide
    for i in range(begin, end):
        store_i64(records, 8 * i, (load_u32(keys, load_u32(places, 4 * i) * size) << 32) | i)


@unit.function
def sort_follow_places(work: ptr, begin: i64, end: i64) -> None:
    """The places that the numbers in records stand for."""
    records = Work(work).records
    places = Work(work).places
    new = Work(work).new
    for i in range(begin, end):
        store_i32(new, 4 * i, load_u32(places, 4 * load_u32(records, 8 * i)))


@unit.helper
def in_pieces(work: ptr, kernel: ptr) -> i1:
    """Run a kernel over all elements, a piece at a time; False when the run is stopped."""
    n = Args(Work(work).args).n
    at = 0
    while at < n:
        calque_parallel_for(kernel, work, at, min(at + _PIECE, n), GRAIN)
        at += _PIECE
        if calque_poll(Work(work).run) != 0:
            return False
    return True


@unit.function
def sort_by_half(work: ptr, half: i64) -> i64:
    """Sort places by half of the keys: 0 or 1 of wide ones, 0 of others. Gives 0 when that
    fails."""
    Work(work).half = half
    if not in_pieces(work, sort_pack_places):
        return 0
    if sort_records(
        job_of(work, Work(work).records, 1, Args(Work(work).args).n)
    ) == 0 or is_stopped(work):
        return 0
    if not in_pieces(work, sort_follow_places):
        return 0
    was = Work(work).places
    Work(work).places = Work(work).new
    Work(work).new = was
    return 1


@unit.helper
def sort_by_each(work: ptr, places: ptr) -> i64:
    """Sort by one key after the other, the last one first. Gives 0 when that fails."""
    args = Work(work).args
    n = Args(args).n
    Work(work).places = places
    Work(work).new = places + 4 * n
    for i in range(n):
        store_i32(places, 4 * i, i)
    k = Args(args).n_keys - 1
    while k >= 0:
        key = key_number(args, k)
        Work(work).wide = is_wide(key)
        sort_load(work, key, Work(work).keys)
        for half in range(Work(work).wide + 1):
            if sort_by_half(work, half) == 0:
                return 0
        k -= 1
    places = Work(work).places
    for i in range(n):
        store_i64(Work(work).records, 8 * i, load_u32(places, 4 * i))
    return 1


@unit.helper
def order(work: ptr) -> i64:
    """Let the low halves of the records be the places of the elements in their order. Gives 0 when
    there is no memory or the run is stopped."""
    args = Work(work).args
    n = Args(args).n
    key = key_number(args, 0)
    wide = is_wide(key)
    sort_load(work, key, Work(work).keys)
    job = job_of(work, Work(work).keys, wide, n)
    Work(work).wide = wide
    Work(work).shift = 0
    kept = Args(args).kept
    few = wide == 0 and Args(args).n_keys == 1 and kept <= MOST and SHARE * kept <= n
    if few and select_records(Work(work).keys, Work(work).records, n, kept) != 0:
        return 1
    sorted_already = False
    if wide != 0:
        records_survey(job)
        sorted_already = Records(job).disorder == 0
        Work(work).least = Records(job).least
        Work(work).shift = max(bits_of(Records(job).greatest - Records(job).least) - 32, 0)
    elif 2 * kept > n:
        sorted_already = in_order(job)
    decided = Work(work).shift == 0 and Args(args).n_keys == 1
    calque_parallel_for(sort_pack, work, 0, n, GRAIN)
    kept = kept if decided else n  # what is not decided yet may still change places
    if not sorted_already and sort_records(job_of(work, Work(work).records, 1, kept)) == 0:
        return 0
    if decided or (sorted_already and Args(args).n_keys == 1):
        return 1
    if is_stopped(work):
        return 0
    if sort_tidy(work) != 0:
        return 1
    if is_stopped(work):
        return 0
    places = calque_alloc(8 * n)
    if places == NULL:
        return 0
    good = sort_by_each(work, places)
    calque_free(places)
    return good


@unit.helper
def sort_together(work: ptr) -> i64:
    """Sort a row of several operands. Gives 0 when there is no memory or the run is stopped."""
    args = Work(work).args
    if order(work) == 0 or is_stopped(work):
        return 0
    for k in range(Args(args).n_moves):
        sort_move(work, move_number(args, k))
    return 1


# ---------------------------------------------------------------- rows


@unit.helper
def sort_each(work: ptr, first: i64, last: i64) -> None:
    """Sort rows one after the other."""
    args = Work(work).args
    n = Args(args).n
    since = 0
    for row in range(first, last):
        Work(work).row = row
        good = sort_alone(work) if Args(args).alone != 0 else sort_together(work)
        if good == 0:
            stop(Work(work).run, NO_MEMORY)
            return
        since += n
        if since >= _BETWEEN_POLLS:
            since = 0
            if calque_poll(Work(work).run) != 0:
                return


@unit.helper
def is_short(args: ptr) -> i1:
    """Whether the rows of the only operand are short and follow each other."""
    return (
        Args(args).alone != 0
        and Args(args).inner == 1
        and Args(args).n <= _SHORT
        and Key(key_number(args, 0)).kind != KeyKind.TABLE
    )


@unit.helper
def room_of(args: ptr) -> i64:
    """The bytes of each of the three parts of memory that a long row needs: bytes alone are
    counted, which needs none."""
    n = Args(args).n
    records = n + (ROOM if n > _LONG_ROOM else PAD)
    if Args(args).alone == 0:
        return 8 * records
    key = key_number(args, 0)
    if Key(key).kind == KeyKind.TABLE:
        return 0
    return (4 << is_wide(key)) * records + 63 & ~63


@unit.function
def sort_rows(args: ptr, first: i64, last: i64) -> None:
    """Sort some rows, in memory of their own."""
    work = alloca(WORK_BYTES)
    job = alloca(RECORDS_BYTES)
    places = alloca(PLACES_BYTES)
    near = alloca(3 * _NEAR_BYTES)
    n = Args(args).n
    Work(work).args = args
    Work(work).run = load_ptr(args, -8)
    Work(work).survey = job
    Records(job).places = places
    short = is_short(args) and last - first > 1
    room = 8 * (_BATCH + PAD) if short else room_of(args)
    block: ptr = NULL
    start = near
    if n <= _NEAR and not short:
        room = _NEAR_BYTES
    elif room != 0:
        block = calque_alloc((3 - Args(args).alone) * room)  # keys apart are of several operands
        start = block
        if block == NULL:
            stop(Work(work).run, NO_MEMORY)
            return
    Work(work).records = start
    Work(work).other = start + room
    Work(work).keys = start + 2 * room
    if short:
        sort_short(work, first, last)
    else:
        sort_each(work, first, last)
    calque_free(block)


@unit.function
def calque_sort(args: ptr, begin: i64, end: i64) -> None:
    """Sort all rows: several at a time, or a long one with all threads."""
    rows = Args(args).outer * Args(args).inner
    n = Args(args).n
    if rows == 0 or Args(args).kept == 0:
        return
    if n > _ALL_4 and Args(args).alone == 0:  # places are counted with 32 bits
        stop(load_ptr(args, -8), TOO_LARGE)
        return
    if rows == 1 or (n >= _LONG and rows < threads_in_use()):
        sort_rows(args, 0, rows)
    else:
        calque_parallel_for(sort_rows, args, 0, rows, max(GRAIN // n, 1))

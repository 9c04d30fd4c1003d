"""The allocator: alignment, recycling, bounds, threads, fork."""

import ctypes
import os
import random
import threading
from collections.abc import Iterator

import pytest

from calque.machine import memory

SIZES = [
    0,
    1,
    48,
    49,
    100,
    512,
    513,
    1024,
    8175,
    8176,
    8177,
    8192,
    8193,
    100_000,
    1 << 20,
    (1 << 20) + 1,
    4 << 20,
]


@pytest.fixture(autouse=True)
def limits() -> Iterator[None]:
    yield
    memory.set_limit(memory.physical_memory())
    memory.set_idle_limit(max(64 << 20, memory.physical_memory() // 16))


@pytest.mark.parametrize("nbytes", SIZES)
def test_blocks_are_aligned_large_enough_and_recycled(nbytes: int) -> None:
    first = memory.allocate(nbytes)
    other = memory.allocate(nbytes)
    assert first % memory.ALIGNMENT == 0 and abs(other - first) >= max(nbytes, 1)
    ctypes.memset(first, 1, nbytes)
    ctypes.memset(other, 2, nbytes)
    assert bytes(memory.view(first, nbytes)) == b"\1" * nbytes
    memory.free(first)
    assert memory.allocate(nbytes) == first
    memory.free(first)
    memory.free(other)


@pytest.mark.usefixtures("no_garbage")
def test_every_size_fits_its_class() -> None:
    for nbytes in [
        *range(0, 20000, 7),
        *(2**k + d for k in range(13, 24) for d in (-17, -16, -1, 0, 1)),
    ]:
        block = memory.allocate(nbytes)
        before = memory.stats().live_bytes
        memory.free(block)
        taken = before - memory.stats().live_bytes
        assert nbytes <= taken <= max(64, 1.26 * (nbytes + 16) + 64)


def test_what_cannot_be_is_a_memory_error() -> None:
    for nbytes in (
        -1,
        -(1 << 63),
        memory.physical_memory() + 1,
        1 << 45,
        1 << 62,
        (1 << 63) - 1,
        1 << 63,
        1 << 70,
    ):
        with pytest.raises(MemoryError, match="cannot allocate"):
            memory.allocate(nbytes)
    assert memory.calque_alloc(-1) is None
    memory.calque_free(None)


@pytest.mark.usefixtures("no_garbage")
def test_the_sum_of_blocks_is_bounded_too() -> None:
    memory.trim()
    used = memory.stats().live_bytes
    memory.set_limit(used + (64 << 20))
    blocks = [memory.allocate(20 << 20) for _ in range(3)]
    with pytest.raises(MemoryError):
        memory.allocate(20 << 20)
    memory.free(blocks.pop())
    blocks.append(memory.allocate(10 << 20))  # what lies idle gives way
    for block in blocks:
        memory.free(block)


def test_idle_memory_is_bounded_and_can_be_given_back() -> None:
    memory.set_idle_limit(32 << 20)
    blocks = [memory.allocate(10 << 20) for _ in range(8)]
    for block in blocks:
        memory.free(block)
    small = memory.stats().idle_bytes
    assert small <= (32 << 20) + (64 << 20)
    memory.trim()
    assert memory.stats().idle_bytes < 8 << 20


@pytest.mark.usefixtures("no_garbage")
def test_statistics_count_blocks() -> None:
    before = memory.stats()
    block = memory.allocate(100_000)
    during = memory.stats()
    memory.free(block)
    after = memory.stats()
    assert during.live_blocks == before.live_blocks + 1 == after.live_blocks + 1
    assert during.live_bytes - before.live_bytes >= 100_000
    assert after.allocations == before.allocations + 1


def test_a_foreign_pointer_is_left_alone() -> None:
    foreign = ctypes.create_string_buffer(256)
    memory.free(ctypes.addressof(foreign) + 128)


def test_random_use_keeps_blocks_apart() -> None:
    choice = random.Random(1)
    live: dict[int, tuple[int, int]] = {}
    for turn in range(5000):
        if live and choice.random() < 0.5:
            address, (nbytes, mark) = live.popitem()
            assert bytes(memory.view(address, nbytes)) == bytes([mark]) * nbytes
            memory.free(address)
        else:
            nbytes = int(2 ** choice.uniform(0, 17))
            address = memory.allocate(nbytes)
            assert address not in live
            ctypes.memset(address, turn % 251, nbytes)
            live[address] = (nbytes, turn % 251)
    for address in live:
        memory.free(address)


@pytest.mark.parametrize("nbytes", [48, 496, 1008, 8176])
def test_small_blocks_end_where_their_slab_ends(nbytes: int) -> None:
    """Enough blocks to use up slabs to the last byte; those recycled from earlier tests come first
    and are passed over."""
    blocks, inside = [], 0
    for _ in range(3 * memory._SLAB // (nbytes + 16) + 5000):
        blocks.append(memory.allocate(nbytes))
        end = memory._slab.read(1)
        if end - memory._SLAB <= blocks[-1] < end + 64:
            assert end - memory._SLAB <= blocks[-1] - 16 and blocks[-1] + nbytes <= end
            inside += 1
    for block in blocks:
        memory.free(block)
    assert inside >= memory._SLAB // (nbytes + 16) - 1


@pytest.mark.usefixtures("no_garbage")
def test_threads_share_it() -> None:
    alloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)(
        memory.calque_alloc.address
    )  # without the GIL
    free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(memory.calque_free.address)
    wrong = []

    def work(mark: int) -> None:
        for turn in range(2000):
            nbytes = (turn * 37) % 3000 + 8
            block = alloc(nbytes)
            ctypes.memset(block, mark, nbytes)
            if ctypes.string_at(block, nbytes) != bytes([mark]) * nbytes:
                wrong.append(block)
            free(block)

    before = memory.stats().live_blocks
    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and memory.stats().live_blocks == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.filterwarnings("ignore")  # libraries that keep threads of their own warn of any fork
def test_a_forked_child_allocates_though_a_list_was_locked() -> None:
    block = memory.allocate(3000)
    memory.free(block)
    entry = next(k for k in range(160) if memory._table.read(4 * k) == block)
    memory._table.write(1, 4 * entry)  # as another thread leaves it in the middle of its work
    memory._slab.write(1, 2)
    child = os.fork()
    if child == 0:
        fine = all(memory.allocate(nbytes) for nbytes in (3000, 10, 100_000, 4 << 20))
        os._exit(0 if fine else 1)
    memory._table.write(block, 4 * entry)
    memory._slab.write(0, 2)
    assert os.waitpid(child, 0)[1] == 0


def test_the_view_of_a_block_is_its_memory() -> None:
    block = memory.allocate(8)
    view = memory.view(block, 8)
    view[:] = b"12345678"
    assert ctypes.string_at(block, 8) == b"12345678"
    with pytest.raises(TypeError):
        memory.view(block, 8, writable=False)[0] = 1
    memory.free(block)

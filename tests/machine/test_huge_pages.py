"""Blocks that begin with small pages."""

import ctypes
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from calque.machine import huge_pages, memory


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks the kernel of a mapping")
@pytest.mark.parametrize("late", [False, True])
def test_huge_pages_come_at_once_or_to_blocks_that_are_used_again(late: bool) -> None:
    nbytes = 6 << 20
    with beginning_small(late):
        memory.trim()
        with huge_pages.FirstRun():
            first = memory.allocate(nbytes)
            assert wants_huge_pages(first) is not late
        assert wants_huge_pages(first)
        pattern = bytes(range(256)) * (nbytes // 256)
        ctypes.memmove(first, pattern, nbytes)
        used = memory._begun.read(0)
        for _ in range(7):
            memory.free(first)
            assert memory.allocate(nbytes) == first
        wait_for_the_thread()
        assert bytes(memory.view(first, nbytes))[64:] == pattern[64:]  # the list stood before
        memory.free(first)
        assert used == 0 == memory._begun.read(0)
    before = memory.stats().idle_bytes
    memory.trim()  # the mapping is given back by its own address
    assert memory.stats().idle_bytes < before
    assert mapping_of(first) is None


def test_blocks_get_huge_pages_while_they_are_given_back_and_taken() -> None:
    with beginning_small(True), huge_pages.FirstRun():
        memory.trim()
        for turn in range(40):
            blocks = [memory.allocate((2 + k) << 20) for k in range(3)]
            for block in blocks:
                ctypes.memset(block, turn, 2 << 20)
            for block in blocks:
                assert bytes(memory.view(block, 2 << 20)) == bytes([turn]) * (2 << 20)
                memory.free(block)
            if turn % 7 == 6:
                memory.trim()
    wait_for_the_thread()


def test_a_first_run_may_begin_more_blocks_than_are_noted() -> None:
    with beginning_small(True):
        memory.trim()
        with huge_pages.FirstRun(), huge_pages.FirstRun():
            blocks = [memory.allocate(2 << 20) for _ in range(memory._MOST_BEGUN + 6)]
        assert wants_huge_pages(blocks[0])
        assert not wants_huge_pages(blocks[-1])
        for block in blocks:
            memory.free(block)
        memory.trim()


@contextmanager
def beginning_small(small: bool) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(huge_pages, "host_takes_back", lambda: small)
        yield


def wait_for_the_thread() -> None:
    end = time.monotonic() + 60
    while huge_pages._bringing.read(0) and time.monotonic() < end:
        time.sleep(0.001)
    assert not huge_pages._bringing.read(0)


def mapping_of(address: int) -> str | None:
    """What the kernel says of the mapping of an address."""
    with open("/proc/self/smaps") as file:
        text = file.read()
    for entry in re.split(r"\n(?=[0-9a-f]+-[0-9a-f]+ )", text):
        begin, end = (int(x, 16) for x in entry.split(" ", 1)[0].split("-"))
        if begin <= address < end:
            return entry
    return None


def wants_huge_pages(address: int) -> bool:
    flags = re.search("VmFlags:(.*)", mapping_of(address) or "")
    return flags is not None and "hg" in flags[1].split()


def test_a_host_that_takes_memory_back_is_known_by_its_balloon(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(huge_pages, "_BALLOONS", str(tmp_path / "none"))
    assert not huge_pages.host_takes_back.__wrapped__()
    monkeypatch.setattr(huge_pages, "_BALLOONS", str(tmp_path))
    (tmp_path / "bind").write_text("")
    assert not huge_pages.host_takes_back.__wrapped__()
    for features, takes in (("", False), ("01100000", False), ("01100100", True)):
        (tmp_path / "virtio0").mkdir(exist_ok=True)
        (tmp_path / "virtio0" / "features").write_text(features + "\n")
        assert huge_pages.host_takes_back.__wrapped__() is takes


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore")  # of any fork while there are threads
def test_a_forked_child_has_no_thread_and_may_have_one() -> None:
    with beginning_small(True), huge_pages.FirstRun():
        huge_pages._bringing.write(1)
        child = os.fork()
        if child == 0:
            os._exit(huge_pages._bringing.read(0) + memory._first_runs.read(0))
        huge_pages._bringing.write(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

"""Room on Python's stack: what is called gives what it gives, and deep calls map no memory."""

import sys
import traceback

import pytest

from calque.machine.room import ROOM, with_room


def nothing(a=0, b=0, c=0, d=0, e=0, f=0, g=0, h=0) -> None:  # type: ignore[no-untyped-def]
    """Its frame is larger than that of its caller: some call of it is the first behind an edge."""


def at_depth(n: int) -> None:
    """A thousand calls at a depth."""
    if n:
        at_depth(n - 1)
        return
    for _ in range(1000):
        nothing()


def faults(depths: range) -> int:
    """How often memory is touched for the first time by calls at these depths."""
    resource = pytest.importorskip("resource")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for n in depths:
        at_depth(n)
    return int(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)


def test_arguments_and_results_pass() -> None:
    def given(*args: object, **kwargs: object) -> object:
        return args, kwargs

    assert with_room(given, 1, fun=2, args=3) == ((1,), {"fun": 2, "args": 3})
    assert with_room(with_room, given) == ((), {})


def test_exceptions_pass() -> None:
    def wrong() -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine") as caught:
        with_room(wrong)
    assert [f.name for f in traceback.extract_tb(caught.tb)][-2:] == ["with_room", "wrong"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts faults of Linux")
def test_calls_at_any_depth_map_no_memory() -> None:
    """Somewhere among so many frames is the edge of a chunk, but for a large one."""
    assert with_room.__code__.co_stacksize * 8 == ROOM
    depths = range(200)
    with_room(faults, depths)  # now its memory is there, and the code is known to be hot
    assert min(with_room(faults, depths) for _ in range(3)) < 200
    assert faults(depths) > 900  # a thousand calls across an edge

"""Room on Python's own stack for work that is many calls deep.

Frames lie in chunks of 16 KiB, some 80 of them. A call for which the last chunk has no room maps a
new one, and its return gives it back: where a loop calls across such an edge, each call costs some
15 us. A compiler is always deep enough to come upon one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

ROOM: Final = 1 << 17  # bytes; the chunk is the next power of two, half of which is left


def with_room(fun: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """What a function gives, called where there is room for hundreds of frames: this one asks for
    so much of the stack that it gets a large chunk. It is memory that nobody touches."""
    return fun(*args, **kwargs)


with_room.__code__ = with_room.__code__.replace(co_stacksize=ROOM // 8)

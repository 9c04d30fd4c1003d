"""When garbage collection waits: while thousands of objects are made of which none is garbage
yet."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
from collections.abc import Iterator
from functools import partial
from operator import is_
from typing import Any, Final

from calque.machine.frozen import is_frozen
from calque.machine.state import ProcessValue, process

YOUNG = 40_000  # objects of a process that has imported little besides NumPy
FEW = 30_000  # new objects are searched as ever, which is as quick as to count what is frozen
MOST = 150_000  # that count as old without a search, between two full collections

_holder: Final[ProcessValue[int | None]] = process.value(
    "the thread that holds off collection", None
)


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """No cyclic collection inside the block, if it was on."""
    if not gc.isenabled():
        yield
        return
    _holder.value = threading.get_ident()
    gc.disable()
    try:
        yield
    finally:
        resume()
        _holder.value = None


def resume() -> None:
    """Collection goes on. What was made while it waited are programs, which live on: it counts as
    old at once, as if it had been searched, and full collections look at it like at all that is
    old. Where somebody has frozen objects, the collector decides by itself."""
    made = gc.get_count()[0]
    if made >= FEW and _full.settled + made <= MOST:
        if _full.is_frozen_alone():  # what `importing` froze, and what was added to that here
            _full.freeze()
            _full.settled += made
        elif not is_frozen():
            gc.freeze()
            gc.unfreeze()
            _full.settled += made
    gc.enable()


def _after_fork_in_child() -> None:
    """A thread that held off collection does not exist here."""
    if _holder.value not in (None, threading.get_ident()):
        _holder.value = None
        gc.enable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


@contextlib.contextmanager
def importing() -> Iterator[None]:
    """For imports: what they make stays, so no collection looks at it before the first full one,
    nor when the process ends.

    A short program else spends a quarter of its time on searching modules for garbage. `gc.freeze`
    takes in all objects there are; so only a young process does this, and the first full collection
    thaws them: what is garbage by then is found as ever.
    """
    young = gc.isenabled() and not is_frozen() and len(gc.get_objects()) < YOUNG
    with no_collection():
        yield
        if young:
            _full.freeze()
    gc.callbacks.append(_full)


class _Mark:
    """An object that the collector knows."""

    def __init__(self) -> None:
        self.itself = self

    def is_in(self, generations: tuple[int, ...]) -> bool:
        """Whether it is searched with these, and so is not frozen. To count what is frozen takes
        8 ms after an import."""
        is_this = partial(is_, self)
        return any(any(map(is_this, gc.get_objects(generation=g))) for g in generations)


class _FullCollection:
    """A callback of the collector: a full collection takes `importing` back, once, not when
    somebody else has frozen objects since; and it looks at all that `resume` has called old."""

    def __init__(self) -> None:
        # made before objects were frozen that are to be thawed, and after it
        self.marks: tuple[_Mark, _Mark] | None = None
        self.settled = 0  # objects that count as old since the last full collection

    def freeze(self) -> None:
        """Freeze all objects; the next full collection thaws them."""
        before = _Mark()
        gc.freeze()
        self.marks = before, _Mark()

    def is_frozen_alone(self) -> bool:
        """Whether what was frozen here is still so, and nobody has frozen objects since."""
        return (
            self.marks is not None
            and self.marks[1].is_in((2, 1, 0))
            and not self.marks[0].is_in((2, 1))  # where `gc.unfreeze` puts it
        )

    def __call__(self, phase: str, info: dict[str, Any]) -> None:
        if phase == "start" and info["generation"] == 2 and not sys.is_finalizing():
            if self.is_frozen_alone():
                gc.unfreeze()
            self.marks, self.settled = None, 0


_full: Final = _FullCollection()

"""When garbage collection waits: while thousands of objects are made of which none is garbage
yet."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any, Final

from calque.machine.frozen import OF_PYTHON, is_frozen
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
        frozen = gc.get_freeze_count()
        if frozen < OF_PYTHON:
            gc.freeze()
            gc.unfreeze()
            _full.settled += made
        elif frozen <= _full.frozen:  # what `importing` froze, and what was added to that here
            gc.freeze()
            _full.frozen = gc.get_freeze_count()
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
            gc.freeze()
            _full.frozen = gc.get_freeze_count()
    gc.callbacks.append(_full)


class _FullCollection:
    """A callback of the collector: a full collection takes `importing` back, once, not when
    somebody else has frozen objects since; and it looks at all that `resume` has called old."""

    def __init__(self) -> None:
        self.frozen = 0  # objects that are to be thawed
        self.settled = 0  # objects that count as old since the last full collection

    def __call__(self, phase: str, info: dict[str, Any]) -> None:
        if phase == "start" and info["generation"] == 2 and not sys.is_finalizing():
            if self.frozen and gc.get_freeze_count() <= self.frozen:
                gc.unfreeze()
            self.frozen = self.settled = 0


_full: Final = _FullCollection()

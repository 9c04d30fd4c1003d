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

from calque.machine.frozen import is_frozen
from calque.machine.state import ProcessValue, process

YOUNG = 40_000  # objects of a process that has imported little besides NumPy

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
        gc.enable()
        _holder.value = None


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
            gc.callbacks.append(_Thaw(gc.get_freeze_count()))


class _Thaw:
    """A callback of the collector that takes `importing` back, once; not when somebody else has
    frozen objects since."""

    def __init__(self, frozen: int) -> None:
        self.frozen = frozen

    def __call__(self, phase: str, info: dict[str, Any]) -> None:
        if self.frozen and phase == "start" and info["generation"] == 2 and not sys.is_finalizing():
            if gc.get_freeze_count() <= self.frozen:
                gc.unfreeze()
            self.frozen = 0

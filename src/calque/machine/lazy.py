"""Modules that are imported when first used: SciPy and LLVM take longer to import than all of
calque.

A child forked while another thread is in the middle of an import can never end it, and waits for
ever when it needs the same module. So a fork waits until the lazy imports of other threads are
done.
"""

from __future__ import annotations

import importlib
import os
import threading
from types import ModuleType
from typing import Any, Final

from calque.machine.state import process

_LONGEST_WAIT = (
    10.0  # seconds: an import that waits for the forking thread must not stop it for good
)

# The lock is taken itself: what a signal's handler raises may come as the condition has just taken
# it.
_lock = threading.RLock()
_changed = threading.Condition(_lock)
# thread -> how many imports it is in
_importing: Final[dict[int, int]] = process.container("imports under way", {})


def imported(name: str) -> ModuleType:
    """A module, imported now if it was not yet."""
    me = threading.get_ident()
    with _lock:
        _importing[me] = _importing.get(me, 0) + 1
    try:
        return importlib.import_module(name)
    finally:
        with _lock:
            _importing[me] -= 1
            if not _importing[me]:
                del _importing[me]
                _changed.notify_all()


class LazyModule:
    """Stands for a module; imports it when an attribute is asked for."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(imported(self._name), attribute)
        self.__dict__[attribute] = value
        return value

    def __repr__(self) -> str:
        return f"<module {self._name!r}, imported when used>"


def _before_fork() -> None:
    _lock.acquire()
    me = threading.get_ident()
    _changed.wait_for(lambda: all(thread == me for thread in _importing), _LONGEST_WAIT)


def _after_fork_in_child() -> None:
    me = threading.get_ident()
    for thread in [t for t in _importing if t != me]:
        del _importing[thread]
    _lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_lock.release, after_in_child=_after_fork_in_child
    )

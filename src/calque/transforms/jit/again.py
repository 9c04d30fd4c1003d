"""Programs that were compiled in a hurry, for one call, are compiled once more, with care, when
they are called again: by another thread, while the first code serves. Until there is the better
one, calls go through Python, which then teaches that one alone to machine code."""

from __future__ import annotations

import _thread
import logging
import os
from contextlib import suppress
from typing import Final

from calque.core import backends
from calque.machine.once import Turns
from calque.machine.room import with_room
from calque.machine.state import process

_LOG: Final = logging.getLogger("calque")
_turns: Final[Turns] = process.container("turns of who improves a program", Turns())


class ImprovedCounts:
    """How many programs were compiled once more."""

    improved = 0


stats: Final[ImprovedCounts] = process.container("programs improved", ImprovedCounts())
_waiting: Final[list[Again]] = process.container("programs to improve", [])
if hasattr(os, "register_at_fork"):  # a forked child has none of the threads that would
    os.register_at_fork(after_in_child=_waiting.clear)


class Again:
    """A hasty program, and the better one as soon as there is one."""

    def __init__(self, first: backends.Hasty) -> None:
        self._first = first
        self._begun_by = 0  # the process whose thread makes it: a forked one has no such thread
        self._better: backends.Executable | None = None

    def better(self) -> backends.Executable | None:
        """The better one; where there is none yet, a thread makes it from now on."""
        if self._better is None and self._begun_by != os.getpid():
            self._begun_by = os.getpid()
            _waiting.append(self)
            try:
                _thread.start_new_thread(with_room, (_improve_waiting,))
            except RuntimeError:  # no more threads, or the process ends
                with suppress(ValueError):  # another thread may be at it
                    _waiting.remove(self)
                self._better = self._first
        return self._better

    def made(self) -> backends.Executable:
        """The better one, made by this thread if by nobody else."""
        with _turns.taken():
            if self._better is None:
                self._better = self._improved()
            return self._better

    def _improved(self) -> backends.Executable:
        """The better one; should it fail, the first stays, which is right, too."""
        try:
            made = self._first.improved()
        except Exception:
            _LOG.debug("a program could not be compiled once more", exc_info=True)
            return self._first
        stats.improved += 1
        return made


def _improve_waiting() -> None:
    """One after the other of the programs that wait: first that which was called last, since it is
    in use."""
    while True:
        with _turns.taken():
            if not _waiting:
                return
            _waiting.pop().made()

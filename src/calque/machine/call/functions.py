"""The call path, the one that this interpreter has: machine code (`entries`, which says
what entries are), or plain Python.

`LEARNS` says whether callables can be taught entries; without that every call asks Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calque.machine.call.layout import CHECKED, THREADS, is_fraction
from calque.machine.objects.pyapi import IS_KNOWN as LEARNS

if TYPE_CHECKING or LEARNS:
    from calque.machine.call.entries import (
        Entry,
        EntryImpl,
        Jitted,
        OpFunction,
        PythonProgram,
        add_entry,
        calls_served,
        clear_entries,
        drop_entries,
        entry_count,
        epoch,
        run_program,
        set_epoch,
    )
else:
    from calque.machine.call.plain import (
        Entry,
        EntryImpl,
        Jitted,
        OpFunction,
        PythonProgram,
        add_entry,
        calls_served,
        clear_entries,
        drop_entries,
        entry_count,
        epoch,
        run_program,
        set_epoch,
    )

__all__ = [
    "CHECKED",
    "LEARNS",
    "THREADS",
    "Entry",
    "EntryImpl",
    "Jitted",
    "OpFunction",
    "PythonProgram",
    "add_entry",
    "calls_served",
    "clear_entries",
    "drop_entries",
    "entry_count",
    "epoch",
    "is_fraction",
    "run_program",
    "set_epoch",
]

"""Objects that the collector of garbage was told to pass over (`gc.freeze`), and how to see
them."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator
from typing import Any

OF_PYTHON = 1_000  # Python 3.12 freezes some hundred objects of its own when it starts


def is_frozen() -> bool:
    """Whether somebody besides Python itself has frozen objects."""
    return gc.get_freeze_count() >= OF_PYTHON


@contextlib.contextmanager
def thawed() -> Iterator[None]:
    """Frozen objects are known to the collector inside the block: `gc.get_objects` and
    `gc.get_referrers` pass over them else."""
    frozen = is_frozen()
    gc.unfreeze()
    try:
        yield
    finally:
        if frozen:
            gc.freeze()


def all_objects() -> list[Any]:
    """What the collector knows, frozen or not."""
    with thawed():
        return gc.get_objects()

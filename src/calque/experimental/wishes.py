"""What programs ask of XLA's compilers and of devices that are not here: the log notes it once."""

from __future__ import annotations

import logging
from typing import Final

from calque.machine.caches import Table

_log = logging.getLogger("calque")
_noted: Final[Table[str, bool]] = Table("wishes that the log has noted", 256)


def note(wish: str) -> None:
    """Note in the log, the first time, that something has no effect here."""
    if _noted.find(wish) is None:
        _noted[wish] = True
        _log.info("%s: it has no effect here", wish)

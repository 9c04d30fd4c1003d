"""Where the time and the memory go."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:
    from calque.profiling.report import Profile, Row, profile

__all__ = ["Profile", "Row", "profile"]
__getattr__, __dir__ = _lazy.facade(__name__, __file__)

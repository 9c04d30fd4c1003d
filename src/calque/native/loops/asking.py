"""The call by which a loop asks whether somebody wants the program to stop."""

from __future__ import annotations

from typing import Final

from calque.machine.driver.interpreter import POLL

ASK: Final = POLL
DECLARATION: Final = f"declare i32 @{ASK}(ptr) cold"

"""The loggers of what users may want to filter by itself."""

from __future__ import annotations

import logging
import sys


def logger(part: str) -> logging.Logger:
    """The logger `calque.<part>`; where calque is served as `jax`, the one that programs written
    for it filter."""
    served = sys.modules.get("jax") is sys.modules["calque"]
    return logging.getLogger(f"jax._src.{part}" if served else f"calque.{part}")

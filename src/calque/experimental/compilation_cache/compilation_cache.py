"""Where compiled programs are kept on disk.

>>> from calque.experimental.compilation_cache import compilation_cache
>>> compilation_cache.is_initialized()
True"""

from __future__ import annotations

import os

from calque.core.config import config
from calque.machine.code import diskcache

__all__ = ["is_initialized", "reset_cache", "set_cache_dir"]


def set_cache_dir(path: str | os.PathLike[str]) -> None:
    """Keep compiled programs in this directory from here on, also in processes started later."""
    config.update("calque_compilation_cache_dir", os.fspath(path))


def reset_cache() -> None:
    """Look at the environment again for the directory; what is on disk stays."""
    diskcache.reload()


def is_initialized() -> bool:
    """Whether there is a directory that can be used."""
    return diskcache.directory() is not None

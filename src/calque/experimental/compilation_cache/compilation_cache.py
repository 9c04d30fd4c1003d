"""Where compiled programs are kept on disk.

>>> from calque.experimental.compilation_cache import compilation_cache
>>> compilation_cache.is_initialized()
True"""

from __future__ import annotations

import os

from calque.machine.code import diskcache

__all__ = ["is_initialized", "reset_cache", "set_cache_dir"]


def set_cache_dir(path: str | os.PathLike[str]) -> None:
    """Keep compiled programs in this directory from here on, also in processes started later."""
    os.environ["CALQUE_CACHE_DIR"] = os.fspath(path)
    diskcache.reload()


def reset_cache() -> None:
    """Look at the environment again for the directory; what is on disk stays."""
    diskcache.reload()


def is_initialized() -> bool:
    """Whether there is a directory that can be used."""
    return diskcache.directory() is not None

"""`jax._src.traceback_util`: which frames messages leave out."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

from calque.core.source import excluded_files as _exclude_paths
from calque.core.source import is_internal, register_exclusion
from calque.core.tracebacks import UnfilteredStackTrace, boundary, filtered

__all__ = [
    "UnfilteredStackTrace", "_exclude_paths", "api_boundary", "filter_traceback", "include_frame",
    "register_exclusion",
]  # fmt: skip


def api_boundary(fun: Callable[..., Any], *, repro_api_name: str | None = None) -> Any:
    """A function that users call: an exception that leaves it shows their frames alone.

    `repro_api_name` names it for a tool of JAX that does not exist here."""
    return boundary(fun)


def include_frame(frame: Any) -> bool:
    """Whether messages show this frame: it belongs neither to calque nor to an excluded file."""
    return not is_internal(frame.f_code)


def filter_traceback(tb: Any) -> Any:
    """The traceback without the frames that messages leave out."""
    return filtered(tb)


format_exception_only = traceback.format_exception_only

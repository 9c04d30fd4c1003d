"""Tracebacks without calque's own frames: what remains are the user's lines.

`calque_traceback_filtering` is "auto" (hide) or "off"."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from calque.core.config import config
from calque.core.source import is_internal

F = TypeVar("F", bound=Callable[..., Any])


class _Depth(threading.local):
    inside = False


_depth = _Depth()


def boundary(fun: F) -> F:
    """A function that users call: an exception that leaves the outermost one shows only frames of
    theirs."""

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        if _depth.inside:
            return fun(*args, **kwargs)
        _depth.inside = True
        try:
            return fun(*args, **kwargs)
        except Exception as e:
            hide(e)
            raise
        finally:
            _depth.inside = False

    return call  # type: ignore[return-value]


def hide(e: BaseException) -> None:
    """Drop calque's frames from the traceback of an exception and of those that led to it."""
    seen: set[int] = set()
    while config.traceback_filtering != "off" and e is not None and id(e) not in seen:
        seen.add(id(e))
        e.__traceback__ = filtered(e.__traceback__)
        e = e.__cause__ or e.__context__  # type: ignore[assignment]


def filtered(tb: TracebackType | None) -> TracebackType | None:
    frames = []
    while tb is not None:
        if not is_internal(tb.tb_frame.f_code):
            frames.append(tb)
        tb = tb.tb_next
    new: TracebackType | None = None
    for t in reversed(frames):
        new = TracebackType(new, t.tb_frame, t.tb_lasti, t.tb_lineno)
    return new


def install() -> None:
    """Hide frames also in what Python prints of an exception that nobody caught."""
    before = sys.excepthook

    def hook(kind: type[BaseException], e: BaseException, tb: TracebackType | None) -> None:
        if config.traceback_filtering != "off" and filtered(tb) is not None:
            hide(e)
            tb = filtered(tb)
        before(kind, e, tb)

    sys.excepthook = hook

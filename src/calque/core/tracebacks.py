"""Tracebacks without calque's own frames: what remains are the user's lines.

`calque_traceback_filtering` says how:

- "quiet_remove_frames": the frames are taken out of the exception, and a note says so
- "remove_frames": the same, and the whole traceback stands in an exception that is its cause
- "tracebackhide": the frames stay, marked for tools that know `__tracebackhide__`
- "auto": "tracebackhide" in IPython, elsewhere "quiet_remove_frames"
- "off": nothing is changed"""

from __future__ import annotations

import functools
import sys
import traceback
from collections.abc import Callable, Iterator
from types import CodeType, FrameType, TracebackType
from typing import Any, Final, TypeVar

from calque.core.advice import advise
from calque.core.config import config
from calque.core.source import is_internal
from calque.machine.exits import handler_of

F = TypeVar("F", bound=Callable[..., Any])

NOTE: Final = (
    "For simplicity, calque's own frames are left out of this traceback. To see all of it, set"
    " CALQUE_TRACEBACK_FILTERING=off."
)


class UnfilteredStackTrace(Exception):
    """Holds the whole traceback of an exception whose own has been filtered."""


def boundary(fun: F) -> F:
    """A function that users call: an exception that leaves the outermost one shows only frames of
    theirs."""

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        try:
            return fun(*args, **kwargs)
        except Exception as e:
            if not _is_outermost(sys._getframe().f_back):
                raise
            if isinstance(e, MemoryError) and hasattr(e, "_total_size"):
                own = MemoryError(_told(e))
                hide(own)
                raise own from None
            hide(e)
            raise

    return call  # type: ignore[return-value]


def _told(e: Any) -> str:
    """What NumPy had no memory for."""
    return (
        f"no memory for an array of shape {e.shape} and dtype {e.dtype}: {e._total_size} bytes that"
        " the function needs: make its sizes smaller"
    )


def leaving() -> None:
    """Called as an exception leaves a guarded function, see `guards`."""
    error = sys.exc_info()[1]
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        if _is_outermost(sys._getframe(1).f_back):
            hide(error)


def is_boundary(code: CodeType) -> bool:
    """Whether this is the code of a boundary or of a guarded function."""
    return code is _BOUNDARY or handler_of(code) is leaving


def _is_outermost(frame: FrameType | None) -> bool:
    """Whether neither this frame nor one that led to it is a boundary's. A call that succeeds pays
    nothing for being the outermost one."""
    while frame is not None and not is_boundary(frame.f_code):
        frame = frame.f_back
    return frame is None


_BOUNDARY: Final = boundary(leaving).__code__  # of all boundaries


def mode() -> str:
    """How tracebacks are filtered: the configuration, with "auto" decided."""
    chosen: str = config.traceback_filtering
    if chosen != "auto":
        return chosen
    return "tracebackhide" if _in_ipython() else "quiet_remove_frames"


def _in_ipython() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return shell is not None and shell() is not None


def hide(e: BaseException) -> None:
    """Hide calque's frames in the traceback of an exception and of those that led to it, and add
    what helps."""
    advise(e)
    chosen = mode()
    if chosen == "off":
        return
    if chosen == "tracebackhide":
        for x in _chain(e):
            _mark(x.__traceback__)
        return
    if chosen == "remove_frames":
        _keep_whole(e)
    elif NOTE not in getattr(e, "__notes__", ()):
        e.add_note(NOTE)
    for x in _chain(e):
        if not isinstance(x, UnfilteredStackTrace):
            x.__traceback__ = filtered(x.__traceback__)


def _chain(e: BaseException | None) -> Iterator[BaseException]:
    """An exception, and those that led to it."""
    seen: set[int] = set()
    while e is not None and id(e) not in seen:
        seen.add(id(e))
        yield e
        e = e.__cause__ or e.__context__


def _mark(tb: TracebackType | None) -> None:
    while tb is not None:
        if is_internal(tb.tb_frame.f_code):
            tb.tb_frame.f_locals["__tracebackhide__"] = True
        tb = tb.tb_next


def _keep_whole(e: BaseException) -> None:
    """Put the whole traceback into an exception between `e` and what led to it."""
    if isinstance(e.__cause__, UnfilteredStackTrace):
        return
    text = "".join(traceback.format_exception(type(e), e, e.__traceback__, chain=False))
    whole = UnfilteredStackTrace(
        f"{text}\nThe traceback above is whole. The one that follows has no frames of calque."
    )
    whole.__cause__, whole.__context__ = e.__cause__, e.__context__
    whole.__suppress_context__ = e.__suppress_context__
    whole.__traceback__ = e.__traceback__
    e.__cause__ = whole


def filtered(tb: TracebackType | None) -> TracebackType | None:
    """The traceback without calque's frames."""
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
        if mode() in ("quiet_remove_frames", "remove_frames") and filtered(tb) is not None:
            for x in _chain(e):
                if not isinstance(x, UnfilteredStackTrace):
                    x.__traceback__ = filtered(x.__traceback__)
            tb = filtered(tb)
        before(kind, e, tb)

    sys.excepthook = hook

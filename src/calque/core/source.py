"""Where in the user's code an equation was made: found cheaply, formatted only when asked for."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager, nullcontext
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple, TypeVar

from calque.machine.caches import Table, memo
from calque.machine.state import Inside, PerThread, process

T = TypeVar("T")

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# By file: the hash of a string is kept in it, that of code is worked out again each time.
_ours: Final[Table[str, bool]] = Table("whose files they are", 16_384)
_LIBRARY = ("functools.py", "contextlib.py")


class Files(list[str]):
    """Names of files. Libraries change the list themselves: what was found with it is forgotten."""

    def append(self, path: str) -> None:
        super().append(path)
        _ours.clear()

    def extend(self, paths: Iterable[str]) -> None:
        super().extend(paths)
        _ours.clear()

    def remove(self, path: str) -> None:
        super().remove(path)
        _ours.clear()


# Files of libraries whose frames are left out as calque's are: what messages show is the line of
# their user.
excluded_files: Final = process.container("files left out of tracebacks", Files())


def register_exclusion(path: str) -> None:
    """Leave the frames of this file out of messages, and look for the user's line beyond them."""
    if path not in excluded_files:
        excluded_files.append(path)


_made: Final = tuple.__new__  # `Source(...)` without the call of Python in it
OWN: Final = 2  # frames around who asks for the place of an equation: its recorder and its caller


class Source(NamedTuple):
    """A place in the user's code."""

    code: CodeType
    lasti: int
    # the scopes around it, outermost first, and the transformations, written as "vmap("
    scopes: tuple[str, ...] = ()

    @property
    def name_stack(self) -> str:
        """The scopes as text: "outer/inner"; a transformation stands around the scope in it:
        "transpose(jvp(outer))/inner"."""
        return written(self.scopes)

    @property
    def traceback(self) -> Source:
        """The place under the name by which libraries ask for it."""
        return self

    @property
    def file(self) -> str:
        return self.code.co_filename

    @property
    def function(self) -> str:
        return self.code.co_name

    @property
    def line(self) -> int:
        best = self.code.co_firstlineno
        for start, end, line in self.code.co_lines():
            if start <= self.lasti < end and line is not None:
                best = line
        return best

    @property
    def column(self) -> int | None:
        """Where in its line the expression begins, from 0; None where Python was told to forget."""
        places = itertools.islice(self.code.co_positions(), self.lasti // 2, None)
        return next(places, (None,) * 4)[2]

    @property
    def exact(self) -> str:
        """The place with its column, and the function with those around it."""
        column = "" if self.column is None else f":{self.column}"
        return f"{self.file}:{self.line}{column} ({self.code.co_qualname})"

    def __str__(self) -> str:
        return f"{self.file}:{self.line} ({self.function})"


def is_internal(code: CodeType) -> bool:
    """Whether this code belongs to calque, or to the standard library's plumbing around it."""
    name = code.co_filename
    known = _ours.find(name)
    if known is None:
        known = (
            name.startswith((_PACKAGE, "<frozen"))
            or name.endswith(_LIBRARY)
            or name in excluded_files
        )
        _ours[name] = known
    return known


def user_frame(inner: int = 0) -> FrameType | None:
    """The innermost frame outside calque. So many around the caller are known to be calque's: what
    nobody looks at need not become an object."""
    try:
        frame: FrameType | None = sys._getframe(1 + inner)
    except ValueError:  # nobody stands around them: a thread that began here
        return None
    while frame is not None:
        code = frame.f_code
        known = _ours.get(code.co_filename)
        if not (is_internal(code) if known is None else known):
            return frame
        frame = frame.f_back
    return None


class _NamedPlace(PerThread, name="place to name"):
    """A place to name instead of the one that is running: rewritten equations keep the line of the
    first."""

    source: Source | None = None
    scopes: tuple[str, ...] = ()
    callers: str = ""  # functions of this room, which the user called, count as scopes


_place = _NamedPlace()


def asked_by_user(files: Collection[str]) -> bool:
    """Whether the innermost frame that is not of these files is one of the user."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename in files:
        frame = frame.f_back
    return frame is not None and not is_internal(frame.f_code)


def at(source: Source | None) -> Inside[_NamedPlace]:
    """Operations inside are said to be made at `source`; the result's attribute `source` can be set
    again and again."""
    return _place.inside(source=source)


def here(inner: int = 0) -> Source | None:
    """The place in the user's code that is running now; `inner` as for `user_frame`."""
    own = _place.__dict__  # what this thread has named: one lookup for every equation, not three
    if own:
        named: Source | None = own.get("source")
        if named is not None:
            return named
    frame = user_frame(1 + inner)
    if frame is None:
        return None
    scopes: tuple[str, ...] = ()
    if own:
        scopes = _called(own["callers"]) if own.get("callers") else own.get("scopes", ())
    return _made(Source, (frame.f_code, frame.f_lasti, scopes))


def at_one_place(f: Callable[..., T], /, *args: Any, **params: Any) -> T:
    """What `f` gives; all that it records is said to be made where the user's code is now. It is
    looked for once."""
    own = _place.__dict__
    if own.get("source") is not None:
        return f(*args, **params)
    own["source"] = here()
    try:
        return f(*args, **params)
    finally:
        del own["source"]


def _called(room: str) -> tuple[str, ...]:
    """The scopes here, and within them the function of this room that the user has called."""
    found, folder = _place.scopes, f"{_PACKAGE}{room}{os.sep}"
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_internal(frame.f_code):
        if frame.f_code.co_filename.startswith(folder):
            found = (*_place.scopes, f"{room}.{frame.f_code.co_name}")
        frame = frame.f_back
    return found


def callers(room: str) -> Inside[_NamedPlace]:
    """Operations inside name the function of a room of calque that they were made for, such as
    "random.uniform", as their innermost scope."""
    return _place.inside(callers=room)


def scopes() -> tuple[str, ...]:
    """The scopes and transformations here."""
    return _place.scopes


def scope(name: str) -> Inside[_NamedPlace]:
    """Operations inside are said to belong to `name`, within the scopes around it."""
    return _place.inside(scopes=(*_place.scopes, name))


def only_scopes(names: Collection[str]) -> Inside[_NamedPlace]:
    """Operations inside belong to these scopes, and not to those around."""
    return _place.inside(scopes=tuple(names))


def transformed(name: str) -> Inside[_NamedPlace]:
    """Operations inside are said to come out of a transformation of this name, which stands around
    the scope that is entered next."""
    return _place.inside(scopes=(*_place.scopes, f"{name}("))


def untransformed() -> AbstractContextManager[Any]:
    """Operations inside belong to a program of its own, which the transformations around it do not
    concern."""
    if not any(map(_is_transformation, _place.scopes)):
        return _AS_IT_IS
    return _place.inside(scopes=tuple([s for s in _place.scopes if not _is_transformation(s)]))


def in_scopes(place: Source | None) -> Source | None:
    """A place as a transformation of its equation has it: within the scopes here."""
    here = _place.scopes
    if place is None or not here:
        return place
    code, lasti, inner = place
    return _made(Source, (code, lasti, here + inner))


def since(before: tuple[str, ...], place: Source | None) -> Source | None:
    """A place without the scopes that were around all of it."""
    if place is None:
        return place
    code, lasti, scopes = place
    n = len(before)
    return _made(Source, (code, lasti, scopes[n:])) if scopes[:n] == before else place


def _is_transformation(name: str) -> bool:
    return name.endswith("(")


@memo("names of scopes", 4096)
def written(scopes: tuple[str, ...]) -> str:
    parts: list[str] = []
    for name in reversed(scopes):
        if _is_transformation(name):
            parts.append(f"{name}{parts.pop() if parts else ''})")
        else:
            parts.append(name)
    return "/".join(reversed(parts))


_AS_IT_IS: Final = nullcontext()

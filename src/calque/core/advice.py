"""What is added to errors of calls that went wrong in a common way: the parameters that there are,
the axes that an array has, what a transformation hands to a function. It is a note of the
exception, found when that leaves calque: calls that succeed pay nothing, and messages stay as they
are."""

from __future__ import annotations

import ast
import contextlib
import difflib
import inspect
import itertools
import linecache
import re
from collections.abc import Callable, Iterator
from types import FrameType, MethodType, TracebackType
from typing import Any, Final

from calque.core.source import is_internal

_KEYWORD: Final = re.compile(r"^(\S+)\(\) got an unexpected keyword argument '(\w+)'")
_BINDING: Final = re.compile(
    r"^(\S+)\(\) (?:missing \d+ required|takes .*positional arguments? but|"
    r"got (?:some positional-only|multiple values))"
)
_AXIS: Final = re.compile(r"^\w[\w ]* -?\d+ is out of bounds for array of dimension (\d+)$")
_CALLBACK: Final = re.compile(r"^INTERNAL: CpuCallback .*: TypeError: \S+\(\) (?:takes|missing) ")
_NO_INTEGER: Final = re.compile(r"^'(\w+)' object cannot be interpreted as an integer$")
_LONGEST: Final = 160  # letters of a list of parameters
_OF_CALLBACKS: Final = (
    "The type of the result stands before the arguments of a callback:"
    " pure_callback(f, jax.ShapeDtypeStruct(shape, dtype), x)"
)
# What the functions of control flow are called with. Others pass on what they are given.
_HANDED: Final = {
    "scan": "scan calls its function with two arguments, the carry and a slice of xs: f(carry, x)",
    "fori_loop": "fori_loop calls its function with two arguments, the index and the value:"
    " body_fun(i, val)",
    "while_loop": "while_loop calls both its functions with one argument, the value: f(val)",
    "cond": "cond calls each branch with the operands that are given behind the branches",
    "switch": "switch calls each branch with the operands that are given behind the branches",
    "map": "map calls its function with one argument, a slice of xs: f(x)",
    "associative_scan": "associative_scan calls its function with two arguments: fn(a, b)",
}


def advise(error: BaseException) -> None:
    """Add a note to the exception, if there is one to give. It is the exception that matters: what
    goes wrong here is not told."""
    if isinstance(error, (TypeError, ValueError)) and not getattr(error, "__notes__", None):
        with contextlib.suppress(Exception):
            note = _note(error)
            if note is not None:
                error.add_note(note)


def _note(error: TypeError | ValueError) -> str | None:
    text = str(error)
    if isinstance(error, ValueError):
        found = _AXIS.match(text)
        return None if found is None else _axes(error.__traceback__, int(found.group(1)))
    if _CALLBACK.match(text):
        return _OF_CALLBACKS
    no_integer = _NO_INTEGER.match(text)
    if no_integer is not None:
        return _integers(error.__traceback__, no_integer.group(1))
    keyword = _KEYWORD.match(text)
    binding = keyword or _BINDING.match(text)
    if binding is None:
        return None
    frames = list(_frames(error.__traceback__))
    function = _named(frames[-1].tb_frame, binding.group(1))
    if function is None or not is_internal(frames[-1].tb_frame.f_code):
        return None
    if _is_of_user(function):
        return _handed(function, frames)
    return _parameters(function, keyword.group(2) if keyword else "")


def _frames(tb: TracebackType | None) -> Iterator[TracebackType]:
    while tb is not None:
        yield tb
        tb = tb.tb_next


# ---------------------------------------------------------------- parameters


def _named(frame: FrameType, name: str) -> Callable[..., Any] | None:
    """The function that a frame has called by this name: a local of its, or of an object of
    calque's."""
    for value in frame.f_locals.values():
        held = [value]
        if type(value).__module__.startswith("calque."):
            held += [getattr(value, attribute, None) for attribute in ("f", "fun")]
        for f in held:
            if inspect.isroutine(f) and name in (f.__qualname__, f.__name__):
                return f
    return None


def _is_of_user(function: Callable[..., Any]) -> bool:
    inner = function.__func__ if isinstance(function, MethodType) else function
    code = getattr(inner, "__code__", None)
    return code is not None and not is_internal(code)


def _parameters(function: Callable[..., Any], keyword: str) -> str:
    """What a function of calque takes."""
    parameters = inspect.signature(function).parameters
    near = difflib.get_close_matches(keyword, parameters, 1)
    meant = f"Did you mean {near[0]}? " if near else ""
    return f"{meant}{function.__name__} takes {_listed(function)}"


def _listed(function: Callable[..., Any]) -> str:
    """The parameters of a function, without their types."""
    signature = inspect.signature(function)
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    text = str(signature.replace(parameters=bare, return_annotation=signature.empty))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ...)"


def _integers(tb: TracebackType | None, kind: str) -> str | None:
    """Which argument of a function of calque is not the integer that it has to be: of the first one
    that the user's innermost line leads to, and that has one of this type."""
    frames = [tb.tb_frame for tb in _frames(tb)]
    ours = [k for k, frame in enumerate(frames) if not is_internal(frame.f_code)]
    for frame in frames[ours[-1] + 1 if ours else 0 :]:
        code = frame.f_code
        for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
            value = frame.f_locals.get(name)
            several = value if isinstance(value, (tuple, list)) else [value]
            # "args" are what calque's own machinery hands on
            if name != "args" and any(type(v).__name__ == kind for v in several):
                called = _called([*_frames(tb)]) or code.co_name
                return f"{called} takes integers as its `{name}`, and was given {value!r}"
    return None


# ---------------------------------------------------------------- functions of the user


def _handed(function: Callable[..., Any], frames: list[TracebackType]) -> str:
    """What a function of the user was called with, and what it takes."""
    code: Any = inspect.unwrap(function).__code__
    where = f"The function at {code.co_filename}:{code.co_firstlineno} takes {_listed(function)}"
    called = _called(frames).rpartition(".")[2]
    return f"{_HANDED[called]}. {where}" if called in _HANDED else where


# ---------------------------------------------------------------- axes


def _axes(tb: TracebackType | None, ndim: int) -> str:
    called = _called(list(_frames(tb)))
    of = f"The array of {called}" if called else "The array"
    if ndim == 0:
        return f"{of} is a number: it has no axes"
    if ndim == 1:
        return f"{of} has one dimension: its axis is 0"
    return f"{of} has {ndim} dimensions: its axes are 0 to {ndim - 1}, or -{ndim} to -1"


def _called(frames: list[TracebackType]) -> str:
    """What the user's innermost line calls, as it is written there; "" where that cannot be seen.
    An exception that has just left calque knows no frames beyond."""
    ours = [(tb.tb_frame, tb.tb_lasti) for tb in frames if not is_internal(tb.tb_frame.f_code)]
    if not ours:
        frame: FrameType | None = frames[0].tb_frame
        while frame is not None and is_internal(frame.f_code):
            frame = frame.f_back
        if frame is None:
            return ""
        ours = [(frame, frame.f_lasti)]
    code, at = ours[-1][0].f_code, ours[-1][1]
    line, end_line, column, end = next(itertools.islice(code.co_positions(), at // 2, None))
    if line is None or line != end_line or column is None or end is None:
        return ""
    text = linecache.getline(code.co_filename, line).encode()[column:end].decode()
    try:
        expression = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:  # there is no text, or it is not what was run
        return ""
    return ast.unparse(expression.func) if isinstance(expression, ast.Call) else ""

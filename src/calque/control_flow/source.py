"""The syntax tree of a function, found in the file it was written in."""

from __future__ import annotations

import ast
import linecache
import types
from typing import Final

from calque.core.errors import ControlFlowError
from calque.machine.caches import memo
from calque.machine.syntax import syntax_tree

Node = ast.FunctionDef | ast.Lambda
_GENERATORS: Final = 0x20 | 0x80 | 0x200  # CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR


def refusal(code: types.CodeType) -> str | None:
    """Why a function of this code cannot be converted at all."""
    if code.co_flags & _GENERATORS:
        return (
            "it is a generator or a coroutine: write the control flow in a plain function that it"
            " calls"
        )
    if not _has_source(code):
        return (
            f"its source ({code.co_filename}) is not available: put the function into a file, or"
            " write lax.cond, lax.while_loop and lax.scan yourself"
        )
    return None


def _has_source(code: types.CodeType) -> bool:
    """Whether there is a text of that name; one that is no file, such as "<string>", may be of
    another code by now."""
    lines = linecache.getlines(code.co_filename)
    if not lines or not code.co_filename.startswith("<"):
        return bool(lines)
    try:
        return any(_matches(n, code) and _fits(n, code) for n in _definitions("".join(lines)))
    except SyntaxError:
        return False


def tree_of(function: types.FunctionType) -> Node:
    """A fresh tree of the function's definition, with the places of the file."""
    code = function.__code__
    linecache.checkcache(code.co_filename)
    why = refusal(code)
    if why is not None:
        raise cannot(function, why)
    text = "".join(linecache.getlines(code.co_filename, function.__globals__))
    try:
        found = [n for n in _definitions(text) if _matches(n, code)]
    except SyntaxError as e:
        raise cannot(function, f"its source cannot be read ({e})") from None
    found = [n for n in found if _fits(n, code)]
    if not found:
        raise cannot(
            function,
            "its source is not at the place where it was compiled from: was the file edited since?",
        )
    copied = _copy(min(found, key=_extent))
    assert isinstance(copied, (ast.FunctionDef, ast.Lambda))
    return copied


def cannot(function: types.FunctionType, why: str) -> ControlFlowError:
    code = function.__code__
    return ControlFlowError(
        f"the control flow of {function.__qualname__} ({code.co_filename}:{code.co_firstlineno})"
        f" cannot be converted: {why}."
    )


@memo("functions that stand in files", 64)
def _definitions(text: str) -> tuple[Node, ...]:
    return tuple(
        n for n in ast.walk(syntax_tree(text)) if isinstance(n, (ast.FunctionDef, ast.Lambda))
    )


def _copy(x: object) -> object:
    """Trees are kept for the next function of the file, and a rewriting changes them."""
    if isinstance(x, list):
        return [_copy(v) for v in x]
    if not isinstance(x, ast.AST):
        return x
    new = type(x)(**{f: _copy(v) for f, v in ast.iter_fields(x)})
    return ast.copy_location(new, x)


def _matches(node: Node, code: types.CodeType) -> bool:
    if isinstance(node, ast.Lambda):
        return (
            code.co_name == "<lambda>"
            and node.lineno <= code.co_firstlineno <= _last(node)
            and _inside(node, code)
        )
    first = min([node.lineno, *[d.lineno for d in node.decorator_list]])
    return node.name == _unmangled(code.co_name, node.name) and first == code.co_firstlineno


def _fits(node: Node, code: types.CodeType) -> bool:
    """Whether the code seems to be compiled from this text. The file may have been edited since."""
    a = node.args
    written = [x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    lines = [line for _, _, line in code.co_lines() if line]
    names = len(written) == len(known) and all(
        _unmangled(k, w) == w for k, w in zip(known, written)
    )
    return names and max(lines) <= _last(node)


def _unmangled(name: str, written: str) -> str:
    """`_Class__name` as it stands in the source."""
    return written if name.endswith(written) and written.startswith("__") else name


def _inside(node: ast.Lambda, code: types.CodeType) -> bool:
    """Whether all instructions of the code stand within the lambda's body."""
    body = node.body
    first, last = (body.lineno, body.col_offset), (body.end_lineno or 0, body.end_col_offset or 0)
    places = [p for p in code.co_positions() if None not in p and p[3]]
    return bool(places) and all(first <= (p[0], p[2]) and (p[1], p[3]) <= last for p in places)  # type: ignore[operator]


def _last(node: ast.AST) -> int:
    return int(getattr(node, "end_lineno", None) or getattr(node, "lineno", None) or 0)


def _extent(node: Node) -> tuple[int, int]:
    return _last(node) - node.lineno, (node.end_col_offset or 0) - node.col_offset

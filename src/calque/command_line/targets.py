"""Functions and their arguments, as a command line names them."""

from __future__ import annotations

import ast
import difflib
import importlib
import os
import re
import runpy
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from calque import numpy as jnp
from calque.compat.switch import as_jax

_KINDS: Final = {
    "bool": "bool",
    **{f"i{n}": f"int{n}" for n in (8, 16, 32, 64)},
    **{f"u{n}": f"uint{n}" for n in (8, 16, 32, 64)},
    **{f"f{n}": f"float{n}" for n in (16, 32, 64)},
    "bf16": "bfloat16",
    "c64": "complex64",
    "c128": "complex128",
}
_SCALAR: Final = re.compile(rf"\b({'|'.join(_KINDS)})\[\s*\]")


class TargetError(Exception):
    """What the command line says cannot be found or understood."""


def called(target: str, arguments: Sequence[str]) -> tuple[Callable[..., Any], list[Any]]:
    """The function of this name, and its arguments."""
    as_jax()
    return function_of(target), [argument(a) for a in arguments]


def function_of(target: str) -> Callable[..., Any]:
    """The function that FILE.py:NAME or MODULE:NAME is."""
    place, _, name = target.rpartition(":")
    if not place or not name:
        raise TargetError(f"{target!r} names no function: FILE.py:NAME or MODULE:NAME does")
    if place.endswith(".py"):
        if not os.path.exists(place):
            raise TargetError(f"there is no file {place!r}")
        sys.path.insert(0, os.path.dirname(os.path.abspath(place)))
        found: Any = runpy.run_path(place, run_name="calque_target")
        names = name.split(".")
        if names[0] not in found:
            raise TargetError(f"{place} has no {names[0]!r}{_near(names[0], found)}")
        value, rest = found[names[0]], names[1:]
    else:
        sys.path.insert(0, os.getcwd())
        try:
            value = importlib.import_module(place)
        except ModuleNotFoundError as error:
            raise TargetError(f"{place!r} cannot be imported: {error}") from None
        rest = name.split(".")
    for part in rest:
        if not hasattr(value, part):
            raise TargetError(f"{target!r}: there is no {part!r}{_near(part, dir(value))}")
        value = getattr(value, part)
    if not callable(value):
        raise TargetError(f"{target!r} is no function but {type(value).__name__}")
    function: Callable[..., Any] = value
    return function


def _near(name: str, names: Iterable[Any]) -> str:
    found = difflib.get_close_matches(name, [n for n in names if isinstance(n, str)], 1)
    return f"; there is {found[0]!r}" if found else ""


def argument(text: str) -> Any:
    """A type, a value of Python, or containers of both."""
    try:
        return _value(ast.parse(_SCALAR.sub(r"\1", text).strip(), mode="eval").body)
    except (SyntaxError, TypeError, ValueError) as error:
        raise TargetError(
            f"{text!r} is neither a type such as 'f32[100,10]' nor a Python value: {error}"
        ) from None


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Name(id=kind) if kind in _KINDS:
            return jnp.ones((), _KINDS[kind])
        case ast.Subscript(value=ast.Name(id=kind), slice=sizes) if kind in _KINDS:
            shape = ast.literal_eval(sizes)
            return jnp.ones(shape if isinstance(shape, tuple) else (shape,), _KINDS[kind])
        case ast.Tuple(elts=parts):
            return tuple([_value(e) for e in parts])
        case ast.List(elts=parts):
            return [_value(e) for e in parts]
        case ast.Dict(keys=keys, values=values):
            return {_key(k): _value(v) for k, v in zip(keys, values)}
    return ast.literal_eval(node)


def _key(node: ast.expr | None) -> Any:
    if node is None:
        raise ValueError("`**` has no meaning here")
    return ast.literal_eval(node)

"""Arguments of user functions: which are static, what each flat leaf is called in messages."""

from __future__ import annotations

import functools
import inspect
import math
import sys
import types
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from calque.core import pytrees
from calque.core.key_paths import keystr
from calque.machine.state import Hook, process

if sys.version_info >= (3, 14):
    from annotationlib import Format

    _inspected = functools.partial(inspect.signature, annotation_format=Format.FORWARDREF)
else:
    _inspected = inspect.signature

# what a function reads besides its arguments, with the values of now (`transforms/jit/captures.py`)
captured_values: Final[Hook[Callable[..., Any]]] = process.hook("captured values", lambda _: None)


def signature(fun: Callable[..., Any]) -> inspect.Signature:
    """The signature of a function. From Python 3.14 on annotations are worked out when they are
    asked for: what they name and nobody has defined stays a name."""
    return _inspected(fun)


def signature_of(fun: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return signature(fun)
    except (ValueError, TypeError):
        return None


def take_annotations(made: Any, fun: Any) -> None:
    """Give `made` the annotations of `fun`, as far as it has any, without working them out."""
    later = getattr(fun, "__annotate__", None)  # from 3.14 on
    if callable(later):
        made.__annotate__ = later
    elif isinstance(found := getattr(fun, "__annotations__", None), dict):
        made.__annotations__ = found


def check_callable(fun: Any, what: str = "") -> None:
    """An error unless this is a function that can be traced; `what` begins the message."""
    if type(fun) is types.FunctionType and not fun.__code__.co_flags & inspect.CO_GENERATOR:
        return
    head = f"{what}: " if what else ""
    if isinstance(fun, staticmethod):
        raise TypeError(
            f"{head}staticmethod arguments are not supported, got {fun!r}: apply staticmethod to"
            " the result instead"
        )
    if not callable(fun):
        raise TypeError(
            f"{head}Expected a callable value, got {fun!r} of type {type(fun)}:"
            " pass the function itself, jit(f) rather than jit(f(x))"
        )
    if inspect.isgeneratorfunction(fun):
        raise TypeError(f"{head}Expected a function, got a generator function: {fun!r}")


def as_tuple(x: int | str | Iterable[Any] | None, kind: type, option: str) -> tuple[Any, ...]:
    """An option that may be one value or several."""
    if x is None:
        return ()
    if isinstance(x, kind):
        return (x,)
    try:
        values = tuple(x)  # type: ignore[arg-type]
    except TypeError:
        values = (None,)
    if kind is int:
        values = tuple(int(v) if hasattr(v, "__index__") else v for v in values)
    if not all(isinstance(v, kind) for v in values):
        raise TypeError(
            f"{option} must be {'an int' if kind is int else 'a str'} or a sequence of them; got"
            f" {x!r}"
        )
    return values


def resolve(
    fun: Callable[..., Any], argnums: Any, argnames: Any, option: str
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Positions and names of the chosen parameters, each inferred from the other where the
    signature allows it."""
    if argnums is None and argnames is None:
        return (), ()
    nums, names = (
        as_tuple(argnums, int, f"{option}_argnums"),
        as_tuple(argnames, str, f"{option}_argnames"),
    )
    sig = signature_of(fun)
    if sig is None:
        if names and argnums is None:
            raise ValueError(
                f"Getting the signature of function {fun!r} failed. Pass {option}_argnums instead"
                f" of {option}_argnames."
            )
        return nums, names
    params = list(sig.parameters.values())
    positional = [p.name for p in params if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    many = any(p.kind is p.VAR_POSITIONAL for p in params)
    open_names = any(p.kind is p.VAR_KEYWORD for p in params)
    for n in nums:
        if not many and not -len(positional) <= n < len(positional):
            raise ValueError(
                f"jitted function has invalid argnums {n} in {option}_argnums. Function only has"
                f" {len(positional)} positional parameters: {', '.join(positional)}."
            )
    by_position = {p.name for p in params if p.kind in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL)}
    for name in names:
        if name in by_position or (not open_names and name not in sig.parameters):
            raise ValueError(
                f"jitted function has invalid argnames {{{name!r}}} in {option}_argnames. Function"
                f" only has the parameters {list(sig.parameters)}, of which"
                f" {sorted(by_position) or 'none'} cannot be given by name."
            )
    if argnums is not None and argnames is not None:  # as given: they may be different arguments
        return tuple(sorted({n % len(positional) if n < 0 else n for n in nums})), names
    nums = tuple(
        sorted(
            {n % len(positional) if n < 0 and positional else n for n in nums}
            | {positional.index(n) for n in names if n in positional}
        )
    )
    kinds = {p.name for p in params if p.kind is p.POSITIONAL_OR_KEYWORD}
    names = tuple(
        sorted(
            set(names)
            | {positional[n] for n in nums if n < len(positional) and positional[n] in kinds}
        )
    )
    return nums, names


class ArgumentNames(Sequence[str]):
    """What the flat arguments are called, `x` or `params['w'][0]`; worked out when a message needs
    it."""

    def __init__(
        self,
        fun: Callable[..., Any],
        args: Sequence[Any],
        kwargs: dict[str, Any],
        skip: Iterable[int] = (),
    ):
        # only the structures are kept: the values may be large
        self._fun, self._skip, self._n = fun, set(skip), len(args)
        self._paths = [
            [p for p, _ in pytrees.flatten_with_path(a)[0]] if i not in self._skip else []
            for i, a in enumerate(args)
        ]
        self._named = [
            (k, [p for p, _ in pytrees.flatten_with_path(v)[0]]) for k, v in sorted(kwargs.items())
        ]

    def _all(self) -> list[str]:
        sig = signature_of(self._fun)
        names: list[str] = []
        if sig is not None:
            for p in sig.parameters.values():
                if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
                    names.append(p.name)
                elif p.kind is p.VAR_POSITIONAL:
                    names += [f"{p.name}[{i}]" for i in range(max(0, self._n - len(names)))]
        names += [f"args[{i}]" for i in range(len(names), self._n)]
        out = [names[i] + keystr(path) for i, paths in enumerate(self._paths) for path in paths]
        return out + [k + keystr(path) for k, paths in self._named for path in paths]

    def __len__(self) -> int:
        return sum(map(len, self._paths)) + sum(len(p) for _, p in self._named)

    def __getitem__(self, i: Any) -> Any:
        return self._all()[i]


def hashable_static(x: Any, where: int | str, name: str) -> Any:
    """A static value as a cache key: equal values of different types are different programs."""
    try:
        hash(x)
    except TypeError:
        raise ValueError(
            f"Non-hashable static arguments are not supported: argument {where!r} of {name} has"
            f" type {type(x)}, which cannot be hashed. Static arguments are part of the key of the"
            " compiled program: pass a tuple instead of a list, or let the argument be traced."
        ) from None
    return (kind_of_static(x), x)


def kind_of_static(x: Any) -> Any:
    """What tells static values apart that Python says are equal: 1, 1.0 and True, 0.0 and -0.0,
    and tuples and sets of them."""
    kind = type(x)
    if isinstance(x, tuple):
        return (kind, *[kind_of_static(v) for v in x])
    if kind is frozenset:
        return (kind, frozenset([(kind_of_static(v), v) for v in x]))
    return (kind, math.copysign(1.0, x)) if kind is float and x == 0 else kind


def describe_function(fun: Callable[..., Any], name: str) -> str:
    code = getattr(fun, "__code__", None)
    return f"{name} at {code.co_filename}:{code.co_firstlineno}" if code is not None else name


def reference(fun: Callable[..., Any]) -> Callable[[], Any]:
    """`fun` without keeping it alive, where that is possible."""
    try:
        return weakref.ref(fun)
    except TypeError:
        return lambda: fun

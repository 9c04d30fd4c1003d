"""What a function is, for the cache: its code and what it captured, not its address.

A lambda rebuilt in a loop has the same code object and equal captured values, so it finds the
programs of its predecessor. Functions that capture something whose content may change unseen (a
dict, a list, an instance) are known by address alone, and so are those that assign to variables
outside of themselves: what their trace does there, each of them does.
"""

from __future__ import annotations

import functools
import types
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from calque.core.arrays import ArrayImpl
from calque.machine.caches import Alive, Table, Tables, WeakTable, memo
from calque.transforms.engines.specialiser import new_families
from calque.transforms.jit import captures, retraces
from calque.transforms.jit.bytecode import assigned_outside

_PLAIN = (int, float, complex, str, bytes, bool, type(None), type(Ellipsis), np.dtype)
_OPAQUE = (type, types.ModuleType, types.BuiltinFunctionType, np.ufunc)
_LATELY = 512  # functions that are known for a while after they are gone
_CAPTURING = 16  # of those that keep arrays or objects of the user alive
_CAPTURED_BYTES = 64 << 20  # of their programs' constants together


class Unshareable(Exception):
    """The function holds something that cannot be compared."""


PROGRAMS: Final[Tables[Any, Any]] = Tables("traces of functions under jit", 1024, programs=True)


class FunctionCache:
    """The programs traced from one function. They live as long as the function, or a function that
    `jit` made of it, and those that were made last a while longer."""

    __slots__ = ("__weakref__", "captured_bytes", "families", "history", "kept", "key", "programs")

    def __init__(self) -> None:
        self.programs = PROGRAMS.new()
        self.families = new_families()  # programs with free sizes
        self.history: deque[retraces.Event] = deque(maxlen=retraces.OF_A_FUNCTION)
        self.kept: list[Any] = []  # objects whose addresses are part of the identity
        self.key: Any = None  # by which other functions find it
        self.captured_bytes = 0  # of the constants of its programs


class _Own:
    """The caches of one function, by options. It is an attribute of the function itself, so that a
    function which its programs lead back to is garbage with them."""

    def __init__(self, fun: Callable[..., Any] | None = None) -> None:
        self.owner = (lambda: None) if fun is None else weakref.ref(fun)
        self.caches: dict[Any, FunctionCache] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return (_Own, ())  # a copy of the function begins afresh


_ATTRIBUTE: Final = "__calque_programs__"
# of callables that are no plain functions
_by_callable: Final[WeakTable[Any, Any]] = WeakTable("callables under jit")
_by_identity: Final[Alive[Any, FunctionCache]] = Alive("functions under jit, by content")
_lately: Final[Table[Any, FunctionCache]] = Table("functions under jit, lately made", _LATELY)
_capturing: Final[Table[Any, FunctionCache]] = Table(
    "functions under jit that captured arrays, lately made", _CAPTURING
)


def cache_of(fun: Callable[..., Any], options: Any) -> FunctionCache:
    """The cache of this function, or of an earlier one that is the same in all that matters. The
    caller keeps it."""
    own = _caches_of(fun)
    cache = own.get(options)
    if cache is None:
        cache = own[options] = _shared(fun, options)
    return cache


def _caches_of(fun: Callable[..., Any]) -> Any:
    """The caches of this very function, by options."""
    if type(fun) is types.FunctionType:
        own = fun.__dict__.get(_ATTRIBUTE)
        if type(own) is not _Own or own.owner() is not fun:  # wrappers copy attributes
            own = fun.__dict__[_ATTRIBUTE] = _Own(fun)
        return own.caches
    try:
        return _by_callable.setdefault(fun, weakref.WeakValueDictionary())
    except TypeError:  # no weak references to it
        return {}


def _shared(fun: Callable[..., Any], options: Any) -> FunctionCache:
    try:
        key, kept, objects = _identity(fun, options)
    except (Unshareable, TypeError):
        return FunctionCache()
    if any(x is fun for x in kept):  # known by its address: no other function finds its programs
        return FunctionCache()
    cache = _by_identity.get(key)
    if cache is None:
        cache = _by_identity[key] = FunctionCache()
        cache.kept = [
            *kept,
            *[weakref.ref(x, functools.partial(_forgotten, _by_identity, key)) for x in objects],
        ]
        cache.key = key
        captures_values = objects or any(isinstance(x, ArrayImpl) for x in kept)
        (_capturing if captures_values else _lately)[key] = cache
    return cache


def forget(cache: FunctionCache) -> None:
    """Its programs go; with it, once no function has it, what the function captured."""
    cache.programs.clear()
    cache.families.clear()
    for known in (_by_identity, _lately, _capturing):
        known.pop(cache.key, None)


def note_program(cache: FunctionCache, consts: Sequence[Any], statics: Sequence[Any]) -> None:
    """A program was traced that keeps these constants, and whose key these static values, alive:
    few functions that have such programs are kept when they are gone, and none with much of it."""
    cache.captured_bytes += sum(getattr(c, "nbytes", 0) for c in consts)
    if consts or not all(type(x) in _PLAIN for x in statics):
        known = _lately.pop(cache.key, None)
        if known is not None:
            _capturing[cache.key] = known
    lately = list(_capturing.items())
    total = sum(c.captured_bytes for _, c in lately)
    for key, c in lately:
        if total <= _CAPTURED_BYTES:
            return
        _capturing.pop(key, None)
        total -= c.captured_bytes


def _forgotten(known: Any, key: Any, _: Any) -> None:
    """An object that a function captured is gone, maybe because the interpreter ends, when this
    module has no names any more."""
    known.pop(key, None)


def _identity(fun: Callable[..., Any], options: Any) -> tuple[Any, list[Any], list[Any]]:
    """(key, what to keep alive, the objects of the user that the function captured: they may
    die)."""
    objects: list[Any] = []
    for taking in (None, objects):
        kept: list[Any] = []
        try:
            key = (fingerprint(fun, kept, set(), taking), options)
            hash(key)
            return key, kept, objects
        except Unshareable:
            if taking is not None or not captures.is_transparent(fun):
                raise
    raise AssertionError("not reached")


def clear() -> None:
    """Forget which functions are the same. The programs of each are tables of their own."""
    for known in (_by_identity, _lately, _capturing):
        known.clear()


def fingerprint(x: Any, kept: list[Any], seen: set[int], objects: list[Any] | None = None) -> Any:
    """A hashable description of a captured value; equal descriptions mean the same behaviour.

    With `objects`, objects of the user's classes are known by address, and put there: their
    attributes are watched elsewhere.
    """
    t = type(x)
    if t in _PLAIN or isinstance(x, np.generic):
        return (t, x, str(x)) if t in (float, complex) else (t, x)  # 0.0 and -0.0 differ
    if isinstance(x, (*_OPAQUE, ArrayImpl)):
        kept.append(x)
        return (t, id(x))
    if t is tuple or t is frozenset:
        return (t, *[fingerprint(v, kept, seen, objects) for v in x])
    if isinstance(x, types.FunctionType):
        return _function(x, kept, seen, objects)
    if isinstance(x, functools.partial):
        parts = (x.func, x.args, tuple(sorted(x.keywords.items())))
        return ("partial", *[fingerprint(v, kept, seen, objects) for v in parts])
    if (
        getattr(t, "__module__", "").startswith("calque")  # asked first: others may do anything
        and callable(x)
        and hasattr(x, "__wrapped__")
    ):
        return (
            type(x),
            getattr(x, "_options_key", None) or _unshareable(x),
            fingerprint(x.__wrapped__, kept, seen, objects),
        )
    if isinstance(x, types.MethodType):
        return (
            "method",
            fingerprint(x.__func__, kept, seen, objects),
            fingerprint(x.__self__, kept, seen, objects),
        )
    if (
        objects is not None
        and not captures.is_library(t)
        and _compared_by_address(t)
        and _can_be_weak(t)
    ):
        objects.append(x)
        return (t, id(x))
    raise Unshareable(t)


def _compared_by_address(t: Any) -> bool:
    return bool(t.__eq__ is object.__eq__)


def _can_be_weak(t: type) -> bool:
    return bool(t.__weakrefoffset__)


def _unshareable(x: Any) -> Any:
    raise Unshareable(type(x))


def _function(
    f: types.FunctionType, kept: list[Any], seen: set[int], objects: list[Any] | None
) -> Any:
    code = f.__code__
    if id(f) in seen:
        return ("again", code)
    seen.add(id(f))
    kept.append(code)
    if captures.is_library(f) and captures.is_library_name(f.__module__):
        kept.append(f)
        return (id(f),)
    if assigned_outside(code):
        raise Unshareable(f)
    cells = []
    for c in f.__closure__ or ():
        try:
            cells.append(fingerprint(c.cell_contents, kept, seen, objects))
        except ValueError:
            cells.append("empty")
    defaults = [fingerprint(v, kept, seen, objects) for v in f.__defaults__ or ()]
    named = [(k, fingerprint(v, kept, seen, objects)) for k, v in (f.__kwdefaults__ or {}).items()]
    globals_ = [
        (n, fingerprint(f.__globals__[n], kept, seen, objects))
        for n in _global_names(code)
        if n in f.__globals__
    ]
    return (code, id(f.__globals__), tuple(cells), tuple(defaults), tuple(named), tuple(globals_))


@memo("names of globals that code reads", 4096)
def _global_names(code: types.CodeType) -> tuple[str, ...]:
    """Names that the code, or code nested in it, may read as globals."""
    names = list(code.co_names)
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            names += _global_names(c)
    return tuple(dict.fromkeys(names))

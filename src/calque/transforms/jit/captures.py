"""What a function reads that is not an argument: globals, closure cells, attributes of `self`,
containers.

A trace takes their values as constants. They are found in the bytecode of the function, and of the
functions of the user that it calls, remembered with the trace, and compared on later calls: by the
machine code of a call, pointer by pointer. A change is reported as `on_stale` says. What the
function itself writes (a counter) is no captured value."""

from __future__ import annotations

import functools
import gc
import inspect
import sys
import types
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Final

import numpy as np

from calque.core.arrays import ArrayImpl
from calque.core.errors import StaleCaptureError, StaleCaptureWarning
from calque.core.source import user_frame
from calque.transforms.jit.bytecode import changed_items, steps_of

MOST_FUNCTIONS: Final = 200  # user functions that are looked through
MOST_ITEMS: Final = 64  # items of a container that are watched
MOST_CONTAINERS: Final = 32  # containers in one another that are watched
_PLAIN: Final = (
    int,
    float,
    complex,
    str,
    bytes,
    bool,
    type(None),
    np.generic,
    np.ndarray,
    ArrayImpl,
)
_FUNCTIONS: Final = (types.FunctionType, types.MethodType, functools.partial)
_CONTAINERS: Final = (tuple, list, dict, set, frozenset)
_COMPARED: Final = (
    int,
    float,
    complex,
    str,
    bytes,
    bool,
    tuple,
    list,
    dict,
    frozenset,
    np.generic,
    type(None),
)
LIBRARIES: Final = frozenset(sys.stdlib_module_names) | {"calque", "numpy", "scipy", "jax"}
MUTATING: Final = frozenset(
    (
        "append",
        "extend",
        "insert",
        "pop",
        "remove",
        "clear",
        "update",
        "add",
        "discard",
        "setdefault",
        "popitem",
        "sort",
        "reverse",
    )
)
_MISSING: Final = object()


class Read:
    """One captured value: where it is found again, what it was, and what the containers in it
    held."""

    __slots__ = ("held", "holder", "key", "kind", "name", "parent", "value")

    def __init__(
        self, kind: str, name: str, holder: Any, key: Any, value: Any, parent: Read | None = None
    ) -> None:
        self.kind, self.name, self.holder, self.key = kind, name, holder, key
        self.parent = parent  # what was read to find the holder, which may be replaced
        self.take(value)

    def take(self, value: Any) -> None:
        """Remember this value."""
        self.value, self.held = value, held(value)

    def now(self) -> Any:
        """The value at this moment."""
        if self.kind == "bound":
            return self.value
        if self.kind == "cell":
            return contents(self.holder)
        if self.parent is not None:
            table = getattr(self.parent.now(), "__dict__", None)
            if type(table) is not dict:
                return _MISSING
            self.holder = table
        return self.holder.get(self.key, _MISSING)

    def changed(self) -> bool:
        value = self.now()
        if value is not self.value:
            if not same(value, self.value):
                return True
            self.take(value)  # an equal one: the machine code compares addresses
        return not all(same_items(items(c), before) for c, before in self.held)

    def present(self) -> Any:
        """What must be found for the program to be right: the same data or function; of an object,
        those who read from it see."""
        return (
            self.value
            if is_data(self.value) or isinstance(self.value, types.FunctionType)
            else self.now()
        )

    def words(self) -> Iterator[tuple[Any, ...]]:
        """The questions that the machine code of a call asks."""
        if self.kind == "cell":
            yield ("cell", self.holder, self.present())
        elif self.kind != "bound":
            yield ("item", self.holder, self.key, self.present())
        for container, before in self.held:
            if type(container) is list:
                yield ("list", container, before)
            else:
                yield ("length", container, len(container))
                for k, v in container.items():
                    yield ("item", container, k, v)

    def watchable(self) -> bool:
        """Whether the machine code can compare it."""
        containers = [c for c, _ in self.held]
        return sum(map(len, containers)) <= MOST_ITEMS and all(
            isinstance(c, (list, dict)) for c in containers
        )

    def was(self) -> Any:
        """The value as it was remembered: containers with the items they had."""
        before = {id(c): old for c, old in self.held}

        def old(x: Any) -> Any:
            found = before.get(id(x))
            if found is None or (len(found) and len(found) > 2 * MOST_ITEMS):
                return x
            if isinstance(x, dict):
                return {k: old(v) for k, v in zip(found[::2], found[1::2])}
            return [old(v) for v in found] if type(x) is list else set(found[0])

        return old(self.value)


def held(value: Any) -> tuple[tuple[Any, tuple[Any, ...]], ...]:
    """The containers that can change in a value, itself among them, each with its items."""
    found: dict[int, Any] = {}
    todo = [value] if isinstance(value, (*_CONTAINERS,)) else []
    while todo and len(found) < MOST_CONTAINERS:
        x = todo.pop()
        if id(x) in found:
            continue
        found[id(x)] = x
        inside = x.values() if isinstance(x, dict) else x
        todo += [v for v in list(inside)[:MOST_ITEMS] if isinstance(v, (list, dict, set, tuple))]
    return tuple((x, items(x)) for x in found.values() if isinstance(x, (list, dict, set)))


def items(value: Any) -> tuple[Any, ...]:
    """The items of a container that can change; dictionaries with their keys. Of long ones the
    first, and how many there are."""
    if type(value) is list:
        return tuple(value) if len(value) <= MOST_ITEMS else (len(value), *value[:MOST_ITEMS])
    if isinstance(value, dict):
        flat = tuple(x for item in list(value.items())[:MOST_ITEMS] for x in item)
        return flat if len(value) <= MOST_ITEMS else (len(value), *flat)
    return (frozenset(value),)


def same(a: Any, b: Any) -> bool:
    """Whether two values are equal as constants of a trace."""
    if a is b:
        return True
    if isinstance(a, types.FunctionType) and isinstance(b, types.FunctionType):
        return same_functions(a, b)
    if type(a) is not type(b) or not isinstance(a, _COMPARED):
        return False
    if isinstance(a, (tuple, list)):
        return same_items(a, b)
    if isinstance(a, dict):
        return same_items(tuple(a), tuple(b)) and same_items(tuple(a.values()), tuple(b.values()))
    if isinstance(a, frozenset):
        return a == b
    return bool(a == b) and str(a) == str(b)


def same_functions(a: types.FunctionType, b: types.FunctionType) -> bool:
    """Whether it is the same function, made again from the same code with the same captured
    values."""

    def inside(f: types.FunctionType) -> tuple[Any, ...]:
        return (f.__defaults__, f.__kwdefaults__, tuple(map(contents, f.__closure__ or ())))

    return a.__code__ == b.__code__ and same(inside(a), inside(b))


def same_items(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return len(a) == len(b) and all(x is y or same(x, y) for x, y in zip(a, b))


class Captures:
    """The captured values of one trace, and the objects through which they were found."""

    __slots__ = ("objects", "reads", "whole")

    def __init__(self, reads: Sequence[Read], whole: bool = False) -> None:
        self.reads = tuple(reads)
        self.whole = whole  # nothing is read that was not found
        objects = {}
        for r in self.reads:
            parent = r.parent
            while parent is not None:
                objects[id(parent)] = parent
                parent = parent.parent
        self.objects = tuple(objects.values())

    def settle(self) -> None:
        """After tracing: what tracing itself changed is not watched."""
        self.reads = tuple(r for r in self.reads if not r.changed())

    def without(
        self,
        codes: Collection[types.CodeType],
        fun: Callable[..., Any],
        statics: Sequence[Any] = (),
    ) -> Captures:
        """What `fun` and its static arguments read elsewhere than in these codes, which run anew at
        each call."""
        finder = CaptureFinder(codes)
        finder.functions(fun, statics)
        kept = {(id(r.holder), r.key, r.name) for r in finder.reads.values()}
        return Captures([r for r in self.reads if (id(r.holder), r.key, r.name) in kept])

    def changed(self) -> list[Read]:
        return [r for r in self.reads if r.changed()]

    def words(self) -> list[tuple[Any, ...]]:
        return [w for r in (*self.objects, *self.reads) for w in r.words()]

    def watchable(self) -> bool:
        """Whether the machine code can watch all of them."""
        return all(r.watchable() for r in self.reads)


NOTHING: Final = Captures(())


def checked_policy(on_stale: str | None) -> str | None:
    """The `on_stale` argument of `jit`."""
    if on_stale not in (None, "warn", "retrace", "error", "ignore"):
        raise ValueError(
            f'jit: on_stale must be "warn", "retrace", "error" or "ignore", got {on_stale!r}'
        )
    return on_stale


def report(changed: Sequence[Read], policy: str, function: str) -> bool:
    """Tell of changed values as `policy` says; True when the function has to be traced anew."""
    if policy == "ignore":
        return False
    if policy == "retrace":
        return True
    lines = [
        f"{r.name} was {short(r.was())} when {function} was traced and is now {short(r.now())}"
        for r in changed
    ]
    message = (
        f"{'; '.join(lines)}. The compiled program still uses the old value. Pass it as an"
        ' argument, or jit with on_stale="retrace" to trace again, "ignore" to be silent.'
    )
    if policy == "error":
        raise StaleCaptureError(message)
    for r in changed:
        r.take(r.now())
    frame = user_frame()
    if frame is not None:
        warnings.warn_explicit(
            StaleCaptureWarning(message), None, frame.f_code.co_filename, frame.f_lineno
        )
    return False


def short(value: Any) -> str:
    if value is _MISSING:
        return "deleted"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:50]}... ({type(value).__name__})"


# ---------------------------------------------------------------- finding them


def captured(fun: Callable[..., Any], statics: Sequence[Any] = ()) -> Captures:
    """What `fun` reads, and the functions among its static arguments, with the values of now."""
    finder = CaptureFinder()
    finder.functions(fun, statics)
    return Captures(tuple(finder.reads.values()), whole=not finder.opaque)


def functions_of(fun: Callable[..., Any]) -> list[types.FunctionType]:
    """The functions of the user that `fun` calls by name, itself among them, and those that they
    call."""
    finder = CaptureFinder()
    finder.function(fun)
    return list(finder.seen.values())


def is_transparent(fun: Callable[..., Any]) -> bool:
    """Whether every use of a captured object is known, so that an equal function made later may
    share what was traced."""
    finder = CaptureFinder()
    finder.function(fun)
    return not finder.opaque


class CaptureFinder:
    """Walks through the bytecode of functions, except for `skipped` ones."""

    def __init__(self, skipped: Collection[types.CodeType] = ()) -> None:
        self.skipped = skipped
        self.reads: dict[tuple[int, Any], Read] = {}
        self.opaque = False
        self.seen: dict[tuple[int, int], types.FunctionType] = {}
        self.found_at: dict[
            int, Read
        ] = {}  # objects whose methods are looked into -> where they were read

    def functions(self, fun: Callable[..., Any], statics: Sequence[Any]) -> None:
        """A function, and those among its static arguments, alone or in tuples."""
        self.function(fun)
        for x in statics:
            for f in x if type(x) is tuple else (x,):
                if isinstance(f, _FUNCTIONS):
                    self.function(f)

    def function(self, f: Any) -> None:
        """A callable: look into its code where it is the user's."""
        if isinstance(f, functools.partial):
            for x in (f.func, *f.args, *f.keywords.values()):
                self.argument(x)
        elif isinstance(f, types.MethodType):
            self.code(f.__func__, f.__self__)  # type: ignore[arg-type]
        elif isinstance(f, types.FunctionType):
            self.code(f, None)
        elif is_wrapper(f):
            self.function(f.__wrapped__)
        elif not isinstance(f, (type, types.BuiltinFunctionType)) and not is_library(type(f)):
            self.method(f, "__call__")

    def argument(self, x: Any) -> None:
        """A value bound to a parameter: what the function does with it is not followed, but
        containers are watched."""
        if is_data(x):
            if held(x):
                self.reads[id(x), "bound"] = Read(
                    "bound", "a default or bound argument", None, None, x
                )
        elif isinstance(x, _FUNCTIONS):
            self.function(x)
        elif not isinstance(x, (type, types.ModuleType, types.BuiltinFunctionType)):
            self.opaque = True

    def code(self, f: types.FunctionType, owner: Any) -> None:
        key = (id(f), id(owner))  # not its code: functions of one code may capture other values
        if key in self.seen or len(self.seen) >= MOST_FUNCTIONS or f.__code__ in self.skipped:
            return
        self.seen[key] = f
        if is_library(f):  # a transformed function: what it transforms is in its cells
            for c in f.__closure__ or ():
                x = contents(c)
                if callable(x) and not isinstance(x, type):
                    self.function(x)
            return
        for d in (*(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values()):
            self.argument(d)
        cells = dict(zip(f.__code__.co_freevars, f.__closure__ or ()))
        own = f.__code__.co_varnames[:1] if owner is not None else ()
        self.instructions(f.__code__, f.__globals__, cells, dict.fromkeys(own, owner))

    def instructions(
        self,
        code: types.CodeType,
        scope: dict[str, Any],
        cells: dict[str, Any],
        own: dict[str, Any],
    ) -> None:
        """The reads of one code object and those nested in it."""
        path: Path | None = None
        steps = steps_of(code)
        written = {name for op, name in steps if op == "STORE_ATTR"}
        stored = {name for op, name in steps if op == "STORE"} | changed_items(steps)
        for op, name in steps:
            if path is not None and op == "LOAD_ATTR":
                if name in written:
                    path = None
                else:
                    path = path.attribute(str(name))
                continue
            if path is not None:
                self.end(path)
            path = None
            if op == "LOAD_GLOBAL" and name in scope and name not in stored:
                path = Path(Read("global", name, scope, name, scope[name]))
            elif op == "LOAD" and name in own:
                path = Path(None, own[name], name, self.found_at.get(id(own[name])))
            elif op == "LOAD" and name in cells and name not in stored:
                path = Path(Read("cell", name, cells[name], None, contents(cells[name])))
        if path is not None:
            self.end(path)
        for c in code.co_consts:
            if isinstance(c, types.CodeType) and c not in self.skipped:
                self.instructions(c, scope, cells, own)

    def end(self, path: Path) -> None:
        """A value is used: data is remembered, a function is looked into."""
        value = path.value
        for r in path.reads:
            if is_data(r.value) or (
                isinstance(r.value, types.FunctionType) and not is_library(r.value)
            ):
                self.reads[id(r.holder), r.key] = r
            else:
                self.found_at.setdefault(id(r.value), r)
        if path.method is not None:
            self.function(path.method)
        elif (
            value is _MISSING
            or is_data(value)
            or isinstance(value, (type, types.ModuleType, types.BuiltinFunctionType))
        ):
            return
        elif isinstance(
            value, (types.FunctionType, types.MethodType, functools.partial)
        ) or is_wrapper(value):
            self.function(value)
        elif type(value) in _CONTAINERS or not is_library(type(value)):
            self.opaque = True  # an object goes somewhere as a whole
            if callable(value):
                self.method(value, "__call__")

    def method(self, x: Any, name: str) -> None:
        f: Any = getattr(type(x), name, None)
        if isinstance(f, types.FunctionType):
            self.code(f, x)


class Path:
    """A name and the attributes that are read from it: `model.layer.w`."""

    def __init__(
        self, root: Read | None, value: Any = _MISSING, name: str = "", parent: Read | None = None
    ) -> None:
        self.reads = [] if root is None else [root]
        self.parent = parent  # where the value was read by whoever called a method of it
        self.value = value if root is None else root.value
        self.name = name if root is None else root.name
        self.method: Any = None

    def attribute(self, name: str) -> Path:
        x = self.value
        self.name = f"{self.name}.{name}"
        if (isinstance(x, types.ModuleType) and is_library(x)) or (
            type(x) in _CONTAINERS and name in MUTATING
        ):
            self.value, self.reads = (
                _MISSING,
                [],
            )  # what a function changes itself is no captured value
            return self
        table = getattr(x, "__dict__", None) if not isinstance(x, (*_PLAIN, *_CONTAINERS)) else None
        if type(table) is dict and name in table:
            self.value = table[name]
            parent = self.reads[-1] if self.reads else self.parent
            self.reads.append(Read("attribute", self.name, table, name, self.value, parent))
            return self
        owner = x if isinstance(x, type) else type(x)
        table = None if table is None or is_library(owner) else class_table(owner, name)
        if table is not None and is_data(table[name]):
            self.value = table[name]
            self.reads.append(Read("attribute", self.name, table, name, self.value))
            return self
        found = getattr(owner, name, None) if table is not None else None
        if isinstance(found, types.FunctionType):
            self.method = types.MethodType(found, x)
        elif isinstance(found, property) and isinstance(found.fget, types.FunctionType):
            self.method = types.MethodType(found.fget, x)
        self.value = _MISSING
        return self


def class_table(owner: type, name: str) -> dict[str, Any] | None:
    """The dictionary of the class in which an attribute is found; what `__dict__` shows is a view
    of it."""
    for c in owner.__mro__:
        if name in c.__dict__:
            table = next(iter(gc.get_referents(c.__dict__)), None)
            return table if type(table) is dict else None
    return None


def is_wrapper(x: Any) -> bool:
    """Whether it says what it wraps. Objects are not asked: their `__getattr__` may do anything."""
    return inspect.getattr_static(x, "__wrapped__", _MISSING) is not _MISSING


def contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _MISSING


def is_data(x: Any) -> bool:
    """Numbers, texts, arrays, and containers of them."""
    if isinstance(x, _PLAIN):
        return True
    if isinstance(x, dict):
        return all(is_data(v) for v in list(x.values())[:MOST_ITEMS])
    return (type(x) in _CONTAINERS or isinstance(x, tuple)) and all(
        is_data(v) for v in list(x)[:MOST_ITEMS]
    )


def is_library(x: Any) -> bool:
    if isinstance(x, types.FunctionType):  # a wrapper has the __module__ of what it wraps
        name: Any = x.__globals__.get("__name__")
    else:
        name = x.__name__ if isinstance(x, types.ModuleType) else getattr(x, "__module__", None)
    return is_library_name(name)


def is_library_name(module: Any) -> bool:
    return isinstance(module, str) and module.partition(".")[0] in LIBRARIES

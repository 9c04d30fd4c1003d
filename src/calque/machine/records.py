"""Classes of values: fields in an order, set when an object is made and never again.

What `dataclasses` makes of a class takes six small programs, compiled when the module is imported,
and an object that refuses to be changed is made field by field through `object.__setattr__`: it
takes four times as long. Here one small program is compiled for each class. That nothing changes a
value the type checker sees to, not the value itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, field
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform, overload

T = TypeVar("T")


@overload
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]: ...


@overload
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(*, eq: bool = ...) -> Callable[[type[T]], type[T]]: ...


def record(cls: Any = None, *, eq: bool = True) -> Any:
    """A class of values as its annotations list them. `eq`: two of them are equal when all fields
    are; else each is only itself."""
    return _made(cls, eq) if cls is not None else lambda cls: _made(cls, eq)


def _made(cls: Any, eq: bool) -> Any:
    fields: dict[str, Any] = dict(getattr(cls, "__record__", {}))
    for name in cls.__annotations__:
        given = cls.__dict__.get(name, MISSING)
        if isinstance(given, Field):
            delattr(cls, name)
            if not given.init:  # worked out of the others by `__post_init__`
                continue
        fields[name] = given
    cls.__record__ = fields
    cls.__init__ = _init(cls, fields)
    shown = [n for n, f in fields.items() if not isinstance(f, Field) or f.repr]

    def __repr__(self: Any) -> str:
        return f"{cls.__qualname__}({', '.join([f'{n}={getattr(self, n)!r}' for n in shown])})"

    if "__repr__" not in cls.__dict__:
        cls.__repr__ = __repr__
    cls.__values__ = _values(tuple(fields))
    if eq:
        _compare(cls, cls.__values__)
    return cls


def _init(cls: Any, fields: dict[str, Any]) -> Any:
    """`__init__`, which sets the fields and calls `__post_init__` where there is one."""
    given: dict[str, Any] = {"_missing": MISSING}
    parameters, lines = ["self"], []
    for name, default in fields.items():
        factory: Any = MISSING
        if isinstance(default, Field):
            factory, default = default.default_factory, default.default
        value = name
        if factory is not MISSING:
            given[f"_make_{name}"], default = factory, MISSING
            value = f"_make_{name}() if {name} is _missing else {name}"
            parameters.append(f"{name}=_missing")
        elif default is not MISSING:
            given[f"_{name}"] = default
            parameters.append(f"{name}=_{name}")
        else:
            parameters.append(name)
        lines.append(f" self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append(" self.__post_init__()")
    exec("\n".join([f"def __init__({', '.join(parameters)}):", *(lines or [" pass"])]), given)
    made = given["__init__"]
    made.__qualname__, made.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    return made


def _values(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """What gives the values of these fields."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda x: tuple([getattr(x, n) for n in names])


def _compare(cls: Any, values: Callable[[Any], tuple[Any, ...]]) -> None:
    def __eq__(self: Any, other: object) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return self is other or values(self) == values(other)

    def __hash__(self: Any) -> int:
        return hash(values(self))

    cls.__eq__, cls.__hash__ = __eq__, __hash__


def replace(x: T, /, **changes: Any) -> T:
    """Another value of the class, with other fields where they are named."""
    return remade(type(x), x, **changes)


def remade(kind: type[T], x: Any, /, **changes: Any) -> T:
    """A value of a class from one of a class with the same fields, with other fields where they are
    named."""
    of: Any = type(x)
    fields = dict(zip(of.__record__, of.__values__(x), strict=True))
    fields.update(changes)
    return kind(**fields)

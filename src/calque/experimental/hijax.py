"""Types and primitives above arrays, in JAX's names, as far as libraries name them.

Classes can be derived and registered. Programs over values of such types are not traced here: using
one says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from calque.core.avals import AbstractValue, ShapedArray
from calque.core.primitives import UndefinedPrimal, Zero
from calque.core.trace import REFUSED_TYPES
from calque.extend.programs import Effect
from calque.interpreters.ad import instantiate_zeros
from calque.transforms.primitives.refs import AbstractRef

__all__ = [
    "AbstractRef", "AbstractValue", "AvalMutableQDD", "AvalQDD", "HiPrimitive", "HiType",
    "MutableHiType", "ShapedArray", "VJPHiPrimitive", "Zero", "aval_method", "aval_property",
    "control_flow_allowed_effects", "instantiate_zeros", "is_undefined_primal", "register_hitype",
]  # fmt: skip


def _why(what: str) -> str:
    return (
        f"{what}: programs over types above arrays (hijax) are not traced by calque. Use arrays,"
        " pytrees of them, or calque.Ref for values that change; in flax.nnx, leave"
        " flax_hijax_variable off, which is its default."
    )


def _refuse(what: str) -> NoReturn:
    raise NotImplementedError(_why(what))


def is_undefined_primal(x: Any) -> bool:
    """Whether this stands for an operand whose cotangent a transpose rule is asked for."""
    return isinstance(x, UndefinedPrimal)


class AvalQDD(NamedTuple):
    """A type, and what it is known of a changing value of it at some point of the program."""

    aval: Any
    qdd: Any


class AvalMutableQDD(NamedTuple):
    """A type, and a place for what is known of a changing value."""

    aval: Any
    mutable_qdd: Any


class aval_method:
    """A method of values that their type defines."""

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = fun


class aval_property:
    """An attribute of values that their type defines."""

    def __init__(self, fget: Callable[..., Any]) -> None:
        self.fget = fget


class HiType(AbstractValue):
    """A type of values that stand for several arrays."""

    has_qdd = False


class MutableHiType(HiType):
    """A type of values that change."""

    has_qdd = True


class HiPrimitive:
    """An operation over values of such types."""

    multiple_results = False

    def __init__(self, name: str) -> None:
        self.name = name

    def bind(self, *args: Any, **params: Any) -> Any:
        """Refused: see the module."""
        _refuse(f"the operation {self.name}")

    def __repr__(self) -> str:
        return self.name


class VJPHiPrimitive:
    """An operation with a derivative of its own over values of such types."""

    def __call__(self, *args: Any) -> Any:
        """Refused: see the module."""
        _refuse(type(self).__name__)


def register_hitype(value_type: type, typeof_fn: Callable[[Any], Any]) -> None:
    """Say which type values of a class have. A value of the class as an operand is refused with the
    reason, see the module; as a container of arrays it can be registered in `tree_util`."""
    if not isinstance(value_type, type) or not callable(typeof_fn):
        raise TypeError(
            "register_hitype takes a class and a function that gives the type of its values, got"
            f" {value_type!r} and {typeof_fn!r}"
        )
    REFUSED_TYPES[value_type] = _why(f"a value of the class {value_type.__name__}")


class _Allowed:
    """Kinds of effects that control flow may have."""

    def __init__(self) -> None:
        self._kinds: set[type[Effect]] = set()

    def add_type(self, effect_type: type[Effect]) -> None:
        """Allow effects of this class."""
        self._kinds.add(effect_type)

    def contains(self, effect_type: type[Effect]) -> bool:
        """Whether effects of this class are allowed."""
        return issubclass(effect_type, tuple(self._kinds))


control_flow_allowed_effects = _Allowed()

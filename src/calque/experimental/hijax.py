"""Types and primitives above arrays, in JAX's names.

A value of such a type stands for several arrays, and may change. Operations on it run at once, as
operations on its arrays (`HiPrimitive.to_lojax`), so that programs and transformations see arrays
alone. Functions given to `jit` and `eval_shape` take and return such values; functions that are
staged (by jit or as bodies of control flow) may also close over those that change, and those that
are differentiated or batched over values that do not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from calque.core.avals import AbstractValue, ShapedArray
from calque.core.primitives import UndefinedPrimal, Zero
from calque.core.trace import HIGH_TYPES, high_type_of, placed_typeof
from calque.extend.programs import Effect
from calque.interpreters.ad import instantiate_zeros
from calque.transforms.functions.custom_jvp import custom_jvp
from calque.transforms.primitives.high_values import applied, cur_qdd
from calque.transforms.primitives.refs import AbstractRef

__all__ = [
    "AbstractRef", "AbstractValue", "AvalMutableQDD", "AvalQDD", "HiPrimitive", "HiType",
    "MutableHiType", "ShapedArray", "VJPHiPrimitive", "Zero", "aval_method", "aval_property",
    "control_flow_allowed_effects", "cur_qdd", "instantiate_zeros", "is_undefined_primal",
    "register_hitype",
]  # fmt: skip


def is_undefined_primal(x: Any) -> bool:
    """Tells whether a value stands for an operand whose cotangent a transpose rule is asked for.

    Args:
        x: The value.

    Returns:
        A bool.

    >>> from calque.experimental import hijax
    >>> hijax.is_undefined_primal(1.0)
    False"""
    return isinstance(x, UndefinedPrimal)


class AvalQDD(NamedTuple):
    """A type, and what is known of a changing value of it at some point of the program.

    Args:
        aval: The type.
        qdd: What is known.

    >>> from calque.experimental import hijax
    >>> hijax.AvalQDD(jax.typeof(1.0), None).qdd is None
    True"""

    aval: Any
    qdd: Any


class AvalMutableQDD(NamedTuple):
    """A type, and a place for what is known of a changing value.

    Args:
        aval: The type.
        mutable_qdd: The place.

    >>> from calque.experimental import hijax
    >>> hijax.AvalMutableQDD(jax.typeof(1.0), None).mutable_qdd is None
    True"""

    aval: Any
    mutable_qdd: Any


class aval_method:
    """A method of values that their type defines.

    Args:
        fun: A function of the value and further arguments.

    >>> from calque.experimental import hijax
    >>> hijax.aval_method(len).fun is len
    True"""

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = fun


class aval_property:
    """An attribute of values that their type defines.

    Args:
        fget: A function of the value.

    >>> from calque.experimental import hijax
    >>> hijax.aval_property(len).fget is len
    True"""

    def __init__(self, fget: Callable[..., Any]) -> None:
        self.fget = fget


class HiType(AbstractValue):
    """A type of values that stand for several arrays.

    >>> from calque.experimental import hijax
    >>> hijax.HiType.has_qdd
    False"""

    has_qdd = False


class MutableHiType(HiType):
    """A type of values that change.

    >>> from calque.experimental import hijax
    >>> hijax.MutableHiType.has_qdd
    True"""

    has_qdd = True


class HiPrimitive:
    """An operation over values that stand for several arrays, or over arrays.

    A derived class says in `to_lojax` what it does, in terms of the arrays in them. A `jvp` of its
    own is used where operands and results are arrays; elsewhere the derivative is that of what
    `to_lojax` does.

    Args:
        name: Its name.

    >>> from calque.experimental import hijax
    >>> class Double(hijax.HiPrimitive):
    ...     def to_lojax(self, x):
    ...         return x * 2
    >>> Double("double").bind(jnp.ones(2))
    Array([2., 2.], dtype=float32)"""

    multiple_results = False

    def __init__(self, name: str) -> None:
        self.name = name

    def to_lojax(self, *args: Any, **params: Any) -> Any:
        """Gives the results, computed from the arrays in the operands. A derived class defines it.

        Args:
            *args: The operands.
            **params: The parameters.

        Returns:
            The results."""
        raise NotImplementedError(f"the operation {self.name} defines no to_lojax")

    def abstract_eval(self, *avals: Any, **params: Any) -> Any:
        """Gives the types of the results, and effects. A derived class with a `jvp` defines it.

        Args:
            *avals: The types of the operands.
            **params: The parameters.

        Returns:
            A pair (types, effects)."""
        raise NotImplementedError(f"the operation {self.name} defines no abstract_eval")

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        """Gives the results and their tangents. A derived class may define it.

        Args:
            primals: The operands.
            tangents: Their tangents.
            **params: The parameters.

        Returns:
            A pair."""
        raise NotImplementedError(f"the operation {self.name} defines no jvp")

    def bind(self, *args: Any, **params: Any) -> Any:
        """Applies the operation.

        Args:
            *args: The operands.
            **params: The parameters.

        Returns:
            The results."""
        if type(self).jvp is not HiPrimitive.jvp and self._is_of_arrays(args, params):
            return self._with_own_rule(params)(*args)
        return applied(args, lambda: self.to_lojax(*args, **params))

    def _is_of_arrays(self, args: Any, params: Any) -> bool:
        """Whether operands and results are plain arrays."""
        if any(high_type_of(x) is not None for x in args):
            return False
        out = self.abstract_eval(*map(placed_typeof, args), **params)
        avals = out[0] if isinstance(out, tuple) and not isinstance(out, AvalQDD) else out
        return all(
            isinstance(a, ShapedArray)
            for a in (avals if isinstance(avals, (list, tuple)) else [avals])
        )

    def _with_own_rule(self, params: Any) -> Any:
        fun = custom_jvp(lambda *args: self.to_lojax(*args, **params))
        fun.defjvp(lambda primals, tangents: self.jvp(primals, tangents, **params))
        return fun

    def __repr__(self) -> str:
        return self.name


class VJPHiPrimitive:
    """An operation with a derivative of its own over such values. Calling one is refused.

    >>> from calque.experimental import hijax
    >>> hijax.VJPHiPrimitive()()
    Traceback (most recent call last):
    NotImplementedError: VJPHiPrimitive: operations of the class VJPHiPrimitive are not run..."""

    def __call__(self, *args: Any) -> Any:
        """Refused."""
        raise NotImplementedError(
            f"{type(self).__name__}: operations of the class VJPHiPrimitive are not run by calque."
            " Derive from HiPrimitive, or use calque.custom_vjp for functions of arrays and of"
            " pytrees of them."
        )


def register_hitype(value_type: type, typeof_fn: Callable[[Any], Any]) -> None:
    """Says which type values of a class have.

    Args:
        value_type: The class.
        typeof_fn: A function from a value to its HiType.

    >>> from calque.experimental import hijax
    >>> class Pair:
    ...     pass
    >>> hijax.register_hitype(Pair, lambda pair: hijax.HiType())"""
    if not isinstance(value_type, type) or not callable(typeof_fn):
        raise TypeError(
            "register_hitype takes a class and a function that gives the type of its values, got"
            f" {value_type!r} and {typeof_fn!r}"
        )
    HIGH_TYPES[value_type] = typeof_fn


def _itself(self: Any, *given: Any) -> Any:
    """Gives the first argument back: of plain arrays nothing is to be lowered or raised.

    Args:
        *given: The value.

    Returns:
        The value.

    >>> from calque.experimental import hijax
    >>> jax.typeof(1.0).raise_val(2.0)
    2.0"""
    return given[0]


# arrays and Refs as the lowest case of such types
_cls: Any
for _cls in (ShapedArray, AbstractRef):
    _cls.lo_ty = lambda self: [self]
    _cls.raise_val = _itself
    _cls.lower_val = lambda self, value: [value]
    _cls.normalize = lambda self: self


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

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

from calque.core import pytrees
from calque.core.avals import AbstractValue, ShapedArray
from calque.core.primitives import UndefinedPrimal, Zero
from calque.core.trace import HIGH_TYPES, high_type_of, placed_typeof, typeof
from calque.extend.programs import Effect
from calque.interpreters.ad import instantiate_zeros
from calque.interpreters.batching import AxisData
from calque.numpy import moveaxis
from calque.transforms.engines.zeros import SymbolicZero
from calque.transforms.functions.custom_batching import custom_vmap
from calque.transforms.functions.custom_jvp import custom_jvp
from calque.transforms.functions.custom_vjp import (
    CustomVJPPrimal,
    custom_vjp,
    custom_vjp_primal_tree_values,
)
from calque.transforms.primitives.high_values import applied, cur_qdd
from calque.transforms.primitives.refs import AbstractRef

__all__ = [
    "AbstractRef", "AbstractValue", "AvalMutableQDD", "AvalQDD", "HiPrimitive", "HiPspec", "HiType",
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


def _is_array(aval: Any) -> bool:
    return isinstance(aval, ShapedArray)


def _with_elements(ct: Any) -> Any:
    return instantiate_zeros(Zero(ct.aval)) if isinstance(ct, SymbolicZero) else ct


class _Cotangent:
    """Where a backward rule adds what it finds for one operand."""

    def __init__(self) -> None:
        self.total: Any = None

    def accum(self, ct: Any) -> None:
        """Add a cotangent."""
        if ct is not None and not isinstance(ct, (Zero, SymbolicZero)):
            self.total = ct if self.total is None else self.total + ct


class _NoCotangent(_Cotangent):
    """The same for an operand that is not differentiated: what comes is dropped."""

    def accum(self, ct: Any) -> None:
        """Drop a cotangent."""


class VJPHiPrimitive:
    """An operation with derivatives of its own. One object is the operation for operands of given
    types.

    A derived class sets `in_avals`, `out_aval` and `params` before it calls `super().__init__()`;
    the entries of `params` become attributes. It defines `expand` and, where these are not to
    follow from `expand`: for reverse mode `vjp_fwd(nzs, *args)`, which gives (out, residuals), with
    `vjp_bwd(residuals, ct, *sums)` or `vjp_bwd_retval(residuals, ct)`; for forward mode
    `jvp(primals, tangents)`, or `lin(nzs, *args)` with `linearized(residuals, *tangents)`; for vmap
    `batch(axis, args, dims)`. `nzs` tells which operands are differentiated.

    Differs from JAX:
        What a class says of removing dead code, of rematerialisation, of transposing and of
        staging is not asked: these follow from `expand`, as vmap does without `batch`. Operations
        with rules of their own take and give arrays; those without take values above arrays too.

    >>> from calque.experimental import hijax
    >>> class Cube(hijax.VJPHiPrimitive):
    ...     def __init__(self, aval):
    ...         self.in_avals, self.out_aval, self.params = (aval,), aval, {}
    ...         super().__init__()
    ...     def expand(self, x):
    ...         return x**3
    ...     def vjp_fwd(self, nzs, x):
    ...         return self(x), x
    ...     def vjp_bwd_retval(self, x, ct):
    ...         return (3 * x**2 * ct,)
    >>> jax.grad(lambda x: Cube(jax.typeof(x))(x))(2.0)
    Array(12., dtype=float32, weak_type=True)"""

    in_avals: Any
    out_aval: Any
    params: dict[str, Any]
    effects: Any = frozenset()

    def __init__(self) -> None:
        for name in ("in_avals", "out_aval", "params"):
            if not hasattr(self, name):
                raise AttributeError(
                    f"{type(self).__name__}: __init__ of an operation sets self.{name} before it"
                    " calls super().__init__()"
                )
        if self._says("vjp_bwd") and self._says("vjp_bwd_retval"):
            raise AttributeError(
                f"{type(self).__name__} defines both vjp_bwd and vjp_bwd_retval: one of them is the"
                " backward rule"
            )
        self.in_avals_flat, self.in_tree = pytrees.flatten(self.in_avals)
        self.out_avals_flat, self.out_tree = pytrees.flatten(self.out_aval)
        self.__dict__.update(self.params)
        self.check(*self.in_avals)

    def _says(self, name: str) -> bool:
        """Whether the derived class has such a rule."""
        return getattr(type(self), name) is not getattr(VJPHiPrimitive, name)

    def _undefined(self, name: str) -> NotImplementedError:
        return NotImplementedError(f"the operation {type(self).__name__} defines no {name}")

    def check(self, *avals: Any) -> None:
        """Refuses types of operands. A derived class may define it.

        Args:
            *avals: The types."""

    def expand(self, *args: Any) -> Any:
        """Gives the results. A derived class defines it.

        Args:
            *args: The operands.

        Returns:
            The results, of the types in `out_aval`."""
        raise self._undefined("expand")

    def vjp_fwd(self, nzs_in: Any, /, *args: Any) -> Any:
        """Gives the results and what the backward rule needs. A derived class may define it.

        Args:
            nzs_in: Which operands are differentiated.
            *args: The operands.

        Returns:
            A pair."""
        raise self._undefined("vjp_fwd")

    def vjp_bwd(self, res: Any, outgrad: Any, /, *arg_accums: Any) -> None:
        """Adds to the cotangents of the operands. A derived class may define it.

        Args:
            res: What `vjp_fwd` left.
            outgrad: The cotangents of the results.
            *arg_accums: For each operand where its cotangent is added, by `accum(ct)`."""
        found = self.vjp_bwd_retval(res, outgrad)
        pytrees.tree_map(lambda total, ct: total.accum(ct), arg_accums, found)

    def vjp_bwd_retval(self, res: Any, outgrad: Any, /) -> Any:
        """Gives the cotangents of the operands. A derived class may define it.

        Args:
            res: What `vjp_fwd` left.
            outgrad: The cotangents of the results.

        Returns:
            A tuple with a cotangent for each operand."""
        raise self._undefined("vjp_bwd_retval")

    def jvp(self, primals: Any, tangents: Any) -> Any:
        """Gives the results and their tangents. A derived class may define it.

        Args:
            primals: The operands.
            tangents: Their tangents.

        Returns:
            A pair."""
        raise self._undefined("jvp")

    def lin(self, nzs_in: Any, *primals: Any) -> Any:
        """Gives the results and what `linearized` needs. A derived class may define it.

        Args:
            nzs_in: Which operands are differentiated.
            *primals: The operands.

        Returns:
            A pair."""
        raise self._undefined("lin")

    def linearized(self, residuals: Any, *tangents: Any) -> Any:
        """Gives the tangents of the results. A derived class may define it.

        Args:
            residuals: What `lin` left.
            *tangents: The tangents of the operands.

        Returns:
            The tangents."""
        raise self._undefined("linearized")

    def batch(self, axis_data: Any, args: Any, dims: Any) -> Any:
        """Gives the results for operands with a further dimension. A derived class may define it.

        Args:
            axis_data: The axis, with its `size`.
            args: The operands.
            dims: For each operand where the dimension is, None where there is none.

        Returns:
            A pair (results, where the dimension is in them)."""
        raise self._undefined("batch")

    def batch_dim_rule(self, axis_data: Any, dims: Any, /) -> Any:
        """Tells where the further dimension of the results is. A derived class may define it.

        Args:
            axis_data: The axis.
            dims: For each operand where the dimension is.

        Returns:
            A position."""
        raise self._undefined("batch_dim_rule")

    def __call__(self, *args: Any) -> Any:
        """Applies the operation.

        Args:
            *args: The operands, of the types in `in_avals`.

        Returns:
            The results."""
        leaves, tree = pytrees.flatten(args)
        if tree != self.in_tree:
            raise TypeError(f"the operation {self} takes {self.in_tree}, got {tree}")
        is_high = any(high_type_of(x) is not None for x in leaves)
        if is_high or not all(map(_is_array, self.out_avals_flat)):
            rules = ("vjp_fwd", "jvp", "lin", "batch")
            if any(map(self._says, rules)):
                raise NotImplementedError(
                    f"{type(self).__name__}: operations of the class VJPHiPrimitive with rules of"
                    " their own are run over arrays alone, not over values that stand for several."
                    " Derive from HiPrimitive, or use calque.custom_vjp for functions of arrays and"
                    " of pytrees of them."
                )
            return applied(args, lambda: self.expand(*args))
        arrays = [(typeof(x), a) for x, a in zip(leaves, self.in_avals_flat) if _is_array(a)]
        for own, aval in arrays:
            if (own.shape, own.dtype) != (aval.shape, aval.dtype):
                raise TypeError(f"input type mismatch for {self}: it takes {aval}, got {own}")
        return self._function()(*args)

    def _function(self) -> Callable[..., Any]:
        """The operation over arrays as a function with these rules."""
        fun: Any = self.expand
        if self._says("batch"):
            fun = custom_vmap(self.expand)
            fun.def_vmap(self._batched)
        if self._says("vjp_fwd"):
            fun = custom_vjp(fun)
            fun.defvjp(self._forward, self._backward, symbolic_zeros=True)
            if self._says("jvp"):
                fun.forward = lambda kept, tangents: self.jvp(kept[1], tangents)[1]
            elif self._says("lin"):
                fun.forward = lambda kept, tangents: self._linear(kept[1], tangents)[1]
        elif self._says("jvp") or self._says("lin"):
            fun = custom_jvp(fun)
            fun.defjvp(self.jvp if self._says("jvp") else self._linear)
        return fun  # type: ignore[no-any-return]

    def _batched(self, size: int, batched: Any, *args: Any) -> Any:
        dims = pytrees.tree_map(lambda b: 0 if b else None, tuple(batched))
        out, at = self.batch(AxisData(None, size), args, dims)
        flat, tree = pytrees.flatten(out)
        places = pytrees.prefix_broadcast(at, out, is_leaf=lambda d: d is None)
        moved = [x if d is None else moveaxis(x, d, 0) for x, d in zip(flat, places)]
        flags = [d is not None for d in places]
        return pytrees.unflatten(tree, moved), pytrees.unflatten(tree, flags)

    def _linear(self, primals: Any, tangents: Any) -> Any:
        nzs = pytrees.tree_map(lambda _: True, tuple(primals))
        out, residuals = self.lin(nzs, *primals)[:2]
        return out, self.linearized(residuals, *tangents)

    def _forward(self, *seen: Any) -> Any:
        def is_seen(x: Any) -> bool:
            return isinstance(x, CustomVJPPrimal)

        args = custom_vjp_primal_tree_values(seen)
        nzs = pytrees.tree_map(lambda x: x.perturbed, seen, is_leaf=is_seen)
        out, residuals = self.vjp_fwd(nzs, *args)[:2]
        return out, (residuals, args, nzs)

    def _backward(self, kept: Any, ct: Any) -> Any:
        residuals, _, nzs = kept
        ct = pytrees.tree_map(
            lambda c: instantiate_zeros(Zero(c.aval)) if isinstance(c, SymbolicZero) else c, ct
        )
        if self._says("vjp_bwd_retval"):
            return tuple(self.vjp_bwd_retval(residuals, ct))
        sums = pytrees.tree_map(lambda nz: _Cotangent() if nz else _NoCotangent(), nzs)
        self.vjp_bwd(residuals, ct, *sums)
        return pytrees.tree_map(lambda total: total.total, sums)

    def __repr__(self) -> str:
        return f"{type(self).__name__}[{self.params}]"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, VJPHiPrimitive)
            and type(self) is type(other)
            and self.params == other.params
            and self.effects == other.effects
        )

    def __hash__(self) -> int:
        return hash((type(self).__name__, tuple(self.params.items())))


class HiPspec:
    """How a value that stands for several arrays is split over a mesh: a base class.

    >>> from calque.experimental import hijax
    >>> isinstance(hijax.HiPspec(), hijax.HiPspec)
    True"""


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

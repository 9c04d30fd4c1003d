"""What functions with rules of the user are called with: arguments by position, and tangents and
cotangents as rules see them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, Final, NamedTuple

from calque.core import pytrees, trace_state
from calque.core.avals import ShapedArray
from calque.core.primitives import Zero
from calque.core.trace import trace_to_jaxpr, typeof
from calque.core.trace_state import Tracer
from calque.transforms.engines.signatures import signature
from calque.transforms.engines.trees import arrays, check_results, name_of
from calque.transforms.engines.zeros import as_seen, tangent_aval
from calque.transforms.primitives.flow import type_text
from calque.transforms.primitives.refs_arguments import without_refs

_VARIADIC: Final = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """Gives the zero tangent of a value, or those of a tree of values.

    Args:
        val: An array or a number, or a tree of them.
        symbolic_zeros: Whether to give a `SymbolicZero` rather than an array of zeros.

    Returns:
        Zeros of the shape and the tangent dtype of `val`; of integers they are of dtype float0.
        Of a tree they are a tree alike.

    >>> jax.custom_derivatives.zero_from_primal(2.0)
    Array(0., dtype=float32, weak_type=True)"""
    return pytrees.tree_map(lambda x: as_seen(Zero(tangent_aval(typeof(x))), symbolic_zeros), val)


def positional(
    fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], kind: str
) -> tuple[Any, ...]:
    """All arguments by position, defaults included: rules take them by position. `kind` is what
    the function was decorated with."""
    if not kwargs and takes_exactly(fun, len(args)):
        return tuple(args)
    try:
        taken = signature(fun)
    except (ValueError, TypeError):
        if kwargs:
            raise TypeError(
                f"{name_of(fun)} has no signature: call it with positional arguments only"
            ) from None
        return tuple(args)
    head = (
        f"The input arguments to the {kind}-decorated function {name_of(fun)}{taken} could not"
        " be resolved to positional-only arguments. Binding failed with the error:\n"
    )
    try:
        bound = taken.bind(*args, **kwargs)
    except TypeError as e:
        raise TypeError(f"{head}{e}") from None
    bound.apply_defaults()
    named = [k for k in bound.kwargs if k in kwargs]  # others keep the values they have
    if named:
        raise TypeError(
            f"{head}The following keyword arguments could not be resolved to positions:"
            f" {', '.join(named)}"
        )
    return bound.args


def takes_exactly(fun: Callable[..., Any], count: int) -> bool:
    """Whether a function as it is written has so many parameters, all of which may be given by
    position: there is nothing to bind."""
    if type(fun) is not FunctionType or fun.__dict__:  # what it wraps may say its signature
        return False
    code = fun.__code__
    return (
        code.co_argcount == count and not code.co_kwonlyargcount and not code.co_flags & _VARIADIC
    )


def nondiff_positions(
    fun: Callable[..., Any], argnums: Sequence[int] | int, argnames: Sequence[str] | str
) -> tuple[int, ...]:
    nums = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    names = (argnames,) if isinstance(argnames, str) else tuple(argnames)
    if names:
        order = list(signature(fun).parameters)
        nums += tuple(order.index(n) for n in names)
    return tuple(sorted(set(nums)))


def of_wrapped(custom: Any, name: str) -> Any:
    """The method that gives a rule of another kind to the custom function that this one wraps."""
    wrapped = vars(custom).get("fun")
    if not name.startswith("def") or not hasattr(wrapped, name):
        raise AttributeError(f"{type(custom).__name__!r} object has no attribute {name!r}")
    return getattr(wrapped, name)


class CustomArguments:
    """The arguments of one call of a custom function: fixed ones, and the leaves of the others."""

    def __init__(
        self,
        fun: Callable[..., Any],
        nondiff: Sequence[int],
        args: Sequence[Any],
        kwargs: dict[str, Any],
        kind: str,
    ):
        self.fun = fun
        full = positional(fun, args, kwargs, kind)
        n = len(full)
        where = {i % n for i in nondiff if -n <= i < n}
        self.fixed = {i: full[i] for i in sorted(where)}
        self.size = n
        dynamic = tuple(a for i, a in enumerate(full) if i not in where)
        dynamic, self._restore = without_refs(dynamic, name_of(fun))
        self.count = len(dynamic)
        leaves, self.tree = pytrees.flatten(dynamic)
        # does the function run at once: numbers that no operation made then stay so
        self.runs_as_given = trace_state.is_evaluating() and not any(
            [isinstance(x, Tracer) for x in leaves]
        )
        self._leaves = arrays(leaves, f"the custom function {name_of(fun)}", fun, dynamic, {})
        self.out_tree = pytrees.LEAF
        # the types of the results, where they are known from the function itself
        self.out_avals: list[ShapedArray] | None = None

    def taken(self) -> list[Any]:
        """The leaves, for the call. They are not kept: rules live as long as programs do."""
        leaves, self._leaves = self._leaves, []
        return leaves

    def captured(self) -> Sequence[Any]:
        """What the function reads besides its arguments."""
        avals = [typeof(x) for x in self._leaves]
        return trace_to_jaxpr(self.call, avals, name_of(self.fun)).consts

    def merged(self, dynamic: Sequence[Any]) -> list[Any]:
        """All arguments in order."""
        rest = iter(dynamic if self._restore is None else self._restore(tuple(dynamic)))
        return [self.fixed[i] if i in self.fixed else next(rest) for i in range(self.size)]

    def call(self, *leaves: Any) -> list[Any]:
        """The function itself, of leaves."""
        out = self.fun(*self.merged(pytrees.unflatten(self.tree, leaves)))
        flat, self.out_tree = pytrees.flatten(out)
        found = check_results(flat, out, self.fun)
        self.out_avals = [typeof(x) for x in found]
        return found

    def unlike(self, outs: Sequence[Any], tree: pytrees.PyTreeDef) -> Unlike | None:
        """In what the results of a rule differ from those of the function, if these are known."""
        if self.out_avals is None:
            return None
        got = [typeof(x) for x in outs]
        both = _shown(tree, got), _shown(self.out_tree, self.out_avals)
        if tree != self.out_tree:
            what = "container/pytree structure"
            return Unlike(f"of the same {what}", what, *both)
        if any(a.shape != b.shape or a.dtype != b.dtype for a, b in zip(got, self.out_avals)):
            return Unlike("with leaves of the same shape/dtype", "shapes/dtypes of", *both)
        return None


class Unlike(NamedTuple):
    """What should be the same and is not, and what each side has."""

    same: str
    what: str
    got: str
    expected: str


def _shown(tree: pytrees.PyTreeDef, avals: Sequence[ShapedArray]) -> str:
    return str(pytrees.unflatten(tree, [_Text(type_text(a)) for a in avals]))


class _Text(str):
    """Text that prints as it is, also inside a container."""

    __slots__ = ()
    __repr__ = str.__str__

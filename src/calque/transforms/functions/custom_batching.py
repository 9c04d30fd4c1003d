"""Functions with a batching rule of their own: `custom_vmap`, `sequential_vmap`. The function is
traced when it is called and becomes one equation that holds its program and the rule."""

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from calque.core import pytrees
from calque.core.trace import trace_to_jaxpr, typeof
from calque.transforms.engines.trees import FlatFunction, arrays, handed, name_of, wrapping
from calque.transforms.functions.custom_arguments import of_wrapped, positional
from calque.transforms.functions.loops import map_
from calque.transforms.primitives.call import close_over_tracers
from calque.transforms.primitives.custom_batching import custom_vmap_call_p

P = ParamSpec("P")
R = TypeVar("R")


class _Rule:
    """The user's rule as a function of leaves; the first operands are values that the function
    captured."""

    def __init__(
        self,
        fun: Any,
        rule: Callable[..., Any],
        num_consts: int,
        in_tree: pytrees.PyTreeDef,
        out_tree: Any,
    ) -> None:
        self.fun, self.rule, self.num_consts, self.in_tree, self.out_tree = (
            fun,
            rule,
            num_consts,
            in_tree,
            out_tree,
        )
        self.__name__ = name_of(rule)

    def __repr__(self) -> str:
        return repr(self.rule)

    def __call__(
        self, size: int, batched: Sequence[bool], args: Sequence[Any]
    ) -> tuple[list[Any], list[bool]]:
        if any(batched[: self.num_consts]):
            raise ValueError(
                f"a value that the custom_vmap function {name_of(self.fun)} captures is batched,"
                " which its rule says nothing of. Pass the value as an argument."
            )
        unflat = functools.partial(pytrees.unflatten, self.in_tree)
        in_batched = unflat(batched[self.num_consts :])
        given = unflat(map(handed, args[self.num_consts :]))
        pair = self.rule(size, list(in_batched), *given)
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(
                f"the custom vmap rule {self.__name__} must return a pair (output, which of its"
                f" leaves are batched), got {pair!r}"
            )
        outs, tree = pytrees.flatten(pair[0])
        out_batched, flags_tree = pytrees.flatten(pair[1])
        if tree != flags_tree:
            raise ValueError(
                "structure of output value and output batching specification returned by custom"
                f" vmap rule ({self.__name__}) do not match.\nOutput values: {tree}\nBatching spec:"
                f" {flags_tree}"
            )
        if tree != self.out_tree:
            raise ValueError(
                f"structure of output returned by custom vmap rule ({self.__name__}) does not match"
                " that of original custom-vmapped function.\nOriginal output:"
                f" {self.out_tree}\nRule output: {tree}"
            )
        return outs, [bool(b) for b in out_batched]


class custom_vmap(Generic[P, R]):
    """A function whose behaviour under `vmap` is given by a rule, which `def_vmap` sets.

    Args:
        fun: The function, of arrays and trees of them.

    >>> f = jax.custom_batching.custom_vmap(lambda x, y: x + y)
    >>> @f.def_vmap
    ... def rule(axis_size, in_batched, x, y):
    ...     return x + y + 1, True
    >>> f(1.0, 2.0), jax.vmap(f, (0, None))(jnp.zeros(2), 2.0)
    (Array(3., dtype=float32, weak_type=True), Array([3., 3.], dtype=float32))"""

    def __init__(self, fun: Callable[P, R]):
        wrapping(self, fun)
        self.fun = fun
        self.vmap_rule: Callable[..., Any] | None = None

    def def_vmap(self, vmap_rule: Callable[..., Any]) -> Callable[..., Any]:
        """Sets the rule; works as a decorator.

        Args:
            vmap_rule: `vmap_rule(axis_size, in_batched, *args)` gets the size of the axis, a list
                that tells for each argument (a tree for a tree) whether it is batched, and the
                arguments with the batch dimension first. It gives the result, and a tree that tells
                what of it is batched.

        Returns:
            The rule, as it was given."""
        self.vmap_rule = vmap_rule
        return vmap_rule

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        name = name_of(self.fun)
        if self.vmap_rule is None:
            raise AttributeError(
                f"No batching rule defined for custom_vmap function {name} using def_vmap."
            )
        given = positional(self.fun, args, kwargs, "custom_vmap")
        leaves, tree = pytrees.flatten(given)
        values = arrays(leaves, f"the custom_vmap function {name}", self.fun, given, {})
        flat = FlatFunction(self.fun, pytrees.structure((given, {})), "custom_vmap")
        closed, consts = close_over_tracers(trace_to_jaxpr(flat, [typeof(x) for x in values], name))
        outs = custom_vmap_call_p.bind(
            *consts,
            *values,
            call=closed,
            in_tree=pytrees.structure((consts, given)),
            out_tree=flat.out_tree,
            rule=_Rule(self.fun, self.vmap_rule, len(consts), tree, flat.out_tree),
        )
        return pytrees.unflatten(flat.out_tree, outs)

    if not TYPE_CHECKING:  # to checkers, it has no attributes of its function

        def __getattr__(self, name: str) -> Any:
            return of_wrapped(self, name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)


def sequential_vmap(f: Callable[P, R]) -> custom_vmap[P, R]:
    """Makes a function that `vmap` runs for one example after the other, as a loop.

    Args:
        f: The function.

    Returns:
        A function of the same arguments and results.

    >>> f = jax.custom_batching.sequential_vmap(lambda x: x + 1)
    >>> jax.vmap(f)(jnp.arange(3.0))
    Array([1., 2., 3.], dtype=float32)"""
    mapped = custom_vmap(f)
    of_any: Callable[..., R] = mapped

    def rule(axis_size: int, in_batched: Sequence[Any], *args: Any) -> tuple[Any, Any]:
        leaves, tree = pytrees.flatten(args)
        flags = pytrees.leaves(in_batched)

        def member(rows: Sequence[Any]) -> Any:
            row = iter(rows)
            return of_any(
                *pytrees.unflatten(tree, [next(row) if b else x for x, b in zip(leaves, flags)])
            )

        out = map_(member, [x for x, b in zip(leaves, flags) if b])
        return out, pytrees.tree_map(lambda _: True, out)

    mapped.def_vmap(rule)
    return mapped

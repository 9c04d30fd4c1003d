"""Functions with a derivative of their own, for users: `custom_jvp`."""

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from calque.core import pytrees
from calque.core.primitives import Zero
from calque.core.trace import typeof
from calque.core.tracebacks import boundary
from calque.transforms.engines.trees import check_results, handed, name_of, wrapping
from calque.transforms.engines.zeros import (
    add_tangents,
    as_meant,
    as_seen,
    instantiate,
    tangent_aval,
    zero_like,
)
from calque.transforms.functions.custom_arguments import (
    CustomArguments,
    nondiff_positions,
    of_wrapped,
)
from calque.transforms.primitives.custom_calls import run_as_given
from calque.transforms.primitives.custom_jvp import custom_jvp_call_p
from calque.transforms.primitives.flow import split, type_text

P = ParamSpec("P")
R = TypeVar("R")


class custom_jvp(Generic[P, R]):
    """A function whose derivative is given by a rule.

    `f.defjvp(rule)` or `f.defjvps(...)` sets it. Reverse mode follows from the rule, which must be
    linear in the tangents.

    Args:
        fun: The function, of arrays and trees of them.
        nondiff_argnums: Positions of arguments that the rule takes first, as they are, and that
            have no tangents.
        nondiff_argnames: Names of such arguments.

    >>> f = jax.custom_jvp(lambda x: jnp.sin(x))
    >>> f.defjvps(lambda t, out, x: 2 * jnp.cos(x) * t)
    >>> jax.grad(f)(0.0)
    Array(2., dtype=float32, weak_type=True)"""

    def __init__(
        self,
        fun: Callable[P, R],
        nondiff_argnums: Sequence[int] | int = (),
        nondiff_argnames: Sequence[str] | str = (),
    ):
        wrapping(self, fun)
        self.fun = fun
        self.nondiff_argnums = nondiff_positions(fun, nondiff_argnums, nondiff_argnames)
        self.jvp: Callable[..., Any] | None = None
        self.symbolic_zeros = False

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Sets the rule for the derivative; works as a decorator.

        Args:
            jvp: `jvp(*nondiff_args, primals, tangents)` gives (out, tangent_out).
            symbolic_zeros: Whether tangents that are known to be zero come as `SymbolicZero`
                objects rather than arrays of zeros.

        Returns:
            The rule, as it was given.

        >>> f = jax.custom_jvp(jnp.sin)
        >>> @f.defjvp
        ... def rule(primals, tangents):
        ...     return f(*primals), 2 * jnp.cos(primals[0]) * tangents[0]
        >>> jax.jvp(f, (0.0,), (1.0,))[1]
        Array(2., dtype=float32, weak_type=True)"""
        self.jvp, self.symbolic_zeros = jvp, symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Sets a rule for each argument; the tangent of the result is the sum of their parts.

        Args:
            *jvps: `jvps[i](t, out, *primals)` gives the part that comes from argument i; None where
                it gives none.

        Returns:
            None.

        >>> f = jax.custom_jvp(lambda x, y: x * y)
        >>> f.defjvps(lambda t, out, x, y: t * y, None)
        >>> jax.grad(f, argnums=(0, 1))(2.0, 3.0)
        (Array(3., dtype=float32, weak_type=True), Array(0., dtype=float32, weak_type=True))"""
        if self.nondiff_argnums:
            raise TypeError("Can't use ``defjvps`` with ``nondiff_argnums``.")

        call: Callable[..., Any] = self

        def jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
            out = call(*primals)
            parts = [j(t, out, *primals) for j, t in zip(jvps, tangents) if j is not None]
            if not parts:
                return out, pytrees.tree_map(lambda o: instantiate(zero_like(o)), out)
            return out, functools.reduce(lambda a, b: pytrees.tree_map(_added, a, b), parts)

        self.defjvp(jvp)

    @boundary
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.jvp is None:
            raise AttributeError(
                f"No JVP defined for custom_jvp function {name_of(self.fun)} using defjvp."
                " Give it its rule before it is called: f.defjvp(rule)"
            )
        given = CustomArguments(self.fun, self.nondiff_argnums, args, kwargs, "custom_jvp")
        if given.runs_as_given:
            return run_as_given(self.fun, args, kwargs, "custom_jvp")
        rule = _Rule(given, self.jvp, self.symbolic_zeros)
        outs = custom_jvp_call_p.bind(
            *given.taken(),
            call_jaxpr=given.call,
            jvp=rule,
            num_consts=0,
            name=name_of(self.fun),
            symbolic_zeros=self.symbolic_zeros,
        )
        return pytrees.unflatten(given.out_tree, outs)

    if not TYPE_CHECKING:  # to checkers, it has no attributes of its function

        def __getattr__(self, name: str) -> Any:
            return of_wrapped(self, name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)


def _added(a: Any, b: Any) -> Any:
    if typeof(a).shape != typeof(b).shape:
        raise TypeError(
            "the rules given to defjvps return tangents of different types:"
            f" {typeof(a).str_short()} and {typeof(b).str_short()}"
        )
    return add_tangents(a, b)


class _Rule:
    """The user's jvp rule as a function of leaves."""

    def __init__(self, given: CustomArguments, rule: Callable[..., Any], symbolic_zeros: bool):
        self.given, self.rule, self.symbolic_zeros = given, rule, symbolic_zeros
        self.__name__ = name_of(rule)

    def __call__(
        self, primals: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        given = self.given
        ts = [as_seen(t, self.symbolic_zeros) for t in tangents]

        def unflat(leaves: Iterable[Any]) -> tuple[Any, ...]:
            return tuple(pytrees.unflatten(given.tree, leaves))

        pair = self.rule(*given.fixed.values(), unflat(list(map(handed, primals))), unflat(ts))
        name = name_of(given.fun)
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise TypeError(
                f"Custom JVP rule {self.__name__} for function {name} must produce a pair (list or"
                f" tuple of length two) representing primal and tangent outputs, but got {pair}."
            )
        outs, out_tree = pytrees.flatten(pair[0])
        out_ts, ts_tree = pytrees.flatten(pair[1])
        found = check_results([*outs, *map(as_meant, out_ts)], pair, self.rule)
        if out_tree != ts_tree:
            raise TypeError(
                f"Custom JVP rule {self.__name__} for function {name} must produce primal and"
                f" tangent outputs with equal container (pytree) structures, but got {out_tree} and"
                f" {ts_tree} respectively."
            )
        unlike = given.unlike(found[: len(outs)], out_tree)
        if unlike is not None:
            raise TypeError(
                f"Custom JVP rule {self.__name__} for function {name} must produce a pair (list or"
                " tuple of length two) where the first element represents the primal output (equal"
                f" in value to the output of the custom_jvp-decorated function {name}, and in"
                f" particular {unlike.same}), but instead the JVP rule output's first element had"
                f" {unlike.what}:\n    {unlike.got}\nwhile the custom_jvp-decorated function {name}"
                f" had output {unlike.what}:\n    {unlike.expected}."
            )
        given.out_tree = out_tree
        outs, tangents_out = split(found, len(outs))
        return outs, [self.checked(o, t, i) for i, (o, t) in enumerate(zip(outs, tangents_out))]

    def checked(self, out: Any, t: Any, i: int) -> Any:
        aval = typeof(out)
        expected, got = tangent_aval(aval), t.aval if type(t) is Zero else typeof(t)
        if got.shape != expected.shape or got.dtype != expected.dtype:
            raise TypeError(
                "Custom JVP rule must produce primal and tangent outputs with corresponding shapes"
                f" and dtypes. Expected {type_text(expected)} (tangent type of {type_text(aval)})"
                f" but got {type_text(got)}. This is output {i} of the rule {self.__name__} for"
                f" function {name_of(self.given.fun)}."
            )
        return Zero(expected) if expected is not aval else t

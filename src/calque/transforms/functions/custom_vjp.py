"""Functions with a reverse-mode rule of their own, for users: `custom_vjp`."""

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

import numpy as np

from calque.core import errors, pytrees
from calque.core.arrays import to_array
from calque.core.avals import ShapedArray
from calque.core.config import config
from calque.core.dtypes import is_complex, is_float
from calque.core.primitives import Zero
from calque.core.trace import VALUES, JaxprTracer, typeof
from calque.core.trace_state import Tracer
from calque.core.tracebacks import boundary
from calque.transforms.engines.trees import check_results, handed, name_of, wrapping
from calque.transforms.engines.zeros import as_meant, as_seen, has_tangent, tangent_aval
from calque.transforms.functions.custom_arguments import (
    CustomArguments,
    nondiff_positions,
    of_wrapped,
)
from calque.transforms.primitives.custom_calls import run_as_given
from calque.transforms.primitives.custom_vjp import ForwardResult, custom_vjp_call_p
from calque.transforms.primitives.flow import convert, joined_type, paths, type_text
from calque.transforms.primitives.refs_arguments import without_refs

P = ParamSpec("P")
R = TypeVar("R")


class CustomVJPPrimal:
    """An argument as a forward rule with `symbolic_zeros=True` sees it.

    Args:
        value: The value of the argument.
        perturbed: Whether it is differentiated.

    >>> jax.custom_derivatives.CustomVJPPrimal(2.0, True)
    CustomVJPPrimal(value=2.0, perturbed=True)"""

    __slots__ = ("perturbed", "value")

    def __init__(self, value: Any, perturbed: bool):
        self.value, self.perturbed = value, perturbed

    def __repr__(self) -> str:
        return f"CustomVJPPrimal(value={self.value}, perturbed={self.perturbed})"


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """Takes the values out of a tree of `CustomVJPPrimal`.

    Args:
        tree: What a forward rule with `symbolic_zeros=True` got as an argument.

    Returns:
        The same tree with plain values.

    >>> seen = [jax.custom_derivatives.CustomVJPPrimal(2.0, True)]
    >>> jax.custom_derivatives.custom_vjp_primal_tree_values(seen)
    [2.0]"""
    return pytrees.tree_map(
        lambda leaf: leaf.value, tree, is_leaf=lambda x: isinstance(x, CustomVJPPrimal)
    )


class custom_vjp(Generic[P, R]):
    """A function whose reverse-mode derivative is given by two rules.

    `f.defvjp(fwd, bwd)` sets them. Forward mode works as well when `bwd` is linear in the
    cotangent, as it should be.

    Args:
        fun: The function, of arrays and trees of them.
        nondiff_argnums: Positions of arguments that `bwd` takes first, as they are, and that have
            no cotangents.
        nondiff_argnames: Names of such arguments.

    Differs from JAX:
        Forward mode is not refused.

    >>> f = jax.custom_vjp(lambda x: jnp.sin(x))
    >>> f.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (2 * jnp.cos(x) * ct,))
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
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None
        self.symbolic_zeros = self.optimize_remat = False
        # what forward mode is to run in place of `bwd` turned round: (residuals, tangents) ->
        # tangents of the results
        self.forward: Callable[[Any, Any], Any] | None = None

    def defvjp(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Sets the rules for the derivative.

        Args:
            fwd: Takes the arguments of the function and gives (out, residuals).
            bwd: `bwd(*nondiff_args, residuals, ct)` gives a tuple with a cotangent for each other
                argument.
            symbolic_zeros: Whether `fwd` gets its arguments as `CustomVJPPrimal`, which say if they
                are differentiated, and `bwd` cotangents that are zero as `SymbolicZero`.
            optimize_remat: Whether, under `checkpoint`, the first computation runs the function
                itself, which may cost less than `fwd`, and only the second one runs `fwd`.

        Returns:
            None.

        >>> f = jax.custom_vjp(lambda x: x)
        >>> f.defvjp(lambda x: (x, None), lambda _, ct: (jnp.clip(ct, -1.0, 1.0),))
        >>> jax.grad(lambda x: 10 * f(x))(1.0)
        Array(1., dtype=float32, weak_type=True)"""
        self.fwd, self.bwd, self.symbolic_zeros = fwd, bwd, symbolic_zeros
        self.optimize_remat = optimize_remat

    @boundary
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.fwd is None or self.bwd is None:
            raise AttributeError(
                f"No VJP defined for custom_vjp function {name_of(self.fun)} using defvjp."
                " Give it its rules before it is called: f.defvjp(forward, backward)"
            )
        given = CustomArguments(self.fun, self.nondiff_argnums, args, kwargs, "custom_vjp")
        _no_tracers(given)
        if config.custom_vjp3:
            _no_closures(given)
        if given.runs_as_given:
            return run_as_given(self.fun, args, kwargs, "custom_vjp")
        outs = custom_vjp_call_p.bind(
            *given.taken(),
            call_jaxpr=given.call,
            fwd=_ForwardRule(given, self),
            bwd=self.bwd,
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


def _no_tracers(given: CustomArguments) -> None:
    """The rules get the arguments in nondiff_argnums when their trace has ended."""
    for i, x in given.fixed.items():
        if any(isinstance(leaf, Tracer) for leaf in pytrees.leaves(x)):
            raise errors.UnexpectedTracerError(
                f"Found a traced value in argument {i} of the custom_vjp function"
                f" {name_of(given.fun)}, a position that nondiff_argnums names. The rules would get"
                " it when its trace has ended. Leave the position out of nondiff_argnums, and give"
                " None as its cotangent in the bwd rule."
            )


def _no_closures(given: CustomArguments) -> None:
    """With the flag `custom_vjp3` a function reads no value of a transformation around it."""
    for x in given.captured():
        if isinstance(x, Tracer) and not isinstance(x, JaxprTracer):
            raise errors.UnexpectedTracerError(
                f"the custom_vjp function {name_of(given.fun)} can't close over a value of a"
                f" transformation around it, and reads {x}. Pass it as an argument, or leave"
                " calque_custom_vjp3 off."
            )


class _ForwardRule:
    """The user's forward rule as a function of leaves."""

    def __init__(self, given: CustomArguments, function: "custom_vjp[..., Any]"):
        assert function.fwd is not None and function.bwd is not None
        self.given, self.fwd, self.bwd = given, function.fwd, function.bwd
        self.forward, self.symbolic_zeros = function.forward, function.symbolic_zeros
        self.optimize_remat = function.optimize_remat
        self.__name__ = name_of(self.fwd)

    def __call__(self, primals: Sequence[Any], active: Sequence[bool]) -> ForwardResult:
        given = self.given
        values = [handed(x) for x in primals]
        seen = (
            [CustomVJPPrimal(x, a) for x, a in zip(values, active)]
            if self.symbolic_zeros
            else values
        )
        pair = self.fwd(*given.merged(pytrees.unflatten(given.tree, seen)))
        name = name_of(given.fun)
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise TypeError(
                f"Custom VJP fwd rule {self.__name__} for function {name} must produce a pair (list"
                " or tuple of length two) where the first element represents the primal output and"
                " the second element represents residuals (i.e. values stored from the forward"
                " pass for use on the backward pass), but instead of a pair the fwd rule"
                f" {self.__name__} produced {pair}."
            )
        outs, out_tree = pytrees.flatten(pair[0])
        primal = check_results(outs, pair[0], self.fwd)
        unlike = given.unlike(primal, out_tree)
        if unlike is not None:
            raise TypeError(
                f"Custom VJP fwd rule {self.__name__} for function {name} must produce a pair (list"
                " or tuple of length two) where the first element represents the primal output"
                f" (equal to the output of the custom_vjp-decorated function {name}) and the second"
                " element represents residuals (i.e. values stored from the forward pass for use"
                " on the backward pass), but instead the fwd rule output's first element had"
                f" {unlike.what}:\n    {unlike.got}\nwhile the custom_vjp-decorated function {name}"
                f" had output {unlike.what}:\n    {unlike.expected}\n(got fwd output type"
                f" {unlike.got} which doesn't match the output type {unlike.expected})"
            )
        given.out_tree = out_tree
        kept, restore = without_refs(pair[1], name)
        leaves, res_tree = pytrees.flatten(kept)
        values, plain = _parted(leaves)
        avals = [typeof(x) for x in primals]
        residuals = Residuals(plain, res_tree)
        backward = _BackwardRule(given, self.bwd, self.symbolic_zeros, residuals, restore, avals)
        if self.forward is not None:
            backward.forward = functools.partial(_tangents, backward, self.forward)
        return ForwardResult(primal, values, backward)


def _tangents(
    rule: "_BackwardRule",
    forward: Callable[[Any, Any], Any],
    residuals: Sequence[Any],
    tangents: Sequence[Any],
) -> list[Any]:
    """The tangents of the results by the user's own rule for forward mode."""
    given = pytrees.unflatten(rule.given.tree, [as_seen(t, False) for t in tangents])
    out = forward(rule.residuals.restored(residuals), tuple(given))
    leaves, tree = pytrees.flatten(out)
    if tree != rule.out_tree:
        raise TypeError(
            f"the forward rule {name_of(forward)} of {name_of(rule.given.fun)} must give tangents"
            f" like its results, which are {rule.out_tree}, got {tree}"
        )
    return check_results(leaves, out, forward)


class Residuals:
    """What a forward rule leaves for the backward rule, without the arrays, which are values of the
    program. Anything else (a flag, a number, a name) is handed on as it is."""

    def __init__(self, plain: Sequence[tuple[Any] | None], tree: pytrees.PyTreeDef):
        self.plain, self.tree = plain, tree

    def restored(self, arrays: Sequence[Any]) -> Any:
        """The tree, with these values of the arrays."""
        values = iter(arrays)
        leaves = [handed(next(values)) if p is None else p[0] for p in self.plain]
        return pytrees.unflatten(self.tree, leaves)


def _parted(leaves: Sequence[Any]) -> tuple[list[Any], list[tuple[Any] | None]]:
    """The arrays among the residuals, and for each residual what it is if it is none."""
    leaves = [to_array(x) if isinstance(x, (np.ndarray, np.generic)) else x for x in leaves]
    plain = [None if isinstance(x, VALUES) else (x,) for x in leaves]
    return [x for x, p in zip(leaves, plain) if p is None], plain


class _BackwardRule:
    """The user's backward rule as a function of leaves."""

    def __init__(
        self,
        given: CustomArguments,
        bwd: Callable[..., Any],
        symbolic_zeros: bool,
        residuals: Residuals,
        restore: Callable[[Any], Any] | None,
        avals: list[ShapedArray],
    ):
        self.given, self.bwd, self.symbolic_zeros = given, bwd, symbolic_zeros
        self.residuals, self.out_tree, self.avals = residuals, given.out_tree, avals
        self.restore = restore
        self.forward: Callable[[Sequence[Any], Sequence[Any]], list[Any]] | None = None
        self.__name__ = name_of(bwd)

    def __call__(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        res = self.residuals.restored(residuals)
        res = res if self.restore is None else self.restore(res)
        ct = pytrees.unflatten(self.out_tree, [as_seen(c, self.symbolic_zeros) for c in cts])
        out = self.bwd(*self.given.fixed.values(), res, ct)
        if isinstance(out, list):
            out = tuple(out)
        found = self.leaves(out)
        arrays = iter(check_results([as_meant(c) for c in found if c is not None], out, self.bwd))
        found = [None if c is None else next(arrays) for c in found]
        return [
            self.checked(c, a, i) for i, (c, a) in enumerate(zip(found, self.avals, strict=True))
        ]

    def check_varying(self, aval: Any, got: ShapedArray, i: int) -> None:
        """Inside `shard_map` a cotangent varies along the axes of its argument."""
        nothing: frozenset[Any] = frozenset()
        expected, own = (getattr(a, "vma", nothing) for a in (aval, got))
        if own == expected or (own < expected and got.weak_type):
            return
        remedy = (
            f"calque.lax.psum over {sorted(map(str, own - expected))}"
            if own - expected
            else f"calque.lax.pcast(..., {sorted(map(str, expected - own))}, to='varying')"
        )
        raise ValueError(
            "Custom VJP bwd rule must produce an output with the same type as the args tuple of the"
            f" primal function, but output {i} of the rule {self.__name__} for function"
            f" {name_of(self.given.fun)} varies along the mesh axes {sorted(map(str, own))}, and"
            f" the argument along {sorted(map(str, expected))}: apply {remedy}."
        )

    def leaves(self, out: Any) -> list[Any]:
        """One cotangent for each leaf of the arguments; None stands for zeros in a whole
        subtree."""
        given, structure = pytrees.flatten(out)
        if structure == self.given.tree:
            return given
        try:
            tree = pytrees.unflatten(self.given.tree, range(self.given.tree.num_leaves))
            if not isinstance(out, tuple) or len(out) != self.given.count:
                raise ValueError
            return [c for o, t in zip(out, tree) for c in _cotangents(o, t)]
        except Exception:  # also of containers of the user's that take arrays alone
            raise TypeError(
                f"Custom VJP bwd rule {self.__name__} for function {name_of(self.given.fun)} must"
                " produce an output with the same container (pytree) structure as the args tuple"
                " of the primal function, and in particular must produce a tuple of length equal"
                " to the number of arguments to the primal function, but got bwd output structure"
                f" {pytrees.structure(out)} for primal input structure {self.given.tree}."
            ) from None

    def checked(self, ct: Any, aval: ShapedArray, i: int) -> Any:
        expected = tangent_aval(aval)
        ct = as_meant(ct)
        if ct is None or not has_tangent(aval):
            return Zero(expected)
        got = ct.aval if type(ct) is Zero else typeof(ct)
        if type(ct) is not Zero and not config.disable_bwd_checks:
            self.check_varying(aval, got, i)
        if got.weak_type and got.shape == expected.shape and joined_type(got, expected) is expected:
            return convert(ct, expected)  # a number such as 1
        if got.shape == expected.shape and _same_kind(got.dtype, expected.dtype):
            return ct  # of another precision: it arrives as it is
        if config.disable_bwd_checks:
            return ct
        if got.shape != expected.shape or got.dtype != expected.dtype:
            path = paths(self.given.tree)[i]
            why = (
                "the shapes do not match"
                if got.shape != expected.shape
                else "the dtypes do not match"
            )
            raise ValueError(
                f"Custom VJP bwd rule {self.__name__} for function {name_of(self.given.fun)} must"
                " produce an output with the same type as the args tuple of the primal function,"
                f" but at output{path} the bwd rule produced an output of type"
                f" {type_text(got)} corresponding to an input of type {type_text(aval)}, so {why}"
                + (_ADVICE if self.symbolic_zeros else "")
            )
        return ct


_ADVICE = ". Consider just returning a None here, which stands for zeros of the right type."


def _same_kind(a: Any, b: Any) -> bool:
    return (is_float(a) and is_float(b)) or (is_complex(a) and is_complex(b))


def _cotangents(ct: Any, tree: Any) -> list[Any]:
    """The leaves of a cotangent for an argument of this structure; a single value stands for every
    leaf."""
    if ct is None or not pytrees.is_node_type(type(ct)):
        return [ct] * len(pytrees.leaves(tree))
    return (
        pytrees.prefix_broadcast(ct, tree, is_leaf=lambda x: x is None)
        if _same(ct, tree)
        else _refused()
    )


def _same(ct: Any, tree: Any) -> bool:
    filled = pytrees.tree_map(lambda x: 0, ct, is_leaf=lambda x: x is None)
    try:
        pytrees.structure(filled).flatten_up_to(tree)
    except (ValueError, TypeError):
        return False
    return pytrees.structure(filled) == pytrees.structure(tree) or None in pytrees.leaves(
        ct, is_leaf=lambda x: x is None
    )


def _refused() -> list[Any]:
    raise ValueError

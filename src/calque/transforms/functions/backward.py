"""The backward pass at a point, what `vjp` returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from calque.core import pytrees
from calque.core.avals import ShapedArray
from calque.core.dtypes import float0
from calque.core.guards import guard
from calque.core.jaxprs import Jaxpr
from calque.core.primitives import UndefinedPrimal
from calque.core.trace import typeof
from calque.transforms.engines import linear
from calque.transforms.engines.scopes import transformed
from calque.transforms.engines.transpose import backward_pass
from calque.transforms.engines.trees import FlatFunction, name_of
from calque.transforms.engines.zeros import has_tangent, tangent_aval, with_zeros
from calque.transforms.functions.linearized import derivative_value
from calque.transforms.functions.wanted import DontWant, NotNeeded, delivered
from calque.transforms.primitives.flow import structure_differences
from calque.transforms.primitives.refs import Ref


@guard
class VJP:
    """The transposed derivative of a function at a point: cotangents of the result to cotangents of
    the arguments.

    A container of the residuals it holds, so that it can leave jit, vmap and scan. Those that are
    arguments of the function stand in `args_res`: for each argument its tree, with NotNeeded in
    place of what the derivative does not read. They may be taken out and put back. The others are
    `opaque_residuals`."""

    __slots__ = (
        "_avals",
        "_jaxpr",
        "_nonzeros",
        "_out_avals",
        "_out_tree",
        "_places",
        "_slots",
        "_tree",
        "args_res",
        "name",
        "opaque_residuals",
    )

    def __init__(self, fixed: tuple[Any, ...], args_res: Any, opaque: Any):
        (
            self.name,
            self._jaxpr,
            self._nonzeros,
            self._tree,
            self._out_tree,
            self._avals,
            self._out_avals,
            self._slots,
            self._places,  # of each residual: which flat argument it is, or None
        ) = fixed
        self.args_res, self.opaque_residuals = args_res, opaque

    @property
    def fixed(self) -> tuple[Any, ...]:
        return (
            self.name,
            self._jaxpr,
            self._nonzeros,
            self._tree,
            self._out_tree,
            self._avals,
            self._out_avals,
            self._slots,
            self._places,
        )

    @property
    def jaxpr(self) -> Jaxpr:
        """The linear program that is turned round, of the residuals and the tangents."""
        return self._jaxpr

    def _residuals(self) -> list[Any]:
        """The constants of the tape."""
        opaque = iter(self.opaque_residuals)
        if not any(place is not None for place in self._places):
            return list(opaque)
        try:
            args = pytrees.structure(self._tree.unflatten(range(self._tree.num_leaves)))
            leaves = args.flatten_up_to(tuple(self.args_res))
            if any(i is not None and leaves[i] is None for i in self._places):
                raise ValueError("an argument that the derivative reads has been taken out")
        except ValueError as e:
            raise ValueError(
                f"args_res of the function returned by vjp applied to {self.name} must be a list of"
                f" the arguments, of the structure {self._tree}: {e}"
            ) from None
        return [next(opaque) if i is None else leaves[i] for i in self._places]

    def __call__(self, *cotangents: Any) -> tuple[Any, ...]:
        if len(cotangents) != 1:
            raise TypeError(
                f"The function returned by vjp applied to {self.name} was called with"
                f" {len(cotangents)} arguments, but it takes one: the cotangent of the result of"
                f" {self.name}, of the structure {self._out_tree}. Of a tuple, give a tuple."
            )
        return pytrees.unflatten(self._tree, map(derivative_value, self._found(cotangents[0])))

    def with_refs(self, *wanted: Any) -> Callable[[Any], Any]:
        """Makes the same function with a place for each cotangent.

        Args:
            *wanted: For each argument, in its tree: a Ref that the cotangent is added to,
                `jax.ad.DontWant()` to leave it out, anything else (such as True) to get it as a
                value.

        Returns:
            A function of the cotangent of the result.

        >>> f_vjp = jax.vjp(lambda x, y: x * y, 2.0, 3.0)[1]
        >>> f_vjp.with_refs(True, jax.ad.DontWant())(1.0)
        (Array(3., dtype=float32, weak_type=True), DidntWant())"""
        places, tree = pytrees.flatten(wanted)
        if tree != self._tree:
            raise ValueError(
                f"with_refs of the function returned by vjp applied to {self.name} takes one entry"
                f" for each argument: got {tree}, but the arguments have the structure {self._tree}"
            )

        def f_vjp(cotangent: Any) -> Any:
            cts = self._found(cotangent, [not isinstance(w, DontWant) for w in places])
            found = [delivered(w, ct) for w, ct in zip(places, cts, strict=True)]
            asked = [isinstance(w, (Ref, DontWant)) for w in places]
            return pytrees.unflatten(
                self._tree, [ct if a else derivative_value(ct) for ct, a in zip(found, asked)]
            )

        return f_vjp

    def _found(self, cotangent: Any, wanted: Sequence[bool] | None = None) -> list[Any]:
        """Cotangents of the flat arguments, some of them Zero, from a tree of those of the
        results."""
        cts, tree = pytrees.flatten(cotangent)
        if tree != self._out_tree:
            raise ValueError(
                f"unexpected tree structure of argument to vjp function: got {tree}, but expected"
                f" to match {self._out_tree}, the structure of the output of {self.name}"
                + "".join(
                    f"; at {d.path or 'the top'} the output is {d.left}, the argument {d.right}:"
                    f" {d.why}"
                    for d in structure_differences(self._out_tree, tree)
                )
            )
        for ct, aval in zip(cts, self._out_avals):
            _check_cotangent(ct, aval, self.name)
        return self.flat(cts, wanted)

    def flat(self, cts: Sequence[Any], wanted: Sequence[bool] | None = None) -> list[Any]:
        """Cotangents of the flat arguments, some of them Zero: those that are not wanted are."""
        if wanted is not None:
            wanted = [w for w, a in zip(wanted, self._slots, strict=True) if a is not None]
        used = [ct for ct, nz in zip(cts, self._nonzeros) if nz]
        inputs = [UndefinedPrimal(v.aval) for v in self._jaxpr.invars]
        with transformed("transpose"):
            found = backward_pass(self._jaxpr, self._residuals(), inputs, used, wanted)
        active = [a is not None for a in self._slots]
        return with_zeros(found, active, self._avals)


pytrees.register(
    VJP,
    lambda f: ((f.args_res, f.opaque_residuals), f.fixed),
    lambda fixed, children: VJP(fixed, *children),
)


def _check_cotangent(ct: Any, aval: ShapedArray, name: str) -> None:
    expected, got = tangent_aval(aval), typeof(ct)
    if expected.dtype == float0 and got.shape == expected.shape:
        return  # of an integer: no cotangent says anything
    if got.shape != expected.shape or got.dtype != expected.dtype:
        raise ValueError(
            "unexpected JAX type (e.g. shape/dtype) for argument to vjp function: got"
            f" {got.str_short()}, but expected {expected.str_short()} because the corresponding"
            f" output of the function {name} had JAX type {aval.str_short()}"
        )


def vjp_of(
    flat: FlatFunction,
    values: Sequence[Any],
    tree: pytrees.PyTreeDef,
    with_arguments: bool = False,
) -> tuple[list[Any], VJP]:
    """The flat results and the backward pass. With `with_arguments` it knows which residuals are
    arguments, which have the structure `tree`."""
    avals = tuple([typeof(x) for x in values])
    slots = tuple([i if has_tangent(a) else None for i, a in enumerate(avals)])
    outs, nonzeros, tape = linear.linearize(flat, values, [s is not None for s in slots])
    out_avals = tuple([typeof(o) for o in outs])
    arguments = {id(x): i for i, x in enumerate(values)} if with_arguments else {}
    places = tuple([arguments.get(id(c)) for c in tape.consts])
    fixed = (
        *(name_of(flat.fun), tape.jaxpr, nonzeros, tree, flat.out_tree, avals, out_avals, slots),
        places,
    )
    kept = [x if i in places else NotNeeded() for i, x in enumerate(values)]
    args_res = _arguments(tree, values, kept) if with_arguments else []
    opaque = [c for c, place in zip(tape.consts, places) if place is None]
    return outs, VJP(fixed, args_res, opaque)


def _arguments(tree: pytrees.PyTreeDef, values: Sequence[Any], kept: Sequence[Any]) -> list[Any]:
    """The arguments with NotNeeded in place of what is not; whole where a container of the user's
    takes arrays alone."""
    try:
        return list(pytrees.unflatten(tree, kept))
    except Exception:
        return list(pytrees.unflatten(tree, values))

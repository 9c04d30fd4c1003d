"""Derivatives at a point as values: what `linearize` returns."""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

from calque.core import pytrees
from calque.core.avals import ShapedArray
from calque.core.dtypes import PYTHON_SCALARS
from calque.core.jaxprs import Jaxpr
from calque.core.primitives import UndefinedPrimal, Zero
from calque.core.trace import eval_jaxpr, typeof, typing
from calque.core.tracebacks import boundary
from calque.transforms.engines.scopes import transformed
from calque.transforms.engines.transpose import backward_pass
from calque.transforms.engines.trees import handed
from calque.transforms.engines.zeros import instantiate, tangent_aval, with_zeros
from calque.transforms.functions import debug_nans


def derivative_value(ct: Any) -> Any:
    """A cotangent as users get it: an array, also where it is a number that no operation made."""
    if type(ct) is Zero and getattr(ct.aval, "place", None) is not None:
        return typing.value.retyped(instantiate(ct), ct.aval)
    ct = instantiate(ct)
    if isinstance(ct, PYTHON_SCALARS):
        return debug_nans.as_array(ct, "a constant cotangent")
    return handed(ct)


class LinearProgram(NamedTuple):
    """A derivative at a point, but for the residuals: its program, and what goes in and out."""

    name: str
    jaxpr: Jaxpr
    active: tuple[bool, ...]
    nonzeros: tuple[bool, ...]
    in_tree: pytrees.PyTreeDef
    out_tree: pytrees.PyTreeDef
    avals: tuple[ShapedArray, ...]
    out_avals: tuple[ShapedArray, ...]
    names: tuple[str, ...]

    def __str__(self) -> str:
        return str(self.jaxpr)

    def __call__(self, residuals: Sequence[Any], *tangents: Any) -> Any:
        ts, tree = pytrees.flatten((tangents, {}))
        if tree != self.in_tree:
            args, _ = pytrees.unflatten(self.in_tree, [0] * self.in_tree.num_leaves)
            raise TypeError(
                f"Tree structure of the tangents {pytrees.structure(tangents)} does not match that"
                f" of the primals {pytrees.structure(args)}: apply the linearized {self.name}"
                " to one tangent for each primal"
            )
        for t, a, name in zip(ts, self.avals, self.names, strict=True):
            got, expected = typeof(t), tangent_aval(a)
            if got.shape != expected.shape or got.dtype != expected.dtype:
                raise ValueError(
                    "linearized function called on tangent values inconsistent with the original"
                    f" primal values: got tangent type {got.str_short()} for the argument {name}"
                    f" of {self.name} of type {a.str_short()}, expected {expected.str_short()}"
                )
            axes = typing.value.casts(a, got)
            if axes:
                raise ValueError(
                    f"linearized function called on a tangent for the argument {name} of"
                    f" {self.name} that varies along the mesh axes {axes}, and the primal value"
                    f" does not: {got.str_short()}, {a.str_short()}. This might be fixed by"
                    f" applying `jax.lax.pcast(..., {axes}, to='varying')` to the primal value"
                    " passed to linearize"
                )
        given = [t for t, a in zip(ts, self.active) if a]
        found = eval_jaxpr(self.jaxpr, residuals, *given)
        outs = with_zeros(found, self.nonzeros, self.out_avals)
        return pytrees.unflatten(self.out_tree, map(derivative_value, outs))


class Linearized:
    """The derivative of a function at a point: tangents of the arguments to tangents of the result.

    A container of the residuals it holds, so that it can leave jit, vmap and scan. `func` is the
    function of residuals and tangents; `str(func.args[0])` shows its program."""

    __slots__ = ("_program", "_residuals")

    def __init__(self, program: LinearProgram, residuals: Sequence[Any]):
        self._program, self._residuals = program, residuals

    @boundary
    def __call__(self, *tangents: Any) -> Any:
        """The derivative at the point of linearisation, applied to tangents."""
        return self._program(self._residuals, *tangents)

    @property
    def func(self) -> functools.partial[Any]:
        """The function of residuals and tangents, bound to its program."""
        return functools.partial(LinearProgram.__call__, self._program)

    @property
    def __name__(self) -> str:
        return f"derivative of {self._program.name}"

    @property
    def args(self) -> tuple[Any, ...]:
        """The residuals."""
        return tuple(self._residuals)


class TransposedProgram(NamedTuple):
    """A linear function turned round, but for the values that it captured."""

    name: str
    jaxpr: Jaxpr
    in_tree: pytrees.PyTreeDef
    out_tree: pytrees.PyTreeDef

    def __call__(self, consts: Sequence[Any], cotangents: Any) -> Any:
        cts, tree = pytrees.flatten(cotangents)
        if tree != self.out_tree:
            raise TypeError(
                f"cotangent tree does not match function output, expected {self.out_tree} but got"
                f" {tree}, in the transpose of {self.name}"
            )
        for ct, v in zip(cts, self.jaxpr.outvars):
            if typeof(ct).shape != v.aval.shape or typeof(ct).dtype != v.aval.dtype:
                raise TypeError(
                    "cotangent type does not match function output, expected"
                    f" {v.aval.str_short()} but got {typeof(ct).str_short()}, in the transpose of"
                    f" {self.name}"
                )
        unknown = [UndefinedPrimal(v.aval) for v in self.jaxpr.invars]
        with transformed("transpose"):
            found = backward_pass(self.jaxpr, consts, unknown, cts)
        return pytrees.unflatten(self.in_tree, map(derivative_value, found))


class LinearTransposed:
    """What `linear_transpose` returns: cotangents of the result to cotangents of the arguments. A
    container of what the function captured, so that it can leave jit and be an argument."""

    __slots__ = ("_consts", "_program")

    def __init__(self, program: TransposedProgram, consts: Sequence[Any]):
        self._program, self._consts = program, consts

    @boundary
    def __call__(self, cotangents: Any) -> Any:
        """Cotangents of the result to cotangents of the arguments."""
        return self._program(self._consts, cotangents)

    @property
    def __name__(self) -> str:
        return f"transpose of {self._program.name}"


pytrees.register(
    LinearTransposed,
    lambda f: (f._consts, f._program),
    lambda program, consts: LinearTransposed(program, list(consts)),
)
pytrees.register(
    Linearized,
    lambda f: (f._residuals, f._program),
    lambda program, residuals: Linearized(program, list(residuals)),
)

"""Functions with a reverse-mode rule of their own: `custom_vjp`, and the primitives
`custom_vjp_call` and `custom_lin`.

Under differentiation the forward rule is called at once. What it leaves for the backward rule goes
on the tape as one equation, `custom_lin`, whose transpose is the backward rule. Away from a tape,
in forward mode, that equation is the transpose of the backward rule: so one definition serves both
modes."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from calque.core import pytrees, trace_state
from calque.core.arrays import to_array, to_numpy
from calque.core.avals import ShapedArray
from calque.core.jaxprs import ClosedJaxpr
from calque.core.primitives import NotApplicable, Primitive, UndefinedPrimal, Zero, do
from calque.core.trace import VALUES, trace_to_jaxpr, typeof
from calque.core.tracebacks import boundary
from calque.ops.common import front, instantiate
from calque.transforms.engines.axes import Axis
from calque.transforms.engines.batching import Dim, batch, placed
from calque.transforms.engines.linear import Tape
from calque.transforms.engines.transpose import backward_pass
from calque.transforms.engines.trees import check_results, handed, name_of
from calque.transforms.engines.zeros import (
    has_tangent,
    nonzero,
    only_nonzero,
    tangent_aval,
    with_zeros,
    zero_like,
)
from calque.transforms.primitives.custom_jvp import (
    Arguments,
    CustomCallPrimitive,
    FlatCall,
    as_meant,
    as_seen,
    batched_call,
    call_meaning,
    call_shape,
    call_transpose,
    nondiff_positions,
    refuse_closures,
)
from calque.transforms.primitives.flow import convert, joined_type, split, type_text
from calque.transforms.primitives.refs_arguments import without_refs


class Forward(NamedTuple):
    """What a forward rule gives: results, residuals, and the backward rule (residuals, cotangents)
    -> cotangents of arguments."""

    outs: list[Any]
    residuals: list[Any]
    backward: "Backward"


Backward = Callable[[Sequence[Any], Sequence[Any]], list[Any]]


# ---------------------------------------------------------------- custom_lin: the linear map whose


class _LinearPrimitive(Primitive):
    """Recorded on a tape as it is; anywhere else it is worked out at once."""

    __slots__ = ()

    def bind(self, *args: Any, **params: Any) -> Any:
        trace = trace_state.top_trace(args)
        if isinstance(trace, Tape):
            return trace.process(self, args, params)
        return _forward(args, **params)


def _forward(
    args: Sequence[Any],
    *,
    backward: Backward,
    num_res: int,
    active: Sequence[bool],
    in_avals: Any,
    out_avals: Any,
    name: str,
) -> list[Any]:
    """The tangents of the results: the backward rule, transposed."""
    residuals, tangents = split(args, num_res)
    wanted = [a for a in out_avals if has_tangent(a)]

    def rule(*cts: Any) -> list[Any]:
        found = backward(residuals, with_zeros(cts, [has_tangent(a) for a in out_avals], out_avals))
        return [instantiate(ct) for ct, a in zip(found, active) if a]

    try:
        closed = trace_to_jaxpr(rule, [tangent_aval(a) for a in wanted], name)
        outs = backward_pass(
            closed.jaxpr, closed.consts, [UndefinedPrimal(a) for a in closed.in_avals], tangents
        )
    except NotImplementedError as e:
        raise TypeError(
            f"can't apply forward-mode autodiff (jvp) to the custom_vjp function {name}: its bwd"
            f" rule cannot be transposed ({e}). Write the rule with operations that are linear in"
            " the cotangent, or use custom_jvp."
        ) from e
    return [instantiate(o) for o in outs]


def _lin_meaning(*args: np.ndarray, **params: Any) -> list[np.ndarray]:
    with trace_state.evaluating():
        return [to_numpy(o) for o in _forward(args, **params)]


def _lin_shape(
    *avals: ShapedArray, out_avals: Sequence[ShapedArray], **_: Any
) -> list[ShapedArray]:
    return [tangent_aval(a) for a in out_avals if has_tangent(a)]


def _lin_transpose(
    cts: Sequence[Any],
    *args: Any,
    backward: Backward,
    num_res: int,
    active: Sequence[bool],
    in_avals: Any,
    out_avals: Any,
    name: str,
) -> list[Any]:
    given = iter(cts)
    full = [next(given) if has_tangent(a) else Zero(tangent_aval(a)) for a in out_avals]
    found = [ct for ct, a in zip(backward(args[:num_res], full), active) if a]
    return [None] * num_res + [
        ct if type(x) is UndefinedPrimal else None for x, ct in zip(args[num_res:], found)
    ]


_ON_TAPE = NotApplicable(
    "custom_lin stands on tapes only, where nothing is differentiated or batched"
)

custom_lin_p = _LinearPrimitive(
    "custom_lin",
    meaning=_lin_meaning,
    shape=_lin_shape,
    jvp=_ON_TAPE,
    transpose=_lin_transpose,
    batch=_ON_TAPE,
    multiple_results=True,
    hidden=("active", "in_avals", "out_avals", "name"),
)


# ---------------------------------------------------------------- custom_vjp_call


def _jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    call_jaxpr: Any,
    fwd: Any,
    bwd: Any,
    num_consts: int,
    name: str,
    symbolic_zeros: bool,
) -> Any:
    if not any(nonzero(tangents)):
        params = {
            "fwd": fwd,
            "bwd": bwd,
            "num_consts": num_consts,
            "name": name,
            "symbolic_zeros": symbolic_zeros,
        }
        outs = custom_vjp_call_p.bind(*primals, call_jaxpr=call_jaxpr, **params)
        return outs, [zero_like(o) for o in outs]
    refuse_closures(name, tangents[:num_consts], "custom_vjp")
    primals, tangents = primals[num_consts:], tangents[num_consts:]
    active = nonzero(tangents)
    forward: Forward = fwd(primals, active)
    out_avals = tuple([typeof(o) for o in forward.outs])
    found = iter(
        custom_lin_p.bind(
            *forward.residuals,
            *only_nonzero(tangents),
            backward=forward.backward,
            num_res=len(forward.residuals),
            active=active,
            in_avals=tuple([typeof(x) for x in primals]),
            out_avals=out_avals,
            name=name,
        )
    )
    return forward.outs, [
        next(found) if has_tangent(a) else Zero(tangent_aval(a)) for a in out_avals
    ]


def _batch(
    axis: Axis,
    args: Sequence[Any],
    dims: Sequence[Dim],
    *,
    call_jaxpr: ClosedJaxpr | FlatCall,
    fwd: Any,
    bwd: Any,
    num_consts: int,
    name: str,
    symbolic_zeros: bool,
) -> Any:
    outs = custom_vjp_call_p.bind(
        *args,
        call_jaxpr=batched_call(axis, call_jaxpr, dims),
        fwd=_BatchedForward(axis, fwd, tuple(dims[num_consts:])),
        bwd=bwd,
        num_consts=num_consts,
        name=name,
        symbolic_zeros=symbolic_zeros,
    )
    return outs, [0] * len(outs)


class _BatchedForward:
    """A forward rule over whole batches."""

    def __init__(self, axis: Axis, rule: Any, dims: tuple[Dim, ...]):
        self.axis, self.rule, self.dims = axis, rule, dims
        self.__name__ = name_of(rule)

    def __call__(self, primals: Sequence[Any], active: Sequence[bool]) -> Forward:
        inner: list[Forward] = []

        def flat(*args: Any) -> list[Any]:
            found = self.rule(args, active)
            inner[:] = [found]
            return [*found.outs, *found.residuals]

        found, dims = batch(flat, self.axis, primals, self.dims)
        n = len(inner[0].outs)
        outs = [front(o, d, self.axis.size) for o, d in zip(found[:n], dims)]
        backward = _BatchedBackward(self.axis, inner[0].backward, tuple(dims[n:]), self.dims)
        return Forward(outs, found[n:], backward)


class _BatchedBackward:
    """A backward rule over whole batches: cotangents of arguments that all lanes share are
    summed."""

    def __init__(
        self, axis: Axis, rule: Backward, res_dims: tuple[Dim, ...], arg_dims: tuple[Dim, ...]
    ):
        self.axis, self.rule, self.res_dims, self.arg_dims = axis, rule, res_dims, arg_dims

    def __call__(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        n, mask, zeros = len(residuals), nonzero(cts), list[Any]()
        lane = [
            Zero(ShapedArray(ct.aval.shape[1:], ct.aval.dtype)) if type(ct) is Zero else None
            for ct in cts
        ]

        def flat(*args: Any) -> list[Any]:
            given = iter(args[n:])
            found = self.rule(args[:n], [next(given) if m else z for m, z in zip(mask, lane)])
            zeros[:] = [ct if type(ct) is Zero else None for ct in found]
            return only_nonzero(found)

        dims = [*self.res_dims, *(0 for m in mask if m)]
        found, found_dims = batch(flat, self.axis, [*residuals, *only_nonzero(cts)], dims)
        rest = iter(zip(found, found_dims))
        return [self.given_back(z, d, rest) for z, d in zip(zeros, self.arg_dims, strict=True)]

    def given_back(self, zero: Any, dim: Dim, rest: Any) -> Any:
        size = self.axis.size
        if zero is not None:
            shape = zero.aval.shape
            full = shape if dim is None else (*shape[:dim], size, *shape[dim:])
            return Zero(ShapedArray(full, zero.aval.dtype))
        x, d = next(rest)
        if dim is not None:
            return placed(x, d, dim, size)
        return do.reduce_sum(front(x, d, size), axes=(0,))


custom_vjp_call_p = CustomCallPrimitive(
    "custom_vjp_call",
    meaning=call_meaning,
    shape=call_shape,
    jvp=_jvp,
    transpose=call_transpose,
    batch=_batch,
    multiple_results=True,
    hidden=("num_consts",),
)


# ---------------------------------------------------------------- for users


class CustomVJPPrimal:
    """An argument as a forward rule with `symbolic_zeros=True` sees it: its value, and whether it
    is differentiated."""

    __slots__ = ("perturbed", "value")

    def __init__(self, value: Any, perturbed: bool):
        self.value, self.perturbed = value, perturbed

    def __repr__(self) -> str:
        return f"CustomVJPPrimal(value={self.value}, perturbed={self.perturbed})"


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """The values of a tree of CustomVJPPrimal."""
    return pytrees.tree_map(
        lambda leaf: leaf.value, tree, is_leaf=lambda x: isinstance(x, CustomVJPPrimal)
    )


class custom_vjp:
    """A function whose reverse-mode derivative is given by two rules.

    >>> @calque.custom_vjp
    ... def f(x, y):
    ...     return jnp.sin(x) * y
    >>> def f_fwd(x, y):
    ...     return f(x, y), (jnp.cos(x), jnp.sin(x), y)
    >>> def f_bwd(res, ct):
    ...     cos_x, sin_x, y = res
    ...     return (cos_x * ct * y, sin_x * ct)
    >>> f.defvjp(f_fwd, f_bwd)

    Forward mode works as well when the backward rule is linear in `ct`, as it should be."""

    def __init__(
        self,
        fun: Callable[..., Any],
        nondiff_argnums: Sequence[int] | int = (),
        nondiff_argnames: Sequence[str] | str = (),
    ):
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.nondiff_argnums = nondiff_positions(fun, nondiff_argnums, nondiff_argnames)
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None
        self.symbolic_zeros = False

    def defvjp(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """The rules: `fwd(*args)` gives (out, residuals), `bwd(*nondiff_args, residuals, ct)` a
        cotangent for each other argument.

        `optimize_remat` lets a compiler run `fwd` in place of the function; the results are the
        same with and without.
        """
        self.fwd, self.bwd, self.symbolic_zeros = fwd, bwd, symbolic_zeros

    @boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.fwd is None or self.bwd is None:
            raise AttributeError(
                f"No VJP defined for custom_vjp function {name_of(self.fun)} using defvjp."
            )
        given = Arguments(self.fun, self.nondiff_argnums, args, kwargs)
        outs = custom_vjp_call_p.bind(
            *given.leaves,
            call_jaxpr=given.call,
            fwd=_ForwardRule(given, self.fwd, self.bwd, self.symbolic_zeros),
            bwd=self.bwd,
            num_consts=0,
            name=name_of(self.fun),
            symbolic_zeros=self.symbolic_zeros,
        )
        return pytrees.unflatten(given.out_tree, outs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)


class _ForwardRule:
    """The user's forward rule as a function of leaves."""

    def __init__(
        self,
        given: Arguments,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool,
    ):
        self.given, self.fwd, self.bwd, self.symbolic_zeros = given, fwd, bwd, symbolic_zeros
        self.__name__ = name_of(fwd)

    def __call__(self, primals: Sequence[Any], active: Sequence[bool]) -> Forward:
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
        outs, given.out_tree = pytrees.flatten(pair[0])
        kept, restore = without_refs(pair[1], name)
        leaves, res_tree = pytrees.flatten(kept)
        values, plain = _parted(leaves)
        avals = [typeof(x) for x in primals]
        return Forward(
            check_results(outs, pair[0], self.fwd),
            values,
            _BackwardRule(
                given, self.bwd, self.symbolic_zeros, Residuals(plain, res_tree), restore, avals
            ),
        )


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
        given: Arguments,
        bwd: Callable[..., Any],
        symbolic_zeros: bool,
        residuals: Residuals,
        restore: Callable[[Any], Any] | None,
        avals: list[ShapedArray],
    ):
        self.given, self.bwd, self.symbolic_zeros = given, bwd, symbolic_zeros
        self.residuals, self.out_tree, self.avals = residuals, given.out_tree, avals
        self.restore = restore
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

    def leaves(self, out: Any) -> list[Any]:
        """One cotangent for each leaf of the arguments; None stands for zeros in a whole
        subtree."""
        tree = pytrees.unflatten(self.given.tree, range(self.given.tree.num_leaves))
        try:
            if not isinstance(out, tuple) or len(out) != len(self.given.dynamic):
                raise ValueError
            return [c for o, t in zip(out, tree) for c in _cotangents(o, t)]
        except (ValueError, TypeError):
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
        if got.weak_type and got.shape == expected.shape and joined_type(got, expected) is expected:
            return convert(ct, expected)  # a number such as 1
        if got.shape != expected.shape or got.dtype != expected.dtype:
            path = pytrees.flatten_with_path(
                pytrees.unflatten(self.given.tree, range(self.given.tree.num_leaves))
            )[0][i][0]
            why = (
                "the shapes do not match"
                if got.shape != expected.shape
                else "the dtypes do not match"
            )
            raise ValueError(
                f"Custom VJP bwd rule {self.__name__} for function {name_of(self.given.fun)} must"
                " produce an output with the same type as the args tuple of the primal function,"
                f" but at output{pytrees.keystr(path)} the bwd rule produced an output of type"
                f" {type_text(got)} corresponding to an input of type {type_text(aval)}, so {why}"
            )
        return ct


def _cotangents(ct: Any, tree: Any) -> list[Any]:
    """The leaves of a cotangent for an argument of this structure."""
    if ct is None:
        return [None] * len(pytrees.leaves(tree))
    return (
        pytrees.prefix_broadcast(ct, tree, is_leaf=lambda x: x is None)
        if _same(ct, tree)
        else _refused()
    )


def _same(ct: Any, tree: Any) -> bool:
    filled = pytrees.tree_map(lambda x: 0, ct, is_leaf=lambda x: x is None)
    try:
        pytrees.structure(filled)._spec.flatten_up_to(tree)
    except (ValueError, TypeError):
        return False
    return pytrees.structure(filled) == pytrees.structure(tree) or None in pytrees.leaves(
        ct, is_leaf=lambda x: x is None
    )


def _refused() -> list[Any]:
    raise ValueError

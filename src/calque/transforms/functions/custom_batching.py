"""Functions with a batching rule of their own: `custom_vmap`, `sequential_vmap`, and the primitive
`custom_vmap_call`.

The function is traced when it is called and becomes one equation that holds its program and the
rule. `vmap` asks the rule; forward mode differentiates the program and the rule alike, so that
`vmap` of `jvp` asks the rule's derivative; reverse mode takes the values from the equation and the
derivative from the program."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calque.core import pytrees, reference, trace_state
from calque.core.avals import ShapedArray
from calque.core.jaxprs import ClosedJaxpr
from calque.core.trace import eval_jaxpr, trace_to_jaxpr, typeof
from calque.ops.common import front
from calque.transforms.engines.axes import Axis, AxisPrimitive
from calque.transforms.engines.batching import Dim
from calque.transforms.engines.jvp import jvp, jvp_jaxpr
from calque.transforms.engines.linear import linearize_jaxpr
from calque.transforms.engines.trees import FlatFunction, arrays, handed, name_of
from calque.transforms.engines.zeros import (
    instantiate,
    nonzero,
    only_nonzero,
    value_has_tangent,
    with_zeros,
    zero_like,
)
from calque.transforms.functions.loops import map_
from calque.transforms.primitives.call import close_over_tracers
from calque.transforms.primitives.custom_jvp import call_transpose, positional
from calque.transforms.primitives.lanes import together_rules

# (size of the axis, which operands are batched, operands) -> (results, which of them are batched);
# batch dimensions are first
FlatRule = Callable[[int, Sequence[bool], Sequence[Any]], tuple[list[Any], list[bool]]]

# ---------------------------------------------------------------- the primitive


class _CustomVmapPrimitive(AxisPrimitive):
    """The program in the parameter `call`; evaluated, it is the program itself."""

    __slots__ = ()

    def bind(self, *args: Any, **params: Any) -> Any:
        trace = trace_state.top_trace(args)
        if trace.level == 0:
            return eval_jaxpr(params["call"].jaxpr, params["call"].consts, *args)
        return trace.process(self, args, params)


def _meaning(*args: np.ndarray, call: ClosedJaxpr, **_: Any) -> list[np.ndarray]:
    return reference.run(call, *args)


def _shape(*avals: ShapedArray, call: ClosedJaxpr, **_: Any) -> list[ShapedArray]:
    return call.out_avals


def _transpose(cts: Sequence[Any], *args: Any, call: ClosedJaxpr, **_: Any) -> list[Any]:
    return call_transpose(cts, *args, call_jaxpr=call)


def _batch(
    axis: Axis,
    args: Sequence[Any],
    dims: Sequence[Dim],
    *,
    call: ClosedJaxpr,
    rule: FlatRule,
    **_: Any,
) -> Any:
    batched = [d is not None for d in dims]
    rows = [x if d is None else front(x, d, axis.size) for x, d in zip(args, dims)]
    outs, out_batched = rule(axis.size, batched, rows)
    for i, (o, b, aval) in enumerate(zip(outs, out_batched, call.out_avals, strict=True)):
        expected = (axis.size, *aval.shape) if b else aval.shape
        if typeof(o).shape != expected:
            raise ValueError(
                f"the batching rule {name_of(rule)} must return a value of shape {expected} at"
                f" output {i} ({'batched' if b else 'not batched'}, for results of type"
                f" {aval.str_short()}), got {typeof(o).str_short()}"
            )
    return outs, [0 if b else None for b in out_batched]


def _jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    call: ClosedJaxpr,
    in_tree: Any,
    out_tree: Any,
    rule: FlatRule,
) -> Any:
    mask = nonzero(tangents)
    both, out_mask = jvp_jaxpr(call, mask, True)
    outs = custom_vmap_call_p.bind(
        *primals,
        *only_nonzero(tangents),
        call=both,
        in_tree=in_tree,
        out_tree=out_tree,
        rule=_JvpRule(rule, mask),
    )
    n = len(out_mask)
    return outs[:n], with_zeros(outs[n:], out_mask, call.out_avals)


def _linearize(
    primals: Sequence[Any], tangents: Sequence[Any], *, call: ClosedJaxpr, **params: Any
) -> Any:
    outs = custom_vmap_call_p.bind(*primals, call=call, **params)
    lin = linearize_jaxpr(call, nonzero(tangents))
    if not any(lin.nonzeros):
        return outs, [zero_like(o) for o in outs]
    n = len(outs)
    results = eval_jaxpr(lin.primal.jaxpr, lin.primal.consts, *primals)
    residuals = lin.residuals(primals, results[:n], results[n:])
    found = eval_jaxpr(lin.linear.jaxpr, lin.linear.consts, *residuals, *only_nonzero(tangents))
    return outs, with_zeros(found, lin.nonzeros, call.out_avals)


class _JvpRule:
    """The derivative of a batching rule. A primal and its tangent are both batched, or neither
    is."""

    def __init__(self, rule: FlatRule, mask: tuple[bool, ...]):
        self.rule, self.mask = rule, mask
        self.__name__ = name_of(rule)

    def __call__(
        self, size: int, batched: Sequence[bool], args: Sequence[Any]
    ) -> tuple[list[Any], list[bool]]:
        n = len(self.mask)
        given = iter(zip(args[n:], batched[n:]))
        primals, tangents, flags = [], [], list[bool]()
        for x, b, m in zip(args[:n], batched[:n], self.mask):
            t, tb = next(given) if m else (None, False)
            flag = b or tb
            primals.append(front(x, None, size) if flag and not b else x)
            tangents.append(
                front(t, None, size)
                if flag and m and not tb
                else t
                if m
                else zero_like(primals[-1])
            )
            flags.append(flag)
        out_flags: list[bool] = []

        def flat(*xs: Any) -> list[Any]:
            outs, out_flags[:] = self.rule(size, flags, xs)
            return outs

        outs, out_tangents = jvp(flat, primals, tangents)
        kept = [i for i, o in enumerate(outs) if value_has_tangent(o)]
        return [*outs, *(instantiate(out_tangents[i]) for i in kept)], [
            *out_flags,
            *(out_flags[i] for i in kept),
        ]


custom_vmap_call_p = _CustomVmapPrimitive(
    "custom_vmap_call",
    meaning=_meaning,
    shape=_shape,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    linearize=_linearize,
    multiple_results=True,
)
together_rules["custom_vmap_call"] = lambda params: True

# ---------------------------------------------------------------- for users


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


class custom_vmap:
    """A function whose behaviour under `vmap` is given by a rule.

    >>> @calque.custom_batching.custom_vmap
    ... def f(x, y):
    ...     return x + y
    >>> @f.def_vmap
    ... def rule(axis_size, in_batched, x, y):
    ...     return x + y + 1, True
    >>> f(1.0, 2.0), calque.vmap(f, (0, None))(jnp.zeros(2), 2.0)
    (Array(3., dtype=float32, weak_type=True), Array([3., 3.], dtype=float32))

    The rule gets the size of the axis, a list that tells for each argument (a tree for a tree)
    whether it is batched, and the arguments with batch dimensions first; it returns the result and
    a tree that tells what of it is batched.
    """

    def __init__(self, fun: Callable[..., Any]):
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.vmap_rule: Callable[..., Any] | None = None

    def def_vmap(self, vmap_rule: Callable[..., Any]) -> Callable[..., Any]:
        """The rule: `vmap_rule(axis_size, in_batched, *args)` gives (out, out_batched)."""
        self.vmap_rule = vmap_rule
        return vmap_rule

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = name_of(self.fun)
        if self.vmap_rule is None:
            raise AttributeError(
                f"No batching rule defined for custom_vmap function {name} using def_vmap."
            )
        given = positional(self.fun, args, kwargs)
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

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)


def sequential_vmap(f: Callable[..., Any]) -> custom_vmap:
    """A function that `vmap` runs for one member of the batch after the other, as a loop.

    >>> f = calque.custom_batching.sequential_vmap(lambda x: x + 1)
    >>> calque.vmap(f)(jnp.arange(3.0))
    Array([1., 2., 3.], dtype=float32)"""
    mapped = custom_vmap(f)

    def rule(axis_size: int, in_batched: Sequence[Any], *args: Any) -> tuple[Any, Any]:
        leaves, tree = pytrees.flatten(args)
        flags = pytrees.leaves(in_batched)

        def member(rows: Sequence[Any]) -> Any:
            row = iter(rows)
            return mapped(
                *pytrees.unflatten(tree, [next(row) if b else x for x, b in zip(leaves, flags)])
            )

        out = map_(member, [x for x, b in zip(leaves, flags) if b])
        return out, pytrees.tree_map(lambda _: True, out)

    mapped.def_vmap(rule)
    return mapped

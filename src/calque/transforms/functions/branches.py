"""Choice between functions, for users: `cond` and `switch`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from calque.core import pytrees
from calque.core.arrays import is_concrete
from calque.core.avals import ShapedArray
from calque.core.config import config
from calque.core.dtypes import bool_, is_integer
from calque.core.primitives import do
from calque.core.trace import typeof, typing
from calque.core.tracebacks import boundary
from calque.ops.common import operand, scalar_of
from calque.transforms.engines.trees import arrays, name_of
from calque.transforms.primitives import flow
from calque.transforms.primitives.cond import bind_cond
from calque.transforms.primitives.flow import Staged
from calque.transforms.primitives.found_sizes import recomputed
from calque.transforms.primitives.refs import discharged_branches
from calque.transforms.primitives.refs_arguments import with_refs_among_operands

if TYPE_CHECKING:
    from calque.core.generics import R, Ts
    from calque.core.types import ArrayLike

_absent = object()


@boundary
def switch(
    index: ArrayLike,
    branches: Sequence[Callable[..., R]],
    *operands: Any,
    operand: Any = _absent,
) -> R:
    """Gives the result of one of several functions; a number says of which.

    All are traced, and one runs.

    Args:
        index: An integer; out of range it takes the first or the last function.
        branches: The functions; their results have the same tree, shapes and dtypes.
        *operands: The arguments of all.
        operand: A single argument of all, by name.

    Returns:
        What the function returns.

    >>> lax.switch(1, [lambda x: x, lambda x: -x], 3.0)
    Array(-3., dtype=float32, weak_type=True)"""
    if not all(callable(b) for b in branches):
        raise TypeError("lax.switch: branches argument should be a sequence of callables.")
    operands = _all_operands(operands, operand)
    which = _scalar(index, "Index", "an integer")
    if not is_integer(typeof(which).dtype):
        raise TypeError(
            f"Index type must be an integer, got {which} as {typeof(which).dtype.name}. switch"
            " takes the number of a branch: round it and use astype(int)"
        )
    if not branches:
        raise ValueError("Empty branch sequence: switch needs at least one function")
    if len(branches) == 1:
        return branches[0](*operands)
    if is_concrete(which):
        chosen = min(max(int(which), 0), len(branches) - 1)
        if config.disable_jit:
            return branches[chosen](*operands)
        which = scalar_of(np.dtype("int32"), chosen)
    else:
        own = typeof(which).dtype
        wide = own if is_integer(own) and own.itemsize >= 4 else np.dtype("int32")
        which = flow.convert(which, ShapedArray((), wide))
        which = do.clamp(scalar_of(wide, 0), which, scalar_of(wide, len(branches) - 1))
        which = flow.convert(which, ShapedArray((), np.dtype("int32")))
    return _choose(
        "switch", which, branches, [f"branch {i}" for i in range(len(branches))], operands
    )


@overload
def cond(
    pred: ArrayLike,
    true_fun: Callable[[*Ts], R],
    false_fun: Callable[[*Ts], Any],
    *operands: *Ts,
) -> R: ...


@overload
def cond(
    pred: ArrayLike,
    true_fun: Callable[..., R],
    false_fun: Callable[..., Any],
    *operands: Any,
    operand: Any = ...,
) -> R: ...


@overload
def cond(
    pred: ArrayLike,
    true_fun: Any,
    false_fun: Callable[..., R],
    operand: Any,
    false_branch: Callable[..., Any],
    /,
) -> R: ...


@boundary  # type: ignore[misc]
def cond(
    pred: Any,
    true_fun: Callable[..., Any],
    false_fun: Callable[..., Any],
    *operands: Any,
    operand: Any = _absent,
) -> Any:
    """Gives the result of one of two functions; a condition says of which.

    Both are traced, and one runs. Under `vmap` with several conditions, each example runs its own.

    Args:
        pred: One boolean or number; anything but 0 is true.
        true_fun: The function for a true condition.
        false_fun: The function for a false one; its results have the same tree, shapes and dtypes.
        *operands: The arguments of both.
        operand: A single argument of both, by name.

    Returns:
        What the function returns.

    Differs from JAX:
        The older form `cond(pred, true_operand, true_fun, false_operand, false_fun)` works as well.

    >>> lax.cond(True, lambda x: x + 1, lambda x: x - 1, 5.0)
    Array(6., dtype=float32, weak_type=True)"""
    if _is_older_form(true_fun, false_fun, operands):
        true_operand, of_true, false_operand, of_false = true_fun, false_fun, *operands
        return _cond(
            pred, lambda x, y: of_true(x), lambda x, y: of_false(y), (true_operand, false_operand)
        )
    return _cond(pred, true_fun, false_fun, _all_operands(operands, operand))


def _is_older_form(first: Any, second: Any, rest: tuple[Any, ...]) -> bool:
    """Whether the arguments after `pred` are (true_operand, true_fun, false_operand, false_fun)."""
    return len(rest) == 2 and callable(second) and callable(rest[1]) and not callable(first)


def _cond(
    pred: Any,
    true_fun: Callable[..., Any],
    false_fun: Callable[..., Any],
    operands: tuple[Any, ...],
) -> Any:
    if not (callable(true_fun) and callable(false_fun)):
        kinds = f"{type(true_fun).__name__} and {type(false_fun).__name__}"
        raise TypeError(
            "lax.cond: true_fun and false_fun arguments should be callable. They are"
            f" {kinds}: jnp.where chooses between values, or write lambda: value."
        )
    pred = _scalar(pred, "Pred", "either boolean or number")
    dtype = typeof(pred).dtype
    if is_concrete(pred) and getattr(dtype, "kind", "") in "biuf":
        if config.disable_jit:
            return (true_fun if pred else false_fun)(*operands)
        index: Any = scalar_of(np.dtype("int32"), int(bool(pred)))
        return _choose("cond", index, [false_fun, true_fun], ["false_fun", "true_fun"], operands)
    if dtype != bool_:
        if getattr(dtype, "kind", "") not in "iuf":
            raise TypeError(f"Pred type must be either boolean or number, got {dtype}.")
        pred = do.ne(pred, scalar_of(dtype, 0))
    index = flow.convert(pred, ShapedArray((), np.dtype("int32")))
    return _choose("cond", index, [false_fun, true_fun], ["false_fun", "true_fun"], operands)


def _all_operands(operands: tuple[Any, ...], operand: Any) -> tuple[Any, ...]:
    """The operands, of which a single one may have been given by name."""
    if operand is _absent:
        return operands
    if operands:
        raise TypeError(
            "if 'operand' keyword is passed then no positional operands can be passed, got"
            f" operand={operand} and operands {operands}"
        )
    return (operand,)


def _scalar(x: Any, what: str, needed: str) -> Any:
    if isinstance(x, (tuple, list)) and what == "Index":
        raise TypeError(f"Branch index must be scalar, got {x} of shape {np.shape(x)}.")
    if x is None and what == "Pred":
        raise TypeError("cond predicate is None")
    if callable(x) and not hasattr(x, "aval"):
        raise TypeError(f"{what} type must be {needed}, got {x}.")
    try:
        aval = typeof(x)
    except TypeError:
        if what == "Index":
            raise TypeError(f"{what} type must be {needed}, got {x}.") from None
        raise TypeError(f"{what} must be a scalar, got {x} of type {type(x)}") from None
    if aval.shape:
        each = (
            " jnp.where chooses for each element; x.any() and x.all() make one of them"
            if what == "Pred"
            else ""
        )
        raise TypeError(f"{what} must be a scalar, got {x} of shape {aval.shape}.{each}")
    return operand(x)


@with_refs_among_operands
@discharged_branches
def _choose(
    what: str,
    index: Any,
    funs: Sequence[Callable[..., Any]],
    names: Sequence[str],
    operands: Sequence[Any],
) -> Any:
    """Stage the branches, bring their results to common types, and bind `cond`."""
    leaves = arrays(pytrees.leaves(operands), f"operand of {what}", funs[0], operands, {})
    avals = [typeof(x) for x in leaves]
    order = list(range(len(funs)))
    if what == "cond":
        order.reverse()  # true_fun is traced first

    def branch(i: int) -> Any:
        return recomputed(
            flow.staged(funs[i], operands, avals, f"{names[i]} of {what}"), funs[i], what
        )

    traced: dict[int, Staged] = {}  # one function may stand for several branches
    for i in order:
        if id(funs[i]) not in traced:
            traced[id(funs[i])] = branch(i)
    parts = [traced[id(f)] for f in funs]
    _check_structures(what, funs, names, parts)
    joined = _common_types(what, funs, names, parts)
    consts: dict[int, Any] = {id(c): c for p in traced.values() for c in p.consts}
    branches = tuple(
        flow.converted_results(flow.with_captured(p, consts, avals), joined) for p in parts
    )
    outs = bind_cond(index, [*consts.values(), *leaves], branches)
    return pytrees.unflatten(parts[0].out_tree, outs)


def _at(path: str) -> str:
    return f" at path {path}" if path else ""


def _described(names: Sequence[str], funs: Sequence[Any], i: int) -> str:
    code = getattr(funs[i], "__code__", None)
    where = f" at {code.co_filename}:{code.co_firstlineno}" if code is not None else ""
    return f"{names[i]} is {name_of(funs[i])}{where}"


def _base(what: str, parts: Sequence[Staged]) -> int:
    """The branch with which the others are compared: the first one, or `true_fun`."""
    return 0 if what == "switch" else len(parts) - 1


def _check_structures(
    what: str, funs: Sequence[Any], names: Sequence[str], parts: Sequence[Staged]
) -> None:
    base = _base(what, parts)
    for i, p in enumerate(parts):
        if p.out_tree != parts[base].out_tree:
            why = flow.tree_difference(
                parts[base].out_tree,
                p.out_tree,
                f"output of {names[base]}",
                f"output of {names[i]}",
            )
            raise TypeError(
                f"{what} branch outputs must have the same pytree structure, but they"
                f" differ:\n\n{_described(names, funs, base)}\n{_described(names, funs, i)}\n\n"
                + "\n".join(
                    f"  * {names[base]} output{_at(d.path)} is {d.left} but"
                    f" {names[i].replace(' ', '')} output{_at(d.path)} is {d.right}, so {d.why}."
                    for d in flow.structure_differences(parts[base].out_tree, p.out_tree)
                )
                + f"\n\nThe output of {names[base]} has structure {parts[base].out_tree} but that"
                f" of {names[i]} has structure {p.out_tree}{why}.\n\nRevise {names[base]} and/or"
                f" {names[i]} so that they have the same pytree structure."
            )


def _common_types(
    what: str, funs: Sequence[Any], names: Sequence[str], parts: Sequence[Staged]
) -> list[ShapedArray]:
    """The types of the results: equal in all branches but for weak types, which give way."""
    joined = []
    base = _base(what, parts)
    for k, avals in enumerate(zip(*(p.closed.out_avals for p in parts))):
        for i, a in enumerate(avals):
            if not flow.same_type(a, avals[base]):
                raise _different(what, funs, names, parts, k, base, i)
            here, there = typing.value.casts(avals[base], a), typing.value.casts(a, avals[base])
            if here and there:
                raise TypeError(
                    f"{what} branches must have equal output types but they vary along different"
                    f" manual axes.\n\nThis might be fixed by applying `jax.lax.pcast(..., {here},"
                    f" to='varying')` to the output of {names[base]} and `jax.lax.pcast(...,"
                    f" {there}, to='varying')` to the output of {names[i]}"
                )
        joined.append(avals[0] if all(a is avals[0] for a in avals) else avals[0].strip_weak_type())
    return joined


def _different(
    what: str,
    funs: Sequence[Any],
    names: Sequence[str],
    parts: Sequence[Staged],
    k: int,
    i: int,
    j: int,
) -> TypeError:
    a, b = parts[i].closed.out_avals[k], parts[j].closed.out_avals[k]
    path = flow.paths(parts[i].out_tree)[k]
    return TypeError(
        f"{what} branches must have equal output types but they"
        f" differ.\n\n{_described(names, funs, i)}\n{_described(names, funs, j)}\n\nThe"
        f" output of {names[i]}{_at(path)} has type {flow.type_text(a)} but the corresponding"
        f" output of {names[j].replace(' ', '')} has type {flow.type_text(b)}, so"
        f" {flow.why_different(a, b)}.\n\nRevise {names[i]} and/or {names[j]} so that all output"
        " types match."
    )

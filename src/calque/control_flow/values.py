"""The values of variables on the ways through a traced construct: recorded, compared, brought to
common types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from calque.control_flow.jumps import RESULT, RETURNED
from calque.core import pytrees
from calque.core.arrays import ArrayImpl
from calque.core.avals import ShapedArray
from calque.core.dtypes import PYTHON_SCALARS, promote
from calque.core.errors import ControlFlowError
from calque.core.jaxprs import ClosedJaxpr
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.trace_state import Tracer
from calque.transforms.primitives import flow
from calque.transforms.primitives.cond import bind_cond
from calque.transforms.primitives.flow import Staged, staged, with_captured


class Unbound(NamedTuple):
    """In the place of a value: the variable is not set, for this reason."""

    reason: str = ""


UNBOUND: Final = Unbound()
RESULTS: Final = frozenset((RESULT,))  # read only where it was set: what is missing may be anything


class Leaf(NamedTuple):
    value: Any
    out: int | None  # which result of the recorded program it is; None for what is no array


class Variable(NamedTuple):
    """What a variable was at the end of a recorded program."""

    tree: pytrees.PyTreeDef
    leaves: list[Leaf]
    kept: bool  # is it the container that it was at the start?


class Recorded(NamedTuple):
    part: Staged
    variables: list[Variable | Unbound]

    def aval(self, leaf: Leaf) -> ShapedArray:
        return self.part.closed.out_avals[leaf.out or 0]


Run = Callable[..., Sequence[tuple[Any, bool]]]


def record(run: Run, avals: Sequence[ShapedArray], name: str, what: str) -> Recorded:
    """Record `run(*leaves)`, which gives the values of variables, each with `kept`."""
    found: list[Variable | Unbound] = []

    def flat(*leaves: Any) -> list[Any]:
        outs: list[Any] = []
        for value, kept in run(*leaves):
            if isinstance(value, Unbound):
                found.append(value)
                continue
            parts, tree = pytrees.flatten(value)
            described = []
            for x in parts:
                described.append(Leaf(x, len(outs) if is_value(x) else None))
                if is_value(x):
                    outs.append(x)
            found.append(Variable(tree, described, kept))
        return outs

    flat.__name__ = name
    return Recorded(staged(flat, tuple(avals), avals, what), found)


def is_value(x: Any) -> bool:
    """Whether it can be a result of a program."""
    if isinstance(x, (ArrayImpl, Tracer)):
        return True
    if not isinstance(x, (*PYTHON_SCALARS, np.ndarray, np.generic)) and not hasattr(
        type(x), "aval"
    ):
        return False
    try:
        typeof(x)
    except (TypeError, OverflowError):
        return False
    return True


def same(a: Any, b: Any) -> bool:
    """Whether it is one value that is known while tracing."""
    if a is b:
        return True
    return (
        type(a) is type(b) and isinstance(a, (*PYTHON_SCALARS, str, bytes)) and repr(a) == repr(b)
    )


def common(a: ShapedArray, b: ShapedArray) -> ShapedArray | None:
    """The type that both become, as in an operation on them; None where the shapes or kinds
    differ."""
    if a.shape != b.shape:
        return None
    if a.dtype == b.dtype:
        return a if a is b else a.update(weak_type=a.weak_type and b.weak_type)
    try:
        dtype, weak = promote(((a.dtype, a.weak_type), (b.dtype, b.weak_type)))
    except TypeError:
        return None
    return ShapedArray(a.shape, dtype, weak)


def zeros(aval: ShapedArray) -> Any:
    """Stands for a value that nobody reads."""
    return flow.convert(np.zeros(aval.shape, aval.dtype), aval)


def can_be_zero(aval: ShapedArray) -> bool:
    return isinstance(aval.dtype, np.dtype)


class Text:
    """Shows as this text inside a container."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def described(v: Variable, recorded: Recorded) -> str:
    """What a variable is, for messages."""
    texts = [
        flow.type_text(recorded.aval(x)) if x.out is not None else repr(x.value) for x in v.leaves
    ]
    return tree_text(v.tree, texts)


def tree_text(tree: pytrees.PyTreeDef, texts: Sequence[str]) -> str:
    return repr(pytrees.unflatten(tree, [Text(t) for t in texts]))


def chosen_outputs(
    part: Staged,
    outs: Sequence[int | None],
    avals: Sequence[ShapedArray],
    consts: dict[int, Any] | None = None,
) -> ClosedJaxpr:
    """The program with these results, in these types; None stands for zeros. With `consts`, it
    takes them instead of its own."""
    j = part.closed.jaxpr
    eqns, outvars = list(j.eqns), []
    for out, aval in zip(outs, avals, strict=True):
        more, atom = ([], j.outvars[out]) if out is not None else flow.zeros_eqn(aval)
        eqns += more
        outvars.append(atom)
    closed = ClosedJaxpr(j.replace(eqns=eqns, outvars=outvars), part.closed.consts)
    if consts is not None:
        closed = with_captured(Staged(closed, part.consts, part.out_tree), consts, ())
    return flow.converted_results(closed, avals)


# ---------------------------------------------------------------- branches


class Joined:
    """The results of two branches as they are put together."""

    def __init__(self, then: Recorded, other: Recorded, names: Sequence[str], where: str) -> None:
        self.then, self.other, self.where = then, other, where
        self.avals: list[ShapedArray] = []
        self.outs: tuple[list[int | None], list[int | None]] = ([], [])  # of `other`, of `then`
        self.found: list[
            Callable[[Sequence[Any]], Any]
        ] = []  # the value of each variable, from the results
        self.living = _living(then, other, names)
        for name, a, b in zip(names, then.variables, other.variables, strict=True):
            if isinstance(a, Unbound) or isinstance(b, Unbound):
                self.half(name, a, b)
            else:
                self.both(name, a, b)

    def both(self, name: str, a: Variable, b: Variable) -> None:
        plan: list[tuple[bool, Any]] = []
        new: list[tuple[Leaf, Leaf, ShapedArray]] = []
        for x, y in zip(a.leaves, b.leaves):
            if same(x.value, y.value):
                plan.append((True, x.value))
                continue
            aval = None
            if x.out is not None and y.out is not None:
                aval = common(self.then.aval(x), self.other.aval(y))
            if aval is None:
                break
            plan.append((False, len(self.avals) + len(new)))
            new.append((x, y, aval))
        if a.tree != b.tree or len(plan) < len(a.leaves):
            self.differ(name, a, b)
            return
        for x, y, aval in new:
            self.output(aval, x.out, y.out)
        self.take(a.tree, plan)

    def half(self, name: str, a: Variable | Unbound, b: Variable | Unbound) -> None:
        """A variable that one branch leaves unset."""
        if isinstance(a, Unbound) and isinstance(b, Unbound):
            self.unset(a.reason or b.reason)
            return
        found, recorded = (b, self.other) if isinstance(a, Unbound) else (a, self.then)
        if isinstance(found, Variable) and (name in RESULTS or recorded is self.living):
            self.fill(found, recorded)
        elif self.living is not None:
            self.unset("")
        else:
            self.unset(
                f"only one branch of the `if` at {self.where} sets it, and which one runs is not"
                " known while tracing: set it in both, or before the `if`"
            )

    def unset(self, reason: str) -> None:
        self.found.append(lambda _: Unbound(reason))

    def fill(self, found: Variable, recorded: Recorded) -> None:
        """The value of one branch; what stands for it in the other is never read."""
        plan: list[tuple[bool, Any]] = []
        for leaf in found.leaves:
            if (
                leaf.out is None
                or isinstance(leaf.value, PYTHON_SCALARS)
                or not can_be_zero(recorded.aval(leaf))
            ):
                plan.append((True, leaf.value))
                continue
            plan.append((False, len(self.avals)))
            outs = (leaf.out, None) if recorded is self.then else (None, leaf.out)
            self.output(recorded.aval(leaf), *outs)
        self.take(found.tree, plan)

    def output(self, aval: ShapedArray, then: int | None, other: int | None) -> None:
        self.avals.append(aval)
        self.outs[0].append(other)
        self.outs[1].append(then)

    def take(self, tree: pytrees.PyTreeDef, plan: Sequence[tuple[bool, Any]]) -> None:
        self.found.append(
            lambda outs: pytrees.unflatten(tree, [v if known else outs[v] for known, v in plan])
        )

    def differ(self, name: str, a: Variable, b: Variable) -> None:
        how = f"{described(a, self.then)} in one branch and {described(b, self.other)} in the other"
        own = next(
            (
                type(x.value).__name__
                for x in (*a.leaves, *b.leaves)
                if hasattr(x.value, "__dict__")
            ),
            None,
        )
        if own is not None:
            how += (
                f" ({own} is no pytree: register it, for example with"
                " calque.tree_util.register_dataclass)"
            )
        if name in RESULTS or not name:
            what = (
                "the value that is returned" if name else "the value of the conditional expression"
            )
            raise ControlFlowError(
                f"{what} is {how} of the `if` at {self.where}: both must have one structure and one"
                " shape when the condition is traced."
            )
        if self.living is not None:
            self.fill(a if self.living is self.then else b, self.living)
        else:
            self.unset(
                f"it is {how} of the `if` at {self.where}: give it one structure and one shape in"
                " both"
            )


def _living(then: Recorded, other: Recorded, names: Sequence[str]) -> Recorded | None:
    """The branch that goes on where the other one has returned from the function: what it sets is
    read, and nothing else."""
    if RETURNED not in names:
        return None
    k = list(names).index(RETURNED)
    ended = [
        isinstance(v, Variable) and v.leaves[0].value is True
        for v in (then.variables[k], other.variables[k])
    ]
    return None if ended[0] == ended[1] else other if ended[0] else then


def branched(
    pred: Any, then: Run, other: Run, names: Sequence[str], where: str
) -> tuple[list[Any], list[bool]]:
    """The values of the variables after the branch that `pred` picks, and which are still the
    containers they were."""
    a, b = record(then, (), "then", "if"), record(other, (), "else", "if")
    joined = Joined(a, b, names, where)
    consts: dict[int, Any] = {id(c): c for r in (b, a) for c in r.part.consts}
    parts = [
        chosen_outputs(r.part, outs, joined.avals, consts) for r, outs in zip((b, a), joined.outs)
    ]
    index = do.convert_element_type(pred, new_dtype=np.dtype("int32"))
    outs = (
        bind_cond(index, list(consts.values()), tuple(parts))
        if joined.avals or _shows(parts)
        else []
    )
    kept = [
        isinstance(x, Variable) and isinstance(y, Variable) and x.kept and y.kept
        for x, y in zip(a.variables, b.variables)
    ]
    return [f(outs) for f in joined.found], kept


def _shows(parts: Sequence[ClosedJaxpr]) -> bool:
    """Whether branches without results have anything to do: prints, checks, callbacks."""
    return any(p.jaxpr.eqns for p in parts)

"""What converted code calls: each construct decides when it runs whether its condition is
traced."""

from __future__ import annotations

import functools
import operator
import re
import types
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from calque.control_flow.repeating import counting, must_fit, repeated
from calque.control_flow.values import UNBOUND, Unbound, branched
from calque.core import pytrees
from calque.core.arrays import ArrayImpl
from calque.core.dtypes import bool_
from calque.core.errors import ControlFlowError
from calque.core.primitives import do
from calque.core.trace import typeof, value_if_known
from calque.core.trace_state import Tracer
from calque.ops.common import scalar_of
from calque.transforms.primitives import flow
from calque.transforms.primitives.refs import (
    Ref,
    RefTouched,
    store_all,
    threaded,
    touched,
    values_of,
)

Unset = NameError  # a variable is read that is not set
_CONTAINERS: Final = (list, dict, set)
_REF: Final = "what a Ref holds"
_COUNTER: Final = "the counter of a loop"
Thunk = Callable[[], Any]
ENDLESS: Final = (
    "a function calls itself under a traced condition: whether it stops is not known while tracing."
    " Write a loop."
)
Act = Callable[[Sequence[Ref]], tuple[list[Any], list[bool]]]


# ---------------------------------------------------------------- conditions


def truth(value: Any) -> Any:
    """A bool, or a traced scalar of dtype bool."""
    value = value_if_known(value)
    if not isinstance(value, Tracer):
        return bool(value)
    aval = value.aval
    if aval.shape:
        if aval.size != 1:
            raise ValueError(
                "The truth value of an array with more than one element is ambiguous, and this one"
                f" is {aval.str_short()}. Use .any() or .all()."
            )
        value = do.reshape(value, new_sizes=())
    if aval.dtype != bool_:
        value = do.ne(value, scalar_of(aval.dtype, 0))
    return value if isinstance(value, Tracer) else bool(value)


def not_(value: Any) -> Any:
    t = truth(value)
    return do.not_(t) if isinstance(t, Tracer) else not t


def and_(value: Any, *rest: Thunk) -> Any:
    """`value and rest[0]() and ...`"""
    for following in rest:
        t = truth(value)
        if isinstance(t, Tracer):
            value = _both("and", t, value, ending(following))
        elif t:
            value = following()
        else:
            return value
    return value


def or_(value: Any, *rest: Thunk) -> Any:
    """`value or rest[0]() or ...`"""
    for following in rest:
        t = truth(value)
        if isinstance(t, Tracer):
            value = _both("or", t, value, ending(following))
        elif t:
            return value
        else:
            value = following()
    return value


def _both(op: str, t: Any, a: Any, b: Any) -> Any:
    if _is_bool(a) and _is_bool(b):
        return do[op](t, b if isinstance(b, Tracer) else np.bool_(b))
    then, other = (b, a) if op == "and" else (a, b)
    return _chosen(t, lambda: then, lambda: other, f"`{op}`")


def _is_bool(x: Any) -> bool:
    return isinstance(x, (bool, np.bool_)) or (
        isinstance(x, (Tracer, ArrayImpl)) and x.aval.dtype == bool_ and not x.aval.shape
    )


_OPERATORS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge,
    "is": operator.is_, "is not": operator.is_not,
    "in": lambda a, b: a in b, "not in": lambda a, b: a not in b,
}  # fmt: skip


def compare(left: Any, *pairs: Any) -> Any:
    """`left < b < c`, given as left, "<", lambda: b, "<", lambda: c."""
    result: Any = True
    for op, thunk in zip(pairs[::2], pairs[1::2]):
        t = truth(result)
        if not isinstance(t, Tracer) and not t:
            return result
        right = thunk()
        step = _OPERATORS[op](left, right)
        result = _both("and", t, result, step) if isinstance(t, Tracer) else step
        left = right
    return result


def choose(test: Any, then: Thunk, other: Thunk, line: int) -> Any:
    """`then() if test else other()`"""
    p = truth(test)
    if not isinstance(p, Tracer):
        return then() if p else other()
    return _chosen(p, then, other, _where(then, line))


def _chosen(p: Any, then: Thunk, other: Thunk, where: str) -> Any:
    return ending(
        lambda: branched(p, lambda: [(then(), False)], lambda: [(other(), False)], [""], where)[0][
            0
        ]
    )


def ending(part: Thunk) -> Any:
    """What is computed under a traced condition; a function that calls itself there never ends."""
    try:
        return part()
    except RecursionError:
        raise ControlFlowError(ENDLESS) from None


def asserted(test: Any, line: int) -> bool:
    """The condition of an `assert` statement."""
    p = truth(test)
    if isinstance(p, Tracer):
        raise ControlFlowError(
            f"line {line} asserts a traced condition, which is not known while tracing. Use"
            " calque.check(condition, message, ...), which raises when the program runs."
        )
    return bool(p)


def _where(code_of: Any, line: int) -> str:
    return f"{code_of.__code__.co_filename}:{line}"


# ---------------------------------------------------------------- ranges


class Range:
    """`range` with a traced bound. It can be looped over in converted code, no more."""

    def __init__(self, start: Any, stop: Any, step: int) -> None:
        self.start, self.stop, self.step = start, stop, step

    def after(self, i: Any) -> Any:
        """What follows `i`; the end where the sum would overflow."""
        aval = typeof(i)
        following = do.add(i, flow.convert(np.asarray(self.step).astype(aval.dtype), aval))
        if abs(self.step) == 1:
            return following
        further = do.gt(following, i) if self.step > 0 else do.lt(following, i)
        return do.select_n(further, self.stop, following)

    def _unknown(self, *args: Any) -> Any:
        raise ControlFlowError(
            "the length of a range with a traced bound is not known while tracing: it can be looped"
            " over by a `for` statement, but not be listed, indexed, or passed to enumerate, zip or"
            " a comprehension. Write the loop as `for i in range(n):`."
        )

    __iter__ = __len__ = __getitem__ = __contains__ = __reversed__ = _unknown


def range_(*args: Any) -> Any:
    """The built-in `range`, also of traced bounds."""
    if not any(isinstance(a, Tracer) for a in args) or not 1 <= len(args) <= 3:
        return range(*args)
    start, stop = (0, args[0]) if len(args) == 1 else args[:2]
    step = args[2] if len(args) == 3 else 1
    if isinstance(step, Tracer):
        raise ControlFlowError(
            "the sign of a traced step of range() is not known while tracing, so neither is the"
            " direction of the loop: make the step a Python number, or write `while i < stop:` or"
            " `while i > stop:`."
        )
    step = operator.index(step)
    if step == 0:
        raise ValueError("range() arg 3 must not be zero")
    first, last = counting([start, stop])
    must_fit(abs(step), typeof(first), f"the step {step}")
    return Range(first, last, step)


# ---------------------------------------------------------------- variables


class State:
    """The variables that a construct may change: the cells of the lambda that names them."""

    def __init__(self, names: types.FunctionType) -> None:
        self.names = names.__code__.co_freevars
        self.cells = names.__closure__ or ()

    def read(self) -> list[Any]:
        return [_contents(c) for c in self.cells]

    def write(self, values: Sequence[Any]) -> None:
        for cell, v in zip(self.cells, values, strict=True):
            if not isinstance(v, Unbound):
                cell.cell_contents = v
            elif not isinstance(_contents(cell), Unbound):
                del cell.cell_contents


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return UNBOUND


def _fresh(value: Any) -> Any:
    """A container that a branch may change without anybody seeing it."""
    if type(value) is set:
        return set(value)
    return (
        pytrees.unflatten(pytrees.structure(value), pytrees.leaves(value))
        if type(value) in _CONTAINERS
        else value
    )


def _put_into(container: Any, value: Any) -> None:
    if type(container) is list:
        container[:] = value
    else:
        container.clear()
        container.update(value)


def _with_refs(
    refs: Sequence[Ref], values: Sequence[Any], run: Callable[[], list[tuple[Any, bool]]]
) -> list[tuple[Any, bool]]:
    """What the Refs hold after `run` has started from these values, and what it gives."""
    held, out = threaded(run, refs)(values)
    return [*[(v, False) for v in held], *out]


# ---------------------------------------------------------------- statements


class Scope:
    """The branches and loops of one call of a converted function."""

    def __init__(self) -> None:
        self.reasons: dict[str, str] = {}  # why a variable is not set
        self.tracing = 0  # how many constructs around are traced

    def traced(
        self, state: State, values: Sequence[Any], action: Callable[[], Any] | None
    ) -> list[tuple[Any, bool]]:
        """The variables after `action`, from these values on, and whether they are still the
        containers they were."""
        given = [_fresh(v) for v in values]
        self.assign(state, given)
        self.tracing += 1
        try:
            if action is not None:
                action()
        finally:
            self.tracing -= 1
        return [(v, v is g and type(g) in _CONTAINERS) for v, g in zip(self.read(state), given)]

    def read(self, state: State) -> list[Any]:
        return [
            Unbound(self.reasons.get(n, "")) if isinstance(v, Unbound) else v
            for n, v in zip(state.names, state.read())
        ]

    def assign(self, state: State, values: Sequence[Any]) -> None:
        state.write(values)
        for name, v in zip(state.names, values):
            self.reasons.pop(name, None)
            if isinstance(v, Unbound) and v.reason:
                self.reasons[name] = v.reason

    def settle(
        self, state: State, before: Sequence[Any], after: Sequence[Any], kept: Sequence[bool]
    ) -> None:
        """Set the variables to what they are after a construct; a container that was changed in
        place stays the same object."""
        new = list(after)
        for i, (b, k) in enumerate(zip(before, kept)):
            if k and type(b) in _CONTAINERS and not isinstance(new[i], Unbound):
                _put_into(b, new[i])
                new[i] = b
        self.assign(state, new)

    def if_(self, pred: Any, then: Any, other: Any, names: Any, line: int) -> None:
        p = truth(pred)
        if not isinstance(p, Tracer):
            if p:
                then()
            elif other is not None:
                other()
            return
        self.branch(State(names), p, then, other, _where(then, line))

    def branch(self, state: State, p: Any, then: Any, other: Any, where: str) -> None:
        """`then()` or `other()` as a traced condition says; where there is no `other`, nothing."""
        before = self.read(state)

        def act(refs: Sequence[Ref]) -> tuple[list[Any], list[bool]]:
            held = values_of(refs)
            either: list[Any] = [
                functools.partial(
                    _with_refs, refs, held, functools.partial(self.traced, state, before, action)
                )
                for action in (then, other)
            ]
            return branched(p, either[0], either[1], [*[_REF] * len(refs), *state.names], where)

        def trial() -> None:
            for action in (then, other):
                self.traced(state, before, action)

        self.run(state, before, act, trial)

    def while_(self, test: Any, body: Any, names: Any, line: int) -> None:
        while True:
            p = truth(test())
            if isinstance(p, Tracer):
                break
            if not p:
                return
            body()
        self.loop(State(names), lambda: truth(test()), body, None, _where(body, line))

    def for_(self, iterable: Any, body: Any, names: Any, stop: Any, line: int) -> None:
        state, where = State(names), _where(body, line)
        if isinstance(iterable, Range):
            self.count(state, iterable, body, stop, where)
        elif isinstance(iterable, Tracer) and iterable.aval.shape:
            if iterable.aval.shape[0] != 0:
                self.rows(state, iterable, body, stop, where)
        else:
            self.items(state, iterable, body, stop, line)

    def items(self, state: State, iterable: Any, body: Any, stop: Any, line: int) -> None:
        """Python's own loop, until a traced condition may have ended it."""
        rest = iter(iterable)
        done = 0
        for item in rest:
            done += 1
            body(item)
            if stop is None:
                continue
            ended = truth(stop())
            if isinstance(ended, Tracer):
                break
            if ended:
                return
        else:
            return
        if isinstance(iterable, range):
            left = iterable[done:]
            if left:
                first, last = counting([left.start, left.stop])
                self.count(state, Range(first, last, left.step), body, stop, _where(body, line))
            return
        for item in rest:
            self.branch(
                state, not_(stop()), functools.partial(body, item), None, _where(body, line)
            )

    def count(self, state: State, r: Range, body: Any, stop: Any, where: str) -> None:
        before: Callable[[Any, Any], Any] = do.lt if r.step > 0 else do.gt

        def goes_on(i: Any) -> Any:
            inside = before(i, r.stop)
            if stop is None:
                return inside
            ended = truth(stop())
            return (
                do.and_(inside, do.not_(ended))
                if isinstance(ended, Tracer)
                else and_(not ended, lambda: inside)
            )

        self.loop(state, goes_on, body, (r.start, r.after), where)

    def rows(self, state: State, rows: Any, body: Any, stop: Any, where: str) -> None:
        """A loop over the rows of a traced array."""
        if stop is not None:
            first, last = counting([0, rows.shape[0]])
            self.count(state, Range(first, last, 1), _row_body(rows, body), stop, where)
            return
        before = self.read(state)

        def act(refs: Sequence[Ref]) -> tuple[list[Any], list[bool]]:
            k = len(refs)

            def round_(values: list[Any], row: Any) -> list[tuple[Any, bool]]:
                return _with_refs(
                    refs, values[:k], lambda: self.traced(state, values[k:], lambda: body(row))
                )

            return repeated(
                [*[_REF] * k, *state.names], [*values_of(refs), *before], round_, None, rows, where
            )

        self.run(state, before, act, lambda: self.traced(state, before, lambda: body(rows[0])))

    def loop(
        self, state: State, test: Any, body: Any, index: tuple[Any, Any] | None, where: str
    ) -> None:
        """A loop that runs while `test` holds, with a counter (its first value, and how to go on)
        where there is an index."""
        before = self.read(state)
        first = [] if index is None else [index[0]]

        def act(refs: Sequence[Ref]) -> tuple[list[Any], list[bool]]:
            c, k = len(first), len(first) + len(refs)

            def round_(values: list[Any]) -> list[tuple[Any, bool]]:
                counter = values[:c]
                out = _with_refs(
                    refs,
                    values[c:k],
                    lambda: self.traced(state, values[k:], lambda: body(*counter)),
                )
                following = [(index[1](i), False) for i in counter if index is not None]
                return [*following, *out]

            def goes_on(values: list[Any]) -> Any:
                self.assign(state, values[k:])
                return threaded(lambda: test(*values[:c]), refs)(values[c:k])[1]

            names = [*[_COUNTER] * c, *[_REF] * len(refs), *state.names]
            after, kept = repeated(
                names, [*first, *values_of(refs), *before], round_, goes_on, None, where
            )
            return after[c:], kept[c:]

        def trial() -> None:
            test(*first)
            self.traced(state, before, lambda: body(*first))

        self.run(state, before, act, trial)

    def run(self, state: State, before: Sequence[Any], act: Act, trial: Callable[[], Any]) -> None:
        """Do what gives the values of Refs and variables afterwards. The Refs are those that
        `trial` touches, if it must be."""
        refs: list[Ref] = []
        try:
            try:
                after, kept = act(refs)
            except RefTouched:
                refs = touched([(lambda: [trial()][1:], [])])
                if not refs:
                    raise
                after, kept = act(refs)
        except RecursionError:
            state.write(before)
            raise ControlFlowError(ENDLESS) from None
        except BaseException:
            state.write(before)
            raise
        store_all(refs, after[: len(refs)])
        self.settle(state, before, after[len(refs) :], kept[len(refs) :])

    # ------------------------------------------------------------ what cannot be

    def result(self, returned: Any, value: Any) -> Any:
        """What a function returns that may reach its end without `return`."""
        ended = returned()
        if not isinstance(ended, Tracer):
            return value() if ended else None
        if value() is None:
            return None
        raise ControlFlowError(
            f"the function at {_where(value, value.__code__.co_firstlineno)} returns a value under"
            " a traced condition and nothing otherwise: add a `return` with a value of the same"
            " type at its end."
        )

    def raising(self, error: Any, line: int) -> Any:
        """The exception of a `raise` statement inside a branch or loop."""
        if not self.tracing:
            return error
        new = ControlFlowError(
            f"line {line} raises {error!r} under a traced condition: whether it happens is not"
            " known while tracing. Use calque.check(condition, message, ...), which raises when"
            " the program runs."
        )
        new.__cause__ = error if isinstance(error, BaseException) else None
        return new

    def store(self, holder: Any, copied: bool, target: str, line: int) -> None:
        """Before a store into an object. Containers in variables of the function are copied for
        each branch, other objects are not."""
        if (
            not self.tracing
            or isinstance(holder, (Ref, Tracer, ArrayImpl))
            or (copied and type(holder) in _CONTAINERS)
        ):
            return
        raise ControlFlowError(
            f"line {line} sets {target} under a traced condition: whether it happens is not known"
            " while tracing, and the object is shared by both branches. Set a variable there, and"
            " the object after the branch or loop."
        )

    def explain(self, error: NameError) -> None:
        """Tell why the variable is not set."""
        found = re.search(r"variable '(\w+)'", str(error))
        reason = self.reasons.get(found[1]) if found else None
        if found and reason:
            error.args = (f"variable '{found[1]}' cannot be used here: {reason}.",)


def _row_body(rows: Any, body: Any) -> Any:
    def at_index(i: Any) -> None:
        body(rows[i])

    return at_index

"""Why functions were traced again: every trace is an event; its reason is what differs from the
nearest earlier trace."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, Final

from calque.core import pytrees
from calque.core.avals import ShapedArray
from calque.core.dims import hint_of, is_symbolic
from calque.core.source import here
from calque.machine.state import ProcessValue, process

MOST: Final = 1000  # events of the process that are remembered
OF_A_FUNCTION: Final = 32


class RetraceError(RuntimeError):
    """A function was traced again inside `no_retrace()`."""


class Seen:
    """One trace: of which function, for which arguments, where it was called."""

    __slots__ = ("avals", "function", "where")

    def __init__(self, function: str, avals: Sequence[ShapedArray], where: Any) -> None:
        self.function, self.avals, self.where = function, tuple(avals), where

    def __str__(self) -> str:
        return f"{self.function}({', '.join(a.str_short() for a in self.avals)}) at {self.where}"

    __repr__ = __str__


class Event(Seen):
    """One trace, with all by which it may differ from others of its function."""

    __slots__ = ("captured", "names", "rest")

    def __init__(
        self,
        function: str,
        avals: Sequence[ShapedArray],
        rest: tuple[Any, ...],
        names: Sequence[str],
    ) -> None:
        super().__init__(function, avals, here())
        self.rest, self.names = rest, names
        self.captured: list[str] = []  # names of captured values that had changed

    def differences(self, other: Event) -> list[str]:
        """What this trace has that the other had not, in words."""
        in_tree, statics, settings, axes, mesh = self.rest
        before_tree, before_statics, before_settings, before_axes, before_mesh = other.rest
        out: list[str] = []
        if in_tree != before_tree:
            out.append(
                f"the arguments are {tree_text(in_tree)}, they were {tree_text(before_tree)}"
            )
        else:
            for name, new, old in zip(self.names, self.avals, other.avals):
                if new is not old:
                    out.append(
                        f"argument {name} is {described(new, old)}, it was {described(old, new)}"
                    )
        for new_static in [s for s in statics if s not in before_statics]:
            out.append(f"the static argument {new_static[0]!r} is {new_static[1][1]!r}")
        if settings != before_settings:
            out.append("a setting of calque.config has changed")
        if axes != before_axes or mesh != before_mesh:
            out.append("the mesh or the named axes around the call have changed")
        out += [f"the captured value {name} has changed" for name in self.captured]
        return out

    def explanation(self, earlier: Sequence[Event]) -> str:
        """Which call this trace is for, and how it differs from the nearest earlier one; in the
        words of JAX, which programs look for."""
        head = f"at {self.where} ({self.function}) because:\n  "
        if not earlier:
            return f"{head}never seen function: {self.function}"
        nearest = min(reversed(earlier), key=lambda e: len(self.differences(e)))
        return head + "\n  ".join(self._parts(nearest) or ["its earlier program was given up"])

    def _parts(self, other: Event) -> list[str]:
        in_tree, statics, settings, axes, mesh = self.rest
        before_tree, before_statics, before_settings, before_axes, before_mesh = other.rest
        out = []
        if in_tree != before_tree:
            out.append(f"different input pytree: now {in_tree} and before {before_tree}")
        else:
            pairs = list(zip(self.names, self.avals, other.avals))
            found = [f"  * at {n}, {_now(a, b)}" for n, a, b in pairs if _now(a, b)]
            out += ["key with different input types:", *found] if found else []
            if any(a.weak_type != b.weak_type for _, a, b in pairs):
                out.append(_WEAK_TYPES)
        if statics != before_statics:
            now, before = ([f"{k}: {x!r}" for k, (_, x) in s] for s in (statics, before_statics))
            out.append(
                f"different value of static args: now {', '.join(now)} and before"
                f" {', '.join(before)}"
            )
        if settings != before_settings:
            out.append("different tracing context:")
            changed = [(a, b) for a, b in zip(settings, before_settings) if a != b]
            out += [f"  * now {a} and before {b}" for a, b in changed]
        if axes != before_axes or mesh != before_mesh:
            out.append("different mesh or named axes around the call")
        return out + [f"the captured value {name} has changed" for name in self.captured]

    def reason(self, earlier: Sequence[Event]) -> str:
        """Why this trace was needed, given those before it."""
        if not earlier:
            return "first trace"
        nearest = min(
            [self.differences(e) for e in reversed(earlier)], key=lambda found: len(found)
        )
        return "; ".join(nearest) or "its earlier program was given up"


_WEAK_TYPES: Final = (
    "where a type is weak (of a Python number): see"
    " https://docs.jax.dev/en/latest/type_promotion.html#weak-types"
)


def _now(aval: ShapedArray, before: ShapedArray) -> str:
    weak = aval.weak_type != before.weak_type

    def text(a: ShapedArray) -> str:
        shape = tuple(map(hint_of, a.shape))
        return a.update(shape=shape).str_short() + f"{{weak_type={a.weak_type}}}" * weak

    now, then = text(aval), text(before)
    return f"now {now} and before {then}" if now != then else ""


def described(aval: ShapedArray, other: ShapedArray) -> str:
    text = f"{aval.dtype.name}[{','.join(map(str, aval.shape))}]"
    if is_symbolic(aval.shape) and not is_symbolic(other.shape):
        text += " (sizes free from now on)"
    return text + (" (weakly typed)" if aval.weak_type and not other.weak_type else "")


def tree_text(tree: pytrees.PyTreeDef) -> str:
    return str(tree).removeprefix("PyTreeDef")


# without values of the user
_events: Final[deque[tuple[Seen, str]]] = process.container("last retraces", deque(maxlen=MOST))
_forbidding: Final[ProcessValue[int]] = process.value("blocks of no_retrace", 0)


def record(history: deque[Event], event: Event) -> None:
    """Note a trace, with its reason; inside `no_retrace()` a second one of a function is an
    error."""
    event.names = list(event.names) if history else ()  # not the function itself: it may die
    reason = event.reason(list(history))
    if _forbidding.value and history:
        raise RetraceError(f"{event.function} is traced again, at {event.where}: {reason}")
    _events.append((Seen(event.function, event.avals, event.where), reason))
    history.append(event)


@contextlib.contextmanager
def no_retrace() -> Iterator[None]:
    """A `with` block in which tracing a function a second time raises `RetraceError`.

    Returns:
        A context manager.

    Differs from JAX:
        It is calque's own.

    >>> f = jax.jit(lambda x: x + 1)
    >>> _ = f(jnp.ones(3))
    >>> with jax.no_retrace():
    ...     f(jnp.ones(3)).shape
    (3,)"""
    _forbidding.value += 1
    try:
        yield
    finally:
        _forbidding.value -= 1


class Retraces(list[tuple[Seen, str]]):
    """The traces after the first of each function, with their reasons; prints as a table."""

    def __str__(self) -> str:
        if not self:
            return "nothing was traced twice"
        return "\n".join(f"{event}\n    {reason}" for event, reason in self)

    __repr__ = __str__


def explain_retraces() -> Retraces:
    """Lists what this process traced more than once, and why.

    Returns:
        A list of pairs (what was traced, reason), which prints as a table.

    Differs from JAX:
        It is calque's own; JAX logs reasons with `explain_cache_misses`.

    >>> f = jax.jit(lambda x: x + 1)
    >>> f(jnp.ones(3)).dtype, f(jnp.arange(3)).dtype
    (dtype('float32'), dtype('int32'))
    >>> jax.explain_retraces()[-1][1]
    'argument x is int32[3], it was float32[3]'"""
    return Retraces((e, r) for e, r in _events if r != "first trace")

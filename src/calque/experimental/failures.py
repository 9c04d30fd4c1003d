"""What checks inside programs find: the kinds of failures, their messages, and the errors that are
values of programs."""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

import calque.numpy as jnp
from calque.core import pytrees
from calque.core.arrays import to_array, to_numpy
from calque.core.errors import CalqueRuntimeError
from calque.core.trace import typeof
from calque.ops.common import front
from calque.ops.random.keys import keys_of_records
from calque.transforms.engines.axes import Axis, AxisPrimitive


class JaxException(Exception):
    """What a check finds, as a kind: sets of these choose which checks `checkify` makes."""


class FailedCheckError(JaxException):
    """A check that the user wrote."""


class NaNError(JaxException):
    """An operation that gave a NaN."""


class OOBError(JaxException):
    """An index outside of its array."""


class DivisionByZeroError(JaxException):
    """A division by zero."""


class JaxRuntimeError(CalqueRuntimeError, ValueError):
    """A check that failed where nothing looks for its error. Programs that handle it know it as a
    ValueError."""


ErrorCategory = type[JaxException]
Kinds = frozenset[ErrorCategory]
Out = TypeVar("Out")

user_checks: Kinds = frozenset({FailedCheckError})
nan_checks: Kinds = frozenset({NaNError})
index_checks: Kinds = frozenset({OOBError})
div_checks: Kinds = frozenset({DivisionByZeroError})
float_checks = nan_checks | div_checks
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks


class Site(NamedTuple):
    """What a check says when it fails.

    Args:
        fmt: A format of the values.
        tree: The structure of the values, as (args, kwargs).
        suffix: What follows the message."""

    fmt: str
    tree: pytrees.PyTreeDef
    suffix: str = ""

    def text(self, payload: Sequence[Any]) -> str:
        args, kwargs = pytrees.unflatten(self.tree, [_value(p) for p in payload])
        return self.fmt.format(*args, **kwargs) + self.suffix


def _value(x: Any) -> Any:
    """A value of a payload, as the format of a message shows it."""
    records = isinstance(x, (np.ndarray, np.generic)) and x.dtype.names
    return keys_of_records(np.asarray(x)) if records else to_array(x)


class Outcome(NamedTuple):
    """One check in a program: whether it failed, and with which values."""

    site: Site
    failed: Any
    payload: tuple[Any, ...]


class Error:
    """The failures of a checked call: a tree of arrays, so that it may leave jit and vmap.

    Args:
        found: The checks, in the order in which they are told.

    >>> from calque.experimental import checkify
    >>> error, _ = checkify.checkify(lambda: checkify.check(False, "no"))()
    >>> error.get()
    'no (`check` failed)'"""

    def __init__(self, found: Sequence[Outcome] = ()):
        self._found = tuple(found)

    def get(self) -> str | None:
        """Gives the message of the first check that failed.

        Returns:
            A string, under vmap with a line for each failing member; None if all is well."""
        flags = [np.asarray(to_numpy(f.failed)) for f in self._found]
        shape = np.broadcast_shapes(*[f.shape for f in flags]) if flags else ()
        lines = []
        for where in itertools.product(*map(range, shape)):
            first = next(
                (f for f, flag in zip(self._found, flags) if np.broadcast_to(flag, shape)[where]),
                None,
            )
            if first is not None:
                text = first.site.text([np.asarray(to_numpy(p))[where] for p in first.payload])
                lines.append(
                    f"at mapped index {', '.join(map(str, where))}: {text}" if where else text
                )
        return "\n".join(lines) if lines else None

    @property
    def _metadata(self) -> dict[int, Site]:
        """What the checks say, by their numbers."""
        return {i: f.site for i, f in enumerate(self._found)}

    def throw(self) -> None:
        """Raises the error if there is one."""
        check_error(self)

    def __str__(self) -> str:
        return f"Error({self.get()})"

    __repr__ = __str__


def _flatten_error(error: Error) -> tuple[list[Any], Any]:
    return [[f.failed, *f.payload] for f in error._found], tuple([f.site for f in error._found])


def _unflatten_error(sites: Sequence[Site], parts: Any) -> Error:
    return Error([Outcome(s, p[0], tuple(p[1:])) for s, p in zip(sites, parts)])


pytrees.register(Error, _flatten_error, _unflatten_error)

init_error = Error()

# ---------------------------------------------------------------- the primitive


def payload_at_failure(ok: Any, payload: Sequence[Any]) -> tuple[Any, tuple[Any, ...]]:
    """Did anything fail, and the values of the first member that did. The payload has the
    dimensions of `ok` in front."""
    n = typeof(ok).ndim
    if n == 0:
        return ~ok, tuple(payload)
    flat = jnp.ravel(~ok)
    where = jnp.argmax(flat)
    return flat.any(), tuple([jnp.reshape(p, (-1, *typeof(p).shape[n:]))[where] for p in payload])


def _check_meaning(
    ok: np.ndarray, *payload: np.ndarray, site: Site, debug: bool = False
) -> list[Any]:
    if not debug and not ok.all():
        first = tuple(np.argwhere(~ok)[0])
        raise JaxRuntimeError(site.text([p[first] for p in payload]))
    return []


def _check_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
    return check_p.bind(*primals, **params), []


def _check_batch(axis: Axis, args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
    check_p.bind(*[front(x, d, axis.size) for x, d in zip(args, dims)], **params)
    return [], []


check_p: AxisPrimitive = AxisPrimitive(
    "check",
    meaning=_check_meaning,
    shape=lambda *avals, **_: [],
    jvp=_check_jvp,
    transpose=lambda cts, *args, **_: [None] * len(args),
    batch=_check_batch,
    multiple_results=True,
    effect=True,
)


def check_error(error: Error) -> None:
    """Raises the error of a checked call if there is one; inside a `checkify`, hands it on.

    Args:
        error: The error that a checked function has returned.

    >>> from calque.experimental import checkify
    >>> checkify.check_error(checkify.init_error)"""
    if not isinstance(error, Error):
        raise ValueError(f"check_error takes an Error as argument, got type {type(error)} instead.")
    for f in error._found:
        check_p.bind(jnp.logical_not(f.failed), *f.payload, site=f.site, debug=False)

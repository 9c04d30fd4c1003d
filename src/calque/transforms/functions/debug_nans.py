"""`calque_debug_nans` and `calque_debug_infs`: the first operation that makes a nan raises
FloatingPointError.

While a flag is on, single operations are evaluated through `_checked`; jitted programs look at
their own results (`nan_checks`). Bad results of a program are explained by running it again, one
equation after the other. While both flags are off nothing of this module stands in anybody's
way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from calque.core import backends, errors
from calque.core.arrays import ArrayImpl, from_numpy, to_array, to_numpy
from calque.core.config import config
from calque.core.dtypes import is_inexact
from calque.core.jaxprs import ClosedJaxpr, Jaxpr
from calque.core.primitives import Primitive
from calque.core.source import here
from calque.core.trace import Evaluator, eval_jaxpr, evaluator, typeof
from calque.core.trace_state import Tracer
from calque.transforms.engines import axes
from calque.transforms.primitives.flow import split

# one process would stop while the others wait for it
ELSEWHERE: Final = (
    "calque_debug_nans and calque_debug_infs do not look at programs over the devices of several"
    " processes: look at the addressable shards of their results"
)


def active() -> bool:
    """Whether results are being looked at."""
    return config.debug_nans or config.debug_infs


def bad_kind(x: Any) -> str | None:
    """ "nan" or "inf" if the value holds one that its flag forbids."""
    if isinstance(x, Tracer):
        return None
    dtype = typeof(x).dtype
    if not isinstance(dtype, np.dtype) or not is_inexact(dtype):
        return None
    if isinstance(x, ArrayImpl) and x._extra is not None and not x.is_fully_addressable:
        return None
    values = to_numpy(x)
    if config.debug_nans and np.isnan(values).any():
        return "nan"
    return "inf" if config.debug_infs and np.isinf(values).any() else None


def as_array(x: Any, what: str) -> Any:
    """A Python number as an array, looked at if results are."""
    out = to_array(x)
    kind = bad_kind(out) if active() else None
    if kind is not None:
        raise _refuse(kind, what)
    return out


def _first_bad(outs: Sequence[Any]) -> str | None:
    return next((k for k in map(bad_kind, outs) if k is not None), None)


def _refuse(kind: str, name: str) -> Exception:
    place = here()
    text = f"invalid value ({kind}) encountered in {name}" + (f" at {place}" if place else "")
    found = errors.InvalidValueError(text)
    parts = name == "shard_map" or any(a.devices for a in axes.in_scope())
    return on_devices(found) if parts else found


def on_devices(e: Exception) -> Exception:
    """An invalid value in a program for several devices, as programs written for JAX know it."""
    text = str(e)
    if text.startswith("Invalid value"):
        return e
    kind = text[text.find("(") + 1 : text.find(")")]
    return errors.InvalidValueError(
        f"Invalid value ({kind}) encountered in sharded computation. {text}"
    )


MADE_NOWHERE: Final = "the de-optimized function did not make it"


def explain(closed: ClosedJaxpr, args: Sequence[Any], name: str) -> None:
    """A result of a jitted program holds what a flag forbids: raise, naming the equation that made
    it."""
    given = _first_bad(args)
    if given is not None:
        raise _refuse(
            given,
            f"the jitted function {name}: {MADE_NOWHERE}, it is in an input,",
        )
    eval_jaxpr(closed.jaxpr, closed.consts, *args)  # every operation is checked
    blame(name)


def blame(name: str) -> None:
    """Raise where no operation can be named."""
    kind = "nan" if config.debug_nans else "inf"
    raise _refuse(
        kind,
        f"the jitted function {name}: {MADE_NOWHERE} in any of its"
        " operations when they run one by one, so it is a literal or a constant of the program,",
    )


# ---------------------------------------------------------------- operations


def _checked(
    evaluate: Evaluator, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]
) -> Any:
    """Evaluate one primitive and look at the result."""
    out = evaluate(primitive, args, params)
    if not active():  # the flag is on in another thread
        return out
    kind = _first_bad(out if primitive.multiple_results else (out,))
    if kind is not None:
        rerun = _RERUNS.get(primitive.name)
        if rerun is not None:
            rerun(args, **params)
        raise _refuse(kind, primitive.name)
    return out


def _run(closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    return eval_jaxpr(closed.jaxpr, closed.consts, *args)


def _round(closed: ClosedJaxpr) -> Callable[[Sequence[Any]], list[Any]]:
    """One round of a loop, compiled; of the round whose results are bad every operation is looked
    at."""
    executable = backends.compile_program(closed, backends.Options("round", config.exact, ()))

    def run(args: Sequence[Any]) -> list[Any]:
        outs: list[Any] = list(executable.call([to_array(a) for a in args]))
        return outs if _first_bad(outs) is None else _run(closed, args)

    return run


def _rerun_call(args: Sequence[Any], jaxpr: Any = None, call_jaxpr: Any = None, **_: Any) -> None:
    program = jaxpr if jaxpr is not None else call_jaxpr
    if isinstance(program, ClosedJaxpr):
        _run(program, args)
    elif isinstance(program, Jaxpr) and not program.constvars:
        eval_jaxpr(program, (), *args)


def _rerun_cond(args: Sequence[Any], branches: Sequence[ClosedJaxpr], **_: Any) -> None:
    index = int(to_numpy(args[0]))
    _run(branches[min(max(index, 0), len(branches) - 1)], args[1:])


def _rerun_while(
    args: Sequence[Any],
    cond_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_jaxpr: ClosedJaxpr,
    body_nconsts: int,
    **_: Any,
) -> None:
    cond_consts, body_consts, carry = split(args, cond_nconsts, body_nconsts)
    go_on, body = _round(cond_jaxpr), _round(body_jaxpr)
    while bool(to_numpy(go_on([*cond_consts, *carry])[0]).any()):
        carry = body([*body_consts, *carry])


def _rerun_scan(
    args: Sequence[Any],
    jaxpr: ClosedJaxpr,
    length: int,
    num_carry: int,
    num_consts: int,
    reverse: bool,
    **_: Any,
) -> None:
    consts, carry, xs = split(args, num_consts, num_carry)
    columns, body = [(to_numpy(x), typeof(x).weak_type) for x in xs], _round(jaxpr)
    for i in reversed(range(length)) if reverse else range(length):
        rows = [from_numpy(np.asarray(x[i]), weak) for x, weak in columns]
        carry = body([*consts, *carry, *rows])[:num_carry]


_RERUNS: Final[dict[str, Any]] = {
    **dict.fromkeys(
        ("jit", "closed_call", "call", "remat2", "custom_jvp_call", "custom_vjp_call"), _rerun_call
    ),
    "cond": _rerun_cond,
    "while": _rerun_while,
    "scan": _rerun_scan,
}

# ---------------------------------------------------------------- switching


def _switch() -> None:
    """Look at results while a flag is on in any thread."""
    wanted = config.anywhere("debug_nans") or config.anywhere("debug_infs")
    evaluator.intercept("nans", _checked if wanted else None)


config.on_change(_switch)
_switch()

"""Random keys that are used twice, found in programs before they run and, while
`calque_debug_key_reuse` is on, in operations as they run.

A program is gone through in order: every variable that holds keys is a view of a cell that knows
which of its elements are used up (`core.key_use`). The body of a loop is gone through twice: what
it uses up a second time it would use in every round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from calque.core import key_use
from calque.core.config import config
from calque.core.errors import KeyReuseError
from calque.core.jaxprs import ClosedJaxpr, Eqn, Jaxpr, Literal
from calque.core.key_use import Keys, is_key, is_tracked
from calque.core.primitives import NotApplicable, Primitive
from calque.core.source import callers, here
from calque.core.trace import Evaluator, evaluator, typeof
from calque.core.trace_state import Tracer
from calque.transforms.functions.key_signatures import (
    NOTHING,
    Forward,
    KeyReuseSignature,
    Sink,
    Source,
    key_reuse_signatures,
    of_operation,
)
from calque.transforms.functions.shapes import make_jaxpr
from calque.transforms.primitives.flow import split

Values = list[Keys | None]  # None: no keys


def _fresh(avals: Sequence[Any], used: bool = False) -> Values:
    return [key_use.new(a, used) if is_tracked(a) else None for a in avals]


# ---------------------------------------------------------------- programs


def run(jaxpr: Jaxpr, args: Sequence[Keys | None]) -> Values:
    """Go through the program with these keys as arguments and constants; gives those of the
    results."""
    env: dict[Any, Keys | None] = dict(zip((*jaxpr.invars, *jaxpr.constvars), args, strict=True))
    for e in jaxpr.eqns:
        ins = [None if isinstance(a, Literal) else env.get(a) for a in e.invars]
        if e.primitive is assert_consumed_p:
            _check_state(ins[0], e.params["value"])
            continue
        outs = [v.aval for v in e.outvars]
        if any(v is not None for v in ins) or any(map(is_key, outs)):
            signature = of_eqn(e)
            name, how = _names(e)
            results = _applied(signature, name, ins, outs, str(e.source), how=how)
            env.update(zip(e.outvars, results))
    return [None if isinstance(a, Literal) else env.get(a) for a in jaxpr.outvars]


def _names(e: Eqn) -> tuple[str, str]:
    """What uses a key, as programs written for JAX know it, where distributions are jitted; and as
    the user has called it."""
    name, stack = e.primitive.name, e.source.name_stack if e.source else ""
    room, _, called = stack.rpartition("/")[2].partition(".")
    distribution = room == "random" and called not in _OF_KEYS and name.startswith("random_")
    return ("jit", f"random.{called}") if distribution else (name, name)


# functions of keys that are single operations
_OF_KEYS: Final = ("bits", "split", "fold_in", "clone", "key", "PRNGKey", "wrap_key_data")


def _applied(
    signature: KeyReuseSignature,
    name: str,
    ins: Sequence[Keys | None],
    outs: Sequence[Any],
    where: str,
    beginning: str = "In {name}, argument {i} is already consumed.",
    how: str = "",
) -> Values:
    """Use up what is used up; the keys of the results."""
    how = how or name
    for s in sorted(signature.sinks, key=lambda s: s.idx):
        keys = ins[s.idx]
        if keys is not None and not keys.use(s.mask, how, where):
            raise key_use.reused(beginning.format(name=name, i=s.idx), keys, how, where)
    results = _fresh(outs)
    unknown = {i for i, aval in enumerate(outs) if is_key(aval)}
    for source in signature.sources:
        results[source.idx] = key_use.new(outs[source.idx], ~source.mask)
        unknown.discard(source.idx)
    for i, j in signature.forwards:
        keys = ins[i]
        if keys is not None and is_tracked(outs[j]):
            results[j] = keys.seen_as(key_use.shape_of(outs[j]))
            unknown.discard(j)
    for j in unknown:  # nobody knows whether they have been used
        results[j] = key_use.new(outs[j], True)
    return results


def jaxpr_type_signature(jaxpr: Jaxpr) -> KeyReuseSignature:
    """What the program does to its arguments (after them its constants) and results. A key that it
    uses twice is an error."""
    inputs = [v.aval for v in (*jaxpr.invars, *jaxpr.constvars)]
    args = _fresh(inputs)
    return _signature(args, run(jaxpr, args), [a.aval for a in jaxpr.outvars])


def _signature(args: Values, results: Values, outs: Sequence[Any]) -> KeyReuseSignature:
    """What has been done to the arguments, that were new before."""
    parts: list[Any] = [Sink(i, k.used) for i, k in enumerate(args) if k and k.used.any()]
    cells = {id(k.cell): i for i, k in enumerate(args) if k}
    for i, keys in enumerate(results):
        if keys is None:
            continue
        if id(keys.cell) in cells:
            parts.append(Forward(cells[id(keys.cell)], i))
        elif (is_key(outs[i]) and not keys.used.all()) or keys.used.any():
            parts.append(Source(i, ~keys.used))
    return KeyReuseSignature(*parts)


def of_closed(closed: ClosedJaxpr) -> KeyReuseSignature:
    """The signature of a program, worked out once."""
    if "key reuse" not in closed.cache:
        closed.cache["key reuse"] = jaxpr_type_signature(closed.jaxpr)
    found: KeyReuseSignature = closed.cache["key reuse"]
    return found


def _of_operands(signature: KeyReuseSignature, n: int, first: int = 0) -> KeyReuseSignature:
    """The signature of a call with `n` operands, from `first` on: without the constants of its
    program."""
    return KeyReuseSignature(
        *[Sink(s.idx + first, s.mask) for s in signature.sinks if s.idx < n],
        *signature.sources,
        *[Forward(i + first, j) for i, j in signature.forwards if i < n],
    )


# ---------------------------------------------------------------- calls, branches, loops


def _of_call(ins: Sequence[Any], outs: Sequence[Any], params: dict[str, Any]) -> Any:
    program = params["jaxpr"] if "jaxpr" in params else params.get("call_jaxpr", params.get("call"))
    if isinstance(program, ClosedJaxpr):
        return _of_operands(of_closed(program), len(ins))
    if isinstance(program, Jaxpr):
        return _of_operands(jaxpr_type_signature(program), len(ins))
    return NOTHING  # a Python function: its operations are looked at when they run


def _of_remat(ins: Sequence[Any], outs: Sequence[Any], params: dict[str, Any]) -> Any:
    """What is computed once more uses keys as it did the first time."""
    if params.get("differentiated"):
        return KeyReuseSignature(*[Source(i) for i, a in enumerate(outs) if is_key(a)])
    return _of_call(ins, outs, params)


def _of_cond(ins: Sequence[Any], outs: Sequence[Any], params: dict[str, Any]) -> Any:
    """Used up is what one of the branches uses; new is what all of them make."""
    n = len(ins) - 1
    found = [_of_operands(of_closed(b), n, first=1) for b in params["branches"]]
    masks: dict[int, Any] = {}
    for sink in [s for f in found for s in f.sinks]:
        masks[sink.idx] = masks.get(sink.idx, False) | sink.mask
    made = [{s.idx: s.mask for s in f.sources} for f in found]
    sources = [
        Source(i, np.logical_and.reduce([m[i] for m in made]))
        for i in made[0]
        if all(i in m for m in made)
    ]
    forwards = frozenset.intersection(*[f.forwards for f in found])
    held = {s.idx for s in sources} | {j for _, j in forwards}
    mixed = [  # one branch makes it, another hands on an operand
        Source(j)
        for j, a in enumerate(outs)
        if is_key(a)
        and j not in held
        and all(j in m or any(j == k for _, k in f.forwards) for m, f in zip(made, found))
    ]
    return KeyReuseSignature(*[Sink(i, m) for i, m in masks.items()], *sources, *forwards, *mixed)


def _in_every_round(what: str, step: Callable[[], Values]) -> Values:
    """The second round of a loop: what it uses again is used in every round."""
    try:
        return step()
    except KeyReuseError as e:
        raise KeyReuseError(
            f"{what} function leads to key reuse: the key is used in every round of a loop. {e}"
            " In a loop, carry a key and split it in each round, go through random.split(key, n),"
            " or use fold_in with the counter."
        ) from None


def _of_scan(ins: Sequence[Any], outs: Sequence[Any], params: dict[str, Any]) -> Any:
    body: ClosedJaxpr = params["jaxpr"]
    n, m = params["num_consts"], params["num_carry"]
    own = body.in_avals[n + m :]
    consts = _fresh([v.aval for v in body.jaxpr.constvars])
    fixed, carry = _fresh(ins[:n]), _fresh(ins[n : n + m])
    xs = _fresh(own)

    def step(carry: Values, xs: Values) -> Values:
        return run(body.jaxpr, [*fixed, *carry, *xs, *consts])

    length = params["length"]
    results = step(carry, xs)
    if not (isinstance(length, int) and length < 2):
        last = results[:m]
        results = _in_every_round("scan body", lambda: step(last, _fresh(own)))
    whole = [
        None if x is None else key_use.new(a, x.used.any())
        for x, a in zip(xs, ins[n + m :], strict=True)
    ]
    stacked: Values = [
        None if k is None else key_use.new(a, k.used.any())
        for k, a in zip(results[m:], outs[m:], strict=True)
    ]
    return _signature([*fixed, *carry, *whole], [*results[:m], *stacked], outs)


def _of_while(ins: Sequence[Any], outs: Sequence[Any], params: dict[str, Any]) -> Any:
    cond, body = params["cond_jaxpr"], params["body_jaxpr"]
    args = _fresh(ins)
    of_cond, of_body, carry = split(args, params["cond_nconsts"], params["body_nconsts"])
    cond_consts = _fresh([v.aval for v in cond.jaxpr.constvars])
    body_consts = _fresh([v.aval for v in body.jaxpr.constvars])

    def test(carry: Values) -> Values:
        return run(cond.jaxpr, [*of_cond, *carry, *cond_consts])

    def step(carry: Values) -> Values:
        return run(body.jaxpr, [*of_body, *carry, *body_consts])

    test(carry)
    state = step(carry)
    _in_every_round("while_loop cond", lambda: test(state))
    state = _in_every_round("while_loop body", lambda: step(state))
    _in_every_round("while_loop cond", lambda: test(state))
    return _signature(args, state, outs)


_PROGRAMS: Final[dict[str, Callable[..., Any]]] = {
    **dict.fromkeys(
        (
            "jit",
            "closed_call",
            "call",
            "core_call",
            "composite",
            "custom_jvp_call",
            "custom_vjp_call",
        ),
        _of_call,
    ),
    **dict.fromkeys(("custom_vmap_call", "custom_partitioning", "custom_lin"), _of_call),
    "remat2": _of_remat,
    "cond": _of_cond,
    "scan": _of_scan,
    "while": _of_while,
    "while_back": lambda ins, outs, params: NOTHING,  # it computes the rounds once more
}


def signature_of(
    primitive: Primitive, ins: Sequence[Any], outs: Sequence[Any], params: dict[str, Any]
) -> KeyReuseSignature:
    """What a primitive does to the keys among operands and results of these types."""
    rule = _PROGRAMS.get(primitive.name)
    if rule is not None:
        found: KeyReuseSignature = rule(ins, outs, params)
        return found
    return of_operation(primitive, ins, outs, params)


def of_eqn(e: Eqn) -> KeyReuseSignature:
    return signature_of(
        e.primitive, [a.aval for a in e.invars], [v.aval for v in e.outvars], e.params
    )


def function_type_signature(fun: Callable[..., Any], *args: Any) -> KeyReuseSignature:
    """What a function does to keys among its arguments and results."""
    with callers("random"):
        closed = make_jaxpr(fun)(*args)
    return jaxpr_type_signature(closed.jaxpr)


def check_key_reuse(fun: Callable[..., Any], /, *args: Any) -> None:
    """An error if the function uses a key twice; it is traced, not run.

    >>> import calque
    >>> from calque.experimental.key_reuse import _core
    >>> def twice(key):
    ...     return calque.random.bits(key) + calque.random.bits(key)
    >>> _core.check_key_reuse(twice, calque.random.key(0))
    Traceback (most recent call last):
    calque.core.errors.KeyReuseError: In random_bits, argument 0 is already consumed. ..."""
    function_type_signature(fun, *args)


def check_key_reuse_jaxpr(jaxpr: Jaxpr) -> None:
    """An error if the program uses a key twice."""
    jaxpr_type_signature(jaxpr)


# ---------------------------------------------------------------- saying what is expected


def _check_state(keys: Keys | None, value: Any) -> None:
    expected = np.asarray(value)
    if keys is None or not np.all(keys.used == expected):
        used = None if keys is None else keys.used.tolist()
        raise AssertionError(
            f"of these keys {'none is known' if keys is None else f'used up are {used}'}, expected"
            f" {expected.tolist()}"
        )


def _no_results(*args: Any, **params: Any) -> list[Any]:
    return []


_NEITHER: Final = NotApplicable("keys have no derivatives")


def _batch_assertion(args: Sequence[Any], dims: Sequence[Any], *, value: Any) -> Any:
    assert_consumed_p.bind(*args, value=value)
    return [], []


assert_consumed_p: Primitive = Primitive(
    "assert_consumed_value",
    meaning=_no_results,
    shape=_no_results,
    jvp=lambda primals, tangents, **params: (assert_consumed_p.bind(*primals, **params), []),
    transpose=_NEITHER,
    batch=_batch_assertion,
    multiple_results=True,
    effect=True,
)
consume_p: Primitive = Primitive(
    "consume",
    meaning=lambda key: key,
    shape=lambda key: key,
    jvp=lambda primals, tangents: (consume_p.bind(*primals), tangents[0]),
    transpose=_NEITHER,
    batch=lambda args, dims: (consume_p.bind(*args), dims[0]),
    effect=True,
)
key_reuse_signatures[consume_p] = KeyReuseSignature(Sink(0), Forward(0, 0))


def consume(key: Any) -> Any:
    """The key, which counts as used up from here on."""
    return consume_p.bind(key)


def assert_unconsumed(key: Any) -> None:
    """An AssertionError, when the program is checked, if a part of the key has been used up."""
    assert_consumed_p.bind(key, value=False)


def assert_consumed(key: Any, value: Any = True) -> None:
    """An AssertionError, when the program is checked, unless just the elements in the mask `value`
    have been used up."""
    assert_consumed_p.bind(key, value=_hashable(np.asarray(value, bool).tolist()))


def _hashable(x: Any) -> Any:
    return tuple(map(_hashable, x)) if isinstance(x, list) else x


# ---------------------------------------------------------------- operations as they run


def _keys_of(args: Sequence[Any], avals: Sequence[Any]) -> Values:
    return [
        key_use.keys_of(x, aval) if is_tracked(aval) and not isinstance(x, Tracer) else None
        for x, aval in zip(args, avals, strict=True)
    ]


def _checked(
    evaluate: Evaluator, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]
) -> Any:
    """Evaluate one primitive, if its keys have not been used before."""
    if not config.debug_key_reuse:  # it is on in another thread
        return evaluate(primitive, args, params)
    avals = [typeof(a) for a in args]
    ins = _keys_of(args, avals)
    if all(keys is None for keys in ins):
        return evaluate(primitive, args, params)
    if primitive is assert_consumed_p:
        _check_state(ins[0], params["value"])
    shapes = primitive.shape(*avals, **params)
    outs = list(shapes) if primitive.multiple_results else [shapes]
    signature = signature_of(primitive, avals, outs, params)
    held = _applied(signature, primitive.name, ins, outs, str(here()), _OPERATION)
    out = evaluate(primitive, args, params)
    for x, keys in zip(out if primitive.multiple_results else [out], held, strict=True):
        if keys is not None and (keys.used.any() or any(k and k.cell is keys.cell for k in ins)):
            key_use.remember(x, keys)
    return out


_OPERATION: Final = "Previously-consumed key passed to {name} at index {i}."
_PROGRAM: Final = "Previously-consumed key passed to jit-compiled function at index {i}."


def consume_arguments(signature: KeyReuseSignature, values: Sequence[Any], function: str) -> None:
    """A jitted function runs: the arguments that it uses up are used up now."""
    if not config.debug_key_reuse or not signature.sinks:
        return
    ins = _keys_of(values, [typeof(x) for x in values])
    only = KeyReuseSignature(*signature.sinks)
    _applied(only, function, ins, (), str(here()), _PROGRAM)


def watch() -> None:
    """While the flag is on in any thread, operations are looked at."""
    evaluator.intercept("key reuse", _checked if config.anywhere("debug_key_reuse") else None)


config.on_change(watch)
watch()

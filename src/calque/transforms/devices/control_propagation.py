"""Where the results of loops and branches are: a carry stays split as every round leaves it, a
result of branches as all of them give it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from calque.core.jaxprs import ClosedJaxpr
from calque.transforms.devices.sharding import NamedSharding, Sharding, is_in_own_memory
from calque.transforms.devices.specs import PartitionSpec

Where = Sequence[Sharding | None]
Follow = Callable[[ClosedJaxpr, Where], Where]  # from the arguments of a program to its results


def of_control(
    name: str, params: dict[str, Any], ins: Where, ranks: Sequence[int], follow: Follow
) -> list[Sharding | None] | None:
    """The results of a loop or of branches for operands of these ranks; None for other primitives,
    and where operands are in other memories than those of their devices."""
    rule = _RULES.get(name)
    if rule is None or not all(map(is_in_own_memory, ins)):
        return None
    return rule(params, list(ins), list(ranks), follow)


def _scan(
    params: dict[str, Any], ins: list[Any], ranks: list[int], follow: Follow
) -> list[Sharding | None]:
    fixed, n = params["num_consts"], params["num_consts"] + params["num_carry"]
    rows = [_of_row(s, rank) for s, rank in zip(ins[n:], ranks[n:])]
    body = params["jaxpr"]
    carry = _settled(
        ins[fixed:n], ranks[fixed:n], lambda c: follow(body, [*ins[:fixed], *c, *rows])
    )
    found = follow(body, [*ins[:fixed], *carry, *rows])
    outs = zip(found[len(carry) :], body.out_avals[len(carry) :])
    return [*carry, *[_of_rows(s, a.ndim) for s, a in outs]]


def _while(
    params: dict[str, Any], ins: list[Any], ranks: list[int], follow: Follow
) -> list[Sharding | None]:
    asked, n = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
    body = params["body_jaxpr"]
    return _settled(ins[n:], ranks[n:], lambda c: follow(body, [*ins[asked:n], *c]))


def _cond(
    params: dict[str, Any], ins: list[Any], ranks: list[int], follow: Follow
) -> list[Sharding | None]:
    first, *others = [follow(b, ins[1:]) for b in params["branches"]]
    outs = [a.ndim for a in params["branches"][0].out_avals]
    found = list(first)
    for other in others:
        found = [_common(a, b, rank) for a, b, rank in zip(found, other, outs)]
    return found


_RULES: Final[dict[str, Callable[..., list[Sharding | None]]]] = {
    "scan": _scan,
    "while": _while,
    "cond": _cond,
}


def _settled(
    carry: Where, ranks: Sequence[int], one_round: Callable[[Where], Where]
) -> list[Sharding | None]:
    """The shardings of a carry that a round leaves as they are."""
    known = list(carry)
    while True:
        after = [_common(a, b, n) for a, b, n in zip(known, one_round(known), ranks)]
        if after == known:
            return known
        known = after


def _common(a: Sharding | None, b: Sharding | None, rank: int) -> Sharding | None:
    """What two shardings of one value have in common: dimensions that both split alike. What was
    placed nowhere follows the other."""
    if a is None or b is None or a == b:
        return b if a is None else a
    if not isinstance(a, NamedSharding) or not isinstance(b, NamedSharding) or a.mesh != b.mesh:
        return a
    pairs = zip(a.spec.padded(rank), b.spec.padded(rank))
    return a.update(spec=PartitionSpec(*[x if x == y else None for x, y in pairs]))


def _of_row(s: Sharding | None, rank: int) -> Sharding | None:
    """The sharding of a row of what has this one."""
    if not isinstance(s, NamedSharding):
        return s
    return s.update(spec=PartitionSpec(*s.spec.padded(rank)[1:]))


def _of_rows(s: Sharding | None, rank: int) -> Sharding | None:
    """The sharding of rows of this rank that each have this one."""
    if not isinstance(s, NamedSharding):
        return s
    return s.update(spec=PartitionSpec(None, *s.spec.padded(rank)))

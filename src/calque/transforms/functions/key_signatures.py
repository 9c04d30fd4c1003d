"""What operations do to random keys: which operands they use up (`Sink`), which results are new
keys (`Source`), and which results are the keys of an operand (`Forward`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from calque.core.key_use import is_key
from calque.core.primitives import REGISTRY, Primitive


class _Place:
    """An operand or a result, and which of its elements are meant: a mask, or all or none."""

    __slots__ = ("idx", "mask")

    idx: int
    mask: np.ndarray

    def __init__(self, idx: int, mask: Any = True):
        kept = np.array(mask, bool)
        kept.flags.writeable = False
        object.__setattr__(self, "idx", idx)
        object.__setattr__(self, "mask", kept)

    def __setattr__(self, name: str, value: Any) -> None:
        raise ValueError(f"{type(self).__name__} cannot be changed: {name} is set when it is made")

    def _key(self) -> tuple[Any, ...]:
        mask = self.mask
        if mask.all() or not mask.any():
            return type(self), self.idx, bool(mask.all())
        return type(self), self.idx, mask.shape, mask.tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Place) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        rest = "" if self.mask.all() else f", {self.mask.tolist()}"
        return f"{type(self).__name__}({self.idx}{rest})"


class Sink(_Place):
    """An operand that is used up."""

    __slots__ = ()


class Source(_Place):
    """A result that is a new key."""

    __slots__ = ()


class Forward(NamedTuple):
    """A result that holds the keys of an operand."""

    in_idx: int
    out_idx: int

    def __repr__(self) -> str:
        return f"Forward({self.in_idx}, {self.out_idx})"


class KeyReuseSignature:
    """Sinks, sources and forwards, in any order.

    >>> from calque.experimental.key_reuse._core import KeyReuseSignature, Sink, Source
    >>> KeyReuseSignature(Source(0), Sink(1), Sink(0))
    KeyReuseSignature(Sink(0), Sink(1), Source(0))"""

    __slots__ = ("forwards", "sinks", "sources")

    def __init__(self, *parts: Sink | Source | Forward):
        self.sinks = frozenset(p for p in parts if isinstance(p, Sink))
        self.sources = frozenset(p for p in parts if isinstance(p, Source))
        self.forwards = frozenset(p for p in parts if isinstance(p, Forward))
        if len(self.sinks) + len(self.sources) + len(self.forwards) < len(set(parts)):
            raise ValueError(f"a signature is made of Sink, Source and Forward, got {parts!r}")

    @property
    def parts(self) -> list[Sink | Source | Forward]:
        """Everything in it, in order."""
        sinks = sorted(self.sinks, key=lambda s: s.idx)
        sources = sorted(self.sources, key=lambda s: s.idx)
        return [*sinks, *sources, *sorted(self.forwards)]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyReuseSignature) and set(self.parts) == set(other.parts)

    def __hash__(self) -> int:
        return hash(frozenset(self.parts))

    def __repr__(self) -> str:
        return f"KeyReuseSignature({', '.join(map(repr, self.parts))})"


# ---------------------------------------------------------------- of primitives

NOTHING: Final = KeyReuseSignature()
USES: Final = KeyReuseSignature(Sink(0))
MAKES: Final = KeyReuseSignature(Source(0))
PASSES_ON: Final = KeyReuseSignature(Forward(0, 0))
MOVES: Final = KeyReuseSignature(Sink(0), Source(0))  # the result takes the keys over
MERGES: Final = KeyReuseSignature(Sink(0), Sink(1), Source(0))

_FIXED: Final[dict[str, KeyReuseSignature]] = {
    "random_bits": USES,
    "random_gamma": USES,
    "random_split": MOVES,
    "random_seed": MAKES,
    "random_clone": MAKES,
    "random_fold_in": MAKES,  # of the key and a number: the key may give other ones
    "random_wrap": PASSES_ON,  # raw keys are followed too
    "random_unwrap": PASSES_ON,
    "empty": MAKES,
    **dict.fromkeys(("eq", "ne", "eq_to", "le_to", "lt_to", "dce_sink"), NOTHING),
    **dict.fromkeys(
        ("broadcast_in_dim", "copy", "convert_element_type", "reshape", "squeeze", "name")
        + ("sharding_constraint", "device_put", "stop_gradient", "stage", "pvary", "pvary_like"),
        PASSES_ON,
    ),
    **dict.fromkeys(
        ("dynamic_slice", "gather", "rev", "transpose", "all_gather", "all_to_all", "ppermute"),
        MOVES,
    ),
    **dict.fromkeys(("dynamic_update_slice", "pad"), MERGES),
    "scatter": KeyReuseSignature(Sink(0), Sink(2), Source(0)),
}

key_reuse_signatures: Final[dict[Primitive, KeyReuseSignature]] = {
    REGISTRY[name]: signature for name, signature in _FIXED.items() if name in REGISTRY
}

SignatureRule = Callable[[Sequence[Any], Sequence[Any], dict[str, Any]], KeyReuseSignature]


def _all_merge(ins: Sequence[Any], outs: Sequence[Any], params: dict[str, Any]) -> Any:
    """Every operand goes into every result."""
    sinks = [Sink(i) for i in range(len(ins))]
    return KeyReuseSignature(*sinks, *[Source(i) for i in range(len(outs))])


def _slice(ins: Sequence[Any], outs: Sequence[Any], params: dict[str, Any]) -> Any:
    """The selected elements are used up, so that they are not selected twice."""
    shape, starts = ins[0].shape, params["start_indices"]
    if not all(type(n) is int for n in (*shape, *starts, *params["limit_indices"])):
        return MOVES
    mask = np.zeros(shape, bool)
    steps = params["strides"] or (1,) * len(shape)
    mask[tuple(map(slice, starts, params["limit_indices"], steps))] = True
    keys = mask if is_key(ins[0]) else mask.any(-1)  # whose words these are
    return KeyReuseSignature(Sink(0, keys), Source(0))


def _select(ins: Sequence[Any], outs: Sequence[Any], params: dict[str, Any]) -> Any:
    return KeyReuseSignature(*[Sink(i) for i in range(1, len(ins))], Source(0))


def _each(ins: Sequence[Any], outs: Sequence[Any], params: dict[str, Any]) -> Any:
    return KeyReuseSignature(*[Forward(i, i) for i in range(len(ins))])


_RULES: Final[dict[str, SignatureRule]] = {
    "slice": _slice,
    "select_n": _select,
    "optimization_barrier": _each,
    **dict.fromkeys(("concatenate", "stack", "unstack", "split"), _all_merge),
}


def of_operation(
    primitive: Primitive, ins: Sequence[Any], outs: Sequence[Any], params: dict[str, Any]
) -> KeyReuseSignature:
    """The signature of a primitive that holds no programs, on operands and results of these
    types. What is not known here uses up every typed key that it is given."""
    fixed = key_reuse_signatures.get(primitive)
    if fixed is not None:
        return fixed
    rule = _RULES.get(primitive.name)
    if rule is not None:
        return rule(ins, outs, params)
    return KeyReuseSignature(*[Sink(i) for i, aval in enumerate(ins) if is_key(aval)])

"""How the dimensions of the operands and results of an operation belong together, said by factors:
"i k, k j -> i j" is a product of matrices."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

BATCHING: Final = "…"  # stands for the leading dimensions that are not named
_DOTS: Final = re.compile(r"\.\.\.(\d*)")  # the same in texts, with a number of these dimensions
_LEADING: Final = re.compile(rf"{BATCHING}(\d*)")
SPECIAL: Final = ("reduction_factors", "need_replication_factors", "permutation_factors")
UNKNOWN: Final = -1  # the size of a factor that has stood beside others only
Shape = tuple[int, ...]
Dimensions = tuple[tuple[int, ...], ...]  # the factors of each


class CompoundFactor(tuple[str, ...]):
    """Factors that make one dimension together.

    Args:
        factors: Their names, two or more.

    >>> from calque.experimental.custom_partitioning import CompoundFactor
    >>> CompoundFactor("i", "j")
    ('i', 'j')"""

    def __new__(cls, *factors: str) -> CompoundFactor:
        if len(factors) < 2:
            raise ValueError("A compound factor should contain at least two factors")
        for f in factors:
            if not isinstance(f, str):
                raise ValueError(f"Each element of CompoundFactor must be a str, but got {type(f)}")
            _check_factor(f)
        return super().__new__(cls, factors)


class ArrayMapping(tuple[Any, ...]):
    """The factors of each dimension of an array.

    Args:
        dim_mappings: For each dimension a name, or a CompoundFactor; the first may begin with
            `BATCHING`.

    >>> from calque.experimental.custom_partitioning import ArrayMapping
    >>> ArrayMapping("i", "j")
    ('i', 'j')"""

    def __new__(cls, *dim_mappings: Any) -> ArrayMapping:
        for place, d in enumerate(dim_mappings):
            if isinstance(d, CompoundFactor):
                continue
            if not isinstance(d, str):
                raise ValueError(
                    f"Each element of ArrayMapping must be a str or CompoundFactor, got {type(d)}"
                )
            if not _LEADING.fullmatch(d):
                _check_factor(d)
            elif place:
                raise ValueError("Ellipsis can only be used at the beginning of a dimension")
        return super().__new__(cls, dim_mappings)


class SdyShardingRule:
    """How the dimensions of operands and results belong together.

    Args:
        operand_mappings: An ArrayMapping for each operand.
        result_mappings: An ArrayMapping for each result.
        reduction_factors: Factors that are summed over.
        need_replication_factors: Factors that are not split.
        permutation_factors: Factors whose parts move among devices.
        factor_sizes: The sizes of factors that only stand in compound ones.

    >>> from calque.experimental.custom_partitioning import ArrayMapping, SdyShardingRule
    >>> print(SdyShardingRule((ArrayMapping("i"),), (ArrayMapping("i"),)))
    SdyShardingRule((('i',),), (('i',),), {})"""

    def __init__(
        self,
        operand_mappings: tuple[Any, ...],
        result_mappings: tuple[Any, ...],
        *,
        reduction_factors: tuple[str, ...] = (),
        need_replication_factors: tuple[str, ...] = (),
        permutation_factors: tuple[str, ...] = (),
        **factor_sizes: int,
    ) -> None:
        self.operand_mappings, self.result_mappings = (
            tuple(operand_mappings),
            tuple(result_mappings),
        )
        self.reduction_factors = tuple(reduction_factors)
        self.need_replication_factors = tuple(need_replication_factors)
        self.permutation_factors = tuple(permutation_factors)
        self.factor_sizes = factor_sizes
        known = self._factors()
        special = (
            *self.reduction_factors,
            *self.need_replication_factors,
            *self.permutation_factors,
        )
        for f in special:
            if f not in known:
                raise ValueError(f"Factor {f} is not in the mappings of operands or results")
        if len(set(special)) < len(special):
            raise ValueError("A factor can be of one special kind only, and once")
        compound = {f for f, alone in known.items() if not alone}
        if missing := sorted(compound - factor_sizes.keys()):
            raise ValueError(f"The sizes of factors {missing} of compound ones must be given")
        if unknown := sorted(factor_sizes.keys() - compound):
            raise ValueError(
                f"Factors {unknown} are given sizes, but stand in no compound one only"
            )

    def _factors(self) -> dict[str, bool]:
        """The factors, with whether they are a dimension by themselves somewhere."""
        found: dict[str, bool] = {}
        for d in (d for m in (*self.operand_mappings, *self.result_mappings) for d in m):
            parts = d if isinstance(d, CompoundFactor) else (d,)
            for f in parts:
                found[f] = found.get(f, False) or parts is not d
        return found

    def __str__(self) -> str:
        special = "".join(f" {k}={getattr(self, k)}" for k in SPECIAL if getattr(self, k))
        mappings = f"{self.operand_mappings}, {self.result_mappings}"
        return f"SdyShardingRule({mappings}, {self.factor_sizes}{special})"


def parsed_rule(rule: str, said: dict[str, Any]) -> SdyShardingRule:
    """The rule that a text says."""
    if BATCHING in rule:
        raise ValueError(f"Unknown character {BATCHING!r} in rule: {rule!r}: write ... for it")
    left, arrow, right = _DOTS.sub(_group_as_written, rule).partition("->")
    if not arrow or "->" in right:
        raise ValueError(f"There must be one -> in rule: {rule!r}")
    operands, results = ([_mapping(part, rule) for part in s.split(",")] for s in (left, right))
    return SdyShardingRule(tuple(operands), tuple(results), **said)


def _group_as_written(found: re.Match[str]) -> str:
    """Leading dimensions that are not named, with the number of their group."""
    return f" {BATCHING}{int(found[1] or 0)} "


def _mapping(text: str, rule: str) -> ArrayMapping:
    """The factors of one array."""
    found: list[Any] = []
    inside: list[str] | None = None
    for word in text.replace("(", " ( ").replace(")", " ) ").split():
        if word in "()":
            if (word == "(") != (inside is None):
                raise ValueError(f"Brackets are not balanced in rule: {rule!r}")
            if inside is not None:
                found.append(CompoundFactor(*inside))
            inside = [] if word == "(" else None
        else:
            (found if inside is None else inside).append(word)
    if inside is not None:
        raise ValueError(f"Brackets are not balanced in rule: {rule!r}")
    return ArrayMapping(*found)


def _check_factor(name: str) -> None:
    if not name[:1].isalpha():
        raise ValueError(f"Factor names have to start with a letter, but got {name!r}")
    if not name.replace("_", "").isalnum():
        raise ValueError(f"Unknown character in the factor name {name!r}")


# ---------------------------------------------------------------- the factors of arrays at hand


@dataclass(frozen=True)
class Factors:
    """A rule for arrays of known shapes: the size of each factor, and by their numbers the factors
    of each dimension of each operand and result, and those of each special kind."""

    sizes: tuple[int, ...]
    operands: tuple[Dimensions, ...]
    results: tuple[Dimensions, ...]
    kinds: dict[str, tuple[int, ...]]


def factors_of(
    rule: SdyShardingRule, operands: Sequence[Shape], results: Sequence[Shape]
) -> Factors:
    """The factors of operands and results of these shapes; ValueError where the rule is of
    others."""
    for what, mappings, shapes in (
        ("operands", rule.operand_mappings, operands),
        ("results", rule.result_mappings, results),
    ):
        if len(mappings) != len(shapes):
            raise ValueError(
                f"Sharding rule has {len(mappings)} {what}, but the operation has {len(shapes)}"
                f" {what}"
            )
    names = [f"operand {i}" for i in range(len(operands))]
    names += [f"result {i}" for i in range(len(results))]
    shapes = [*map(tuple, operands), *map(tuple, results)]
    found = _Numbering(rule.factor_sizes)
    mappings = (*rule.operand_mappings, *rule.result_mappings)
    arrays = [found.array(*each) for each in zip(names, mappings, shapes, strict=True)]
    for name, array, shape in zip(names, arrays, shapes):
        found.check_products(name, array, shape)
    n = len(operands)
    kinds = {k: tuple([found.numbers[f] for f in getattr(rule, k)]) for k in SPECIAL}
    return Factors(tuple(found.sizes), tuple(arrays[:n]), tuple(arrays[n:]), kinds)


class _Numbering:
    """The factors of a rule, numbered as they are met."""

    def __init__(self, said: dict[str, int]) -> None:
        self.said = said  # the sizes of factors that are no dimension by themselves
        self.numbers: dict[Any, int] = {}  # of leading dimensions by (group, place)
        self.sizes: list[int] = []
        self.ranks: dict[str, int] = {}  # how many leading dimensions a group has

    def array(self, name: str, mapping: Sequence[Any], shape: Shape) -> Dimensions:
        """The factors of each dimension of an array of this shape."""
        named, leading = tuple(mapping), []
        group = _LEADING.fullmatch(named[0]) if named and isinstance(named[0], str) else None
        if group is not None:
            named = named[1:]
            leading = self.leading(group[1] or "0", shape[: max(len(shape) - len(named), 0)])
        if len(leading) + len(named) != len(shape):
            raise ValueError(
                f"Sharding rule {name} has rank {len(leading) + len(named)}, but the operation"
                f" {name} has rank {len(shape)}"
            )
        rest = [self.dimension(d, size) for d, size in zip(named, shape[len(leading) :])]
        return (*leading, *rest)

    def leading(self, group: str, shape: Shape) -> list[tuple[int, ...]]:
        """The factors of dimensions that are not named, which have the same sizes everywhere."""
        rank = self.ranks.setdefault(group, len(shape))
        if rank != len(shape):
            raise ValueError(
                f"Ellipsis represents different number of leading dimensions {rank} and"
                f" {len(shape)}"
            )
        numbers = [self.number((group, k), size) for k, size in enumerate(shape)]
        for k, (n, size) in enumerate(zip(numbers, shape)):
            if self.sizes[n] != size:
                raise ValueError(
                    f"Batching dimension {k} of ...{group} corresponds to two sizes:"
                    f" {self.sizes[n]} and {size}"
                )
        return [(n,) for n in numbers]

    def dimension(self, factors: Any, size: int) -> tuple[int, ...]:
        """The factors of a named dimension. Of the sizes of one factor the smallest counts."""
        if isinstance(factors, str):
            n = self.number(factors, size)
            self.sizes[n] = size if self.sizes[n] == UNKNOWN else min(self.sizes[n], size)
            return (n,)
        return tuple([self.number(f, self.said.get(f, UNKNOWN)) for f in factors])

    def number(self, factor: Any, size: int) -> int:
        """The number of a factor, which has this size where it is met first."""
        if factor not in self.numbers:
            self.numbers[factor] = len(self.sizes)
            self.sizes.append(size)
        return self.numbers[factor]

    def check_products(self, name: str, array: Dimensions, shape: Shape) -> None:
        """Factors that make a dimension together make all of it."""
        for k, (factors, size) in enumerate(zip(array, shape)):
            product = math.prod(self.sizes[n] for n in factors)
            if len(factors) > 1 and product != size:
                raise ValueError(
                    f"Sharding rule {name}: dimension {k} has size {size}, but its factors make"
                    f" {product}"
                )

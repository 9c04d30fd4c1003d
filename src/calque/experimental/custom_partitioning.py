"""Functions that say how their work is split among devices.

What such a function gives does not depend on how it is split, so calque runs the function itself:
its engines split what they know how to split. The rules are checked when they are given, kept, and
not asked."""

from __future__ import annotations

import functools
import inspect
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final

from calque.core import pytrees
from calque.core.errors import UnexpectedTracerError
from calque.core.trace_state import Tracer
from calque.device_functions import device_count
from calque.transforms.engines.trees import name_of

BATCHING: Final = "…"  # stands for the leading dimensions that are not named
_DOTS: Final = re.compile(r"\.\.\.(\d*)")  # the same in texts, with a number of these dimensions


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
            if d.startswith(BATCHING) and place:
                raise ValueError("Ellipsis can only be used at the beginning of a dimension")
            if not d.startswith(BATCHING):
                _check_factor(d)
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
        kinds = ("reduction_factors", "need_replication_factors", "permutation_factors")
        special = "".join(f" {k}={getattr(self, k)}" for k in kinds if getattr(self, k))
        mappings = f"{self.operand_mappings}, {self.result_mappings}"
        return f"SdyShardingRule({mappings}, {self.factor_sizes}{special})"


class custom_partitioning:
    """A function that says how its work is split among devices.

    Args:
        fun: The function of arrays.
        static_argnums: Positions of arguments that are no arrays.

    Differs from JAX:
        The function itself is what runs, on one device as on several, so that it may be
        differentiated and mapped as it stands; the rules are kept and not asked. Where there are
        several devices a warning says so.

    >>> from calque.experimental.custom_partitioning import custom_partitioning
    >>> @custom_partitioning
    ... def double(x):
    ...     return 2 * x
    >>> _ = double.def_partition(
    ...     lambda mesh, args, result: (mesh, double, result.sharding, (args[0].sharding,)),
    ...     sharding_rule="i -> i",
    ... )
    >>> double(jnp.arange(3))
    Array([0, 2, 4], dtype=int32)"""

    def __init__(self, fun: Callable[..., Any], static_argnums: Sequence[int] = ()) -> None:
        if not callable(fun):
            raise TypeError(f"custom_partitioning: the function must be callable, got {fun!r}")
        self.fun, self.static_argnums = fun, tuple(static_argnums)
        self.partition: Callable[..., Any] | None = None
        self.infer_sharding_from_operands: Callable[..., Any] | None = None
        self.propagate_user_sharding: Callable[..., Any] | None = None
        self.decode_shardings = True
        self.sharding_rule: Any = None
        self.is_said = False  # that its rules are not asked
        functools.update_wrapper(self, fun)

    def def_partition(
        self,
        partition: Callable[..., Any],
        infer_sharding_from_operands: Callable[..., Any] | None = None,
        propagate_user_sharding: Callable[..., Any] | None = None,
        decode_shardings: bool = True,
        sharding_rule: Any = None,
        *,
        reduction_factors: tuple[str, ...] = (),
        need_replication_factors: tuple[str, ...] = (),
        permutation_factors: tuple[str, ...] = (),
        **factor_sizes: int,
    ) -> Callable[..., Any]:
        """Says how the work is split. The rules are kept and not asked.

        Args:
            partition: A function of a mesh, arguments and result that gives a mesh, a function of
                the parts, and shardings.
            infer_sharding_from_operands: A function that gives the sharding of the result.
            propagate_user_sharding: A function of the sharding that is wanted.
            decode_shardings: Whether these are given NamedShardings.
            sharding_rule: A text such as "i k, k j -> i j", an SdyShardingRule, or a function that
                makes one of them.
            reduction_factors: Factors of a text that are summed over.
            need_replication_factors: Factors of a text that are not split.
            permutation_factors: Factors of a text whose parts move among devices.
            factor_sizes: The sizes of factors of a text that only stand in brackets.

        Returns:
            `partition`."""
        rules = (partition, infer_sharding_from_operands, propagate_user_sharding)
        for rule in rules[partition is None :]:
            if rule is not None and not callable(rule):
                raise TypeError(f"def_partition: a rule must be callable, got {rule!r}")
        said = {
            "reduction_factors": reduction_factors,
            "need_replication_factors": need_replication_factors,
            "permutation_factors": permutation_factors,
            **factor_sizes,
        }
        self.sharding_rule = _checked_rule(sharding_rule, {k: v for k, v in said.items() if v})
        self.partition, self.decode_shardings = partition, decode_shardings
        self.infer_sharding_from_operands = infer_sharding_from_operands
        self.propagate_user_sharding = propagate_user_sharding
        return partition

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = inspect.signature(self.fun).bind(*args, **kwargs)
        given.apply_defaults()
        for i in self.static_argnums:
            if any(isinstance(x, Tracer) for x in pytrees.leaves(given.args[i])):
                raise UnexpectedTracerError(
                    f"custom_partitioning: argument {i} of {name_of(self.fun)} is static, but a"
                    " traced value was given"
                )
        self._warn()
        return self.fun(*args, **kwargs)

    def _warn(self) -> None:
        """Say once that the rules are not asked, where there are devices to split the work over."""
        if self.is_said or self.partition is None or device_count() == 1:
            return
        self.is_said = True
        warnings.warn(
            f"custom_partitioning of {name_of(self.fun)}: its rules are kept and not asked. The"
            " function itself runs, and the compiler splits it: what partition would compute is not"
            " computed. Say how to split the work by calque.shard_map",
            UserWarning,
            stacklevel=3,
        )


def _checked_rule(rule: Any, said: dict[str, Any]) -> Any:
    """A rule as it is kept."""
    if isinstance(rule, str):
        return _parsed(rule, said)
    if said:
        raise ValueError(
            f"def_partition: {', '.join(said)} belong to a sharding_rule that is a text"
        )
    if rule is not None and not callable(rule) and not isinstance(rule, SdyShardingRule):
        raise TypeError(
            "def_partition: sharding_rule must be a text, an SdyShardingRule or a function, got"
            f" {rule!r}"
        )
    return rule


def _parsed(rule: str, said: dict[str, Any]) -> SdyShardingRule:
    """The rule that a text says."""
    left, arrow, right = _DOTS.sub(rf" {BATCHING}\1 ", rule).partition("->")
    if not arrow or "->" in right:
        raise ValueError(f"There must be one -> in rule: {rule!r}")
    operands, results = ([_mapping(part, rule) for part in s.split(",")] for s in (left, right))
    return SdyShardingRule(tuple(operands), tuple(results), **said)


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


__all__ = ["BATCHING", "ArrayMapping", "CompoundFactor", "SdyShardingRule", "custom_partitioning"]

"""Policies of `checkpoint`: which results of a function may be kept for its backward pass."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

Policy = Callable[..., Any]


class _Answer:
    """What a policy may return in place of True and False."""

    def __init__(self, name: str, keep: bool):
        self.name, self.keep = name, keep

    def __bool__(self) -> bool:
        return self.keep

    def __repr__(self) -> str:
        return self.name


Saveable, Recompute = _Answer("Saveable", True), _Answer("Recompute", False)


class Offloadable(NamedTuple):
    """The answer of a policy that keeps a value in another memory. There is one memory: it is kept.

    Args:
        src: The memory that it is in.
        dst: The memory that it would go to.

    >>> jax.ad_checkpoint.Offloadable("device", "pinned_host").dst
    'pinned_host'"""

    src: str
    dst: str


def everything_saveable(prim: Any, *avals: Any, **params: Any) -> bool:
    """Keep every value: as if there were no checkpoint."""
    return True


def nothing_saveable(prim: Any, *avals: Any, **params: Any) -> bool:
    """Keep nothing but the arguments. The default."""
    return False


@dataclass(frozen=True)
class DotsSaveable:
    """Keep the results of matrix products."""

    only_if_no_batch_dims: bool

    def __call__(self, prim: Any, *avals: Any, **params: Any) -> bool:
        if prim.name != "dot_general":
            return prim.name == "conv_general_dilated" and not self.only_if_no_batch_dims
        _, (lhs_batch, rhs_batch) = params["dimension_numbers"]
        return not self.only_if_no_batch_dims or not (lhs_batch or rhs_batch)


@dataclass(frozen=True)
class SaveOnlyTheseNames:
    """Keep the values that `checkpoint_name` gave one of these names."""

    saveable_names: frozenset[str]

    def __call__(self, prim: Any, *avals: Any, **params: Any) -> bool:
        return prim.name == "name" and params["name"] in self.saveable_names


@dataclass(frozen=True)
class SaveAnyNamesButThese:
    """Keep the values that `checkpoint_name` named, except for these names."""

    names_not_to_save: frozenset[str]

    def __call__(self, prim: Any, *avals: Any, **params: Any) -> bool:
        return prim.name == "name" and params["name"] not in self.names_not_to_save


@dataclass(frozen=True)
class SaveAnythingExceptTheseNames:
    """Keep every value except for those with these names."""

    names_not_to_save: frozenset[str]

    def __call__(self, prim: Any, *avals: Any, **params: Any) -> bool:
        return not (prim.name == "name" and params["name"] in self.names_not_to_save)


@dataclass(frozen=True)
class SaveFromBothPolicies:
    """Keep what either policy keeps."""

    policy1: Policy
    policy2: Policy

    def __call__(self, prim: Any, *avals: Any, **params: Any) -> bool:
        return bool(self.policy1(prim, *avals, **params) or self.policy2(prim, *avals, **params))


def save_only_these_names(*names_which_can_be_saved: str) -> Policy:
    return SaveOnlyTheseNames(frozenset(names_which_can_be_saved))


def save_any_names_but_these(*names_not_to_save: str) -> Policy:
    return SaveAnyNamesButThese(frozenset(names_not_to_save))


def save_anything_except_these_names(*names_not_to_save: str) -> Policy:
    return SaveAnythingExceptTheseNames(frozenset(names_not_to_save))


def save_and_offload_only_these_names(
    *,
    names_which_can_be_saved: Sequence[str],
    names_which_can_be_offloaded: Sequence[str],
    offload_src: str,
    offload_dst: str,
) -> Policy:
    """Keep values with these names. There is one memory here, so what may be offloaded is kept as
    well."""
    return SaveOnlyTheseNames(
        frozenset(names_which_can_be_saved) | frozenset(names_which_can_be_offloaded)
    )


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
    """Keep matrix products without batch dimensions. There is one memory here: nothing is moved."""
    return DotsSaveable(True)


checkpoint_policies = SimpleNamespace(
    everything_saveable=everything_saveable,
    nothing_saveable=nothing_saveable,
    dots_saveable=DotsSaveable(False),
    checkpoint_dots=DotsSaveable(False),
    dots_with_no_batch_dims_saveable=DotsSaveable(True),
    checkpoint_dots_with_no_batch_dims=DotsSaveable(True),
    offload_dot_with_no_batch_dims=offload_dot_with_no_batch_dims,
    save_anything_except_these_names=save_anything_except_these_names,
    save_any_names_but_these=save_any_names_but_these,
    save_only_these_names=save_only_these_names,
    save_from_both_policies=SaveFromBothPolicies,
    save_and_offload_only_these_names=save_and_offload_only_these_names,
)

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
    """The answer of a policy that keeps a value in another memory until the backward pass.

    Args:
        src: The kind of memory that it is in, and comes back to.
        dst: The kind of memory that it is kept in.

    >>> jax.ad_checkpoint.Offloadable("device", "pinned_host").dst
    'pinned_host'"""

    src: str
    dst: str


def everything_saveable(prim: Any, /, *avals: Any, **params: Any) -> bool:
    """Keep every value: as if there were no checkpoint."""
    return True


def nothing_saveable(prim: Any, /, *avals: Any, **params: Any) -> bool:
    """Keep nothing but the arguments. The default."""
    return False


@dataclass(frozen=True)
class DotsSaveable:
    """Keep the results of matrix products."""

    only_if_no_batch_dims: bool

    def __call__(self, prim: Any, /, *avals: Any, **params: Any) -> bool:
        if prim.name != "dot_general":
            return prim.name == "conv_general_dilated" and not self.only_if_no_batch_dims
        _, (lhs_batch, rhs_batch) = params["dimension_numbers"]
        return not self.only_if_no_batch_dims or not (lhs_batch or rhs_batch)


@dataclass(frozen=True)
class SaveOnlyTheseNames:
    """Keep the values that `checkpoint_name` gave one of these names."""

    saveable_names: frozenset[str]

    def __call__(self, prim: Any, /, *avals: Any, **params: Any) -> bool:
        return prim.name == "name" and params["name"] in self.saveable_names


@dataclass(frozen=True)
class SaveAnyNamesButThese:
    """Keep the values that `checkpoint_name` named, except for these names."""

    names_not_to_save: frozenset[str]

    def __call__(self, prim: Any, /, *avals: Any, **params: Any) -> bool:
        return prim.name == "name" and params["name"] not in self.names_not_to_save


@dataclass(frozen=True)
class SaveAnythingExceptTheseNames:
    """Keep every value except for those with these names."""

    names_not_to_save: frozenset[str]

    def __call__(self, prim: Any, /, *avals: Any, **params: Any) -> bool:
        return not (prim.name == "name" and params["name"] in self.names_not_to_save)


@dataclass(frozen=True)
class SaveFromBothPolicies:
    """Keep what either policy keeps."""

    policy1: Policy
    policy2: Policy

    def __call__(self, prim: Any, /, *avals: Any, **params: Any) -> Any:
        return self.policy1(prim, *avals, **params) or self.policy2(prim, *avals, **params)


@dataclass(frozen=True)
class SaveAndOffloadOnlyTheseNames:
    """Keep the values that `checkpoint_name` gave one of these names, some in another memory."""

    saveable_names: frozenset[str]
    offloadable_names: frozenset[str]
    move: Offloadable

    def __call__(self, prim: Any, /, *avals: Any, **params: Any) -> Any:
        name = params["name"] if prim.name == "name" else None
        return self.move if name in self.offloadable_names else name in self.saveable_names


@dataclass(frozen=True)
class OffloadDots:
    """Keep the matrix products that a policy keeps, in another memory."""

    dots: DotsSaveable
    move: Offloadable

    def __call__(self, prim: Any, /, *avals: Any, **params: Any) -> Any:
        return self.dots(prim, *avals, **params) and self.move


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
    """Keep values with these names, some of them in another memory."""
    saved, offloaded = set(names_which_can_be_saved), set(names_which_can_be_offloaded)
    if saved & offloaded:
        raise ValueError(
            "The names should be exclusive and should not intersect in"
            " `names_which_can_be_saved` and `names_which_can_be_offloaded`. Got"
            f" names_which_can_be_saved={sorted(saved)},"
            f" names_which_can_be_offloaded={sorted(offloaded)}: both name"
            f" {sorted(saved & offloaded)}"
        )
    move = Offloadable(offload_src, offload_dst)
    return SaveAndOffloadOnlyTheseNames(frozenset(saved), frozenset(offloaded), move)


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
    """Keep matrix products without batch dimensions in another memory."""
    return OffloadDots(DotsSaveable(True), Offloadable(offload_src, offload_dst))


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

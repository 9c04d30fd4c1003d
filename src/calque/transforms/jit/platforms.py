"""The platforms that a program is lowered or exported for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

PLATFORMS: Final = ("cpu", "cuda", "rocm", "tpu")
_KINDS: Final = ("gpu",)  # of platforms


def checked_platforms(given: Any, asker: str) -> tuple[str, ...]:
    """The names of platforms; `asker` is who was given them."""
    is_list = isinstance(given, Sequence) and not isinstance(given, str)
    if not is_list or not given or not all(isinstance(p, str) and p not in _KINDS for p in given):
        raise ValueError(
            f"{asker}: a program is for platforms such as {', '.join(PLATFORMS)}, in a list or a"
            f" tuple, got {given!r}"
        )
    return tuple(given)


def check_donation(donated: Sequence[int], platforms: Sequence[str]) -> None:
    """Memory is given away on all platforms, or on none."""
    if donated and len({p in PLATFORMS for p in platforms}) > 1:
        raise NotImplementedError(
            "In multi-platform lowering either all or no lowering platforms should support"
            f" donation. Lowering for {tuple(platforms)} of which only"
            f" {tuple(p for p in platforms if p in PLATFORMS)} support donation"
        )

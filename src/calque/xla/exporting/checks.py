"""Checks of exported programs that can be left out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_TARGET: Final = re.compile(r'stablehlo\.custom_call @(?:"([^"]+)"|([\w$.-]+))')
# functions that every later jaxlib has: JAX promises so
_STABLE: Final = re.compile(
    r"lapack_[sdcz]\w+_ffi|(cu|hip)(solver|sparse)?_\w+|Sharding|SPMD(FullToShard|ShardToFull)Shape"
    r"|annotate_device_placement|Eigh|Qr|ProductOfElementaryHouseholderReflectors|LuDecomposition"
    r"|ApproxTopK|stablehlo\.dynamic_\w+|tf\.call_tf_function|tpu_custom_call|AllocateBuffer"
    r"|mosaic_gpu_v2|shape_assertion"
)


class DisabledSafetyCheck:
    """A check that is left out: `platform()`, of the platform when the program is called;
    `custom_call(name)`, of a call of a function of the host's libraries.

    >>> jax.export.DisabledSafetyCheck.custom_call("f").is_custom_call()
    'f'"""

    def __init__(self, _impl: str) -> None:
        self._impl = _impl

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """The program may run on another platform than it was exported for.

        Returns:
            A check to leave out."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """The program may call this function of a library.

        Args:
            target_name: the name of the function.
        Returns:
            A check to leave out."""
        return cls(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """The name of the function that may be called.

        Returns:
            A text; None of other checks."""
        kind, _, name = self._impl.partition(":")
        return name if kind == "custom_call" else None

    def __repr__(self) -> str:
        return self._impl

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DisabledSafetyCheck) and self._impl == other._impl

    def __hash__(self) -> int:
        return hash(self._impl)


def refuse_unstable(name: str, text: str, disabled: Sequence[DisabledSafetyCheck]) -> None:
    """An error where a module calls functions of libraries that may not be there tomorrow."""
    allowed = {check.is_custom_call() for check in disabled}
    found = {quoted or plain for quoted, plain in _TARGET.findall(text)}
    wrong = sorted(t for t in found - allowed if not _STABLE.fullmatch(t))
    if wrong and "ALL" not in allowed:
        raise ValueError(
            "Cannot serialize code with custom calls whose targets have no compatibility"
            f" guarantees: {name} calls {', '.join(wrong)}. Where readers will have them, leave the"
            f" check out: export(..., disabled_checks=[DisabledSafetyCheck.custom_call({wrong[0]!r}"
            ")])"
        )

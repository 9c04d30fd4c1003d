"""Checks of exported programs that can be left out."""

from __future__ import annotations


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

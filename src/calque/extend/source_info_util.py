"""Which files messages leave out when they look for the user's line."""

from calque.core.source import register_exclusion

__all__ = ["register_exclusion"]

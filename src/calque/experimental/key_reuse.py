"""Random keys that are used twice: `calque.debug_key_reuse(True)` finds them."""

from calque.core.errors import KeyReuseError

__all__ = ["KeyReuseError"]

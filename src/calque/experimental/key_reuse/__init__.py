"""Random keys that are used twice: `calque.debug_key_reuse(True)` finds them while programs are
traced and run. `_core` looks at functions without running them."""

from calque.core.errors import KeyReuseError
from calque.transforms.functions.key_reuse import function_type_signature

__all__ = ["KeyReuseError", "function_type_signature"]

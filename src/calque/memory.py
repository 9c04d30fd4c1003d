"""Where arrays can be kept, in JAX's names: `calque.device_put(x, calque.memory.Space.Host)`"""

from calque.core import guards as _guards
from calque.core.devices import Space

__all__ = ["Space"]

_guards.guard_public(globals())

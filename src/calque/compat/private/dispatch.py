"""`jax._src.dispatch`: running single operations."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque import (
        device_put,
    )
    from calque.environment import (
        effects_barrier as wait_for_tokens,
    )
    from calque.interpreters.xla import (
        apply_primitive,
    )

__getattr__, __dir__ = _lazy.facade(__name__, __file__)

"""`jax._src.pjit`."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque.experimental.pjit import (
        pjit,
    )
    from calque.lax import (
        with_sharding_constraint,
    )
    from calque.transforms.primitives.call import (
        jit_p,
    )

__getattr__, __dir__ = _lazy.facade(__name__, __file__)

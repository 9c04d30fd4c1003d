"""`jax._src.ad_util`: zeros of derivatives."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque.core.primitives import (
        Zero,
    )
    from calque.custom_derivatives import (
        SymbolicZero,
    )
    from calque.interpreters.ad import (
        add_jaxvals,
        add_jaxvals_p,
        zeros_like_aval,
    )
    from calque.interpreters.ad import (
        instantiate_zeros as instantiate,
    )
    from calque.ops.convert import (
        stop_gradient_p,
    )

__getattr__, __dir__ = _lazy.facade(__name__, __file__)

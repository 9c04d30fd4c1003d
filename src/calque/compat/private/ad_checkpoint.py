"""`jax._src.ad_checkpoint`: what is kept for the way back."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque import (
        checkpoint,
        checkpoint_policies,
    )
    from calque import (
        checkpoint as remat,
    )
    from calque.ad_checkpoint import (
        checkpoint_name,
        print_saved_residuals,
    )
    from calque.transforms.functions.remat import (
        saved_residuals,
    )

__getattr__, __dir__ = _lazy.facade(__name__, __file__)

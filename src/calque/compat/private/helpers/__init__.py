"""Modules of `jax._src` that say something by themselves."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque.compat.private.helpers import clusters, frozen_dict

__getattr__, __dir__ = _lazy.facade(__name__, __file__)

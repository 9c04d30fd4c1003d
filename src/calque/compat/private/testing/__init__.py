"""What `jax._src` has for tests."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque.compat.private.testing import public_test_util, test_util

__getattr__, __dir__ = _lazy.facade(__name__, __file__)

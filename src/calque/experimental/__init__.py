"""Interfaces that may change."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque.contexts import enable_x64
    from calque.core.arrays import ArrayImpl as EArray
    from calque.extend.programs import primal_tangent_dtype
    from calque.transforms.functions.callbacks import io_callback
    from calque.transforms.primitives.high_values import cur_qdd

__all__ = [
    "EArray", "cur_qdd", "enable_x64", "io_callback", "primal_tangent_dtype",
]  # fmt: skip

if not TYPE_CHECKING:  # to checkers, a name that is not imported is none
    __getattr__, __dir__ = _lazy.facade(__name__, __file__)

"""The tables of rules of primitives, in JAX's names: derivatives, batching, lowering."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque.interpreters import ad, batching, mlir, partial_eval, pxla, xla

__all__ = [
    "ad", "batching", "mlir", "partial_eval", "pxla", "xla",
]  # fmt: skip

if not TYPE_CHECKING:  # to checkers, a name that is not imported is none
    __getattr__, __dir__ = _lazy.facade(__name__, __file__)

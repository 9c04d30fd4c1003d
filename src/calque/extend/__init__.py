"""What libraries build on: primitives of their own, and programs as data."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque.extend import (
        backend,
        core,
        ifrt_programs,
        linear_util,
        mlir,
        random,
        source_info_util,
    )

__all__ = [
    "backend", "core", "ifrt_programs", "linear_util", "mlir", "random", "source_info_util",
]  # fmt: skip

if not TYPE_CHECKING:  # to checkers, a name that is not imported is none
    __getattr__, __dir__ = _lazy.facade(__name__, __file__)

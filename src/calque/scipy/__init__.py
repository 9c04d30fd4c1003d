"""SciPy's functions on calque's arrays. Modules are imported when they are first used."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque.scipy import (
        cluster,
        fft,
        integrate,
        interpolate,
        linalg,
        ndimage,
        optimize,
        signal,
        sparse,
        spatial,
        special,
        stats,
    )

__all__ = [
    "cluster", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal",
    "sparse", "spatial", "special", "stats",
]  # fmt: skip

if not TYPE_CHECKING:  # to checkers, a name that is not imported is none
    __getattr__, __dir__ = _lazy.facade(__name__, __file__)

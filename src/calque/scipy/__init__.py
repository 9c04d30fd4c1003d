"""SciPy's functions on calque's arrays. Modules are imported when they are first used."""

from typing import Any

from calque.machine.lazy import imported

_MODULES = (
    "cluster", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal",
    "sparse", "spatial", "special", "stats",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return imported(f"calque.scipy.{name}")
    raise AttributeError(f"module 'calque.scipy' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(_MODULES)

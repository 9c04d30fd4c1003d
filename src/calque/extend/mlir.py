"""MLIR as jaxlib has it: `ir`, `dialects`, `passmanager`, and modules as bytes. Programs that build
modules themselves use it; calque's own compiler knows nothing of it."""

from typing import Any, Final

from calque.core.lazy import LazyModule
from calque.machine import foreign_parts
from calque.machine.lazy import imported

_jaxlib = LazyModule("calque.xla.jaxlib")
_PACKAGES: Final = ("ir", "dialects", "passmanager")
_FUNCTIONS: Final = (
    "deserialize_portable_artifact", "hlo_to_stablehlo", "refine_polymorphic_shapes",
    "serialize_portable_artifact",
)  # fmt: skip


def open_jaxlib() -> None:
    """From now on parts of the real jaxlib can be imported; an ImportError where there is none."""
    if foreign_parts.folder_of("jaxlib") is None:
        try:
            foreign_parts.open_package("jaxlib", _jaxlib.folder())
        except _jaxlib.XlaUnavailable as e:
            raise ImportError(f"MLIR is jaxlib's: {e}", name="jaxlib.mlir") from None


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        open_jaxlib()
        return imported(f"jaxlib.mlir.{name}")
    if name in _FUNCTIONS:
        open_jaxlib()  # says what is missing
        return getattr(_jaxlib.jaxlib().extension.mlir, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


def __dir__() -> list[str]:
    return sorted((*_PACKAGES, *_FUNCTIONS))

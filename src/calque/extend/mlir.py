"""MLIR as jaxlib has it: `ir`, `dialects`, `passmanager`, and modules as bytes. Programs that build
modules themselves use it; calque's own compiler knows nothing of it."""

from typing import Any, Final

from calque.core.lazy import LazyModule

_jaxlib = LazyModule("calque.xla.jaxlib")
_PACKAGES: Final = ("ir", "dialects", "passmanager")
_FUNCTIONS: Final = (
    "deserialize_portable_artifact", "hlo_to_stablehlo", "refine_polymorphic_shapes",
    "serialize_portable_artifact",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return _jaxlib.mlir_package(name)
    if name in _FUNCTIONS:
        _jaxlib.open_folder()  # says what is missing
        return getattr(_jaxlib.jaxlib().extension.mlir, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


def __dir__() -> list[str]:
    return sorted((*_PACKAGES, *_FUNCTIONS))

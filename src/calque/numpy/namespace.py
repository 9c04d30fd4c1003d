"""What the array API standard asks of a namespace: its version, its dtypes, its devices."""

from typing import Any

import numpy as np

from calque import device_functions as _devices
from calque.core.config import config
from calque.core.dtypes import as_dtype, canonicalize
from calque.numpy import queries

__all__ = ["__array_api_version__", "__array_namespace_info__"]

__array_api_version__ = "2024.12"

_NAMES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32",
    "float64", "complex64", "complex128",
)  # fmt: skip
_NEEDS_X64 = frozenset(("int64", "uint64", "float64", "complex128"))


class ArrayNamespaceInfo:
    """The answers of `jnp.__array_namespace_info__()`."""

    def capabilities(self) -> dict[str, Any]:
        """What the namespace can do: boolean indexing, sizes that depend on values, and the rank of
        its arrays."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Any:
        """None: arrays follow their operands."""
        return None

    def devices(self) -> list[Any]:
        """The devices that arrays can be on."""
        return list(_devices.devices())

    def _check(self, device: Any) -> None:
        if device is not None and device not in self.devices():
            raise ValueError(f"device must be None or one of {self.devices()}, got {device!r}")

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The dtypes of arrays made without one."""
        self._check(device)
        return {
            "real floating": canonicalize(float),
            "complex floating": canonicalize(complex),
            "integral": canonicalize(int),
            "indexing": canonicalize(int),
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """The dtypes of the standard that arrays can have now, of some kinds if asked for."""
        self._check(device)
        names = [n for n in _NAMES if config.enable_x64 or n not in _NEEDS_X64]
        table = {n: np.dtype(as_dtype(n)) for n in names}
        return (
            table if kind is None else {n: d for n, d in table.items() if queries.isdtype(d, kind)}
        )


def __array_namespace_info__() -> ArrayNamespaceInfo:
    """The array API standard's questions about this namespace."""
    return ArrayNamespaceInfo()

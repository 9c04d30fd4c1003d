"""`jax._src.lib.mlir`: jaxlib's MLIR."""

from calque.extend.mlir import __dir__, __getattr__

__all__ = ["__dir__", "__getattr__"]

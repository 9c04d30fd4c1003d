"""`jax._src.lib`: parts of jaxlib, and that no CUDA is below."""

from calque.compat.jaxlib import _jax, xla_client

__all__ = ["_jax", "cuda_versions", "xla_client"]

cuda_versions = None

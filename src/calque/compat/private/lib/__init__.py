"""`jax._src.lib`: parts of jaxlib, and that no CUDA is below."""

from typing import Final

from calque.compat import versions
from calque.compat.jaxlib import _jax, xla_client

__all__ = ["_jax", "cuda_versions", "version", "version_str", "xla_client"]

cuda_versions = None
version_str: Final = versions.JAXLIB
version: Final = versions.as_numbers(version_str)

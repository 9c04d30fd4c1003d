"""`jax.version`: the version whose interface is served."""

from typing import Final

from calque.compat import versions

__version__: Final = versions.JAX
__version_info__: Final = versions.as_numbers(versions.JAX)
_minimum_jaxlib_version: Final = versions.JAXLIB
_minimum_jaxlib_version_info: Final = versions.as_numbers(versions.JAXLIB)

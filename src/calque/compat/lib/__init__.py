"""`jax.lib`: the version of the library below. Its other parts belong to XLA."""

from typing import Final

from calque.compat import versions

__version__: Final = versions.JAXLIB

"""`jaxlib.version`."""

from typing import Final

from calque.compat import versions

__version__: Final = versions.JAXLIB

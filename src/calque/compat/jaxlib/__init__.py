"""`jaxlib`, as far as there is a counterpart: its version, and the classes that programs name."""

from typing import Final

from calque.compat import versions

__version__: Final = versions.JAXLIB

"""`jax._src.config`: the configuration, and each flag as what holds its value."""

from typing import TYPE_CHECKING, Any

from calque.contexts import Context
from calque.core import lazy as _lazy
from calque.core.config import config as _config

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque import (
        check_tracer_leaks,
        config,
        debug_nans,
        enable_x64,
    )

_named, __dir__ = _lazy.facade(__name__, __file__)


def __getattr__(name: str) -> Any:
    """A name of the module, or the flag of this name: `.value`, and a context manager."""
    try:
        return _named(name)
    except AttributeError:
        flag = name.removeprefix("jax_")
        if name.startswith("_") or not hasattr(_config, flag):
            raise
    return Context(flag, f"The flag {flag}: its value, and a `with` block that sets it.")

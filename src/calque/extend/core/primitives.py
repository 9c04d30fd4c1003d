"""All primitives under JAX's names: `primitives.sin_p`."""

from typing import Any, Final

from calque import lax as _lax
from calque.core.primitives import REGISTRY

_ALIASES: Final = {"add_jaxvals_p": "add_any_p", "remat_p": "remat2_p"}


def _listed() -> dict[str, Any]:
    """Name with `_p` -> primitive: what `lax` offers, then whatever else has such a name."""
    found = {f"{name}_p": p for name, p in REGISTRY.items()}
    found.update({n: getattr(_lax, n) for n in dir(_lax) if n.endswith("_p")})
    return found | {alias: found[name] for alias, name in _ALIASES.items()}


def __getattr__(name: str) -> Any:
    if name.endswith("_p") and (found := _listed().get(name)) is not None:
        return found
    raise AttributeError(f"module 'calque.extend.core.primitives' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(_listed())

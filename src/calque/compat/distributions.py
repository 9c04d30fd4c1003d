"""What `importlib.metadata` answers about jax and jaxlib while calque serves them."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import Distribution, DistributionFinder
from pathlib import Path
from typing import Any, Final

from calque.compat import versions

SERVED: Final = {"jax": versions.JAX, "jaxlib": versions.JAXLIB}


class ServedDistribution(Distribution):
    """A package that is served, as an installed distribution."""

    def __init__(self, name: str) -> None:
        self._name = name

    def read_text(self, filename: str) -> str | None:
        if filename != "METADATA":
            return None
        return (
            f"Metadata-Version: 2.1\nName: {self._name}\nVersion: {SERVED[self._name]}\n"
            "Summary: The interface of this package, served by calque.\n"
        )

    def locate_file(self, path: Any) -> Any:
        return Path(__file__).parent / "served" / path


def distributions(context: DistributionFinder.Context) -> Iterable[Distribution]:
    """The served packages that a question of `importlib.metadata` is about."""
    names = SERVED if context.name is None else [context.name.lower().replace("_", "-")]
    return [ServedDistribution(name) for name in names if name in SERVED]

"""Machine code in memory, with an owner."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence


class Linked:
    """Code that was linked: the addresses of what it exports. It stays in memory as long as this
    object does, which also keeps the code that it calls; `give_back` is called in the end, by any
    thread at any moment, so it may take no lock."""

    __slots__ = ("__weakref__", "_give_back", "_needs", "addresses")

    def __init__(
        self,
        addresses: Mapping[str, int],
        give_back: Callable[[], None],
        needs: Sequence[Linked] = (),
    ) -> None:
        self.addresses = dict(addresses)
        self._give_back, self._needs = give_back, tuple(needs)

    def __del__(self) -> None:
        self._give_back()

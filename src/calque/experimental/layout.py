"""In which order the dimensions of an array lie in memory.

Arrays of calque lie in row-major order where programs meet; inside of a program the compiler
chooses. A layout that says so is a fact, another one a wish that changes no value."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final

from calque.core import pytrees
from calque.core.trace import typeof
from calque.machine.caches import Table
from calque.transforms.devices.sharding import Sharding

__all__ = ["Format", "Layout", "with_layout_constraint"]

_log = logging.getLogger("calque")


class Layout:
    """Dimensions from the slowest to the quickest, and tiles of processors that have them.

    >>> from calque.experimental.layout import Layout
    >>> Layout((0, 1))
    Layout(major_to_minor=(0, 1))"""

    AUTO: Layout

    def __init__(
        self,
        major_to_minor: Sequence[int],
        tiling: Sequence[Sequence[int]] | None = None,
        sub_byte_element_size_in_bits: int = 0,
    ) -> None:
        self.major_to_minor = tuple(major_to_minor)
        if sorted(self.major_to_minor) != list(range(len(self.major_to_minor))):
            raise ValueError(f"major_to_minor must name each dimension once, got {major_to_minor}")
        self.tiling = None if tiling is None else tuple(map(tuple, tiling))
        self.sub_byte_element_size_in_bits = sub_byte_element_size_in_bits

    def _fields(self) -> tuple[Any, ...]:
        return self.major_to_minor, self.tiling, self.sub_byte_element_size_in_bits

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def __repr__(self) -> str:
        tiling = "" if self.tiling is None else f", tiling={self.tiling}"
        return f"Layout(major_to_minor={self.major_to_minor}{tiling})"


class _Auto(Layout):
    """The compiler chooses."""

    def __init__(self) -> None:
        super().__init__(())

    def __repr__(self) -> str:
        return "Layout.AUTO"


Layout.AUTO = _Auto()


class Format:
    """A layout and a sharding: how an array lies in memory, and on which devices.

    >>> from calque.experimental.layout import Format, Layout
    >>> Format(Layout((0, 1)))
    Format(layout=Layout(major_to_minor=(0, 1)), sharding=None)"""

    def __init__(self, layout: Layout | None = None, sharding: Sharding | None = None) -> None:
        if layout is not None and not isinstance(layout, Layout):
            raise TypeError(f"Format: layout must be a Layout or None, got {layout!r}")
        if sharding is not None and not isinstance(sharding, Sharding):
            raise TypeError(f"Format: sharding must be a Sharding or None, got {sharding!r}")
        self.layout, self.sharding = layout, sharding

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Format)
            and self.layout == other.layout
            and self.sharding == other.sharding
        )

    def __hash__(self) -> int:
        return hash((self.layout, self.sharding))

    def __repr__(self) -> str:
        return f"Format(layout={self.layout}, sharding={self.sharding})"


_said: Final[Table[Layout, bool]] = Table("layouts that the log has noted", 256)


def with_layout_constraint(x: Any, layouts: Any) -> Any:
    """The same values, with the wish that they lie in memory so.

    `layouts` is a Layout, or a tree of them like `x`. Another order than row-major is noted in the
    log once, and has no effect here."""
    leaves, treedef = pytrees.flatten(x)
    wishes = pytrees.prefix_broadcast(layouts, x, is_leaf=lambda v: isinstance(v, Layout))
    for leaf, layout in zip(leaves, wishes, strict=True):
        rank = len(typeof(leaf).shape)
        if layout is not Layout.AUTO and len(layout.major_to_minor) != rank:
            raise ValueError(f"with_layout_constraint: {layout} for an array of {rank} dimensions")
        if layout.major_to_minor != tuple(range(rank)) and _said.find(layout) is None:
            _said[layout] = True
            _log.info("%s: the compiler chooses how arrays lie inside of programs", layout)
    return pytrees.unflatten(treedef, leaves)

"""In which order the dimensions of an array lie in memory, as a fact of JAX's API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from calque.transforms.devices.sharding import Sharding


class Layout:
    """In which order the dimensions of an array lie in memory.

    Args:
        major_to_minor: The dimensions from the slowest to the quickest.
        tiling: Tiles of processors that have them; None for none.
        sub_byte_element_size_in_bits: The size of elements narrower than a byte.

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
        same = isinstance(other, Layout) and self._fields() == other._fields()
        return same and (self is Layout.AUTO) is (other is Layout.AUTO)

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

    Args:
        layout: The Layout, or None.
        sharding: The sharding, or None.

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


def row_major(ndim: int, sharding: Sharding) -> Format:
    """How arrays lie where programs meet."""
    return Format(Layout(range(ndim)), sharding)


def without_layout(target: Any, ndim: int, what: str, *, auto: bool = False) -> Any:
    """The sharding that a Format names, once its layout is how arrays lie; others as they are.
    `auto`: the compiler may be left to choose it, and chooses that."""
    if not isinstance(target, Format):
        return target
    if target.layout is Layout.AUTO and not auto:
        raise ValueError(
            f"{what}: sharding and layout in a Format should be concrete, got {target}. Layout.AUTO"
            " is for in_shardings and out_shardings of jit"
        )
    if target.layout not in (None, Layout.AUTO, Layout(range(ndim))):
        raise NotImplementedError(
            f"{what}: arrays lie in memory row by row, and cannot be put in {target.layout}"
        )
    return target.sharding


def check_jit_format(option: str, target: Any) -> None:
    """A layout goes to `jit` in a Format."""
    if isinstance(target, Layout):
        raise ValueError(
            f"`jax.jit` does not accept device-local layouts directly. Give {option} a"
            f" Format({target}, sharding) instead"
        )

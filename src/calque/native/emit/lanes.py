"""Which lanes the code being written stands for: a small value that is handed on from function to
function and never changed.

Inside a vector loop an expression that depends on the loop's variable has a value for each of
``width`` lanes; any other has one value for all. In a masked rest some lanes do not exist, and
where lanes part (a condition that differs among them) some are elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import Final, NamedTuple

from calque.machine.records import record
from calque.native.scalars.expr import Buffer, Expr

NO_NAMES: Final[frozenset[str]] = frozenset()


@record(eq=False)
class TiledLoop:
    """A loop over ``outer`` taken in steps of ``size``: ``row`` counts inside the step that begins
    at ``first``; ``columns`` is the variable of the vector loop inside; ``mask`` says which turns
    of the step there are, if not all."""

    outer: Expr
    first: Expr
    row: Expr
    size: int
    columns: Expr
    mask: str | None = None
    arrays: dict[tuple[Buffer, Expr], str] = field(default_factory=dict)  # what is kept turned


class Lanes(NamedTuple):
    """``width`` 0: one lane alone, nothing is a vector."""

    width: int = 0
    variable: str | None = None  # of the vector loop
    varying: frozenset[str] = NO_NAMES  # names whose values are vectors
    exist: str | None = None  # a mask: the lanes that exist; None: all of them
    here: str | None = None  # a mask, where lanes part: those of them that run this
    tile: TiledLoop | None = None  # the tile that the vector loop belongs to
    rest: bool = False  # is this the rest of a loop, whose code shall be short?

    @property
    def active(self) -> str | None:
        """The mask of the lanes that run this; None: all."""
        return self.here if self.here is not None else self.exist

    def vary(self, e: Expr) -> bool:
        """Does the expression differ from lane to lane?"""
        return not self.varying.isdisjoint(e.names)

    def holding(self, name: str) -> Lanes:
        """The lanes that a name has values for: these, or one for all of them."""
        return self if name in self.varying else SCALAR

    def only(self, here: str) -> Lanes:
        """The lanes of a mask."""
        return self._replace(here=here)

    def seeing(self, names: Iterable[str]) -> Lanes:
        """The same lanes, where nothing but these names is known."""
        varying = frozenset(names) if self.width else NO_NAMES
        return self._replace(variable=None, varying=varying)

    def parts(self, width: int) -> Lanes:
        """Lanes for parts of a fold, all of which exist, in the same place of the code."""
        return Lanes(width, rest=self.rest)


SCALAR: Final = Lanes()

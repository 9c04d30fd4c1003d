"""Programs that differ from another one in sizes alone: its words are copied and a few of them
changed, in a microsecond or two."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, Final

from calque.machine.driver.interpreter import RELEASE_GIL, Header
from calque.machine.driver.program import Program
from calque.machine.driver.verify import ProgramError

_NAMES: Final = list(Header.fields)
_NBYTES, _AVALS, _FLAGS, _TEMPLATE = (
    _NAMES.index(n) for n in ("out_nbytes", "out_avals", "flags", "template")
)
_CODE: Final = _NAMES.index("code")
_ARENA_BYTES, _ARENA_OFFSETS = _NAMES.index("arena_bytes"), _NAMES.index("arena_offsets")


class Pattern:
    """A program, and where the words stand that others have otherwise: `places` are numbers of
    immediates.

    All that is new in another program lies in one block: header, bytes and avals of the results,
    template, places of the arena.
    """

    def __init__(self, program: Program, places: Sequence[int] = ()) -> None:
        self.original = program
        self.n_in, self.n_out = program.n_in, program.n_out
        self.releases, self.other_flags = (
            bool(program.flags & RELEASE_GIL),
            program.flags & ~RELEASE_GIL,
        )
        words, template, offsets = program.words()
        self.sizes_at = len(words)
        self.avals_at = self.sizes_at + self.n_out
        self.template_at = self.avals_at + self.n_out
        self.arena_at = self.template_at + len(template)
        self.block = array("q", [*words, *[0] * (2 * self.n_out), *template, *offsets])
        self.places = [self.template_at + program.first_immediate + i for i in places]

    def program(
        self,
        outputs: Sequence[tuple[Any, int]],
        values: Sequence[int],
        releases: bool | None = None,
        arena: Sequence[int] | None = None,
        arena_bytes: int = 0,
        keepalive: Any = None,
    ) -> SizedProgram:
        """The program with these results and these values at its places; without `arena` that stays
        as it is."""
        if len(outputs) != self.n_out:
            raise ProgramError(f"the program has {self.n_out} results, not {len(outputs)}")
        block = self.block[:]
        at = block.buffer_info()[0]
        block[_NBYTES], block[_AVALS] = at + 8 * self.sizes_at, at + 8 * self.avals_at
        block[_TEMPLATE] = at + 8 * self.template_at
        k = self.sizes_at
        for aval, size in outputs:
            block[k], block[k + self.n_out] = size, id(aval)
            k += 1
        for place, value in zip(self.places, values):
            block[place] = value
        if releases is not None:
            block[_FLAGS] = self.other_flags | RELEASE_GIL * releases
        if arena:
            block[_ARENA_BYTES], block[_ARENA_OFFSETS] = arena_bytes, at + 8 * self.arena_at
            block[self.arena_at :] = array("q", arena)
        return SizedProgram(self, at, block, outputs, keepalive)

    def redirect(self, codes: dict[int, int]) -> None:
        """Programs made from now on run other code, if there is other code for theirs."""
        self.block[_CODE] = codes.get(self.block[_CODE], self.block[_CODE])


class SizedProgram:
    """What `callpath` needs of a program, and what it points to."""

    __slots__ = ("_block", "_keepalive", "handle", "outputs", "pattern")

    def __init__(
        self,
        pattern: Pattern,
        handle: int,
        block: Any,
        outputs: Sequence[tuple[Any, int]],
        keepalive: Any,
    ):
        self.pattern, self.handle, self.outputs = pattern, handle, outputs
        self._block, self._keepalive = block, keepalive

    def redirect(self, codes: dict[int, int]) -> None:
        """Run other code from now on, if there is other code for this."""
        self._block[_CODE] = codes.get(self._block[_CODE], self._block[_CODE])

    @property
    def n_in(self) -> int:
        """The number of arguments."""
        return self.pattern.n_in

    @property
    def n_out(self) -> int:
        """The number of results."""
        return self.pattern.n_out

    @property
    def flags(self) -> int:
        """See `interp`."""
        return int(self._block[_FLAGS])

    @property
    def arena_bytes(self) -> int:
        """Bytes of temporary memory."""
        return int(self._block[_ARENA_BYTES])

    def text(self) -> str:
        """The program, for people; with the sizes of the one that it is like."""
        return self.pattern.original.text()

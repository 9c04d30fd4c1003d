"""One program for every size: when a second size arrives in a dimension, what is called is traced
once more with that size free.

Calls that differ in sizes alone are a `Family`. Its `GenericProgram`s have free sizes; one serves
the calls whose sizes give the answers (guards) that its trace took for granted, and makes the
program for given sizes by changing words. A `Specialiser` makes them, in the same steps for jitted
functions, library functions and single primitives:

    plan      which dimensions become free, together with which, and the sizes to trace with
    trace     the function with symbols in their place
    compile   the trace, once for all sizes
    hold      what cannot be had so, or needs its size as a number, stays fixed
    close     the questions that were asked are the guards
    teach     the machine code of calls asks the program for the sizes that come

The three users differ in the functions that they give it and in how often they try.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, TypeVar

from calque.core.avals import ShapedArray
from calque.core.config import config
from calque.core.pause import no_collection
from calque.core.polynomials import Poly
from calque.core.symbols import Symbols
from calque.machine.caches import Entries, Tables

MOST_PROGRAMS: Final = 8  # generic ones of a family; then sizes stay fixed
MOST_SPECIALISED: Final = 512  # sizes of which a generic program keeps the finished program
MOST_COUNTED: Final = 4096  # sizes of which the calls are counted for one function
MOST_LONG: Final = 256  # sizes of which is known that calls take long, for one function
MOST_FAMILIES: Final = 1000  # in one table
REMEMBERED: Final = 4  # how many earlier sizes a family remembers

Sizes = tuple[int, ...]  # the dimensions of all arguments, one after the other
Groups = Sequence[tuple[int, ...]]  # positions in `Sizes` that become free together


class TooEarly(Exception):
    """A generic program is not worth its compilation yet: the family stays as it is."""


class GenericProgram:
    """A program with free sizes and the calls it serves."""

    def __init__(self, groups: Groups, hints: Sizes) -> None:
        self.free = {i for g in groups for i in g}
        self.groups, self.hints = tuple(groups), tuple(hints)
        self.constant = tuple([(i, n) for i, n in enumerate(hints) if i not in self.free])
        self.symbols = Symbols([hints[g[0]] for g in groups])
        self.traced: Any = None
        self.executable: Any = None
        self.seconds = 0.0  # that it took to trace and to compile it
        self.is_outdated: Callable[[], Any] = lambda: False  # has what it captured changed?
        self.specialised = _SPECIALISED.new()
        self.holds: Callable[..., tuple[Any, ...]] = lambda *_: ()

    def avals(self, avals: Sequence[ShapedArray]) -> list[ShapedArray]:
        """The avals of arguments with symbols as the free sizes."""
        shape: list[Any] = list(self.hints)
        for d, g in zip(self.symbols.sizes(), self.groups):
            for i in g:
                shape[i] = d
        places = iter(shape)
        return [
            ShapedArray(tuple([next(places) for _ in a.shape]), a.dtype, a.weak_type) for a in avals
        ]

    def close(self) -> None:
        """No further questions: the guards are complete."""
        self.symbols.open = False
        self.answers = tuple(self.symbols.guards.values())
        self.holds = self.symbols.program(list(self.symbols.guards))
        self.places = [g[0] for g in self.groups]
        self.same = [(g[0], at) for g in self.groups for at in g[1:]]

    def values(self, sizes: Sizes) -> Sizes | None:
        """The free sizes of a call, if this program serves it."""
        for at, n in self.constant:
            if sizes[at] != n:
                return None
        for at, other in self.same:
            if sizes[at] != sizes[other]:
                return None
        values = tuple([sizes[at] for at in self.places])
        if min(values) < 1 or (self.answers and not self.guards_hold(values)):
            return None
        return values

    def guards_hold(self, values: Sizes) -> bool:
        """Whether these sizes give the answers that were taken for granted."""
        try:
            return self.holds(*values) == self.answers
        except ZeroDivisionError:  # where the trace divided by a size, which is none here
            return False

    def at(self, values: Sizes) -> Any:
        """The program for these free sizes."""
        table = self.specialised
        known = table.get(values)
        if known is None:
            table.counts.misses += 1
            known = table[values] = self.executable.resized(values)
        else:
            table.counts.hits += 1
        return known

    def guards(self) -> list[str]:
        """The questions and their answers, as Python would write them."""
        s = self.symbols
        signs = {
            ("zero", True): "==",
            ("zero", False): "!=",
            ("negative", True): "<",
            ("negative", False): ">=",
        }
        return [
            f"{s.text(poly, s.shown)} {signs[kind, answer]} 0"
            for (kind, poly), answer in s.guards.items()
        ]

    def pinned(self) -> set[int]:
        """Positions whose size the trace needed as a number."""
        out: set[int] = set()
        for (kind, poly), answer in self.symbols.guards.items():
            if kind == "zero" and answer:
                k = single(poly, len(self.groups))
                if k is not None:
                    out.update(self.groups[k])
        return out


def single(poly: Poly, count: int) -> int | None:
    """The number of the symbol (of `count`), if a polynomial is that symbol and a constant."""
    monomials = [m for m, _ in poly if m]
    plain = len(monomials) == 1 and len(monomials[0]) == 1 and monomials[0][0] < count
    return monomials[0][0] if plain else None


class Family:
    """Calls that differ in sizes alone."""

    __slots__ = ("failure", "fixed", "pinned", "programs", "seen", "varying")

    def __init__(self) -> None:
        self.seen: list[Sizes] = []  # the last few
        self.programs: list[GenericProgram] = []
        self.varying: set[int] = set()
        self.fixed: set[int] = set()  # never to be free
        # needed as numbers by one trace: by another one, of other sizes, perhaps not
        self.pinned: set[int] = set()
        self.failure = ""  # why a size that was to be free is not

    def find(self, sizes: Sizes) -> tuple[GenericProgram, Sizes] | None:
        """The program that serves these sizes, and their free ones. Sizes that are new are not
        served with old captured values: as if they were traced now."""
        for p in self.programs:
            values = p.values(sizes)
            if values is not None and (values in p.specialised or not p.is_outdated()):
                return p, values
        return None

    def is_for(self, program: GenericProgram, sizes: Sizes) -> bool:
        """Whether it is this program that serves the sizes, if it can: not if an earlier one did
        before, nor when it has been given up."""
        for p in self.programs:
            if p is program:
                return True
            if p.values(sizes) in p.specialised:
                return False
        return False

    def plan(self, sizes: Sizes, declared: frozenset[int]) -> tuple[Groups, Sizes] | None:
        """(groups of positions that become free together, sizes to trace with), if it is time for
        that; the positions in `declared` are free from the first call on."""
        for p in self.programs:  # as before, but for captured values that have changed
            if p.values(sizes) is not None:
                return p.groups, p.hints
        seen = self.seen
        if (not seen and not declared) or len(self.programs) >= MOST_PROGRAMS:
            return None
        self.varying |= declared | {i for i, n in enumerate(sizes) if any(n != s[i] for s in seen)}
        free = self.varying - self.fixed
        if not free:
            return None
        hints = next((s for s in (sizes, *reversed(seen)) if all(s[i] > 1 for i in free)), None)
        if hints is None:
            return None
        groups: dict[tuple[int, ...], list[int]] = {}
        for i in sorted(free):
            groups.setdefault((sizes[i], *[s[i] for s in seen]), []).append(i)
        # what happens to be fixed in this call must have the value that the trace sees
        if any(sizes[i] != hints[i] for i in range(len(sizes)) if i not in free):
            return None
        together = [tuple(g) for g in groups.values()]
        if hints is not sizes and any(
            p.groups == tuple(together) and p.values(hints) is not None for p in self.programs
        ):
            # the same questions would get the same answers: it is known that this program does not
            # serve the call
            return None
        return together, hints

    def remember(self, sizes: Sizes) -> None:
        if sizes not in self.seen:
            self.seen.append(sizes)
            del self.seen[:-REMEMBERED]

    def hold(self, positions: set[int], at_once: bool) -> None:
        """Positions that could not be free; they never will be, `at_once` or at the second
        time."""
        self.fixed |= positions if at_once else positions & self.pinned
        self.pinned |= positions


class Families(Entries[Any, Family]):
    """Families by all of a call but its sizes."""

    __slots__ = ()

    def of(self, key: Any) -> Family:
        """The family of such calls; a new one if there is none yet."""
        return self.find(key) or self.setdefault(key, Family())


_FAMILIES: Final[Tables[Any, Family]] = Tables(
    "calls that differ in sizes alone", MOST_FAMILIES, programs=True
)
_SPECIALISED: Final[Tables[Sizes, Any]] = Tables(
    "programs of any size, at their sizes", MOST_SPECIALISED, programs=True
)
_COUNTED: Final[Tables[tuple[Any, Sizes], int]] = Tables(
    "sizes that calls came with", MOST_COUNTED, programs=True
)


def new_families() -> Families:
    """Families of calls of one function; none yet."""
    return _FAMILIES.new_of(Families)


_LONG: Final[Tables[tuple[Any, Sizes], float]] = Tables(
    "sizes whose calls take long", MOST_LONG, programs=True
)
_put: Final = dict.__setitem__


class CallCounts:
    """How often generic programs served which sizes, for one function that machine code calls."""

    __slots__ = ("counts", "hot_after", "long", "taught")

    def __init__(self, hot_after: int) -> None:
        self.hot_after = hot_after  # calls with the same sizes
        self.counts = _COUNTED.new()
        self.long = _LONG.new()  # sizes -> seconds of the calls until Python is asked
        self.taught = 0  # how often the machine code learned to serve all sizes

    def count(self, program: Any, values: Sizes) -> int:
        """One more call with such sizes: how many there were."""
        key = (program, values)
        n = self.counts[key] = (self.counts.find(key) or 0) + 1
        return n

    def postpone(self, program: Any, values: Sizes, seconds: float) -> None:
        """A call with these sizes takes so long: Python is asked again when all of them, those
        before it too, have taken as long as a program takes to make."""
        key = (program, values)
        calls = self.counts.get(key, 1)
        to_come = max(math.ceil(program.seconds / max(seconds, 1e-6)) - calls, 0)
        self.long[key] = (calls + to_come) * seconds
        self.counts[key] = self.hot_after - to_come

    def is_paid(self, program: Any, values: Sizes) -> bool:
        """Whether calls with these sizes have taken as long, by now, as a program takes to make."""
        key = (program, values)
        is_over = self.counts.get(key) == self.hot_after
        return is_over and self.long.get(key, -1.0) >= program.seconds

    def settle(self, program: Any, values: Sizes) -> None:
        """Calls with these sizes have a program of their own now."""
        key = (program, values)
        self.long[key] = math.inf
        self.counts[key] = self.hot_after + 1

    def is_settled(self, program: Any, values: Sizes) -> bool:
        """Whether calls with these sizes have a program of their own."""
        return self.long.get((program, values)) == math.inf

    def is_hot(self, program: Any, values: Sizes) -> bool:
        """Whether it is time for an entry for just these sizes. One that is met less often is not
        worth it."""
        return self.counts.get((program, values)) == self.hot_after

    def serves(self, program: Any, values: Sizes) -> bool:
        """One more call with such sizes for the machine code, unless they are hot."""
        key, counts = (program, values), self.counts
        n = counts.get(key, 0)
        if n == self.hot_after:
            return False
        if len(counts) < MOST_COUNTED:
            _put(counts, key, n + 1)  # without a frame of Python, in each call of a new size
        else:
            counts[key] = n + 1
        return True


class SizedCall:
    """A call that a generic program may serve: its family, and the avals of its arrays."""

    __slots__ = ("avals", "family", "sizes")

    def __init__(self, family: Family, avals: Sequence[ShapedArray], sizes: Sizes) -> None:
        self.family, self.avals, self.sizes = family, avals, sizes


C = TypeVar("C", bound=SizedCall)
Choose = Callable[..., Any]  # gives the program for the arguments of a call, or None


class Specialiser(Generic[C]):
    """Makes the generic programs of one kind of calls.

    `trace(call, program)` gives the trace on `program.avals`, or None where it is not for free
    sizes; `compile(call, program)` an executable that can be resized. Either may raise. Then the
    sizes stay fixed, at once or (`tries_again`) at the second time; so do sizes that are needed as
    numbers (`pins_again`). `learn(call, program, choose)` has machine code serve the call.
    `patience` is how many sizes must have been seen before the first try.
    """

    def __init__(
        self,
        trace: Callable[[C, GenericProgram], Any],
        compile: Callable[[C, GenericProgram], Any],
        learn: Callable[[C, GenericProgram, Choose], None] | None = None,
        *,
        report: Callable[[C, str], None] | None = None,
        patience: int = 0,
        tries_again: bool = False,
        pins_again: bool = False,
    ) -> None:
        self.trace, self.compile, self.learn = trace, compile, learn
        self.report, self.patience = report, patience
        self.tries_again, self.pins_again = tries_again, pins_again

    def program_for(self, call: C) -> tuple[GenericProgram, Sizes] | None:
        """The program that serves a call and the free sizes of the call; it is made now if it is
        time for that."""
        return call.family.find(call.sizes) or self.new_program(call)

    def new_program(
        self, call: C, declared: frozenset[int] = frozenset()
    ) -> tuple[GenericProgram, Sizes] | None:
        """As `program_for`, where no program serves the call yet."""
        family = call.family
        plan = family.plan(call.sizes, declared)
        family.remember(call.sizes)
        if plan is None or len(family.seen) < self.patience:
            return None
        program = self.specialisable(call, GenericProgram(*plan))
        values = None if program is None else program.values(call.sizes)
        return None if program is None or values is None else (program, values)

    def specialisable(self, call: C, program: GenericProgram) -> GenericProgram | None:
        """The program, traced, compiled and one of its family; None if it served one size only."""
        family, changes, start = call.family, config.changes_elsewhere(), time.perf_counter()
        try:
            with no_collection():
                program.traced = self.trace(call, program)
                if program.traced is not None and not program.free <= program.pinned():
                    program.symbols.lenient = True
                    program.executable = self.compile(call, program)
        except TooEarly:
            return None
        except Exception as error:  # with fixed sizes the same says what is wrong, if anything is
            family.failure = f"tracing with a free size failed: {error}"
            if self.report is not None:
                self.report(call, family.failure)
        if changes != config.changes_elsewhere():  # it is for no configuration in particular
            return None
        pinned = program.pinned()
        if program.free <= pinned:
            family.hold(pinned, at_once=not self.pins_again)
            return None
        if program.executable is None:
            family.hold(program.free, at_once=not self.tries_again)
            return None
        family.hold(pinned, at_once=not self.pins_again)
        program.close()
        program.seconds = time.perf_counter() - start
        family.programs.append(program)
        del family.programs[:-MOST_PROGRAMS]
        return program

    def teach(self, call: C, program: GenericProgram, counts: CallCounts) -> None:
        """Have machine code ask the program when such a call comes again, of whatever sizes."""
        if self.learn is not None:
            self.learn(call, program, chooser(program, call.family, counts))


def chooser(program: GenericProgram, family: Family, counts: CallCounts) -> Choose:
    """A function that gives the program for the arguments of a call (avals, or NumPy arrays), as
    the call path asks for it.

    It gives None when it was asked often for the same sizes: then Python makes an entry for them,
    which is quicker. And for sizes that an earlier program has served: perhaps with captured values
    that have changed since, as Python will tell.
    """

    def choose(first: Any, *rest: Any) -> Any:
        sizes = first.shape
        for x in rest:
            sizes += x.shape
        values = program.values(sizes)
        if values is None or not family.is_for(program, sizes):
            return None
        return program.at(values).program if counts.serves(program, values) else None

    return choose

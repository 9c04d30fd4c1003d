"""No recompiling for a new shape: when a second size arrives in a dimension, the function is traced
once more with that size free.

A `Family` holds what is known of the calls that differ in sizes alone. Its entries are programs
with free sizes; an entry serves a call whose sizes give the answers (guards) that tracing took for
granted. What cannot be traced with free sizes stays static, silently.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final

from calque.core import backends, key_use, pytrees, trace_state
from calque.core.arrays import to_array
from calque.core.avals import ShapedArray
from calque.core.config import config
from calque.core.dims import Symbols
from calque.core.pause import no_collection
from calque.core.polynomials import Poly
from calque.core.trace_state import Tracer
from calque.transforms.devices.sharding_constraint import has_constraints
from calque.transforms.devices.sharding_propagation import is_placed
from calque.transforms.engines.signatures import ArgumentNames, as_tuple, signature_of
from calque.transforms.functions import nan_checks

MOST_ENTRIES: Final = 8  # programs with free sizes of one family; then sizes stay static
MOST_SIZED: Final = 512  # sizes of which the finished program is kept
MOST_MET: Final = 4096  # calls that are remembered for one jitted function
MOST_TAUGHT: Final = 32
TURNS: Final = 6  # calls with the same sizes after which they get an entry of their own
MET: Final = 4  # how many earlier sizes are remembered

Sizes = tuple[int, ...]  # the dimensions of all arguments, one after the other


class Met:
    """The sizes with which one jitted function was called, for each program with free sizes."""

    __slots__ = ("counts", "taught", "turns")

    def __init__(self, turns: int = TURNS) -> None:
        self.turns = turns
        self.counts: dict[tuple[Entry, Sizes], int] = {}
        self.taught = 0  # how often the machine code learned to serve all sizes

    def often(self, entry: Entry, values: Sizes) -> bool:
        """Is it time for an entry for just these sizes? One that is met less often is not worth
        it."""
        return self.counts.get((entry, values)) == self.turns

    def count(self, entry: Entry, values: Sizes) -> int:
        """One more call with such sizes: how many there were."""
        if len(self.counts) >= MOST_MET:
            self.counts.clear()
        n = self.counts[entry, values] = self.counts.get((entry, values), 0) + 1
        return n


class Entry:
    """A program with free sizes and the calls it serves."""

    def __init__(self, groups: Sequence[tuple[int, ...]], hints: Sequence[int]) -> None:
        free = {i for g in groups for i in g}
        self.groups, self.hints = tuple(groups), tuple(hints)
        self.fixed = tuple([(i, n) for i, n in enumerate(hints) if i not in free])
        self.symbols = Symbols([hints[g[0]] for g in groups])
        self.traced: Any = None
        self.executable: Any = None
        self.sized: OrderedDict[tuple[int, ...], Any] = OrderedDict()
        self.holds: Callable[..., tuple[Any, ...]] = lambda *_: ()

    def close(self) -> None:
        """No further questions: the guards are complete."""
        self.symbols.open = False
        self.wanted = tuple(self.symbols.guards.values())
        self.holds = self.symbols.program(list(self.symbols.guards))
        self.places = [g[0] for g in self.groups]
        self.same = [(g[0], at) for g in self.groups for at in g[1:]]

    def values(self, sizes: Sizes) -> tuple[int, ...] | None:
        """The free sizes of a call, if this program serves it."""
        for at, n in self.fixed:
            if sizes[at] != n:
                return None
        for at, other in self.same:
            if sizes[at] != sizes[other]:
                return None
        values = tuple([sizes[at] for at in self.places])
        if min(values) < 1 or (self.wanted and not self.answers(values)):
            return None
        return values

    def answers(self, values: tuple[int, ...]) -> bool:
        """Do these sizes give the answers that were taken for granted?"""
        try:
            return self.holds(*values) == self.wanted
        except ZeroDivisionError:  # where the trace divided by a size, which is none here
            return False

    def program(self, values: tuple[int, ...]) -> Any:
        """The program at these sizes."""
        known = self.sized.get(values)
        if known is None:
            if len(self.sized) >= MOST_SIZED:
                self.sized.popitem(last=False)
            known = self.sized[values] = self.executable.resized(values)
        return known

    def chooser(self, family: Family, met: Met) -> Callable[..., Any]:
        """A function that gives the program for the arguments of a call (avals, or NumPy arrays),
        as the call path asks for it.

        It gives None when it was asked often for the same sizes: then Python makes an entry for
        them, which is quicker. And for sizes that an earlier program has served: perhaps with
        captured values that have changed since, as Python will tell.
        """

        def choose(first: Any, *rest: Any) -> Any:
            sizes = first.shape
            for x in rest:
                sizes += x.shape
            values = self.values(sizes)
            if values is None or met.often(self, values) or not family.is_for(self, sizes):
                return None
            met.count(self, values)
            return self.program(values).program

        return choose

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
    """Calls of one function that differ in sizes alone."""

    __slots__ = ("entries", "met", "pinned", "reason", "static", "varying")

    def __init__(self) -> None:
        self.met: list[Sizes] = []
        self.entries: list[Entry] = []
        self.static: set[int] = set()
        self.pinned: set[int] = (
            set()
        )  # needed as numbers by one trace: by another one, of other sizes, perhaps not
        self.varying: set[int] = set()
        self.reason = ""  # why a size that was to be free is not

    def find(self, sizes: Sizes) -> tuple[Entry, tuple[int, ...]] | None:
        """The program that serves these sizes. Sizes that are new are not served with old captured
        values: as if they were traced now."""
        for e in self.entries:
            values = e.values(sizes)
            if values is not None and (values in e.sized or not e.traced.captures.changed()):
                return e, values
        return None

    def is_for(self, entry: Entry, sizes: Sizes) -> bool:
        """Is it this program that serves the sizes, if it can? Not if an earlier one did before,
        nor when it has been given up."""
        for e in self.entries:
            if e is entry:
                return True
            if e.values(sizes) in e.sized:
                return False
        return False

    def stale(self, sizes: Sizes) -> tuple[list[tuple[int, ...]], Sizes] | None:
        """How to trace anew what would serve these sizes but for captured values that have
        changed."""
        return next(
            ((list(e.groups), e.hints) for e in self.entries if e.values(sizes) is not None), None
        )

    def next(
        self, sizes: Sizes, declared: frozenset[int]
    ) -> tuple[list[tuple[int, ...]], Sizes] | None:
        """(groups of positions that become free together, sizes to trace with), if it is time for
        that."""
        met = self.met
        if (not met and not declared) or len(self.entries) >= MOST_ENTRIES:
            return None
        self.varying |= declared | {i for i, n in enumerate(sizes) if any(n != m[i] for m in met)}
        free = self.varying - self.static
        if not free:
            return None
        hints = next((s for s in (sizes, *reversed(met)) if all(s[i] > 1 for i in free)), None)
        if hints is None:
            return None
        groups: dict[tuple[int, ...], list[int]] = {}
        for i in sorted(free):
            groups.setdefault((sizes[i], *[m[i] for m in met]), []).append(i)
        # what happens to be fixed in this call must have the value that the trace sees
        if any(sizes[i] != hints[i] for i in range(len(sizes)) if i not in free):
            return None
        together = [tuple(g) for g in groups.values()]
        if hints is not sizes and any(
            e.groups == tuple(together) and e.values(hints) is not None for e in self.entries
        ):
            # the same questions would get the same answers: it is known that this program does not
            # serve the call
            return None
        return together, hints

    def remember(self, sizes: Sizes) -> None:
        if sizes not in self.met:
            self.met.append(sizes)
            del self.met[:-MET]


# ---------------------------------------------------------------- calls


def allowed(function: Any, given: Any) -> bool:
    """May this call be served by a program with free sizes?"""
    o = function.options
    return (
        o.dynamic != "never"
        and trace_state.is_evaluating()
        and o.shardings is None
        and not (o.donate_argnums or o.donate_argnames)
        and backends.has_symbolic()
        and not any(isinstance(x, Tracer) for x in given.leaves)
        and not is_placed(given.leaves)
    )


def call(function: Any, given: Any) -> Any:
    """The result of a program with free sizes, or NotImplemented where this call gets one of its
    own."""
    key = given.family_key
    family = function.cache.families.get(key)
    if family is None:
        family = function.cache.families[key] = Family()
    sizes = given.sizes
    found = family.find(sizes)
    if found is None:
        declared = declared_positions(function, given)
        plan = family.stale(sizes) or family.next(sizes, declared)
        family.remember(sizes)
        entry = None if plan is None else new_entry(function, given, family, *plan)
        stay = sorted((family.static | family.pinned) & declared)
        if stay:
            raise ValueError(why_static(function, given, stay[0], family.reason))
        values = None if entry is None else entry.values(sizes)
        if entry is None or values is None:
            return NotImplemented
        found = entry, values
    entry, values = found
    if entry.traced.captures.reads and function.is_stale(entry.traced):
        family.entries.remove(entry)
        return call(function, given)
    key_use.consume_again(entry.traced.key_uses, given.leaves, function.name)
    executable = entry.program(values)
    out = executable.call([to_array(x) for x in given.leaves])
    met = function.met
    if met.count(entry, values) > met.turns or met.taught >= MOST_TAUGHT:
        function.learn(given, entry.traced, executable)
    else:  # perhaps anew: captured values may have changed
        met.taught += 1
        function.learn(given, entry.traced, entry.executable, entry.chooser(family, met))
    return pytrees.unflatten(entry.traced.out_tree, out)


def checked(dynamic: Any) -> Any:
    """The `dynamic` argument of `jit` as part of a key."""
    if dynamic in ("auto", "never"):
        return dynamic
    if not isinstance(dynamic, dict) or not all(isinstance(k, (int, str)) for k in dynamic):
        raise ValueError(
            'jit: dynamic must be "auto", "never", or a dict of argument (name or position) to'
            f" axes, got {dynamic!r}"
        )
    return tuple((k, as_tuple(v, int, f"dynamic[{k!r}]")) for k, v in dynamic.items())


def declared_positions(function: Any, given: Any) -> frozenset[int]:
    """The sizes that `dynamic={argument: axes}` makes free, as positions in `Given.sizes`."""
    declared = function.options.dynamic
    if isinstance(declared, str):
        return frozenset()
    starts, at = [], 0
    for a in given.avals:
        starts.append(at)
        at += a.ndim
    out: set[int] = set()
    for argument, axes in declared:
        for leaf in leaves_of(function, given, argument):
            rank = given.avals[leaf].ndim
            for axis in axes:
                if not -rank <= axis < rank:
                    raise ValueError(
                        f"jit: dynamic={{{argument!r}: {axes}}} of {function.name}: the argument is"
                        f" {given.avals[leaf].str_short()} and has no axis {axis}"
                    )
                out.add(starts[leaf] + axis % rank)
    return frozenset(out)


def leaves_of(function: Any, given: Any, argument: int | str) -> range:
    """The flat arguments that an argument, by position or name, consists of."""
    signature = signature_of(function.fun)
    names = list(signature.parameters) if signature is not None else []
    if isinstance(argument, str) and argument in given.named:
        before = [v for k, v in sorted(given.named.items()) if k < argument]
        first = len(pytrees.leaves((given.dynamic, before)))
        return range(first, first + len(pytrees.leaves(given.named[argument])))
    place = names.index(argument) if isinstance(argument, str) and argument in names else argument
    if not isinstance(place, int) or not -len(given.dynamic) <= place < len(given.dynamic):
        if argument in names:  # not given in this call
            return range(0)
        raise ValueError(
            f"jit: dynamic names the argument {argument!r}, which {function.name} does not have"
        )
    place %= len(given.dynamic)
    if place in function.options.static_argnums:
        raise ValueError(
            f"jit: dynamic names the argument {argument!r} of {function.name}, which is static"
        )
    first = len(pytrees.leaves(given.dynamic[:place]))
    return range(first, first + len(pytrees.leaves(given.dynamic[place])))


def why_static(function: Any, given: Any, position: int, reason: str) -> str:
    names = ArgumentNames(function.fun, given.dynamic, given.named, function.options.static_argnums)
    for name, a in zip(names, given.avals):
        if position < a.ndim:
            return (
                f"jit: dynamic declares axis {position} of the argument {name} of {function.name},"
                f" but {reason or 'tracing needs the size as a number'}. Leave the declaration out"
                " (sizes then become static where they must be), or compute with the size instead"
                " of looping over it."
            )
        position -= a.ndim
    return reason


def new_entry(
    function: Any, given: Any, family: Family, groups: list[tuple[int, ...]], hints: Sequence[int]
) -> Entry | None:
    """Trace and compile with free sizes. What fails so, or needs its sizes as numbers, stays static
    from now on."""
    entry, free = Entry(groups, hints), {i for g in groups for i in g}
    try:
        compile_entry(function, given, entry, free)
    except (
        Exception
    ) as error:  # the same function with static sizes says what is wrong, if anything is
        family.reason = f"tracing with a free size failed: {error}"
        function.log(f"Sizes of {function.name} stay static, {family.reason}")
    pinned = free if entry.executable is None else entry.pinned()
    family.static |= (
        pinned & family.pinned
    )  # at the second time: sizes of 2 or 3 are special cases now and then
    family.pinned |= pinned
    if pinned >= free:
        return None
    entry.close()
    family.entries.append(entry)
    del family.entries[:-MOST_ENTRIES]
    return entry


def free_avals(entry: Entry, avals: Sequence[ShapedArray]) -> list[ShapedArray]:
    """The avals of arguments with the sizes that a program leaves free as symbols."""
    shape: list[Any] = list(entry.hints)
    for d, g in zip(entry.symbols.sizes(), entry.groups):
        for i in g:
            shape[i] = d
    places = iter(shape)
    return [
        ShapedArray(tuple([next(places) for _ in a.shape]), a.dtype, a.weak_type) for a in avals
    ]


def compile_entry(function: Any, given: Any, entry: Entry, free: set[int]) -> None:
    symbols, avals = entry.symbols, free_avals(entry, given.avals)
    with trace_state.with_symbols(symbols):
        traced = entry.traced = function.trace_new(given, avals)
    if traced.hoisted or traced.ambient or has_constraints(traced.closed) or free <= entry.pinned():
        return
    symbols.lenient = True
    with no_collection():
        options = backends.Options(function.name, config.exact, ())
        entry.executable = backends.compile_symbolic(
            nan_checks.checked(traced.closed, function.name), options, symbols
        )

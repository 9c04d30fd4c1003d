"""Homes: which nodes of a graph get memory and which are part of the expressions of their readers,
and why. All of it is decided from the graph, before anything is lowered.

A value used twice is computed twice when that is cheap; a value that a broadcast or a gather would
compute many times, or that something reads from memory, is stored. What alone reads a product of
matrices, element by element, is computed by its kernel. An update is written over its operand when
that dies with it. Whether a stored value really reaches memory is decided later, when loops are
shared.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from calque.core.dims import hint_of, surely_equal
from calque.machine.records import record
from calque.native.lower.cost import element_weight, is_expression
from calque.native.lower.graph import REAL_PART, Node, reachable
from calque.native.lower.layout import reindex
from calque.native.lower.reductions import FOLD_OF
from calque.native.lower.sizes import Sizes
from calque.native.lower.stages import MAKERS, MAX_PIECES
from calque.native.lower.table import elementwise
from calque.native.plan.overwriting import SMALLEST, Reads, Update, is_free, way_for
from calque.native.plan.readings import MANY, Readings, bytes_of
from calque.native.scalars.expr import ZERO, var
from calque.native.schedule.fuse import CAP

PRODUCTS: Final = frozenset(("matmul_tiled", "conv_tiled"))
IN_PLACE: Final = frozenset(n for n in MAKERS if n.startswith("scatter")) | {
    "dynamic_update_slice",
    "mark",
}
WHOLE: Final = 0.99  # as much of an array that is read in steps
DEAR: Final = 8  # recomputing less than this is cheaper than storing it
WINDOWS: Final = 16  # ... when all windows that overlap there are counted
ROWS_WEIGHT: Final = 40  # of an element of rows that products copy
MOST_CASES: Final = 64  # of which piece of which piece an element lies in, ...
GROWTH: Final = 4  # ... as so many of which each of these counts
_GROWING: Final = frozenset(("reshape", "pad"))
MOST_WAYS: Final = 64  # updates of a piece that others make way for
LONGEST: Final = CAP // 3  # an expression heavier than this is cut

HomeKind = Literal["given", "inlined", "stored", "fused", "step", "part"]
HomePlace = Literal["new", "result", "over"]
Owner = Literal["foreign", "ours", "donated", "promised"]


class Home(NamedTuple):
    """Where one node is.

    given     it is there before: an input, a constant, a literal
    inlined   in the expressions of those who read it
    stored    in memory that stages write: new memory, that of a result, or `over` an operand
    fused     in the kernel of the product `other`
    step      a step of its own makes it; it is in memory, or has several parts
    part      it is one of the results of such a step, in new memory or `over` one of its operands
    """

    how: HomeKind
    why: str
    place: HomePlace = "new"
    other: Node | None = None


@record(eq=False)
class Homes:
    """The homes of all nodes of a straight piece of program.

    order     what is to be made, in an order of evaluation
    weight    of one element of each node, where it is computed
    reads     the stored nodes that making each node reads, through the expressions in between
    last      for each of those the position of the last node with memory that reads it (or the end)
    ends      for each product the last node that its kernel computes"""

    name: str
    order: tuple[Node, ...]
    results: tuple[Node, ...]
    of: Mapping[Node, Home]
    weight: Mapping[Node, int]
    reads: Mapping[Node, frozenset[Node]]
    last: Mapping[Node, int]
    ends: Mapping[Node, Node]


def takes_nothing(n: Node) -> Mapping[int, int]:
    return {}


Copies = Callable[[Node], bool]


def copies_nothing(n: Node) -> bool:
    return False


class Around(NamedTuple):
    """What stands around a piece: which nodes are in memory already, and whose that is; what no
    stage can make; sizes; which results of a step may take the memory of which of its operands;
    which products copy their left side. Memory that is `promised` is for the chain of updates in
    `links` alone."""

    given: Callable[[Node], bool]
    memory: Callable[[Node], Owner]
    barrier: Callable[[Node], bool]
    sizes: Sizes
    takes: Callable[[Node], Mapping[int, int]] = takes_nothing
    links: Collection[Node] = ()
    copies: Copies = copies_nothing


def needed(outputs: Iterable[Node], given: Collection[Node]) -> tuple[Node, ...]:
    """The nodes to be made for these, in an order of evaluation."""
    return tuple([n for n in reachable(outputs, given) if n not in given])


def homes_of(
    name: str,
    order: Sequence[Node],
    results: Sequence[Node],
    around: Around,
    effects: Collection[Node] = (),
) -> Homes:
    """The homes of a piece of program with these results. Nodes with effects keep their order."""
    made = _Chooser(order, results, around, effects)
    made.choose()
    made.store_joined()
    made.find_last()
    made.make_way()
    made.find_fused()
    made.find_places()
    return Homes(
        name,
        tuple(made.order),
        tuple(results),
        made.of,
        made.weight,
        made.below,
        made.last,
        made.ends,
    )


_GIVEN: Final = Home("given", "")
_PART: Final = Home("part", "")
_STEP: Final = Home("step", "no stage can make it")
_ROWS: Final = Home("inlined", "products copy these rows")
_INDEX: Final = Home("inlined", "it only says which element")
_ONCE: Final = Home("inlined", "it is read once")
_CHEAP: Final = Home("inlined", "it takes less to compute than to load")
_RESULT: Final = Home("stored", "")
_LOOPS: Final = Home("stored", "it takes loops of its own")
_LONG: Final = Home("stored", "the expression would be too long")
_LONG_AXIS: Final = Home("stored", "it folds a very long axis, and is read for many elements")
_SPREAD: Final = Home("stored", "it is read more often than it has elements")
_STEPS: Final = Home("stored", "it is read in steps along rows, all of it")
_OFTEN: Final = Home("stored", "several read it")
_JOINED: Final = Home("stored", "what it is made of would have to be kept")
_PIECES: Final = Home("stored", "it is written piece by piece")
_OPERAND: Final = Home("stored", "a step reads it in memory")
_FACTOR: Final = Home("stored", "a product or convolution reads it many times")
_BEFORE: Final = Home("stored", "an update is written over what it reads")
_LEAVES: Final = frozenset(("literal", "input", "const"))


class _Chooser:
    """Finds the homes of one piece."""

    def __init__(
        self,
        order: Sequence[Node],
        results: Sequence[Node],
        around: Around,
        effects: Collection[Node],
    ) -> None:
        self.order, self.results, self.around = order, frozenset(results), around
        self.effects = effects
        self.of: dict[Node, Home] = {}
        self.stored: set[Node] = set()  # by stages, or by a step that makes nothing else
        self.weight: dict[Node, int] = {}
        self.below: dict[Node, frozenset[Node]] = {}
        self.last: dict[Node, int] = {}
        self.ends: dict[Node, Node] = {}
        self.roots: dict[Node, Node] = {}  # of chains of updates
        self.how_read = Readings(order, self.results)
        self.rows = self.how_read.rows_for(around.copies)

    # --- what is stored ---------------------------------------------------------------------------

    def choose(self) -> None:
        """Walk the program once, with the cost of every value that is not stored, and of how many
        pieces such a one is made."""
        cost: dict[Node, int] = {}
        pieces: dict[Node, int] = {}
        of, given, barrier = self.of, self.around.given, self.around.barrier
        picked = self.how_read.picked
        for n in self.order:
            if given(n) or n.op in _LEAVES:
                of[n], cost[n] = _GIVEN, 0
            elif n.op == "get":
                of[n], cost[n] = _PART, 0
            elif barrier(n):
                for a in n.args:
                    if cost.get(a, 0) > 0 and a not in self.rows:
                        self.store(in_memory_for(n, a, cost), _OPERAND)
                of[n], cost[n] = _STEP, 0
            else:
                below = [cost.get(a, 0) for a in set(n.args)]
                c = max(below) if n in picked else element_weight(n, sum(below))
                count = pieces_of(n, pieces)
                home = of[n] = self.home(n, c, count)
                self.weight[n] = c
                stored = home.how == "stored"
                cost[n], pieces[n] = (0, 1) if stored else (c, count)
                if stored and n.op in ("matmul", "matmul_axes", "conv"):
                    for a in n.args:
                        if cost.get(a, 0) > 0:
                            self.store(a, _FACTOR)
        # reading a stored value costs nothing more: what was counted before it was stored is close
        # enough

    def store(self, n: Node, home: Home) -> None:
        """Let a node be stored that need not have been."""
        if self.of[n].how == "inlined":
            self.of[n] = home

    def home(self, n: Node, weight: int, pieces: int) -> Home:
        """Where a node is that is an expression, or loops, of such a weight."""
        how = self.how_read
        spread = n in how.spread
        if n in self.results:
            return _RESULT
        if n.op in MAKERS and not is_expression(n):
            return _LOOPS
        if weight > LONGEST:
            return _LONG
        if spread and n.op in FOLD_OF and n.args[0].op == "reduce_chunks":
            return _LONG_AXIS  # once, not once for each of its elements
        if n in self.rows and weight < ROWS_WEIGHT:
            return _ROWS
        if weight >= DEAR and (spread or how.readers.get(n, 0) > 1):
            return _SPREAD if spread else _OFTEN
        if weight * how.windows.get(n, 0) >= WINDOWS:
            return _SPREAD
        if weight and how.steps.get(n, 0) >= WHOLE:
            return _STEPS
        many = n.op == "concatenate" and len(n.args) > MAX_PIECES
        if (many or n in how.in_turn) and n not in how.picked:
            if hint_of(n.aval.size) > 64 or weight >= DEAR:
                return _PIECES
        if pieces > MOST_CASES:
            return _LONG
        if weight >= DEAR:
            return _ONCE
        return _CHEAP if weight else _INDEX

    def store_joined(self) -> None:
        """Let a large value that several read be stored, however cheap, where two others that it
        is made of are kept for nothing else."""
        wide = [n for n in self.order if self.of[n] in (_CHEAP, _ONCE) and self.is_wide(n)]
        if not wide:
            return
        until = self.read_until()
        for n in wide:
            kept = [b for b in self.wide_below(n) if until[b] == until[n]]
            if len(kept) > 1:
                self.store(n, _JOINED)

    def is_wide(self, n: Node) -> bool:
        """Is this large, and read by several?"""
        return self.how_read.readers.get(n, 0) > 1 and bytes_of(n) >= MANY

    def read_until(self) -> dict[Node, int]:
        """The position of the last node that reads each node, through the expressions between."""
        until = dict.fromkeys(self.results, len(self.order))
        for i, n in reversed(list(enumerate(self.order))):
            at = until.get(n, i) if self.of[n].how == "inlined" else i
            for a in n.args:
                until[a] = max(until.get(a, at), at)
        return until

    def wide_below(self, n: Node) -> set[Node]:
        """The arrays of the size of a value that it is made of, through the expressions between."""
        out: set[Node] = set()
        todo, seen = list(n.args), {n}
        while todo:
            a = todo.pop()
            if a in seen or a.aval is None or a not in self.of:
                continue
            seen.add(a)
            how = self.of[a].how
            if how == "inlined":
                todo += a.args
            elif how in ("stored", "step", "part") and bytes_of(a) == bytes_of(n):
                out.add(a)
        return out

    # --- until when -------------------------------------------------------------------------------

    def find_last(self) -> None:
        """Which stored values each node with memory reads, through the expressions in between."""
        end = len(self.order)
        self.stored = {
            n
            for n, home in self.of.items()
            if home.how == "stored" or (home.how == "step" and n.aval is not None)
        }
        for i, n in enumerate(self.order):
            below = self.reads(n)
            if self.of[n].how in ("stored", "step"):
                for b in below:
                    self.last[b] = i
            self.below[n] = below
        for o in self.results:
            self.last[o] = end
            if o not in self.stored and o.op != "get":
                for b in self.below.get(o, ()):
                    self.last[b] = end

    def reads(self, n: Node) -> frozenset[Node]:
        """The stored values that making `n` reads."""
        out: frozenset[Node] = frozenset()
        for a in n.args:
            out |= self.direct(a)
        return out

    def direct(self, a: Node) -> frozenset[Node]:
        """The stored values that reading `a` reads."""
        if (
            a in self.stored
            or a not in self.below
            or a.op in ("get", "input", "const")
            or self.around.given(a)
        ):
            return frozenset((a,))
        return self.below[a]

    # --- what products compute --------------------------------------------------------------------

    def find_fused(self) -> None:
        """The chains of operations that the kernels of products compute as well."""
        products = [n for n in self.order if n.op in PRODUCTS and self.of[n].how == "step"]
        if not products:
            return
        readers: dict[Node, list[Node]] = {}
        for m in self.order:
            for a in set(m.args):
                readers.setdefault(a, []).append(m)
        made: set[Node] = set()
        for n in self.order:
            how = self.of[n].how
            if how == "step" and n.op in PRODUCTS:
                chain = straight(self.around.sizes, n, self.followers(n, readers, made))
                for u in chain:
                    self.of[u] = Home("fused", "it alone reads it, element by element", other=n)
                made |= {n, *chain[-1:]}
                self.ends[n] = chain[-1] if chain else n
            elif how in ("stored", "step", "part"):
                made.add(n)

    def followers(self, n: Node, readers: dict[Node, list[Node]], made: set[Node]) -> list[Node]:
        """The chain of elementwise operations that a product alone feeds, as far as their other
        operands are known by then."""
        out: list[Node] = []
        at = n
        while at not in self.results:
            those = readers.get(at, ())
            if len(those) != 1 or those[0].args.count(at) > 1:
                break
            (u,) = those
            if (
                not (elementwise(u) or u.op == "reshape")
                or u.aval.size != n.aval.size
                or u.dtype in REAL_PART
            ):
                break
            if not all(self.ready(a, made) for a in u.args if a is not at):
                break
            out.append(u)
            at = u
            if self.of[u].how == "stored":
                break
        return out

    def ready(self, a: Node, made: set[Node]) -> bool:
        """Is everything in memory that computing `a` reads?"""
        return all(
            b in made or b.op in ("input", "literal") or self.around.given(b)
            for b in self.direct(a)
        )

    # --- where ------------------------------------------------------------------------------------

    def make_way(self) -> None:
        """Let updates be written over their operands by an order of evaluation, and by storing the
        little of them that is read later."""
        updates = self.updates()
        if not updates:
            return
        at = {n: i for i, n in enumerate(self.order)}
        first: dict[Node, list[Node]] = {}
        rigid = {*self.effects, *[n for n in self.order if n.op == "let_size"]}
        readers, ways = self.made_from(), 0
        for u in updates:
            r = Reads(self.order, at, self.last, self.direct, self.makes, first, rigid)
            if not is_free(u, r):
                way = way_for(u, r) if ways < MOST_WAYS else None
                if way is None:
                    continue
                ways += 1
                for n in way.stored:
                    self.store(n, _BEFORE)
                self.order = way.order
                at = {n: i for i, n in enumerate(self.order)}
                self.last = {}
                self.find_last()
                readers = self.made_from()
            those = [m for m in readers.get(u.over, ()) if at[m] < at[u.by]]
            first.setdefault(u.by, []).extend(those)

    def made_from(self) -> dict[Node, list[Node]]:
        """Who, making a value in memory, reads each stored value, in the order of evaluation."""
        out: dict[Node, list[Node]] = {}
        for m in self.order:
            if self.makes(m):
                for x in self.below[m]:
                    out.setdefault(x, []).append(m)
        return out

    def updates(self) -> list[Update]:
        """What may be written over an operand, if that is read no more; what is promised first."""
        out = []
        for n in self.order:
            home = self.of[n]
            if home.how == "stored" and n.op in IN_PLACE:
                if self.may_take(n, n.args[0]):
                    out.append(Update(n, 0, self.alone(n)))
            elif home.how == "part":
                j = self.taken(n)
                if j is not None and self.may_take(n, n.args[0].args[j]):
                    out.append(Update(n.args[0], j, False))
        links = {n.args[0] if n.op == "get" else n for n in self.around.links}
        return sorted(out, key=lambda u: u.by not in links)

    def taken(self, get: Node) -> int | None:
        """The operand of a step whose memory one of its results may take; looked for where an
        operand of that type is ours."""
        step, whole = get.args[0], hint_of(get.aval.size)
        for a in step.args if whole >= SMALLEST else ():
            if a.dtype == get.dtype and a.shape == get.shape and self.owner(a) != "foreign":
                return self.around.takes(step).get(get.params["index"])
        return None

    def owner(self, x: Node) -> Owner:
        """Whose the memory of an operand may be at best."""
        if self.around.given(x):
            return self.around.memory(x)
        if x in self.around.links:
            return "promised"
        if x not in self.stored and self.of[x].how != "part":
            return "foreign"
        x = self.root(x)
        donated = self.around.given(x) and self.around.memory(x) == "donated"
        return "donated" if donated else "ours"

    def root(self, x: Node) -> Node:
        """What a chain of updates began with."""
        passed = []
        while x not in self.roots and x.op in IN_PLACE and not self.around.given(x):
            passed.append(x)
            x = x.args[0]
        root = self.roots.get(x, x)
        self.roots.update(dict.fromkeys(passed, root))
        return root

    def may_take(self, n: Node, x: Node) -> bool:
        """Is the memory of its operand one that this node may take?"""
        fits = x.dtype == n.dtype and x.shape == n.shape and x not in self.results
        return fits and self.is_for(n, self.owner(x))

    def is_for(self, n: Node, whose: Owner) -> bool:
        """May a node take memory of this kind? A result leaves its own for donated or promised
        memory only."""
        if whose == "promised" or n in self.around.links:
            return n in self.around.links
        return whose == "donated" or (whose == "ours" and n not in self.results)

    def makes(self, n: Node) -> bool:
        return self.of[n].how in ("stored", "step")

    def alone(self, n: Node) -> bool:
        """Is all that an update reads read before it writes? That of one element is."""
        if n.op == "mark":
            return False
        updates = n.args[1] if n.op == "dynamic_update_slice" else n.args[2]
        return surely_equal(updates.aval.size, 1)

    def find_places(self) -> None:
        """The memory of what is stored: a result's, that of an operand it replaces, or new one."""
        memory: dict[Node, Owner] = {}
        at = {n: i for i, n in enumerate(self.order)}
        reads = Reads(self.order, at, self.last, self.direct, self.makes, {}, ())
        for n in self.order:
            home = self.of[n]
            over = self.replaced(n, reads, memory)
            if over is not None:
                x, memory[n] = over
                self.of[n] = home._replace(place="over", other=x)
                continue
            if home.how == "stored" and n in self.results:
                self.of[n] = home._replace(place="result")
            fused = home.how == "fused" and home.other is not None and self.ends[home.other] is n
            if n in self.stored or home.how == "part" or fused:
                memory[n] = "foreign" if n in self.results else "ours"

    def replaced(
        self, n: Node, reads: Reads, memory: Mapping[Node, Owner]
    ) -> tuple[Node, Owner] | None:
        """The operand that a node is written over since it ends there, and whose memory that is."""
        home = self.of[n]
        if home.how == "stored" and n.op in IN_PLACE:
            u = Update(n, 0, self.alone(n))
        elif home.how == "part" and (place := self.taken(n)) is not None:
            u = Update(n.args[0], place, False)
        else:
            return None
        x = u.over
        whose = self.around.memory(x) if self.around.given(x) else memory.get(x, "foreign")
        fits = x.dtype == n.dtype and x.shape == n.shape and self.is_for(n, whose)
        return (x, whose) if fits and is_free(u, reads) else None


def straight(sizes: Sizes, n: Node, chain: Sequence[Node]) -> Sequence[Node]:
    """As much of a chain of operations as needs, for each element, just its own element of `n`:
    reshapes may lead away and back."""
    if all(u.op != "reshape" for u in chain):
        return chain
    probe = tuple(
        [ZERO if d == 1 else var(f"probe{k}", sizes.dim(d)) for k, d in enumerate(n.shape)]
    )
    for count in range(len(chain), 0, -1):
        idx = reindex(sizes, probe, n.shape, chain[count - 1].shape)
        for k in range(count - 1, -1, -1):
            if chain[k].op == "reshape":
                idx = reindex(sizes, idx, chain[k].shape, (chain[k - 1] if k else n).shape)
        if idx == probe:
            return chain[:count]
    return ()


def pieces_of(n: Node, pieces: Mapping[Node, int]) -> int:
    """Of how many pieces a value is made, those of its pieces counted: joins of joins that read one
    array ask for elements of it in as many ways. An index through a reshape or a padding grows
    as well."""
    counts = [pieces.get(a, 1) for a in n.args]
    if n.op == "concatenate":
        return sum(counts)
    return max(counts, default=1) + (GROWTH if n.op in _GROWING else 0)


def in_memory_for(n: Node, a: Node, cost: dict[Node, int]) -> Node:
    """What is stored so that `n` can read its operand `a`: products read a transposed matrix where
    it stands."""
    while n.op in PRODUCTS and a.op in ("transpose", "reshape") and cost.get(a.args[0], 0) > 0:
        a = a.args[0]
    return a

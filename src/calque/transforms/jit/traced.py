"""A function traced for one kind of arguments, and what is counted of that."""

from __future__ import annotations

import copy
import logging
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from calque.core import backends, pytrees
from calque.core.arrays import share, to_array
from calque.core.avals import ShapedArray
from calque.core.config import config
from calque.core.devices import DEFAULT_DEVICE, is_mine
from calque.core.jaxprs import ClosedJaxpr, symbols_found_by
from calque.core.lazy import LazyModule
from calque.core.pause import no_collection
from calque.machine.room import with_room
from calque.machine.spans import span
from calque.transforms.devices import summands, transfers
from calque.transforms.devices.open_results import as_chosen, left_open, unsaid
from calque.transforms.devices.program_devices import of_read
from calque.transforms.devices.sharding import NamedSharding, Sharding, is_in_own_memory
from calque.transforms.devices.sharding_arrays import placed
from calque.transforms.devices.sharding_constraint import has_constraints
from calque.transforms.devices.sharding_propagation import (
    is_placed,
    result_shardings,
    shardings_of_results,
)
from calque.transforms.functions import debug_nans
from calque.transforms.functions.key_signatures import NOTHING
from calque.transforms.jit import captures, donation
from calque.transforms.jit.again import Again

_LOG: Final = logging.getLogger("calque")
nan_checks: Any = LazyModule("calque.transforms.functions.nan_checks")  # used with its flag alone


class TracedFunction:
    """A function traced for one kind of arguments: its program and the structures around it."""

    __slots__ = (
        "again",
        "ambient",
        "captures",
        "closed",
        "compiler",
        "donated",
        "elsewhere",
        "executable",
        "finds",
        "hoisted",
        "in_tree",
        "keys",
        "name",
        "on_rows",
        "out_tree",
        "owner",
        "params",
        "served",
        "settings",
        "statics",
        "times_taught",
        "typed",
        "unusable",
    )

    def __init__(
        self,
        closed: ClosedJaxpr,
        hoisted: list[Any],
        in_tree: pytrees.PyTreeDef,
        out_tree: pytrees.PyTreeDef,
        name: str,
    ):
        self.closed, self.hoisted = closed, hoisted
        self.in_tree, self.out_tree, self.name = in_tree, out_tree, name
        self.executable: backends.Executable | None = None
        self.again: Again | None = None  # makes a better one
        # for devices of other engines
        self.elsewhere: dict[backends.Places, backends.Executable] = {}
        self.served: list[Any] = []  # what machine code was taught to ask those other engines for
        self.keys = NOTHING  # which arguments are random keys and are used up
        self.captures = captures.NOTHING  # what the function read that is no argument
        self.times_taught = 0  # to machine code, of static values that are told by themselves
        self.statics: tuple[int, ...] = ()  # positions that hold None in `in_tree`
        self.owner: Callable[[], Any] = lambda: None  # the function that was traced
        self.finds = symbols_found_by(closed) is not None  # sizes that are known only while running
        # the configuration that it was traced in; None: another thread changed it meanwhile
        self.settings: tuple[Any, ...] | None = config.trace_key()
        # do the types of its results say where they are?
        self.typed = any(getattr(a, "place", None) is not None for a in closed.out_avals)
        # of arrays that are still to be added: the program of their summands
        self.on_rows: TracedFunction | None = None
        self.ambient = False  # did it ask for the current mesh?
        self.params = {"jaxpr": closed, "name": name}
        self.donated: tuple[int, ...] = ()  # flat inputs whose memory the program may take
        self.unusable: list[ShapedArray] = []
        self.compiler: tuple[tuple[str, Any], ...] = ()  # what XLA's compiler is told

    def told(self, options: tuple[tuple[str, Any], ...]) -> TracedFunction:
        """The same, compiled with these options, too."""
        if not options:
            return self
        other = copy.copy(self)
        other.executable, other.elsewhere, other.served, other.on_rows = None, {}, [], None
        other.again = None
        other.compiler = tuple(sorted({**dict(self.compiler), **dict(options)}.items()))
        return other

    def compiled(
        self, place: backends.Places | None = None, hasty: bool = False
    ) -> backends.Executable:
        """The program for devices of another engine; without them for what compiles here, which
        may be a `hasty` one."""
        known = self.executable if place is None else self.elsewhere.get(place)
        if known is not None:
            return known if place is not None or self.again is None else self.improved(hasty)
        donation.warn_unusable(self.unusable, self.name)
        changes = config.changes_elsewhere()
        start = time.perf_counter()
        if is_logged():
            log(f"Compiling jit({self.name}) for {', '.join(map(repr, self.closed.in_avals))}")
        engine = None if place is None else place.devices[0].engine
        hasty = hasty and place is None and config.quick_first_calls
        options = backends.Options(
            self.name, config.exact, self.donated, place, self.compiler, hasty
        )
        with span("compile", self.name), no_collection():
            closed = self.closed
            if debug_nans.active():
                if place is None or all(map(is_mine, place.devices)):
                    closed = nan_checks.checked(closed, self.name)
                else:
                    warnings.warn(debug_nans.ELSEWHERE, stacklevel=2)
            made = with_room(backends.compile_program, closed, options, engine)
        if is_logged():
            # in JAX's words, which programs look for
            took = f"{time.perf_counter() - start:.9f} sec"
            by = "by calque, not XLA" if engine in (None, DEFAULT_DEVICE.engine) else engine
            log(f"Finished XLA compilation of jit({self.name}) in {took} ({by})")
        # one for another configuration is for this call alone
        if self.settings == config.trace_key() and changes == config.changes_elsewhere():
            if place is None:
                # before anybody finds the program, who else would teach a hasty one for good
                if isinstance(made, backends.Hasty) and made.hasty:
                    self.again = Again(made)
                self.executable = made
            else:
                self.elsewhere[place] = made
        return made

    def improved(self, hasty: bool) -> backends.Executable:
        """The better program, or the first one where there is no better one yet and that will
        do."""
        again = self.again
        if again is not None:
            better = again.better() if hasty else again.made()
            if better is not None:
                self.executable, self.again = better, None
        assert self.executable is not None
        return self.executable

    def keeps(self, executable: backends.Executable) -> bool:
        """Whether this is its program for the present configuration."""
        return executable is self.executable or executable in self.elsewhere.values()

    def place_of(
        self, ins: Sequence[Sharding | None], outs: Sequence[Sharding | None]
    ) -> backends.Places | None:
        """The devices that the program runs on, if not where programs run that are placed nowhere:
        those of its arguments, or of its results."""
        orders = [s.device_order for s in (*ins, *outs) if s is not None]
        devices = {d for order in orders for d in order}
        if all(d.engine == DEFAULT_DEVICE.engine for d in devices):
            is_asked_for = devices and backends.known.chosen != DEFAULT_DEVICE.engine
            return backends.Places((DEFAULT_DEVICE,)) if is_asked_for else None
        if any(set(order) != devices for order in orders):
            raise ValueError(
                f"{self.name}: the arguments and results of a program are on the same devices of"
                f" one engine, but these are on {', '.join(sorted(map(str, devices)))}. Bring"
                " them together with device_put"
            )
        if len(set(orders)) > 1 and not all(map(is_mine, devices)):
            raise ValueError(
                f"{self.name}: the arguments and results of a program over several processes have"
                f" their devices in one order, but these are {', '.join(map(_in_order, orders))}."
                " Bring them to the same mesh with device_put"
            )
        if len(devices) == 1:
            if all(map(is_in_own_memory, (*ins, *outs))):
                return backends.Places(orders[0])
            return backends.Places(orders[0], tuple(ins), tuple(outs))
        meshes = [s for s in (*ins, *outs) if isinstance(s, NamedSharding)]
        order = meshes[0].device_order if meshes else orders[0]
        free, free_ins = left_open(self.closed, outs), unsaid(self.closed, ins, outs)
        return backends.Places(order, tuple(ins), tuple(outs), free, free_ins)

    def own_place(self, given: Sequence[Sharding | None] = ()) -> backends.Places | None:
        """The devices of another engine that arguments placed so, or the function itself, ask
        for."""
        ins = tuple(given) or (None,) * len(self.closed.in_avals)
        if not has_constraints(self.closed) and all(s is None for s in ins):
            return None
        where = shardings_of_results(self.closed, ins, self.name)
        return self.place_of(of_read(self.closed, ins), where)

    def run(self, leaves: Sequence[Any]) -> Ran:
        """The results for these arguments."""
        given = arrays = [to_array(x) for x in leaves]
        are_placed = is_placed(leaves)
        if self.typed or are_placed:
            arrays = [
                x if x.aval.place is None else share(x, x.aval.without_place()) for x in given
            ]
        is_somewhere = are_placed or has_constraints(self.closed) or self.typed
        where = result_shardings(self.closed, leaves, self.name) if is_somewhere else []
        places = [x._extra for x in given]
        read = of_read(self.closed, tuple(places))
        place = self.place_of(read, where) if is_somewhere else None
        if self.typed and place is None and summands.are_taken(self.closed):
            return self.run_on_rows(given, where)
        executable = self.compiled(place, hasty=True)
        transfers.check_arguments(leaves, executable)
        where = as_chosen(self.closed, read, where, executable)
        out = executable.call(arrays)
        if executable.program is None or arrays is not given:
            donation.delete_donated(given, self.donated)
        if is_somewhere:
            out = [placed(x, s) for x, s in zip(out, where, strict=True)]
        return Ran(out, is_somewhere, executable, places)

    def run_on_rows(self, given: Sequence[Any], where: Sequence[Any]) -> Ran:
        """The results, where arguments or results are still to be added: the program runs on what
        each member has of them."""
        if self.on_rows is None:
            closed = summands.on_rows(self.closed)
            self.on_rows = TracedFunction(closed, [], self.in_tree, self.out_tree, self.name)
            self.on_rows.compiler = self.compiler
            self.on_rows.settings = self.settings
        rows = [summands.rows_of(x, a) for x, a in zip(given, self.closed.in_avals, strict=True)]
        executable = self.on_rows.compiled()
        out = executable.call([share(x, x.aval.without_place()) for x in rows])
        donation.delete_donated(given, self.donated)
        results = [placed(x, s) for x, s in zip(out, where)]
        more = iter(out[len(where) :])
        for i, (x, s, aval) in enumerate(zip(results, where, self.closed.out_avals)):
            if summands.axes_to_add(aval):
                results[i] = summands.held(x, s, next(more))
        return Ran(results, True, executable, [])


def _in_order(devices: Sequence[Any]) -> str:
    return str([d.id for d in devices])


class Ran(NamedTuple):
    """The results of a program, whether anything says where they live, what ran, and where the
    arguments said that they live."""

    out: list[Any]
    is_somewhere: bool
    executable: backends.Executable
    places: list[Any]


class TraceCounts:
    """How often functions were traced in this process, and how often called through Python."""

    traces = asked = 0


stats = TraceCounts()


def is_logged() -> bool:
    """Whether anybody hears what `log` says."""
    return config.log_compiles or _LOG.isEnabledFor(logging.DEBUG)


def log(message: str) -> None:
    """Say it where `calque_log_compiles` asks for that; else to who listens to every detail."""
    if config.log_compiles:
        warn(message)
    else:
        _LOG.debug(message)


def warn(message: str) -> None:
    """Say it to whoever listens to the logger of calque."""
    _LOG.warning(message)

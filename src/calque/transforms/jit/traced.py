"""A function traced for one kind of arguments, and what is counted of that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from calque.core import backends, pytrees
from calque.core.arrays import share, to_array
from calque.core.avals import ShapedArray
from calque.core.config import config
from calque.core.jaxprs import ClosedJaxpr, found_symbols
from calque.core.lazy import LazyModule
from calque.core.pause import no_collection
from calque.transforms.devices.sharding_arrays import placed
from calque.transforms.devices.sharding_constraint import has_constraints
from calque.transforms.devices.sharding_propagation import is_placed, result_shardings
from calque.transforms.functions import debug_nans
from calque.transforms.functions.key_signatures import NOTHING
from calque.transforms.jit import captures, donation

nan_checks: Any = LazyModule("calque.transforms.functions.nan_checks")  # used with its flag alone


class Traced:
    """A function traced for one kind of arguments: its program and the structures around it."""

    __slots__ = (
        "ambient",
        "captures",
        "closed",
        "donated",
        "executable",
        "finds",
        "hoisted",
        "in_tree",
        "is_taught",
        "keys",
        "name",
        "out_tree",
        "owner",
        "params",
        "settings",
        "statics",
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
        self.keys = NOTHING  # which arguments are random keys and are used up
        self.captures = captures.NOTHING  # what the function read that is no argument
        self.is_taught = False  # to machine code
        self.statics: tuple[int, ...] = ()  # positions that hold None in `in_tree`
        self.owner: Callable[[], Any] = lambda: None  # the function that was traced
        self.finds = (
            found_symbols(closed.jaxpr) is not None
        )  # sizes that are known only while running
        # the configuration that it was traced in; None: another thread changed it meanwhile
        self.settings: tuple[Any, ...] | None = config.trace_key()
        # do the types of its results say where they are?
        self.typed = any(getattr(a, "place", None) is not None for a in closed.out_avals)
        self.ambient = False  # did it ask for the current mesh?
        self.params = {"jaxpr": closed, "name": name}
        self.donated: tuple[int, ...] = ()  # flat inputs whose memory the program may take
        self.unusable: list[ShapedArray] = []

    def compiled(self) -> backends.Executable:
        if self.executable is not None:
            return self.executable
        donation.warn_unusable(self.unusable, self.name)
        changes = config.changes_elsewhere()
        options = backends.Options(self.name, config.exact, self.donated)
        with no_collection():
            closed = self.closed
            if debug_nans.active():
                closed = nan_checks.checked(closed, self.name)
            made = backends.compile_program(closed, options)
        log(f"Finished compiling {self.name}")
        # one for another configuration is for this call alone
        if self.settings == config.trace_key() and changes == config.changes_elsewhere():
            self.executable = made
        return made

    def run(self, leaves: Sequence[Any]) -> tuple[list[Any], bool]:
        """The results for these arguments, and whether anything says where they live."""
        executable = self.compiled()
        arrays = [to_array(x) for x in leaves]
        if self.typed or is_placed(leaves):
            arrays = [
                x if x.aval.place is None else share(x, x.aval.without_place()) for x in arrays
            ]
        is_somewhere = is_placed(leaves) or has_constraints(self.closed) or self.typed
        where = result_shardings(self.closed, leaves, self.name) if is_somewhere else []
        out = executable.call(arrays)
        if executable.program is None:
            donation.delete_donated(arrays, self.donated)
        return (
            [placed(x, s) for x, s in zip(out, where, strict=True)] if is_somewhere else out
        ), is_somewhere


class Stats:
    """How often functions were traced in this process, and how often called through Python."""

    traces = asked = 0


stats = Stats()


def log(message: str) -> None:
    """Say it where `calque_log_compiles` asks for that."""
    if config.log_compiles:
        warn(message)


def warn(message: str) -> None:
    """Say it to whoever listens to the logger of calque."""
    import logging  # few processes need it

    logging.getLogger("calque").warning(message)

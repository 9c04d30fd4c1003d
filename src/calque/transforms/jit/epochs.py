"""Epochs: which entries of the call path are valid now. An entry is made for one configuration and
matches under no other."""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from typing import Any, Final

from calque.core import primitives, trace_state
from calque.core.config import Flags, config
from calque.core.lazy import LazyModule
from calque.machine.call import functions as callpath
from calque.machine.once import Turns
from calque.machine.state import process
from calque.transforms.devices import transfers

key_reuse: Any = LazyModule("calque.transforms.functions.key_reuse")
_refreshing: Final = Turns()


def epoch() -> int:
    """The number of the configuration of this thread."""
    return _number(config.here())


def epoch_of(configuration: Hashable) -> int:
    """The number of a configuration; entries made under another one do not match."""
    number = process.epochs.number(configuration)
    return number + callpath.CHECKED if checks() else number


def _number(flags: Flags) -> int:
    number = process.epochs.number(flags.key)
    return number + callpath.CHECKED if flags.looks or primitives.replacements else number


def checks() -> bool:
    """Whether single operations are looked at. Jitted programs look at themselves."""
    return config.here().looks or bool(primitives.replacements)


def programs_enabled() -> bool:
    """Whether machine code may serve calls of jitted functions."""
    return callpath.LEARNS and not (trace_state.any_recording() or config.disable_jit)


def serving() -> int:
    """The number of the configuration of this thread, 0 where machine code may not serve calls of
    single operations."""
    flags = config.here()
    if (
        flags.looks
        or flags.disable_jit
        or primitives.replacements
        or not callpath.LEARNS
        or trace_state.any_recording()
    ):
        return 0
    return process.epochs.number(flags.key)


def refresh() -> None:
    """Tell machine code which entries are valid now. Of several threads the last one to come tells
    what is so then."""
    with _refreshing.taken():
        own = config.of_threads()
        if not callpath.LEARNS or trace_state.any_recording() or len(own) > callpath.THREADS:
            callpath.set_epoch(0)
            return
        pairs = [(thread, _served(flags)) for thread, flags in own.items()]
        callpath.set_epoch(_served(config.of_process()), *itertools.chain.from_iterable(pairs))


def _served(flags: Flags) -> int:
    """The number of a configuration, 0 where machine code serves none of its calls: it asks nothing
    of what it copies."""
    asks = flags.guards and transfers.copying.value
    return 0 if flags.disable_jit or asks else _number(flags)


def renew() -> None:
    """No entry made so far is valid any more: under no configuration."""
    process.epochs.renew()
    refresh()


def watch_keys() -> None:
    """What looks at the use of random keys is imported with its flag."""
    if config.anywhere("debug_key_reuse"):
        key_reuse.watch()


config.on_change(refresh)
primitives.on_replacement.add(refresh)
config.on_change(watch_keys)
watch_keys()
transfers.engines.add(refresh)
trace_state.on_tracing(lambda _: refresh())
refresh()

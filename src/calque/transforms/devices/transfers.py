"""Guards of copies between the host and devices of other engines (`jax_transfer_guard`): those that
are made though nobody asked for them are logged, or an error.

calque's own engine copies nothing, and what single operations give counts as being where programs
run, though it is in the memory of the host until one does."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final

from calque.core.arrays import ArrayImpl
from calque.core.config import config
from calque.core.devices import DEFAULT_DEVICE
from calque.core.errors import CalqueRuntimeError
from calque.core.trace import typeof
from calque.core.trace_state import Tracer
from calque.machine.state import PerThread, process
from calque.transforms.devices.program_devices import is_abstract
from calque.transforms.devices.sharding import Sharding, default_sharding

_LOG: Final = logging.getLogger("calque")
HOST_TO_DEVICE: Final = "host_to_device"
DEVICE_TO_DEVICE: Final = "device_to_device"
DEVICE_TO_HOST: Final = "device_to_host"
_REMEDIES: Final = {
    HOST_TO_DEVICE: "bring it there with device_put",
    DEVICE_TO_DEVICE: "move it with device_put",
    DEVICE_TO_HOST: "fetch it with device_get",
}

engines: Final = process.listeners("first programs of engines that copy")
copying: Final = process.value("does an engine copy between the host and devices", False)


class _Asked(PerThread, name="copies that were asked for"):
    """Whether this thread is making copies that the user asked for."""

    is_explicit = False


asked: Final = _Asked()


def engine_copies() -> None:
    """From now on there is an engine that copies."""
    if not copying.value:
        copying.value = True
        engines.tell()


def check(direction: str, what: Any, explicit: bool = False) -> None:
    """Log a copy in this direction, or raise, as the flags say. `what` is the value, of which the
    type is named."""
    level = config.read(f"transfer_guard_{direction}") or config.transfer_guard
    if level in (None, "allow") or (explicit and not level.endswith("_explicit")):
        return
    kind = direction.replace("_", "-")
    if level.startswith("log"):
        _LOG.warning("%s transfer: %s", kind, typeof(what).str_short())
        return
    remedy = "" if explicit else f": {_REMEDIES[direction]}"
    raise CalqueRuntimeError(
        f"INVALID_ARGUMENT: Disallowed {kind} transfer: aval={typeof(what)}. calque_transfer_guard"
        f" is {level!r}{remedy}, or allow it: with transfer_guard_{direction}('allow')"
    )


def check_arguments(leaves: Sequence[Any], executable: Any) -> None:
    """Arguments that are no arrays are copied to where a program of such an engine runs."""
    if copying.value and config.here().guards and getattr(executable, "copies", False):
        for x in leaves:
            if not isinstance(x, ArrayImpl):
                check(HOST_TO_DEVICE, x)


def check_put(x: Any, target: Sharding) -> None:
    """What `device_put` brings to another engine, or moves between its devices."""
    if not config.here().guards or isinstance(x, Tracer) or is_abstract(target):
        return
    if target.device_order[0].engine == DEFAULT_DEVICE.engine:
        return
    if not isinstance(x, ArrayImpl):
        check(HOST_TO_DEVICE, x, explicit=True)
    elif not (x._extra or default_sharding()).is_equivalent_to(target, x.ndim):
        check(DEVICE_TO_DEVICE, x, explicit=True)


def check_fetch(x: Any) -> None:
    """The host looks at an array that is in the memory of a device alone."""
    if config.here().guards:
        check(DEVICE_TO_HOST, x, explicit=asked.is_explicit)

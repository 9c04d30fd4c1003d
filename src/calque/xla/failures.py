"""What becomes of errors of XLA's runtime, and what it cannot tell of itself."""

from __future__ import annotations

import os
import warnings
from typing import Final

from calque.machine.once import once
from calque.xla import jaxlib

_NO_ROOM: Final = (
    "The device has no room for what the program computes:"
    " jit(f).lower(...).compile().memory_analysis() says how much that is. Give a call less"
    " at a time, give arguments away (donate_argnums), compute again what derivatives keep"
    " (jax.checkpoint), or share arrays among devices (in_shardings)."
)
_NO_PEER: Final = (
    "Another process of this program has ended or cannot be reached: what it wrote itself says why."
    " This one cannot go on without it: start all of them again, from the last checkpoint."
)


@once
def _out_of_memory() -> type[Exception]:
    """The error where a device has no memory left: XLA's own, as in JAX, and Python's."""
    names = {"__module__": __name__, "__doc__": "A device has no room for what is computed."}
    return type("DeviceMemoryError", (*jaxlib.runtime_errors()[:1], MemoryError), names)


def advised(error: Exception) -> Exception:
    """What XLA has raised, with what can be done about it: where memory is out, and where another
    process is gone."""
    text = str(error)
    if "RESOURCE_EXHAUSTED" in text:
        return _out_of_memory()(f"{text} {_NO_ROOM}")
    if "Gloo" in text:
        return type(error)(f"{text}. {_NO_PEER}")
    return error


@once
def warn_of_forks() -> None:
    """From now on, since XLA has threads that a forked child does not get."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_warn)


def _warn() -> None:
    warnings.warn(
        "this process runs XLA, whose threads a forked child does not have: programs on XLA would"
        " wait there for ever. Start processes anew (multiprocessing.get_context('spawn') or"
        " 'forkserver'), fork before the first program runs on XLA, or use calque's own engine"
        " (CALQUE_PLATFORMS=cpu), which forks",
        RuntimeWarning,
        stacklevel=2,
    )

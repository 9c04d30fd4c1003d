"""What becomes of errors of XLA's runtime, and what it cannot tell of itself."""

from __future__ import annotations

import os
import warnings
from typing import Final

from calque.core.errors import CalqueRuntimeError
from calque.machine.once import once

_NO_ROOM: Final = (
    "The device has no room for what the program computes:"
    " jit(f).lower(...).compile().memory_analysis() says how much that is. Give a call less"
    " at a time, give arguments away (donate_argnums), compute again what derivatives keep"
    " (jax.checkpoint), or share arrays among devices (in_shardings)."
)
_TWICE: Final = (
    "One array was given to two arguments that are donated (donate_argnums): pass a copy of it to"
    " one of them (jnp.copy(x)), or donate only one."
)
_NO_PEER: Final = (
    "Another process of this program has ended or cannot be reached: what it wrote itself says why."
    " This one cannot go on without it: start all of them again, from the last checkpoint."
)


@once
def _known_to_users(kind: type[Exception]) -> type[Exception]:
    """An error of XLA's as one of calque's, too, which is `jax.errors.JaxRuntimeError`."""
    if issubclass(kind, CalqueRuntimeError):
        return kind
    return type(kind.__name__, (kind, CalqueRuntimeError), {"__module__": kind.__module__})


@once
def _out_of_memory(kind: type[Exception]) -> type[Exception]:
    """The error where a device has no memory left: Python's, too."""
    names = {"__module__": __name__, "__doc__": "A device has no room for what is computed."}
    return type("DeviceMemoryError", (kind, MemoryError), names)


def advised(error: Exception) -> Exception:
    """What XLA has raised, as users know it, with what can be done about it: where memory is out,
    where an array is given away twice, and where another process is gone."""
    text, kind = str(error), _known_to_users(type(error))
    if "RESOURCE_EXHAUSTED" in text:
        return _out_of_memory(kind)(f"{text} {_NO_ROOM}")
    if "donate the same buffer twice" in text:
        return kind(f"{text} {_TWICE}")
    return kind(f"{text}. {_NO_PEER}" if "Gloo" in text else text)


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

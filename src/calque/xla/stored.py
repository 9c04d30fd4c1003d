"""Programs that XLA has compiled, on disk: in the folder of calque's own code, under a digest of
their StableHLO, of what they were compiled for, and of the compiler."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final, Protocol

from calque.core.config import config
from calque.machine.code import diskcache
from calque.machine.code.digest import hexdigest
from calque.machine.code.target import describe
from calque.machine.once import once
from calque.xla import jaxlib

KIND: Final = "xla"
PROOF: Final = "xla_proof"  # that the jaxlib that is installed computes as it should


class Written(Protocol):
    """A module that was lowered, and the Python functions that it calls."""

    @property
    def callbacks(self) -> Sequence[Any]: ...
    def text(self) -> str: ...
    def located(self, text: str) -> str: ...


def loaded_program(
    client: Any,
    devices: Sequence[Any],
    written: Written,
    asked: Sequence[tuple[str, Any]] = (),
    free: tuple[Sequence[bool], Sequence[bool]] = ((), ()),
    *,
    is_own: bool = False,
    gspmd: bool = False,
) -> jaxlib.LoadedProgram:
    """The program for these devices: one of an earlier process, or compiled now. What calls Python
    is compiled anew, since its functions are of this process, and so is what `is_own`. `asked` are
    options of the compiler; `free` are the arguments and the results that it may place as it likes;
    `gspmd` says which partitioner it is for.
    Where its operations were made is told to XLA, but a program is the same at other places."""
    options = jaxlib.compile_options(devices, asked, free, gspmd=gspmd)
    text, callbacks = written.text(), written.callbacks
    if callbacks or is_own or not config.enable_compilation_cache:
        return jaxlib.LoadedProgram(client, devices, written.located(text), callbacks, options)
    key = key_of(client, devices, text, asked, free)
    data = diskcache.get(key, KIND)
    known = None if data is None else jaxlib.deserialized(client, devices, data, options)
    located = text if known is not None else written.located(text)
    program = jaxlib.LoadedProgram(client, devices, located, (), options, known)
    if known is None:
        image = jaxlib.serialized(client, program.loaded)
        if image is not None:
            diskcache.put(key, KIND, image)
    return program


@once
def proven() -> None:
    """An error unless the jaxlib that is installed computes as it should: shown once for each
    installation, and each time where nothing is kept on disk."""
    key = hexdigest("\0".join(("proof", *jaxlib.identity(), repr(describe()))))
    if diskcache.get(key, PROOF) is None:
        jaxlib.prove()
        diskcache.put(key, PROOF, b"proven")


def key_of(
    client: Any,
    devices: Sequence[Any],
    text: str,
    asked: Sequence[tuple[str, Any]] = (),
    free: tuple[Sequence[bool], Sequence[bool]] = ((), ()),
) -> str:
    """What a compiled program depends on."""
    parts = (
        text,
        repr(jaxlib.jaxlib().version),
        str(client.platform),
        str(client.platform_version),
        repr([(d.id, d.process_index) for d in devices]),
        os.environ.get("XLA_FLAGS", ""),
        repr(describe()),
        *([repr(asked)] if asked else []),
        *([repr(free)] if any(map(any, free)) else []),
    )
    return hexdigest("\0".join(parts))

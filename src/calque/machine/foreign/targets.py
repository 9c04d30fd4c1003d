"""Foreign functions by name, and calls of them."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from ctypes import CFUNCTYPE, PYFUNCTYPE, c_char_p, c_void_p, py_object
from typing import Any, Final, NamedTuple

import numpy as np

from calque.machine.foreign import frames, structs
from calque.machine.foreign.runtime import (
    Call,
    States,
    api,
    awaited,
    register_type,
    taken_error,
)
from calque.machine.state import process

_HOST: Final = ("cpu", "host")
_FUNCTION: Final = CFUNCTYPE(c_void_p, c_void_p)
_python: Any = ctypes.pythonapi
_new_capsule = PYFUNCTYPE(py_object, c_void_p, c_char_p, c_void_p)(("PyCapsule_New", _python))
_name_of = PYFUNCTYPE(c_char_p, py_object)(("PyCapsule_GetName", _python))
_pointer_in = PYFUNCTYPE(c_void_p, py_object, c_char_p)(("PyCapsule_GetPointer", _python))
UNTYPED: Final = 0  # the version of functions of pointers alone, before there were frames


class Target(NamedTuple):
    """A foreign function as it was made known: its stages are capsules of addresses."""

    name: str
    platform: str
    stages: Mapping[str, Any]
    version: int
    options: Mapping[str, Any]  # for XLA alone

    @property
    def keeps_state(self) -> bool:
        return "instantiate" in self.stages


class Kind(NamedTuple):
    """A type of states as it was made known, by capsules."""

    name: str
    platform: str
    parts: Mapping[str, Any]


class Partitionable(NamedTuple):
    """A foreign function that may be called with parts of its leading axes."""

    name: str


Declared = Target | Kind | Partitionable
_targets: Final[dict[str, Target]] = process.container("foreign functions of the host", {})
# all that was made known, in its order: for engines that have a registry of their own
declared: Final[list[Declared]] = process.container("what foreign libraries have", [])


def address_of(capsule: Any, what: str) -> int:
    """The address in a capsule, whatever its name."""
    if type(capsule).__name__ != "PyCapsule":
        raise TypeError(
            f"{what} must be a capsule, as jax.ffi.pycapsule(library.function) makes it, not"
            f" {capsule!r}"
        )
    address: int = _pointer_in(capsule, _name_of(capsule))
    return address


def capsule_of(address: int) -> Any:
    """A capsule of an address, without a name."""
    return _new_capsule(address, None, None)


def is_host(platform: str) -> bool:
    return platform.lower() in _HOST


def make_known(
    name: str, function: Any, platform: str, version: int, options: Mapping[str, Any]
) -> None:
    """Enter a foreign function: a capsule, or one for each of its stages."""
    stages = dict(function) if isinstance(function, Mapping) else {"execute": function}
    unknown = [s for s in stages if s not in structs.STAGES]
    if unknown or "execute" not in stages:
        raise ValueError(
            f"a foreign function has the stages {', '.join(structs.STAGES)}, of which `execute`"
            f" has to be there: {name!r} has {', '.join(map(repr, stages)) or 'none'}"
        )
    for stage, capsule in stages.items():
        address_of(capsule, f"the stage {stage!r} of {name!r}")
    target = Target(name, platform, stages, version, options)
    if is_host(platform):
        known = _targets.setdefault(name, target)
        if known is not target and _addresses(known) != _addresses(target):
            raise ValueError(f"there is a foreign function named {name!r} on the CPU already")
        if known is not target:
            return
    declared.append(target)


def offer(name: str, capsule: Any, platform: str, version: int) -> None:
    """Enter a foreign function that other engines know by themselves, if the name is free."""
    if is_host(platform):
        _targets.setdefault(name, Target(name, platform, {"execute": capsule}, version, {}))


def declare_partitionable(name: str) -> None:
    """Enter that a foreign function may be called with parts of its leading axes."""
    declared.append(Partitionable(name))


def _addresses(target: Target) -> dict[str, int]:
    return {stage: address_of(c, stage) for stage, c in target.stages.items()}


def _check(name: str, stage: str, capsule: Any) -> None:
    """Ask the function of a stage which version of the interface it was built for."""
    extension = structs.MetadataExtension()
    metadata = structs.made(structs.Metadata)
    extension.base.struct_size = ctypes.sizeof(extension)
    extension.base.type = structs.METADATA
    extension.metadata = ctypes.pointer(metadata)
    kept = frames.Kept()
    nothing = frames.buffers(kept, [], "")
    table = api()[0]
    frame = frames.frame(table, 0, stage, nothing, nothing, frames.attributes(kept, {}))
    frame.extension_start = ctypes.addressof(extension)
    said = taken_error(_FUNCTION(address_of(capsule, name))(ctypes.addressof(frame)))
    major, minor = structs.VERSION
    version = metadata.api_version.major, metadata.api_version.minor
    if said is None and (version[0] != major or version[1] > minor):
        said = f"it was built for version {version[0]}.{version[1]} of the interface"
    if said is not None:
        raise ValueError(
            f"{name!r} cannot be called, stage {stage!r}: {said}. calque speaks version"
            f" {major}.{minor} of the interface of XLA's foreign functions"
        )


def find(name: str) -> Target | None:
    """The foreign function of this name that runs on the CPU."""
    return _targets.get(name)


def is_elsewhere(name: str) -> bool:
    """Whether a foreign function of this name was made known, of other platforms than the CPU."""
    others = [t for t in declared if isinstance(t, Target) and t.name == name]
    return name not in _targets and bool(others)


def make_known_type(name: str, parts: Mapping[str, Any], platform: str) -> None:
    """Enter a type of states: capsules of its number (`type_id`), and of what ends its values
    (`type_info`)."""
    unknown = [p for p in parts if p not in ("type_id", "type_info")]
    if unknown or "type_id" not in parts:
        raise ValueError(
            f"a type of states has a `type_id` and may have a `type_info`: {name!r} has"
            f" {', '.join(map(repr, parts)) or 'nothing'}"
        )
    if is_host(platform):
        _number_type(name, parts["type_id"], parts.get("type_info"))
    declared.append(Kind(name, platform, dict(parts)))


def _number_type(name: str, type_id: Any, type_info: Any | None) -> None:
    number = ctypes.cast(
        address_of(type_id, f"the `type_id` of {name!r}"), ctypes.POINTER(ctypes.c_int64)
    )
    deleter = None
    if type_info is not None:
        address = address_of(type_info, f"the `type_info` of {name!r}")
        deleter = ctypes.cast(address, ctypes.POINTER(structs.TypeInfo))[0].deleter
    said = register_type(name.encode(), number, deleter)
    if said is not None:
        raise ValueError(said)


# ---------------------------------------------------------------- calls


class Instance:
    """A foreign function where it is called, with its attributes: what it keeps is kept here."""

    def __init__(self, target: Target, attributes: Mapping[str, Any]) -> None:
        self.target, self._states = target, States()
        for stage, capsule in target.stages.items():
            _check(target.name, stage, capsule)
        self._kept = frames.Kept()
        self._attributes = frames.attributes(self._kept, attributes)
        self._functions = {
            s: _FUNCTION(address_of(target.stages[s], s))
            for s in structs.STAGES
            if s in target.stages
        }
        if target.keeps_state:
            nothing = frames.buffers(self._kept, [], "")
            with Call(self._states) as call:
                self._stage("instantiate", call, nothing, nothing)

    def run(
        self,
        args: Sequence[tuple[np.ndarray, Sequence[int]]],
        outs: Sequence[tuple[np.ndarray, Sequence[int]]],
    ) -> None:
        """Call it with elements and shapes; results are written to those of `outs`."""
        kept = frames.Kept()
        given, wanted = frames.buffers(kept, args, "argument"), frames.buffers(kept, outs, "result")
        with Call(self._states) as call:
            for stage in self._functions:
                if stage != "instantiate":
                    self._stage(stage, call, given, wanted)

    def _stage(self, stage: str, call: Call, given: Any, wanted: Any) -> None:
        frame = frames.frame(api()[0], call.number, stage, given, wanted, self._attributes)
        error = self._functions[stage](ctypes.addressof(frame)) or awaited(frame.future)
        said = taken_error(error)
        if said is not None:
            raise ForeignError(f"{said} (in the foreign function {self.target.name!r})")


class ForeignError(Exception):
    """What a foreign function has said that went wrong."""


def run_untyped(
    target: Target, args: Sequence[np.ndarray], outs: Sequence[np.ndarray], *, several: bool
) -> None:
    """Call a function of pointers alone: of the result, or of a row of them if there are
    `several`, and of a row of arguments."""
    kept = frames.Kept()
    given = kept.row(c_void_p, [kept.data(x) for x in args])
    results = [kept.data(x) for x in outs]
    place = kept.row(c_void_p, results) if several else results[0]
    function = CFUNCTYPE(None, c_void_p, c_void_p)
    function(address_of(target.stages["execute"], target.name))(place, given)

"""jaxlib, imported when it is first needed; what differs between its versions stands here.

Where calque is served as `jax`, the name `jaxlib` is calque's, too: the parts of the real jaxlib
are then imported beside it, under their own names, once they have been asked for here."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

from calque.core import foreign_parts
from calque.machine.lazy import imported
from calque.machine.once import once

OLDEST: Final = (0, 5, 0)
REMEDY: Final = "install it with `pip install calque[xla]`, or `pip install jaxlib`"


class XlaUnavailable(RuntimeError):
    """XLA was asked for, and jaxlib is not there or too old."""


@dataclass(frozen=True)
class Jaxlib:
    """The modules of jaxlib that the engine uses."""

    version: tuple[int, ...]
    extension: ModuleType  # the classes of arrays, devices, programs: `_jax`, once `xla_extension`
    client: ModuleType


def _numbers(text: str) -> tuple[int, ...]:
    """(0, 10, 2) of "0.10.2.dev1"."""
    parts = []
    for part in text.split(".")[:3]:
        digits = "".join(c for c in part if c.isdigit())
        parts.append(int(digits or 0))
    return tuple(parts)


def folder() -> str:
    """Where the real jaxlib is installed."""
    served = os.sep + os.path.join("compat", "served")
    path = [p for p in sys.path if not p.rstrip(os.sep).endswith(served)]
    spec = importlib.machinery.PathFinder.find_spec("jaxlib", path)
    if spec is None or not spec.submodule_search_locations:
        raise XlaUnavailable(f"XLA needs jaxlib, which is not installed: {REMEDY}")
    return str(next(iter(spec.submodule_search_locations)))


def _version(place: str) -> str:
    """The version of what is installed there, read without importing the package."""
    spec = importlib.util.spec_from_file_location(
        "calque_version_of_jaxlib", os.path.join(place, "version.py")
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return str(module.__version__)


@once
def jaxlib() -> Jaxlib:
    """The modules of jaxlib, imported now."""
    place = folder()
    text = _version(place)
    version = _numbers(text)
    if version < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise XlaUnavailable(
            f"XLA needs jaxlib {oldest} or newer, but {text} is installed: {REMEDY}"
        )
    foreign_parts.open_package("jaxlib", place)
    name = "_jax" if os.path.exists(os.path.join(place, "_jax.so")) else "xla_extension"
    if name != "_jax" and not os.path.exists(os.path.join(place, "xla_extension.so")):
        name = "_jax"  # the ending differs between systems
    return Jaxlib(version, imported(f"jaxlib.{name}"), imported("jaxlib.xla_client"))


# ---------------------------------------------------------------- modules of MLIR


def mlir_module(text: str) -> Any:
    """A module of MLIR from its text."""
    jaxlib()
    ir = imported("jaxlib.mlir.ir")
    context = ir.Context()
    registry = ir.DialectRegistry()
    imported("jaxlib.mlir._mlir_libs._jax_mlir_ext").register_dialects(registry)
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    for dialect in ("stablehlo", "chlo", "sdy"):
        imported(f"jaxlib.mlir.dialects.{dialect}").register_dialect(context)
    return ir.Module.parse(text, context)


def computation(text: str) -> Any:
    """A module of StableHLO as a computation of XLA, which prints itself as HLO."""
    return jaxlib().extension.mlir.mlir_module_to_xla_computation(
        text, use_tuple_args=False, return_tuple=False
    )

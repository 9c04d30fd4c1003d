"""jaxlib, imported when it is first needed; what differs between its versions stands here.

Where calque is served as `jax`, the name `jaxlib` is calque's, too: the parts of the real jaxlib
are then imported beside it, under their own names, once they have been asked for here."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

import numpy as np

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
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")  # XLA tells of its devices otherwise
    name = "_jax" if os.path.exists(os.path.join(place, "_jax.so")) else "xla_extension"
    if name != "_jax" and not os.path.exists(os.path.join(place, "xla_extension.so")):
        name = "_jax"  # the ending differs between systems
    return Jaxlib(version, imported(f"jaxlib.{name}"), imported("jaxlib.xla_client"))


# ---------------------------------------------------------------- clients, programs, buffers


class _Type:
    """What jaxlib asks of the type of an array."""

    __slots__ = ("dtype", "shape", "weak_type")

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.shape, self.dtype, self.weak_type = shape, dtype, False


def cpu_client(devices: int) -> Any:
    """The CPU as XLA sees it, as so many devices."""
    return jaxlib().client.make_cpu_client(num_devices=devices)


@once
def _sharding_class() -> Any:
    """The class of shardings on one device: jaxlib's machine code looks for these methods."""
    lib = jaxlib()

    class OneDevice(lib.client.SingleDeviceSharding):  # type: ignore[misc, name-defined]
        memory_kind = None

        def _to_xla_hlo_sharding(self, ndim: int) -> Any:
            return lib.client.HloSharding.replicate()

    return OneDevice


class Putter:
    """Puts arrays of NumPy on one device. Memory that is aligned as XLA wants it is shared."""

    def __init__(self, device: Any) -> None:
        self._put, self._devices = jaxlib().client.batched_device_put, [device]
        self._sharding = _sharding_class()(device)

    def __call__(self, x: Any) -> Any:
        kind = _Type(x.shape, x.dtype)
        return self._put(kind, self._sharding, [x], self._devices, enable_x64=True)


class LoadedProgram:
    """A program that XLA compiled for one device of a client; `outs` are the shapes and dtypes of
    its results."""

    def __init__(
        self,
        client: Any,
        device: Any,
        text: str,
        callbacks: Sequence[Any],
        outs: Sequence[tuple[tuple[int, ...], Any]],
    ) -> None:
        extension = jaxlib().extension
        options = extension.CompileOptions()
        options.device_assignment = jaxlib().client.DeviceAssignment.create(
            np.array([[device.id]], np.int64)
        )
        place = extension.DeviceList((device,))
        if callbacks:  # those go with modules, not with text
            module = mlir_module(text)
            self.loaded = client.compile_and_load(
                module, place, options, host_callbacks=list(callbacks)
            )
        else:
            self.loaded = client.compile_and_load(text, place, options)
        self.has_effects = bool(callbacks)
        # without handlers jaxlib would import jax for the types of the results
        self._handlers = [
            extension.array_result_handler(
                _Type(*out), _sharding_class()(device), committed=True, _skip_checks=True
            )
            for out in outs
        ]

    def run(self, buffers: list[Any]) -> list[np.ndarray]:
        """The results, as NumPy sees them, when they are there."""
        if not self.has_effects:
            results = self.loaded.execute_sharded(buffers)
            return self._arrays(results)
        results = self.loaded.execute_sharded(buffers, with_tokens=True)
        token = results.consume_token()
        arrays = self._arrays(results)
        token.block_until_ready()
        return arrays

    def _arrays(self, results: Any) -> list[np.ndarray]:
        arrays = results.consume_with_handlers(self._handlers)
        return list(map(np.asarray, arrays))

    def hlo(self) -> str:
        """The optimised program."""
        return "\n\n".join(m.to_string() for m in self.loaded.hlo_modules())

    def costs(self) -> dict[str, float]:
        return dict(self.loaded.cost_analysis())

    def memory(self) -> Any:
        return self.loaded.get_compiled_memory_stats()


def runtime_errors() -> tuple[type[Exception], ...]:
    """What XLA raises when a program fails."""
    extension = jaxlib().extension
    names = ("JaxRuntimeError", "XlaRuntimeError")
    return tuple(getattr(extension, n) for n in names if hasattr(extension, n))


def register_lapack() -> None:
    """The routines of linear algebra that come with jaxlib, as targets of custom calls."""
    client = jaxlib().client
    lapack = imported("jaxlib.lapack")
    lapack.prepare_lapack_call("potrf_ffi", np.dtype("float32"))  # finds them in SciPy
    for platform, targets in lapack.registrations().items():
        for name, value, version in targets:
            client.register_custom_call_target(name, value, platform=platform, api_version=version)


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

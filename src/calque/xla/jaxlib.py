"""jaxlib, imported when it is first needed; what differs between its versions stands here.

Where calque is served as `jax`, the name `jaxlib` is calque's, too: the parts of the real jaxlib
are then imported beside it, under their own names, once they have been asked for here."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import operator
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

import numpy as np

from calque.machine import foreign_parts
from calque.machine.caches import memo
from calque.machine.lazy import imported
from calque.machine.once import once

OLDEST: Final = (0, 8, 2)
KNOWN: Final = "0.8.2 to 0.12.0"  # what the tests have run with
# what the engine takes from the two modules; newer versions may have it no more
FROM_EXTENSION: Final = (
    "ArrayImpl", "ArrayImpl.clone", "ArrayImpl.is_ready", "ArrayImpl.unsafe_buffer_pointer",
    "CompileOptions.device_assignment", "CompileOptions.executable_build_options",
    "CompileOptions.num_partitions", "DeviceList", "array_result_handler",
    "mlir.mlir_module_to_xla_computation", "mlir.refine_polymorphic_shapes",
    "mlir.serialize_portable_artifact",
)  # fmt: skip
FROM_CLIENT: Final = (
    "DeviceAssignment.create", "GSPMDSharding", "HloSharding.replicate",
    "HloSharding.subgroup_with_device_ordering", "HostBufferSemantics.ZERO_COPY", "OpSharding",
    "SingleDeviceSharding", "batched_device_put", "make_cpu_client", "register_custom_call_target",
)  # fmt: skip
PROOF: Final = """module @proof {
  func.func public @main(%arg0: tensor<3xf32>) -> tensor<3xf32> {
    %0 = stablehlo.add %arg0, %arg0 : tensor<3xf32>
    return %0 : tensor<3xf32>
  }
}
"""
# the operation of a line of HLO, and those that compute nothing
_OPERATION: Final = re.compile(r" = .*?[\])}] ([a-z][\w-]*)\(")
_FREE: Final = frozenset(("bitcast", "constant", "get-tuple-element", "parameter", "tuple"))
EFFORTS: Final = (  # options of programs; XLA knows others by their names
    "exec_time_optimization_effort", "memory_fitting_effort",
    "memory_fitting_level", "optimization_level",
)  # fmt: skip
READY: Final = "is_ready"  # the method that asks an array whether it is computed
CONSUME: Final = "consume_with_handlers"  # the method that makes arrays of results
REMEDY: Final = "install one that works with `pip install calque[xla]`"


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
    try:
        found = Jaxlib(version, imported(f"jaxlib.{name}"), imported("jaxlib.xla_client"))
    except ImportError as e:
        raise XlaUnavailable(f"jaxlib {text} at {place} cannot be imported: {e}. {REMEDY}") from e
    refuse_unknown(text, found.extension, found.client)
    return found


def _has(module: Any, name: str) -> bool:
    """Whether a module has this, where the name may lead into its classes."""
    try:
        operator.attrgetter(name)(module)
    except AttributeError:
        return False
    return True


def refuse_unknown(version: str, extension: Any, client: Any) -> None:
    """An error where jaxlib lacks what the engine uses: versions to come may have changed."""
    missing = [n for n in FROM_EXTENSION if not _has(extension, n)]
    missing += [n for n in FROM_CLIENT if not _has(client, n)]
    missing = [n for n in missing if n.rpartition(".")[0] not in missing]
    if missing:
        raise XlaUnavailable(
            f"XLA cannot use jaxlib {version}, which lacks {', '.join(missing)}; versions known to"
            f" work are {KNOWN}: {REMEDY}"
        )


# ---------------------------------------------------------------- clients, programs, buffers


class ArrayType:
    """What jaxlib asks of the type of an array. One of `array_type` is equal to no other object
    but itself, mostly: whoever compares looks at that first."""

    __slots__ = ("dtype", "shape", "weak_type")

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.shape, self.dtype, self.weak_type = shape, dtype, False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ArrayType) and (self.shape, self.dtype) == (
            other.shape,
            other.dtype,
        )

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))


@memo("types of buffers of XLA", 4096)
def array_type(shape: tuple[int, ...], dtype: Any) -> ArrayType:
    """The type of arrays of this shape and dtype."""
    return ArrayType(shape, dtype)


def cpu_client(devices: int, distributed: Distributed | None = None) -> Any:
    """The CPU as XLA sees it, as so many devices of this process."""
    make = jaxlib().client.make_cpu_client
    if distributed is None:
        return make(num_devices=devices)
    return make(
        distributed_client=distributed.client,
        node_id=distributed.process_id,
        num_nodes=distributed.processes,
        collectives=jaxlib().extension.make_gloo_tcp_collectives(distributed.client),
        num_devices=devices,
    )


def identity() -> tuple[str, ...]:
    """What tells this installation of jaxlib from others."""
    file = str(jaxlib().extension.__file__)
    about = os.stat(file)
    return file, repr(jaxlib().version), str(about.st_size), str(about.st_mtime_ns)


def prove() -> None:
    """An error where jaxlib does not do what the engine asks of it: a program of one operation goes
    all the way. That a name is there says nothing of its arguments."""
    step = "making a device of the CPU"
    try:
        client = cpu_client(1)
        (device,) = client.devices()
        step = "bringing an array to a device"
        kind, where = array_type((3,), np.dtype(np.float32)), one_device(device)
        array = put([np.arange(3, dtype=np.float32)], kind, where, [device], shared=False)
        step = "compiling a program"
        program = LoadedProgram(client, [device], PROOF, ())
        program.gives([Result(kind, where)])
        step = "running a program"
        (found,) = program.run([array])
        step = "reading a result"
        (elements,) = parts_on_host(found)
        numbers = elements.tolist()
    except Exception as e:
        raise XlaUnavailable(
            f"XLA cannot use the jaxlib {'.'.join(map(str, jaxlib().version))} that is installed:"
            f" {step} fails, by {type(e).__name__}: {e}. Versions known to work are {KNOWN}:"
            f" {REMEDY}"
        ) from e
    if numbers != [0, 2, 4]:
        raise XlaUnavailable(
            f"XLA cannot use the jaxlib that is installed: it gives {numbers} for [0, 2, 4]."
            f" Versions known to work are {KNOWN}: {REMEDY}"
        )


def plugin_client(
    platform: str,
    path: str,
    options: dict[str, Any],
    loaded: Callable[[Any], None],
    distributed: Distributed | None = None,
) -> Any:
    """The devices of a plugin of PJRT, whose library is loaded now, made with these options;
    `loaded` takes the library's interface before. Of several processes each has some."""
    client = jaxlib().client
    try:
        if not client.pjrt_plugin_loaded(platform):
            loaded(client.load_pjrt_plugin_dynamically(platform, path))
        if not client.pjrt_plugin_initialized(platform):
            client.initialize_pjrt_plugin(platform)
        if distributed is None:
            return client.make_c_api_client(platform, options, None)
        number = {"node_id": distributed.process_id, "num_nodes": distributed.processes}
        return client.make_c_api_client(platform, {**options, **number}, distributed.client)
    except runtime_errors() as e:
        raise XlaUnavailable(
            f"the plugin of {platform!r} at {path} cannot be used: {str(e).rstrip('.')}"
        ) from None


@dataclass(frozen=True)
class Distributed:
    """This process as one of several: its client of the service that they meet at."""

    client: Any
    process_id: int
    processes: int
    address: str
    service: Any  # in process 0, which the others meet at


@once
def buffer_class() -> Any:
    """The class of arrays of jaxlib."""
    return jaxlib().extension.ArrayImpl


@once
def sharding_classes() -> tuple[Any, Any]:
    """The classes of shardings on one device, and on several: jaxlib's machine code looks for these
    methods."""
    lib = jaxlib()

    class OneDevice(lib.client.SingleDeviceSharding):  # type: ignore[misc, name-defined]
        memory_kind = None
        is_here: bool  # rather than in another process
        platform = "cpu"  # that of its device

        def _to_xla_hlo_sharding(self, ndim: int) -> Any:
            return lib.client.HloSharding.replicate()

    class Several(lib.client.GSPMDSharding):  # type: ignore[misc, name-defined]
        memory_kind = None
        platform = "cpu"  # that of its devices
        indices: Any = None  # the part of each device of this process
        spanned: int  # devices, those of all processes

        def _to_xla_hlo_sharding(self, ndim: int) -> Any:
            return self._hlo_sharding

    return OneDevice, Several


def one_device(device: Any, kind: str | None = None) -> Any:
    """The sharding of arrays on one device, in a kind of its memory."""
    made = sharding_classes()[0](device)
    made.indices, made.memory_kind, made.platform = None, kind, str(device.platform)
    made.is_here = device.process_index == device.client.process_index()
    return made


def hlo_tiles(tiles: Any = None) -> Any:
    """A sharding in XLA's terms as jaxlib has it; without any, the whole on every device."""
    lib = jaxlib().client
    if tiles is None or tiles.is_replicated():
        return lib.HloSharding.replicate()
    order = np.array(tiles.tile_assignment_devices()).reshape(tiles.tile_assignment_dimensions())
    same = [lib.OpSharding.Type.REPLICATED] if tiles.replicate_on_last_tile_dim() else []
    return lib.HloSharding.subgroup_with_device_ordering(order, subgroup_types=same)


def tiled(
    devices: Sequence[Any], tiles: np.ndarray, indices: Sequence[Any], kind: str | None = None
) -> Any:
    """The sharding of arrays cut into tiles: `tiles` has the position of a device for each tile,
    and in a last dimension those of all that hold the same; `indices` the part of each device that
    this process has; `kind` the kind of their memory."""
    lib = jaxlib()
    hlo = lib.client.HloSharding
    if tiles.shape[-1] == len(devices):
        described = hlo.replicate()
    else:
        described = hlo.subgroup_with_device_ordering(
            tiles, subgroup_types=[lib.client.OpSharding.Type.REPLICATED]
        )
    made = sharding_classes()[1](lib.extension.DeviceList(tuple(devices)), described)
    made.indices, made.spanned, made.memory_kind = tuple(indices), len(devices), kind
    made.platform = str(devices[0].platform)
    return made


def put(
    parts: list[Any], kind: ArrayType, sharding: Any, devices: list[Any], shared: bool = True
) -> Any:
    """An array of jaxlib of parts on devices. Memory that is aligned as XLA wants it is shared,
    then it must not be written any more; unless it is to be copied before this returns. Parts of
    another dtype than the type says would be read as other numbers, and beyond their end."""
    alone = sharding.indices is None
    for part in parts:
        fits = part.shape == kind.shape if alone else part.ndim == len(kind.shape)
        if part.dtype != kind.dtype or not fits:
            raise TypeError(f"{part.dtype}{part.shape} cannot be of {kind.dtype}{kind.shape}")
    make, semantics = _putting()
    return make(
        kind,
        sharding,
        parts if shared else _apart(parts),
        devices,
        host_buffer_semantics=semantics.ZERO_COPY
        if shared
        else semantics.IMMUTABLE_ONLY_DURING_CALL,
        enable_x64=True,
    )


def _apart(parts: list[Any]) -> list[Any]:
    """Parts that lie in one place, but for the first, in memory of their own: jaxlib fails where
    it is to copy the same memory to several devices."""
    if len(parts) == 1:
        return parts
    seen: set[int] = set()
    found = []
    for part in parts:
        address = part.ctypes.data
        found.append(part.copy() if address in seen else part)
        seen.add(address)
    return found


def address_of(buffer: Any) -> int:
    """Where the elements of an array on one device are."""
    return int(buffer.unsafe_buffer_pointer())


def putting_a_copy() -> tuple[Any, dict[str, Any]]:
    """What brings arrays to devices, and the options by which they are copied before it returns."""
    make, semantics = _putting()
    copied = semantics.IMMUTABLE_ONLY_DURING_CALL
    return make, {"host_buffer_semantics": copied, "enable_x64": True}


@once
def _putting() -> tuple[Any, Any]:
    """What brings arrays to devices, and how memory of the host may be used."""
    client = jaxlib().client
    return client.batched_device_put, client.HostBufferSemantics


def parts_on_host(buffer: Any) -> list[np.ndarray]:
    """What each device of this process holds, for NumPy, once it is computed; not copied where the
    host can read it."""
    buffer.block_until_ready()
    if buffer._sharding.indices is None:
        return [on_host(buffer)]
    with foreign_parts.withheld("jax"):  # whose shardings the parts would have
        parts = buffer._arrays
    return [*map(on_host, parts)]


def on_host(buffer: Any) -> np.ndarray:
    """The elements of an array on one device. They keep the memory and not the buffer, which may
    keep them, then."""
    buffer.block_until_ready()  # raises what went wrong; who looks at such memory ends the process
    try:
        return np.asarray(memoryview(buffer.clone()))
    except (BufferError, ValueError, TypeError):  # of a dtype that Python's buffers have not
        elements = buffer._single_device_array_to_np_array_did_copy()
        return np.asarray(elements[0] if isinstance(elements, tuple) else elements)


@dataclass(frozen=True)
class Result:
    """A result of a program: its type and its sharding, as jaxlib knows them."""

    kind: ArrayType
    sharding: Any


def result_handler(result: Result) -> Any:
    """What makes arrays of the results of programs."""
    make = jaxlib().extension.array_result_handler
    return make(result.kind, result.sharding, committed=True, **_unchecked())


@once
def _unchecked() -> dict[str, bool]:
    """The arguments by which a handler of results leaves out its checks, which import jax. From
    0.11 on it has none."""
    named = "_skip_checks" in (jaxlib().extension.array_result_handler.__doc__ or "")
    return {"_skip_checks": True} if named else {}


class LoadedProgram:
    """A program that XLA compiled for some devices of a client."""

    def __init__(
        self,
        client: Any,
        devices: Sequence[Any],
        text: str,
        callbacks: Sequence[Any],
        options: Any = None,
        known: Any = None,
    ) -> None:
        extension = jaxlib().extension
        place = extension.DeviceList(tuple(devices))
        options = compile_options(devices) if options is None else options
        if known is not None:  # an earlier process has compiled it
            self.loaded = known
        elif callbacks:  # those go with modules, not with text
            module = mlir_module(text)
            self.loaded = client.compile_and_load(
                module, place, options, host_callbacks=list(callbacks)
            )
        else:
            self.loaded = client.compile_and_load(text, place, options)
        self.has_effects = bool(callbacks)
        self.execute = self.loaded.execute_sharded
        self.handlers: list[Any] = []

    def gives(self, results: Sequence[Result]) -> None:
        """What its results are, before it runs: jaxlib would import jax for their types."""
        self.handlers = [result_handler(r) for r in results]

    def run(self, buffers: list[Any]) -> list[Any]:
        """The results, which may still be computed; those of a program that calls Python are
        there."""
        if not self.has_effects:
            found: list[Any] = self.execute(buffers).consume_with_handlers(self.handlers)
            return found
        results = self.execute(buffers, with_tokens=True)
        token = results.consume_token()
        found = results.consume_with_handlers(self.handlers)
        token.block_until_ready()
        for x in found:
            x.block_until_ready()
        return found

    def hlo(self) -> str:
        """The optimised program."""
        return "\n\n".join(m.to_string() for m in self.loaded.hlo_modules())

    def name(self) -> str:
        """What XLA calls it."""
        return ", ".join(m.name for m in self.loaded.hlo_modules())

    def units(self) -> int:
        """How many operations of the optimised program compute anything."""
        entry = self.hlo().partition("\nENTRY ")[2].partition("\n}")[0]
        names = [m[1] for m in map(_OPERATION.search, entry.splitlines()) if m is not None]
        return sum(name not in _FREE for name in names)

    def costs(self) -> dict[str, float]:
        return dict(self.loaded.cost_analysis())

    def memory(self) -> Any:
        return self.loaded.get_compiled_memory_stats()


def serialized(client: Any, loaded: Any) -> bytes | None:
    """A compiled program as bytes for other processes; None where the platform has none."""
    try:
        if hasattr(loaded, "serialize"):
            return bytes(loaded.serialize())
        return bytes(client.serialize_executable(loaded))
    except runtime_errors():
        return None


def deserialized(client: Any, devices: Sequence[Any], data: bytes, options: Any) -> Any:
    """The program that was written so; None when it is not for this compiler."""
    place = jaxlib().extension.DeviceList(tuple(devices))
    try:
        return client.deserialize_executable(data, place, options)
    except runtime_errors():
        return None


def compile_options(
    devices: Sequence[Any],
    asked: Sequence[tuple[str, Any]] = (),
    free: tuple[Sequence[bool], Sequence[bool]] = ((), ()),
    *,
    gspmd: bool = False,
) -> Any:
    """What a program for these devices is compiled with, what the user `asked` for by name, and
    which arguments and results are `free`, so that XLA chooses where they are. With `gspmd` it is
    for the partitioner before Shardy."""
    options = jaxlib().extension.CompileOptions()
    options.device_assignment = jaxlib().client.DeviceAssignment.create(
        np.array([[d.id for d in devices]], np.int64)
    )
    if len(devices) > 1:
        options.num_partitions = len(devices)
        building = options.executable_build_options
        building.use_spmd_partitioning, building.use_shardy_partitioner = True, not gspmd
        if any(free[0]):
            building.allow_spmd_sharding_propagation_to_parameters = list(free[0])
        if any(free[1]):
            building.allow_spmd_sharding_propagation_to_output = list(free[1])
    for name, value in asked:
        if name in EFFORTS:
            setattr(options.executable_build_options, name, value)
    options.env_option_overrides = [(n, v) for n, v in asked if n not in EFFORTS]
    return options


def runtime_errors() -> tuple[type[Exception], ...]:
    """What XLA raises when a program fails."""
    extension = jaxlib().extension
    names = ("JaxRuntimeError", "XlaRuntimeError")
    return tuple(getattr(extension, n) for n in names if hasattr(extension, n))


# ---------------------------------------------------------------- modules of MLIR


def mlir_module(text: str) -> Any:
    """A module of MLIR from its text."""
    return mlir_part("ir").Module.parse(text, mlir_context())


def mlir_part(name: str) -> Any:
    """A part of jaxlib's MLIR: `ir`, or the dialect of this name."""
    jaxlib()
    return imported("jaxlib.mlir.ir" if name == "ir" else f"jaxlib.mlir.dialects.{name}")


def mlir_context() -> Any:
    """A context of MLIR that knows the dialects."""
    ir = mlir_part("ir")
    context = ir.Context()
    registry = ir.DialectRegistry()
    imported("jaxlib.mlir._mlir_libs._jax_mlir_ext").register_dialects(registry)
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    for dialect in ("stablehlo", "chlo", "sdy"):
        mlir_part(dialect).register_dialect(context)
    return context

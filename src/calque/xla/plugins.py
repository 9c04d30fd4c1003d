"""Plugins of XLA: libraries for other devices, behind the C interface of PJRT.

They are found by path, in `PJRT_NAMES_AND_LIBRARY_PATHS` ("name:path,name:path"), and as packages:
those in the namespace `jax_plugins`, those that name themselves by an entry point of the group
`jax_plugins`, and `libtpu`. A package is not imported (it would import jax): its library is
loaded."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import mmap
import os
import re
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

from calque.core.backends import known
from calque.machine.once import once
from calque.xla import jaxlib, shared_memory, vendors
from calque.xla.devices import XlaDevice
from calque.xla.engine import compile_on_xla
from calque.xla.processes import joined
from calque.xla.unknown_sizes import compile as compile_of_any_size

VARIABLE: Final = "PJRT_NAMES_AND_LIBRARY_PATHS"
GROUP: Final = "jax_plugins"
ENTRY: Final = b"GetPjrtApi\0"  # the function of every plugin, as libraries list names
DLPACK: Final = {"cuda": 2, "rocm": 10}  # the types of devices whose memory others share
ALIASES: Final = {"gpu": ("cuda", "rocm")}
REMEDIES: Final = {
    "cuda": "install it with `pip install jax-cuda12-plugin jax-cuda12-pjrt`",
    "rocm": "install it with `pip install jax-rocm60-plugin jax-rocm60-pjrt`",
    "tpu": "install it with `pip install libtpu`",
}


def libraries() -> dict[str, str]:
    """The libraries of plugins that are there, by the name of their platform."""
    found = dict(_packages())
    found.update(_named_by_the_user())
    return found


def _named_by_the_user() -> Iterator[tuple[str, str]]:
    for entry in filter(None, os.environ.get(VARIABLE, "").split(",")):
        name, colon, path = entry.partition(":")
        if not (name and colon and path):
            raise ValueError(f"{VARIABLE} is a list of name:path, got {entry!r}")
        yield name.strip(), path.strip()


def _packages() -> Iterator[tuple[str, str]]:
    folders = [os.path.join(p, GROUP) for p in sys.path]
    for folder in filter(os.path.isdir, folders):
        for name in sorted(os.listdir(folder)):
            yield from _in_folder(name, os.path.join(folder, name))
    for point in importlib.metadata.entry_points(group=GROUP):
        module = point.value.partition(":")[0]
        try:
            spec = importlib.util.find_spec(module)
        except ImportError:
            continue
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            yield from _in_folder(point.name, folder)
    spec = importlib.util.find_spec("libtpu")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        yield from _in_folder("tpu", folder)


def _in_folder(package: str, folder: str) -> Iterator[tuple[str, str]]:
    """The library of a package that offers PJRT's function, whatever it is called; its platform is
    in the name of the package: cuda of xla_cuda12."""
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else ()
    for name in names:
        path = os.path.join(folder, name)
        if name.endswith((".so", ".dylib", ".dll")) and offers_pjrt(path):
            yield _platform(package), path
            return


def _platform(package: str) -> str:
    accelerator = re.fullmatch(r"xla_(cuda|rocm)\d*", package)
    return accelerator[1] if accelerator else package


def offers_pjrt(path: str) -> bool:
    """Whether a library names the function by which plugins are entered."""
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as m:
            return m.find(ENTRY) >= 0
    except (OSError, ValueError):  # not to be read, or empty
        return False


def incomplete(platform: str) -> str:
    """The folder of a package for this platform that has no library of PJRT; "" if there is
    none."""
    for root in sys.path:
        folder = os.path.join(root, GROUP)
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            place = os.path.join(folder, name)
            if _platform(name) == platform and not any(_in_folder(name, place)):
                return place
    return ""


def platform_of(asked: str) -> str:
    """The platform of a plugin that is there; an error tells how to get one that is not."""
    names, there = ALIASES.get(asked, (asked,)), libraries()
    for name in names:
        if name in there:
            return name
    remedy = " or ".join(
        REMEDIES.get(n, f"name its library: {VARIABLE}={n}:/path/to/the/library.so") for n in names
    )
    halves = [place for n in names if (place := incomplete(n))]
    half = f"; {halves[0]} is there, but no library in it offers GetPjrtApi" if halves else ""
    raise RuntimeError(
        f"Unknown backend {asked}. Available backends are"
        f" {['cpu', *sorted({*known.devices, *there})]}: 'cpu' is this machine's CPU with calque's"
        " own compiler, 'xla_cpu' the CPU with XLA, which needs `pip install calque[xla]`. For"
        f" {asked!r} XLA has no plugin here{half}: {remedy}"
    )


class PluginDevice(XlaDevice):
    """A device behind a plugin, which is an engine of its own. Its platform is what programs ask
    for: "gpu", whoever made it."""

    __slots__ = ("engine",)

    def __init__(self, engine: str, xla: Any) -> None:
        self.engine = engine
        super().__init__(str(xla.platform), xla)

    @property
    def device_kind(self) -> str:  # type: ignore[override]
        """What the maker calls it."""
        return str(self.xla.device_kind)

    def dlpack_device(self) -> tuple[int, int]:
        if self.engine not in DLPACK:
            raise BufferError(
                "__dlpack__ is for arrays on CPUs and GPUs; this one is on"
                f" {self.engine}:{self.id}: bring it to jax.devices('cpu')[0] with device_put"
            )
        return DLPACK[self.engine], int(self.xla.local_hardware_id)

    def exported(self, x: Any, stream: Any) -> Any:
        """A capsule of DLPack for an array that is here, which `stream` may read."""
        return shared_memory.exported(x, self, stream)

    def adopted(self, x: Any, copy: bool | None) -> Any:
        """An array that shares the memory of one of another library, which is on this device."""
        return shared_memory.adopted(x, self, copy)

    def __repr__(self) -> str:
        return f"{self.engine.capitalize()}Device(id={self.id})"

    def __reduce__(self) -> Any:
        return plugin_device, (self.engine, self.id)


@once
def client(platform: str) -> Any:
    """The client of a plugin."""
    path = libraries()[platform]
    if not os.path.exists(path):
        raise jaxlib.XlaUnavailable(
            f"the plugin of {platform!r} is said to be {path}, and nothing is there: set {VARIABLE}"
            " to its library"
        )
    vendors.load_libraries(platform)
    return jaxlib.plugin_client(
        platform,
        path,
        vendors.options(platform),
        partial(vendors.register, platform),
        joined.value,
    )


@once
def plugin_devices(platform: str) -> tuple[PluginDevice, ...]:
    """The devices of a plugin."""
    return tuple(PluginDevice(platform, d) for d in client(platform).devices())


def plugin_device(platform: str, index: int) -> PluginDevice:
    """The device with this number."""
    return next(d for d in plugin_devices(platform) if d.id == index)


def opened(asked: str) -> Sequence[Any]:
    """The devices of a platform that a plugin serves, which is a backend from now on."""
    platform = platform_of(asked)
    found = plugin_devices(platform)
    known.register(platform, compile_on_xla, reads_places=True)
    known.register_symbolic(platform, compile_of_any_size)
    known.register_devices(platform, lambda: plugin_devices(platform))
    return found

"""Plugins of XLA: libraries for other devices, behind the C interface of PJRT, opened."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from calque.core.backends import PLUGIN_PATHS, known
from calque.core.devices import were_asked_for
from calque.machine.once import once
from calque.xla import drivers, jaxlib, shared_memory, vendors
from calque.xla.devices import XlaDevice
from calque.xla.engine import compile_on_xla
from calque.xla.failures import warn_of_forks
from calque.xla.plugin_libraries import incomplete, libraries
from calque.xla.processes import joined
from calque.xla.unknown_sizes import compile as compile_of_any_size

DLPACK: Final = {"cuda": 2, "rocm": 10}  # the types of devices whose memory others share
ALIASES: Final = {"gpu": ("cuda", "rocm")}
REMEDIES: Final = {
    "cuda": "install it with `pip install jax-cuda12-plugin jax-cuda12-pjrt`",
    "rocm": "install it with `pip install jax-rocm60-plugin jax-rocm60-pjrt`",
    "tpu": "install it with `pip install libtpu`",
}


def platform_of(asked: str) -> str:
    """The platform of a plugin that is there; an error tells how to get one that is not."""
    names, there = ALIASES.get(asked, (asked,)), libraries()
    for name in names:
        if name in there:
            return name
    remedy = " or ".join(
        REMEDIES.get(n, f"name its library: {PLUGIN_PATHS}={n}:/path/to/the/library.so")
        for n in names
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
            f"the plugin of {platform!r} is said to be {path}, and nothing is there: set"
            f" {PLUGIN_PATHS} to its library"
        )
    were_asked_for.value = True
    vendors.load_libraries(platform)
    warn_of_forks()
    options, register = vendors.options(platform), partial(vendors.register, platform)
    try:
        return jaxlib.plugin_client(platform, path, options, register, joined.value)
    except jaxlib.XlaUnavailable as e:
        raise jaxlib.XlaUnavailable(f"{e}: {drivers.fault(platform, path)}") from None


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

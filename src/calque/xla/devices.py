"""The devices of XLA as places for arrays and programs."""

from __future__ import annotations

from typing import Any

from calque.core.devices import Device, all_devices, is_mine, known_to_engine
from calque.machine.caches import memo
from calque.machine.once import once
from calque.xla import jaxlib
from calque.xla.failures import warn_of_forks
from calque.xla.processes import joined
from calque.xla.stored import proven


class XlaDevice(Device):
    """A device of a client of XLA. Its platform is what programs for JAX ask for: "cpu", "gpu"; its
    engine and its text tell it from those of calque's own engine."""

    __slots__ = ("xla",)

    engine = "xla_cpu"
    device_kind = "cpu"

    def __init__(self, platform: str, xla: Any) -> None:
        super().__init__(xla.id)
        self.platform, self.xla = platform, xla
        known_to_engine(self, xla)

    @property
    def memory_kinds(self) -> tuple[str, ...]:
        """The kinds of memory that it reaches; the first is its own."""
        return _kinds_of(self.xla)

    @property
    def client(self) -> Any:  # type: ignore[override]
        return self.xla.client

    @property
    def process_index(self) -> int:
        """The process that has it."""
        return int(self.xla.process_index)

    @property
    def local_hardware_id(self) -> int | None:
        """Its number among those of its process; None, if that is another one."""
        return int(self.xla.local_hardware_id) if is_mine(self) else None

    def memory_stats(self) -> Any:
        """Statistics of the memory, where the device keeps them."""
        return self.xla.memory_stats()

    def __repr__(self) -> str:
        return f"XlaCpuDevice(id={self.id})"

    def __str__(self) -> str:
        return f"{self.engine}:{self.id}"

    def __reduce__(self) -> Any:
        return device_of, (self.id,)


@memo("kinds of memory of devices", 1024)
def _kinds_of(device: Any) -> tuple[str, ...]:
    own = device.default_memory().kind
    return own, *[m.kind for m in device.addressable_memories() if m.kind != own]


@once
def cpu_client() -> Any:
    """The CPU under XLA, with as many devices as this process has virtual ones."""
    proven()
    warn_of_forks()
    return jaxlib.cpu_client(len(all_devices()), joined.value)


@once
def cpu_devices() -> tuple[XlaDevice, ...]:
    """The CPU under XLA, as devices."""
    return tuple(XlaDevice("cpu", device) for device in cpu_client().devices())


def device_of(index: int) -> XlaDevice:
    """The device with this number."""
    devices = {d.id: d for d in cpu_devices()}
    if index not in devices:
        raise ValueError(f"there is no device xla_cpu:{index}: there are {len(devices)}")
    return devices[index]

"""Devices: this machine's CPU, once or as several virtual devices of this process.

`CALQUE_NUM_CPU_DEVICES=4` asks for four, and so do `--xla_force_host_platform_device_count=4` in
`XLA_FLAGS` and `calque.config.update("calque_num_cpu_devices", 4)`, which may come at any time: the
devices that are there stay.
"""

from __future__ import annotations

import enum
import os
from contextlib import suppress
from typing import Any, Final

from calque.core.config import config
from calque.machine import memory
from calque.machine.state import ProcessValue, process

KINDS: Final = ("device", "pinned_host", "unpinned_host")  # of memory, as XLA names them


class Space(enum.Enum):
    """A memory that arrays are asked to be in: that of their device, or that of the host. On a
    processor both are the same memory; arrays say in which of them they are."""

    Device = 1
    Host = 2
    Any = 3

    def __repr__(self) -> str:
        return f"MemorySpace.{self.name}"

    __str__ = __repr__


class Memory:
    """A memory that a device reaches. All devices and kinds of this process share one; the kinds
    exist so that programs for accelerators run here as well.

    Args:
        device: The device.
        kind: Which of its memories.

    >>> jax.devices()[0].memory("pinned_host").kind
    'pinned_host'"""

    __slots__ = ("device", "kind")

    def __init__(self, device: Device, kind: str = "device"):
        self.device, self.kind = device, kind

    @property
    def process_index(self) -> int:
        return self.device.process_index

    @property
    def platform(self) -> str:
        return self.device.platform

    def addressable_by_devices(self) -> list[Device]:
        return [self.device]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Memory) and (self.device, self.kind) == (other.device, other.kind)

    def __hash__(self) -> int:
        return hash((self.device, self.kind))

    def __str__(self) -> str:
        name = "" if self.kind == "device" else "".join(map(str.title, self.kind.split("_")))
        return (
            f"{self.platform.title()}Device{name}Memory(id={self.device.id},"
            f" process_index={self.process_index}, client={self.platform})"
        )

    def __repr__(self) -> str:
        return f"{self.platform.upper()}_{self.kind.upper()}_{self.device.id}"


class Client:
    """What runs programs on the devices of this process, as programs written for JAX ask of it."""

    __slots__ = ()

    platform = "cpu"
    runtime_type = "calque"
    platform_version = "calque"

    def devices(self) -> list[Device]:
        """The devices."""
        return list(all_devices())

    local_devices = _get_all_devices = devices

    def device_count(self) -> int:
        """How many there are."""
        return len(all_devices())

    local_device_count = device_count

    def process_index(self) -> int:
        """The number of this process."""
        return process_number()

    host_id = process_index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Client)

    def __hash__(self) -> int:
        return hash(Client)

    def __repr__(self) -> str:
        return f"Client({self.devices()})"


class Device:
    """A device: this processor, or one of the parts that CALQUE_NUM_CPU_DEVICES makes of it.

    Args:
        index: Its number, from 0.

    >>> d = jax.devices()[0]
    >>> d.platform, d.id
    ('cpu', 0)"""

    __slots__ = ("__weakref__", "id", "platform")

    def __init__(self, index: int):
        self.id, self.platform = index, "cpu"

    engine = "native"  # the backend that runs programs on it
    device_kind = "cpu"

    @property
    def process_index(self) -> int:
        """The process that has it: each has its own processor."""
        return process_number()

    @property
    def task_id(self) -> int:
        """An older name for the process."""
        return self.process_index

    host_id = task_id

    def dlpack_device(self) -> tuple[int, int]:
        """Gives what DLPack calls the memory of the device. This is the memory of the host.

        Returns:
            The type and the number.
        """
        return 1, 0

    @property
    def memory_kinds(self) -> tuple[str, ...]:
        """The kinds of memory that it reaches; the first is its own."""
        return KINDS

    @property
    def client(self) -> Client:
        """What runs programs on it."""
        return Client()

    @property
    def local_hardware_id(self) -> int | None:
        return self.id

    def default_memory(self) -> Memory:
        """Gives the memory of the device.

        Returns:
            A Memory; its kind is "device"."""
        return Memory(self, self.memory_kinds[0])

    def addressable_memories(self) -> list[Memory]:
        """Lists the memories that the device reaches.

        Returns:
            A list of Memories, its own first."""
        return [Memory(self, kind) for kind in self.memory_kinds]

    def memory(self, kind: str) -> Memory:
        """Gives a memory of the device by its kind.

        Args:
            kind: "device", "pinned_host" or "unpinned_host".

        Returns:
            A Memory."""
        return Memory(self, self.kind_of_memory(kind))

    def kind_of_memory(self, asked: str | None) -> str:
        """Tells which kind of memory is meant.

        Args:
            asked: A kind; None is that of the device itself.

        Returns:
            The kind; a ValueError where the device reaches none such."""
        known = self.memory_kinds
        if asked is None:
            return known[0]
        if asked not in known:
            raise ValueError(
                f"Could not find memory addressable by device {self.platform}. Device"
                f" {self.platform} can address the following memory kinds: {', '.join(known)}. Got"
                f" memory kind: {asked}"
            )
        return asked

    def memory_stats(self) -> Any:
        """Would give statistics of the memory; none are kept for a processor.

        Returns:
            None."""
        s = memory.stats()
        out = {
            "bytes_in_use": s.live_bytes,
            "bytes_reserved": s.live_bytes + s.idle_bytes,
            "num_allocs": s.allocations,
        }
        with suppress(ValueError, OSError, AttributeError):  # of systems that do not say
            out["bytes_limit"] = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return out

    def __repr__(self) -> str:
        return f"CpuDevice(id={self.id})"

    def __str__(self) -> str:
        return f"cpu:{self.id}"

    def __reduce__(self) -> Any:
        return device_of, (self.id,)


_XLA_FLAG = (  # programs written for JAX ask in this way, in XLA_FLAGS
    "--xla_force_host_platform_device_count"
)


def _count() -> int:
    """How many devices are asked for; our own option goes before the flag of XLA."""
    if config.num_cpu_devices != -1:
        return int(config.num_cpu_devices)
    flags = dict(flag.partition("=")[::2] for flag in os.environ.get("XLA_FLAGS", "").split())
    text = flags.get(_XLA_FLAG, "1")
    if not text.isdigit() or int(text) < 1:
        raise ValueError(f"{_XLA_FLAG} in XLA_FLAGS must be a positive integer, got {text!r}")
    return int(text)


DEFAULT_DEVICE: Final = Device(0)  # there is always one
_devices: Final[list[Device]] = process.container("devices", [DEFAULT_DEVICE])
were_asked_for: Final[ProcessValue[bool]] = process.value("devices were asked for", False)
_settled: Final[ProcessValue[bool]] = process.value("the number of devices is settled", False)


def _adjust() -> None:
    n = _count()
    del _devices[n:]
    _devices.extend([Device(i) for i in range(len(_devices), n)])


def _config_changed() -> None:
    """The option may change the number at any time; a number that it cannot be is told at once."""
    if _settled.value or config.num_cpu_devices != -1:
        _settled.value = True
        _adjust()


_config_changed()
config.on_change(_config_changed)


def all_devices() -> list[Device]:
    """The devices of this process. How many the flag of XLA asks for is read when they are first
    asked for, so that a program may set it after the import."""
    were_asked_for.value = True
    if not _settled.value:
        _adjust()
        _settled.value = True
    return _devices


def are_settled() -> bool:
    """Whether the number of devices was asked for: the flag of XLA is not read any more."""
    return _settled.value


def device_of(index: int) -> Device:
    """The device with this number."""
    devices = all_devices()
    if not 0 <= index < len(devices):
        raise ValueError(f"there is no device {index}: this process has {len(devices)} devices")
    return devices[index]


_by_engine: Final[dict[int, Device]] = process.container(
    "devices, by the address of what engines know them as", {}
)


def of_engine(own: Any) -> Device | None:
    """The device that an engine knows as this object of its library; None where there is none."""
    return _by_engine.get(id(own))


def known_to_engine(device: Device, own: Any) -> None:
    """The engine knows the device, which keeps it, as this object."""
    _by_engine[id(own)] = device


_this_process: Final[ProcessValue[tuple[int, int]]] = process.value(
    "number of this process", (0, 1)
)


def set_process(index: int, count: int) -> None:
    """This process is one of several."""
    _this_process.value = (index, count)


def process_number() -> int:
    """Which of the processes this is."""
    return _this_process.value[0]


def number_of_processes() -> int:
    """How many processes take part."""
    return _this_process.value[1]


def is_mine(device: Any) -> bool:
    """Whether a device belongs to this process."""
    return bool(device.process_index == _this_process.value[0])


def how_to_ask(name: str) -> str:
    """How to write the device that is called `name`, as a device prints itself: cpu:1."""
    platform, _, number = name.partition(":")
    return f"calque.devices({platform!r})[{int(number) if number.isdecimal() else 0}]"


# ---------------------------------------------------------------- accelerators

DEVICE_FILES: Final = "/dev"  # where systems list what has a driver
_NVIDIA: Final = frozenset(("nvidiactl", "nvidia0", "nvhost-gpu", "dxg"))
HIDING: Final = {  # with nothing or -1 in these variables, programs see no GPU
    "cuda": ("CUDA_VISIBLE_DEVICES",),
    "rocm": ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"),
}


def accelerators_here() -> list[str]:
    """The platforms of accelerators that this machine seems to have, by the files of their drivers:
    a look that opens and imports nothing."""
    names = _listed(DEVICE_FILES)
    groups = _listed(os.path.join(DEVICE_FILES, "vfio")) if "vfio" in names else []
    numbers = [*groups, *[n.removeprefix("accel") for n in names if n.startswith("accel")]]
    there = {
        "tpu": any(n.isdigit() for n in numbers),
        "cuda": not _NVIDIA.isdisjoint(names),
        "rocm": "kfd" in names,
    }
    return [platform for platform, is_there in there.items() if is_there and not _hides(platform)]


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _hides(platform: str) -> bool:
    said = [os.environ.get(name) for name in HIDING.get(platform, ())]
    return any(text is not None and text.strip() in ("", "-1", "NoDevFiles") for text in said)

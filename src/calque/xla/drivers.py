"""What an accelerator's driver says of itself, where a plugin finds no device: errors of XLA name
no cause then ("No visible GPU devices", also for a driver that is too old)."""

from __future__ import annotations

import ctypes
import os
import re
from typing import Any, Final

from calque.core.devices import HIDING, accelerators_here
from calque.xla.plugin_libraries import offers_pjrt

DRIVER: Final = "libcuda.so.1"  # NVIDIA's, which comes with the driver, not with CUDA
NEEDED: Final = {12: "525", 13: "580"}  # the oldest driver for programs of this CUDA
FILES: Final = {"rocm": "/dev/kfd", "tpu": "/dev/accel0 or /dev/vfio/0"}  # of other drivers
_ANY: Final = "it must be a library of PJRT for this jaxlib, and its driver must be there"
_STATE: Final = "`nvidia-smi` shows what the driver sees"
_MISMATCH: Final = (
    "the driver's library is of another version than its module in the kernel: restart the machine"
    " after the driver was updated; in a container, take the library of the host, not one of the"
    " image"
)
_REMEDIES: Final = {  # by the code of CUDA's driver
    35: "the driver is too old for this CUDA: install a newer one",
    100: f"no GPU is to be seen: {_STATE}",
    803: _MISMATCH,
    804: _MISMATCH,
}


def fault(platform: str, library: str) -> str:
    """Why the plugin of a platform, with this library, may have found no device, and what to do."""
    if not offers_pjrt(library):
        return _ANY
    if platform == "cuda":
        return _fault_of_cuda(library) or _hiding(platform) or _ANY
    if platform in FILES and platform not in accelerators_here():
        no_driver = f"no driver is loaded that such a device needs: {FILES[platform]} is not there"
        return _hiding(platform) or no_driver
    return _ANY


def _hiding(platform: str) -> str:
    """The variables that say which GPUs programs see."""
    said = [f"{n}={os.environ[n]!r}" for n in HIDING.get(platform, ()) if n in os.environ]
    return f"{' and '.join(said)} may hide the devices that are there" if said else ""


def _fault_of_cuda(library: str) -> str:
    """What is wrong with NVIDIA's driver; "" where it says nothing."""
    wanted = re.search(r"cuda(\d+)", library)
    major = int(wanted[1]) if wanted else 0
    version = f" of version {NEEDED[major]} or newer" if major in NEEDED else ""
    try:
        driver = ctypes.CDLL(DRIVER)
    except OSError as e:
        return (
            f"NVIDIA's driver cannot be loaded ({e}): install one{version}; a container is to be"
            " started with the GPUs of its host (`docker run --gpus all`)"
        )
    try:
        here = _version(driver)
        if here < (major, 0):
            return (
                f"NVIDIA's driver knows CUDA up to {here[0]}.{here[1]}, and the plugin is made for"
                f" CUDA {major}: install a driver{version}, or a plugin for an older CUDA"
            )
        code = driver.cuInit(0)
        if code:
            remedy = _REMEDIES.get(code, _STATE)
            return ": ".join(filter(None, [_words(driver, code), _hiding("cuda"), remedy]))
    except AttributeError as e:
        return f"{DRIVER} is no driver ({e}): install NVIDIA's{version}"
    return ""


def _version(driver: Any) -> tuple[int, int]:
    """The newest CUDA that a driver knows."""
    number = ctypes.c_int(0)
    if driver.cuDriverGetVersion(ctypes.byref(number)):
        return (0, 0)
    return number.value // 1000, number.value % 1000 // 10


def _words(driver: Any, code: int) -> str:
    """An error of the driver by its name and its text."""
    words = []
    for function in (driver.cuGetErrorName, driver.cuGetErrorString):
        text = ctypes.c_char_p()
        function(code, ctypes.byref(text))
        words.append((text.value or b"").decode(errors="replace"))
    return f"NVIDIA's driver gives {words[0] or code} ({words[1]})"

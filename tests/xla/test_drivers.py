"""What is said where a plugin finds no device: drivers that are missing, too old or unfit, which
these tests make up; no library of a driver is loaded."""

import ctypes
import pathlib
from typing import Any

import pytest

from calque.core import devices
from calque.xla import drivers, jaxlib, plugins, vendors
from tests.xla.mlir import needs_jaxlib
from tests.xla.packages import plugin

TEXTS = {
    803: (b"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", b"unsupported combination"),
    100: (b"CUDA_ERROR_NO_DEVICE", b"no CUDA-capable device"),
    999: (b"CUDA_ERROR_UNKNOWN", b"unknown error"),
}


class Driver:
    """NVIDIA's driver, as ctypes hands it out: it knows a CUDA, and answers with a code."""

    def __init__(self, version: int, code: int) -> None:
        self.version, self.code = version, code

    def cuDriverGetVersion(self, number: Any) -> int:
        number._obj.value = self.version
        return 0

    def cuInit(self, flags: int) -> int:
        return self.code

    def cuGetErrorName(self, code: int, text: Any) -> int:
        text._obj.value = TEXTS[code][0]
        return 0

    def cuGetErrorString(self, code: int, text: Any) -> int:
        text._obj.value = TEXTS[code][1]
        return 0


@pytest.fixture
def library(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A plugin for CUDA 13, on a machine where no variable hides anything."""
    for names in devices.HIDING.values():
        for name in names:
            monkeypatch.delenv(name, raising=False)
    return str(plugin(tmp_path, "xla_cuda13", "xla_cuda_plugin.so") / "xla_cuda_plugin.so")


@pytest.mark.parametrize(
    "version, code, words",
    [
        (12040, 0, ("knows CUDA up to 12.4", "made for CUDA 13", "driver of version 580 or newer")),
        (13010, 803, ("CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "(unsupported combination)", "restart")),
        (13000, 100, ("CUDA_ERROR_NO_DEVICE", "no GPU is to be seen", "nvidia-smi")),
        (13000, 999, ("CUDA_ERROR_UNKNOWN", "nvidia-smi")),
        (13000, 0, ("a library of PJRT for this jaxlib",)),
    ],
)
def test_a_driver_that_does_not_do(
    library: str, monkeypatch: pytest.MonkeyPatch, version: int, code: int, words: tuple[str, ...]
) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: Driver(version, code))
    told = drivers.fault("cuda", library)
    assert all(word in told for word in words), told


def test_a_driver_that_is_not_there(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(ctypes, "CDLL", missing)
    told = drivers.fault("cuda", library)
    assert "libcuda.so.1: cannot open" in told and "install one of version 580 or newer" in told
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())  # what linkers take for one
    assert "libcuda.so.1 is no driver" in drivers.fault("cuda", library)


def test_variables_that_hide_gpus_are_named(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    for code in (0, 100):
        monkeypatch.setattr(ctypes, "CDLL", lambda name, code=code: Driver(13000, code))
        assert "CUDA_VISIBLE_DEVICES='7' may hide" in drivers.fault("cuda", library)


def test_drivers_of_others_are_looked_for_where_systems_list_them(
    library: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "DEVICE_FILES", str(tmp_path / "dev"))
    assert "/dev/kfd is not there" in drivers.fault("rocm", library)
    assert "/dev/accel0 or /dev/vfio/0 is not there" in drivers.fault("tpu", library)
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "kfd").touch()
    for platform in ("rocm", "abacus"):
        assert drivers.fault(platform, library).startswith("it must be a library of PJRT")


def test_a_library_that_is_no_plugin_has_no_driver_to_blame(tmp_path: pathlib.Path) -> None:
    other = tmp_path / "other.so"
    other.write_bytes(b"no plugin")
    assert drivers.fault("cuda", str(other)).startswith("it must be a library of PJRT")


@needs_jaxlib
def test_the_error_of_a_plugin_has_the_cause(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def sees_none(*given: Any) -> None:
        raise jaxlib.XlaUnavailable("FAILED_PRECONDITION: No visible GPU devices")

    monkeypatch.setattr(plugins, "libraries", lambda: {"cuda": library})
    monkeypatch.setattr(vendors, "load_libraries", lambda platform: None)
    monkeypatch.setattr(jaxlib, "plugin_client", sees_none)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: Driver(12040, 0))
    with pytest.raises(jaxlib.XlaUnavailable, match=r"No visible GPU devices: NVIDIA's driver kn"):
        plugins.client("cuda")

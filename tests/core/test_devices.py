"""How many virtual devices there are."""

import os
import subprocess
import sys

import pytest

import calque
from calque.core import devices
from calque.core.config import Config, config


@pytest.mark.parametrize(
    "own, flags, count",
    [
        (None, None, 1),
        ("3", None, 3),
        (None, "--xla_force_host_platform_device_count=4", 4),
        (
            None,
            "--xla_cpu_enable_fast_math=true  --xla_force_host_platform_device_count=2 --other",
            2,
        ),
        ("3", "--xla_force_host_platform_device_count=4", 3),
        (None, "--xla_dump_to=/tmp/x", 1),
    ],
)
def test_the_environment_asks_for_devices(monkeypatch, own, flags, count):
    for name, text in (("CALQUE_NUM_CPU_DEVICES", own), ("XLA_FLAGS", flags)):
        monkeypatch.delenv(name, raising=False) if text is None else monkeypatch.setenv(name, text)
    monkeypatch.setattr(devices, "config", Config())
    assert devices._count() == count


def test_a_count_that_is_none(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", f"{devices._XLA_FLAG}=0")
    monkeypatch.setattr(config, "num_cpu_devices", -1)
    with pytest.raises(ValueError, match="XLA_FLAGS must be a positive integer"):
        devices._count()
    monkeypatch.setenv("CALQUE_NUM_CPU_DEVICES", "no")
    with pytest.raises(ValueError, match="CALQUE_NUM_CPU_DEVICES must be a positive integer"):
        Config()


def test_the_option_adds_devices_to_those_that_are_there():
    before = list(devices.all_devices())
    with config.override("jax_num_cpu_devices", 5):
        now = devices.all_devices()
        assert now[: len(before)] == before and [d.id for d in now] == [0, 1, 2, 3, 4]
    assert before == devices.all_devices()
    for wrong in (0, -2, 1.5, True, "4"):
        with pytest.raises(ValueError, match="must be a positive integer"):
            config.update("calque_num_cpu_devices", wrong)


@pytest.mark.parametrize(
    "before, after, count",
    [
        ("", "--xla_force_host_platform_device_count=3", 3),
        ("--xla_force_host_platform_device_count=2", "", 1),
        ("--xla_force_host_platform_device_count=2", None, 2),
    ],
)
def test_the_flag_counts_until_devices_are_asked_for(before, after, count):
    """Programs set it after the import, in tests most of all."""
    program = f"""
import os, calque
from calque.compat.private import xla_bridge
settled = [xla_bridge.backends_are_initialized()]
if {after!r} is not None:
    os.environ["XLA_FLAGS"] = {after!r}
calque.numpy.ones(3) + 1
settled.append(xla_bridge.backends_are_initialized())
counts = [calque.device_count()]
settled.append(xla_bridge.backends_are_initialized())
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=7"
counts.append(len(calque.devices()))
with calque.core.config.config.override("jax_num_cpu_devices", 5):
    counts.append(calque.device_count())
print(settled, counts)
"""
    environment = {k: v for k, v in os.environ.items() if k != "CALQUE_NUM_CPU_DEVICES"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment | {"XLA_FLAGS": before},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == f"[False, False, True] [{count}, {count}, 5]", done.stderr


def test_clients():
    client = calque.devices()[0].client
    assert client.platform == "cpu" and client.runtime_type == "calque"
    assert client.devices() == calque.devices() and client.device_count() == calque.device_count()
    assert client == calque.devices()[-1].client and client.process_index() == 0
    assert len({client, calque.devices()[0].client}) == 1 and "CpuDevice" in repr(client)


@pytest.mark.parametrize(
    "files, hidden, found",
    [
        ((), {}, []),
        (("null", "accelerometer", "accel", "vfio/vfio"), {}, []),
        (("nvidia0", "nvidiactl"), {}, ["cuda"]),
        (("dxg",), {"CUDA_VISIBLE_DEVICES": "0,1"}, ["cuda"]),
        (("nvidiactl",), {"CUDA_VISIBLE_DEVICES": " "}, []),
        (("nvidiactl", "kfd"), {"CUDA_VISIBLE_DEVICES": "-1"}, ["rocm"]),
        (("kfd",), {"ROCR_VISIBLE_DEVICES": ""}, []),
        (("accel2",), {"CUDA_VISIBLE_DEVICES": ""}, ["tpu"]),
        (("vfio/vfio", "vfio/3"), {}, ["tpu"]),
    ],
)
def test_accelerators_are_known_by_the_files_of_their_drivers(
    tmp_path, monkeypatch, files, hidden, found
):
    for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    for name, text in hidden.items():
        monkeypatch.setenv(name, text)
    for file in files:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).touch()
    monkeypatch.setattr(devices, "DEVICE_FILES", str(tmp_path))
    assert devices.accelerators_here() == found


def test_a_system_without_such_files_has_no_accelerators(tmp_path, monkeypatch):
    monkeypatch.setattr(devices, "DEVICE_FILES", str(tmp_path / "none"))
    assert devices.accelerators_here() == []

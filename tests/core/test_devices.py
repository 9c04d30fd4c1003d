"""How many virtual devices there are."""

import pytest

from calque.core import devices


@pytest.mark.parametrize(
    "own, flags, count",
    [
        (None, None, 1),
        ("3", None, 3),
        (None, "--xla_force_host_platform_device_count=4", 4),
        (None, "--xla_cpu_enable_fast_math=true  --xla_force_host_platform_device_count=2 --other", 2),
        ("3", "--xla_force_host_platform_device_count=4", 3),
        (None, "--xla_dump_to=/tmp/x", 1),
    ],
)
def test_the_environment_asks_for_devices(monkeypatch, own, flags, count):
    for name, text in (("CALQUE_NUM_CPU_DEVICES", own), ("XLA_FLAGS", flags)):
        monkeypatch.delenv(name, raising=False) if text is None else monkeypatch.setenv(name, text)
    assert devices._count() == count


@pytest.mark.parametrize("name, text", [("CALQUE_NUM_CPU_DEVICES", "no"), ("XLA_FLAGS", f"{devices._XLA_FLAG}=0")])
def test_a_count_that_is_none(monkeypatch, name, text):
    monkeypatch.delenv("CALQUE_NUM_CPU_DEVICES", raising=False)
    monkeypatch.setenv(name, text)
    with pytest.raises(ValueError, match=f"{name} must be a positive integer"):
        devices._count()

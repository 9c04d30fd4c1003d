"""Plugins of XLA: what is said of those that are not there or no plugins, and programs on one that
stands for an accelerator. None is needed: the libraries of these tests are none."""

from __future__ import annotations

import _ctypes
import os
import pathlib
import subprocess
import sys

import pytest

import calque as jax
from calque.core.backends import PLUGIN_PATHS, known
from calque.core.config import config
from calque.xla import plugins
from calque.xla.plugins import PluginDevice, platform_of
from tests.xla.mlir import needs_jaxlib
from tests.xla.packages import plugin


def test_names_for_gpus(packages: pathlib.Path) -> None:
    plugin(packages, "jax_plugins/xla_cuda12", "xla_cuda_plugin.so")
    assert platform_of("gpu") == platform_of("cuda") == "cuda"


def test_half_of_a_plugin_is_named(packages: pathlib.Path) -> None:
    place = plugin(packages, "jax_plugins/xla_cuda13", "_solver.so")
    with pytest.raises(RuntimeError, match="no library in it offers GetPjrtApi") as raised:
        platform_of("gpu")
    assert str(place) in str(raised.value) and "pip install jax-cuda12-plugin" in str(raised.value)


@pytest.mark.parametrize(
    "platform, remedy",
    [
        ("cuda", "pip install jax-cuda12-plugin jax-cuda12-pjrt"),
        ("gpu", "jax-cuda12-pjrt` or install it with `pip install jax-rocm60"),
        ("tpu", "pip install libtpu"),
        ("abacus", f"{PLUGIN_PATHS}=abacus:/path/to"),
    ],
)
def test_what_is_not_there_says_what_to_install(
    packages: pathlib.Path, platform: str, remedy: str
) -> None:
    with pytest.raises(RuntimeError, match="Unknown backend") as raised:
        jax.devices(platform)
    assert remedy in str(raised.value)
    with (
        config.override("calque_platforms", platform),
        pytest.raises(RuntimeError, match=f"Unable to initialize backend '{platform}'") as raised,
    ):
        jax.jit(lambda x: x)(1.0)
    assert remedy in str(raised.value)


@needs_jaxlib
def test_devices_of_plugins_have_the_names_that_programs_ask_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With what stands for a GPU of XLA: none is needed."""

    class Gpu:
        id, platform, device_kind, process_index = 3, "gpu", "a card", 0

    device = PluginDevice("cuda", Gpu())
    assert (device.platform, device.engine, device.device_kind) == ("gpu", "cuda", "a card")
    assert (str(device), repr(device)) == ("cuda:3", "CudaDevice(id=3)")
    assert device.__reduce__()[1] == ("cuda", 3)
    monkeypatch.setitem(known.devices, "cuda", lambda: [device])
    assert jax.default_backend() == "cpu"
    with config.override("calque_platforms", "cuda,cpu"):
        assert jax.default_backend() == "gpu" and jax.devices() == [device]
    with config.override("calque_platforms", "xla_cpu"):
        assert jax.default_backend() == "cpu"
    with (
        config.override("calque_platforms", "abacus"),
        pytest.raises(RuntimeError, match="Unable to initialize backend 'abacus'"),
    ):
        jax.default_backend()


def in_a_process(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A script in a process of its own, where no platform is chosen: libraries stay loaded, and an
    accelerator is looked for once."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "CALQUE_PLATFORMS": "", "CALQUE_NUM_CPU_DEVICES": "1", **environment},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    return done


@needs_jaxlib
def test_libraries_that_are_no_plugins() -> None:
    """Nor does what a user names keep programs that ask for nothing from running."""
    script = (
        "import calque as jax\n"
        "for name in ('nowhere', 'other'):\n"
        "    try:\n        jax.devices(name)\n"
        "    except RuntimeError as e:\n        print(e)\n"
        "print(jax.jit(lambda x: x + 1)(1.0), jax.default_backend())\n"
    )
    other = _ctypes.__file__  # a library, but no plugin
    done = in_a_process(script, **{PLUGIN_PATHS: f"nowhere:/no/such/library.so,other:{other}"})
    nowhere, *rest = done.stdout.splitlines()
    assert "'nowhere' is said to be /no/such/library.so, and nothing is there" in nowhere
    assert f"the plugin of 'other' at {other} cannot be used" in rest[0] and rest[-1] == "2.0 cpu"
    said = done.stderr
    assert said.count("'nowhere': the plugin") == said.count("'other': the plugin") == 1
    assert said.count("Set CALQUE_PLATFORMS=cpu") == 1


ACCELERATOR = """
import sys
import calque as jax, calque.numpy as jnp
from calque.core import devices
devices.DEVICE_FILES = {files!r}
sys.path = [{packages!r}, *sys.path]
eager = float(jnp.ones(2).sum())
assert "calque.xla" not in sys.modules  # eager operations open nothing
from calque.xla import jaxlib
jaxlib.plugin_client = lambda *given: jaxlib.cpu_client(2)  # XLA's CPU stands for it
"""
PROGRAM = """
f = jax.jit(lambda x: jnp.sin(x) @ x + 1)
x = jnp.arange(4.0)
y = f(x)
print(jax.devices(), jax.default_backend() == jax.devices()[0].platform, y.devices(), x.devices())
print(f(y * jnp.ones(4)).devices(), jax.make_mesh((2,), ("i",)).devices.tolist())
print(jax.jit(f, backend="cpu")(x).devices(), jax.devices("cpu"), f.lower(x).compile()(x) == y)
with jax.default_device(jax.devices("cpu")[0]):
    print(f(x).devices(), jnp.zeros(2).devices())
jax.config.update("jax_platforms", "cpu")
print(f(x).devices(), jax.devices(), jax.default_backend())
"""


def a_machine(folder: pathlib.Path, *files: str) -> str:
    """The beginning of a script on a machine with such files of drivers and a plugin for CUDA."""
    drivers = folder / "drivers"
    drivers.mkdir()
    for file in files:
        (drivers / file).touch()
    plugin(folder, "packages/jax_plugins/xla_cuda12", "xla_cuda_plugin.so")
    return ACCELERATOR.format(files=str(drivers), packages=str(folder / "packages"))


@needs_jaxlib
def test_an_accelerator_that_is_there_is_taken(tmp_path: pathlib.Path) -> None:
    done = in_a_process(a_machine(tmp_path, "nvidiactl") + PROGRAM)
    two = "[CudaDevice(id=0), CudaDevice(id=1)]"
    one = "{CudaDevice(id=0)}"
    cpu = "{CpuDevice(id=0)}"
    assert done.stdout.splitlines() == [
        f"{two} True {one} {one}",
        f"{one} {two}",
        f"{cpu} [CpuDevice(id=0)] True",
        f"{cpu} {cpu}",
        f"{cpu} [CpuDevice(id=0)] cpu",
    ]
    assert not done.stderr


@needs_jaxlib
def test_programs_are_shown_as_they_are_for_the_accelerator(tmp_path: pathlib.Path) -> None:
    script = """
x = jnp.eye(3)
cpu = jax.devices("cpu")[0]
lowered = jax.jit(jnp.linalg.cholesky).lower
texts = [
    lowered(x).as_text(),
    lowered(jax.device_put(x, cpu)).as_text(),
    jax.jit(jnp.linalg.cholesky).trace(x).lower(lowering_platforms=("cpu",)).as_text(),
]
print(["cusolver" in t for t in texts], ["lapack" in t for t in texts])
"""
    done = in_a_process(a_machine(tmp_path, "nvidiactl") + script)
    assert done.stdout.splitlines() == ["[True, False, False] [False, True, True]"]


@needs_jaxlib
@pytest.mark.parametrize(
    "files, environment",
    [
        ((), {}),
        (("kfd",), {}),
        (("nvidiactl",), {"CUDA_VISIBLE_DEVICES": ""}),
        (("nvidiactl",), {"CALQUE_PLATFORMS": "cpu"}),
    ],
)
def test_one_without_driver_or_plugin_or_that_is_hidden_is_not(
    tmp_path: pathlib.Path, files: tuple[str, ...], environment: dict[str, str]
) -> None:
    script = a_machine(tmp_path, *files) + "print(jax.devices(), jax.jit(jnp.sin)(0.0))\n"
    done = in_a_process(script, **environment)
    assert done.stdout == "[CpuDevice(id=0)] 0.0\n" and not done.stderr


@needs_jaxlib
def test_one_that_cannot_be_opened_is_told_once(tmp_path: pathlib.Path) -> None:
    script = a_machine(tmp_path, "nvidiactl") + (
        "def fails(*given): raise jaxlib.XlaUnavailable('the driver is too old')\n"
        "jaxlib.plugin_client = fails\n"
        "print(jax.jit(jnp.sin)(0.0), jax.devices(), jax.jit(jnp.cos)(0.0))\n"
    )
    done = in_a_process(script)
    assert done.stdout == "0.0 [CpuDevice(id=0)] 1.0\n"
    assert done.stderr.count("'cuda': the driver is too old") == 1
    assert done.stderr.count("Set CALQUE_PLATFORMS=cpu") == 1


def test_nothing_is_looked_for_unless_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise AssertionError("looked for plugins")

    monkeypatch.setattr(plugins, "libraries", fails)
    assert jax.devices("cpu") and jax.jit(lambda x: x + 1)(1.0) == 2

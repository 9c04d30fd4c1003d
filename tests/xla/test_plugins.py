"""Plugins of XLA: how they are found, and what is said of those that are not there or no plugins.
No accelerator is needed: the libraries of these tests are none."""

from __future__ import annotations

import _ctypes
import importlib.metadata
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator

import pytest

import calque as jax
from calque.core.backends import known
from calque.core.config import config
from calque.xla import plugins
from calque.xla.plugins import VARIABLE, PluginDevice, libraries, offers_pjrt, platform_of
from tests.xla.mlir import needs_jaxlib


@pytest.fixture
def packages(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pathlib.Path]:
    """A folder of packages that Python looks into; no others have plugins."""
    folder = tmp_path / "packages"
    folder.mkdir()
    others = [p for p in sys.path if not os.path.isdir(os.path.join(p, "jax_plugins"))]
    monkeypatch.setattr(sys, "path", [str(folder), *others])
    monkeypatch.delenv(VARIABLE, raising=False)
    yield folder


OFFERING = ("xla_cuda_plugin.so", "pjrt_plugin_abacus.so", "libtpu.so", "only.so", "unlikely.so")


def plugin(folder: pathlib.Path, name: str, *files: str) -> pathlib.Path:
    place = folder / name
    place.mkdir(parents=True)
    for file in files:
        (place / file).write_bytes(b"no library" + b"\0GetPjrtApi\0" * (file in OFFERING))
    return place


def test_packages_in_the_namespace(packages: pathlib.Path) -> None:
    place = plugin(packages, "jax_plugins/xla_cuda12", "_triton.so", "xla_cuda_plugin.so")
    plugin(packages, "jax_plugins/abacus", "pjrt_plugin_abacus.so", "__init__.py")
    plugin(packages, "jax_plugins/empty", "__init__.py")
    plugin(packages, "jax_plugins/unclear", "one.so", "two.so")
    found = libraries()
    assert found["cuda"] == str(place / "xla_cuda_plugin.so")
    assert found["abacus"].endswith("abacus/pjrt_plugin_abacus.so")
    assert not {"empty", "unclear"} & set(found)
    assert platform_of("gpu") == platform_of("cuda") == "cuda"


def test_libraries_are_known_by_what_they_offer(packages: pathlib.Path) -> None:
    place = plugin(packages, "jax_plugins/odd", "a_pjrt_plugin.so", "unlikely.so")
    assert libraries()["odd"] == str(place / "unlikely.so")
    (place / "empty.so").touch()
    assert not offers_pjrt(str(place / "empty.so")) and not offers_pjrt(str(place / "none.so"))
    assert offers_pjrt(str(place / "unlikely.so"))


def test_half_of_a_plugin_is_named(packages: pathlib.Path) -> None:
    place = plugin(packages, "jax_plugins/xla_cuda13", "_solver.so")
    with pytest.raises(RuntimeError, match="no library in it offers GetPjrtApi") as raised:
        platform_of("gpu")
    assert str(place) in str(raised.value) and "pip install jax-cuda12-plugin" in str(raised.value)


def test_the_library_for_tpus(packages: pathlib.Path) -> None:
    plugin(packages, "libtpu", "__init__.py", "libtpu.so")
    assert libraries()["tpu"].endswith("libtpu/libtpu.so")


def test_entry_points(packages: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin(packages, "someones_plugin", "__init__.py", "only.so")
    points = [
        importlib.metadata.EntryPoint("someone", "someones_plugin", "jax_plugins"),
        importlib.metadata.EntryPoint("gone", "no_such_package_of_tests", "jax_plugins"),
    ]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: points)
    assert libraries()["someone"].endswith("someones_plugin/only.so")
    assert "gone" not in libraries() and "someones_plugin" not in sys.modules


def test_paths_of_the_user_go_first(
    packages: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin(packages, "jax_plugins/abacus", "pjrt_plugin_abacus.so")
    monkeypatch.setenv(VARIABLE, "abacus:/somewhere/a.so, slide_rule:/somewhere/b.so")
    found = libraries()
    assert (found["abacus"], found["slide_rule"]) == ("/somewhere/a.so", "/somewhere/b.so")
    monkeypatch.setenv(VARIABLE, "abacus")
    with pytest.raises(ValueError, match=f"{VARIABLE} is a list of name:path, got 'abacus'"):
        libraries()


@pytest.mark.parametrize(
    "platform, remedy",
    [
        ("cuda", "pip install jax-cuda12-plugin jax-cuda12-pjrt"),
        ("gpu", "jax-cuda12-pjrt` or install it with `pip install jax-rocm60"),
        ("tpu", "pip install libtpu"),
        ("abacus", f"{VARIABLE}=abacus:/path/to"),
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


@needs_jaxlib
def test_libraries_that_are_no_plugins() -> None:
    """In a process of its own: libraries stay loaded."""
    script = (
        "import calque as jax\n"
        "for name in ('nowhere', 'other'):\n"
        "    try:\n        jax.devices(name)\n"
        "    except RuntimeError as e:\n        print(e)\n"
        "print(jax.jit(lambda x: x + 1)(1.0))\n"
    )
    other = _ctypes.__file__  # a library, but no plugin
    environment = {**os.environ, VARIABLE: f"nowhere:/no/such/library.so,other:{other}"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    nowhere, *rest = done.stdout.splitlines()
    assert "'nowhere' is said to be /no/such/library.so, and nothing is there" in nowhere
    assert f"the plugin of 'other' at {other} cannot be used" in rest[0] and rest[-1] == "2.0"


def test_nothing_is_looked_for_unless_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise AssertionError("looked for plugins")

    monkeypatch.setattr(plugins, "libraries", fails)
    assert jax.devices("cpu") and jax.jit(lambda x: x + 1)(1.0) == 2

"""Packages of plugins for GPUs, which these tests make up; those that are installed are asked."""

import pathlib
import sys
from types import SimpleNamespace
from typing import Any

import pytest

import calque as jax
from calque.xla import jaxlib, vendors
from tests.xla.lower.test_accelerator_linalg import REGISTERED
from tests.xla.mlir import needs_jaxlib


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A jaxlib that notes what it is told."""
    told: list[Any] = []

    def handler(platform: str, function: Any) -> None:
        told.append((platform, function("what")))

    def target(name: str, value: Any, *, platform: str, api_version: int = -1) -> None:
        told.append((platform, name, value, api_version))

    fake = SimpleNamespace(
        told=told,
        register_custom_type_handler=handler,
        register_custom_call_handler=handler,
        register_custom_type=target,
        register_custom_call_target=target,
        register_custom_call_as_batch_partitionable=lambda name: told.append(("batches", name)),
        generate_pjrt_gpu_plugin_options=lambda: {"platform_name": "cuda", "allocator": "bfc"},
    )
    monkeypatch.setattr(jaxlib, "jaxlib", lambda: SimpleNamespace(client=fake))
    return fake


PACKAGE = """
def register_custom_type(api, *args): return ("type", api, *args)
def register_custom_call_target(api, *args): return ("call", api, *args)
def ffi_types(): return {"Plan": 1}
def ffi_handlers(): return {"callback": 2}
"""


def test_a_package_tells_its_plugin_what_it_has(
    client: Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "jax_cuda13_plugin"
    package.mkdir()
    (package / "cuda_plugin_extension.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(vendors, "routines", lambda platform: [("solve", 3, 1)])
    monkeypatch.setattr(vendors, "interfaces", {})
    monkeypatch.setattr(vendors, "partitionable", lambda: ["solve"])
    vendors.register("cuda", "api")
    assert vendors.interfaces == {"cuda": "api"}
    for name in [m for m in sys.modules if m.startswith("jax_cuda13_plugin")]:
        del sys.modules[name]
    assert client.told == [
        ("CUDA", ("type", "api", "what")),
        ("CUDA", ("call", "api", "what")),
        ("CUDA", "Plan", 1, -1),
        ("CUDA", "callback", 2, 1),
        ("CUDA", "solve", 3, 1),
        ("batches", "solve"),
    ]
    vendors.register("tpu", "api")  # has no such packages
    assert len(client.told) == 6


def test_options_of_clients(client: Any) -> None:
    assert vendors.options("tpu") == {}
    assert vendors.options("rocm") == {"platform_name": "rocm", "allocator": "bfc"}
    jax.config.update("jax_cuda_visible_devices", "0,3")
    try:
        assert vendors.options("cuda")["visible_devices"] == [0, 3]
        assert "visible_devices" not in vendors.options("rocm")
    finally:
        jax.config.update("jax_cuda_visible_devices", "all")


def test_libraries_of_the_maker_are_loaded_in_order(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package, file in (
        ("cusolver", "libcusolver.so.11"),
        ("cublas", "libcublas.so.12"),
        ("cublas", "libcublasLt.so.12"),
        ("cublas", "libnvblas.so.12"),
    ):
        folder = tmp_path / "nvidia" / package / "lib"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / file).touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "nvidia", raising=False)
    loaded: list[str] = []

    def load(path: str) -> None:
        loaded.append(pathlib.Path(path).name)
        raise OSError("its dependencies are not there")

    monkeypatch.setattr(vendors.ctypes, "CDLL", load)
    vendors.load_libraries("cuda")
    assert loaded == ["libcublasLt.so.12", "libcublas.so.12", "libcusolver.so.11"]
    vendors.load_libraries("tpu")
    assert len(loaded) == 3


@needs_jaxlib
def test_targets_of_programs_are_there() -> None:
    if vendors.extension("cuda") is None:
        pytest.skip("no package of CUDA is installed")
    names = {name for name, *_ in vendors.routines("cuda")}
    assert names >= REGISTERED
    assert "xla_ffi_python_gpu_callback" in vendors.extension("cuda").ffi_handlers()

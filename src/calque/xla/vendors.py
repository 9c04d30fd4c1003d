"""What packages of plugins bring beside their library: routines of the maker of GPUs, calls of
Python, and the maker's own libraries, in packages of their own.

jaxlib knows the packages (`jaxlib.gpu_solver` and its kin ask them), so that nothing of jax is
imported."""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import os
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from types import ModuleType
from typing import Any, Final

from calque.core.config import config
from calque.machine.lazy import imported
from calque.machine.state import process
from calque.xla import jaxlib

PACKAGES: Final = {
    "cuda": ("jax_cuda13_plugin", "jax_cuda12_plugin"),
    "rocm": ("jax_rocm7_plugin", "jax_rocm60_plugin"),
}
# of jaxlib: each lists the routines that the packages offer, by platform
ROUTINES: Final = ("gpu_solver", "gpu_linalg", "gpu_sparse", "gpu_prng")
# by platform, of plugins that were loaded: what functions of jaxlib speak to them through
interfaces: Final[dict[str, Any]] = process.container("interfaces of plugins", {})
PARTITIONABLE: Final = "batch_partitionable_targets"
# NVIDIA's packages, in an order in which each finds what it needs, and what of them is loaded
LIBRARIES: Final = (
    ("cuda_runtime", "libcudart"), ("cu13", "libcudart"), ("cuda_nvrtc", "libnvrtc"),
    ("nvjitlink", "libnvJitLink"), ("cu13", "libnvJitLink"), ("cublas", "libcublasLt"),
    ("cublas", "libcublas"), ("cu13", "libcublasLt"), ("cu13", "libcublas"),
    ("cusparse", "libcusparse"), ("cu13", "libcusparse"), ("cusolver", "libcusolver"),
    ("cu13", "libcusolver"), ("cufft", "libcufft"), ("cu13", "libcufft"),
    ("cuda_cupti", "libcupti"), ("cudnn", "libcudnn"), ("nccl", "libnccl"),
    ("nvshmem", "libnvshmem_host"),
)  # fmt: skip


def is_gpu(platform: str) -> bool:
    """Whether such packages bring more than a library."""
    return platform in PACKAGES


def options(platform: str) -> dict[str, Any]:
    """What the client is made with: on GPUs what variables of XLA say of its memory
    (XLA_PYTHON_CLIENT_PREALLOCATE, XLA_CLIENT_MEM_FRACTION), and which of them are seen
    (`jax_cuda_visible_devices`, which `distributed.initialize` sets)."""
    if not is_gpu(platform):
        return {}
    given: dict[str, Any] = jaxlib.jaxlib().client.generate_pjrt_gpu_plugin_options()
    seen = str(config.read(f"{platform}_visible_devices"))
    own = {} if seen == "all" else {"visible_devices": [int(n) for n in seen.split(",")]}
    return {**given, **own, "platform_name": platform}


def load_libraries(platform: str) -> None:
    """Load the maker's libraries that are installed as packages: a plugin finds them by name once
    they are in the process. Others are looked for where the system looks."""
    if platform != "cuda":
        return
    for folder, name in _installed():
        for file in sorted(os.listdir(folder)):
            if file.startswith(f"{name}.so"):
                with suppress(OSError):  # the plugin says what it lacks
                    ctypes.CDLL(os.path.join(folder, file))


def _installed() -> Iterator[tuple[str, str]]:
    spec = importlib.util.find_spec("nvidia")
    roots = list(spec.submodule_search_locations or ()) if spec is not None else []
    for package, name in LIBRARIES:
        for root in roots:
            folder = os.path.join(root, package, "lib")
            if os.path.isdir(folder):
                yield folder, name


def extension(platform: str) -> ModuleType | None:
    """The module by which jaxlib speaks to the plugin of a GPU; None where its package is not
    installed."""
    for package in PACKAGES.get(platform, ()):
        with suppress(ImportError):
            return importlib.import_module(f"{package}.{platform}_plugin_extension")
    return None


def register(platform: str, c_api: Any) -> None:
    """Make the routines known to the plugin, as targets of custom calls."""
    interfaces[platform] = c_api
    module = extension(platform)
    if module is None:
        return
    client, name = jaxlib.jaxlib().client, platform.upper()
    # those that are known to jaxlib wait for the handlers
    client.register_custom_type_handler(name, partial(module.register_custom_type, c_api))
    client.register_custom_call_handler(name, partial(module.register_custom_call_target, c_api))
    for target, value in module.ffi_types().items():
        client.register_custom_type(target, value, platform=name)
    for target, value in module.ffi_handlers().items():
        client.register_custom_call_target(target, value, platform=name, api_version=1)
    for target, value, version in routines(platform):
        client.register_custom_call_target(target, value, platform=name, api_version=version)
    for target in partitionable():
        client.register_custom_call_as_batch_partitionable(target)


def routines(platform: str) -> list[tuple[str, Any, int]]:
    """The routines that the packages offer: name, what XLA calls, version of the interface."""
    found: list[tuple[str, Any, int]] = []
    for name in ROUTINES:
        module = imported(f"jaxlib.{name}")
        found += module.registrations().get(platform.upper(), ())
    return found


def partitionable() -> list[str]:
    """Those that each device may call for its part of many matrices."""
    modules = [imported(f"jaxlib.{name}") for name in ROUTINES]
    listed = [m.batch_partitionable_targets() for m in modules if hasattr(m, PARTITIONABLE)]
    return [target for targets in listed for target in targets]

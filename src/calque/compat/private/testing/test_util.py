"""`jax._src.test_util`: what programs and tests of libraries ask before they choose what to run."""

from __future__ import annotations

import math
import unittest
from collections.abc import Sequence
from typing import Any

import numpy as np

from calque.compat.private.testing.public_test_util import (
    EPS,
    check_close,
    check_grads,
    check_jvp,
    check_vjp,
    default_tolerance,
)
from calque.device_functions import default_backend, devices
from calque.transforms.devices.abstract_mesh import AxisType
from calque.transforms.devices.mesh import Mesh, make_mesh

__all__ = [
    "EPS", "check_close", "check_grads", "check_jvp", "check_vjp", "create_mesh",
    "default_tolerance", "device_under_test", "is_cuda_compute_capability_at_least",
    "is_device_cuda", "is_device_rocm", "is_device_tpu", "test_device_matches",
]  # fmt: skip


def create_mesh(
    mesh_shape: Sequence[int],
    axis_names: Sequence[str],
    iota_order: bool = False,
    axis_types: Any = None,
) -> Mesh:
    """A mesh of devices, with `iota_order` in the order of their numbers. A test that needs more
    than there are is skipped."""
    needed = math.prod(mesh_shape)
    there = devices()
    if len(there) < needed:
        raise unittest.SkipTest(f"a mesh of {needed} devices is needed, {len(there)} are there")
    if iota_order:
        first = sorted(there, key=lambda d: d.id)[:needed]
        return Mesh(np.array(first).reshape(tuple(mesh_shape)), axis_names, axis_types)
    types = (AxisType.Auto,) * len(mesh_shape) if axis_types is None else axis_types
    return make_mesh(mesh_shape, axis_names, axis_types=types)


def device_under_test() -> str:
    """The platform that programs run on."""
    return default_backend()


def test_device_matches(device_types: Sequence[str]) -> bool:
    """Whether programs run on one of these platforms; "gpu" is any GPU."""
    own = device_under_test()
    return own in device_types or ("gpu" in device_types and own in ("cuda", "rocm"))


def is_device_tpu(version: int | None = None, variant: str = "") -> bool:
    """Whether programs run on a TPU; of this version and variant, as far as its kind says."""
    if device_under_test() != "tpu":
        return False
    kind = str(devices()[0].device_kind)
    return (version is None or f"v{version}" in kind) and variant in kind


def is_device_cuda() -> bool:
    """Whether programs run on an NVIDIA GPU."""
    return devices()[0].client.platform_version.startswith("cuda")


def is_device_rocm() -> bool:
    """Whether programs run on an AMD GPU."""
    return devices()[0].client.platform_version.startswith("rocm")


def is_cuda_compute_capability_at_least(capability: str) -> bool:
    """Whether programs run on an NVIDIA GPU of at least this capability, such as "9.0"."""
    if not is_device_cuda():
        return False
    own = getattr(devices()[0], "compute_capability", "0")
    return _numbers(own) >= _numbers(capability)


def _numbers(version: Any) -> list[int]:
    return [int(part) for part in str(version).split(".")]

"""Test files that run once more in a process of their own, which has many devices."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest

import calque as jax

ROOT = pathlib.Path(__file__).parents[2]


def in_many(count: int, file: str) -> tuple[Any, Any]:
    """The mark of tests that need so many devices, and a test that runs those of this file in a
    process that has them."""
    several = jax.device_count("cpu") >= count

    @pytest.mark.skipif(several, reason="this is the process with many devices")
    def test_with_many_devices() -> None:
        environment = {**os.environ, "CALQUE_NUM_CPU_DEVICES": str(count)}
        environment.pop("CALQUE_PLATFORMS", None)
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", file]
        done = subprocess.run(
            command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=500
        )
        assert done.returncode == 0, done.stdout + done.stderr

    mark = pytest.mark.skipif(not several, reason="run by test_with_many_devices")
    return mark, test_with_many_devices

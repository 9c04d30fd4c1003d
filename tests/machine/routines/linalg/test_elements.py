"""Matrices turned round, and which routines bring which code."""

import subprocess
import sys

import numpy as np
import pytest

from calque.machine.routines.linalg import elements, spectral
from tests.machine.routines.linalg.test_factors import numbers


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
@pytest.mark.parametrize(
    "m, n", [(1, 1), (16, 16), (17, 40), (35, 22), (3, 100), (100, 3), (5, 7), (4, 33)]
)
def test_turning_round(dtype: str, m: int, n: int) -> None:
    x = numbers(dtype, m, n)
    out = np.zeros((n, m), dtype)
    elements.turn(x.itemsize, out.ctypes.data, x.ctypes.data, m, n)
    np.testing.assert_array_equal(out, x.T)


def test_moving_elements_is_compiled_with_few_passes() -> None:
    """Those that look for vectors took most of the time, and found none."""
    for unit in (elements.unit, spectral.parts):
        assert not {"O1", "O2", "O3"} & {*unit.passes.split(",")}


def test_a_routine_brings_no_other() -> None:
    code = """
from calque.machine.routines.linalg import factors, spectral
spectral.calque_svd.address, factors.calque_cholesky.address
units = {v for m in (factors, spectral) for v in vars(m).values() if hasattr(v, "_addresses")}
print(*sorted(u.name for u in units if u._addresses is not None))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["linalg_cholesky", "linalg_parts", "linalg_svd"]

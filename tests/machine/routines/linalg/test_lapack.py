"""Functions of LAPACK and BLAS by pointer, from a wheel's library and from SciPy itself."""

import ctypes
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

from calque.machine.routines.linalg import lapack


@pytest.mark.parametrize("found", [lapack.function, lapack.in_library, lapack._in_scipy])
def test_a_factor_of_cholesky(found: Callable[[str], int]) -> None:
    address = found("dpotrf")
    if found is lapack.in_library and not address:
        pytest.skip("SciPy has no library of its own here")
    a = np.asfortranarray([[4.0, 2.0], [2.0, 5.0]])
    n, info = ctypes.c_int(2), ctypes.c_int(-1)
    pointer = ctypes.c_void_p
    dpotrf = ctypes.CFUNCTYPE(None, *[pointer] * 5)(address)
    dpotrf(b"L", ctypes.addressof(n), a.ctypes.data, ctypes.addressof(n), ctypes.addressof(info))
    assert info.value == 0
    np.testing.assert_allclose(np.tril(a), [[2, 0], [1, 2]])


def test_blas_has_the_triangular_solve_and_lapack_has_not_everything() -> None:
    assert lapack.function("strsm") > 0 and lapack.function("no_such") == 0
    assert lapack.function("dgetrf") != lapack.function("sgetrf")


def test_scipy_is_asked_where_there_is_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    look = lapack._library.__wrapped__
    monkeypatch.setattr(lapack, "_LIBRARY", "nothing-*.so")
    assert look() is None
    monkeypatch.setattr(lapack, "_library", lambda: None)
    assert lapack.in_library("dgetrf") == 0
    assert lapack.function.__wrapped__("dgetrf") == lapack._in_scipy("dgetrf") > 0
    monkeypatch.setattr(sys, "platform", "another")
    assert look() is None


@pytest.mark.skipif(not lapack.in_library("dgetrf"), reason="SciPy has no library of its own here")
def test_decompositions_need_no_scipy() -> None:
    code = """
import sys
import numpy as np
import calque
import calque.numpy as jnp
x = np.random.default_rng(0).standard_normal((60, 50)).astype("f")
u, s, v = calque.jit(lambda x: jnp.linalg.svd(x, full_matrices=False))(x)
near = np.allclose((np.asarray(u) * np.asarray(s)) @ np.asarray(v), x, atol=1e-4)
print(near, "scipy.linalg" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]

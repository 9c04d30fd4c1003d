"""Functions of LAPACK and BLAS by pointer."""

import ctypes

import numpy as np

from calque.machine.routines.linalg import lapack


def test_a_factor_of_cholesky() -> None:
    a = np.asfortranarray([[4.0, 2.0], [2.0, 5.0]])
    n, info = ctypes.c_int(2), ctypes.c_int(-1)
    pointer = ctypes.c_void_p
    dpotrf = ctypes.CFUNCTYPE(None, *[pointer] * 5)(lapack.function("dpotrf"))
    dpotrf(b"L", ctypes.addressof(n), a.ctypes.data, ctypes.addressof(n), ctypes.addressof(info))
    assert info.value == 0
    np.testing.assert_allclose(np.tril(a), [[2, 0], [1, 2]])


def test_blas_has_the_triangular_solve_and_lapack_has_not_everything() -> None:
    assert lapack.function("strsm") > 0 and lapack.function("no_such") == 0
    assert lapack.function("dgetrf") != lapack.function("sgetrf")

"""Functions of SciPy's LAPACK and BLAS, by pointer."""

from __future__ import annotations

import ctypes
from typing import Any

from calque.machine.lazy import LazyModule
from calque.machine.once import once

blas: Any = LazyModule("scipy.linalg.cython_blas")
lapack: Any = LazyModule("scipy.linalg.cython_lapack")


@once
def function(name: str) -> int:
    """The address of a function (`dgetrf`, `strsm`) whose integers have 32 bits; 0 when SciPy has
    none."""
    try:
        capsule = (blas if name.endswith("trsm") else lapack).__pyx_capi__[name]
    except (ImportError, AttributeError, KeyError):
        return 0
    api = ctypes.pythonapi
    name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", api))
    pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", api)
    )
    signature = name_of(capsule)
    return int(pointer_of(capsule, signature)) if signature.endswith(b" int *)") else 0

"""Functions of SciPy's LAPACK and BLAS, by pointer.

SciPy's wheels for Linux carry them in a library of their own, which is asked without importing
SciPy: that takes a tenth of a second, the library two thousandths. Elsewhere SciPy is asked."""

from __future__ import annotations

import ctypes
import glob
import importlib.machinery
import mmap
import os
import sys
from typing import Any, Final

from calque.machine.lazy import LazyModule
from calque.machine.once import once

blas: Any = LazyModule("scipy.linalg.cython_blas")
lapack: Any = LazyModule("scipy.linalg.cython_lapack")

# The end of the name is a digest; libraries with integers of 64 bits are called `openblas64_`.
_LIBRARY: Final = "libscipy_openblas-*.so"
# What OpenBLAS takes of the address space while it is loaded: itself, and for each thread.
_ITSELF: Final = 64 << 20
_EACH_THREAD: Final = 72 << 20


@once
def function(name: str) -> int:
    """The address of a function (`dgetrf`, `strsm`) whose integers have 32 bits; 0 when SciPy has
    none."""
    return in_library(name) or _in_scipy(name)


def in_library(name: str) -> int:
    """The address in the library of a wheel; 0 where there is no such library."""
    library = _library()
    try:
        found = None if library is None else getattr(library, f"scipy_{name}_")
    except AttributeError:
        return 0
    return 0 if found is None else int(ctypes.cast(found, ctypes.c_void_p).value or 0)


@once
def _library() -> ctypes.CDLL | None:
    """The one library beside SciPy's package, which SciPy itself loads as well."""
    if sys.platform != "linux":
        return None
    spec = importlib.machinery.PathFinder.find_spec("scipy")
    if spec is None or not spec.submodule_search_locations:
        return None
    beside = os.path.dirname(os.path.abspath(spec.submodule_search_locations[0]))
    found = glob.glob(os.path.join(glob.escape(beside), "scipy.libs", _LIBRARY))
    if len(found) != 1:
        return None
    _check_room()
    try:
        return ctypes.CDLL(found[0])
    except OSError:
        return None


def _check_room() -> None:
    """MemoryError where the address space is limited and too little of it is left: OpenBLAS would
    try for ever to get its memory, or interrupt the process."""
    import resource  # of POSIX alone

    if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        return
    needed = _ITSELF + _EACH_THREAD * (os.cpu_count() or 1)
    try:
        mmap.mmap(-1, needed).close()
    except (OSError, MemoryError):
        raise MemoryError(
            f"no memory to load LAPACK: {needed} bytes of addresses are needed"
        ) from None


def _in_scipy(name: str) -> int:
    """The address that SciPy tells other extensions."""
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

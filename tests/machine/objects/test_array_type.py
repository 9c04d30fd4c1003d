"""The C type Array: memory, ownership, reference counts, NumPy views, and the check of the
interpreter."""

from __future__ import annotations

import ctypes
import gc
import sys
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from calque.machine.objects import array_type as objects
from calque.machine.objects.array_type import ArrayImpl, as_numpy, new_array, share, wrap_numpy


class Aval:
    """Stands for a core aval."""


def filled(values: Any, dtype: Any = np.float32) -> Any:
    """An Array on memory of its own."""
    source = np.asarray(values, dtype)
    array = new_array(Aval(), source.nbytes)
    ctypes.memmove(array._ptr, source.ctypes.data, source.nbytes)
    return array


def test_new_array_has_aligned_memory_of_its_own() -> None:
    aval = Aval()
    before = sys.getrefcount(aval)
    array = new_array(aval, 100)
    assert sys.getrefcount(aval) == before + 1
    assert type(array) is ArrayImpl and array.aval is aval
    assert array._ptr % 64 == 0 and array._owner is None and array._extra is None
    array._extra = "device"
    assert array._extra == "device"
    del array
    assert sys.getrefcount(aval) == before
    assert new_array(aval, 0)._ptr


def test_refusals() -> None:
    aval = Aval()
    for nbytes in (1 << 46, 1 << 47, 2**62):
        with pytest.raises(MemoryError):
            new_array(aval, nbytes)
    with pytest.raises(OverflowError):
        new_array(aval, 2**70)
    with pytest.raises(ValueError, match="negative"):
        new_array(aval, -1)
    for arguments in ((), (aval,), (aval, 1, 2), (aval, "x")):
        with pytest.raises(TypeError):
            new_array(*arguments)
    with pytest.raises(TypeError):
        ArrayImpl()
    with pytest.raises(AttributeError):
        new_array(aval, 4)._ptr = 3
    with pytest.raises(TypeError):
        type("Sub", (ArrayImpl,), {})


def test_wrap_and_view_share_memory() -> None:
    source = np.arange(12, dtype=np.float32).reshape(3, 4)
    before = sys.getrefcount(source)
    array = wrap_numpy(Aval(), source)
    assert sys.getrefcount(source) == before + 1
    assert array._ptr == source.ctypes.data and array._owner is source
    view = as_numpy(array, source.dtype, source.shape)
    assert (
        view.base is array and not view.flags.writeable and view.ctypes.data == source.ctypes.data
    )
    np.testing.assert_array_equal(view, source)
    del array
    assert sys.getrefcount(source) == before + 1  # the view keeps the array, the array the source
    del view
    assert sys.getrefcount(source) == before


@pytest.mark.parametrize(
    "bad",
    [
        np.zeros((4, 4), np.float32)[:, 1:],
        np.zeros(4, ">f4"),
        [1.0, 2.0],
        np.ma.zeros(3),
        np.frombuffer(b"0123456789", dtype=np.uint8)[1:9].view(np.float32),
        np.float32(3),
    ],
)
def test_wrap_refuses_what_machine_code_cannot_read(bad: Any) -> None:
    if (
        isinstance(bad, np.ndarray)
        and bad.flags.aligned
        and bad.flags.c_contiguous
        and type(bad) is np.ndarray
    ):
        if bad.dtype.isnative:
            pytest.skip("aligned by chance")
    with pytest.raises(TypeError):
        wrap_numpy(Aval(), bad)


@pytest.mark.parametrize(
    "dtype",
    [np.float64, np.int8, np.bool_, np.complex64, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn],
)
def test_view_of_every_kind_of_dtype(dtype: Any) -> None:
    dtype = np.dtype(dtype)
    gc.collect()  # what other tests left
    before = sys.getrefcount(dtype)
    array = filled([[1, 0, 1]], dtype)
    view = as_numpy(array, dtype, (1, 3))
    np.testing.assert_array_equal(view, np.array([[1, 0, 1]], dtype))
    assert view.dtype == dtype
    del view, array
    gc.collect()
    assert abs(sys.getrefcount(dtype) - before) <= 1


def test_view_refusals() -> None:
    array = new_array(Aval(), 16)
    f32 = np.dtype(np.float32)
    with pytest.raises(ValueError, match="at most 64 axes"):
        as_numpy(array, f32, (1,) * 70)
    with pytest.raises(ValueError, match="negative"):
        as_numpy(array, f32, (-1,))
    for arguments in (
        (array, f32),
        (array, np.float32, (4,)),
        (array, f32, [4]),
        (f32, f32, (4,)),
        (array, f32, ("a",)),
    ):
        with pytest.raises(TypeError):
            as_numpy(*arguments)
    assert as_numpy(array, f32, ()).shape == ()
    assert as_numpy(array, f32, (0, 3)).shape == (0, 3)


def test_share_holds_the_root_only() -> None:
    root = filled([1, 2, 3, 4])
    first = share(root, Aval())
    second = share(first, Aval())
    assert first._owner is root._owner is second._owner and first._ptr == second._ptr == root._ptr
    address = root._ptr
    del root, first
    np.testing.assert_array_equal(as_numpy(second, np.dtype(np.float32), (4,)), [1, 2, 3, 4])
    assert second._ptr == address
    source = np.ones(3)
    wrapped = share(wrap_numpy(Aval(), source), Aval())
    assert wrapped._owner is source
    with pytest.raises(TypeError):
        share(source, Aval())


def test_weak_references_and_attributes() -> None:
    array = new_array(Aval(), 8)
    seen: list[int] = []
    reference = weakref.ref(array, lambda _: seen.append(1))
    assert reference() is array
    del array
    assert reference() is None and seen == [1]
    ArrayImpl.test_attribute = property(lambda self: self._ptr + 1)  # type: ignore[attr-defined]
    try:
        array = new_array(Aval(), 8)
        assert array.test_attribute == array._ptr + 1
    finally:
        del ArrayImpl.test_attribute  # type: ignore[attr-defined]
    assert ArrayImpl.__module__ == "calque" and ArrayImpl.__name__ == "ArrayImpl"


def test_many_arrays_neither_leak_nor_mix() -> None:
    aval = Aval()
    before = sys.getrefcount(aval), sys.getrefcount(ArrayImpl)
    for _ in range(3):
        arrays = [new_array(aval, 8 * (i % 50)) for i in range(2000)]
        assert len({a._ptr for a in arrays}) == 2000
        del arrays
    assert (sys.getrefcount(aval), sys.getrefcount(ArrayImpl)) == before


def test_the_module_has_no_globals_of_one_process() -> None:
    assert str(id(ArrayImpl)) not in objects.unit.ir()

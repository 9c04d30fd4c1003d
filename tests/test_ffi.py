"""Functions of XLA are refused with what to do instead."""

import pytest

from calque import ffi


@pytest.mark.parametrize(
    "call",
    [
        lambda: ffi.ffi_call("f", None),
        lambda: ffi.register_ffi_target("f", None),
        lambda: ffi.ffi_lowering("f"),
        lambda: ffi.include_dir(),
        lambda: ffi.pycapsule(None),
    ],
)
def test_refused_with_the_remedy(call):
    with pytest.raises(NotImplementedError, match="ctypes in a function given to calque"):
        call()

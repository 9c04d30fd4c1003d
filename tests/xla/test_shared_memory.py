"""Memory of accelerators shared by DLPack, with XLA's CPU in the place of a GPU: its buffers go the
same way, and NumPy reads them."""

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque.core.backends import known
from calque.core.config import config
from calque.xla.buffers import aligned
from calque.xla.engine import compile_on_xla
from calque.xla.plugins import PluginDevice
from calque.xla.shared_memory import described
from tests.xla.mlir import needs_jaxlib

pytestmark = needs_jaxlib
X = np.arange(32, dtype=np.float32).reshape(4, 8)


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """XLA's CPU under the name of a GPU."""

    class Card:
        id, platform, device_kind, process_index, local_hardware_id = 0, "gpu", "a card", 0, 0

        def __getattr__(self, name: str) -> Any:
            return getattr(jax.devices("xla_cpu")[0].xla, name)

    device = PluginDevice("cuda", Card())
    device.xla = jax.devices("xla_cpu")[0].xla
    monkeypatch.setattr(PluginDevice, "dlpack_device", lambda self: (2, self.id))
    monkeypatch.setitem(known.devices, "cuda", lambda: [device])
    monkeypatch.setitem(known.compilers, "cuda", compile_on_xla)
    monkeypatch.setattr("calque.xla.engine.lowering_platform", lambda device: "cpu")
    return device


class Consumer:
    """What NumPy takes for an array in the host's memory."""

    def __init__(self, x: Any, **asked: Any) -> None:
        self.x, self.asked = x, asked

    def __dlpack__(self, **options: Any) -> Any:
        return self.x.__dlpack__(**self.asked)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


class Producer(Consumer):
    """An array of another library that says that it is on a GPU."""

    def __dlpack__(self, *, stream: Any = None) -> Any:
        return self.x.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0


def test_arrays_go_out_without_a_copy(card: Any) -> None:
    x = jax.device_put(X, card)
    assert x.__dlpack_device__() == (2, 0)
    y = jax.jit(lambda v: v + 1)(x)
    seen = np.from_dlpack(Consumer(y))
    np.testing.assert_array_equal(seen, X + 1)
    assert seen.ctypes.data == y.unsafe_buffer_pointer()
    copied = np.from_dlpack(Consumer(y, copy=True))
    np.testing.assert_array_equal(copied, X + 1)
    assert copied.ctypes.data != y.unsafe_buffer_pointer()


def test_they_are_brought_to_the_host_where_that_is_asked_for(card: Any) -> None:
    y = jax.jit(lambda v: v + 1)(jax.device_put(X, card))
    np.testing.assert_array_equal(np.from_dlpack(Consumer(y, dl_device=(1, 0))), X + 1)
    with pytest.raises(BufferError, match="copy=False"):
        y.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(BufferError, match=r"is on cuda:0, and is not copied to"):
        y.__dlpack__(dl_device=(10, 0))


def test_arrays_come_in_without_a_copy(card: Any) -> None:
    for dtype in ("float32", "int8", "complex64", "bool"):
        data = X.astype(dtype)
        x = jnp.from_dlpack(Producer(data))
        assert (x.dtype, x.shape, x.devices()) == (data.dtype, X.shape, {card})
        np.testing.assert_array_equal(
            jax.jit(lambda v: ~v if v.dtype == bool else v * 2)(x),
            ~data if dtype == "bool" else data * 2,
        )
    shared = aligned(X.nbytes)[: X.nbytes].view(np.float32)
    shared[:] = X.ravel()
    assert jnp.from_dlpack(Producer(shared)).unsafe_buffer_pointer() == shared.ctypes.data
    copied = jnp.from_dlpack(Producer(shared), copy=True)
    assert copied.unsafe_buffer_pointer() != shared.ctypes.data
    np.testing.assert_array_equal(copied, X.ravel())


def test_wide_elements_are_as_wide_as_arrays_may_be(card: Any) -> None:
    data = np.arange(8)
    assert jnp.from_dlpack(Producer(data)).dtype == np.int32
    with config.override("calque_enable_x64", True):
        x = jnp.from_dlpack(Producer(data))
        assert x.dtype == np.int64 and x.tolist() == data.tolist()


def test_devices_that_are_not_there(card: Any) -> None:
    class Second(Producer):
        def __dlpack_device__(self) -> tuple[int, int]:
            return 2, 1

    with pytest.raises(ValueError, match="cuda:1, which XLA does not have"):
        jnp.from_dlpack(Second(X))
    with pytest.raises(RuntimeError, match="jax-rocm"):

        class Other(Producer):
            def __dlpack_device__(self) -> tuple[int, int]:
                return 10, 0

        jnp.from_dlpack(Other(X))


def test_what_other_accelerators_share_is_refused() -> None:
    class Tpu:
        id, platform, device_kind, process_index = 0, "tpu", "a board", 0

    with pytest.raises(BufferError, match="device_put"):
        PluginDevice("tpu", Tpu()).dlpack_device()


def test_kinds_without_a_dtype_are_named() -> None:
    capsule = X.__dlpack__()
    assert described(capsule).str_short() == "f32[4,8]"
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    kind = ctypes.c_uint8.from_address(pointer(capsule, b"dltensor") + 20)
    kind.value = 3
    with pytest.raises(TypeError, match="kind 3"):
        described(capsule)
    kind.value = 2

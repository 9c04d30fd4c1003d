"""DLPack: memory shared with NumPy and PyTorch, both ways."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp


def address(x):
    return np.asarray(x).__array_interface__["data"][0]


def test_numpy_is_told_that_the_memory_is_read_only():
    x = jnp.arange(3.0)
    shared, copied = np.from_dlpack(x), np.from_dlpack(x, copy=True)
    assert address(shared) == address(x) != address(copied)
    assert not shared.flags.writeable and copied.flags.writeable


@pytest.mark.parametrize(
    "options",
    [{"stream": 1}, {"dl_device": (2, 0)}, {"dl_device": (1, 1)}],
    ids=["stream", "cuda", "second"],
)
def test_what_cannot_be_exported_is_refused(options):
    with pytest.raises(BufferError):
        jnp.arange(3.0).__dlpack__(**options)


def test_the_keywords_of_from_dlpack():
    source = np.arange(6, dtype=np.float32)
    assert (
        address(jnp.from_dlpack(source))
        == address(jnp.from_dlpack(source, copy=False))
        == address(source)
    )
    assert address(jnp.from_dlpack(source, copy=True)) != address(source)
    x = jnp.from_dlpack(source, device=jnp.ones(1).device)
    assert x.tolist() == source.tolist()
    assert jnp.from_dlpack(source[::2]).tolist() == [0, 2, 4]
    for must_be_copied in (source[::2], source.astype(np.float64)):
        with pytest.raises(ValueError, match="copy=False"):
            jnp.from_dlpack(must_be_copied, copy=False)
    with pytest.raises(ValueError):
        jnp.from_dlpack(source, device="nowhere")
    with pytest.raises(TypeError, match="__dlpack__"):
        jnp.from_dlpack([1, 2])


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint8", "int32", "float16", "bfloat16", "float32", "complex64"]
)
def test_pytorch(dtype):
    torch = pytest.importorskip("torch")
    x = jnp.arange(6).reshape(2, 3).astype(dtype)
    t = torch.from_dlpack(x)
    assert (
        str(t.dtype) == f"torch.{dtype}" and t.tolist() == x.tolist() and t.data_ptr() == address(x)
    )
    back = jnp.from_dlpack(t)
    assert back.dtype == x.dtype and back.tolist() == x.tolist() and address(back) == address(x)


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_capsules_of_bfloat16(version):
    torch = pytest.importorskip("torch")
    x = jnp.asarray([1.5, -2.0], "bfloat16")
    t = torch.utils.dlpack.from_dlpack(x.__dlpack__(max_version=version))
    assert t.dtype == torch.bfloat16 and t.tolist() == [1.5, -2.0]


def test_reshape_copies_if_asked():
    x = jnp.arange(6.0)
    assert address(x.reshape(6)) == address(x) != address(x.reshape(6, copy=True))
    assert address(jnp.reshape(x, (2, 3), copy=True)) != address(x)


def test_the_module_dlpack_takes_its_options_by_position():
    from_dlpack = calque.dlpack.from_dlpack
    x = np.arange(3, dtype=np.float32)
    assert (
        address(from_dlpack(x, None, True)) != address(x) == address(from_dlpack(external_array=x))
    )

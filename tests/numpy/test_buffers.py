"""Arrays from bytes and texts, and in files."""

import io

import ml_dtypes
import numpy as np
import pytest

import calque
import calque.numpy as jnp


@pytest.mark.parametrize("dtype", ["float32", "int8", "bfloat16", "bool", "complex64"])
def test_files_keep_every_dtype(dtype, tmp_path):
    x = jnp.arange(6).reshape(2, 3).astype(dtype)
    jnp.save(tmp_path / "x.npy", x)
    back = jnp.load(tmp_path / "x.npy")
    assert back.dtype == x.dtype and back.tolist() == x.tolist()


def test_several_arrays_in_a_file():
    file = io.BytesIO()
    jnp.savez(file, jnp.arange(2), b=jnp.ones(3))
    file.seek(0)
    found = jnp.load(file)
    assert sorted(found) == ["arr_0", "b"] and found["b"].tolist() == [1, 1, 1]
    jnp.savez(io.BytesIO(), jnp.arange(2), allow_pickle=False)
    with pytest.raises(ValueError, match="allow_pickle=False"):
        jnp.savez(io.BytesIO(), x=np.array([{}], object), allow_pickle=False)


def test_bytes_and_texts():
    data = np.arange(4, dtype=np.float32)
    assert jnp.frombuffer(data.tobytes(), "float32", count=2, offset=4).tolist() == [1, 2]
    assert jnp.frombuffer(data.astype(ml_dtypes.bfloat16).tobytes(), jnp.bfloat16).tolist() == [
        0,
        1,
        2,
        3,
    ]
    assert jnp.fromstring("1 2,3".replace(",", " "), sep=" ", dtype=int).tolist() == [1, 2, 3]


@pytest.mark.parametrize("function", [jnp.fromfile, jnp.fromiter])
def test_what_cannot_be_traced_names_the_remedy(function):
    with pytest.raises(NotImplementedError, match=rf"jnp.asarray\(np.{function.__name__}"):
        function("x")


def test_texts_of_arrays():
    x = jnp.array([1.23456, 2.0])
    assert jnp.array_str(x, precision=2) == "[1.23 2.  ]"
    assert jnp.array_repr(x, precision=2) == "Array([1.23, 2.  ], dtype=float32)"


@pytest.mark.parametrize("dtype", ["float32", "int16", "complex128", "float64"])
def test_bytes_that_are_said_to_lie_as_they_do_here(dtype):
    """NumPy calls an order of bytes native, or names it, as HDF5 does: both are one dtype."""
    other = np.dtype(dtype).newbyteorder("S")
    here = other.newbyteorder("S")
    x = np.arange(6).reshape(2, 3).astype(here)
    assert x.dtype.byteorder != "=" and x.dtype == np.dtype(dtype)
    for given in (x, x.astype(other), x.T, np.array(5, here)):
        expected = np.asarray(given.tolist())
        for found in (
            jnp.asarray(given),
            jnp.array(given),
            calque.device_put(given),
            calque.jit(lambda x: x * 1)(given),
            jnp.add(given, 0),
        ):
            assert found.dtype == jnp.asarray(np.zeros(1, dtype)).dtype
            assert np.array_equal(np.asarray(found), expected)

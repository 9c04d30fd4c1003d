"""What the standard of array APIs asks of a namespace."""

import pytest

import calque
import calque.numpy as jnp

INFO = jnp.__array_namespace_info__()


def test_what_it_can_do():
    assert jnp.__array_api_version__ >= "2023.12"
    assert INFO.capabilities()["boolean indexing"] is True
    x = jnp.arange(4)
    assert x[x > 1].tolist() == [2, 3]  # as it says
    assert INFO.default_device() is None and INFO.devices() == calque.devices()


def test_default_dtypes_are_those_of_arrays():
    found = INFO.default_dtypes()
    assert found["real floating"] == jnp.ones(1).dtype and found["integral"] == jnp.arange(1).dtype
    with calque.enable_x64(True):
        assert INFO.default_dtypes(device=calque.devices()[0])["integral"] == jnp.int64


def test_dtypes_are_those_that_arrays_can_have():
    names = set(INFO.dtypes())
    assert {"bool", "int32", "float32"} <= names and not {"float64", "int64"} & names
    with calque.enable_x64(True):
        assert {"float64", "complex128", "uint64"} <= set(INFO.dtypes())
    assert set(INFO.dtypes(kind="unsigned integer")) == {"uint8", "uint16", "uint32"}
    assert set(INFO.dtypes(kind=("bool", "complex floating"))) == {"bool", "complex64"}
    with pytest.raises(ValueError, match="device must be None or one of"):
        INFO.dtypes(device="gpu")

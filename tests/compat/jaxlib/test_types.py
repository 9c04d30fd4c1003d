"""The types that `jaxlib` gives names to are those of calque's objects."""

from __future__ import annotations

import pytest

import calque
import calque.numpy as jnp
from calque.compat.jaxlib import _jax, xla_client
from calque.compat.private import lib
from tests.compat.shared import served


def test_they_are_the_types_of_objects() -> None:
    device = calque.devices("cpu")[0]
    assert isinstance(calque.jit(lambda x: x), _jax.PjitFunction)
    assert not isinstance(lambda x: x, _jax.PjitFunction)
    assert isinstance(device, xla_client.Device) and isinstance(device.client, xla_client.Client)
    assert isinstance(jnp.ones(1), _jax.ArrayImpl)
    assert xla_client.XlaRuntimeError is calque.errors.JaxRuntimeError
    assert lib._jax is _jax and lib.cuda_versions is None


def test_they_are_imported_by_the_names_of_jax() -> None:
    said = served(
        """
import warnings, jax
from jaxlib._jax import PjitFunction
from jaxlib import xla_client
from jax._src.lib import _jax
from jax._src.numpy.ufuncs import ufunc
from jax._src.numpy.util import promote_dtypes_complex
from jax._src.lax.convolution import conv_general_dilated
print(isinstance(jax.jit(abs), PjitFunction), _jax.PjitFunction is PjitFunction)
print(ufunc is jax.numpy.ufunc, conv_general_dilated is jax.lax.conv_general_dilated)
with warnings.catch_warnings(record=True) as heard:
    warnings.simplefilter("always")
    print(jax.core.is_constant_dim(3), str(heard[0].message))
"""
    )
    assert said.splitlines() == [
        "True True",
        "True True",
        "True jax.core.is_constant_dim is deprecated.",
    ]


def test_the_engine_of_xla_has_the_real_ones_whoever_asked_before() -> None:
    pytest.importorskip("jaxlib")
    said = served(
        """
import jax, jax.numpy as jnp
from jaxlib import _jax, xla_client
print(_jax.__name__, xla_client.__name__)
print(jax.jit(lambda x: x + 1, backend="xla_cpu")(jnp.ones(2)).tolist())
import jaxlib._jax
print(jaxlib._jax.__name__)
"""
    )
    assert said.splitlines() == [
        "calque.compat.jaxlib._jax calque.compat.jaxlib.xla_client",
        "[2.0, 2.0]",
        "jaxlib._jax",
    ]

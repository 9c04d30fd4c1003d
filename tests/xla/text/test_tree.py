"""Modules as plain data."""

import dataclasses

import numpy as np
import pytest

from calque.xla.jaxlib import mlir_module
from calque.xla.text.tree import Location, Region, Value, escaped
from calque.xla.text.types import TOKEN, Tensor
from tests.xla.mlir import needs_jaxlib
from tests.xla.mlir import printed as by_mlir

T = Tensor((2, 3), np.dtype("int8"))


def test_values_are_themselves_alone() -> None:
    a, b = Value(T), Value(T)
    assert a != b and len({a, b, a}) == 2
    assert (a.shape, a.ndim, a.dtype) == ((2, 3), 2, np.dtype("int8"))
    assert repr(a) == "Value(tensor<2x3xi8>)"


def test_a_token_has_no_shape() -> None:
    token = Value(TOKEN)
    for read in ("tensor", "shape", "ndim", "dtype"):
        with pytest.raises(AssertionError):
            getattr(token, read)


def test_regions_share_nothing() -> None:
    one, two = Region(), Region()
    one.args.append(Value(T))
    assert two.args == [] and one != two and one.header


def test_locations_stay_as_they_are() -> None:
    where = Location("jit(f)/sin", "f.py", 3, "f")
    with pytest.raises(dataclasses.FrozenInstanceError):
        where.line = 4  # type: ignore[misc]


@needs_jaxlib
@pytest.mark.parametrize("text", ["plain", 'a "b"', "a\\b", "a\nb", "\u00e9\t\u4e2d", "\\22"])
def test_texts_are_written_as_mlir_writes_them(text: str) -> None:
    module = f'module @m attributes {{a.b = "{escaped(text)}"}} {{\n}}\n'
    assert by_mlir(module) == module
    assert mlir_module(module).operation.attributes["a.b"].value == text

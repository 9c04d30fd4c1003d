"""Modules as plain data."""

import dataclasses

import numpy as np
import pytest

from calque.xla.text.tree import Location, Region, Value
from calque.xla.text.types import TOKEN, Tensor

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

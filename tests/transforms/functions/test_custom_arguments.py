"""Arguments, tangents and cotangents as custom rules see them."""

import numpy as np
import pytest

from tests.transforms.programs import check, close, reference_backend, verified  # noqa: F401

pytestmark = pytest.mark.usefixtures("reference_backend")


def test_zeros_for_rules():
    from calque.custom_derivatives import SymbolicZero, zero_from_primal

    assert float(zero_from_primal(2.0)) == 0.0
    zero = zero_from_primal(np.ones((2, 3), np.float32), symbolic_zeros=True)
    assert isinstance(zero, SymbolicZero) and zero.shape == (2, 3)
    assert zero_from_primal(3, symbolic_zeros=True).dtype.names == ("float0",)


def test_zeros_of_trees():
    """A rule asks for the zeros of all that its function gave beside."""
    from calque.custom_derivatives import SymbolicZero, zero_from_primal

    tree = {"a": (np.ones(2, np.float32), 3), "b": None, "c": []}
    symbolic = zero_from_primal(tree, symbolic_zeros=True)
    assert [type(z) for z in symbolic["a"]] == [SymbolicZero] * 2
    assert symbolic["b"] is None and symbolic["c"] == []
    close(zero_from_primal(tree)["a"][0], np.zeros(2, np.float32))

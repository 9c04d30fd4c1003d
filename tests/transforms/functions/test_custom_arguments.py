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


def test_functions_that_are_given_all_they_take_have_no_signature_looked_for(monkeypatch):
    from functools import wraps

    from calque.transforms.functions import custom_arguments
    from calque.transforms.functions.custom_arguments import positional, takes_exactly

    def plain(x, y):
        return x + y

    @wraps(plain)
    def wrapped(*args):
        return plain(*args)

    looked = []
    found = custom_arguments.signature
    monkeypatch.setattr(custom_arguments, "signature", lambda f: looked.append(f) or found(f))
    assert positional(plain, (1, 2), {}, "custom_jvp") == (1, 2) and not looked
    assert positional(plain, (1,), {"y": 2}, "custom_jvp") == (1, 2) and looked == [plain]
    assert positional(wrapped, (1, 2), {}, "custom_jvp") == (1, 2) and looked[1:] == [wrapped]
    with pytest.raises(TypeError, match="missing a required argument"):
        positional(plain, (1,), {}, "custom_jvp")
    for f in (lambda x, *y: x, lambda x, y=1: x, lambda x, *, y=1: x, lambda x, **y: x, min):
        assert not takes_exactly(f, 1)
    assert takes_exactly(lambda x, y=1: x, 2)

"""What traced arrays say when their values are asked for."""

import numpy as np
import pytest

import calque
from calque import errors

ASKED = {
    "bool": (bool, errors.TracerBoolConversionError, "Attempted boolean conversion"),
    "int": (int, errors.ConcretizationTypeError, r"The int\(\) method was called on traced array"),
    "item": (lambda x: x.item(0), errors.ConcretizationTypeError, r"The item\(\) method"),
    "tolist": (lambda x: x.tolist(), errors.ConcretizationTypeError, r"The tolist\(\) method"),
    "tobytes": (lambda x: x.tobytes("C"), errors.ConcretizationTypeError, r"The tobytes\(\)"),
    "index": (lambda x: [1, 2][x], errors.TracerIntegerConversionError, "Abstract tracer value"),
    "numpy": (np.asarray, errors.TracerArrayConversionError, r"__array__\(\) was called on traced"),
}


@pytest.mark.parametrize("name", ASKED)
def test_values_are_not_known_while_tracing(name):
    ask, error, words = ASKED[name]
    with pytest.raises(error, match=words):
        calque.jit(lambda x: ask(x))(1)


def test_they_show_their_types():
    seen = []
    calque.jit(lambda x: seen.extend([repr(x), f"{x}", str(x)]))(np.float32([1, 2]))
    assert seen == ["JitTracer(float32[2])"] * 3


def test_arrays_of_several_elements_have_no_value_at_all():
    """What no array allows is told as for arrays."""
    three, none = np.arange(3), np.arange(0)
    with pytest.raises(ValueError, match="array with more than one element is ambiguous"):
        calque.jit(bool)(three)
    with pytest.raises(ValueError, match="an empty array is ambiguous"):
        calque.jit(bool)(none)
    for kind in (int, float, complex):
        with pytest.raises(TypeError, match="Only scalar arrays can be converted to Python"):
            calque.jit(kind)(three)


def test_traced_values_are_nowhere():
    with pytest.raises(AttributeError, match=r"calque.typeof\(x\).sharding"):
        calque.jit(lambda x: x.sharding)(1.0)
    assert calque.jit(lambda x: x + hasattr(x, "sharding"))(1) == 1


@pytest.mark.parametrize("take", [lambda f: calque.grad(f)(2.0), lambda f: calque.vjp(f, 2.0)[0]])
def test_values_that_are_differentiated_know_what_they_are(take):
    seen = []

    def f(x):
        seen.extend([bool(x), int(x), x.item(), int(x * 1.5)])
        return x if x else 0.0

    take(f)
    assert seen == [True, 2, 2.0, 3]
    take(calque.grad(f))
    for ask in (float, complex, np.asarray):  # would lose the slope
        with pytest.raises((errors.ConcretizationTypeError, errors.TracerArrayConversionError)):
            take(lambda x, ask=ask: ask(x) * x)
    with pytest.raises(errors.TracerBoolConversionError):
        calque.jit(calque.grad(f))(2.0)

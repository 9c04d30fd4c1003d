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

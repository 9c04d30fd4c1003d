"""The `control_flow` argument of jit."""

import pytest

import calque
from calque.transforms.jit.control_flow import converted


def positive(x):
    if x > 0:
        return x
    return -x


def test_functions_are_converted_where_that_is_asked_for():
    assert converted(positive, None) is positive
    found = converted(positive, "convert")
    assert found is not positive and found.__name__ == "positive" and found(-2.0) == 2
    f = calque.jit(positive, control_flow="convert")
    assert float(f(-2.0)) == 2 and float(f(3.0)) == 3
    with pytest.raises(calque.errors.TracerBoolConversionError):
        calque.jit(positive)(2.0)


def test_other_words_are_refused():
    with pytest.raises(ValueError, match=r"control_flow must be None or \"convert\", got 'yes'"):
        calque.jit(positive, control_flow="yes")

"""Functions that factories make, written out."""

import inspect

import pytest

from calque.numpy.descriptions.writing import written
from tests.numpy.public.shared import check_parameters


def made_by_a_factory(x, /, deep=False):
    return x, deep


def test_the_made_function_stands_in_place_of_the_text() -> None:
    def text(a: int, /, deep: bool = False) -> int:
        """What it does."""

    f = written(made_by_a_factory)(text)
    assert f is made_by_a_factory and f(3) == (3, False)
    assert f.__doc__ == "What it does."
    assert list(inspect.signature(f).parameters) == ["a", "deep"]
    check_parameters(f)


def test_another_default_is_found() -> None:
    def text(a: int, /, deep: bool = True) -> int:
        """What it does."""

    with pytest.raises(AssertionError):
        check_parameters(written(made_by_a_factory)(text))

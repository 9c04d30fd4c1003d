"""Named axes: which can be named where, and how many members they have."""

import pytest

from calque.transforms.engines import axes
from calque.transforms.engines.axes import Axis


def test_axes_are_in_scope_inside():
    outer, inner = Axis("i", 3), Axis("i", 5)
    assert axes.in_scope() == ()
    with axes.bound([outer, Axis("j", 2)]):
        with axes.bound([inner]):
            assert axes.find("i").axis is inner and axes.size_of("i") == 5
            assert axes.in_scope() == (outer, Axis("j", 2), inner)
        assert axes.find("i").axis is outer
    assert axes.in_scope() == ()


def test_axes_without_a_name_cannot_be_asked_for():
    with axes.bound([Axis(None, 7)]):
        assert axes.in_scope() == ()
        with pytest.raises(NameError, match=r"unbound axis name: i.*in scope are: none"):
            axes.find("i")
    with axes.bound([Axis("j", 2)]), pytest.raises(NameError, match=r"'j'.*axis_name='i'"):
        axes.find("i")


def test_an_error_ends_the_scope():
    with pytest.raises(KeyError), axes.bound([Axis("i", 3)]):
        raise KeyError
    assert axes.in_scope() == ()


def test_several_names():
    assert axes.names_of("i") == ("i",) and axes.names_of(("i", "j")) == ("i", "j")
    with axes.bound([Axis("i", 3), Axis("j", 4)]):
        assert axes.size_of(("i", "j")) == 12 and axes.size_of(()) == 1

"""Layouts: values that say how arrays lie in memory."""

import logging

import pytest

import calque.numpy as jnp
from calque import jit
from calque.experimental.layout import Format, Layout, with_layout_constraint


def test_values():
    assert Layout((1, 0)) == Layout([1, 0]) != Layout((0, 1)) and Layout((0, 1)) != Layout.AUTO
    assert hash(Format(Layout((0,)))) == hash(Format(Layout((0,)))) and Format() != Format(
        Layout.AUTO
    )
    assert repr(Layout((1, 0), ((8, 128),))) == "Layout(major_to_minor=(1, 0), tiling=((8, 128),))"
    assert repr(Format(Layout.AUTO)) == "Format(layout=Layout.AUTO, sharding=None)"


def test_bad_values():
    with pytest.raises(ValueError, match="name each dimension once"):
        Layout((0, 2))
    with pytest.raises(TypeError, match="layout must be a Layout"):
        Format((0, 1))
    with pytest.raises(TypeError, match="sharding must be a Sharding"):
        Format(Layout((0,)), "cpu")


def test_constraints_change_no_value():
    x = jnp.arange(6.0).reshape(2, 3)
    f = jit(lambda t: with_layout_constraint(t, {"a": Layout((1, 0)), "b": Layout.AUTO}))
    assert f({"a": x, "b": x})["a"].tolist() == x.tolist()
    with pytest.raises(ValueError, match="of 2 dimensions"):
        with_layout_constraint(x, Layout((0,)))


def test_another_order_is_noted_once(caplog):
    x = jnp.zeros((2, 3, 4, 5))
    with caplog.at_level(logging.INFO, logger="calque"):
        for order in ((3, 2, 0, 1), (0, 1, 2, 3), (3, 2, 0, 1), (2, 3, 0, 1)):
            with_layout_constraint(x, Layout(order))
    said = [r.getMessage() for r in caplog.records if "how arrays lie" in r.getMessage()]
    assert [m.partition(" (the")[0] for m in said] == [
        "Layout(major_to_minor=(3, 2, 0, 1))",
        "Layout(major_to_minor=(2, 3, 0, 1))",
    ]

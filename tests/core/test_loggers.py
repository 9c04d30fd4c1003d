"""Loggers that users filter by their names."""

import sys

import numpy as np
import pytest

import calque
from calque.core.loggers import logger


def test_a_part_has_a_logger_below_that_of_the_package(monkeypatch):
    monkeypatch.delitem(sys.modules, "jax", raising=False)
    assert logger("callback").name == "calque.callback"
    assert logger("callback").parent.name == "calque"


def test_where_calque_is_served_as_jax_filters_of_its_programs_hold(monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "jax", calque)

    def fail(x):
        raise KeyError("lost")

    result = calque.ShapeDtypeStruct((), np.float32)
    with pytest.raises(KeyError, match="lost"):
        calque.block_until_ready(calque.jit(lambda x: calque.pure_callback(fail, result, x))(1.0))
    (record,) = caplog.records
    assert (record.name, record.getMessage()) == (
        "jax._src.callback",
        "jax.pure_callback failed",
    )

"""Flags: names in both spellings, choices, overrides."""

import pytest

import calque


def test_both_spellings():
    assert (
        calque.config.read("calque_enable_x64") is False and calque.config.jax_enable_x64 is False
    )
    with calque.config.override("jax_enable_x64", True):
        assert calque.config.calque_enable_x64 is True
    assert calque.config.enable_x64 is False


def test_what_does_not_exist_is_refused():
    with pytest.raises(AttributeError, match="Unrecognized config option: calque_nonsense"):
        calque.config.update("calque_nonsense", 1)
    with pytest.raises(ValueError, match="must be one of 'standard', 'strict'"):
        calque.config.update("calque_numpy_dtype_promotion", "loose")
    with pytest.raises(ValueError, match="must be a bool"):
        calque.config.update("calque_enable_x64", "yes")


def test_a_flag_changes_the_key_of_traces():
    before = calque.config.trace_key()
    with calque.config.override("calque_exact", True):
        assert calque.config.trace_key() != before
    assert calque.config.trace_key() == before

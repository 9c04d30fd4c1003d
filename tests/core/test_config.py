"""Flags: names in both spellings, choices, overrides."""

import pytest

import calque
from calque.core.config import _CHOICES


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


@pytest.mark.parametrize("kind", ["philox4x32", "philox2x32", "threefry4x32"])
def test_kinds_of_keys_that_do_not_exist_are_no_default(kind):
    with pytest.raises(ValueError, match=r"default_prng_impl must be one of 'threefry2x32', 'rbg'"):
        calque.config.update("calque_default_prng_impl", kind)
    with pytest.raises(ValueError, match=kind):
        calque.default_prng_impl(kind).__enter__()


def test_every_kind_of_key_that_is_allowed_makes_keys():
    for kind in _CHOICES["default_prng_impl"]:
        with calque.default_prng_impl(kind):
            assert calque.random.uniform(calque.random.key(0), (2,)).shape == (2,)


def test_options_that_an_engine_heeds_are_not_called_without_effect(caplog):
    before = calque.config.jax_enable_compilation_cache
    try:
        calque.config.update("jax_enable_compilation_cache", not before)
        assert calque.config.jax_enable_compilation_cache is not before
    finally:
        calque.config.update("jax_enable_compilation_cache", before)
    assert "no effect" not in caplog.text

"""Configuration names that programs set for JAX's other machines."""

import logging

import pytest

import calque
from calque.core.foreign_flags import FOREIGN, NOT_OFFERED


def test_ordinary_lines_of_set_up(caplog):
    with caplog.at_level(logging.WARNING, "calque"):
        calque.config.update("jax_platform_name", "cpu")
    assert calque.config.jax_platform_name == "cpu" and not caplog.records
    calque.config.update("jax_platform_name", "")


def test_every_name_has_a_value_and_takes_it():
    for name, value in FOREIGN.items():
        assert getattr(calque.config, f"jax_{name}") == value
        assert calque.config.read(f"calque_{name}") == value
        calque.config.update(f"jax_{name}", value)
        assert calque.config.values[f"calque_{name}"] == value


def test_what_has_no_effect_says_so_once(caplog):
    name = "jax_persistent_cache_min_compile_time_secs"
    before = calque.config.read(name)
    with caplog.at_level(logging.WARNING, "calque"):
        for seconds in (0.5, 0.25):
            calque.config.update(name, seconds)
            assert calque.config.read(name) == seconds
    calque.config.update(name, before)
    assert [r.getMessage() for r in caplog.records] == [
        "calque_persistent_cache_min_compile_time_secs is accepted, and has no effect here"
    ]


def test_what_would_change_results_is_refused():
    for name, remedy in NOT_OFFERED.items():
        with pytest.raises(NotImplementedError, match=remedy.split()[0]):
            calque.config.update(f"jax_{name}", 17)
        assert calque.config.read(name) == FOREIGN[name]


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="Unrecognized"):
        calque.config.update("jax_no_such_thing", True)
    with pytest.raises(AttributeError, match="Unrecognized"):
        calque.config.no_such_thing

"""Flags under the names of `jax._src.config`."""

import pytest

from calque.compat.private import config


def test_flags_are_values_and_blocks():
    before = config.enable_x64.value
    with config.jax_enable_x64(True):
        assert config.jax_enable_x64.value and config.enable_x64.value
    assert config.enable_x64.value == before
    with config.jax_export_calling_convention_version(10):
        assert config.jax_export_calling_convention_version.value == 10
    with pytest.raises(NotImplementedError, match="version 10"):
        config.jax_export_calling_convention_version(9).__enter__()
    with pytest.raises(AttributeError, match="no_such_flag"):
        config.no_such_flag

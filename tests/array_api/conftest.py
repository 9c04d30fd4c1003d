"""The standard's default dtypes are those of 64 bits."""

import pytest

import calque


@pytest.fixture(autouse=True)
def wide():
    with calque.config.override("calque_enable_x64", True):
        yield

"""Options and fixtures of all tests."""

import os

import pytest

os.environ.setdefault("CALQUE_VERIFY_KERNELS", "1")  # a malformed kernel is reported, not run


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--update-golden"):
        os.environ["CALQUE_UPDATE_GOLDEN"] = "1"

"""Options and fixtures of all tests."""

import os

import pytest

from tests.xla.exceptions import EXCEPTIONS

os.environ.setdefault("CALQUE_VERIFY_KERNELS", "1")  # a malformed kernel is reported, not run


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--update-golden"):
        os.environ["CALQUE_UPDATE_GOLDEN"] = "1"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where another engine is chosen, what only calque's own does is left out."""
    if not os.environ.get("CALQUE_PLATFORMS", "").startswith("xla"):
        return
    for item in items:
        file, test = item.nodeid.partition("::")[0], item.nodeid.partition("[")[0]
        known = (EXCEPTIONS.get(name) for name in (item.nodeid, test, file))
        reason = next((r for r in known if r is not None), None)
        if reason is not None:
            item.add_marker(pytest.mark.skip(reason=reason))

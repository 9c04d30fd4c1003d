"""Options and fixtures of all tests."""

import gc
import itertools
import os
from collections.abc import Iterator
from typing import Any

import pytest

os.environ.setdefault("CALQUE_VERIFY_KERNELS", "1")  # a malformed kernel is reported, not run
# no other thread compiles while a test counts
os.environ.setdefault("CALQUE_QUICK_FIRST_CALLS", "0")

import calque
from calque.core.devices import accelerators_here
from tests.xla.exceptions import EXCEPTIONS

if accelerators_here() and not os.environ.get("CALQUE_PLATFORMS"):
    os.environ["CALQUE_PLATFORMS"] = "cpu"  # of the processes that tests start
    calque.config.update("calque_platforms", "cpu")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--update-golden"):
        os.environ["CALQUE_UPDATE_GOLDEN"] = "1"


FILES_BETWEEN_CLEANINGS = 40
files_begun = itertools.count(1)


@pytest.fixture(scope="module", autouse=True)
def few_objects_to_look_through() -> None:
    """Collections of garbage look only at what the tests of one file make, and what earlier files
    compiled is forgotten now and then: else each of the thousands of collections, and each profile,
    looks through the millions of objects of all files before it."""
    if next(files_begun) % FILES_BETWEEN_CLEANINGS == 0:
        gc.unfreeze()
        calque.clear_caches()
    gc.collect()
    gc.freeze()


@pytest.fixture
def no_garbage() -> Iterator[None]:
    """For tests that count blocks of memory: what earlier tests left does not go meanwhile."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


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


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Every process of a run has the same files in the same order each time, so that a failure that
    depends on what ran before it comes back."""
    if config.getoption("dist") != "load":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class EveryNthFile(LoadScopeScheduling):
        """Files are dealt out like cards."""

        parts: dict[str, str]

        def schedule(self) -> None:
            (collection, *_) = self.registered_collections.values()
            files = dict.fromkeys(nodeid.partition("::")[0] for nodeid in collection)
            self.parts = {file: f"part {i % self.numnodes}" for i, file in enumerate(files)}
            super().schedule()

        def remove_node(self, node: Any) -> str | None:
            units = list(self.assigned_work[node].values())
            crashed: str | None = super().remove_node(node)
            for unit in units:  # the process that takes its place goes on behind it
                if crashed in unit:
                    unit[crashed] = True
            return crashed

        def _split_scope(self, nodeid: str) -> str:
            return self.parts[nodeid.partition("::")[0]]

    return EveryNthFile(config, log)

"""Programs that are compiled in a hurry, for the tests of what that means."""

from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakValueDictionary

import pytest

from calque.core.backends import Options
from calque.machine.caches import Entries
from calque.machine.code import diskcache
from calque.native import backend, executable
from calque.native.emit import kernels, making, modules, objects
from calque.native.executable import NativeExecutable
from tests.native.programs import traced


@pytest.fixture
def in_haste(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Iterator[None]:
    """No kernel is known, little is much, there is another thread, and each kernel is worth
    haste."""
    if not modules.has_quick_code():
        pytest.skip("LLVM's lowest level gives other bits on this processor")
    monkeypatch.setenv("CALQUE_CACHE_DIR", str(tmp_path))
    diskcache.reload()
    monkeypatch.setattr(making, "_MUCH", 1)
    monkeypatch.setattr(kernels, "_codes", Entries(1000))
    monkeypatch.setattr(objects, "linked", WeakValueDictionary())
    monkeypatch.setattr(executable, "brief", lambda steps, sizes: set())
    for module in (making, modules, executable):
        monkeypatch.setattr(module, "get_num_threads", lambda: 2)
    yield
    monkeypatch.undo()
    diskcache.reload()


def hasty(fun: Callable[..., Any], *args: Any) -> NativeExecutable:
    """The program of a function of arrays, compiled in a hurry."""
    return backend.compile(traced(fun, *args), Options(hasty=True))

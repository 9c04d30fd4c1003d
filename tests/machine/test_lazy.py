"""Modules that are imported when they are used."""

import os
import sys
import types

import pytest

from calque.machine import lazy
from calque.machine.lazy import LazyModule, imported


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "calque_lazy_example.py").write_text("value = 3\nseen = []\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield LazyModule("calque_lazy_example")
    sys.modules.pop("calque_lazy_example", None)


def test_it_is_imported_when_an_attribute_is_asked_for(module):
    assert "calque_lazy_example" not in sys.modules and "imported when used" in repr(module)
    assert module.value == 3 and isinstance(sys.modules["calque_lazy_example"], types.ModuleType)
    assert module.__dict__["value"] == 3  # and found at once from now on
    with pytest.raises(AttributeError):
        _ = module.nonsense


def test_imports_under_way_are_counted(tmp_path, monkeypatch):
    (tmp_path / "calque_lazy_watch.py").write_text(
        "import calque.machine.lazy as lazy\nunder_way = dict(lazy._importing)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    found = imported("calque_lazy_watch")
    assert list(found.under_way.values()) == [1] and not lazy._importing
    with pytest.raises(ModuleNotFoundError):
        imported("calque_lazy_nowhere")
    assert not lazy._importing


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks are POSIX")
@pytest.mark.filterwarnings("ignore")  # a peer that was imported before warns of any fork
def test_a_fork_waits_for_no_import_of_its_own_thread(tmp_path, monkeypatch):
    (tmp_path / "calque_lazy_fork.py").write_text(
        "import os\npid = os.fork()\nif pid == 0:\n    os._exit(7)\n"
        "status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert imported("calque_lazy_fork").status == 7

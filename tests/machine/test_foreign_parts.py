"""Real parts of packages whose name calque answers for."""

import importlib
import sys
import threading

import pytest

from calque.compat.switch import ModuleFinder
from calque.machine import foreign_parts


@pytest.fixture
def opened(monkeypatch, tmp_path):
    monkeypatch.setattr(foreign_parts._open, "value", {})
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "__init__.py").write_text("")
    (tmp_path / "parts" / "engine.py").write_text("SPEED = 3\n")
    return str(tmp_path)


def test_folders_of_packages(opened):
    assert foreign_parts.folder_of("jaxlib") is None
    foreign_parts.open_package("jaxlib", opened)
    foreign_parts.open_package("other", "/elsewhere")
    assert foreign_parts.folder_of("jaxlib") == opened
    foreign_parts.open_package("jaxlib", "/moved")
    assert foreign_parts.folder_of("jaxlib") == "/moved"


def test_the_finder_looks_there_for_what_calque_lacks(opened):
    with pytest.raises(ModuleNotFoundError, match=r"jaxlib.parts"):
        ModuleFinder().find_spec("jaxlib.parts.engine")
    foreign_parts.open_package("jaxlib", opened)
    spec = ModuleFinder().find_spec("jaxlib.parts.engine")
    assert spec.origin.endswith("engine.py")
    with pytest.raises(ModuleNotFoundError):
        ModuleFinder().find_spec("jaxlib.parts.missing")
    assert ModuleFinder().find_spec("jaxlib.version").loader is not None  # its own comes first
    assert ModuleFinder().find_spec("numpy") is None


def test_what_is_withheld_is_not_imported_by_this_thread(tmp_path, monkeypatch):
    (tmp_path / "withheld_for_a_test").mkdir()
    (tmp_path / "withheld_for_a_test" / "part.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    with foreign_parts.withheld("withheld_for_a_test"):
        with pytest.raises(ModuleNotFoundError, match="withheld_for_a_test"):
            importlib.import_module("withheld_for_a_test.part")
        other = threading.Thread(target=importlib.import_module, args=["withheld_for_a_test.part"])
        other.start()
        other.join()
        assert "withheld_for_a_test.part" in sys.modules
    importlib.import_module("withheld_for_a_test")
    with foreign_parts.withheld("other"):
        assert importlib.import_module("withheld_for_a_test.part") is not None

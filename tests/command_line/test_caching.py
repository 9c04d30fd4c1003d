"""`cache`."""

import pytest

from calque.command_line.commands import main
from calque.machine.code import diskcache


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("CALQUE_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("CALQUE_CACHE", raising=False)
    diskcache.reload()
    yield str(tmp_path)
    monkeypatch.undo()
    diskcache.reload()


def test_where_how_large_and_clear(folder, capsys):
    diskcache.put("key", "kind", b"x" * 1000)
    assert main(["cache", "where"]) == 0 and capsys.readouterr().out.startswith(folder)
    assert main(["cache", "size"]) == 0 and int(capsys.readouterr().out) > 1000
    assert main(["cache"]) == 0 and "1.0 KiB" in capsys.readouterr().out
    assert main(["cache", "clear"]) == 0 and diskcache.size() == 0


def test_warm_compiles_what_programs_need(folder, capsys):
    assert main(["cache", "warm"]) == 0
    assert "the cache holds" in capsys.readouterr().err
    assert main(["cache", "warm", "no_such_file.py"]) == 2
    assert "no file" in capsys.readouterr().err


def test_no_cache(monkeypatch, capsys):
    monkeypatch.setenv("CALQUE_CACHE", "off")
    diskcache.reload()
    assert main(["cache"]) == 1 and "turns it off" in capsys.readouterr().err
    monkeypatch.undo()
    diskcache.reload()

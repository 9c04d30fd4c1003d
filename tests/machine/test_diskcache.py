"""The disk cache: whole entries or none, whatever happens to the files."""

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from calque.machine.code import diskcache

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("CALQUE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("CALQUE_CACHE", raising=False)
    monkeypatch.delenv("CALQUE_CACHE_SIZE", raising=False)
    diskcache.reload()
    yield tmp_path / "cache"
    monkeypatch.undo()
    diskcache.reload()


def files(cache: Path) -> list[Path]:
    return [path for path in cache.rglob("*") if path.is_file()]


def test_what_was_put_is_got(cache: Path) -> None:
    assert diskcache.get("a", "object") is None
    diskcache.put("a", "object", b"data")
    diskcache.put("a", "text", b"other")
    diskcache.put("b", "object", b"")
    assert diskcache.get("a", "object") == b"data"
    assert diskcache.get("a", "text") == b"other"
    assert diskcache.get("b", "object") == b""
    assert diskcache.directory() == str(cache / "v1")
    diskcache.put("a", "object", b"newer")
    assert diskcache.get("a", "object") == b"newer"
    diskcache.clear()
    assert diskcache.get("a", "object") is None and diskcache.size() == 0


@posix
def test_permissions_are_the_users_alone(cache: Path) -> None:
    diskcache.put("a", "object", b"data")
    assert stat.S_IMODE((cache / "v1").stat().st_mode) == 0o700
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in files(cache))


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "foreign", "append", "header"])
def test_damaged_entries_are_no_entries_and_are_replaced(cache: Path, damage: str) -> None:
    diskcache.put("a", "object", b"data" * 100)
    (path,) = files(cache)
    blob = bytearray(path.read_bytes())
    if damage == "truncate":
        del blob[-1:]
    elif damage == "flip":
        blob[200] ^= 1
    elif damage == "empty":
        blob.clear()
    elif damage == "foreign":
        blob[:] = b"\x7fELF" + bytes(500)
    elif damage == "append":
        blob += b"x"
    else:
        del blob[10:]
    path.write_bytes(blob)
    assert diskcache.get("a", "object") is None
    diskcache.put("a", "object", b"data" * 100)
    assert diskcache.get("a", "object") == b"data" * 100


def test_an_entry_under_another_name_is_refused(cache: Path) -> None:
    diskcache.put("a", "object", b"data")
    (first,) = files(cache)
    diskcache.put("b", "object", b"other")
    (second,) = [path for path in files(cache) if path != first]
    second.write_bytes(first.read_bytes())
    assert diskcache.get("b", "object") is None


@posix
def test_a_file_writable_by_others_is_refused(cache: Path) -> None:
    diskcache.put("a", "object", b"data")
    (path,) = files(cache)
    path.chmod(0o666)
    assert diskcache.get("a", "object") is None


@posix
def test_a_symbolic_link_is_refused(cache: Path, tmp_path: Path) -> None:
    diskcache.put("a", "object", b"data")
    (path,) = files(cache)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert diskcache.get("a", "object") is None


@posix
@pytest.mark.parametrize("folder", ["v1", "v1/7"])
def test_a_directory_writable_by_others_is_not_used(cache: Path, folder: str) -> None:
    diskcache.put("a", "object", b"data")
    (cache / folder).chmod(0o777)
    diskcache.reload()
    assert diskcache.directory() is None
    assert "writable by others" in diskcache.reason()
    assert diskcache.get("a", "object") is None
    diskcache.put("a", "object", b"data")


@posix
def test_a_directory_of_another_user_is_not_used(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    diskcache.put("a", "object", b"data")
    diskcache.reload()
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert diskcache.directory() is None
    assert "another user" in diskcache.reason()


def test_a_place_where_no_directory_can_be_made_turns_the_cache_off(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CALQUE_CACHE_DIR", str(tmp_path / "file" / "cache"))
    diskcache.reload()
    assert diskcache.get("a", "object") is None
    diskcache.put("a", "object", b"data")
    assert diskcache.directory() is None and diskcache.reason()


def test_a_disk_that_refuses_to_be_written_does_no_harm(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    diskcache.put("a", "object", b"data")

    def refuse(*args: object) -> None:
        raise OSError(28, "no space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    diskcache.put("b", "object", b"data")
    monkeypatch.undo()
    assert len(files(cache)) == 1


@pytest.mark.parametrize("word", ["off", "0", "OFF"])
def test_it_can_be_turned_off(cache: Path, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.setenv("CALQUE_CACHE", word)
    diskcache.reload()
    diskcache.put("a", "object", b"data")
    assert diskcache.get("a", "object") is None and not files(cache)


def test_its_size_is_bounded_and_the_least_recently_used_go_first(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALQUE_CACHE_SIZE", "512K")
    diskcache.reload()
    diskcache.put("kept", "object", bytes(1000))
    (path,) = files(cache)
    os.utime(path, (4e9, 4e9))
    for number in range(200):
        diskcache.put(str(number), "object", bytes(8000))
    assert diskcache.size() <= (512 << 10) + 16 * 16 * 8000
    assert len(files(cache)) < 150
    assert diskcache.get("kept", "object") == bytes(1000)
    diskcache.put("too large", "object", bytes(40000))
    assert diskcache.get("too large", "object") is None


def test_reading_an_old_entry_notes_its_use(cache: Path) -> None:
    diskcache.put("a", "object", b"data")
    (path,) = files(cache)
    os.utime(path, (1e9, 1e9))
    assert diskcache.get("a", "object") == b"data"
    assert path.stat().st_mtime > 1.5e9


def test_kinds_are_names(cache: Path) -> None:
    with pytest.raises(ValueError, match="identifier"):
        diskcache.put("a", "../x", b"")


WRITER = """
import sys
from calque.machine.code import diskcache
for turn in range(60):
    for key in range(5):
        diskcache.put(str(key), "pages", (str(key) * 5000).encode())
        found = diskcache.get(str(key), "pages")
        assert found == (str(key) * 5000).encode(), (key, found)
"""


def test_two_processes_writing_at_once_do_no_harm(cache: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    writers = [subprocess.Popen([sys.executable, "-c", WRITER], env=environment) for _ in range(2)]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    assert len([p for p in files(cache) if p.suffix == ".pages"]) == 5

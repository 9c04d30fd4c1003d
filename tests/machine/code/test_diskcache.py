"""The disk cache: whole entries or none, whatever happens to the files."""

import logging
import os
import random
import signal
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


def test_the_first_process_knows_that_it_is(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It makes the directory; without one every process is the first."""
    assert diskcache.is_new() and diskcache.is_new()
    diskcache.reload()
    assert not diskcache.is_new()
    monkeypatch.setenv("CALQUE_CACHE", "off")
    diskcache.reload()
    assert diskcache.is_new()


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


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="a folder that takes no others")
def test_a_folder_that_takes_no_others_turns_the_cache_off(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("CALQUE_CACHE_DIR", "/proc/calque/cache")
    diskcache.reload()
    with caplog.at_level(logging.WARNING, logger="calque"):
        assert not diskcache.directory()
        diskcache.put("a", "object", b"data")
    assert diskcache.get("a", "object") is None
    monkeypatch.undo()
    diskcache.reload()


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


def test_a_folder_of_many_entries_is_looked_through_less_often(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    monkeypatch.setattr(
        diskcache, "_entries", lambda path: looked.append(path) or [(1e9, 1, "x")] * 16000
    )
    for number in range(16 + 1000):
        diskcache.put(str(number), "object", b"data")
    assert 1 <= len(looked) <= 2
    diskcache.reload()
    monkeypatch.setattr(diskcache, "_entries", lambda path: looked.append(path) or [])
    looked.clear()
    for number in range(16 * 10):
        diskcache.put(str(number), "object", b"data")
    assert len(looked) == 10


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


@posix
def test_processes_of_one_number_do_not_share_temporary_files(
    cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As two containers have them that share a directory: one writes while the other is at it."""
    opened: list[str] = []
    real = os.open

    def noted(path: str, flags: int, *mode: int) -> int:
        opened.append(path)
        return real(path, flags, *mode)

    monkeypatch.setattr(os, "open", noted)
    write = (
        "import os, sys; os.getpid = lambda: 7\n"
        "from calque.machine.code import diskcache\n"
        "real = os.open\n"
        "os.open = lambda path, *more: (print(path), real(path, *more))[1]\n"
        "diskcache.put('a', 'object', b'data')"
    )
    monkeypatch.setattr(os, "getpid", lambda: 7)
    diskcache.put("a", "object", b"data")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", write], env=environment, capture_output=True, text=True, check=True
    )
    assert opened and not set(opened) & set(done.stdout.split()) and not told(caplog)


@posix
def test_an_entry_of_another_user_is_not_read(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    diskcache.put("a", "object", b"data")
    monkeypatch.setattr(os, "getuid", lambda: 12345)  # the directory was looked at before
    assert diskcache.get("a", "object") is None


def test_two_processes_writing_at_once_do_no_harm(cache: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    writers = [subprocess.Popen([sys.executable, "-c", WRITER], env=environment) for _ in range(2)]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    assert len([p for p in files(cache) if p.suffix == ".pages"]) == 5


# ---------------------------------------------------------------- who may write where


@posix
@pytest.mark.parametrize("umask", [0o000, 0o002, 0o022, 0o077])
def test_folders_are_the_users_alone_whatever_the_umask(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, umask: int
) -> None:
    monkeypatch.setenv("CALQUE_CACHE_DIR", str(tmp_path / "several" / "new" / "folders"))
    diskcache.reload()
    before = os.umask(umask)
    try:
        diskcache.put("a", "object", b"data")
    finally:
        os.umask(before)
    made = [p for p in (tmp_path / "several", *(tmp_path / "several").rglob("*")) if p.is_dir()]
    assert len(made) == 3 + 1 + 16
    assert all(stat.S_IMODE(p.stat().st_mode) & 0o077 == 0 for p in made)


@posix
@pytest.mark.parametrize(("mode", "used"), [(0o777, False), (0o770, False), (0o1777, True)])
def test_the_folder_around_it(cache: Path, mode: int, used: bool) -> None:
    """Where others may rename things they could put another directory in its place."""
    diskcache.put("a", "object", b"data")
    cache.chmod(mode)
    diskcache.reload()
    assert (diskcache.directory() is not None) == used
    assert used or "which it stands in, is writable by others" in diskcache.reason()


@posix
@pytest.mark.parametrize(("mode", "used"), [(0o777, False), (0o775, True), (0o1777, True)])
def test_a_folder_further_up(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, mode: int, used: bool
) -> None:
    place = tmp_path / "shared" / "mine" / "cache"
    place.mkdir(parents=True, mode=0o700)
    place.parent.chmod(0o700)
    place.parent.parent.chmod(mode)
    monkeypatch.setenv("CALQUE_CACHE_DIR", str(place))
    diskcache.reload()
    assert (diskcache.directory() is not None) == used


@posix
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_modes_of_entries(cache: Path, mode: int) -> None:
    diskcache.put("a", "object", b"data")
    (path,) = files(cache)
    path.chmod(mode)
    assert diskcache.get("a", "object") is None
    diskcache.put("a", "object", b"data")
    assert diskcache.get("a", "object") == b"data"


# ---------------------------------------------------------------- what stands there


@posix
@pytest.mark.parametrize("kind", ["pipe", "directory", "device", "dangling link", "socket"])
def test_what_is_no_plain_file_is_no_entry(cache: Path, kind: str) -> None:
    diskcache.put("a", "object", b"data")
    (path,) = files(cache)
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path, 0o600)
    elif kind == "directory":
        path.mkdir(0o700)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "dangling link":
        path.symlink_to(cache / "nothing")
    else:
        made = "import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])"
        subprocess.run([sys.executable, "-c", made, path.name], cwd=path.parent, check=True)
    assert diskcache.get("a", "object") is None
    diskcache.put("a", "object", b"data")
    assert diskcache.get("a", "object") == (None if kind == "directory" else b"data")


def test_what_is_larger_than_an_entry_may_be_is_not_read(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    diskcache.put("a", "object", b"data")
    (path,) = files(cache)
    os.truncate(path, 1 << 40)  # sparse: nobody can read that
    asked: list[int] = []
    read = os.read
    monkeypatch.setattr(os, "read", lambda handle, n: (asked.append(n), read(handle, n))[1])
    assert diskcache.get("a", "object") is None
    assert not asked


def test_every_byte_counts(cache: Path) -> None:
    data = bytes(range(40))
    diskcache.put("a", "object", data)
    (path,) = files(cache)
    whole = path.read_bytes()
    for at in range(len(whole)):
        for changed in (
            whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :],
            whole[:at],
            whole[:at] + whole[at + 1 :],
        ):
            path.write_bytes(changed)
            assert diskcache.get("a", "object") is None, at
    path.write_bytes(whole + b"\0")
    assert diskcache.get("a", "object") is None
    path.write_bytes(whole)
    assert diskcache.get("a", "object") == data


# ---------------------------------------------------------------- nothing is said twice, or never


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name == "calque"]


def test_that_nothing_can_be_kept_is_said_once(
    tmp_path: Path,
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CALQUE_CACHE_DIR", str(tmp_path / "file" / "cache"))
    diskcache.reload()
    with caplog.at_level(logging.WARNING):
        assert diskcache.get("a", "object") is None
        assert not told(caplog)  # who compiles nothing loses nothing
        for _ in range(3):
            diskcache.put("a", "object", b"data")
    (message,) = told(caplog)
    assert str(tmp_path / "file") in message and "CALQUE_CACHE_DIR" in message


def test_a_full_disk_is_said_once(
    cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*args: object) -> None:
        raise OSError(28, "no space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with caplog.at_level(logging.WARNING):
        for key in "abc":
            diskcache.put(key, "object", b"data")
    (message,) = told(caplog)
    assert "no space left on device" in message


@pytest.mark.parametrize("word", ["off", "0"])
def test_who_wants_no_cache_is_told_nothing(
    cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, word: str
) -> None:
    monkeypatch.setenv("CALQUE_CACHE", word)
    diskcache.reload()
    with caplog.at_level(logging.WARNING):
        diskcache.put("a", "object", b"data")
    assert not told(caplog)


# ---------------------------------------------------------------- killed at any moment

WORK = """
import sys, calque as jax, calque.numpy as jnp
n = int(sys.argv[1])
def f(x):
    for k in range(6):
        x = jnp.sin(x * (k + n)) + jnp.cumsum(x) / (n + 1)
    return x.sum()
print(float(jax.jit(f)(jnp.arange(50.0))), jnp.sort(jnp.arange(9) % 4)[-1])
"""


@posix
def test_processes_killed_while_they_fill_one_directory(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "CALQUE_CACHE_DIR": str(tmp_path / "cache"),
    }

    def start(n: int, cache: str = "on") -> subprocess.Popen[str]:
        command = [sys.executable, "-c", WORK, str(n)]
        return subprocess.Popen(
            command, env={**environment, "CALQUE_CACHE": cache}, stdout=subprocess.PIPE, text=True
        )

    want = {n: start(n, "off").communicate(timeout=120)[0] for n in (1, 2)}
    rng = random.Random(5)
    for _ in range(5):
        running = [start(1 + k % 2) for k in range(4)]
        for process in running:
            try:
                process.wait(rng.uniform(0, 1.2))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
        for process in running:
            process.communicate(timeout=120)
    for n in (1, 2, 1, 2):
        done = start(n)
        assert done.communicate(timeout=120)[0] == want[n]
        assert done.returncode == 0

"""Artefacts that outlive the process: compiled objects and whatever else is a pure function of its
key.

``CALQUE_CACHE_DIR`` says where, ``CALQUE_CACHE=off`` says not at all, ``CALQUE_CACHE_SIZE`` bounds
the bytes (``512M`` unless told; suffixes K, M, G). Entries are executed as machine code, so only a
directory and files that nobody else can write to are used (``SECURITY.md`` tells what is checked).
Nothing that happens here may break a program: an entry that cannot be read is no entry, one that
cannot be written is not written, which is said once, since every process then compiles anew.

One small file per entry: opening and checking one takes about 30 µs, which is little beside linking
it, so a packed file would gain nothing. Files stand in 16 folders, each bounded by a sixteenth of
the size, so that looking for the least recently used reads one folder only.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import time
from typing import Any, Final

from calque.machine import variables
from calque.machine.code.digest import BYTES, hexdigest
from calque.machine.code.digest import digest as digest_of
from calque.machine.lazy import LazyModule
from calque.machine.state import ProcessValue, process

logging: Any = LazyModule("logging")

_MAGIC = b"calque\x00\x02"
_HEADER = len(_MAGIC) + BYTES
_SHARDS = 16
_WRITES_PER_CHECK = 16
# an entry's time of use is noted once an hour: writing it at each read would cost more than reading
_TOUCH_SECONDS = 3600.0
_STALE_SECONDS = 3600.0
_DEFAULT_SIZE = 512 << 20
_TURNED_OFF, _NO_ROOM = "CALQUE_CACHE turns it off", "CALQUE_CACHE_SIZE leaves no room"
_WANTED = (_TURNED_OFF, _NO_ROOM)  # reasons that the user has chosen


class _Folder:
    """Where entries are kept, or why there is no such place."""

    def __init__(self, path: str | None, reason: str, limit: int = 0) -> None:
        self.path, self.reason, self.limit = path, reason, limit
        self.told = False  # that nothing can be kept
        self.is_new = False  # made by this process
        # until a shard is looked through; the number of the process staggers it, so that many short
        # processes together look as often as one long one
        self.writes_left = 1 + os.getpid() % _WRITES_PER_CHECK
        self.bytes_written = [0] * _SHARDS


_folder: Final[ProcessValue[_Folder | None]] = process.value("folder of the disk cache", None)

_VARIABLE: Final = "CALQUE_CACHE_DIR"
_before: Final[ProcessValue[str | None]] = process.value("folder of the disk cache at first", None)


def get(key: str, kind: str) -> bytes | None:
    """The entry of this key, if a whole and unaltered one is there."""
    folder = _current()
    if folder.path is None:
        return None
    digest = _digest(key, kind)
    try:
        blob = _read(_path(folder.path, digest, kind), folder.limit // _SHARDS)
    except OSError:
        return None
    data = blob[_HEADER:]
    if len(blob) < _HEADER or blob[:_HEADER] != _MAGIC + _checksum(digest, data):
        return None
    return data


def put(key: str, kind: str, data: bytes) -> None:
    """Store an entry, or quietly do not."""
    folder = _current()
    if folder.path is None:
        if folder.reason not in _WANTED:
            _tell(folder, folder.reason)
        return
    if len(data) + _HEADER > folder.limit // _SHARDS:
        return
    digest = _digest(key, kind)
    path = _path(folder.path, digest, kind)
    try:
        _write(path, _MAGIC + _checksum(digest, data) + data)
        _bound(folder, int(digest[0], 16), os.path.dirname(path), len(data) + _HEADER)
    except OSError as error:
        _tell(folder, f"{folder.path}: {error.strerror or error}")


def _tell(folder: _Folder, why: str) -> None:
    """Say once that nothing is kept."""
    if folder.told:
        return
    folder.told = True
    logging.getLogger("calque").warning(
        "calque cannot keep compiled code on disk, so that every process compiles anew, which takes"
        " seconds: %s. Let CALQUE_CACHE_DIR name a directory that you alone can write to, or say"
        " CALQUE_CACHE=off.",
        why,
    )


def directory() -> str | None:
    """Where entries are kept; None when the cache is off (``reason`` then says why)."""
    return _current().path


def reason() -> str:
    """Why there is no cache, or the empty string."""
    return _current().reason


def reload() -> None:
    """Read the environment again."""
    _folder.value = None


def keep_at(path: str | os.PathLike[str] | None) -> None:
    """Keep entries in this directory from here on, also in processes started later; None is where
    they were kept before anybody asked."""
    before = _before.value
    if before is None:
        before = _before.value = os.environ.get(_VARIABLE, "")
    os.environ[_VARIABLE] = before if path is None else os.fspath(path)
    reload()


def is_new() -> bool:
    """Whether this process is the first one here: it has made the directory, or has none."""
    folder = _current()
    return folder.is_new or folder.path is None


def clear() -> None:
    """Delete every entry."""
    folder = _current()
    if folder.path is None:
        return
    for shard in range(_SHARDS):
        for entry in _entries(os.path.join(folder.path, f"{shard:x}")):
            _remove(entry[2])


def size() -> int:
    """The bytes that all entries take."""
    folder = _current()
    if folder.path is None:
        return 0
    return sum(
        entry[1]
        for shard in range(_SHARDS)
        for entry in _entries(os.path.join(folder.path, f"{shard:x}"))
    )


def _current() -> _Folder:
    folder = _folder.value
    if folder is None:
        folder = _folder.value = _open_folder()
    return folder


def _open_folder() -> _Folder:
    if variables.choice("CALQUE_CACHE", (*variables.ON, *variables.OFF)) in variables.OFF:
        return _Folder(None, _TURNED_OFF)
    limit = variables.size("CALQUE_CACHE_SIZE", _DEFAULT_SIZE)
    if limit <= 0:
        return _Folder(None, _NO_ROOM)
    explicit = os.environ.get(_VARIABLE, "")
    base = explicit or _platform_folder()
    if not base:
        return _Folder(None, "no home directory of this user")
    path = os.path.realpath(os.path.join(base, "v1"))
    was_there = os.path.isdir(path)
    try:
        problem = _made(path) or _open_to_all(path)
    except OSError as error:
        return _Folder(None, f"{path}: {error.strerror or error}")
    if problem:
        return _Folder(None, f"{path}: {problem}")
    folder = _Folder(path, "", limit)
    folder.is_new = not was_there
    return folder


def _made(path: str) -> str:
    """Make the folders that are not there; why they must not be trusted, or the empty string."""
    try:
        return _unsafe(path)
    except FileNotFoundError:
        _make_folders(path)
        for shard in range(_SHARDS):
            os.makedirs(os.path.join(path, f"{shard:x}"), mode=0o700, exist_ok=True)
        return _unsafe(path)


def _make_folders(path: str) -> None:
    """Make a folder and those around it; nobody else can write to any that is made here, whatever
    the umask."""
    if not os.path.isdir(os.path.dirname(path)):
        _make_folders(os.path.dirname(path))
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700)


def _platform_folder() -> str:
    """The user's cache directory; none when the home belongs to somebody else (a program run as
    another user must not leave files there)."""
    home = os.path.expanduser("~")
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA", "")
        return os.path.join(local, "calque", "cache") if local else ""
    if os.environ.get("XDG_CACHE_HOME", "").startswith("/") and sys.platform != "darwin":
        return os.path.join(os.environ["XDG_CACHE_HOME"], "calque")
    try:
        if not home.startswith("/") or os.stat(home).st_uid != os.getuid():
            return ""
    except OSError:
        return ""
    return os.path.join(
        home, "Library/Caches/calque" if sys.platform == "darwin" else ".cache/calque"
    )


def _unsafe(path: str) -> str:
    """Why a directory (or one of its folders) must not be trusted, or the empty string."""
    if sys.platform == "win32":
        return ""
    for name in [path, *(os.path.join(path, f"{shard:x}") for shard in range(_SHARDS))]:
        status = os.lstat(name)
        if not stat.S_ISDIR(status.st_mode):
            return f"{name} is not a directory"
        if status.st_uid != os.getuid():
            return f"{name} belongs to another user"
        if status.st_mode & 0o022:
            return f"{name} is writable by others"
    return ""


def _open_to_all(path: str) -> str:
    """Why somebody else could put another directory in the place of this one, or the empty string:
    the folder around it, or one further up, where others may rename what is not theirs."""
    if sys.platform == "win32":
        return ""
    forbidden = stat.S_IWOTH | stat.S_IWGRP
    while path != os.path.dirname(path):
        path = os.path.dirname(path)
        mode = os.stat(path).st_mode
        if mode & forbidden and not mode & stat.S_ISVTX:
            return f"{path}, which it stands in, is writable by others"
        forbidden = stat.S_IWOTH  # many homes belong to a group of their user alone
    return ""


def _digest(key: str, kind: str) -> str:
    if not kind.isidentifier():
        raise ValueError(f"a kind of cache entry is named like an identifier, not {kind!r}")
    return hexdigest(f"{kind}\0{key}")


def _checksum(digest: str, data: bytes) -> bytes:
    return digest_of(digest.encode() + data)


def _path(root: str, digest: str, kind: str) -> str:
    return f"{root}/{digest[0]}/{digest[1:41]}.{kind}"


def _read(path: str, most: int) -> bytes:
    """The bytes of a plain file of the user's own that nobody else can write to, of at most so many
    bytes; nothing of any other."""
    handle = os.open(
        path,
        os.O_RDONLY
        | getattr(os, "O_NOFOLLOW", 0)
        | getattr(os, "O_NONBLOCK", 0)  # a pipe has no writer to wait for
        | getattr(os, "O_CLOEXEC", 0)
        | getattr(os, "O_BINARY", 0),
    )
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_size > most:
            return b""
        if sys.platform != "win32" and (status.st_uid != os.getuid() or status.st_mode & 0o022):
            return b""
        blob = _read_all(handle, status.st_size)
    finally:
        os.close(handle)
    if time.time() - status.st_mtime > _TOUCH_SECONDS:
        _touch(path)
    return blob


def _read_all(handle: int, size: int) -> bytes:
    parts = []
    while size > 0:
        part = os.read(handle, size)
        if not part:
            break
        parts.append(part)
        size -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _touch(path: str) -> None:
    try:
        os.utime(path)
    except OSError:
        return  # a cache that can only be read is still of use


def _write(path: str, blob: bytes) -> None:
    """Write whole or not at all: readers and other writers see the old file or the new one."""
    # by chance: processes of two containers may have one number, and so may one that was killed
    temporary = f"{path}.{os.urandom(8).hex()}.tmp"
    flags = (
        os.O_WRONLY
        | os.O_CREAT
        | os.O_EXCL
        | getattr(os, "O_CLOEXEC", 0)
        | getattr(os, "O_BINARY", 0)
    )
    try:
        with open(os.open(temporary, flags, 0o600), "wb", buffering=0) as file:
            view = memoryview(blob)
            while view:
                view = view[file.write(view) :]
        os.replace(temporary, path)
    except BaseException:
        _remove(temporary)
        raise


def _bound(folder: _Folder, shard: int, path: str, written: int) -> None:
    """Now and then, and after much was written to one folder, delete what was used least recently
    there."""
    limit = folder.limit // _SHARDS
    folder.writes_left -= 1
    folder.bytes_written[shard] += written
    if folder.writes_left > 0 and folder.bytes_written[shard] <= limit // 8:
        return
    folder.bytes_written[shard] = 0
    # To look through many entries takes longer, and is done less often.
    folder.writes_left = max(_WRITES_PER_CHECK, _evict(path, limit) // _WRITES_PER_CHECK)


def _evict(path: str, limit: int) -> int:
    """Delete the entries used least recently that are too many; how many there were."""
    entries = sorted(_entries(path))
    total = sum(entry[1] for entry in entries)
    now = time.time()
    for used, taken, name in entries:
        if name.endswith(".tmp"):
            if now - used > _STALE_SECONDS:  # left by a process that was killed
                _remove(name)
        elif total > limit:
            _remove(name)
            total -= taken
    return len(entries)


def _entries(path: str) -> list[tuple[float, int, str]]:
    """Time of use, size and path of each file in a folder."""
    found = []
    try:
        with os.scandir(path) as listing:
            for entry in listing:
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError:  # another process deleted it meanwhile
                    continue
                found.append((status.st_mtime, status.st_size, entry.path))
    except OSError:
        return found
    return found


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return

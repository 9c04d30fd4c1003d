"""Machine code of kernels and math functions by symbol: what is linked in this process, else linked
from disk, without a look at what it was made of."""

from __future__ import annotations

import marshal
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from calque.machine.caches import Alive
from calque.machine.code import diskcache, llvm, target
from calque.machine.code.digest import hexdigest
from calque.machine.code.linked import Linked
from calque.machine.driver.interpreter import calque_poll
from calque.machine.memory import calque_free
from calque.machine.once import Turns, once
from calque.machine.routines.scratch import calque_scratch
from calque.native.emit import scratch
from calque.native.loops import asking

_FORMAT: Final = "kernel-4"  # of what stands on disk
_MARSHAL: Final = 4  # a form that every Python reads
# The folders of all that the emitter imports here: their files decide the code.
IMPLEMENTED_BY: Final = ("scalars", "scalars/vmath", "loops", "emit")

# What kernels call of the runtime, and how they declare it.
RUNTIME: Final = {f.name: f for f in (calque_poll, calque_scratch, calque_free)}
_DECLARED: Final = {asking.ASK: asking.DECLARATION, **scratch.DECLARATIONS}

turns = Turns()
linked: Final[Alive[str, Linked]] = Alive("linked kernels and math functions")  # by symbol


@once
def version() -> str:
    """Changes with the compiler's own files, so that code on disk is never older than they are."""
    return fingerprint(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), IMPLEMENTED_BY)


def fingerprint(root: str, folders: Sequence[str], deep: bool = False) -> str:
    """Of the sources in these folders of a folder, and in all that those hold if it is `deep`."""
    marks = []
    todo = list(folders)
    while todo:
        folder = todo.pop()
        with os.scandir(f"{root}/{folder}") as entries:
            for entry in entries:
                name = entry.name
                if name.endswith(".py"):
                    found = entry.stat()
                    marks.append(f"{folder}/{name} {found.st_size} {found.st_mtime_ns}")
                elif deep and name[0] not in "_." and entry.is_dir():
                    todo.append(f"{folder}/{name}")
    return hexdigest("\n".join(sorted(marks)))[:16]


def of_runtime(declared: Collection[str]) -> list[str]:
    """The functions of the runtime among those that a module declares."""
    return [name for name, declaration in _DECLARED.items() if declaration in declared]


def note(text: str, obj: bytes, exports: Sequence[str], imports: Iterable[str], opt: int) -> None:
    """Keep an object, made of this text, on disk, and where its symbols are. Another processor has
    another object for the same text, whose symbols may pass their arguments in another way."""
    name = hexdigest(f"{target.describe().key}\0{opt}\0{text}")[:32]
    entry = marshal.dumps(
        {"object": name, "exports": list(exports), "imports": sorted(imports), "opt": opt},
        _MARSHAL,
    )
    diskcache.put(name, "kernels", obj)
    for s in exports:
        diskcache.put(_disk_key(s, opt), "kernel", entry)


def load(
    obj: bytes, exports: Sequence[str], imports: Mapping[str, Linked | None], text: str = ""
) -> Linked:
    """Link an object; it keeps what it imports."""
    addresses = {
        symbol: RUNTIME[symbol].address if code is None else code.addresses[symbol]
        for symbol, code in imports.items()
    }
    needs = [code for code in imports.values() if code is not None]
    loaded = llvm.link_object(obj, exports, addresses, text, needs)
    for symbol in exports:
        linked.setdefault(symbol, loaded)
    return loaded


def by_symbol(symbol: str, opt: int = 2) -> tuple[int, Linked] | None:
    """The address of a kernel that is linked, or on disk, and what keeps it in memory."""
    with turns.taken():
        code = from_disk(symbol, opt)
    return (code.addresses[symbol], code) if code is not None else None


def _disk_key(symbol: str, opt: int) -> str:
    return f"{_FORMAT} {symbol} {opt} {target.describe().key} {version()}"


def from_disk(symbol: str, opt: int) -> Linked | None:
    """The code that holds a symbol: what is linked already, else linked from disk if it is
    there."""
    known = linked.get(symbol)
    if known is not None:
        return known
    raw = diskcache.get(_disk_key(symbol, opt), "kernel")
    if raw is None:
        return None
    entry = marshal.loads(raw)
    obj = diskcache.get(entry["object"], "kernels")
    imports = {s: None if s in RUNTIME else from_disk(s, opt) for s in entry["imports"]}
    if obj is None or any(s not in RUNTIME and found is None for s, found in imports.items()):
        return None
    return load(obj, entry["exports"], imports)

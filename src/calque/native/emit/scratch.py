"""Arrays of a kernel's own: on the stack while they are small, else in memory that the kernel takes
and gives back. A thread of Python may have a stack of 64 kB."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

TAKE: Final = "calque_scratch"
GIVE: Final = "calque_free"
DECLARATIONS: Final = {
    TAKE: f"declare noalias align 64 ptr @{TAKE}(ptr, i64)",
    GIVE: f"declare void @{GIVE}(ptr)",
}
STACK: Final = 16 << 10  # bytes of arrays that may stand on it
ALIGNMENT: Final = 64
_BYTES: Final = {"float": 4, "double": 8, "half": 2, "bfloat": 2, "ptr": 8}
_NONE: Final = (
    " %scratch.none = icmp eq ptr %scratch, null\n"
    " br i1 %scratch.none, label %scratch.end, label %entry\nscratch.end:\n ret void"
)


class Arrays(NamedTuple):
    """The lines that make a kernel's arrays, and whether it has to give memory back."""

    lines: list[str]
    taken: bool


def size(t: str) -> int:
    """The bytes of a type of LLVM."""
    if t[0] in "[<":
        count, _, inner = t[1:-1].partition(" x ")
        return int(count) * size(inner)
    return _BYTES.get(t) or (int(t[1:]) + 7) // 8


def alignment(t: str) -> int:
    """Of values of a type that stand one behind the other in an array."""
    n = size(t)
    return min(n & -n, ALIGNMENT)


def arrays(named: Iterable[tuple[str, str]]) -> Arrays:
    """Room for arrays by their names and types, the smallest on the stack."""
    lines, far, room, used = [], [], 0, 0
    for name, t in sorted(named, key=lambda a: size(a[1])):
        room += size(t)
        if room <= STACK:
            lines.append(f" {name} = alloca {t}, align {ALIGNMENT}")
        else:
            far.append(f" {name} = getelementptr i8, ptr %scratch, i64 {used}")
            used += -(-size(t) // ALIGNMENT) * ALIGNMENT
    if not far:
        return Arrays(lines, False)
    take = f" %scratch = call ptr @{TAKE}(ptr %args, i64 {used})"
    return Arrays([*lines, take, *far], True)


def around(lines: str, made: Arrays) -> str:
    """The body of a function with its arrays before it; what was taken is given back wherever it
    ends. The body begins with the block `entry`."""
    if not made.taken:
        return "\n".join(["entry:", *made.lines, lines])
    given_back = f" call void @{GIVE}(ptr %scratch)\n ret void"
    body = lines.replace(" ret void", given_back)
    return "\n".join(["scratch.take:", *made.lines, f"{_NONE}\nentry:", body])

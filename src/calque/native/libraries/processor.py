"""The question whether a processor can run a library, in instructions that every one of its kind
knows: a library made for another one says so instead of ending the process."""

from __future__ import annotations

from typing import Final, NamedTuple

from calque.machine.code.shipped import LEVELS
from calque.machine.code.target import Target

# feature as LLVM names it -> (leaf, part of it, register, bit) of the instruction CPUID
_A, _B, _C = 0, 1, 2
_BITS: Final[dict[str, tuple[int, int, int, int]]] = {
    "sse3": (1, 0, _C, 0), "pclmul": (1, 0, _C, 1), "ssse3": (1, 0, _C, 9), "fma": (1, 0, _C, 12),
    "cx16": (1, 0, _C, 13), "sse4.1": (1, 0, _C, 19), "sse4.2": (1, 0, _C, 20),
    "movbe": (1, 0, _C, 22), "popcnt": (1, 0, _C, 23), "aes": (1, 0, _C, 25),
    "xsave": (1, 0, _C, 26), "avx": (1, 0, _C, 28), "f16c": (1, 0, _C, 29),
    "bmi": (7, 0, _B, 3), "avx2": (7, 0, _B, 5), "bmi2": (7, 0, _B, 8),
    "avx512f": (7, 0, _B, 16), "avx512dq": (7, 0, _B, 17), "adx": (7, 0, _B, 19),
    "avx512ifma": (7, 0, _B, 21), "avx512cd": (7, 0, _B, 28), "sha": (7, 0, _B, 29),
    "avx512bw": (7, 0, _B, 30), "avx512vl": (7, 0, _B, 31), "avx512vbmi": (7, 0, _C, 1),
    "avx512vbmi2": (7, 0, _C, 6), "gfni": (7, 0, _C, 8), "vaes": (7, 0, _C, 9),
    "vpclmulqdq": (7, 0, _C, 10), "avx512vnni": (7, 0, _C, 11), "avx512bitalg": (7, 0, _C, 12),
    "avx512vpopcntdq": (7, 0, _C, 14), "avxvnni": (7, 1, _A, 4), "avx512bf16": (7, 1, _A, 5),
    "sahf": (0x80000001, 0, _C, 0), "lzcnt": (0x80000001, 0, _C, 5),
    "sse4a": (0x80000001, 0, _C, 6),
}  # fmt: skip
_YMM, _ZMM = 0x6, 0xE6  # of the registers that the system saves: vectors of 32 and of 64 bytes
# the oldest processor of this kind: all that it has may be used before anything is known
ATTRIBUTES: Final = 'nounwind "target-cpu"="x86-64" "target-features"=""'
ASK: Final = "library_processor"


class _Leaf(NamedTuple):
    """What CPUID is asked for, and the bits of each register that must be set."""

    leaf: int
    part: int
    masks: tuple[int, int, int]


def needed(t: Target) -> frozenset[str]:
    """The features that code for a target may use, of those that can be asked for."""
    if t.cpu in LEVELS:
        return LEVELS[t.cpu]
    if "+" in t.features:
        has = {flag[1:] for flag in t.features.split(",") if flag.startswith("+")}
        return frozenset(has & _BITS.keys())
    by_width = {64: LEVELS["x86-64-v4"], 32: LEVELS["x86-64-v3"]}
    return by_width.get(t.vector_bytes, frozenset())


def text(t: Target) -> list[str]:
    """A function that says whether the processor has all of it: 1, or 0. It asks once."""
    features = needed(t)
    saved = (
        _ZMM if any(f.startswith("avx512") for f in features) else _YMM if "avx" in features else 0
    )
    lines = [
        f"@{ASK}_known = internal global i32 0",
        f"define internal i32 @{ASK}() {ATTRIBUTES} {{",
        "entry:",
        f" %known = load atomic i32, ptr @{ASK}_known monotonic, align 4",
        " %asked = icmp ne i32 %known, 0",
        " br i1 %asked, label %end, label %ask",
        "ask:",
        ' %least = call i32 asm sideeffect "cpuid", "={ax},{ax},~{bx},~{cx},~{dx}"(i32 0)',
        f" %old = icmp ult i32 %least, {7 if any(_BITS[f][0] == 7 for f in features) else 1}",
        " br i1 %old, label %no, label %go0",
        "go0:",
    ]
    leaves = _leaves(features)
    # whether the system saves the registers may only be asked where the processor can tell
    for k, leaf in enumerate(leaves):
        lines += _asked(k, leaf)
    if saved:
        lines += [
            ' %x = call { i32, i32 } asm sideeffect ".byte 0x0f, 0x01, 0xd0",'
            ' "={ax},={dx},{cx}"(i32 0)',
            " %low = extractvalue { i32, i32 } %x, 0",
            f" %some = and i32 %low, {saved}",
            f" %saved = icmp eq i32 %some, {saved}",
            " br i1 %saved, label %yes, label %no",
        ]
    else:
        lines.append(" br label %yes")
    return [
        *lines,
        f"yes:\n store atomic i32 2, ptr @{ASK}_known monotonic, align 4\n ret i32 1",
        f"no:\n store atomic i32 1, ptr @{ASK}_known monotonic, align 4\n ret i32 0",
        "end:\n %has = icmp eq i32 %known, 2\n %out = zext i1 %has to i32\n ret i32 %out",
        "}",
    ]


def _leaves(features: frozenset[str]) -> list[_Leaf]:
    masks: dict[tuple[int, int], list[int]] = {}
    for f in sorted(features, key=lambda f: _BITS[f]):
        leaf, part, register, bit = _BITS[f]
        masks.setdefault((leaf, part), [0, 0, 0])[register] |= 1 << bit
    return [_Leaf(*key, (m[0], m[1], m[2])) for key, m in masks.items()]


def _asked(k: int, leaf: _Leaf) -> list[str]:
    registers = "{ i32, i32, i32, i32 }"
    lines = [
        f' %c{k} = call {registers} asm sideeffect "cpuid", "={{ax}},={{bx}},={{cx}},={{dx}},'
        f'{{ax}},{{cx}}"(i32 {leaf.leaf}, i32 {leaf.part})'
    ]
    for r, mask in enumerate(leaf.masks):
        lines += [
            f" %r{k}.{r} = extractvalue {registers} %c{k}, {r}",
            f" %m{k}.{r} = and i32 %r{k}.{r}, {mask}",
            f" %h{k}.{r} = icmp eq i32 %m{k}.{r}, {mask}",
        ]
    return [
        *lines,
        f" %two{k} = and i1 %h{k}.0, %h{k}.1\n %all{k} = and i1 %two{k}, %h{k}.2",
        f" br i1 %all{k}, label %go{k + 1}, label %no",
        f"go{k + 1}:",
    ]

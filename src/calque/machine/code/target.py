"""The processor that code is generated for.

``CALQUE_CPU`` names another processor than the host (``x86-64-v3``, ``znver3``, ...): then its
features follow from that name alone, so that compiled objects can be shared between unlike
machines.
"""

from __future__ import annotations

import difflib
import importlib.machinery
import marshal
import os
import platform
import subprocess
import sys
from typing import Any, Final, NamedTuple

from calque.machine.code import diskcache, image
from calque.machine.code.digest import hexdigest
from calque.machine.lazy import LazyModule
from calque.machine.once import once
from calque.machine.state import Inside, PerThread, process

llvm: Any = LazyModule("llvmlite.binding")

_FORMAT = "target-1"
_SHARED_LEVELS: Final = {"x86-64": 16, "x86-64-v2": 16, "x86-64-v3": 32, "x86-64-v4": 64}
_DEFAULT_CACHES: Final = {1: 32 << 10, 2: 1 << 20, 3: 16 << 20}


class Target(NamedTuple):
    """What schedulers and the disk cache need to know about the processor."""

    triple: str
    cpu: str
    features: str
    vector_bytes: int
    vector_registers: int
    l1_bytes: int
    l2_bytes: int
    l3_bytes: int
    key: str

    @property
    def is_x86(self) -> bool:
        """Whether this is a 64-bit x86 processor."""
        return self.triple.startswith(("x86_64", "amd64", "i686"))


class _Wanted(PerThread, name="the processor that libraries are made for"):
    """None: that of this process."""

    target: Target | None = None


_wanted: Final = _Wanted()
# what LLVM was told; its machines may remember how they worked before
options: Final[list[str]] = process.container("options of LLVM", [])


@once
def initialize() -> None:
    """Start LLVM's native target: about a millisecond, once per process."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@once
def select_whole_blocks() -> None:
    """Let LLVM choose instructions for whole blocks at its lowest level, too. It would do so one by
    one for what it can, and then a product and a sum become one instruction in other places than at
    the higher levels: other bits."""
    initialize()
    llvm.set_option("calque", "-fast-isel=false")
    options.append("-fast-isel=false")


@once
def read_assembly() -> None:
    """Let LLVM's text have instructions in the language of the processor."""
    initialize()
    llvm.initialize_native_asmparser()


def describe() -> Target:
    """The target of this process, or the one that this thread is making a library for."""
    return _wanted.target or _own()


def making_for(target: Target | None) -> Inside[_Wanted]:
    """A `with` block in which code is made for another target, and cannot be linked; with None for
    that of this process."""
    return _wanted.inside(target=target)


def is_foreign() -> bool:
    """Whether code is made for another target than that of this process."""
    return _wanted.target is not None


@once
def named(name: str) -> Target:
    """The target of a processor that LLVM knows by this name: a level (`x86-64-v3`) or a kind
    (`znver3`). This machine need not be one."""
    initialize()
    triple = llvm.get_process_triple()
    _check_name(triple, name, f"cpu={name!r}", "")
    return _target(triple, name, {})


@once
def _own() -> Target:
    """The target of this process: LLVM is asked once for each kind of machine, then it is found on
    disk."""
    identity = _identity()
    known = diskcache.get(identity, "target") if identity else None
    if known is not None:
        return Target(*marshal.loads(known))
    target = _ask_llvm()
    if identity:
        diskcache.put(identity, "target", marshal.dumps(tuple(target), 4))
    return target


# LLVM ends the process when it makes code for a processor that cannot run it, and prints the names
# of those that it knows: both happen in another process.
_TRIAL = """
import sys
import llvmlite.binding as llvm
llvm.initialize_native_target()
llvm.initialize_native_asmprinter()
triple, cpu = sys.argv[1:]
target = llvm.Target.from_triple(triple)
target.create_target_machine(cpu="help")
module = llvm.parse_assembly("define i64 @f(i64 %a) { ret i64 %a }")
target.create_target_machine(cpu=cpu).emit_object(module)
"""


def _named_processor(triple: str) -> str:
    """The processor that ``CALQUE_CPU`` names; empty for the one at hand."""
    name = os.environ.get("CALQUE_CPU", "").strip()
    if name in ("", "native"):
        return ""
    _check_name(triple, name, f"CALQUE_CPU={name!r}", "Leave it out, or say")
    features = _host_features()
    if features and _vector_bytes(triple, name, "", {}) > _vector_bytes(triple, "", "", features):
        raise ValueError(
            f"CALQUE_CPU={name!r} has wider vectors than this machine, which could not run the"
            f" code; this machine is {llvm.get_host_cpu_name()}"
        )
    return name


def _check_name(triple: str, name: str, given: str, remedy: str) -> None:
    """Refuse the name of a processor that LLVM does not know, or that is one of another kind."""
    command = [sys.executable, "-c", _TRIAL, triple, name]
    trial = subprocess.run(command, capture_output=True, text=True, check=False)
    known = _listed(trial.stderr)
    if known and (name not in known or trial.returncode):
        why = "is not for this kind of machine" if name in known else "is not known to LLVM"
        near = difflib.get_close_matches(name, known, 3)
        hint = f"; did you mean {' or '.join(near)}?" if near and name not in known else "."
        raise ValueError(
            f"{given} {why}{hint} {remedy or 'Say'} native, for the processor of this machine;"
            f" known names: {', '.join(known)}"
        )


def _listed(text: str) -> list[str]:
    """The names of processors in what LLVM prints."""
    part = text.partition("Available CPUs for this target:")[2].partition("Available features")[0]
    return [line.split()[0] for line in part.splitlines() if " - " in line]


_PROCESSOR_LINES = ("vendor_id", "cpu family", "model", "stepping", "flags", "Features", "CPU ")


def _identity() -> str:
    """All that decides what LLVM says of this machine; empty where the system does not tell."""
    spec = importlib.machinery.PathFinder.find_spec("llvmlite") if sys.platform == "linux" else None
    if spec is None or spec.origin is None:
        return ""
    try:
        status = os.stat(spec.origin)
        version = _read(os.path.join(os.path.dirname(spec.origin), "_version.py"))
        with open("/proc/cpuinfo") as file:
            processor = file.read(8192).partition("\n\n")[
                0
            ]  # the first one: a machine may have hundreds
    except OSError:
        return ""
    lines = [line for line in processor.splitlines() if line.startswith(_PROCESSOR_LINES)]
    facts = (
        _FORMAT,
        *lines,
        version,
        spec.origin,
        status.st_size,
        status.st_mtime_ns,
        image.usable(),
    )
    return "\0".join(
        map(
            str, (*facts, sys.version, platform.machine(), os.environ.get("CALQUE_CPU", "").strip())
        )
    )


def _ask_llvm() -> Target:
    initialize()
    triple = llvm.get_process_triple()
    override = _named_processor(triple)
    if override:
        return _target(triple, override, {})
    return _target(triple, llvm.get_host_cpu_name(), _host_features())


def _target(triple: str, cpu: str, features: dict[str, bool]) -> Target:
    """The target of a processor by name, with features that are there or not."""
    is_x86 = triple.startswith(("x86_64", "amd64", "i686"))
    flags = [("+" if on else "-") + name for name, on in sorted(features.items())]
    if (
        is_x86
    ):  # LLVM prefers half of a 512-bit register on some processors; we choose widths ourselves
        flags.append("-prefer-256-bit")
    text = ",".join(flags)
    width = _vector_bytes(triple, cpu, text, features)
    version = (LazyModule("llvmlite").__version__, *llvm.llvm_version_info)
    kind = "image" if image.usable() else "object"
    key = hexdigest(f"{version}\0{kind}\0{triple}\0{cpu}\0{text}")[:16]
    l1, l2, l3 = (_cache_bytes(level) for level in (1, 2, 3))
    registers = 32 if width == 64 or not is_x86 else 16
    return Target(triple, cpu, text, width, registers, l1, l2, l3, f"{cpu}-{key}")


def create_machine(opt: int) -> Any:
    """A new LLVM target machine for this target: position-independent code in the small model,
    which loads constants straight from memory."""
    target = describe()
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=opt, reloc="pic", codemodel="small", jit=True
    )


def _host_features() -> dict[str, bool]:
    try:
        return dict(llvm.get_host_cpu_features())
    except RuntimeError:  # LLVM cannot ask on some systems; the processor's name then says enough
        return {}


def _vector_bytes(triple: str, cpu: str, flags: str, features: dict[str, bool]) -> int:
    if not triple.startswith(("x86_64", "amd64", "i686")):
        return 16
    if features:
        return 64 if features.get("avx512f") else 32 if features.get("avx2") else 16
    return _SHARED_LEVELS.get(cpu) or _probe_vector_bytes(triple, cpu, flags)


def _probe_vector_bytes(triple: str, cpu: str, flags: str) -> int:
    """The widest register LLVM uses for a vector sum on a processor known only by its name."""
    machine = llvm.Target.from_triple(triple).create_target_machine(
        cpu=cpu, features=flags, opt=0, reloc="pic"
    )
    vector = "<64 x i32>"
    ir = (
        f"define {vector} @f({vector} %a, {vector} %b) {{\n %c = add {vector} %a, %b\n ret {vector}"
        " %c\n}"
    )
    text = machine.emit_assembly(llvm.parse_assembly(ir, llvm.create_context()))
    return 64 if "%zmm" in text else 32 if "%ymm" in text else 16


def _cache_bytes(level: int) -> int:
    """The size of the data cache of this level as one core sees it."""
    if sys.platform == "linux":
        size = _sysfs_cache_bytes(level)
        if size:
            return size
    if platform.machine() == "arm64" and sys.platform == "darwin":
        return {1: 64 << 10, 2: 4 << 20, 3: 8 << 20}[level]
    return _DEFAULT_CACHES[level]


def _sysfs_cache_bytes(level: int) -> int:
    root = "/sys/devices/system/cpu/cpu0/cache"
    for index in range(5):
        try:
            found = [_read(f"{root}/index{index}/{name}") for name in ("level", "type", "size")]
        except OSError:
            return 0
        if found[0] == str(level) and found[1] in ("Data", "Unified"):
            return _parse_size(found[2])
    return 0


def _parse_size(text: str) -> int:
    scale = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:], 1)
    digits = text.rstrip("KMG")
    return int(digits) * scale if digits.isdigit() else 0


def _read(path: str) -> str:
    with open(path) as file:
        return file.read().strip()

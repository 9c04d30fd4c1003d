"""LLVM text to addresses: one process-wide linker, target machines by optimisation level, code kept
on disk.

Modules must not contain process addresses: what lies outside is imported by name, so that code
found on disk serves any process. What is kept is an image (see ``image``), which needs no LLVM to
be loaded, or a relocatable object for LLVM's linker; so LLVM itself is imported by the first
process that compiles something, and by no other.
"""

from __future__ import annotations

import _thread
import atexit
import ctypes
import itertools
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

from calque.machine.code import diskcache, generation, image, machines, shipped, target
from calque.machine.code.digest import hexdigest
from calque.machine.code.linked import Linked
from calque.machine.lazy import LazyModule
from calque.machine.once import once
from calque.machine.state import ProcessValue, process

llvm: Any = LazyModule("llvmlite.binding")

_FORMAT = "object-3"  # part of each key: a change of the way objects are made must change it
_EXIT_SECONDS: Final = 60.0
OPT: Final = 2  # the level of code generation where none is asked for
_ALL: Final = 1 << 62
_PATIENCE_NS: Final = 1_000_000_000  # of a thread that waits for another module
_NAMED_PASSES: Final = {
    "sroa": "sroa",
    "instcombine": "instruction_combine",
    "simplifycfg": "simplify_cfg",
    "gvn": "new_gvn",
    "dce": "dead_code_elimination",
    "dse": "dead_store_elimination",
    "inline": "always_inliner",
    "globaldce": "global_dead_code_eliminate",
    "sccp": "sccp",
}


# What kernels are made of: a loop, vectors read and written, a choice, arithmetic of both kinds.
_SAMPLE: Final = """
declare <8 x float> @llvm.fma.v8f32(<8 x float>, <8 x float>, <8 x float>)
declare i64 @llvm.smin.i64(i64, i64)
define void @calque_sample(ptr %a, i64 %n) {
entry:
 %few = icmp sgt i64 %n, 0
 br i1 %few, label %loop, label %end
loop:
 %i = phi i64 [0, %entry], [%next, %loop]
 %sum = phi <8 x float> [zeroinitializer, %entry], [%more, %loop]
 %k = call i64 @llvm.smin.i64(i64 %i, i64 64)
 %row = mul i64 %k, 24
 %p = getelementptr float, ptr %a, i64 %row
 %x = load <8 x float>, ptr %p, align 4
 %one = load float, ptr %a, align 4
 %first = insertelement <8 x float> poison, float %one, i64 0
 %y = shufflevector <8 x float> %first, <8 x float> poison, <8 x i32> zeroinitializer
 %more = call <8 x float> @llvm.fma.v8f32(<8 x float> %x, <8 x float> %y, <8 x float> %sum)
 %large = fcmp ogt <8 x float> %more, %y
 %z = select <8 x i1> %large, <8 x float> %more, <8 x float> %y
 store <8 x float> %z, ptr %p, align 4
 %next = add nuw nsw i64 %i, 8
 %on = icmp slt i64 %next, %n
 br i1 %on, label %loop, label %end
end:
 ret void
}
"""


class LLVMError(RuntimeError):
    """LLVM refused a module: a defect of whoever wrote the text, shown with the text around it."""


@dataclass
class CompileCounts:
    """What has been compiled by this process, in counts and milliseconds."""

    modules: int = 0
    compiled: int = 0
    cache_hits: int = 0
    shipped: int = 0
    compile_ms: float = 0.0
    link_ms: float = 0.0
    ir_bytes: int = 0
    object_bytes: int = 0


stats = CompileCounts()
_lock = threading.RLock()
_linker: Final[ProcessValue[Any]] = process.value("linker of LLVM", None)
_numbers: Final = process.container("numbers of modules", itertools.count())
_for_ever: Final[list[Linked]] = process.container("code of the runtime itself", [])
# what nobody has any more is unloaded by the next one who links
_unneeded: Final[deque[Any]] = process.container("libraries of LLVM to unload", deque())


def link_module(
    ir_text: str,
    exports: Iterable[str],
    imports: Mapping[str, int] | None = None,
    opt: int = OPT,
    passes: str | None = None,
    cache: bool = True,
) -> dict[str, int]:
    """Compile a module (or find its object on disk), link it, and give the addresses of its
    exports.

    ``imports`` gives addresses of symbols that the module declares; every other one is looked up in
    the process (libc, libm, libpython). ``opt`` is the level of code generation, 0 to 3. ``passes``
    runs a pipeline before: ``"O1"`` to ``"O3"``, or names joined by commas. The code is never
    unloaded.
    """
    obj = object_code(ir_text, opt, passes, cache)
    return _kept(link_object(obj, exports, imports, ir_text))


def link_for_ever(
    code: bytes, exports: Iterable[str], imports: Mapping[str, int], ir_text: str = ""
) -> dict[str, int]:
    """Load what ``code_of`` gave; it is never unloaded."""
    return _kept(link_object(code, exports, imports, ir_text))


def _kept(linked: Linked) -> dict[str, int]:
    _for_ever.append(linked)
    return linked.addresses


def link_cached(
    key: str,
    make_ir: Callable[[], str],
    exports: Iterable[str],
    imports: Mapping[str, int] | None = None,
    opt: int = OPT,
    passes: str | None = None,
    cache: bool = True,
) -> dict[str, int]:
    """As ``link_module``, for text that ``key`` determines wholly: it is made only when there is no
    code of this key."""
    made: list[str] = []

    def make() -> str:
        made.append(make_ir())
        return made[0]

    obj = code_of(key, make, opt, passes, cache)
    return _kept(link_object(obj, exports, imports, made[0] if made else ""))


def code_of(
    key: str,
    make_ir: Callable[[], str],
    opt: int = OPT,
    passes: str | None = None,
    cache: bool = True,
) -> bytes:
    """The code of a module that ``key`` determines wholly: the package's own, what is on disk, or
    made now."""
    found = _shipped(key, opt, passes) if cache else None
    if found is not None:
        return found
    return _cached_object(_key("key", key, opt, passes), make_ir, opt, passes, cache)


def is_made(key: str, opt: int, passes: str | None) -> bool:
    """Whether ``code_of`` finds the code of this key."""
    if not target.is_foreign() and shipped.find(key, opt, passes) is not None:
        return True
    return diskcache.get(_key("key", key, opt, passes), "object") is not None


class Wanted(NamedTuple):
    """A module, by what ``code_of`` takes."""

    key: str
    make_ir: Callable[[], str]
    opt: int
    passes: str


class Codes:
    """As ``code_of`` for several modules: those that nobody has compiled yet are compiled by
    several threads, from now on."""

    def __init__(self, wanted: Sequence[Wanted], threads: int) -> None:
        self._names = [_key("key", w.key, w.opt, w.passes) for w in wanted]
        self._found = [
            _shipped(w.key, w.opt, w.passes) or _from_disk(name)
            for w, name in zip(wanted, self._names, strict=True)
        ]
        # those that call the others are the larger ones, and must not come last
        self._missing = [k for k, code in enumerate(self._found) if code is None][::-1]
        self._texts: dict[int, str] = {}
        self._work = Compiling(threads) if self._missing else None
        for k in self._missing:
            self._texts[k] = wanted[k].make_ir()
            if self._work is not None:
                self._work.add(self._texts[k], wanted[k].opt, wanted[k].passes)

    def all(self) -> list[tuple[bytes, str]]:
        """Each code, with the text, of those whose text was made; by the help of this thread."""
        made = [] if self._work is None else self._work.results()
        for k, code in zip(self._missing, made, strict=True):
            self._found[k] = code
            diskcache.put(self._names[k], "object", code)
        return [(c, self._texts.get(k, "")) for k, c in enumerate(self._found) if c is not None]


def _shipped(key: str, opt: int, passes: str | None) -> bytes | None:
    """The package's own code, counted where there is some."""
    found = None if target.is_foreign() else shipped.find(key, opt, passes)
    stats.modules += found is not None
    stats.shipped += found is not None
    return found


def _from_disk(key: str) -> bytes | None:
    """A module's code on disk; counted as a module, wherever it will come from."""
    found = diskcache.get(key, "object")
    stats.modules += 1
    stats.cache_hits += found is not None
    return found


def object_code(
    ir_text: str, opt: int = OPT, passes: str | None = None, cache: bool = True
) -> bytes:
    """The code of a module in the form in which it is kept, from the disk cache when it holds
    it."""
    return _cached_object(_key("text", ir_text, opt, passes), lambda: ir_text, opt, passes, cache)


def _cached_object(
    key: str, make_ir: Callable[[], str], opt: int, passes: str | None, cache: bool
) -> bytes:
    found = _from_disk(key) if cache else None
    stats.modules += not cache
    if found is not None:
        return found
    obj = _compile(make_ir(), opt, passes)
    if cache:
        diskcache.put(key, "object", obj)
    return obj


def link_object(
    code: bytes,
    exports: Iterable[str],
    imports: Mapping[str, int] | None = None,
    ir_text: str = "",
    needs: Sequence[Linked] = (),
) -> Linked:
    """Load what ``object_code`` made. The code, and the code that it ``needs``, is there as long as
    anybody has the result."""
    exports, imports = tuple(exports), imports or {}
    if target.is_foreign():
        raise LLVMError(f"{', '.join(exports)}: code for another processor does not run here")
    start = time.perf_counter()
    try:
        if image.is_image(code):
            return image.load(code, exports, imports, needs)
        return _link_with_llvm(code, exports, imports, needs)
    except (LookupError, OSError, RuntimeError) as error:
        missing = _missing_symbols(ir_text, imports)
        hint = f"; not found anywhere: {', '.join(missing)}" if missing else ""
        raise LLVMError(f"cannot link {', '.join(exports)}: {error}{hint}") from None
    finally:
        stats.link_ms += (time.perf_counter() - start) * 1e3


def assembly(ir_text: str, opt: int = OPT, passes: str | None = None) -> str:
    """The assembly text of a module, for people."""
    with generation.gate.entered(), _lock:
        module = _parse(ir_text)
        with machines.one_for(opt) as machine:
            _run_passes(module, _pipeline(machine, passes))
            return str(machine.emit_assembly(module))


def optimized(ir_text: str, passes: str = "O2", opt: int = OPT) -> str:
    """The text of a module after a pipeline of passes."""
    with generation.gate.entered(), _lock:
        module = _parse(ir_text)
        with machines.one_for(opt) as machine:
            _run_passes(module, _pipeline(machine, passes))
        return str(module)


def _key(form: str, content: str, opt: int, passes: str | None) -> str:
    if not 0 <= opt <= 3:
        raise ValueError(f"opt must be 0 to 3, got {opt}")
    head = f"{_FORMAT}\0{target.describe().key}\0{opt}\0{passes or ''}\0{form}\0"
    return hexdigest(head + content)


def is_there() -> bool:
    """Whether this process has imported LLVM, and threads may compile."""
    return "llvmlite.binding" in sys.modules and not generation.gate.is_closed


def get_ready() -> None:
    """Let another thread compile a sample, if LLVM is there, while this one finds out what it needs
    compiled: the first module of a process takes LLVM 10 ms longer than others like it."""
    if is_there():
        _begin_sample()


@once
def _begin_sample() -> None:
    target.initialize()
    generation.prepare()
    generation.Work(1).add(_sample)


def _sample() -> bytes:
    with generation.gate.entered(), machines.one_for(OPT) as machine:
        made = generation.make_object(_SAMPLE, target.describe().triple, machine, None)
    return made or b""


class Compiling:
    """Modules that are compiled while others are still being written: by other threads, and by
    this one once it wants the results. The other threads stay in machine code from one module to
    the next (`generator.Queue`), if LLVM's library is the one that we know. Nothing is looked for
    on disk, or kept there."""

    def __init__(self, threads: int) -> None:
        # What happens once is done here: who asks may hold the lock that other threads would need.
        target.initialize()
        generation.prepare()
        described = target.describe()
        self._triple = described.triple.encode()
        self._target = described if target.is_foreign() else None
        self._helpers = 0 if generation.gate.is_closed else threads - 1
        self._begun = 0  # of these
        self._queue: Any = generation.queues[0]() if generation.queues else None
        self._work = generation.Work(self._helpers)  # what the queue does not take
        self._queued: list[bool] = []  # of each module

    def add(self, ir_text: str, opt: int, passes: str | None = None) -> None:
        """One more module."""
        plain = self._queue is not None and passes is None and opt < machines.LEVELS
        self._queued.append(plain and self._queue.add(ir_text, opt))
        if not self._queued[-1]:
            self._work.add(partial(self._made, ir_text, opt, passes))
        elif sum(self._queued) > self._begun:
            self._begin()

    def start(self) -> None:
        """Let a thread wait for the first module."""
        if self._queue is not None and not self._begun:
            self._begin()

    def _begin(self) -> None:
        """One thread more, if it may be. It has all that it needs: to ask for anything it would
        have to wait for the interpreter's lock."""
        if self._begun < self._helpers:
            self._begun += 1
            own = machines.take_all()
            try:
                _thread.start_new_thread(self._help, (self._queue, own))
            except RuntimeError:  # no more threads, or the process ends
                self._helpers = self._begun = 0

    def _help(self, queue: Any, own: list[Any]) -> None:
        gate = generation.gate
        with target.making_for(self._target), gate.entered():
            queue.make(self._triple, own, gate.leave, _ALL, _PATIENCE_NS)
            machines.give_back_all(own)
        self._begun -= 1

    def _made(self, ir_text: str, opt: int, passes: str | None) -> bytes:
        with target.making_for(self._target):
            return _compile(ir_text, opt, passes)

    def drop(self) -> None:
        """Compile none of those that still wait."""
        if self._queue is not None:
            self._queue.close()
        self._work.drop()

    def results(self) -> list[bytes]:
        """The code of each module, in order."""
        queued, others = iter(self._from_queue()), iter(self._work.results())
        return [next(queued if q else others) for q in self._queued]

    def _from_queue(self) -> list[bytes]:
        made: list[bytes] = []
        if any(self._queued):
            with target.making_for(self._target):
                while self._make_one():
                    made += map(self._taken, self._queue.collect(wait=False))
                made += map(self._taken, self._queue.collect(wait=True))
            self._queue.close()
        return made

    def _make_one(self) -> bool:
        """Whether there was a module that nobody had begun."""
        with generation.gate.entered():
            own = machines.take_all()
            made = self._queue.make(self._triple, own, ctypes.c_int64(0), 1, 0)
            machines.give_back_all(own)
        return bool(made)

    def _taken(self, made: Any) -> bytes:
        """The code of a module that was made; LLVM says again why it refuses one."""
        if made.object is None:
            return _compile(made.text, OPT, None)
        return _noted(made.text, made.object, made.ns / 1e6)


def _compile(ir_text: str, opt: int, passes: str | None) -> bytes:
    start = time.perf_counter()
    target.initialize()
    triple = target.describe().triple
    with generation.gate.entered(), machines.one_for(opt) as machine:
        pipeline = _pipeline(machine, passes)
        obj = generation.make_object(ir_text, triple, machine, pipeline)
        if obj is None:
            with _lock:
                module = _parse(ir_text)
                _run_passes(module, pipeline)
                obj = bytes(machine.emit_object(module))
        pipeline = None  # llvmlite takes its lock to end it, which no fork may find taken
    return _noted(ir_text, obj, (time.perf_counter() - start) * 1e3)


def _noted(ir_text: str, obj: bytes, ms: float) -> bytes:
    """An object as code, once it is counted."""
    code = (image.image_of(obj) if image.usable() else None) or obj
    with _lock:
        stats.compiled += 1
        stats.ir_bytes += len(ir_text)
        stats.object_bytes += len(obj)
        stats.compile_ms += ms
    return code


def _parse(ir_text: str) -> Any:
    """Parse into a context of its own (constants of the global context would never be freed) and
    verify: bad IR can crash LLVM later."""
    target.initialize()
    try:
        module = llvm.parse_assembly(ir_text, llvm.create_context())
        module.verify()
    except RuntimeError as error:
        raise LLVMError(f"{str(error).strip()}\n{_excerpt(ir_text, str(error))}") from None
    machine = target.describe()
    module.triple = machine.triple
    return module


def _excerpt(ir_text: str, message: str, around: int = 3) -> str:
    """The lines around the place that a parser's message names, else the first ones."""
    lines = ir_text.splitlines()
    place = message.partition("<string>:")[2].split(":")[0]
    at = int(place) if place.isdigit() else 0
    first, last = (max(at - 1 - around, 0), at + around) if at else (0, 40)
    return "\n".join(
        f"{'>' if n + 1 == at else ' '}{n + 1:5} | {lines[n]}"
        for n in range(first, min(last, len(lines)))
    )


def _run_passes(module: Any, pipeline: generation.Passes | None) -> None:
    if pipeline is not None:
        manager, builder = pipeline
        manager.run(module, builder)


def _pipeline(machine: Any, passes: str | None) -> generation.Passes | None:
    """The manager of passes and its builder; none where nothing is to be run."""
    if not passes:
        return None
    if passes in ("O1", "O2", "O3"):
        builder = llvm.create_pass_builder(
            machine, llvm.create_pipeline_tuning_options(speed_level=int(passes[1]))
        )
        return builder.getModulePassManager(), builder
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=1))
    manager = llvm.create_new_module_pass_manager()
    for name in passes.split(","):
        if name not in _NAMED_PASSES:
            raise ValueError(
                f"unknown pass {name!r}; known: O1, O2, O3, {', '.join(sorted(_NAMED_PASSES))}"
            )
        getattr(manager, f"add_{_NAMED_PASSES[name]}_pass")()
    return manager, builder


def _link_with_llvm(
    obj: bytes, exports: tuple[str, ...], imports: Mapping[str, int], needs: Sequence[Linked]
) -> Linked:
    builder = llvm.JITLibraryBuilder().add_object_img(obj).add_current_process()
    for name in exports:
        builder.export_symbol(name)
    for name, address in imports.items():
        builder.import_symbol(name, address)
    with _lock:
        while _unneeded:
            library = _unneeded.popleft()
            library._owned = False
            library.close()
        library = builder.link(_the_linker(), f"calque{next(_numbers)}")
        # by nobody but us, also not while the interpreter shuts down and code may still run
        library._owned = True
    addresses = {name: library[name] for name in exports}
    return Linked(addresses, partial(_unneeded.append, library), needs)


def _the_linker() -> Any:
    if _linker.value is None:
        target.initialize()
        _linker.value = llvm.create_lljit_compiler(
            target.create_machine(2), use_jit_link=True, suppress_errors=True
        )
        _linker.value._owned = True  # as the libraries: never disposed of
    return _linker.value


def _missing_symbols(ir_text: str, imports: Mapping[str, int]) -> list[str]:
    """Names that a module declares and nobody defines, to explain a failure to link."""
    names = []
    for line in ir_text.splitlines():
        if line.startswith("declare ") and "@" in line:
            names.append(line.partition("@")[2].partition("(")[0].strip('"'))
        elif line.startswith("@") and " external " in line:
            names.append(line[1:].partition(" ")[0])
    outside = [name for name in names if not name.startswith("llvm.") and name not in imports]
    return [name for name in outside if image.process_address(name) is None]


def _at_exit() -> None:
    """Let LLVM end what it does for a daemon thread, and begin nothing more: the process takes its
    tables down next."""
    generation.gate.close(_EXIT_SECONDS)
    _lock.acquire(timeout=_EXIT_SECONDS)


def _before_fork() -> None:
    """A child must not inherit a lock held, or LLVM half way through a module."""
    generation.gate.close()
    _lock.acquire()


def _in_parent() -> None:
    _lock.release()
    generation.gate.open()


def _in_child() -> None:
    _lock.release()
    generation.gate.renew()


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)

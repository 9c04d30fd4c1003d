"""Backends turn programs into executables. One small protocol, several implementations, chosen by
name."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np

from calque.core import reference
from calque.core.arrays import from_storage
from calque.core.avals import ShapedArray, nbytes
from calque.core.config import config
from calque.core.devices import accelerators_here, all_devices, is_mine
from calque.core.dims import hint_of
from calque.core.jaxprs import ClosedJaxpr, Eqn, subjaxprs, symbols_found_by, without_places
from calque.core.symbols import Symbols
from calque.machine.once import once
from calque.machine.state import Hook, process


@dataclass(frozen=True)
class Places:
    """Where a program of another engine runs: its devices, and on several the shardings of its
    arguments and results, None where nothing is said, and which of them the engine may place
    itself."""

    devices: tuple[Any, ...]
    ins: tuple[Any, ...] = ()
    outs: tuple[Any, ...] = ()
    free: tuple[bool, ...] = ()  # results that may lie otherwise: the engine says how
    free_ins: tuple[bool, ...] = ()  # and arguments


@dataclass(frozen=True)
class Options:
    """What a program is compiled with."""

    name: str = "main"
    exact: bool = False
    donated: tuple[int, ...] = ()
    places: Places | None = None  # for another engine: the first device, if nothing is said
    compiler: tuple[tuple[str, Any], ...] = ()  # what XLA's compiler is told, by name
    hasty: bool = False  # somebody waits for one call; the program may be a `Hasty` one


class Executable(Protocol):
    """A compiled program. `program` is what the machine's call path runs, or None when it has to be
    called from Python."""

    @property
    def in_avals(self) -> Sequence[ShapedArray]: ...

    @property
    def out_avals(self) -> Sequence[ShapedArray]: ...

    @property
    def program(self) -> Any: ...

    def call(self, args: Sequence[Any]) -> list[Any]: ...

    def as_text(self, stage: str | None = None) -> str: ...

    def cost_analysis(self) -> dict[str, float]: ...

    def memory_analysis(self) -> Any: ...


@runtime_checkable
class Hasty(Executable, Protocol):
    """A program that was compiled in a hurry where `hasty`: slower code with the same bits."""

    hasty: bool

    def improved(self) -> Executable:
        """The same, compiled with care; it may be asked for while the program runs."""


Compiler = Callable[[ClosedJaxpr, Options], Executable]

SymbolicCompiler = Callable[[ClosedJaxpr, Options, Symbols], Any]


def _no_plugins(platform: str) -> Any:
    raise RuntimeError(
        f"Unknown backend {platform}: nothing opens plugins before calque is imported"
    )


# opens the plugin of a platform that is not known yet, and gives its devices
plugins: Final[Hook[Callable[[str], Sequence[Any]]]] = process.hook("plugins of XLA", _no_plugins)

# opens an accelerator where none was asked for, and gives its devices, or none: one of those whose
# drivers this machine has, or that the user names a plugin for
unasked: Final[Hook[Callable[[Sequence[str]], Sequence[Any]]]] = process.hook(
    "accelerators that nobody asked for", lambda here: ()
)
PLUGIN_PATHS: Final = "PJRT_NAMES_AND_LIBRARY_PATHS"  # names plugins: "name:path,name:path"


@once
def _accelerator() -> Sequence[Any]:
    return unasked.call(accelerators_here()) if may_have_accelerators() else ()


def may_have_accelerators() -> bool:
    """Whether it is worth to look for plugins: a driver is there, or the user names some."""
    return bool(accelerators_here() or os.environ.get(PLUGIN_PATHS))


class Backends:
    """The backends by name, and which of them compiles."""

    def __init__(self) -> None:
        self.compilers: dict[str, Compiler] = {}
        self.symbolic: dict[str, SymbolicCompiler] = {}  # of programs with free sizes
        self.reading_places: set[str] = set()  # those that are told where values are
        self.default = ""
        self.devices: dict[str, Callable[[], Sequence[Any]]] = {}  # by platform, of other engines

    def register(
        self, name: str, compiler: Compiler, default: bool = False, reads_places: bool = False
    ) -> None:
        """From now on there is such a backend; with `reads_places` it takes programs with all that
        they say of where values are, on several devices."""
        self.compilers[name] = compiler
        if reads_places:
            self.reading_places.add(name)
        if default:
            self.default = name

    def register_devices(self, platform: str, devices: Callable[[], Sequence[Any]]) -> None:
        """From now on there is a platform with such devices; its backend has the same name."""
        self.devices[platform] = devices

    def accelerator(self) -> Sequence[Any]:
        """The devices that programs run on where no platform is chosen, if not on this processor:
        those of an accelerator that is there with its plugin, opened when this is first asked."""
        return _accelerator()

    @property
    def chosen(self) -> str:
        """The backend that compiles what is placed nowhere: that of `calque_default_device`, or the
        first of `calque_platforms`; without either that of an accelerator, if there is one."""
        return self.of_platform if config.default_device is None else str(self.home().engine)

    @property
    def of_platform(self) -> str:
        """The same, if no device were asked for."""
        wanted = config.platforms
        if not wanted:
            found = self.accelerator()
            return str(found[0].engine) if found else self.default
        name = str(wanted).partition(",")[0].strip()
        if name == "cpu" or name in self.devices:
            return self.default if name == "cpu" else name
        try:
            return str(plugins.call(name)[0].engine)
        except RuntimeError as e:
            raise RuntimeError(
                f"Unable to initialize backend {name!r}: {e} (set CALQUE_PLATFORMS, or"
                " config.update('calque_platforms', ...), to a platform that is there:"
                f" {', '.join(['cpu', *sorted(self.devices)])})"
            ) from None

    def leaves_home(self) -> bool:
        """Whether what is placed nowhere may live elsewhere than on this processor."""
        return {self.chosen, self.of_platform} != {self.default}

    def may_leave_home(self) -> bool:
        """The same, before anything is opened: yes where there may be an accelerator."""
        wanted = str(config.platforms or "")
        return not wanted.startswith("cpu") if wanted else may_have_accelerators()

    def devices_of(self, platform: str) -> Sequence[Any]:
        """The devices of a platform of another engine."""
        found = self.devices.get(platform)
        devices: Sequence[Any] = plugins.call(platform) if found is None else found()
        return devices

    def default_devices(self) -> Sequence[Any]:
        """The devices that programs run on when nothing else is asked for: those of the chosen
        platform, of an accelerator, or this processor."""
        if not config.platforms:
            return self.accelerator() or all_devices()
        name = self.chosen
        return all_devices() if name == self.default else self.devices_of(name)

    def home(self) -> Any:
        """The device of what is placed nowhere."""
        asked = config.default_device
        if asked is None:
            devices = self.default_devices()
        elif isinstance(asked, str):
            devices = all_devices() if asked == "cpu" else self.devices_of(asked)
        else:
            return asked
        return next(d for d in devices if is_mine(d))

    def register_symbolic(self, name: str, compiler: SymbolicCompiler) -> None:
        """The backend can compile programs with free sizes."""
        self.symbolic[name] = compiler


known: Final = Backends()


def _no_lowering(*_: Any) -> Any:
    raise RuntimeError("nothing lowers programs to StableHLO: import calque")


# traced functions in terms of XLA: as text, as an object of jaxlib
stablehlo_text: Final[Hook[Callable[..., str]]] = process.hook("StableHLO as text", _no_lowering)
stablehlo_module: Final[Hook[Callable[..., Any]]] = process.hook("StableHLO", _no_lowering)

_before_compiling: Final = process.listeners("before compiling")


def before_compiling(ask: Callable[[], None]) -> None:
    """Call this before each compilation; what it raises reaches the caller."""
    _before_compiling.add(ask)


def compile_program(
    closed: ClosedJaxpr, options: Options, backend: str | None = None
) -> Executable:
    _before_compiling.tell()
    name = backend or known.chosen
    if name not in known.reading_places:
        closed = without_places(closed)
    symbols = symbols_found_by(closed)
    if symbols is not None and name in known.symbolic:
        found: Executable = known.symbolic[name](closed, options, symbols)
        return found
    try:
        compiler = known.compilers[name]
    except KeyError:
        raise RuntimeError(
            f"Unknown backend {name!r}; the backends are {', '.join(sorted(known.compilers))}"
        ) from None
    return compiler(closed, options)


def compile_symbolic(closed: ClosedJaxpr, options: Options, symbols: Symbols) -> Any:
    return known.symbolic[known.chosen](closed, options, symbols)


def has_symbolic() -> bool:
    return known.chosen in known.symbolic


@dataclass(frozen=True)
class MemoryStats:
    """Bytes that one call of a program takes."""

    argument_size_in_bytes: int
    output_size_in_bytes: int
    temp_size_in_bytes: int
    alias_size_in_bytes: int = 0
    generated_code_size_in_bytes: int = 0
    peak_memory_in_bytes: int = field(default=0, repr=False)  # if nothing is said, all at once
    host_argument_size_in_bytes: int = field(default=0, repr=False)
    host_output_size_in_bytes: int = field(default=0, repr=False)
    host_temp_size_in_bytes: int = field(default=0, repr=False)
    host_alias_size_in_bytes: int = field(default=0, repr=False)
    host_generated_code_size_in_bytes: int = field(default=0, repr=False)

    def __post_init__(self) -> None:
        both = self.argument_size_in_bytes + self.output_size_in_bytes
        whole = both + self.temp_size_in_bytes - self.alias_size_in_bytes
        object.__setattr__(self, "peak_memory_in_bytes", self.peak_memory_in_bytes or whole)


class ReferenceExecutable:
    """Runs the meaning of each equation with NumPy."""

    def __init__(self, closed: ClosedJaxpr, options: Options):
        self.closed, self.options = closed, options
        self.in_avals, self.out_avals = closed.in_avals, closed.out_avals
        self.program: Any = None

    def call(self, args: Sequence[Any]) -> list[Any]:
        outs = [np.array(o) for o in reference.run(self.closed, *args)]
        return [  # a size that was found is known now
            from_storage(o, a.update(shape=o.shape))
            for o, a in zip(outs, self.out_avals, strict=True)
        ]

    def as_text(self, stage: str | None = None) -> str:
        if stage not in (None, "jaxpr"):
            raise ValueError(f"the reference backend has no stage {stage!r}, only 'jaxpr'")
        return str(self.closed)

    def cost_analysis(self) -> dict[str, float]:
        return {
            "flops": float(flops(self.closed.eqns)),
            "bytes accessed": float(traffic(self.closed)),
        }

    def memory_analysis(self) -> MemoryStats:
        return MemoryStats(sum(map(nbytes, self.in_avals)), sum(map(nbytes, self.out_avals)), 0)


# primitives that place elements elsewhere and compute nothing
MOVES: Final = frozenset(
    (
        *("broadcast_in_dim", "reshape", "transpose", "squeeze", "rev", "copy", "iota", "empty"),
        *("slice", "dynamic_slice", "dynamic_update_slice", "split", "concatenate", "pad", "tile"),
        *("stack", "unstack", "gather", "scatter", "stop_gradient", "bitcast_convert_type"),
        *("name", "optimization_barrier", "sharding_constraint"),
    )
)


TRANSCENDENTAL: Final = frozenset(
    (
        *("exp", "exp2", "expm1", "log", "log1p", "sin", "cos", "tan", "tanh", "sqrt", "rsqrt"),
        *("cbrt", "logistic", "erf", "erfc", "erf_inv", "lgamma", "digamma", "pow", "atan2"),
        *("asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "igamma", "igammac"),
    )
)


def flops(eqns: Sequence[Eqn]) -> int:
    """A rough count: one per element, two for each term of products and convolutions, loops by
    their length, nothing for what is only moved."""
    return sum(map(_flops_of, eqns))


def _flops_of(e: Eqn) -> int:
    if e.primitive.name in MOVES:
        return 0
    inner = sum(flops(j.eqns) for j in subjaxprs(e.params))
    if inner:
        return inner * int(hint_of(e.params.get("length") or 1))
    terms = _terms(e)
    if terms is not None:
        return 2 * int(hint_of(e.outvars[0].aval.size)) * terms
    return max((int(hint_of(v.aval.size)) for v in (*e.outvars, *e.invars)), default=0)


def transcendentals(eqns: Sequence[Eqn]) -> int:
    """How many elements functions such as exp and sin make, in loops by their length."""
    return sum(map(_transcendentals_of, eqns))


def _transcendentals_of(e: Eqn) -> int:
    inner = sum(transcendentals(j.eqns) for j in subjaxprs(e.params))
    if inner or e.primitive.name not in TRANSCENDENTAL:
        return inner * int(hint_of(e.params.get("length") or 1))
    return sum(int(hint_of(v.aval.size)) for v in e.outvars)


def _terms(e: Eqn) -> int | None:
    """How many terms each element of a product or a convolution has."""
    if e.primitive.name == "dot_general":
        (contracted, _), _ = e.params["dimension_numbers"]
        return math.prod(int(hint_of(e.invars[0].aval.shape[d])) for d in contracted)
    if e.primitive.name == "conv_general_dilated":
        kernel: Any = e.invars[1].aval
        features = e.params["dimension_numbers"].rhs_spec[0]
        return math.prod(int(hint_of(n)) for d, n in enumerate(kernel.shape) if d != features)
    return None


def traffic(closed: ClosedJaxpr) -> int:
    return sum(nbytes(a) for a in (*closed.in_avals, *closed.out_avals))


known.register("reference", ReferenceExecutable, default=True)

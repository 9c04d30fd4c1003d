"""Configuration: a few named flags, with defaults from the environment and overrides by context
manager.

Names are `calque_*`; the `jax_*` spelling of the same flag is accepted. `update` sets a flag for
the process; inside the `with` block of an `override` it has another value, for the thread that is
there and no other.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from calque.core import absl_flags
from calque.core.foreign_flags import FOREIGN, HEEDED, NOT_OFFERED, TRUE_ANYWAY
from calque.machine.code import diskcache
from calque.machine.once import Turns
from calque.machine.state import PerThread

_LOG: Final = logging.getLogger("calque")
_CACHE: Final = "compilation_cache_dir"  # JAX's name of the folder of compiled programs

TRANSFERS = (
    "transfer_guard",
    "transfer_guard_host_to_device",
    "transfer_guard_device_to_device",
    "transfer_guard_device_to_host",
)

# the names of `lax.DotAlgorithmPreset`
DOT_ALGORITHMS: Final = (
    *("DEFAULT", "ANY_F8_ANY_F8_F32", "ANY_F8_ANY_F8_F32_FAST_ACCUM", "ANY_F8_ANY_F8_ANY"),
    *("ANY_F8_ANY_F8_ANY_FAST_ACCUM", "F16_F16_F16", "F16_F16_F32", "BF16_BF16_BF16"),
    *("BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6", "BF16_BF16_F32_X9"),
    *("TF32_TF32_F32", "TF32_TF32_F32_X3", "F32_F32_F32", "F64_F64_F64"),
)
_CHOICES: Final = {
    "numpy_dtype_promotion": ("standard", "strict"),
    "numpy_rank_promotion": ("allow", "warn", "raise"),
    "default_matmul_precision": (
        None,
        "default",
        "high",
        "highest",
        "bfloat16",
        "tensorfloat32",
        "float32",
        *DOT_ALGORITHMS,
    ),
    "on_stale": ("warn", "retrace", "error", "ignore"),
    "default_prng_impl": (
        "threefry2x32",
        "rbg",
        "unsafe_rbg",
    ),
    "legacy_prng_key": ("allow", "warn", "error"),
    "explicit_x64_dtypes": ("warn", "error", "allow"),
    "traceback_filtering": (
        "auto",
        "off",
        "tracebackhide",
        "remove_frames",
        "quiet_remove_frames",
    ),
    "array_garbage_collection_guard": (None, "allow", "log", "fatal"),
    **dict.fromkeys(
        TRANSFERS, (None, "allow", "log", "disallow", "log_explicit", "disallow_explicit")
    ),
}

# Values that other machines give a meaning to: asking for them here is refused, with the reason.
_REFUSED: Final[dict[str, tuple[tuple[Any, ...], str]]] = {
    "array_garbage_collection_guard": (
        ("log", "fatal"),
        "arrays that are part of reference cycles are not reported",
    ),
    "jax2tf_associative_scan_reductions": ((True,), "there is no TensorFlow here"),
    "explicit_x64_dtypes": (
        ("allow",),
        "there are 64-bit types for all or for nobody, as calque_enable_x64 says",
    ),
}

# name -> (default, part of the trace key)
_FLAGS: Final[dict[str, tuple[Any, bool]]] = {
    "enable_x64": (False, True),
    "exact": (False, True),
    "disable_jit": (False, True),
    "numpy_dtype_promotion": ("standard", True),
    "numpy_rank_promotion": ("allow", True),
    "threefry_partitionable": (True, True),
    "default_matmul_precision": (None, True),
    "default_prng_impl": ("threefry2x32", True),
    "debug_nans": (False, True),
    "debug_infs": (False, True),
    "debug_key_reuse": (False, True),
    "debug_index": (False, True),
    "check_static_indices": (False, True),
    "check_tracer_leaks": (False, False),
    "traceback_filtering": ("auto", False),
    "on_stale": ("warn", False),
    "platforms": (None, True),
    "log_compiles": (False, False),
    "verify_kernels": (False, False),
    "quick_first_calls": (True, False),  # code for one call, made anew when there are more
    "allow_f16_reductions": (True, True),
    "array_garbage_collection_guard": (None, False),
    "auto_pcast": (True, True),
    "disable_vmap_shmap_error": (False, True),  # let lanes and shard_map name the same axes
    "default_device": (None, True),
    "disable_bwd_checks": (False, True),  # cotangents of any type from rules of the user
    "enable_checks": (False, False),
    "enable_custom_prng": (False, True),
    "explain_cache_misses": (False, False),
    "explicit_x64_dtypes": ("warn", True),  # what one gets who names 64 bits where they are off
    "exporting_for": ((), True),  # the platforms of the program that is being exported
    "jax2tf_associative_scan_reductions": (False, False),
    "legacy_prng_key": ("allow", True),
    "no_execution": (False, True),
    "no_tracing": (False, False),
    "num_cpu_devices": (-1, False),  # -1: what the environment says, or one
    "remove_size_one_mesh_axis_from_type": (False, True),
    "softmax_custom_jvp": (False, False),  # the derivative is the efficient one in any case
    "thread_guard": (False, False),  # speaks of operations of several processes: there is one
    **dict.fromkeys(TRANSFERS, (None, False)),  # of engines that copy: calque's own does not
}


# under these, single operations are looked at
_LOOKING: Final = (
    "debug_index",
    "check_static_indices",
    "debug_key_reuse",
    "debug_nans",
    "debug_infs",
)


def _bare(name: str) -> str:
    for prefix in ("calque_", "jax_"):
        if name.startswith(prefix):
            name = name[len(prefix) :]
            break
    if name not in _FLAGS and name not in FOREIGN:
        raise AttributeError(
            f"Unrecognized config option: calque_{name}. The options are:"
            f" {', '.join('calque_' + f for f in _FLAGS)}."
        )
    return name


def _all_of(name: str) -> Sequence[str]:
    """The flags that this one sets: a guard of all transfers those of each direction."""
    return TRANSFERS if name == "transfer_guard" else (name,)


def _from_environment(name: str, default: Any, package: str = "CALQUE") -> Any:
    variable = f"{package}_{name.upper()}"
    text = os.environ.get(variable)
    if text is None or isinstance(default, tuple):
        return default
    if isinstance(default, bool):
        if text.lower() in ("1", "true", "yes", "on"):
            return True
        if text.lower() in ("0", "false", "no", "off", ""):
            return False
        raise ValueError(f"{variable} must be a truth value such as 1 or 0, got {text!r}")
    if isinstance(default, int):
        return int(text) if text.isdigit() else text
    if isinstance(default, float):
        return float(text)
    return text


def _defaults() -> dict[str, Any]:
    """The flags that the environment and the command line may set. A tuple is set by calque alone,
    while it does something."""
    ours = {n: default for n, (default, _) in _FLAGS.items() if not isinstance(default, tuple)}
    return {**ours, **FOREIGN}


class Flags:
    """The values of all flags: of the process, or of a thread that is inside `with` blocks."""

    __slots__ = ("disable_jit", "guards", "key", "looks", "values")

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values
        self.key = tuple([values[n] for n, (_, keyed) in _FLAGS.items() if keyed])
        self.looks = any([values[n] for n in _LOOKING])
        self.guards = any([values[n] not in (None, "allow") for n in TRANSFERS])
        self.disable_jit: bool = values["disable_jit"]


class _OfThread(PerThread, name="flags of a thread"):
    """What this thread has set in `with` blocks, and how often it has changed the process's."""

    changes = 0
    own: Mapping[str, Any] = MappingProxyType({})
    end: _End | None = None


class _End:
    """Goes with its thread: the next thread may have the same number."""

    def __init__(self, thread: int, forget: Callable[[set[int]], None]) -> None:
        self._thread, self._forget = thread, forget

    def __del__(self) -> None:
        self._forget({self._thread})


_ABSENT: Final = object()


class Config:
    """The flags as attributes: `config.enable_x64`, `config.update("calque_enable_x64", True)`."""

    def __init__(self) -> None:
        self._process = Flags(
            {name: _from_environment(name, default) for name, (default, _) in _FLAGS.items()}
        )
        self._threads: dict[int, Flags] = {}  # those inside `with` blocks
        self._own: dict[int, Mapping[str, Any]] = {}  # what they set there
        self._foreign: dict[str, Any] = {}
        self._told: set[str] = set()  # the names of which was said that they have no effect
        self._listeners: list[Callable[[], None]] = []
        self._turns, self._changes, self._mine = Turns(), 0, _OfThread()
        for name, value in self._process.values.items():
            self._check(name, value)
        self._publish()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork_in_child)

    def _check(self, name: str, value: Any) -> None:
        choices = _CHOICES.get(name)
        if choices and value not in choices:
            raise ValueError(
                f"calque_{name} must be one of {', '.join(map(repr, choices))}; got {value!r}"
            )
        if isinstance(_FLAGS[name][0], bool) and not isinstance(value, bool):
            raise ValueError(f"calque_{name} must be a bool; got {value!r}")
        if name == "num_cpu_devices" and (type(value) is not int or (value < 1 and value != -1)):
            raise ValueError(
                f"calque_{name} or CALQUE_{name.upper()} must be a positive integer; got {value!r}"
            )
        if name == "default_device" and not (
            value is None or isinstance(value, str) or hasattr(value, "engine")
        ):
            raise ValueError(
                f"calque_{name} must be None, a device or the name of a platform; got {value!r}"
            )
        refused, why = _REFUSED.get(name, ((), ""))
        if value in refused:
            raise NotImplementedError(f"calque_{name} cannot be {value!r}: {why}")

    def _publish(self) -> None:
        """Flags are plain attributes, so that reading one costs nothing; where a thread has some of
        its own, reading asks who reads."""
        values = self._process.values
        self._threads = {t: Flags({**values, **own}) for t, own in self._own.items()}
        self.__dict__.update(values)
        self.__class__ = _AskedByThreads if self._own else Config
        for listener in self._listeners:
            listener()

    def update(self, name: str, value: Any) -> None:
        """Set a flag for the whole process: `config.update("calque_enable_x64", True)`. Threads
        inside a `with` block that sets it go on with the value of the block."""
        name = _bare(name)
        if name in FOREIGN:
            if name == _CACHE:
                diskcache.keep_at(value)
            else:
                self._accept(name, value)
            with self._turns.taken():
                self._foreign[name] = value
            return
        self._check(name, value)
        with self._turns.taken():
            self._set(name, value)

    def _set(self, name: str, value: Any) -> None:
        self._changes += 1
        self._mine.changes += 1
        self._process = Flags({**self._process.values, **dict.fromkeys(_all_of(name), value)})
        self._publish()

    def _accept(self, name: str, value: Any) -> None:
        """Look at a value that has no meaning here, and say so once."""
        plain = (FOREIGN[name], *TRUE_ANYWAY.get(name, ()))
        if name in NOT_OFFERED and value not in plain:
            raise NotImplementedError(
                f"calque_{name} cannot be {value!r} here: {NOT_OFFERED[name]}"
            )
        with self._turns.taken():
            is_news = value not in plain and name not in self._told and name not in HEEDED
            self._told.update([name] if is_news else [])
        if is_news:
            _LOG.warning("calque_%s is accepted, and has no effect here", name)

    def update_from_environment(self) -> None:
        """Take what JAX's own variables say, such as JAX_ENABLE_X64, where calque's say nothing."""
        if f"JAX_{_CACHE.upper()}" in os.environ and "CALQUE_CACHE_DIR" not in os.environ:
            self.update(_CACHE, os.environ[f"JAX_{_CACHE.upper()}"])
        for name, default in _defaults().items():
            if f"JAX_{name.upper()}" in os.environ and f"CALQUE_{name.upper()}" not in os.environ:
                self.update(name, _from_environment(name, default, "JAX"))

    def config_with_absl(self) -> None:
        """Define a command-line flag of absl for each flag, such as --jax_enable_x64: what it is
        given counts from where absl has read the command line."""
        absl_flags.define(self, _defaults())

    def parse_flags_with_absl(self) -> None:
        """As `config_with_absl`, and take what the command line says of them now."""
        absl_flags.parse(self, _defaults())

    def read(self, name: str) -> Any:
        return getattr(self, _bare(name))

    @property
    def values(self) -> dict[str, Any]:
        return {f"calque_{n}": self.read(n) for n in (*_FLAGS, *FOREIGN)}

    @property
    def x64_enabled(self) -> bool:
        """Whether there are 64-bit types; older programs ask so."""
        return bool(self.read("enable_x64"))

    def __getattr__(self, name: str) -> Any:
        if name in FOREIGN:
            return self._mine.own.get(name, self.__dict__["_foreign"].get(name, FOREIGN[name]))
        if name.startswith(("calque_", "jax_")):
            return getattr(self, _bare(name))
        raise AttributeError(f"Unrecognized config option: {name}")

    def trace_key(self) -> tuple[Any, ...]:
        """The values of every flag that changes what is traced or compiled."""
        return self._process.key

    def here(self) -> Flags:
        """All flags, as they are for this thread."""
        return self._process

    def of_process(self) -> Flags:
        """All flags, as they are for threads outside of `with` blocks."""
        return self._process

    def of_threads(self) -> Mapping[int, Flags]:
        """All flags of each thread inside `with` blocks."""
        return self._threads

    def anywhere(self, name: str) -> bool:
        """Whether a flag is on in any thread."""
        return any(f.values[name] for f in (self._process, *self._threads.values()))

    def add(self, name: str, default: Any) -> None:
        """A new flag, which is part of the trace key."""
        with self._turns.taken():
            _FLAGS[name] = (default, True)
            setattr(_AskedByThreads, name, _asked(name))
            self._set(name, default)

    def changes_elsewhere(self) -> int:
        """How often other threads have changed flags of the process: what is made while they do is
        for no configuration in particular, and not kept."""
        return self._changes - self._mine.changes

    def on_change(self, listener: Callable[[], None]) -> None:
        self._listeners.append(listener)

    @contextlib.contextmanager
    def override(self, name: str, value: Any) -> Iterator[None]:
        """The flag has another value inside the `with` block, for this thread."""
        name = _bare(name)
        (self._accept if name in FOREIGN else self._check)(name, value)
        names = _all_of(name)
        thread, before = threading.get_ident(), self._hold(dict.fromkeys(names, value))
        try:
            yield
        finally:
            if thread == threading.get_ident():  # a block that is collected may end in another
                self._hold(before)

    def _hold(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Give this thread values of its own, or `_ABSENT` none; what it had."""
        thread, mine = threading.get_ident(), self._mine
        with self._turns.taken():
            before = {name: mine.own.get(name, _ABSENT) for name in values}
            mine.own = {n: v for n, v in {**mine.own, **values}.items() if v is not _ABSENT}
            if mine.own:
                mine.end = mine.end or _End(thread, self._forget)
                self._own[thread] = mine.own
            else:
                self._own.pop(thread, None)
            self._publish()
        return before

    def _forget(self, threads: set[int]) -> None:
        """These threads are no more."""
        with self._turns.taken():
            if not threads.isdisjoint(self._own):
                self._own = {t: own for t, own in self._own.items() if t not in threads}
                self._publish()

    def _after_fork_in_child(self) -> None:
        self._forget(set(self._own) - {threading.get_ident()})


class _AskedByThreads(Config):
    """The flags while a thread has some of its own."""

    def here(self) -> Flags:
        """All flags, as they are for this thread."""
        return self._threads.get(threading.get_ident(), self._process)

    def trace_key(self) -> tuple[Any, ...]:
        """The values of every flag that changes what is traced or compiled."""
        return self.here().key


def _asked(name: str) -> Any:
    """A flag as an attribute of `_AskedByThreads`."""
    return property(lambda config: config.here().values[name])


for _name in _FLAGS:
    setattr(_AskedByThreads, _name, _asked(_name))

config = Config()

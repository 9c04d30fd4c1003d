"""Flags that hold inside a `with` block, for the thread that is there, in JAX's names:
`with calque.enable_x64(): ...`"""

import contextlib
import itertools
from collections.abc import Hashable, Iterator
from typing import Any, Final

from calque.core import trace_state
from calque.core.backends import known
from calque.core.config import config
from calque.core.devices import Device, is_mine
from calque.machine.state import process

_REQUIRED = object()


class Context:
    """The context manager of a flag, and its value for the whole process."""

    def __init__(self, flag: str, doc: str, default: Any = _REQUIRED):
        self.__name__ = self.__qualname__ = flag
        self.__doc__ = doc
        self._flag, self._default = f"calque_{flag}", default

    def __call__(self, new_val: Any = _REQUIRED) -> contextlib.AbstractContextManager[None]:
        value = self._default if new_val is _REQUIRED else new_val
        if value is _REQUIRED:
            raise TypeError(
                f"Context manager for {self.__name__} config option requires an argument"
                " representing the new value for the config option."
            )
        return config.override(self._flag, value)

    @property
    def value(self) -> Any:
        """The value that holds here, in this thread."""
        return config.read(self._flag)

    def get_global(self) -> Any:
        """The value that holds outside of `with` blocks."""
        return config.of_process().values[self._flag.removeprefix("calque_")]

    def set_global(self, value: Any) -> None:
        """As `config.update`: the value from now on."""
        config.update(self._flag, value)


def _flag(name: str, does: str, values: str, example: Any, default: Any = _REQUIRED) -> Context:
    """The context manager of a flag: what it does, what its values mean, and one of them that its
    example sets; `default` is what it sets without an argument."""
    without = "It must be given." if default is _REQUIRED else f"Left out, it is {default}."
    doc = f"""A `with` block that {does}

    Args:
        new_val: {values} {without}

    Returns:
        A context manager.

    >>> with calque.{name}({example!r}):
    ...     calque.config.{name}
    {example!r}"""
    return Context(name, doc, default)


allow_f16_reductions = _flag(
    "allow_f16_reductions",
    "says whether `lax.reduce_sum` takes float16 and bfloat16.",
    "Whether it does; outside it does. Sums of many such numbers lose digits.",
    False,
    True,
)
array_garbage_collection_guard = _flag(
    "array_garbage_collection_guard",
    "says what happens to arrays in reference cycles.",
    'None or "allow". "log" and "fatal" are refused: cycles are not looked for.',
    "allow",
)
auto_pcast = _flag(
    "auto_pcast",
    "says whether values are made varying inside `shard_map` where that is needed.",
    "Whether they are; outside they are. Otherwise `lax.pcast` must be written.",
    False,
    True,
)
check_tracer_leaks = _flag(
    "check_tracer_leaks",
    "makes traced values that outlive their trace an error.",
    "Whether it is an error; the error names the line that made the value.",
    True,
    True,
)
checking_leaks = check_tracer_leaks  # both names are in use
debug_infs = _flag(
    "debug_infs",
    "makes an infinite result an error that names the operation and its line.",
    "Whether it is an error.",
    True,
    True,
)
debug_key_reuse = _flag(
    "debug_key_reuse",
    "makes using a random key twice an error.",
    "Whether it is an error.",
    True,
    True,
)
debug_nans = _flag(
    "debug_nans",
    "makes a NaN result an error that names the operation and its line.",
    "Whether it is an error.",
    True,
    True,
)
default_matmul_precision = _flag(
    "default_matmul_precision",
    "sets the precision of products that say nothing of theirs.",
    'None, "default", "high", "highest", "bfloat16", "tensorfloat32" or "float32".',
    "highest",
)
default_prng_impl = _flag(
    "default_prng_impl",
    "sets the algorithm of random keys made without `impl`.",
    '"threefry2x32" (the default), "rbg" or "unsafe_rbg".',
    "rbg",
)
enable_checks = _flag(
    "enable_checks",
    "verifies each program when it has been recorded.",
    "Whether it is verified; it costs time while tracing.",
    True,
    True,
)
enable_custom_prng = _flag(
    "enable_custom_prng",
    "says whether `random.PRNGKey` gives typed keys.",
    "Whether they are typed, as those of `random.key`, rather than arrays of uint32.",
    True,
    True,
)
enable_x64 = _flag(
    "enable_x64",
    "says whether there are 64-bit types.",
    "Whether there are. Without them what asks for float64 or int64 gets 32 bits.",
    True,
    True,
)
explain_cache_misses = _flag(
    "explain_cache_misses",
    "logs each trace of a function with the types that it is made for.",
    "Whether traces are logged.",
    True,
    True,
)
jax2tf_associative_scan_reductions = _flag(
    "jax2tf_associative_scan_reductions",
    "belongs to TensorFlow, which is not here.",
    "False; True is refused.",
    False,
    True,
)
legacy_prng_key = _flag(
    "legacy_prng_key",
    "says what happens when random keys are arrays of uint32 rather than typed.",
    '"allow" (the default), "warn" or "error".',
    "error",
)
log_compiles = _flag(
    "log_compiles",
    "logs each compilation.",
    "Whether compilations are logged.",
    True,
    True,
)
no_execution = _flag(
    "no_execution",
    "makes running compiled functions an error.",
    "Whether it is an error.",
    True,
    True,
)
no_tracing = _flag(
    "no_tracing",
    "makes tracing a function for `jit` an error.",
    "Whether it is an error.",
    True,
    True,
)
numpy_dtype_promotion = _flag(
    "numpy_dtype_promotion",
    "says how operands of different dtypes are brought together.",
    '"standard" (the default), or "strict": only weak types give way, all else is an error.',
    "strict",
)
numpy_rank_promotion = _flag(
    "numpy_rank_promotion",
    "says what happens when arrays of different ranks are broadcast.",
    '"allow" (the default), "warn" or "raise".',
    "raise",
)
remove_size_one_mesh_axis_from_type = _flag(
    "remove_size_one_mesh_axis_from_type",
    "says whether types leave out mesh axes of size 1.",
    "Whether they do; outside they do not.",
    True,
    True,
)
softmax_custom_jvp = _flag(
    "softmax_custom_jvp",
    "is accepted: the derivative of softmax is the efficient one in any case.",
    "True or False.",
    True,
    True,
)
thread_guard = _flag(
    "thread_guard",
    "is accepted: it speaks of operations of several processes, and there is one.",
    "True or False.",
    True,
    True,
)
threefry_partitionable = _flag(
    "threefry_partitionable",
    "says which of the two layouts random bits have.",
    "True (the default) or False, the older layout. Numbers drawn differ between the two.",
    False,
    True,
)
transfer_guard = _flag(
    "transfer_guard",
    "says what happens to copies between the host and devices of XLA that nobody asked for: of"
    " NumPy arrays and numbers that are given to jitted functions, of arrays that these move, and"
    " of arrays of accelerators that the host looks at. calque's own engine makes none.",
    'None or "allow", "log", which logs them, "disallow", which makes them errors; "log_explicit"'
    ' and "disallow_explicit" mean those of device_put and device_get, too.',
    "log",
)
transfer_guard_device_to_device = _flag(
    "transfer_guard_device_to_device",
    "says what happens to copies between devices of XLA.",
    "As of `transfer_guard`.",
    "log",
)
transfer_guard_device_to_host = _flag(
    "transfer_guard_device_to_host",
    "says what happens to copies from a device to the host of XLA.",
    "As of `transfer_guard`.",
    "log",
)
transfer_guard_host_to_device = _flag(
    "transfer_guard_host_to_device",
    "says what happens to copies from the host to a device of XLA.",
    "As of `transfer_guard`.",
    "log",
)


def disable_jit(disable: bool = True) -> contextlib.AbstractContextManager[None]:
    """A `with` block in which functions under `jit`, loops and branches run as plain Python.

    Args:
        disable: Whether to disable it.

    Returns:
        A context manager.

    >>> with jax.disable_jit():
    ...     jax.jit(jnp.cos)(0.0)
    Array(1., dtype=float32, weak_type=True)"""
    return config.override("calque_disable_jit", bool(disable))


def default_device(new_val: Any = _REQUIRED) -> contextlib.AbstractContextManager[None]:
    """A `with` block whose programs run, and whose arrays are made, on this device.

    What is placed on a device, by `device_put` or by its arguments, stays there.

    Args:
        new_val: A device, the name of a platform whose first device is meant, or None for the
            first of `devices()`.

    Returns:
        A context manager.

    Differs from JAX:
        An array that was placed nowhere is on the default device of the moment: one made in the
        block is brought to where it is used after it.

    >>> with jax.default_device(jax.devices("cpu")[0]):
    ...     jnp.ones(2).device
    CpuDevice(id=0)"""
    if new_val is _REQUIRED:
        raise TypeError(
            "Context manager for default_device config option requires an argument representing the"
            " new value for the config option."
        )
    if isinstance(new_val, str) and new_val != "cpu":
        known.devices_of(new_val)  # what cannot be had is refused here
    elif not (new_val is None or new_val == "cpu" or isinstance(new_val, Device)):
        raise ValueError(
            "calque.default_device must be passed either a Device object (e.g."
            f" `calque.devices('cpu')[0]`) or the name of a platform, got: {new_val!r}"
        )
    if isinstance(new_val, Device) and not is_mine(new_val):
        raise ValueError(f"default_device({new_val!r}): the device belongs to another process")
    return config.override("calque_default_device", new_val)


@contextlib.contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """A `with` block in which operations on plain arrays run at once, also while tracing.

    Their results are constants of the program.

    Returns:
        A context manager.

    >>> @jax.jit
    ... def f(x):
    ...     with jax.ensure_compile_time_eval():
    ...         n = int(jnp.sum(jnp.arange(3)))  # a number, not a traced value
    ...     return x * n
    >>> f(2.0)
    Array(6., dtype=float32, weak_type=True)"""
    with trace_state.evaluating():
        yield


# ---------------------------------------------------------------- contexts of the user

_numbers: Final = process.container("numbers of contexts", itertools.count())


class UserContext:
    """A value that functions under `jit` are compiled anew for when it changes."""

    __slots__ = ("_name",)

    def __init__(self, default_value: Hashable = None):
        self._name = f"user_context_{next(_numbers)}"
        config.add(self._name, default_value)

    @property
    def value(self) -> Any:
        """The value that holds here."""
        return config.read(f"calque_{self._name}")

    def get_global(self) -> Any:
        """The value that holds outside of `with` blocks."""
        return config.of_process().values[self._name]

    def set_global(self, value: Hashable) -> None:
        """The value from now on."""
        hash(value)
        config.update(f"calque_{self._name}", value)

    def __call__(self, new_val: Hashable) -> contextlib.AbstractContextManager[None]:
        hash(new_val)
        return config.override(f"calque_{self._name}", new_val)


def make_user_context(default_value: Hashable = None) -> UserContext:
    """Makes a context of your own whose value is part of what `jit` looks at.

    `with context(1): f(x)` traces `f` for the value 1; `context.value` is the value that holds.

    Args:
        default_value: The value outside of all blocks; it must be hashable.

    Returns:
        A callable that takes a value and gives a context manager.

    >>> scale = jax.make_user_context(default_value=1)
    >>> f = jax.jit(lambda x: x * scale.value)
    >>> with scale(3):
    ...     f(2.0)
    Array(6., dtype=float32, weak_type=True)"""
    return UserContext(default_value)

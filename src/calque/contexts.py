"""Flags that hold inside a `with` block, in JAX's names: `with calque.enable_x64(): ...`"""

import contextlib
import itertools
from collections.abc import Hashable, Iterator
from typing import Any, Final

from calque.core import trace_state
from calque.core.config import config
from calque.core.devices import DEFAULT_DEVICE, Device
from calque.machine.state import process

_REQUIRED = object()


class Context:
    """The context manager of a flag; `default` is what it sets without an argument."""

    def __init__(self, flag: str, doc: str, default: Any = _REQUIRED):
        self.__name__ = self.__qualname__ = flag
        self.__doc__ = f"""{doc} Inside `with calque.{flag}(value):`."""
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
        """The value that holds here."""
        return config.read(self._flag)

    def get_global(self) -> Any:
        """The value that holds. It is one for the whole process."""
        return config.read(self._flag)

    def set_global(self, value: Any) -> None:
        """As `config.update`: the value from now on."""
        config.update(self._flag, value)


allow_f16_reductions = Context(
    "allow_f16_reductions", "Whether `lax.reduce_sum` takes float16 and bfloat16.", True
)
array_garbage_collection_guard = Context(
    "array_garbage_collection_guard", "What happens to arrays in reference cycles."
)
auto_pcast = Context(
    "auto_pcast", "Whether values are made varying inside `shard_map` where that is needed.", True
)
check_tracer_leaks = Context(
    "check_tracer_leaks", "Whether traced values that outlive their trace are an error.", True
)
checking_leaks = check_tracer_leaks  # both names are in use
debug_infs = Context("debug_infs", "Whether an infinite result is an error.", True)
debug_key_reuse = Context("debug_key_reuse", "Whether using a random key twice is an error.", True)
debug_nans = Context("debug_nans", "Whether a NaN result is an error.", True)
default_matmul_precision = Context(
    "default_matmul_precision", "The precision of products that say nothing of theirs."
)
default_prng_impl = Context("default_prng_impl", "The algorithm of random keys.")
enable_checks = Context(
    "enable_checks", "Whether each program is verified when it has been recorded.", True
)
enable_custom_prng = Context(
    "enable_custom_prng", "Whether `random.PRNGKey` gives typed keys.", True
)
enable_x64 = Context("enable_x64", "Whether there are 64-bit types.", True)
explain_cache_misses = Context(
    "explain_cache_misses", "Whether each trace is logged with the types it is made for.", True
)
jax2tf_associative_scan_reductions = Context(
    "jax2tf_associative_scan_reductions", "Belongs to TensorFlow.", True
)
legacy_prng_key = Context("legacy_prng_key", "What happens to random keys that are plain integers.")
log_compiles = Context("log_compiles", "Whether each compilation is logged.", True)
no_execution = Context("no_execution", "Whether running compiled functions is an error.", True)
no_tracing = Context("no_tracing", "Whether tracing a function for `jit` is an error.", True)
numpy_dtype_promotion = Context(
    "numpy_dtype_promotion", "How different dtypes are brought together."
)
numpy_rank_promotion = Context(
    "numpy_rank_promotion", "What happens when arrays of different ranks are broadcast."
)
remove_size_one_mesh_axis_from_type = Context(
    "remove_size_one_mesh_axis_from_type", "Whether types leave out mesh axes of size 1.", True
)
softmax_custom_jvp = Context(
    "softmax_custom_jvp", "Whether softmax has a derivative of its own.", True
)
thread_guard = Context(
    "thread_guard", "Whether operations of several processes belong to one thread.", True
)
threefry_partitionable = Context(
    "threefry_partitionable", "Which of the two layouts random bits have.", True
)
transfer_guard = Context("transfer_guard", "What happens to copies between host and devices.")
transfer_guard_device_to_device = Context(
    "transfer_guard_device_to_device", "The same, between devices."
)
transfer_guard_device_to_host = Context("transfer_guard_device_to_host", "The same, to the host.")
transfer_guard_host_to_device = Context("transfer_guard_host_to_device", "The same, from the host.")


def disable_jit(disable: bool = True) -> contextlib.AbstractContextManager[None]:
    """Functions under `jit` run as plain Python inside, and loops and branches too.

    >>> with calque.disable_jit():
    ...     calque.jit(jnp.cos)(0.0)
    Array(1., dtype=float32, weak_type=True)"""
    return config.override("calque_disable_jit", bool(disable))


def default_device(new_val: Any = _REQUIRED) -> contextlib.AbstractContextManager[None]:
    """The device of new arrays. They are made on the first one; `device_put` places them on
    others."""
    if new_val is _REQUIRED:
        raise TypeError(
            "Context manager for default_device config option requires an argument representing the"
            " new value for the config option."
        )
    if not (new_val is None or new_val == "cpu" or isinstance(new_val, Device)):
        raise ValueError(
            "calque.default_device must be passed either a Device object (e.g."
            f" `calque.devices('cpu')[0]`) or the platform name 'cpu', got: {new_val!r}"
        )
    if isinstance(new_val, Device) and new_val is not DEFAULT_DEVICE:
        raise NotImplementedError(
            f"default_device({new_val!r}): new arrays are made on {DEFAULT_DEVICE!r}. Place them"
            " with calque.device_put(x, device)"
        )
    return config.override("calque_default_device", new_val)


@contextlib.contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """Operations on plain arrays inside run at once, also while a function is traced: their results
    are constants of it.

    >>> @calque.jit
    ... def f(x):
    ...     with calque.ensure_compile_time_eval():
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
        """The value that holds. It is one for the whole process."""
        return self.value

    def set_global(self, value: Hashable) -> None:
        """The value from now on."""
        hash(value)
        config.update(f"calque_{self._name}", value)

    def __call__(self, new_val: Hashable) -> contextlib.AbstractContextManager[None]:
        hash(new_val)
        return config.override(f"calque_{self._name}", new_val)


def make_user_context(default_value: Hashable = None) -> UserContext:
    """A context whose value is part of what `jit` looks at: `with my_context(1): f(x)` traces f for
    the value 1.

    >>> scale = calque.make_user_context(default_value=1)
    >>> f = calque.jit(lambda x: x * scale.value)
    >>> with scale(3):
    ...     f(2.0)
    Array(6., dtype=float32, weak_type=True)"""
    return UserContext(default_value)

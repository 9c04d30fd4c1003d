"""Flags that hold inside a `with` block, in JAX's names: `with calque.enable_x64(): ...`"""

import contextlib
import itertools
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Final

from calque.core import trace_state
from calque.core.config import config
from calque.core.devices import DEFAULT_DEVICE, Device
from calque.machine.state import process

Context = Callable[..., contextlib.AbstractContextManager[None]]
_REQUIRED = object()


def _flag(name: str, doc: str, default: Any = _REQUIRED) -> Context:
    """The context manager of a flag; `default` is what it sets without an argument."""

    def context(new_val: Any = default) -> contextlib.AbstractContextManager[None]:
        if new_val is _REQUIRED:
            raise TypeError(
                f"Context manager for {name} config option requires an argument representing the"
                " new value for the config option."
            )
        return config.override(f"calque_{name}", new_val)

    context.__name__ = context.__qualname__ = name
    context.__doc__ = f"""{doc} Inside `with calque.{name}(value):`."""
    return context


allow_f16_reductions = _flag(
    "allow_f16_reductions", "Whether `lax.reduce_sum` takes float16 and bfloat16.", True
)
array_garbage_collection_guard = _flag(
    "array_garbage_collection_guard", "What happens to arrays in reference cycles."
)
auto_pcast = _flag(
    "auto_pcast", "Whether values are made varying inside `shard_map` where that is needed.", True
)
check_tracer_leaks = _flag(
    "check_tracer_leaks", "Whether traced values that outlive their trace are an error.", True
)
checking_leaks = check_tracer_leaks  # both names are in use
debug_infs = _flag("debug_infs", "Whether an infinite result is an error.", True)
debug_key_reuse = _flag("debug_key_reuse", "Whether using a random key twice is an error.", True)
debug_nans = _flag("debug_nans", "Whether a NaN result is an error.", True)
default_matmul_precision = _flag(
    "default_matmul_precision", "The precision of products that say nothing of theirs."
)
default_prng_impl = _flag("default_prng_impl", "The algorithm of random keys.")
enable_checks = _flag(
    "enable_checks", "Whether each program is verified when it has been recorded.", True
)
enable_custom_prng = _flag("enable_custom_prng", "Whether `random.PRNGKey` gives typed keys.", True)
enable_x64 = _flag("enable_x64", "Whether there are 64-bit types.", True)
explain_cache_misses = _flag(
    "explain_cache_misses", "Whether each trace is logged with the types it is made for.", True
)
jax2tf_associative_scan_reductions = _flag(
    "jax2tf_associative_scan_reductions", "Belongs to TensorFlow.", True
)
legacy_prng_key = _flag("legacy_prng_key", "What happens to random keys that are plain integers.")
log_compiles = _flag("log_compiles", "Whether each compilation is logged.", True)
no_execution = _flag("no_execution", "Whether running compiled functions is an error.", True)
no_tracing = _flag("no_tracing", "Whether tracing a function for `jit` is an error.", True)
numpy_dtype_promotion = _flag("numpy_dtype_promotion", "How different dtypes are brought together.")
numpy_rank_promotion = _flag(
    "numpy_rank_promotion", "What happens when arrays of different ranks are broadcast."
)
remove_size_one_mesh_axis_from_type = _flag(
    "remove_size_one_mesh_axis_from_type", "Whether types leave out mesh axes of size 1.", True
)
softmax_custom_jvp = _flag(
    "softmax_custom_jvp", "Whether softmax has a derivative of its own.", True
)
thread_guard = _flag(
    "thread_guard", "Whether operations of several processes belong to one thread.", True
)
threefry_partitionable = _flag(
    "threefry_partitionable", "Which of the two layouts random bits have.", True
)
transfer_guard = _flag("transfer_guard", "What happens to copies between host and devices.")
transfer_guard_device_to_device = _flag(
    "transfer_guard_device_to_device", "The same, between devices."
)
transfer_guard_device_to_host = _flag("transfer_guard_device_to_host", "The same, to the host.")
transfer_guard_host_to_device = _flag("transfer_guard_host_to_device", "The same, from the host.")


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
    """A `with` block that says where new arrays are made.

    They are made on the first device; `device_put` places them on others.

    Args:
        new_val: The first of `devices()`, "cpu" or None.

    Returns:
        A context manager.

    Differs from JAX:
        Another device than the first is refused.

    >>> with jax.default_device(jax.devices()[0]):
    ...     jnp.ones(2).device
    CpuDevice(id=0)"""
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

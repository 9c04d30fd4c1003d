"""On which processor of a device a part of a program is computed. Here all are the same one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from calque.core import pytrees
from calque.core.devices import Space
from calque.device_functions import device_put
from calque.experimental import wishes
from calque.transforms.engines.signatures import check_callable
from calque.transforms.engines.trees import wrapping
from calque.transforms.jit.compiler_options import check_options

__all__ = ["compute_on", "compute_on2"]

_TYPES = ("device_host", "device", "tpu_sparsecore")


def _check(compute_type: Any) -> None:
    if not isinstance(compute_type, str):
        raise TypeError(f"compute_on: compute_type must be a string, got {compute_type!r}")
    if compute_type not in _TYPES and not compute_type.startswith("gpu_stream:"):
        raise ValueError(
            f"Invalid compute type {compute_type!r}: those that there are are {', '.join(_TYPES)}"
            " and gpu_stream:#"
        )
    wishes.note(f"compute_on({compute_type!r}) chooses among the processors of an accelerator")


@contextlib.contextmanager
def compute_on(compute_type: str) -> Iterator[None]:
    """Says, in a `with` block or as a decorator, which processor of a device computes.

    Args:
        compute_type: "device_host", "device", "tpu_sparsecore" or "gpu_stream:" and a number.

    Returns:
        What a `with` statement takes.

    Differs from JAX:
        Devices here have one processor: it has no effect, which the log notes once.

    >>> from calque.experimental.compute_on import compute_on
    >>> with compute_on("device_host"):
    ...     print(jnp.sin(0.0))
    0.0"""
    _check(compute_type)
    yield


def compute_on2(
    f: Callable[..., Any] | None = None,
    *,
    compute_type: str,
    out_memory_spaces: Any,
    compiler_options: Mapping[str, Any] | None = None,
) -> Any:
    """Makes a function that is computed on a processor of a device; also a decorator.

    Args:
        f: The function, of positional arguments. Left out, a decorator is returned.
        compute_type: As `compute_on` takes it.
        out_memory_spaces: The memory that the results are in: a `jax.memory.Space`, or a tree of
            them that the result begins with.
        compiler_options: As `jit` takes them.

    Returns:
        A function of the same arguments.

    Differs from JAX:
        Devices here have one processor: `compute_type` has no effect, which the log notes once.

    >>> from calque.experimental.compute_on import compute_on2
    >>> on_host = compute_on2(
    ...     jnp.sin, compute_type="device_host", out_memory_spaces=jax.memory.Space.Device
    ... )
    >>> on_host(0.0)
    Array(0., dtype=float32, weak_type=True)"""
    _check(compute_type)
    check_options(compiler_options)
    if f is None:
        return lambda g: compute_on2(
            g,
            compute_type=compute_type,
            out_memory_spaces=out_memory_spaces,
            compiler_options=compiler_options,
        )
    check_callable(f)
    for space in pytrees.leaves(out_memory_spaces):
        if not isinstance(space, Space):
            raise TypeError(
                f"compute_on2: out_memory_spaces takes members of jax.memory.Space, got {space!r}"
            )

    def computed(*args: Any) -> Any:
        return device_put(f(*args), out_memory_spaces)

    return wrapping(computed, f)

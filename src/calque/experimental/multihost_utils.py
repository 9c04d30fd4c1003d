"""Several processes that work as one: values that all of them have or get. In one process, what
concerns only others is done at once, or refused."""

import contextlib
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from calque.core import pytrees
from calque.core.arrays import ArrayImpl
from calque.core.devices import number_of_processes, process_number
from calque.core.trace import typeof
from calque.device_functions import device_put
from calque.transforms.devices.assembling import make_array_from_process_local_data
from calque.transforms.devices.several_processes import spans
from calque.transforms.devices.sharding import NamedSharding
from calque.transforms.devices.specs import PartitionSpec as P
from calque.transforms.jit.pmap_rows import own_part
from calque.transforms.jit.several_processes import of_all, whole_of
from calque.tree_util import tree_flatten, tree_unflatten

__all__ = [
    "P", "ProcessFailureError", "assert_equal", "broadcast_one_to_all",
    "global_array_to_host_local_array",
    "global_array_to_host_local_array_impl", "host_local_array_to_global_array",
    "host_local_array_to_global_array_impl", "live_devices",
    "process_allgather", "reached_preemption_sync_point", "safe_zip", "sync_global_devices",
    "tree_flatten", "tree_unflatten",
]  # fmt: skip


class ProcessFailureError(RuntimeError):
    """Another process has failed."""


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """Gives the values that the source process has, for all processes: those of this one.

    Args:
        in_tree: A tree of arrays and numbers.
        is_source: Whether this process is the source; None or True.

    Returns:
        The tree with NumPy arrays.

    >>> from calque.experimental import multihost_utils
    >>> multihost_utils.broadcast_one_to_all(jnp.arange(3))
    array([0, 1, 2], dtype=int32)"""
    if number_of_processes() > 1:
        source = process_number() == 0 if is_source is None else is_source
        at = int(np.argmax(of_all(np.asarray(bool(source)))))
        return pytrees.tree_map(lambda x: np.asarray(of_all(_as_array_has(x))[at]), in_tree)
    if is_source is False:
        raise ValueError(
            "broadcast_one_to_all: is_source=False, but there is no other process to send the"
            " values"
        )
    return pytrees.tree_map(np.asarray, in_tree)


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """Gives the values of all processes.

    Args:
        in_tree: A tree of arrays and numbers.
        tiled: Whether they are joined along the first dimension rather than stacked along a new
            one.

    Returns:
        The tree with NumPy arrays.

    >>> from calque.experimental import multihost_utils
    >>> multihost_utils.process_allgather(jnp.arange(3)).shape
    (1, 3)"""
    return pytrees.tree_map(lambda x: _gathered(x, tiled), in_tree)


def _gathered(x: Any, tiled: bool) -> np.ndarray:
    if isinstance(x, ArrayImpl) and spans(x._extra):  # it is the whole already
        if not tiled:
            raise ValueError(
                "process_allgather: an array over several processes is gathered with tiled=True"
                f" only, which gives all of its {x.aval.str_short()}"
            )
        return np.asarray(whole_of(x))
    several = number_of_processes() > 1
    every = of_all(_as_array_has(x) if several else np.asarray(x))
    return np.concatenate(every) if tiled and every.ndim > 1 else every


def _as_array_has(x: Any) -> np.ndarray:
    """The elements in the dtype that an array of them has: 32 bits, unless 64 are switched on."""
    values = np.asarray(x)
    return values.astype(typeof(values).dtype, copy=False)


def sync_global_devices(name: str) -> None:
    """Waits until every process has come here.

    Args:
        name: The name of the place.

    >>> from calque.experimental import multihost_utils
    >>> multihost_utils.sync_global_devices("saved")"""
    if not isinstance(name, str):
        raise TypeError(f"sync_global_devices: name must be a string, got {name!r}")
    assert_equal(
        np.uint32(zlib.crc32(name.encode())), f"sync_global_devices name mismatch ({name})"
    )


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Checks that all processes have the same values; the one process has.

    Args:
        in_tree: A tree of arrays and numbers.
        fail_message: What an error begins with.

    Raises:
        AssertionError: They have not.

    >>> from calque.experimental import multihost_utils
    >>> multihost_utils.assert_equal(jnp.ones(2))"""
    found = pytrees.tree_map(lambda x: of_all(np.asarray(x)), in_tree)  # all bits of 64, too
    if not all(map(_are_equal, pytrees.leaves(found))):
        raise AssertionError(f"{fail_message} Of all processes: {found}; got: {in_tree}.")


def _are_equal(every: np.ndarray) -> bool:
    is_number = every.dtype.kind in "fc"
    return all(np.array_equal(x, every[0], equal_nan=is_number) for x in every[1:])


def reached_preemption_sync_point(step_id: int) -> bool:
    """Tells whether the processes have agreed to save at this step, before they are stopped.

    Args:
        step_id: The number of the step.

    Returns:
        False: nobody stops one process that way.

    >>> from calque.experimental import multihost_utils
    >>> multihost_utils.reached_preemption_sync_point(3)
    False"""
    if not isinstance(step_id, int):
        raise TypeError(f"reached_preemption_sync_point: step_id must be an int, got {step_id!r}")
    return False


@contextlib.contextmanager
def live_devices(devices: Sequence[Any]) -> Iterator[list[Any]]:
    """A `with` block with the devices whose processes are alive.

    Args:
        devices: The devices in question.

    Returns:
        A context manager that gives a list: all of them.

    >>> from calque.experimental import multihost_utils
    >>> with multihost_utils.live_devices(jax.devices()) as alive:
    ...     alive == jax.devices()
    True"""
    yield list(devices)


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """Makes arrays over a mesh of what each process has: its part of the mesh cuts its part of an
    array, as the mesh cuts the whole.

    Args:
        local_inputs: A tree of arrays: the parts of this process. Those over several processes
            stay as they are.
        global_mesh: The mesh.
        pspecs: A PartitionSpec, or a tree of them that the arrays begin with.

    Returns:
        The tree with placed arrays.

    >>> from calque.experimental import multihost_utils
    >>> mesh, P = jax.make_mesh((1,), ("x",)), jax.P
    >>> multihost_utils.host_local_array_to_global_array(jnp.ones(2), mesh, P("x")).sharding.spec
    P('x',)"""
    return _over_trees(host_local_array_to_global_array_impl, local_inputs, global_mesh, pspecs)


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """Gives the parts of arrays over a mesh that this process holds, over its part of the mesh.

    Args:
        global_inputs: A tree of arrays.
        global_mesh: The mesh.
        pspecs: A PartitionSpec, or a tree of them that the arrays begin with.

    Returns:
        The tree with arrays.

    >>> from calque.experimental import multihost_utils
    >>> mesh, P = jax.make_mesh((1,), ("x",)), jax.P
    >>> multihost_utils.global_array_to_host_local_array(jnp.ones(2), mesh, P("x"))
    Array([1., 1.], dtype=float32)"""
    return _over_trees(global_array_to_host_local_array_impl, global_inputs, global_mesh, pspecs)


def host_local_array_to_global_array_impl(arr: Any, *, global_mesh: Any, pspec: Any) -> Any:
    """Makes one array over a mesh of what each process has.

    Args:
        arr: The part of this process.
        global_mesh: The mesh.
        pspec: A PartitionSpec.

    Returns:
        A placed array.

    >>> from calque.experimental import multihost_utils
    >>> mesh = jax.make_mesh((1,), ("x",))
    >>> place = multihost_utils.host_local_array_to_global_array_impl
    >>> place(jnp.ones(2), global_mesh=mesh, pspec=jax.P("x")).sharding.spec
    P('x',)"""
    if pspec is None:
        raise ValueError(
            "`None` is not a valid input to the pspecs argument. Please use P() if you want"
            " replication."
        )
    whole = NamedSharding(global_mesh, pspec)
    if not spans(whole) or (isinstance(arr, ArrayImpl) and spans(arr._extra)):
        return device_put(arr, whole)
    values = np.asarray(arr)
    local = NamedSharding(global_mesh.local_mesh, pspec)
    local.check(values.shape)
    shape = tuple(
        size // own * n
        for size, own, n in zip(
            values.shape, local.counts(values.ndim), whole.counts(values.ndim), strict=True
        )
    )
    return make_array_from_process_local_data(whole, values, shape)


def global_array_to_host_local_array_impl(arr: Any, *, global_mesh: Any, pspec: Any) -> Any:
    """Gives the part of one array over a mesh that this process holds, over its part of the mesh.

    Args:
        arr: The array.
        global_mesh: The mesh.
        pspec: A PartitionSpec.

    Returns:
        An array.

    >>> from calque.experimental import multihost_utils
    >>> mesh = jax.make_mesh((1,), ("x",))
    >>> part = multihost_utils.global_array_to_host_local_array_impl
    >>> part(jnp.ones(2), global_mesh=mesh, pspec=jax.P("x"))
    Array([1., 1.], dtype=float32)"""
    if pspec is None:
        raise ValueError(
            "`None` is not a valid input to the pspecs argument. Please use P() if you want"
            " replication."
        )
    whole = NamedSharding(global_mesh, pspec)
    if not spans(whole):
        return device_put(arr, whole)
    if isinstance(arr, ArrayImpl) and not spans(arr._extra):
        return arr  # it is what this process has
    return own_part(device_put(arr, whole))


def _over_trees(f: Any, inputs: Any, mesh: Any, pspecs: Any) -> Any:
    def is_spec(x: Any) -> bool:
        return x is None or isinstance(x, P)

    leaves, tree = pytrees.flatten(inputs)
    specs = (
        [pspecs] * len(leaves)
        if is_spec(pspecs)
        else pytrees.prefix_broadcast(pspecs, inputs, is_leaf=is_spec)
    )
    return pytrees.unflatten(
        tree, [f(x, global_mesh=mesh, pspec=s) for x, s in zip(leaves, specs, strict=True)]
    )


def safe_zip(*sequences: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Zips sequences that must be of one length.

    Args:
        *sequences: The sequences.

    Returns:
        A list of tuples.

    >>> from calque.experimental import multihost_utils
    >>> multihost_utils.safe_zip([1, 2], [3, 4])
    [(1, 3), (2, 4)]"""
    return list(zip(*sequences, strict=True))

"""Several processes that work as one: values that all of them have or get. In one process, what
concerns only others is done at once, or refused."""

import contextlib
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from calque.core import pytrees
from calque.core.arrays import ArrayImpl
from calque.core.backends import known
from calque.core.devices import number_of_processes, process_number
from calque.device_functions import device_put
from calque.transforms.devices.assembling import make_array_from_process_local_data
from calque.transforms.devices.mesh import Mesh
from calque.transforms.devices.sharding import NamedSharding
from calque.transforms.devices.specs import PartitionSpec as P
from calque.transforms.jit.decorator import jit
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
        at = int(np.argmax(_of_all(np.asarray(source))))
        return pytrees.tree_map(lambda x: _of_all(np.asarray(x))[at], in_tree)
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
    if isinstance(x, ArrayImpl) and not x.is_fully_addressable:  # it is the whole already
        mesh = x.sharding.mesh
        return np.asarray(jit(_same, out_shardings=NamedSharding(mesh, P()))(x))
    every = _of_all(np.asarray(x))
    return np.concatenate(every) if tiled and every.ndim > 1 else every


def _same(x: Any) -> Any:
    return x


def _of_all(x: np.ndarray) -> np.ndarray:
    """The values of all processes in a row; all have the same shape."""
    if number_of_processes() == 1:
        return x[None]
    first = {d.process_index: d for d in reversed(known.default_devices())}
    mesh = Mesh(np.array([first[i] for i in sorted(first)]), ("processes",))
    whole = make_array_from_process_local_data(NamedSharding(mesh, P("processes")), x[None])
    return np.asarray(jit(_same, out_shardings=NamedSharding(mesh, P()))(whole))


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
    expected = broadcast_one_to_all(in_tree)
    same = pytrees.tree_map(
        lambda a, b: bool(np.array_equal(np.asarray(a), b, equal_nan=b.dtype.kind in "fc")),
        in_tree,
        expected,
    )
    if not all(pytrees.leaves(same)):
        raise AssertionError(f"{fail_message} Expected: {expected}; got: {in_tree}.")


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
    """Places arrays over a mesh; this process holds all of each.

    Args:
        local_inputs: A tree of arrays.
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
    """Gives the parts of arrays over a mesh that this process holds: the whole arrays.

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
    """Places one array over a mesh.

    Args:
        arr: The array.
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
    return device_put(arr, NamedSharding(global_mesh, pspec))


def global_array_to_host_local_array_impl(arr: Any, *, global_mesh: Any, pspec: Any) -> Any:
    """Gives the part of one array over a mesh that this process holds: the whole array.

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
    return host_local_array_to_global_array_impl(arr, global_mesh=global_mesh, pspec=pspec)


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

"""multihost_utils in one process."""

from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.experimental import multihost_utils as mh
from tests.xla.mlir import needs_jaxlib
from tests.xla.several_processes import in_both


def test_values_of_one_process() -> None:
    tree = {"a": jnp.arange(3), "b": (1.5, jnp.ones((2, 2)))}
    got = mh.broadcast_one_to_all(tree)
    assert (
        isinstance(got["a"], np.ndarray) and got["a"].tolist() == [0, 1, 2] and got["b"][0] == 1.5
    )
    assert mh.process_allgather(tree)["b"][1].shape == (1, 2, 2)
    assert mh.process_allgather(tree, tiled=True)["b"][1].shape == (2, 2)
    assert mh.process_allgather(jnp.zeros((3, 0)), tiled=True).shape == (3, 0)
    mh.assert_equal(tree)
    mh.assert_equal(jnp.array([np.nan]))
    mh.sync_global_devices("here")
    assert mh.reached_preemption_sync_point(3) is False
    with mh.live_devices(calque.devices()) as alive:
        assert alive == calque.devices()
    assert mh.safe_zip([1], [2]) == [(1, 2)]


def test_arrays_over_a_mesh() -> None:
    mesh = calque.make_mesh((1,), ("x",))
    tree = {"a": jnp.arange(4.0), "b": jnp.ones((2, 2))}
    placed = mh.host_local_array_to_global_array(tree, mesh, {"a": mh.P("x"), "b": mh.P()})
    assert placed["a"].sharding.spec == mh.P("x") and placed["a"].tolist() == [0, 1, 2, 3]
    back = mh.global_array_to_host_local_array(placed, mesh, mh.P())
    assert back["a"].tolist() == [0, 1, 2, 3]


def test_bad_arguments() -> None:
    mesh = calque.make_mesh((1,), ("x",))
    cases: list[tuple[Any, type[Exception], str]] = [
        (lambda: mh.broadcast_one_to_all(1.0, is_source=False), ValueError, "is_source"),
        (lambda: mh.sync_global_devices(3), TypeError, "name"),
        (lambda: mh.reached_preemption_sync_point("a"), TypeError, "step_id"),
        (lambda: mh.host_local_array_to_global_array(jnp.ones(2), mesh, None), ValueError, "None"),
    ]
    for call, error, text in cases:
        with pytest.raises(error, match=text):
            call()


@needs_jaxlib
def test_values_of_two_processes() -> None:
    """Also those of NumPy's dtypes of 64 bits, which arrays do not have."""
    in_both("""
        values = [np.array([index]), 1.5 + index, index, index == 1, np.arange(2.0) * index, 2j]
        for value in values:
            every = multihost_utils.process_allgather(value)
            first = multihost_utils.broadcast_one_to_all(value)
            own = np.asarray(value)
            assert type(first) is np.ndarray and first.shape == own.shape == every.shape[1:]
            assert every[index].tolist() == own.tolist() and first.tolist() == every[0].tolist()
            assert every.dtype == first.dtype == jnp.asarray(own).dtype
        joined = multihost_utils.process_allgather(np.array([index, 5]), tiled=True)
        assert joined.tolist() == [0, 5, 1, 5]
        assert multihost_utils.process_allgather(x, tiled=True).tolist() == [0, 1, 2, 3]
        raises(lambda: multihost_utils.process_allgather(x), ValueError, "tiled=True only")
        of_second = multihost_utils.broadcast_one_to_all(np.arange(3) + index, index == 1)
        assert of_second.tolist() == [1, 2, 3]
        with jax.enable_x64(True):
            assert multihost_utils.process_allgather(2**40 + index).tolist() == [2**40, 2**40 + 1]
    """)


@needs_jaxlib
def test_all_processes_are_told_that_they_differ() -> None:
    in_both("""
        equal, meet = multihost_utils.assert_equal, multihost_utils.sync_global_devices
        equal({"step": 1, "nan": np.nan, "large": 2**40})
        raises(lambda: equal(np.array([index]), "nope"), AssertionError, "nope")
        raises(lambda: equal(2**40 * index), AssertionError, "Of all processes")
        raises(lambda: meet(f"place {index}"), AssertionError, "name mismatch")
        multihost_utils.sync_global_devices("the same place")
    """)


@needs_jaxlib
def test_what_processes_have_becomes_one_array_and_is_given_back() -> None:
    in_both("""
        to_global = multihost_utils.host_local_array_to_global_array
        to_local = multihost_utils.global_array_to_host_local_array
        P, own = jax.P, np.arange(2.0) + 2 * index
        y = to_global({"a": own, "b": np.ones((3, 2))}, mesh, {"a": P("x"), "b": P(None, "x")})
        assert y["a"].shape == (4,) and y["a"].dtype == jnp.float32 and parts(y["a"]) == parts(x)
        assert y["b"].shape == (3, 4) and parts(y["b"]) == [[[1.0]] * 3] * 2
        assert to_global(own, mesh, P()).shape == (2,)  # each process says that it is the same
        assert to_global(x, mesh, P("x")) is x
        square = jax.make_mesh((2, 2), ("p", "d"), (jax.sharding.AxisType.Auto,) * 2)
        block = np.arange(4.0).reshape(2, 2) + 10 * index
        z = to_global(block, square, P("p", "d"))
        assert z.shape == (4, 2) and parts(z) == [block[:, :1].tolist(), block[:, 1:].tolist()]
        assert to_local(z, square, P("p", "d")).tolist() == block.tolist()
        back = to_local(x, mesh, P("x"))
        assert back.tolist() == own.tolist() and back.sharding.mesh == mesh.local_mesh
        assert to_local(x, mesh, P()).tolist() == [0, 1, 2, 3]
        raises(lambda: to_global(np.ones(3), mesh, P("x")), ValueError, "partitioned 2 times")
        raises(lambda: to_local(x, mesh, None), ValueError, "`None` is not a valid input")
    """)

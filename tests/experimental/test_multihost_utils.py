"""multihost_utils in one process."""

from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.experimental import multihost_utils as mh


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

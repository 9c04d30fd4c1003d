"""Devices and processes: how many there are, and values brought to the host."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.experimental.layout import Format, Layout


def test_counts_agree():
    assert calque.device_count() == len(calque.devices()) == calque.local_device_count()
    assert calque.devices() == calque.local_devices() and calque.devices() is not calque.devices()
    assert (calque.process_index(), calque.process_count(), calque.process_indices()) == (0, 1, [0])
    assert calque.default_backend() == "cpu" == calque.devices()[0].platform


@pytest.mark.parametrize("function", [calque.devices, calque.device_count, calque.local_devices])
def test_other_platforms_are_not_there(function):
    assert function("cpu") == function() if function is not calque.local_devices else True
    with pytest.raises(RuntimeError, match="tpu"):
        function(backend="tpu")


def test_trees_on_the_host():
    got = calque.device_get({"a": jnp.arange(3), "b": (2.0, np.ones(2))})
    assert type(got["a"]) is np.ndarray and got["a"].tolist() == [0, 1, 2]
    assert got["b"][0] == 2.0 and type(got["b"][1]) is np.ndarray


def test_waiting_hands_the_tree_back():
    tree = {"a": jnp.arange(3), "b": "text"}
    assert calque.block_until_ready(tree) is tree and calque.copy_to_host_async(tree) is tree


def test_all_that_is_wrong_with_a_tree_of_devices_is_told():
    with pytest.raises(ValueError, match=r"(?s)Mismatch details \(2 found\).*\['a'\].*\['b'\]"):
        calque.device_put({"a": 1.0, "b": 2.0}, {"a": [None, None], "b": (None, None)})


def test_formats_are_places_too():
    x, where = jnp.ones((2, 3)), calque.sharding.SingleDeviceSharding(calque.devices()[0])
    for layout in (None, Layout((0, 1))):
        out = calque.device_put(x, Format(layout, where))
        assert out.sharding == where and out.shape == (2, 3)
    with pytest.raises(NotImplementedError, match="row by row"):
        calque.device_put(x, Format(Layout((1, 0)), where))

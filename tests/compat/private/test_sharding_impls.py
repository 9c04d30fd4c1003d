"""Shardings under the names that libraries, and the machine code of jaxlib, ask for."""

import calque
from calque.compat.private import sharding_impls


def test_the_sharding_of_one_device() -> None:
    (device,) = calque.devices()[:1]
    made = sharding_impls.make_single_device_sharding(device)
    assert made == calque.sharding.SingleDeviceSharding(device)

"""Which results of programs the compiler of another engine may place."""

from typing import Any

import numpy as np

import calque
import calque.numpy as jnp
from calque.sharding import AxisType, Mesh, NamedSharding, SingleDeviceSharding
from calque.sharding import PartitionSpec as P
from calque.transforms.devices.open_results import as_chosen, left_open
from calque.transforms.devices.sharding_propagation import CHOSEN
from tests.transforms.devices.four_devices import four_devices


class Ran:
    def __init__(self, *chosen: Any):
        self.chosen = chosen


def of_kind(kind: AxisType) -> NamedSharding:
    return NamedSharding(Mesh(np.array(calque.devices()[:4]), ("x",), axis_types=(kind,)), P("x"))


@four_devices
def test_results_over_automatic_axes_that_nobody_placed_are_open():
    closed = calque.make_jaxpr(lambda a: (a, a + 1, a * 2))(jnp.ones(4))
    auto, explicit = of_kind(AxisType.Auto), of_kind(AxisType.Explicit)
    one = SingleDeviceSharding(calque.devices()[0])
    assert left_open(closed, [auto, explicit, one]) == (True, False, False)
    assert left_open(closed, [None, auto, auto]) == (False, True, True)
    closed.cache[CHOSEN] = (False, True, False)
    assert left_open(closed, [auto, auto, auto]) == (True, False, True)


@four_devices
def test_what_was_chosen_is_said_as_an_argument_says_it():
    closed = calque.make_jaxpr(lambda a: (a, a + 1))(jnp.ones((4, 4)))
    split = of_kind(AxisType.Auto)
    whole, given = split.update(spec=P()), split.update(spec=P("x", None))
    assert as_chosen(closed, [given], [whole, whole], object()) == [whole, whole]
    found = as_chosen(closed, [given], [whole, whole], Ran(None, split))
    assert found == [whole, given] and found[1].spec == P("x", None)

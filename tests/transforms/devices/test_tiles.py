"""Shardings in XLA's and Shardy's terms."""

import itertools

import numpy as np
import pytest

import calque
from calque.sharding import Mesh, NamedSharding
from calque.sharding import PartitionSpec as P
from calque.transforms.devices.tiles import GSPMDSharding, HloSharding, is_replicated
from tests.transforms.devices.four_devices import four_devices


def square():
    return Mesh(np.array(calque.devices()[:4]).reshape(2, 2), ("x", "y"))


@four_devices
@pytest.mark.parametrize("entries", [*itertools.permutations((None, "x", "y"), 2)])
def test_tiles_place_what_names_place(entries):
    named = NamedSharding(square(), P(*entries))
    tiles = GSPMDSharding(named.device_order, named._to_xla_hlo_sharding(2))
    assert tiles.devices_indices_map((4, 8)) == named.devices_indices_map((4, 8))
    assert tiles.is_equivalent_to(tiles, 2)


@four_devices
def test_texts_and_order():
    tiles = NamedSharding(square(), P("y", "x"))._to_xla_hlo_sharding(2)
    assert repr(tiles) == "{devices=[2,2]<=[2,2]T(1,0)}"
    assert tiles.tile_assignment_devices() == [0, 2, 1, 3]
    half = NamedSharding(square(), P("x"))._to_xla_hlo_sharding(2)
    assert repr(half) == "{devices=[2,1,2]<=[4] last_tile_dim_replicate}"
    whole = NamedSharding(square(), P())._to_xla_hlo_sharding(2)
    assert repr(whole) == "{replicated}" and is_replicated(whole) and whole == HloSharding()
    sdy = NamedSharding(square(), P(("x", "y")))._to_sdy_sharding(2)
    assert [d.axes for d in sdy.dim_shardings] == [("x", "y"), ()]
    assert GSPMDSharding.get_replicated(calque.devices()).is_fully_replicated

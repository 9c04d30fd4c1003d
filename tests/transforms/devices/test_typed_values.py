"""Values at hand and the shardings that their types speak of."""

import numpy as np

import calque
import calque.numpy as jnp
from calque.core.avals import ShapedArray
from calque.sharding import AbstractMesh, AxisType, Mesh, NamedSharding
from calque.sharding import PartitionSpec as P
from calque.transforms.devices.typed_values import is_evaluating_all, type_placement, unplaced
from tests.transforms.devices.four_devices import four_devices


def test_types_place_along_explicit_axes_only():
    mesh = calque.make_mesh((1, 1), ("x", "y"))
    aval = ShapedArray((4, 2), np.float32)
    split = aval.update(sharding=NamedSharding(mesh.abstract_mesh, P("x", "y")))
    assert type_placement(split, mesh) == NamedSharding(mesh, P("x", "y"))
    assert type_placement(aval, mesh) is None and type_placement(split, None) is None
    auto = AbstractMesh((1,), ("x",), axis_types=(AxisType.Auto,))
    assert type_placement(aval.update(sharding=NamedSharding(auto, P("x"))), mesh) is None


def test_values_at_hand():
    seen = []

    def f(v):
        seen.append(is_evaluating_all([v]))
        seen.append(is_evaluating_all([1.0]))
        return v

    x = jnp.ones(2)
    assert is_evaluating_all([x, 1.0]) and is_evaluating_all([])
    calque.make_jaxpr(f)(x)
    calque.vmap(f)(x)
    assert seen == [False, False, False, True]


@four_devices
def test_arrays_lose_their_place_and_keep_their_memory():
    mesh = Mesh(np.array(calque.devices()[:4]), ("x",))
    x = calque.device_put(jnp.arange(4.0), NamedSharding(mesh, P("x")))
    free = unplaced(x, x.aval, ("x",))
    assert not free.committed and free._ptr == x._ptr


@four_devices
def test_traced_values_stay_split_along_the_other_axes():
    mesh = calque.make_mesh((2, 2), ("x", "y"))
    x = calque.device_put(jnp.ones((4, 4)), NamedSharding(mesh, P("x", "y")))
    seen = []

    def f(v):
        kept = unplaced(v, calque.typeof(v), ("z",))
        seen.extend([kept is v, calque.typeof(unplaced(v, calque.typeof(v), ("y",)))])
        return v

    calque.make_jaxpr(f)(x)
    same, typed = seen
    assert same and typed.sharding.spec == P("x", None)

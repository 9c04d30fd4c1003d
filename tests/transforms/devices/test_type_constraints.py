"""What types say, written out for compilers that read none."""

import calque
from calque import numpy as jnp
from calque.sharding import NamedSharding
from calque.sharding import PartitionSpec as P
from calque.transforms.devices.type_constraints import with_constraints
from tests.transforms.devices.four_devices import four_devices


def put(shape, spec):
    mesh = calque.make_mesh((2, 2), ("x", "y"))
    return calque.device_put(jnp.ones(shape), NamedSharding(mesh, spec))


@four_devices
def test_texts_for_xla_state_the_types():
    lowered = calque.jit(lambda v: jnp.sin(v) * 2).lower(put((4, 4), P("x", "y")))
    text = lowered.as_text()
    assert text.count("sdy.sharding_constraint") == 2 and '[{"x"}, {"y"}]' in text


@four_devices
def test_programs_without_meshes_are_left_alone():
    plain = calque.make_jaxpr(lambda v: jnp.sin(v) * 2)(jnp.ones(3))
    assert with_constraints(plain) is plain
    typed = calque.make_jaxpr(lambda v: calque.jit(jnp.sin)(v))(put((4, 4), P("x", "y")))
    stated = with_constraints(typed)
    assert "4@x" in str(typed) and "4@x" not in str(stated)
    assert str(stated).count("sharding_constraint[") == 2


@four_devices
def test_results_of_a_map_are_stated_by_the_map():
    f = calque.shard_map(lambda v: v * 2, out_specs=P("x"), axis_names={"x"})
    with calque.set_mesh(calque.make_mesh((2, 2), ("x", "y"))):
        text = calque.jit(f).lower(put((4, 4), P("x", "y"))).as_text()
    inside, _, after = text.partition("sdy.return")
    assert "sdy.manual_computation" in inside and "sdy.sharding_constraint" in inside
    assert "sdy.sharding_constraint" not in after

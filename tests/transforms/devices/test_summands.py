"""Arrays that are still to be added: what each member has of them."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.sharding import NamedSharding
from calque.sharding import PartitionSpec as P
from calque.transforms.devices.sharding_arrays import placed
from calque.transforms.devices.summands import are_taken, axes_to_add, on_rows
from tests.transforms.devices.four_devices import four_devices

SUM = P(unreduced={"x"})


@pytest.fixture
def mesh():
    mesh = calque.make_mesh((2, 2), ("x", "y"))
    with calque.set_mesh(mesh):
        yield mesh


def rows(x):
    return [s.data.tolist() for s in x.addressable_shards]


def mapped(f, in_specs, out_specs, **options):
    return calque.jit(calque.shard_map(f, in_specs=in_specs, out_specs=out_specs, **options))


@four_devices
def test_members_keep_what_they_made(mesh):
    x = calque.device_put(jnp.arange(4.0), P("x"))
    out = mapped(lambda v: v, P("x"), SUM)(x)
    assert out.shape == (2,) and out.sharding == NamedSharding(mesh, P(None, unreduced={"x"}))
    assert rows(out) == [[0, 1], [0, 1], [2, 3], [2, 3]]
    np.testing.assert_array_equal(calque.reshard(out, P()), [2, 4])
    assert rows(mapped(lambda v: v, SUM, P("x"), check_vma=False)(out)) == rows(x)
    np.testing.assert_array_equal(mapped(lambda v: calque.lax.psum(v, "x"), SUM, P())(out), [2, 4])


@four_devices
def test_linear_operations_are_done_to_each_summand(mesh):
    x = calque.device_put(jnp.arange(4.0), P("x"))
    part = calque.shard_map(lambda v: v, in_specs=P("x"), out_specs=SUM)
    three = calque.device_put(jnp.full(2, 3.0), P(None, reduced={"x"}))

    @calque.jit
    def f(x, y):
        a = part(x)
        b = calque.jit(lambda v: -v)(a + part(x * 2))
        return b * y, b.reshape(2, 1)

    first, second = f(x, three)
    assert rows(first) == [[0, -9], [0, -9], [-18, -27], [-18, -27]]
    assert rows(second) == [[[0], [-3]], [[0], [-3]], [[-6], [-9]], [[-6], [-9]]]
    np.testing.assert_array_equal(calque.reshard(first, P()), [-18, -36])
    again = calque.jit(lambda v: calque.reshard(v, P()))(first)
    np.testing.assert_array_equal(again, [-18, -36])


@four_devices
def test_sums_over_split_dimensions_leave_each_member_its_part(mesh):
    a = calque.device_put(jnp.arange(8.0).reshape(2, 4), P("y", "x"))
    b = calque.device_put(jnp.arange(12.0).reshape(4, 3), P("x", None))
    f = calque.jit(lambda a, b: jnp.einsum("ij,jk->ik", a, b, out_sharding=P("y", unreduced={"x"})))
    out = f(a, b)
    np.testing.assert_array_equal(calque.reshard(out, P("y")), np.asarray(a) @ np.asarray(b))
    for s, x, y in zip(out.addressable_shards, (0, 0, 1, 1), (0, 1, 0, 1)):
        part = slice(2 * x, 2 * x + 2)
        np.testing.assert_array_equal(s.data, np.asarray(a)[y : y + 1, part] @ np.asarray(b)[part])


@four_devices
def test_derivatives_of_members_sums(mesh):
    x = calque.device_put(jnp.arange(4.0), P("x"))
    part = mapped(lambda v: v * v, P("x"), SUM)

    def loss(x):
        return calque.reshard(part(x), P()).sum()

    for grad in (calque.grad(loss), calque.jit(calque.grad(loss))):
        np.testing.assert_array_equal(grad(x), [0, 2, 4, 6])


@four_devices
def test_arrays_of_summands_of_the_user(mesh):
    sharding = NamedSharding(mesh, P("y", unreduced={"x"}))
    parts = [
        calque.device_put(jnp.full(1, k), d) for k, d in zip((1, 2, 10, 20), mesh.devices.flat)
    ]
    x = calque.make_array_from_single_device_arrays((2,), sharding, parts)
    assert rows(x) == [[1], [2], [10], [20]] and x.tolist() == [11, 22]
    assert x.sharding == sharding and type(x.sharding) is NamedSharding
    moved = placed(jnp.zeros(2), x._extra)  # what one array has is not of another
    assert rows(moved) == [[0]] * 4
    assert rows(calque.jit(lambda v: v + v)(x)) == [[2], [4], [20], [40]]


@four_devices
def test_what_is_no_sum_of_parts_is_of_the_first_member(mesh):
    x = calque.device_put(jnp.arange(4.0), P())
    out = calque.jit(lambda v: calque.reshard(v * v, SUM))(x)
    assert rows(out) == [[0, 1, 4, 9]] * 2 + [[0] * 4] * 2
    split = calque.device_put(x, P("x"))
    out = calque.jit(lambda v: calque.reshard(v, SUM))(split)
    assert rows(out) == [[0, 1, 0, 0]] * 2 + [[0, 0, 2, 3]] * 2
    np.testing.assert_array_equal(calque.reshard(out, P()), x)
    assert rows(calque.device_put(x, SUM)) == [[0, 1, 2, 3]] * 2 + [[0] * 4] * 2


@four_devices
def test_other_programs_are_left_alone(mesh):
    plain = calque.make_jaxpr(lambda v: v + 1)(1.0)
    assert not are_taken(plain) and axes_to_add(plain.in_avals[0]) == ()
    x = calque.device_put(jnp.arange(4.0), P("x"))
    taken = calque.make_jaxpr(lambda v: calque.reshard(v, SUM))(x)
    assert are_taken(taken) and len(on_rows(taken).out_avals) == 2
    assert on_rows(taken) is on_rows(taken)

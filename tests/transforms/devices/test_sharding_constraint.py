"""Values with given shardings inside programs, and the shardings that jit is given."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.core import backends
from calque.sharding import AxisType, Mesh, NamedSharding, SingleDeviceSharding
from calque.sharding import PartitionSpec as P
from calque.transforms.devices.sharding_constraint import (
    JitShardings,
    flat_shardings,
    has_constraints,
    jit_shardings,
)
from tests.transforms.devices.four_devices import four_devices
from tests.xla.mlir import needs_jaxlib
from tests.xla.several_processes import in_both


def square(kind=AxisType.Auto):
    return Mesh(np.array(calque.devices()[:4]).reshape(2, 2), ("x", "y"), (kind,) * 2)


def one():
    return NamedSharding(Mesh(np.array(calque.devices()[:1]), ("x",)), P("x"))


@four_devices
def test_jit_with_shardings():
    s, r = NamedSharding(square(), P("x")), NamedSharding(square(), P())
    f = calque.jit(
        lambda a, b: (a + b, {"t": a.sum()}), in_shardings=(s, r), out_shardings=(s, None)
    )
    for _ in range(2):
        u, v = f(jnp.arange(4.0), jnp.ones(4))
        np.testing.assert_array_equal(u, [1, 2, 3, 4])
        assert u.sharding == s and v["t"].sharding.spec == P()
    np.testing.assert_array_equal(
        calque.grad(lambda a: f(a, jnp.ones(4))[0].sum())(jnp.ones(4)), [1] * 4
    )
    np.testing.assert_array_equal(
        calque.vmap(f, (None, 0))(jnp.ones(4), jnp.ones((3, 4)))[0], 2 * np.ones((3, 4))
    )
    g = calque.jit(lambda a, n: a * n, static_argnums=1, in_shardings=(s,), out_shardings=r)
    assert g(jnp.ones(4), 3).sharding == r
    with calque.set_mesh(square()):
        assert calque.jit(lambda a: a, out_shardings=P("y"))(jnp.ones(4)).sharding.spec == P("y")


@four_devices
def test_jit_with_shardings_refuses():
    s = NamedSharding(square(), P("x"))

    def same(a):
        return a

    with pytest.raises(ValueError, match="dimension size is 3"):
        calque.jit(same, in_shardings=s)(jnp.ones(3))
    with pytest.raises(
        ValueError,
        match=(
            r"pytree key path a is incompatible .* rank 0. For scalars the PartitionSpec should be"
            r" P\(\)"
        ),
    ):
        calque.jit(same, in_shardings=s)(1.0)
    with pytest.raises(ValueError, match="dimension size is 3"):
        calque.jit(same, out_shardings=s)(jnp.ones(3))
    with pytest.raises(
        ValueError,
        match="wrong length: got a tuple or list of length 2 for an args tuple of length 1",
    ):
        calque.jit(same, in_shardings=(s, s))(jnp.ones(4))
    with pytest.raises(ValueError, match="pjit out_shardings"):
        calque.jit(same, out_shardings=(s, s))(jnp.ones(4))
    with pytest.raises(ValueError, match="does not support kwargs"):
        calque.jit(same, in_shardings=s)(a=jnp.ones(4))
    with pytest.raises(
        ValueError, match=r"does not match the sharding on the respective arg(.|\n)*P\('y',\)"
    ):
        calque.jit(same, in_shardings=s)(
            calque.device_put(jnp.ones(4), NamedSharding(square(), P("y")))
        )
    with pytest.raises(RuntimeError, match="requires a non-empty mesh"):
        calque.jit(same, in_shardings=P("x"))(jnp.ones(4))


@four_devices
def test_constraints():
    s = NamedSharding(square(), P("x"))
    f = calque.jit(lambda a: lax.with_sharding_constraint({"v": a * 2}, {"v": s})["v"] + 1)
    for _ in range(2):
        assert f(jnp.ones(4)).sharding.spec == P("x")
    text = str(calque.make_jaxpr(lambda a: lax.with_sharding_constraint(a, s))(jnp.ones(4)))
    assert "sharding_constraint[" in text and "sharding=NamedSharding(mesh=Mesh('x': 2" in text
    batched = calque.vmap(lambda a: lax.with_sharding_constraint(a, s))(jnp.ones((3, 4)))
    assert batched.sharding.spec == P(None, "x")
    np.testing.assert_array_equal(calque.grad(lambda a: f(a).sum())(jnp.ones(4)), [2] * 4)


def test_the_sharding_of_a_type_without_a_mesh_places_nothing():
    def f(x):
        kept = calque.typeof(x).sharding
        return x + calque.random.normal(calque.random.key(0), x.shape, out_sharding=kept)

    x = jnp.ones(3)
    for made in (f(x), calque.jit(f)(x)):
        assert made.sharding == x.sharding and made.devices() == x.devices()
    primitives = [e.primitive.name for e in calque.make_jaxpr(f)(x).eqns]
    assert "sharding_constraint" not in primitives


def test_trees_of_shardings_are_laid_over_trees_of_values():
    s = one()
    tree = {"a": 1, "b": (2, 3)}
    assert flat_shardings("f", "where", {"a": None, "b": s}, tree) == [None, s, s]
    assert flat_shardings("f", "where", s, tree) == [s] * 3
    with calque.set_mesh(s.mesh):
        assert flat_shardings("f", "where", (P("x"), None), (1, 2)) == [s, None]
    with pytest.raises(TypeError, match=r"f where must be None, a Sharding.*got 'x' of type"):
        flat_shardings("f", "where", "x", tree)
    with pytest.raises(ValueError, match="Mismatch details"):
        flat_shardings("f", "where", {"a": s}, tree)


def test_options_of_jit():
    d = calque.devices()[0]
    assert jit_shardings(None, None, None, None) is None
    asked = jit_shardings(None, None, d, None)
    assert asked == JitShardings(None, SingleDeviceSharding(d)) != JitShardings(one(), None)
    assert hash(asked) == hash(JitShardings(None, SingleDeviceSharding(d)))
    if d.engine == "native":
        assert jit_shardings((one(),), None, None, "cpu") == JitShardings((one(),), None)
    with pytest.raises(ValueError, match="both a device and a backend"):
        jit_shardings(None, None, d, "cpu")
    with pytest.raises(ValueError, match="cannot be given together"):
        jit_shardings(one(), None, d, None)
    with pytest.raises(TypeError, match=r"must be one of calque.devices"):
        jit_shardings(None, None, "cpu:0", None)


@needs_jaxlib
def test_a_backend_elsewhere_does_not_go_with_shardings(monkeypatch):
    """The devices of the shardings say where. Where programs run elsewhere than on the CPU, a
    backend "cpu" is a place, too."""
    asked = (one(),)
    with pytest.raises(ValueError, match=r"^jit: backend='xla_cpu' cannot be given together"):
        jit_shardings(asked, None, None, "xla_cpu")
    monkeypatch.setattr(type(backends.known), "may_leave_home", lambda self: True)
    with pytest.raises(ValueError, match=r"^jit: backend='cpu' cannot be given together"):
        jit_shardings(None, asked, None, "cpu")


def test_programs_that_say_where_values_are():
    def inner(x):
        return lax.with_sharding_constraint(x, one())

    def looped(x):
        return lax.fori_loop(0, 2, lambda i, v: calque.jit(inner)(v), x)

    x = jnp.ones(2)
    assert has_constraints(calque.make_jaxpr(inner)(x))
    assert has_constraints(calque.make_jaxpr(looped)(x))
    assert not has_constraints(
        calque.make_jaxpr(lambda v: lax.fori_loop(0, 2, lambda i, v: v, v))(x)
    )


@four_devices
def test_axes_that_a_map_maps_place_nothing_inside():
    inner = NamedSharding(square(), P("x"))

    def f(v):
        return lax.with_sharding_constraint(v, inner)

    with pytest.raises(ValueError, match=r"manual axes \['x'\].*inside shard_map"):
        calque.shard_map(f, mesh=square(), in_specs=P("x"), out_specs=P("x"))(jnp.ones(8))


@four_devices
def test_batches_are_split_where_spmd_axis_name_says():
    s = NamedSharding(square(), P("x"))

    def f(v):
        return lax.with_sharding_constraint(v, s)

    x = jnp.ones((4, 6))
    assert calque.vmap(f, spmd_axis_name="y")(x).sharding.spec == P("y", "x")
    assert calque.vmap(f, in_axes=1, out_axes=1)(x).sharding.spec == P("x", None)
    with pytest.raises(ValueError, match="axis 0 is partitioned 2 times"):
        calque.vmap(f, spmd_axis_name="y")(jnp.ones((3, 4)))


@four_devices
def test_meshes_without_devices_take_those_of_the_array():
    m = square()
    x = calque.device_put(np.arange(8.0).reshape(4, 2), NamedSharding(m, P("x", "y")))
    abstract = NamedSharding(m.abstract_mesh, P("y"))

    def f(v):
        return lax.with_sharding_constraint(v, abstract)

    for out in (f(x), calque.jit(f)(x), calque.jit(lambda v: f(v) * 2)(x)):
        assert out.sharding == NamedSharding(m, P("y"))
    with calque.set_mesh(m):
        assert f(jnp.ones((4, 2))).sharding == NamedSharding(m, P("y"))
    with pytest.raises(ValueError, match=r"requires the input passed should be a `jax.Array`"):
        f(np.ones(4))
    with pytest.raises(TypeError, match="The sharding on the input must be a `NamedSharding`"):
        f(jnp.ones(4))
    other = Mesh(np.array(calque.devices()[:4]), ("z",))
    with pytest.raises(ValueError, match=r"Mesh shape of the input .* does not match"):
        f(calque.device_put(np.ones(4), NamedSharding(other, P("z"))))


@four_devices
def test_another_mesh_inside_a_program():
    m = square(AxisType.Explicit)
    x = calque.device_put(np.arange(8.0).reshape(4, 2), NamedSharding(m, P("x", "y")))

    @calque.jit
    def f(v):
        inner = m.abstract_mesh.update(axis_sizes=(4, 1), axis_names=("a", "b"))
        with calque.sharding.use_abstract_mesh(inner):
            v = calque.reshard(v, P(("a", "b"), None)) * 2
            assert calque.typeof(v).sharding.spec == P(("a", "b"), None)
            return v

    out = f(x)
    assert out.sharding.spec == P(("a", "b"), None) and out.sharding.mesh.axis_sizes == (4, 1)
    np.testing.assert_array_equal(out, 2 * np.asarray(x))


@four_devices
def test_what_is_refused():
    m = square()
    x = calque.device_put(np.arange(4.0), NamedSharding(m, P("x")))
    turned = Mesh(m.devices[::-1], ("x", "y"))
    with pytest.raises(ValueError, match="incompatible devices for jitted computation"):
        lax.with_sharding_constraint(x, NamedSharding(turned, P("x")))
    with pytest.raises(ValueError, match="got sharding None which is not allowed"):
        lax.with_sharding_constraint(x, None)
    with pytest.raises(ValueError, match="cannot contain axis names that are of type Auto"):
        calque.reshard(x, NamedSharding(m, P("x")))
    for option in ("in_shardings", "out_shardings"):
        with pytest.raises(ValueError, match=f"Unconstrained dims are not allowed .* {option}"):
            calque.jit(lambda v: v, **{option: NamedSharding(m, P(P.UNCONSTRAINED))})
    with calque.set_mesh(m), pytest.raises(ValueError, match="passed to dot_general cannot"):
        lax.dot_general(x, x, (((0,), (0,)), ((), ())), out_sharding=P("x"))
    with pytest.raises(ValueError, match="contains manual axes"):
        calque.set_mesh(square(AxisType.Manual))
    with pytest.raises(ValueError, match="valid for values of rank at least 2"):
        calque.ShapeDtypeStruct((4,), "float32", sharding=NamedSharding(m, P(None, "x")))


@four_devices
def test_arrays_that_were_never_placed_are_on_the_mesh_that_is_set():
    x = jnp.ones((2, 2))
    single = x.sharding
    m = square(AxisType.Explicit)
    with calque.set_mesh(m):
        assert x.sharding == NamedSharding(m, P(None, None)) and not x.committed
        assert calque.typeof(x).sharding == NamedSharding(m.abstract_mesh, P(None, None))
        assert (x * 2).sharding == NamedSharding(m, P(None, None))
        with calque.set_mesh(None):
            assert x.sharding == single
    with calque.set_mesh(square()):
        assert (x + 1).sharding == NamedSharding(square(), P())
    assert x.sharding == single


@four_devices
def test_cotangents_are_where_their_values_are():
    m = square(AxisType.Explicit)
    x = calque.device_put(np.arange(16.0, dtype="f4").reshape(4, 4), NamedSharding(m, P("x", None)))

    @calque.jit
    def part(v):
        return lax.slice(v, (0, 0), (4, 3))

    with calque.set_mesh(m):
        for f in (lambda v: jnp.square(part(v).sum()), lambda v: part(jnp.sin(v)).sum()):
            assert calque.grad(f)(x).sharding == x.sharding
            assert calque.jit(calque.grad(f))(x).sharding == x.sharding


@four_devices
def test_dimensions_that_are_not_even_are_split_as_far_as_they_can_be():
    m, s = square(), NamedSharding(square(), P(("x", "y")))
    f = calque.jit(lambda v: lax.with_sharding_constraint(v, s) * 2)
    assert f(jnp.ones(4)).sharding == s
    out = f(jnp.ones(6))
    assert out.sharding.mesh == m
    assert out.sharding.spec in (P(), P("x"))  # whole, or along the axis that XLA finds to fit
    with pytest.raises(ValueError, match="should evenly divide"):
        lax.with_sharding_constraint(jnp.ones(6), s)


@four_devices
def test_cotangents_that_nothing_reaches_are_where_their_values_are():
    m = square(AxisType.Explicit)
    with calque.set_mesh(m):
        x = calque.reshard(np.arange(8.0, dtype="f4"), P(reduced={"x"}))
        y = calque.reshard(np.arange(8.0, dtype="f4"), P("x"))
        for f in (lambda a, b: b, calque.jit(lambda a, b: b)):
            _, back = calque.vjp(f, x, y)
            to_x, to_y = back(y)
            assert calque.typeof(to_x).sharding.spec == P(None, unreduced={"x"})
            assert calque.typeof(to_y).sharding.spec == P("x")


@four_devices
def test_derivatives_of_maps_are_where_their_arguments_are():
    m = square()
    x = calque.device_put(np.ones((4, 4), "f4"), NamedSharding(m, P("x", "y")))
    f = calque.jit(calque.shard_map(jnp.sin, mesh=m, in_specs=P("x", "y"), out_specs=P("x", "y")))
    assert calque.grad(lambda v: f(v).sum())(x).sharding == x.sharding


def test_every_place_where_shardings_do_not_fit_is_told():
    f = calque.jit(lambda x: x, out_shardings={"a": [None, None], "b": (None, None)})
    with pytest.raises(ValueError, match=r"Mismatch details \(2 found\)"):
        f({"a": 1.0, "b": 1.0})


@needs_jaxlib
def test_arrays_of_numpy_have_no_shardings_over_several_processes() -> None:
    in_both("""
        f = jax.jit(lambda v: v + 1, in_shardings=rows)
        raises(lambda: f(numbers), ValueError, "each process has an array of its own")
        assert parts(f(x)) == parts(x + 1) and parts(f(jnp.arange(4.0))) == parts(x + 1)
        everywhere = jax.jit(lambda v: v + 1, in_shardings=whole)
        assert parts(everywhere(numbers)) == [(numbers + 1).tolist()] * 2
    """)

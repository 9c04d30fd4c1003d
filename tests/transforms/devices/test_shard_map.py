"""shard_map: functions of the parts that devices hold, their collectives and their gradients."""

import functools

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from tests.transforms.devices.four_devices import four_devices

P = PartitionSpec


def line():
    return Mesh(np.array(calque.devices()), ("i",))


def square():
    return Mesh(np.array(calque.devices()).reshape(2, 2), ("x", "y"))


def over(f, specs, out, **options):
    return calque.shard_map(f, mesh=line(), in_specs=specs, out_specs=out, **options)


def test_one_device_and_the_older_signature():
    from calque.experimental.shard_map import shard_map

    mesh = Mesh(np.array(calque.devices()[:1]), ("i",))
    f = shard_map(lambda x: x + lax.psum(x, "i"), mesh, P("i"), P("i"), check_rep=False)
    np.testing.assert_array_equal(f(jnp.arange(3.0)), [0, 2, 4])

    @calque.shard_map(mesh=mesh, in_specs=P("i"), out_specs=P("i"))
    def g(x):
        return 2 * x

    np.testing.assert_array_equal(g(jnp.arange(3.0)), [0, 2, 4])
    assert g.__name__ == "g"


@four_devices
def test_cutting_and_joining():
    x = np.arange(32.0).reshape(8, 4)
    for spec in (
        P("x", "y"),
        P(None, "x"),
        P(("x", "y")),
        P(("y", "x"), None),
        P(None, ("y", "x")),
        P("y"),
        P(),
    ):
        f = calque.shard_map(lambda v: 2 * v, mesh=square(), in_specs=spec, out_specs=spec)
        out = f(jnp.asarray(x))
        np.testing.assert_array_equal(out, 2 * x)
        assert out.sharding.is_equivalent_to(NamedSharding(square(), spec), 2)
    swap = calque.shard_map(
        lambda v: v, mesh=square(), in_specs=P(("x", "y")), out_specs=P(("y", "x"))
    )
    np.testing.assert_array_equal(swap(jnp.arange(8)), [0, 1, 4, 5, 2, 3, 6, 7])
    shapes = []
    calque.shard_map(
        lambda v: shapes.append(v.shape) or v,
        mesh=square(),
        in_specs=P("x", "y"),
        out_specs=P("x", "y"),
    )(x)
    assert shapes == [(4, 2)]
    np.testing.assert_array_equal(
        over(lambda v: v, P(), P("i"))(jnp.arange(3.0)), np.tile(np.arange(3.0), 4)
    )
    np.testing.assert_array_equal(over(lambda v: v, None, P("i"))(jnp.ones(2)), np.ones(8))


@four_devices
def test_trees_and_inferred_specs():
    f = over(
        lambda a, b: {"s": a["u"] + b[0], "t": b[1]},
        (P("i"), [P(), P("i")]),
        {"s": P("i"), "t": P("i")},
    )
    out = f({"u": jnp.arange(4.0)}, [1.0, jnp.arange(8)])
    np.testing.assert_array_equal(out["s"], [1, 2, 3, 4])
    explicit = line().update(axis_types=(AxisType.Explicit,))
    x = calque.device_put(jnp.arange(8.0), NamedSharding(explicit, P("i")))
    first = calque.shard_map(lambda v: v[:1], mesh=explicit, out_specs=P("i"))
    np.testing.assert_array_equal(first(x), [0, 2, 4, 6])
    np.testing.assert_array_equal(calque.jit(first)(x), [0, 2, 4, 6])
    with calque.set_mesh(line()):
        f = calque.jit(calque.shard_map(lambda v: lax.psum(v, "i"), in_specs=P("i"), out_specs=P()))
        np.testing.assert_array_equal(f(jnp.ones(4)), [4])
    with calque.set_mesh(Mesh(np.array(calque.devices()[:2]), ("i",))):
        np.testing.assert_array_equal(f(jnp.ones(4)), [2, 2])


@four_devices
@pytest.mark.parametrize("check", [False, True])
def test_collectives_over_two_axes(check):
    both = calque.shard_map
    options = {
        "mesh": square(),
        "check_vma": check,
        "in_specs": P(("x", "y")),
        "out_specs": P(("x", "y")),
    }
    x = np.arange(16).reshape(4, 4)
    next_one = [(k, (k + 1) % 4) for k in range(4)]
    cases = [
        (lambda v: lax.ppermute(v, ("x", "y"), next_one), np.roll(x, 1, 0)),
        (
            lambda v: lax.ppermute(v, ("x", "y"), [(0, 1), (2, 0)]),
            np.stack([x[2], x[0], 0 * x[0], 0 * x[0]]),
        ),
        (lambda v: lax.all_gather(v[0], ("x", "y")), np.tile(x, (4, 1))),
        (lambda v: lax.all_gather(v, ("y", "x"), tiled=True), np.tile(x[[0, 2, 1, 3]], (4, 1))),
        (lambda v: lax.psum_scatter(v[0], ("x", "y"), tiled=True)[None], x.sum(0)[:, None]),
        (lambda v: lax.psum_scatter(v[0], ("y", "x"))[None, None], x.sum(0)[[0, 2, 1, 3]][:, None]),
        (lambda v: lax.all_to_all(v[0], ("x", "y"), 0, 0, tiled=True)[None], x.T),
        (lambda v: lax.all_to_all(v, ("x", "y"), 1, 1), x.T),
        (lambda v: v + lax.axis_index(("x", "y")), x + np.arange(4)[:, None]),
        (lambda v: v + lax.axis_index(("y", "x")), x + np.array([0, 2, 1, 3])[:, None]),
        (lambda v: v * 0 + lax.psum(v, ("x", "y")), np.tile(x.sum(0), (4, 1))),
        (
            lambda v: v * 0 + lax.pmax(lax.psum(v, "x"), "y"),
            np.tile((x[:2] + x[2:]).max(0), (4, 1)),
        ),
    ]
    for i, (f, want) in enumerate(cases):
        np.testing.assert_array_equal(both(f, **options)(jnp.asarray(x)), want, err_msg=str(i))
        np.testing.assert_array_equal(
            calque.jit(both(f, **options))(jnp.asarray(x)), want, err_msg=f"jit {i}"
        )


def loss(w, x):
    return jnp.mean((x * w) ** 2)


X = np.arange(8.0, dtype=np.float32)
# what JAX gives for w = 2, x = X cut in four, out_specs P(): gradients taken inside
INSIDE = {
    "sum over the mesh": (lambda w, x: calque.grad(loss)(w, x), 280),
    "of psum": (lambda w, x: calque.grad(lambda w: lax.psum(loss(w, x), "i"))(w), 280),
    "of pmean": (lambda w, x: calque.grad(lambda w: lax.pmean(loss(w, x), "i"))(w), 70),
    "pmean of it": (lambda w, x: lax.pmean(calque.grad(loss)(w, x), "i"), 280),
    "mixed": (lambda w, x: calque.grad(lambda w: lax.psum(x[0] * w, "i") + 3 * w * w)(w), 24),
    "gathered": (lambda w, x: calque.grad(lambda w: (lax.all_gather(x, "i") * w).sum())(w), 112),
    "through a gather": (
        lambda w, x: calque.grad(lambda w: (lax.all_gather(x * w, "i") * x).sum())(w),
        400,
    ),
    "psum of the same": (lambda w, x: calque.grad(lambda w: lax.psum(w, "i") * w)(w), 16),
    "pmax": (lambda w, x: calque.grad(lambda w: lax.pmax(w * x.sum(), "i"))(w), 13),
    "forward": (lambda w, x: calque.jacfwd(lambda w: lax.psum(loss(w, x), "i"))(w), 280),
    "second": (
        lambda w, x: calque.grad(calque.grad(lambda w: lax.psum(loss(w, x) * w, "i")))(w),
        840,
    ),
    "checkpoint": (
        lambda w, x: calque.grad(calque.checkpoint(lambda w: lax.psum(loss(w, x), "i")))(w),
        280,
    ),
    "in a loop": (
        lambda w, x: lax.scan(
            lambda w, a: (w - 0.001 * calque.grad(loss)(w, a), w), w, x.reshape(2, 1)
        )[0],
        1.477632,
    ),
}


@four_devices
@pytest.mark.parametrize("name", INSIDE)
def test_gradients_inside(name):
    f, want = INSIDE[name]
    for inner, outer in ((f, False), (f, True), (calque.jit(f), False), (calque.jit(f), True)):
        g = over(inner, (P(), P("i")), P())
        g = calque.jit(g) if outer else g
        np.testing.assert_allclose(g(2.0, jnp.asarray(X)), want, rtol=1e-5)


@four_devices
def test_gradients_inside_that_vary():
    x = jnp.asarray(X)
    f = over(
        lambda w, x: calque.grad(loss)(lax.pcast(w, "i", to="varying"), x)[None],
        (P(), P("i")),
        P("i"),
    )
    np.testing.assert_allclose(f(2.0, x), [2, 26, 82, 170])
    f = over(
        lambda x: calque.grad(lambda x: lax.psum(lax.psum(2 * x.sum(), "i") * x.sum(), "i"))(x),
        P("i"),
        P("i"),
    )
    np.testing.assert_allclose(f(x), [112] * 8)
    unchecked = functools.partial(over, specs=(P(), P("i")), out=P(), check_vma=False)
    assert (
        float(unchecked(lambda w, x: calque.grad(loss)(w, x))(2.0, x)) == 2
    )  # what the first device has
    assert (
        float(unchecked(lambda w, x: calque.grad(lambda w: lax.psum(loss(w, x), "i"))(w))(2.0, x))
        == 8
    )


@four_devices
@pytest.mark.parametrize("check", [False, True])
def test_gradients_outside(check):
    x = jnp.asarray(X)
    total = over(lambda w, x: lax.psum(loss(w, x), "i"), (P(), P("i")), P(), check_vma=check)
    parts = over(lambda w, x: loss(w, x)[None], (P(), P("i")), P("i"), check_vma=check)
    for f in (
        lambda w: total(w, x),
        lambda w: parts(w, x).sum(),
        lambda w: calque.jit(total)(w, x),
    ):
        np.testing.assert_allclose(calque.grad(f)(2.0), 280)
        np.testing.assert_allclose(calque.jvp(f, (2.0,), (1.0,))[1], 280)
        np.testing.assert_allclose(calque.vmap(f)(jnp.array([1.0, 2.0])), [70, 280])
    inner = over(lambda x: calque.vmap(lambda v: lax.psum(v, "i"))(x), P("i"), P(), check_vma=check)
    assert inner(jnp.ones((8, 3))).shape == (2, 3)


@four_devices
def test_some_axes_only():
    f = calque.shard_map(
        lambda v: lax.psum(v, "x"), mesh=square(), axis_names={"x"}, in_specs=P("x"), out_specs=P()
    )
    np.testing.assert_array_equal(f(jnp.arange(8)), [4, 6, 8, 10])
    with pytest.raises(NameError, match="unbound axis name: y"):
        calque.shard_map(
            lambda v: lax.psum(v, "y"),
            mesh=square(),
            axis_names={"x"},
            in_specs=P("x"),
            out_specs=P(),
        )(jnp.ones(8))


@four_devices
def test_refuses():
    x = jnp.ones(8)
    with pytest.raises(ValueError, match=r"only varying across mesh axes {} and not {i}"):
        over(lambda v: v, P("i"), P())(x)
    np.testing.assert_array_equal(
        over(lambda v: v, P("i"), P(), check_vma=False)(jnp.arange(8)), [0, 1]
    )
    with pytest.raises(ValueError, match="in_specs refers to 'j'"):
        over(lambda v: v, P("j"), P())
    with pytest.raises(ValueError, match="out_specs refers to 'j'"):
        over(lambda v: v, P("i"), P("j"))
    with pytest.raises(
        ValueError, match=r"passed v of shape float32\[7\] .* but 4 does not evenly divide 7"
    ):
        over(lambda v: v, P("i"), P("i"))(jnp.ones(7))
    with pytest.raises(ValueError, match=r"in_specs is P\('i', None\) which has length 2"):
        over(lambda v: v, P("i", None), P("i"))(x)
    with pytest.raises(ValueError, match="out_specs entry which is too long"):
        over(lambda v: v.sum(), P("i"), P("i"))(x)
    with pytest.raises(ValueError, match="lengths of tuple at key path\n    shard_map in_specs"):
        over(lambda u, v: v, (P("i"),), P("i"))(x, x)
    with pytest.raises(ValueError, match="shard_map out_specs"):
        over(lambda v: (v, v), P("i"), (P("i"),))(x)
    with pytest.raises(ValueError, match="context mesh cannot be empty"):
        calque.shard_map(lambda v: v, in_specs=P(), out_specs=P())(x)
    with pytest.raises(TypeError, match="in_axes was not specified when axis_name=i"):
        calque.jit(calque.shard_map(lambda v: v, mesh=line(), out_specs=P()))(x)
    with pytest.raises(TypeError, match="must be a pytree of"):
        over(lambda v: v, "i", P())


@four_devices
@pytest.mark.parametrize("check_vma", [True, False])
def test_groups_of_devices(check_vma):
    groups = [[0, 2], [3, 1]]
    x = jnp.arange(8.0)

    def f(v):
        return lax.psum(v, "i", axis_index_groups=groups)

    run = over(f, P("i"), P("i"), check_vma=check_vma)
    np.testing.assert_array_equal(run(x), [4, 6, 8, 10, 4, 6, 8, 10])
    np.testing.assert_array_equal(
        calque.grad(lambda x: (run(x) * x).sum())(x), [8, 12, 16, 20, 8, 12, 16, 20]
    )
    gathered = over(
        lambda v: lax.all_gather(v, "i", axis_index_groups=groups, tiled=True),
        P("i"),
        P("i"),
        check_vma=check_vma,
    )
    np.testing.assert_array_equal(gathered(x)[:8], [0, 1, 4, 5, 6, 7, 2, 3])
    if check_vma:
        with pytest.raises(ValueError, match="out_specs"):
            over(f, P("i"), P())(x)


@four_devices
def test_each_device_calls_back_for_itself():
    def twice(v):
        return calque.pure_callback(
            lambda x: np.asarray(x) * 2, calque.ShapeDtypeStruct(v.shape, v.dtype), v
        )

    x = jnp.arange(4.0)
    np.testing.assert_array_equal(over(twice, P("i"), P("i"))(x), 2 * x)
    np.testing.assert_array_equal(calque.pmap(twice)(x), 2 * x)
    with pytest.raises(NotImplementedError, match="vmap_method"):
        calque.vmap(twice)(x)


def test_a_derivative_has_one_equation_for_the_map():
    m = calque.sharding.Mesh(np.array(calque.devices()[:1]), ("x",))
    f = calque.shard_map(lambda v: lax.psum(v, "x"), mesh=m, in_specs=P("x"), out_specs=P())
    back = calque.vjp(f, jnp.arange(4.0))[1]
    (e,) = calque.make_jaxpr(back)(jnp.ones(4)).jaxpr.eqns
    assert e.primitive.name == "shard_map"
    assert [i.primitive.name for i in e.params["jaxpr"].eqns] == ["pvary"]

    def by_value(v):  # asks for a value, which it has as long as nothing is recorded
        return v * (2.0 if float(v[0]) > 0 else 3.0)

    g = calque.shard_map(by_value, mesh=m, in_specs=P("x"), out_specs=P("x"))
    with pytest.raises(calque.errors.ConcretizationTypeError):
        calque.jit(g)(jnp.ones(4))


@four_devices
def test_lanes_over_axes_that_residuals_could_vary_along():
    m = calque.sharding.Mesh(np.array(calque.devices()[:4]).reshape(2, 2), ("x", "y"))

    @functools.partial(calque.shard_map, mesh=m, in_specs=P("y"), out_specs=P(), check_vma=False)
    def f(v):
        return jnp.sin(v.sum())

    x = jnp.arange(16.0).reshape(4, 4) / 7
    expected = calque.vmap(calque.grad(f))(x)
    for transform in (lambda g: g, calque.jit):
        got = transform(calque.vmap(calque.grad(f), spmd_axis_name="x"))(x)
        np.testing.assert_allclose(got, expected, rtol=1e-6)


@four_devices
def test_meshes_of_arguments_and_of_the_map():
    one = calque.sharding.Mesh(np.array(calque.devices()[:2]), ("x",))
    other = calque.sharding.Mesh(np.array(calque.devices()[:2]), ("y",))
    x = calque.device_put(np.arange(4.0), calque.NamedSharding(one, P("x")))
    f = calque.shard_map(lambda v: v, mesh=other.abstract_mesh, in_specs=P("y"), out_specs=P("y"))
    with pytest.raises(ValueError, match=r"Mesh shape of the input .* does not match"):
        f(x)


@four_devices
def test_results_along_axes_that_the_compiler_decides_about():
    kinds = (calque.sharding.AxisType.Explicit, calque.sharding.AxisType.Auto)
    m = calque.make_mesh((2, 2), ("x", "y"), kinds)
    with calque.set_mesh(m):
        f = calque.smap(lambda v: v * 2, in_axes=0, out_axes=0, axis_name="y")
        x = calque.device_put(np.arange(4.0), P("y"))
        assert f(x).sharding == calque.jit(f)(x).sharding == calque.NamedSharding(m, P("y"))


@four_devices
def test_a_map_shows_what_its_members_hold():
    m = calque.sharding.Mesh(np.array(calque.devices()[:4]).reshape(2, 2), ("x", "y"))
    seen = []

    def f(v):
        seen.append(str(v))
        seen.append(str(calque.lax.psum(v, "x")))
        return v

    mapped = calque.shard_map(f, mesh=m, in_specs=P("x", "y"), out_specs=P("x", "y"))
    x = jnp.arange(4.0).reshape(2, 2)
    with calque.set_mesh(m):
        mapped(x)
    mapped(x)  # the map alone names the mesh
    places = [(0, 0), (0, 1), (1, 0), (1, 1)]  # in the order of the mesh
    held = ["[[0.]]", "[[1.]]", "[[2.]]", "[[3.]]"], ["[[2.]]", "[[4.]]", "[[2.]]", "[[4.]]"]
    where = [f"On {d} at mesh coordinates" for d in m.devices.flat]
    for text, values in zip(seen, 2 * held, strict=True):
        assert text.split("\n")[1::3] == values
        assert text.split("\n")[::3] == [f"{w} (x, y,) = {p}:" for w, p in zip(where, places)]


def test_axes_that_lanes_and_a_map_name():
    m = calque.sharding.Mesh(np.array(calque.devices()[:1]), ("x",))
    f = calque.shard_map(lambda v: v * 2, mesh=m, in_specs=P("x"), out_specs=P("x"))
    lanes = calque.vmap(f, spmd_axis_name="x")
    with pytest.raises(ValueError, match="vmap spmd_axis_name cannot appear"):
        lanes(jnp.ones((2, 3)))
    calque.config.update("jax_disable_vmap_shmap_error", True)
    try:
        assert lanes(jnp.ones((2, 3))).shape == (2, 3)
    finally:
        calque.config.update("jax_disable_vmap_shmap_error", False)

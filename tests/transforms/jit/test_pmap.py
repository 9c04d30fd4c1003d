"""pmap: one program for each device along an axis."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from tests.transforms.devices.four_devices import four_devices


def test_one_device():
    out = calque.pmap(lambda x, *, k: {"a": x * k}, axis_name="i")(
        jnp.arange(3.0).reshape(1, 3), k=jnp.array([2.0])
    )
    np.testing.assert_array_equal(out["a"], [[0, 2, 4]])
    assert out["a"].sharding.spec == calque.P("i")


def test_refuses():
    with pytest.raises(TypeError, match="Expected a callable value"):
        calque.pmap(3)
    with pytest.raises(TypeError, match="pmap in_axes must be an int"):
        calque.pmap(lambda x: x, in_axes="a")
    with pytest.raises(ValueError, match="at least one argument with a mapped axis"):
        calque.pmap(lambda x: x, in_axes=None)(1.0)
    with pytest.raises(
        ValueError,
        match="its argument x along axis 0, which implies that its rank should be at least 1",
    ):
        calque.pmap(lambda x: x)(1.0)
    with pytest.raises(
        ValueError, match=r"requires 100 logical devices, but only \d+ devices are available"
    ):
        calque.pmap(lambda x: x)(jnp.ones(100))
    with pytest.raises(ValueError, match=r"axis_size 3 doesn't match received axis_size 1"):
        calque.pmap(lambda x: x, axis_size=3)(jnp.ones(1))
    with pytest.raises(
        ValueError, match=r"axis 0 of argument x\['b'\] of type f32\[3,3\] had size 3"
    ):
        calque.pmap(lambda x: x)({"a": jnp.ones((2, 3)), "b": jnp.ones((3, 3))})
    with pytest.raises(ValueError, match="tuple of length 3"):
        calque.pmap(lambda x, y: x, in_axes=(0, 0, 0))(jnp.ones(1), jnp.ones(1))
    with pytest.raises(NameError, match="unbound axis name: j"):
        calque.pmap(lambda x: lax.psum(x, "j"), axis_name="i")(jnp.ones(1))
    with pytest.raises(RuntimeError, match="Unknown backend tpu"):
        calque.pmap(lambda x: x, backend="tpu")


@four_devices
def test_collectives():
    x = jnp.arange(16.0).reshape(4, 4)
    n = np.asarray(x)
    cases = {
        "psum": (lambda v: lax.psum(v, "i"), np.broadcast_to(n.sum(0), (4, 4))),
        "pmean": (lambda v: lax.pmean(v, "i"), np.broadcast_to(n.mean(0), (4, 4))),
        "pmax": (lambda v: lax.pmax(v, "i"), np.broadcast_to(n.max(0), (4, 4))),
        "pmin": (lambda v: lax.pmin(v, "i"), np.broadcast_to(n.min(0), (4, 4))),
        "all_gather": (lambda v: lax.all_gather(v, "i"), np.broadcast_to(n, (4, 4, 4))),
        "all_to_all": (lambda v: lax.all_to_all(v, "i", 0, 0), n.T),
        "ppermute": (
            lambda v: lax.ppermute(v, "i", [(k, (k + 1) % 4) for k in range(4)]),
            np.roll(n, 1, 0),
        ),
        "psum_scatter": (lambda v: lax.psum_scatter(v, "i"), n.sum(0)),
        "axis_index": (
            lambda v: v * 0 + lax.axis_index("i"),
            np.broadcast_to(np.arange(4.0)[:, None], (4, 4)),
        ),
        "count": (lambda v: v * lax.psum(1, "i"), 4 * n),
    }
    for name, (f, want) in cases.items():
        np.testing.assert_allclose(calque.pmap(f, axis_name="i")(x), want, err_msg=name)


@four_devices
def test_axes():
    x = jnp.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(calque.pmap(lambda v: v + 1, in_axes=1)(x), x.T + 1)
    out = calque.pmap(lambda v: v + 1, out_axes=1)(x)
    np.testing.assert_array_equal(out, x.T + 1)
    assert out.sharding.spec[1] == "_internal_pmap_axis_name" and out.sharding.num_devices == 2
    np.testing.assert_array_equal(calque.pmap(lambda v: v, out_axes=None)(x), [0, 1, 2])
    total = calque.pmap(lambda v: lax.psum(v, "i"), axis_name="i", out_axes=None)(x)
    assert total.shape == (3,) and total.is_fully_replicated
    trees = calque.pmap(lambda a, b: (a["u"] + b, b), in_axes=({"u": 0}, None), out_axes=(0, None))
    u, b = trees({"u": jnp.arange(2.0)}, 5.0)
    np.testing.assert_array_equal(u, [5, 6])
    assert float(b) == 5


@four_devices
def test_static_arguments_and_donation():
    f = calque.pmap(
        lambda x, n, y: x * n + y,
        static_broadcasted_argnums=1,
        donate_argnums=0,
        in_axes=(0, None, 0),
    )
    x = jnp.ones((2, 3))
    np.testing.assert_array_equal(f(x, 3, jnp.arange(2.0)), [[3, 3, 3], [4, 4, 4]])
    np.testing.assert_array_equal(f(jnp.ones((2, 3)), 4, jnp.arange(2.0))[1], [5, 5, 5])
    with pytest.raises(ValueError, match="Non-hashable static arguments"):
        f(x, [3], jnp.arange(2.0))


@four_devices
def test_devices_are_named_by_the_results():
    out = calque.pmap(lambda v: v, devices=calque.devices()[2:])(jnp.arange(4.0).reshape(2, 2))
    assert [s.device.id for s in out.addressable_shards] == [2, 3]
    np.testing.assert_array_equal(out.addressable_shards[1].data, [[2, 3]])
    with pytest.raises(ValueError, match="only 2 devices are available"):
        calque.pmap(lambda v: v, devices=calque.devices()[2:])(jnp.ones(3))


@four_devices
def test_composes():
    x = jnp.arange(8.0).reshape(4, 2)

    def loss(w, v):
        return jnp.mean((v * w - 1.0) ** 2)

    full = calque.grad(loss)(0.5, x.ravel())
    g = calque.pmap(
        lambda w, v: lax.pmean(calque.grad(loss)(w, v), "i"), axis_name="i", in_axes=(None, 0)
    )
    np.testing.assert_allclose(g(0.5, x), [full] * 4, rtol=1e-5)
    np.testing.assert_allclose(calque.jit(g)(0.5, x), [full] * 4, rtol=1e-5)

    def outer(w):
        return calque.pmap(loss, in_axes=(None, 0))(w, x).mean()

    np.testing.assert_allclose(calque.grad(outer)(0.5), full, rtol=1e-5)
    np.testing.assert_allclose(calque.jvp(outer, (0.5,), (1.0,))[1], full, rtol=1e-5)
    np.testing.assert_allclose(
        calque.vmap(g, in_axes=(0, None))(jnp.array([0.5, 0.5]), x)[1], [full] * 4, rtol=1e-5
    )
    both = calque.pmap(calque.pmap(lambda v: lax.psum(v, ("i", "j")), axis_name="j"), axis_name="i")
    np.testing.assert_array_equal(both(x[:2]), [[6, 6], [6, 6]])
    steps = calque.pmap(
        lambda v: lax.scan(lambda c, a: (lax.psum(c + a, "i"), c), v[0], v)[0], axis_name="i"
    )
    assert steps(x).shape == (4,)
    assert calque.jit(calque.pmap(lambda v: v + 1))(x).sharding.num_devices == 4


@four_devices
def test_one_trace():
    count = []
    f = calque.pmap(lambda v: count.append(1) or v * 2)
    for _ in range(3):
        f(jnp.ones((4, 2)))
    assert len(count) == 1
    f(jnp.ones((2, 2)))
    assert len(count) == 2


def test_static_arguments_are_positional():
    f = calque.pmap(lambda x, k: x * k, static_broadcasted_argnums=(1,))
    with pytest.raises(ValueError, match=r"only 1 positional argument. All static"):
        f(jnp.ones((1, 2)), k=3)


def test_pmap_refuses_no_devices_and_lowers_types():
    with pytest.raises(ValueError, match="'devices' argument to pmap must be non-empty"):
        calque.pmap(lambda x: x, devices=[])
    lowered = calque.pmap(lambda x: x * 2).lower(calque.core.ShapedArray((1, 3), np.float32))
    assert not lowered._no_kwargs and lowered.in_tree == calque.tree.structure(((0,), {}))
    assert lowered.compile()(np.ones((1, 3), "f4")).tolist() == [[2, 2, 2]]


def test_axes_that_do_not_fit_are_named_by_their_place():
    f = calque.pmap(lambda x, y: y, in_axes=((0, 0, 0), 0))
    with pytest.raises(ValueError, match=r"pmap in_axes\[0\]\[0\]"):
        f((jnp.ones(1), jnp.ones(1)), jnp.ones(1))
    g = calque.pmap(lambda x, y: x[0] + y, in_axes=((0, None),))
    assert g((jnp.ones(1), jnp.ones(3)), y=jnp.ones(1)).tolist() == [2]


@four_devices
def test_texts_say_over_how_many_devices_a_program_runs():
    f = calque.pmap(lambda v: v + lax.psum(v, "i"), axis_name="i")
    x = jnp.ones((4, 2))
    for lowered in (f.lower(x), calque.jit(f).lower(x)):
        text = lowered.as_text()
        assert "mhlo.num_partitions = 4" in text and "mhlo.num_replicas = 1" in text
    assert f.lower(x).compile()(x).tolist() == f(x).tolist() == [[5, 5]] * 4


def test_elements_without_values_are_results():
    out = calque.pmap(lambda x: jnp.array(b"", dtype=calque.dtypes.float0))(jnp.ones(1))
    assert out.shape == (1,) and out.dtype == calque.dtypes.float0

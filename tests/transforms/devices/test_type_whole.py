"""Explicit axes: dimensions that an operation needs whole must not be split."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.sharding import Mesh, NamedSharding
from calque.sharding import PartitionSpec as P
from calque.transforms.devices.abstract_mesh import AxisType
from calque.transforms.devices.types import ShardingTypeError
from tests.transforms.devices.four_devices import four_devices


def square():
    devices = np.array(calque.devices()[:4]).reshape(2, 2)
    return Mesh(devices, ("x", "y"), axis_types=(AxisType.Explicit,) * 2)


def over(*spec, shape=(4, 4)):
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    return calque.device_put(x + 4 * np.eye(*shape[-2:]), NamedSharding(square(), P(*spec)))


def both(f):
    return f, calque.jit(f)


REFUSED = {
    "sort": (lambda a: jnp.sort(a, 0), ("x",), "unsharded over the sorting dimension"),
    "argsort": (lambda a: jnp.argsort(a, 1), (None, "y"), "unsharded over the sorting dimension"),
    "mapped sort": (calque.vmap(jnp.sort), (None, "y"), "unsharded over the sorting dimension"),
    "two sorted": (
        lambda a: lax.sort((a, calque.reshard(a, P("y"))), dimension=1),
        ("x",),
        "must have equal shardings",
    ),
    "cumsum": (lambda a: jnp.cumsum(a, 0), ("x",), "unsharded over the axis being reduced"),
    "cummax": (lambda a: lax.cummax(a, 1), (None, "y"), "unsharded over the axis being reduced"),
    "cholesky": (
        lambda a: lax.linalg.cholesky(a, symmetrize_input=False),
        (None, None, "x"),
        "Input 0 to cholesky must be unsharded on non-batch dimensions",
    ),
    "qr": (lambda a: jnp.linalg.qr(a)[0], ("x",), "Input 0 to qr must be unsharded"),
    "svd": (lambda a: jnp.linalg.svd(a)[1], (None, "y"), "Input 0 to svd must be unsharded"),
    "triangle": (
        lambda a: lax.linalg.triangular_solve(jnp.eye(4), a, left_side=True),
        ("x",),
        "input `b` must be unsharded on the contracting axis",
    ),
    "set": (lambda a: a.at[0].set(1.0), ("x",), "out_sharding="),
    "set a part": (lambda a: a.at[:, :2].set(1.0), (None, "y"), "out_sharding="),
    "add": (lambda a: a.at[0].add(1.0), ("x",), "scatter-add.* could not be resolved"),
    "add some": (lambda a: a.at[:, jnp.array([0, 1])].add(1.0), (None, "y"), "out_sharding="),
    "update": (
        lambda a: lax.dynamic_update_slice(a, jnp.zeros((4, 2)), (0, 1)),
        ("x",),
        "operand sharding must be equal to update sharding",
    ),
    "indices": (
        calque.jit(lambda a: jnp.ones((9, 3))[a[:, 0].astype(int)]),
        ("x",),
        "to provide output PartitionSpec for the gather",
    ),
}


@four_devices
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_split_where_it_must_be_whole_is_refused(name):
    f, spec, text = REFUSED[name]
    with calque.set_mesh(square()):
        x = over(*spec, shape=(2, 4, 4) if len(spec) == 3 else (4, 4))
        for g in both(f):
            with pytest.raises(ShardingTypeError, match=text):
                g(x)


ALLOWED = {
    "sort": (lambda a: jnp.sort(a, 1), ("x",), P("x", None)),
    "cumsum": (lambda a: jnp.cumsum(a, 1), ("x",), P("x", None)),
    "rfft": (lambda a: jnp.fft.rfft(a, axis=1), ("x",), P("x", None)),
    "bytes": (lambda a: lax.bitcast_convert_type(a, jnp.int8), ("x", "y"), P("x", "y", None)),
    "set": (lambda a: a.at[0].set(1.0), (None, "y"), P(None, "y")),
    "add": (lambda a: a.at[:, jnp.array([0, 1])].add(1.0), ("x",), P("x", None)),
    "as told": (lambda a: a.at[0].set(1.0, out_sharding=P("x")), ("x",), P("x", None)),
    "update": (
        lambda a: lax.dynamic_update_slice(a, a[:, :2] * 0, (0, 1)),
        ("x",),
        P("x", None),
    ),
    "columns": (
        lambda a: lax.linalg.triangular_solve(jnp.eye(4), a, left_side=True),
        (None, "y"),
        P(None, "y"),
    ),
    "gradient": (calque.grad(lambda a: jnp.cumsum(a * a, 1).sum()), ("x",), P("x", None)),
    "gradient of picks": (
        calque.grad(lambda a: (a.at[:, 0].get() * a.at[:, 1].set(2.0)[:, 3]).sum()),
        ("x",),
        P("x", None),
    ),
}


@four_devices
@pytest.mark.parametrize("name", ALLOWED)
def test_other_dimensions_stay_split(name):
    f, spec, wanted = ALLOWED[name]
    with calque.set_mesh(square()):
        x = over(*spec)
        for g in both(f):
            assert calque.typeof(g(x)).sharding.spec == wanted
            np.testing.assert_allclose(g(x), f(over()), rtol=1e-5)


@four_devices
def test_many_matrices_are_split_over_the_devices():
    with calque.set_mesh(square()):
        x = over("x", shape=(2, 4, 4))
        for f in (lambda a: jnp.linalg.qr(a)[1], lambda a: jnp.linalg.svd(a)[0]):
            assert calque.typeof(f(x)).sharding.spec == P("x", None, None)
        with pytest.raises(ValueError, match="does not evenly divide the dimension size 3"):
            jnp.fft.rfft(over(None, "y"), axis=1)


@four_devices
def test_carries_and_branches_are_split_alike():
    def cond(a):
        return lax.cond(a.sum() > 0, lambda: a * 2, lambda: calque.reshard(a, P()))

    def loop(a):
        return lax.while_loop(lambda c: c.sum() < 0, lambda c: c + a, jnp.zeros((4, 4)))

    def rows(a):
        return lax.scan(lambda c, r: (c + r, r), jnp.zeros(4), a)

    def turned(a):
        return lax.fori_loop(0, 2, lambda i, c: calque.reshard(c, P("y", "x")), a)

    with calque.set_mesh(square()):
        for f, spec in ((cond, ("x", "y")), (loop, ("x",)), (rows, (None, "y")), (turned, ("x",))):
            for g in both(f):
                with pytest.raises(TypeError, match="the shardings do not match"):
                    g(over(*spec))
            assert f is turned or calque.tree.leaves(f(over()))[0].sharding.is_fully_replicated


@four_devices
def test_a_constraint_where_types_say_all_can_only_agree():
    mesh = square()
    x = over("x", "y")
    with calque.set_mesh(mesh):
        for g in both(lambda a: lax.with_sharding_constraint(a, P("x", "y"))):
            assert g(x).sharding.spec == P("x", "y")
        for g in both(lambda a: lax.with_sharding_constraint(a, P("y", "x"))):
            with pytest.raises(AssertionError, match=r"acts as an assert .*jax.sharding.reshard"):
                g(x)
    with pytest.raises(ValueError, match="can only refer to Auto axes"):
        lax.with_sharding_constraint(x, NamedSharding(mesh, P("x", "y")))


@four_devices
def test_arrays_of_another_mesh_than_the_current_one_are_refused():
    other = Mesh(np.array(calque.devices()[:4]), ("z",), axis_types=(AxisType.Explicit,))
    x = calque.device_put(np.ones((4, 4)), NamedSharding(other, P("z")))
    with calque.set_mesh(square()):
        for g in both(lambda a: a * 2):
            with pytest.raises(ValueError, match=r"primitive mul, context mesh .* should match"):
                g(x)
        assert calque.device_put(x, P("x", "y")).sharding.spec == P("x", "y")
    assert (x * 2).sharding.spec == P("z", None)

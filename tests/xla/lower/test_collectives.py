"""Programs of several devices on XLA: what they compute is what calque's own engine computes; and
they are programs of parts, with operations between devices.

The tests of this file run in a process of their own, which has eight devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import lax
from calque.core.arrays import is_pending
from calque.core.config import config
from calque.machine.call import functions as callpath
from calque.sharding import AxisType, Mesh, NamedSharding
from calque.sharding import PartitionSpec as P
from tests.xla.many_devices import in_many
from tests.xla.mlir import needs_jaxlib

pytestmark = needs_jaxlib
of_eight, test_with_many_devices = in_many(8, __file__)


def meshes(*sizes: int, names: str = "xyz", kind: Any = AxisType.Auto) -> tuple[Mesh, Mesh]:
    """The same mesh of calque's own devices and of XLA's."""
    count = int(np.prod(sizes))
    return tuple(  # type: ignore[return-value]
        Mesh(
            np.array(jax.devices(platform)[:count]).reshape(sizes),
            tuple(names[: len(sizes)]),
            axis_types=(kind,) * len(sizes),
        )
        for platform in ("cpu", "xla_cpu")
    )


def on_both(make: Any, sizes: tuple[int, ...], *args: Any, specs: Any) -> Any:
    """What a jitted function of a mesh gives on both engines, and XLA's text of it."""
    results = []
    for mesh in meshes(*sizes):
        f = jax.jit(make(mesh))
        placed = [jax.device_put(x, NamedSharding(mesh, s)) for x, s in zip(args, specs)]
        results.append(f(*placed))
        text = (
            f.lower(*placed).compile().as_text() if mesh.devices.flat[0].engine != "native" else ""
        )
    ours, theirs = results
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
        assert a.sharding.spec in (P(), b.sharding.spec)  # XLA keeps more split than our rules
    return text


X = np.arange(64.0, dtype=np.float32).reshape(8, 8) / 7

INSIDE: dict[str, tuple[Any, Any, Any, str]] = {
    "psum": (lambda v: lax.psum(v, "x"), P("x", "y"), P(None, "y"), "all-reduce"),
    "psum of both": (lambda v: lax.psum(v, ("x", "y")), P("x", "y"), P(), "all-reduce"),
    "psum of integers": (
        lambda v: lax.psum(v.astype(jnp.int32), "x"),
        P("x", "y"),
        P(None, "y"),
        "all-reduce",
    ),
    "pmax": (lambda v: lax.pmax(v, "y"), P("x", "y"), P("x"), "all-reduce"),
    "pmin": (lambda v: lax.pmin(v, "y"), P("x", "y"), P("x"), "all-reduce"),
    "pmean": (lambda v: lax.pmean(v, "x"), P("x", "y"), P(None, "y"), "all-reduce"),
    "all_gather": (lambda v: lax.all_gather(v, "x"), P("x", "y"), P(None, "x", "y"), "all-gather"),
    "all_gather tiled": (
        lambda v: lax.all_gather(v, "x", axis=1, tiled=True),
        P("x", "y"),
        P("x", "y"),
        "all-gather",
    ),
    "psum_scatter": (
        lambda v: lax.psum_scatter(v, "y", scatter_dimension=1, tiled=True),
        P("x"),
        P("x", "y"),
        "reduce-scatter",
    ),
    "psum_scatter of elements": (
        lambda v: lax.psum_scatter(v, "y", scatter_dimension=0),
        P("x"),
        P(("x", "y")),
        "reduce-scatter",
    ),
    "all_to_all tiled": (
        lambda v: lax.all_to_all(v, "y", 0, 1, tiled=True),
        P(None, ("x", "y")),
        P(("x", "y")),
        "all-to-all",
    ),
    "all_to_all of elements": (
        lambda v: lax.all_to_all(v[:2, :, None], "x", 0, 2),
        P(None, "y"),
        P("x", "y"),
        "all-to-all",
    ),
    "ppermute": (
        lambda v: lax.ppermute(v, "y", [(0, 1), (1, 3), (3, 0)]),
        P("x", "y"),
        P("x", "y"),
        "collective-permute",
    ),
    "pbroadcast": (
        lambda v: lax.pbroadcast(v, "y", 2),
        P("x", "y"),
        P("x", "y"),
        "all-gather",
    ),
    "axis_index": (
        lambda v: v + 10 * lax.axis_index("x") + lax.axis_index("y"),
        P("x", "y"),
        P("x", "y"),
        "partition-id",
    ),
}


@of_eight
@pytest.mark.parametrize("name", INSIDE)
def test_operations_between_devices(name: str) -> None:
    f, ins, outs, expected = INSIDE[name]
    text = on_both(
        lambda mesh: jax.shard_map(f, mesh=mesh, in_specs=ins, out_specs=outs, check_vma=False),
        (2, 4),
        X,
        specs=[ins],
    )
    assert expected in text and "num_partitions=8" in text


@of_eight
@pytest.mark.parametrize("check", [True, False])
def test_gradients_through_parts(check: bool) -> None:
    def make(mesh: Mesh) -> Any:
        def part(w: Any, x: Any) -> Any:
            def layer(carry: Any, row: Any) -> Any:
                return carry + jnp.tanh(row @ w), None

            zero = jnp.zeros(w.shape[1])
            zero = lax.pcast(zero, ("x", "y"), to="varying") if check else zero
            total, _ = lax.scan(layer, zero, x)
            return lax.psum(jnp.sum(total**2), ("x", "y"))

        mapped = jax.shard_map(
            part, mesh=mesh, in_specs=(P(None, "y"), P("x")), out_specs=P(), check_vma=check
        )
        return jax.value_and_grad(mapped, argnums=(0, 1))

    on_both(make, (2, 4), X, X, specs=[P(None, "y"), P("x")])


@of_eight
def test_what_is_no_program_of_parts_is_one_of_the_whole() -> None:
    def partly(mesh: Mesh) -> Any:
        return jax.shard_map(
            lambda v: lax.psum(v, "x"),
            mesh=mesh,
            in_specs=P("x"),
            out_specs=P(),
            axis_names={"x"},
            check_vma=False,
        )

    on_both(partly, (2, 4), X, specs=[P("x", "y")])


@of_eight
def test_shardings_are_followed_and_constraints_kept() -> None:
    def make(mesh: Mesh) -> Any:
        def f(a: Any, b: Any) -> Any:
            c = lax.with_sharding_constraint(a @ b, NamedSharding(mesh, P("x", "y")))
            return c, jnp.sin(a).sum(0), {"t": c.T}

        return f

    text = on_both(make, (2, 4), X, X, specs=[P("x"), P(None, "y")])
    assert "f32[4,2]" in text  # a tile of the product


@of_eight
def test_in_and_out_shardings() -> None:
    _, mesh = meshes(4, 2)
    ins, out = NamedSharding(mesh, P("x")), NamedSharding(mesh, P(None, "y"))
    f = jax.jit(lambda a, b: a @ b, in_shardings=(ins, None), out_shardings=out)
    c = f(X, jnp.asarray(X))
    np.testing.assert_allclose(c, X @ X, rtol=1e-5)
    assert c.sharding == out and c.addressable_shards[0].data.shape == (8, 4)
    assert "f32[2,8]" in f.lower(X, X).compile().as_text()


@of_eight
def test_parts_stay_on_their_devices() -> None:
    _, mesh = meshes(8)
    s = NamedSharding(mesh, P("x"))
    f = jax.jit(lambda v: v * 2 + 1)
    x = f(jax.device_put(X, s))
    assert is_pending(x) and x.sharding.is_equivalent_to(s, 2)
    y = f(x)
    served = callpath.calls_served()
    y = f(x)
    assert callpath.calls_served() == served + 1 and is_pending(x) and is_pending(y)
    np.testing.assert_array_equal(y, (X * 2 + 1) * 2 + 1)
    replicated = jax.jit(lambda v: v, out_shardings=NamedSharding(mesh, P()))(y)
    np.testing.assert_array_equal(replicated, y)
    donating = jax.jit(lambda v: v + 1, donate_argnums=0)
    z = donating(f(x))
    last = donating(z)
    assert z.is_deleted()
    np.testing.assert_array_equal(last, np.asarray(y) + 2)


@of_eight
def test_devices_in_another_order() -> None:
    devices = np.array(jax.devices("xla_cpu"))[[3, 1, 0, 2]]
    mesh = Mesh(devices, ("x",), axis_types=(AxisType.Auto,))
    s = NamedSharding(mesh, P("x"))
    x = jax.device_put(X, s)
    f = jax.jit(lambda v: jnp.cumsum(v, 0))
    np.testing.assert_allclose(f(x), np.cumsum(X, 0), rtol=1e-5)
    assert [shard.device.id for shard in f(x).addressable_shards] == [3, 1, 0, 2]
    mapped = jax.shard_map(lambda v: v + lax.axis_index("x"), mesh=mesh, in_specs=P("x"),
                           out_specs=P("x"))  # fmt: skip
    np.testing.assert_allclose(jax.jit(mapped)(x), X + np.repeat(np.arange(4), 2)[:, None])


@of_eight
def test_random_keys_and_dtypes_over_devices() -> None:
    _, mesh = meshes(8)
    s = NamedSharding(mesh, P("x"))
    keys = jax.device_put(jax.random.split(jax.random.key(0), 8), s)
    numbers = jax.jit(jax.vmap(lambda k: jax.random.uniform(k, (3,))))(keys)
    expected = jax.vmap(lambda k: jax.random.uniform(k, (3,)))(
        jax.random.split(jax.random.key(0), 8)
    )
    np.testing.assert_array_equal(numbers, expected)
    for dtype in (jnp.bfloat16, bool, jnp.int8, jnp.complex64):
        x = jax.device_put(jnp.ones((8, 2), dtype), s)
        np.testing.assert_array_equal(np.asarray(jax.jit(lambda v: v[::-1])(x)), np.ones((8, 2)))


@of_eight
def test_explicit_axes() -> None:
    for mesh in meshes(2, 4, kind=AxisType.Explicit):
        with jax.set_mesh(mesh):
            a = jax.device_put(X, NamedSharding(mesh, P("x", "y")))

            @jax.jit
            def f(v: Any) -> Any:
                assert jax.typeof(v).sharding.spec == P("x", "y")
                return v * 2, v.sum(0)

            doubled, summed = f(a)
            np.testing.assert_allclose(doubled, X * 2)
            assert doubled.sharding.spec == P("x", "y") and summed.sharding.spec == P("y")


@of_eight
def test_pmap() -> None:
    with config.override("calque_platforms", "xla_cpu"):
        f = jax.pmap(lambda v: v / lax.psum(v, "i"), axis_name="i")
        out = f(jnp.arange(1.0, 9.0))
        np.testing.assert_allclose(out, np.arange(1.0, 9.0) / 36, rtol=1e-6)
        assert {d.engine for d in out.devices()} == {"xla_cpu"} and len(out.devices()) == 8
        assert jax.make_mesh((8,), ("x",)).devices.flat[0].engine == "xla_cpu"
        assert jnp.ones(3).devices() == {jax.devices()[0]} == {jax.devices("xla_cpu")[0]}


@of_eight
def test_what_is_on_other_devices_is_refused() -> None:
    _, mesh = meshes(4)
    a = jax.device_put(X, NamedSharding(mesh, P("x")))
    b = jax.device_put(X, jax.devices("xla_cpu")[7])
    with pytest.raises(ValueError, match=r"incompatible devices.*XLA_CPU.*Use device_put"):
        jax.jit(jnp.add)(a, b)
    c = jax.device_put(X, NamedSharding(meshes(4)[0], P("x")))
    with pytest.raises(ValueError, match=r"incompatible devices.*XLA_CPU.* on platform CPU"):
        jax.jit(jnp.add)(a, c)

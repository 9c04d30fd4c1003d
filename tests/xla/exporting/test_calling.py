"""Exported programs of several devices: from both engines, on other meshes, with gradients, and in
JAX, where it is installed.

Most tests of this file run in a process of their own, which has four devices."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import export, lax
from calque.sharding import AbstractMesh, Mesh, NamedSharding
from calque.sharding import PartitionSpec as P
from tests.xla.many_devices import in_many
from tests.xla.mlir import needs_jaxlib

pytestmark = needs_jaxlib
of_four, test_with_many_devices = in_many(4, __file__)
X = np.arange(32, dtype=np.float32).reshape(8, 4) / 8
W = np.ones((4, 4), np.float32)


def grid(platform: str = "xla_cpu", names: str = "ab", order: int = 1) -> Mesh:
    return Mesh(np.array(jax.devices(platform)[:4][::order]).reshape(2, 2), tuple(names))


def step(mesh: Any) -> Any:
    """A function of two arguments that live on a mesh, with a constraint and a map over devices."""

    def f(x: Any, w: Any) -> Any:
        y = lax.with_sharding_constraint(jnp.sin(x) @ w, NamedSharding(mesh, P("a", None)))
        total = jax.shard_map(
            lambda v: lax.psum(v.sum(0, keepdims=True), "a"),
            mesh=mesh,
            in_specs=P("a", "b"),
            out_specs=P(None, "b"),
        )(y)
        return y, total

    return jax.jit(
        f,
        in_shardings=(NamedSharding(mesh, P("a", "b")), None),
        out_shardings=(NamedSharding(mesh, P("b")), None),
    )


def check(results: Any) -> None:
    y = np.sin(X) @ W
    np.testing.assert_allclose(results[0], y, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(results[1], y.sum(0, keepdims=True), rtol=1e-5, atol=1e-5)


@pytest.fixture(scope="module")
def blob() -> bytes:
    made = export.export(step(grid()))(X, W)
    assert made.nr_devices == 4
    return bytes(made.serialize(vjp_order=1))


@of_four
def test_shardings_go_with_it(blob: bytes) -> None:
    found = export.deserialize(blob)
    mesh = grid(order=-1)
    assert found.nr_devices == 4
    assert found.in_shardings_jax(mesh) == (NamedSharding(mesh, P("a", "b")), None)
    assert found.out_shardings_jax(mesh)[0] == NamedSharding(mesh, P("b"))
    assert "sdy.mesh" in found.mlir_module() and "num_partitions = 4" in found.mlir_module()
    with pytest.raises(ValueError, match="does not match the mesh used for export"):
        found.in_shardings_jax(grid(names="xy"))


@of_four
@pytest.mark.parametrize("platform", ["cpu", "xla_cpu"])
def test_called_on_a_mesh(blob: bytes, platform: str) -> None:
    found, mesh = export.deserialize(blob), grid(platform, order=-1)
    x = jax.device_put(X, found.in_shardings_jax(mesh)[0])
    for f in (found.call, jax.jit(lambda x, w: found.call(x * 1, w))):
        results = f(x, W)
        check(results)
        assert results[0].sharding == NamedSharding(mesh, P("b"))
    g = jax.grad(lambda x: found.call(x, W)[0].sum())(x)
    np.testing.assert_allclose(g, np.cos(X) * 4, rtol=1e-5, atol=1e-5)
    assert g.sharding == NamedSharding(mesh, P("a", "b"))


@of_four
@pytest.mark.parametrize("platform", ["cpu", "xla_cpu"])
def test_called_on_a_mesh_of_other_axes(blob: bytes, platform: str) -> None:
    row = Mesh(np.array(jax.devices(platform)[:4]), ("q",))
    x = jax.device_put(X, NamedSharding(row, P("q")))
    check(export.deserialize(blob).call(x, W))


@of_four
def test_the_number_of_devices_must_be_that_of_the_export(blob: bytes) -> None:
    found = export.deserialize(blob)
    wrong = r"exported for 4 devices and is called in a context with {} devices.*device_put"
    with pytest.raises(ValueError, match=wrong.format(1)):
        found.call(X, W)
    two = Mesh(np.array(jax.devices("xla_cpu")[:2]), ("a",))
    with pytest.raises(ValueError, match=wrong.format(2)):
        found.call(jax.device_put(X, NamedSharding(two, P("a"))), W)
    with pytest.raises(ValueError, match=wrong.format(1)):
        jax.jit(found.call, backend="xla_cpu")(X, W)
    one = NamedSharding(Mesh(np.array(jax.devices()[:1]), ("a",)), P("a"))
    with pytest.raises(ValueError, match=wrong.format(1)):
        jax.jit(found.call, in_shardings=(one, None))(X, W)


@of_four
def test_shardy_is_needed(blob: bytes) -> None:
    found, where = export.deserialize(blob), NamedSharding(grid(), P("a"))
    x, refused = jax.device_put(X, where), pytest.raises(ValueError, match="Please enable Shardy")
    with jax.config.override("calque_use_shardy_partitioner", False), refused:
        found.call(x, W)


@of_four
def test_modules_say_what_was_said() -> None:
    mesh = grid(names="xy")
    split = NamedSharding(mesh, P(None, "x"))
    exported = export.export(jax.jit(lambda x: jnp.sin(x.T), in_shardings=split))(X)
    (main,) = [s for s in exported.mlir_module().splitlines() if "@main" in s]
    said = 'sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}'
    assert f"%arg0: tensor<8x4xf32> {{{said} loc(" in main
    assert 'tensor<4x8xf32> {jax.result_info = "result"})' in main  # nothing was said of it
    (main,) = [s for s in exported.vjp().mlir_module().splitlines() if "@main" in s]
    assert f"%arg0: tensor<8x4xf32> {{{said}" in main and "%arg1: tensor<4x8xf32> loc(" in main
    row = NamedSharding(Mesh(np.array(jax.devices()[:4]), ("q",)), P())
    text = jax.jit(exported.call).lower(jax.device_put(X, row)).as_text()
    body = text.partition("@main(")[2]
    assert body.startswith("%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh_0, [{}, {}]")
    assert "sdy.sharding_constraint %arg0 <@mesh," in body
    assert "%1 = call @call_exported__lambda_(%0)" in body


@of_four
def test_programs_of_one_device_run_within_those_of_several() -> None:
    found = export.deserialize(export.export(jax.jit(jnp.cos))(X).serialize())
    x = jax.device_put(X, NamedSharding(grid(), P("a")))
    np.testing.assert_allclose(jax.jit(lambda x: found.call(x + 1))(x), np.cos(X + 1), rtol=1e-5)


@of_four
def test_exported_within_another_export(blob: bytes) -> None:
    found, mesh = export.deserialize(blob), grid()
    where = NamedSharding(mesh, P("a", "b"))
    outer = export.export(jax.jit(lambda x: found.call(x, W)[0] * 2, in_shardings=where))(X)
    assert outer.nr_devices == 4
    y = export.deserialize(outer.serialize()).call(jax.device_put(X, where))
    np.testing.assert_allclose(y, 2 * (np.sin(X) @ W), rtol=1e-5, atol=1e-5)


@of_four
def test_free_sizes_over_several_devices() -> None:
    where = NamedSharding(grid(), P("a"))
    (spec,) = export.symbolic_args_specs([jax.ShapeDtypeStruct((4, 3), np.float32)], ["2*n, 3"])
    f = jax.jit(lambda x: x * 2 + x.sum(), in_shardings=where, out_shardings=where)
    found = export.deserialize(export.export(f)(spec).serialize())
    assert found.nr_devices == 4
    for n in (4, 8):
        x = np.arange(3 * n, dtype=np.float32).reshape(n, 3)
        y = found.call(jax.device_put(x, where))
        np.testing.assert_allclose(y, x * 2 + x.sum(), rtol=1e-6)


MAPPED: dict[str, tuple[Any, Any]] = {
    "permuted": (lambda v: lax.ppermute(v, "a", perm=[(0, 1), (1, 0)]), P("a")),
    "summed": (lambda v: lax.psum(v, "a"), P()),
    "scattered": (lambda v: lax.psum_scatter(jnp.concatenate([v, v]), "a", tiled=True), P("a")),
    # these need the numbers of the sizes
    "gathered": (lambda v: lax.all_gather(v, "a")[0] * 2 + v, P("a")),
    "numbered": (lambda v: v + lax.axis_index("a") + v.shape[0], P("a")),
}


@of_four
@pytest.mark.parametrize("name", MAPPED)
def test_shard_map_over_free_sizes(name: str) -> None:
    f, out = MAPPED[name]
    mesh = Mesh(np.array(jax.devices("xla_cpu")[:2]), ("a",))
    where = NamedSharding(mesh, P("a"))
    mapped = jax.shard_map(f, mesh=mesh, in_specs=P("a"), out_specs=out, check_vma=False)
    g = jax.jit(mapped, in_shardings=where)
    specs = export.symbolic_args_specs((X,), "2*n, m")
    found = export.deserialize(export.export(g)(*specs).serialize())
    for x in (X, np.arange(24, dtype=np.float32).reshape(4, 6)):
        y = found.call(jax.device_put(x, where))
        np.testing.assert_allclose(y, g(x), rtol=1e-6)


@of_four
def test_types_speak_of_explicit_axes() -> None:
    mesh = jax.make_mesh((2, 2), ("a", "b"), devices=jax.devices()[:4])  # explicit, as of late
    ins = tuple(NamedSharding(mesh, s) for s in (P("a", None), P(None, "b")))
    x, w = jax.device_put(X, ins[0]), jax.device_put(W, ins[1])
    found = export.export(jax.jit(lambda x, w: x @ w))(x, w)
    again = export.deserialize(found.serialize())
    for e in (found, again):
        assert [str(a) for a in e.in_avals] == ["float32[8@a,4]", "float32[4,4@b]"]
        assert [str(a) for a in e.out_avals] == ["float32[8@a,4@b]"]
        kinds = [s.memory_kind for s in e._in_named_shardings if s is not None]
        assert kinds == ["device", "device"]
    y = again.call(x, w)
    np.testing.assert_allclose(y, X @ W, rtol=1e-6)
    assert y.sharding == NamedSharding(mesh, P("a", "b"))
    jaxpr = jax.make_jaxpr(again.call)(x, w)
    assert [str(a) for a in jaxpr.out_avals] == ["float32[8@a,4@b]"]


@of_four
def test_each_device_calls_it_for_itself() -> None:
    found = export.export(jax.jit(lambda x: x / x.sum()))(X)
    xs = np.stack([X + i for i in range(4)])
    np.testing.assert_allclose(
        jax.pmap(found.call)(xs), xs / xs.sum((1, 2), keepdims=True), rtol=1e-5
    )


@of_four
def test_a_mesh_without_devices_may_be_exported_for() -> None:
    mesh = AbstractMesh((4,), ("a",))
    f = jax.jit(lambda x: x * 2)
    spec = jax.ShapeDtypeStruct((8, 4), np.float32, sharding=NamedSharding(mesh, P("a")))
    found = export.deserialize(export.export(f)(spec).serialize())
    row = Mesh(np.array(jax.devices("xla_cpu")[:4]), ("a",))
    assert found.nr_devices == 4
    x = jax.device_put(X, found.in_shardings_jax(row)[0])
    np.testing.assert_array_equal(found.call(x), 2 * X)


PEER = """
import sys, numpy as np, jax, jax.numpy as jnp
from jax import export
P, NS = jax.P, jax.NamedSharding
mesh = jax.sharding.Mesh(np.array(jax.devices()[:4][::-1]).reshape(2, 2), ("a", "b"))
X, W = np.arange(32, dtype=np.float32).reshape(8, 4) / 8, np.ones((4, 4), np.float32)
found = export.deserialize(bytearray(open(sys.argv[1], "rb").read()))
assert found.nr_devices == 4
x = jax.device_put(X, found.in_shardings_jax(mesh)[0])
y, total = found.call(x, W)
np.testing.assert_allclose(y, np.sin(X) @ W, rtol=1e-5, atol=1e-5)
assert y.sharding == NS(mesh, P("b")), y.sharding
np.testing.assert_allclose(total, (np.sin(X) @ W).sum(0, keepdims=True), rtol=1e-5, atol=1e-5)
g = jax.grad(lambda x: found.call(x, W)[0].sum())(x)
np.testing.assert_allclose(g, np.cos(X) * 4, rtol=1e-5, atol=1e-5)
f = jax.jit(lambda x, w: jax.lax.with_sharding_constraint(jnp.sin(x) @ w, NS(mesh, P("a"))),
            in_shardings=(NS(mesh, P("a", "b")), None), out_shardings=NS(mesh, P("b")))
open(sys.argv[2], "wb").write(export.export(f)(X, W).serialize(vjp_order=1))
"""


@of_four
@pytest.mark.peer
def test_jax_reads_it_and_is_read(blob: bytes, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("flatbuffers")
    here, there = tmp_path / "here.bin", tmp_path / "there.bin"
    here.write_bytes(blob)
    flags = "--xla_force_host_platform_device_count=4"
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}
    command = [sys.executable, "-c", PEER, str(here), str(there)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found, mesh = export.deserialize(there.read_bytes()), grid()
    x = jax.device_put(X, found.in_shardings_jax(mesh)[0])
    y = found.call(x, W)
    np.testing.assert_allclose(y, np.sin(X) @ W, rtol=1e-5, atol=1e-5)
    assert y.sharding == NamedSharding(mesh, P("b"))
    g = jax.grad(lambda x: found.call(x, W).sum())(x)
    np.testing.assert_allclose(g, np.cos(X) * 4, rtol=1e-5, atol=1e-5)

"""XLA chooses where the results of programs over several devices are that nobody placed.

The tests of this file run in a process of their own, which has eight devices."""

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
from calque import lax
from calque.sharding import AxisType, Mesh, NamedSharding
from calque.sharding import PartitionSpec as P
from calque.xla import jaxlib
from calque.xla.chosen_shardings import named
from tests.xla.many_devices import in_many
from tests.xla.mlir import needs_jaxlib

pytestmark = needs_jaxlib
of_eight, test_with_many_devices = in_many(8, __file__)


def mesh_of(*sizes: int, names: str = "xyz") -> Mesh:
    devices = np.array(jax.devices("xla_cpu")[: int(np.prod(sizes))]).reshape(sizes)
    kinds = (AxisType.Auto,) * len(sizes)
    return Mesh(devices, tuple(names[: len(sizes)]), axis_types=kinds)


def split(x: Any, *spec: Any, mesh: Mesh | None = None) -> Any:
    return jax.device_put(x, NamedSharding(mesh or mesh_of(8), P(*spec)))


ROWS = np.arange(8.0 * 16, dtype=np.float32).reshape(8, 16)
IMAGES = np.ones((8, 6, 6, 2), np.float32)
MATRICES = np.tile(np.eye(3, dtype=np.float32) * 2, (8, 1, 1))


def layers(x: Any) -> Any:
    w = jnp.full((3, 16, 16), 0.01)
    return lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, w)[0]


# each keeps its rows on the devices that have them
PROGRAMS: dict[str, tuple[Any, Any]] = {
    "fori_loop": (lambda x: lax.fori_loop(0, 4, lambda i, c: c * 1.5, x), ROWS),
    "while_loop": (lambda x: lax.while_loop(lambda c: c.sum() < 1e6, lambda c: c * 2, x), ROWS),
    "scan": (layers, ROWS),
    "gradient": (jax.grad(lambda x: (layers(x) ** 2).sum()), ROWS),
    "cond": (lambda x: lax.cond(x[0, 1] > 3, lambda v: v * 2, lambda v: v - 1, x), ROWS),
    "updates": (lambda x: x.at[:, 3].set(1.0).at[:, np.array([1, 5])].add(2.0), ROWS),
    "top_k": (lambda x: lax.top_k(x, 2)[0], ROWS),
    "fft": (lambda x: jnp.fft.fft(x, axis=1), ROWS),
    "concatenate": (lambda x: jnp.concatenate([x, x], 1), ROWS),
    "segments": (lambda x: jax.ops.segment_sum(x.T, np.arange(16) % 4, 4).T, ROWS),
    "labels": (
        lambda x: jnp.take_along_axis(jax.nn.log_softmax(x), np.arange(8)[:, None], 1)[:, 0],
        ROWS,
    ),
    "pooling": (
        lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
        IMAGES,
    ),
    "convolution": (
        lambda x: lax.conv_general_dilated(
            x, jnp.ones((3, 3, 2, 4)), (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        ),
        IMAGES,
    ),
    "cholesky": (jnp.linalg.cholesky, MATRICES),
    "inverse": (jnp.linalg.inv, MATRICES),
    "svd": (lambda x: jnp.linalg.svd(x)[1], MATRICES),
    "eigh": (lambda x: jnp.linalg.eigh(x)[0], MATRICES),
}


@of_eight
@pytest.mark.parametrize("name", PROGRAMS)
def test_rows_stay_on_their_devices(name: str) -> None:
    f, x = PROGRAMS[name]
    found = jax.jit(f)(split(x, "x"))
    np.testing.assert_allclose(found, jax.jit(f)(x), rtol=2e-5, atol=1e-6)
    assert found.sharding == NamedSharding(mesh_of(8), P("x"))
    assert {s.data.shape for s in found.addressable_shards} == {(1, *found.shape[1:])}
    compiled = jax.jit(f).lower(split(x, "x")).compile()
    assert compiled.output_shardings == found.sharding
    assert name in ("top_k", "fft") or "all-gather" not in compiled.as_text()  # not split


@of_eight
def test_what_somebody_chose_stays() -> None:
    mesh = mesh_of(4, 2)
    x = split(ROWS, "x", "y", mesh=mesh)
    whole = NamedSharding(mesh, P())
    f = jax.jit(lambda v: (v * 2, v + 1, v.T), out_shardings=(whole, None, None))
    first, second, third = f(x)
    assert first.sharding == whole and second.sharding == x.sharding
    assert third.sharding.spec == P("y", "x")
    for _ in range(3):  # served by machine code
        assert [y.sharding.spec for y in f(x)] == [P(), P("x", "y"), P("y", "x")]
    np.testing.assert_array_equal(third, ROWS.T)


@of_eight
def test_donated_arguments_give_their_memory_to_results_that_xla_places() -> None:
    x = split(ROWS, "x")
    f = jax.jit(lambda v: lax.fori_loop(0, 3, lambda i, c: c + 1, v), donate_argnums=0)
    compiled = f.lower(x).compile()
    assert compiled.memory_analysis().alias_size_in_bytes == ROWS.nbytes // 8
    found = f(x)
    assert x.is_deleted() and found.sharding.spec == P("x")
    np.testing.assert_array_equal(found, ROWS + 3)


@of_eight
def test_what_no_spec_describes_is_placed_by_our_rules() -> None:
    mesh = mesh_of(8)
    x = split(np.arange(16.0, dtype=np.float32), "x", mesh=mesh)
    found = jax.jit(lambda v: (v.reshape(2, 8), v * 2))(x)
    assert [y.sharding.mesh == mesh for y in found] == [True, True]
    assert found[1].sharding.spec == P("x")
    np.testing.assert_array_equal(found[0], np.arange(16.0).reshape(2, 8))
    np.testing.assert_array_equal(found[1], np.arange(16.0) * 2)


@of_eight
def test_uneven_parts_and_keys_and_nothing_at_all() -> None:
    x = split(ROWS, "x")
    f = jax.jit(lambda v: (v[:5], jax.random.split(jax.random.key(3), 8), v[:0], v.sum()))
    cut, keys, empty, total = f(x)
    np.testing.assert_array_equal(cut, ROWS[:5])
    expected = jax.random.key_data(jax.random.split(jax.random.key(3), 8))
    np.testing.assert_array_equal(jax.random.key_data(keys), expected)
    assert empty.shape == (0, 16) and float(total) == ROWS.sum()


@of_eight
def test_other_processes_find_what_was_chosen(tmp_path: pathlib.Path) -> None:
    tmp_path.chmod(0o700)
    script = (
        "import numpy as np, calque as jax; from calque import lax\n"
        "from calque.sharding import NamedSharding, PartitionSpec as P\n"
        "mesh = jax.make_mesh((8,), ('x',), (jax.sharding.AxisType.Auto,))\n"
        "x = jax.device_put(np.ones((8, 4)), NamedSharding(mesh, P('x')))\n"
        "y = jax.jit(lambda v: lax.fori_loop(0, 3, lambda i, c: c * 2, v))(x)\n"
        "print(y.sharding.spec, y.sum())\n"
    )
    environment = {**os.environ, "CALQUE_CACHE_DIR": str(tmp_path), "CALQUE_PLATFORMS": "xla_cpu"}
    command = [sys.executable, "-c", script]
    texts = [
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert texts[0] == texts[1] == "P('x',) 256.0\n"


@of_eight
@pytest.mark.parametrize(
    "spec",
    [(), ("x",), (None, "y"), (("y", "x"),), (("x", "y"), "z"), ("z", None, ("x", "y"))],
    ids=str,
)
def test_xla_words_become_ours(spec: Any) -> None:
    mesh = mesh_of(2, 2, 2)
    one = NamedSharding(mesh, P(*spec))
    tiles = one._to_xla_hlo_sharding(3)
    assert named(tiles, mesh, (8, 8, 8)) == one
    if spec:
        assert named(tiles, mesh, (7, 9, 11)) is None


@of_eight
def test_tiles_along_parts_of_axes_are_not_in_our_words() -> None:
    halves = jaxlib.jaxlib().client.HloSharding.iota_tile([2, 1, 4])
    assert named(halves, mesh_of(8), (8, 8, 8)) is None
    assert named(halves, mesh_of(2, 4), (8, 8, 8)) == NamedSharding(
        mesh_of(2, 4), P("x", None, "y")
    )


@of_eight
def test_arguments_that_nobody_placed_are_where_xla_wants_them() -> None:
    mesh = mesh_of(4, 2)
    x = split(ROWS, "x", "y", mesh=mesh)
    weights = np.ones((16, 8), np.float32)
    f = jax.jit(lambda v, w: (v @ w, w + 1))
    product, other = f(x, weights)
    assert product.sharding.spec == P("x") and other.sharding.spec == P("y")
    np.testing.assert_array_equal(other, weights + 1)
    for w in (weights * 2, jnp.ones((16, 8)), weights):  # served by machine code, too
        np.testing.assert_allclose(f(x, w)[0], ROWS @ np.asarray(w))
    compiled = f.lower(x, weights).compile()
    (first, second), _ = compiled.input_shardings
    assert first == x.sharding and second.spec == P("y")
    np.testing.assert_allclose(compiled(x, weights)[0], ROWS @ weights)


@of_eight
def test_maps_over_some_axes_keep_what_is_said_of_the_others() -> None:
    mesh = mesh_of(4, 2)

    def part(v: Any) -> Any:
        return lax.with_sharding_constraint(v * v, P("x"))

    spec = P(None, "y")
    f = jax.jit(jax.shard_map(part, mesh=mesh, in_specs=spec, out_specs=spec, axis_names={"y"}))
    found = f(ROWS)
    assert found.sharding == NamedSharding(mesh, P("x", "y"))
    np.testing.assert_array_equal(found, ROWS * ROWS)


@of_eight
def test_programs_as_text_say_what_the_caller_chose() -> None:
    mesh = mesh_of(4, 2)
    ins, outs = NamedSharding(mesh, P("x", "y")), NamedSharding(mesh, P(None, "x"))
    text = jax.jit(lambda v: v * 2, in_shardings=ins, out_shardings=outs).lower(ROWS).as_text()
    assert '%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}' in text
    assert '"result", sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}' in text
    placed = jax.device_put(ROWS, ins)
    text = jax.jit(lambda v, w: (v + w, w)).lower(placed, ROWS).as_text()
    (main,) = [line for line in text.splitlines() if "@main" in line]
    assert main.count("sdy.sharding =") == 1 and '(tensor<8x16xf32> {jax.result_info = "re' in main


@of_eight
def test_memory_is_that_of_a_device() -> None:
    f = jax.jit(lambda v: jnp.tanh(v) @ v.T)
    found = f.lower(split(ROWS, "x")).compile().memory_analysis()
    assert found.argument_size_in_bytes == ROWS.nbytes // 8
    assert found.output_size_in_bytes == 8 * 8 * 4 // 8
    assert found.peak_memory_in_bytes >= found.argument_size_in_bytes + found.output_size_in_bytes
    assert found.host_argument_size_in_bytes == found.host_temp_size_in_bytes == 0

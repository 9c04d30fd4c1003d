"""Arrays whose elements XLA has: what is copied, what is waited for, what is deleted."""

from __future__ import annotations

import copy
import gc
import os
import pathlib
import pickle
import subprocess
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import lax
from calque.core.arrays import is_pending
from calque.core.dtypes import as_dtype
from calque.machine.call import functions as callpath
from calque.xla import jaxlib
from tests.xla.mlir import needs_jaxlib
from tests.xla.several_processes import in_both

pytestmark = needs_jaxlib
EVERY_TYPE = (
    "bool", "int2", "uint2", "int4", "uint4", "int8", "uint8", "int16", "uint16", "int32",
    "uint32", "int64", "uint64", "float4_e2m1fn", "float8_e3m4", "float8_e4m3", "float8_e4m3fn",
    "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
    "bfloat16", "float16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip


def there(x: Any) -> Any:
    return jax.device_put(jnp.asarray(x), jax.devices("xla_cpu")[0])


def test_results_stay_on_the_device_until_somebody_looks() -> None:
    f = jax.jit(lambda v: v * 2)
    x = f(there(np.arange(4.0)))
    assert is_pending(x)
    for _ in range(3):  # handed on as they are
        x = f(x)
        assert is_pending(x) and x._ptr == 0
    assert x.shape == (4,) and x.dtype == jnp.float32 and x.devices() == {jax.devices("xla_cpu")[0]}
    assert x.block_until_ready() is x and x.is_ready() and is_pending(x)
    np.testing.assert_array_equal(x, np.arange(4.0) * 16)
    assert not is_pending(x)
    address = x.unsafe_buffer_pointer()
    np.testing.assert_array_equal(f(x), np.arange(4.0) * 32)
    assert x.unsafe_buffer_pointer() == address


def test_machine_code_matches_the_calls() -> None:
    f = jax.jit(lambda v, w: {"out": v["a"] * w})
    x, y = there(np.ones(3)), there(np.full(3, 2.0))
    expected = f({"a": x}, y)["out"]
    served = callpath.calls_served()
    out = f({"a": expected}, y)["out"]
    assert callpath.calls_served() == served + 1
    np.testing.assert_array_equal(out, np.full(3, 4.0))
    assert out.sharding == expected.sharding and out.committed
    np.testing.assert_array_equal(f({"a": jnp.ones(3)}, y)["out"], np.full(3, 2.0))  # taught anew


def test_arguments_are_brought_once_and_shared_where_they_lie() -> None:
    f = jax.jit(lambda v: v + 1, backend="xla_cpu")
    x = jnp.ones(4096) * 2  # results of calque's own are aligned as XLA wants it
    address = x.unsafe_buffer_pointer()
    f(x)
    buffer = x._owner
    assert buffer.unsafe_buffer_pointer() == address == x.unsafe_buffer_pointer()
    f(x)
    assert x._owner is buffer
    np.testing.assert_array_equal(x + 1, f(x))  # it still serves the native engine


def test_parts_of_a_result_are_brought_anew() -> None:
    f = jax.jit(lambda v: v * 2, backend="xla_cpu")
    whole = f(jnp.arange(4096.0))
    part, square = whole[1024:3072], whole.reshape(64, 64)
    np.testing.assert_array_equal(f(part), np.arange(4096.0)[1024:3072] * 4)
    np.testing.assert_array_equal(f(square), np.arange(4096.0).reshape(64, 64) * 4)
    np.testing.assert_array_equal(f(whole), np.arange(4096.0) * 4)


def test_nothing_keeps_itself_alive() -> None:
    f = jax.jit(lambda v: v + 1, backend="xla_cpu")
    made = [
        lambda: jnp.arange(4096.0),
        lambda: jnp.asarray(np.arange(4096.0, dtype="f4")),
        lambda: jnp.asarray(np.ones((2, 2048), "f4")).reshape(4096),
        lambda: f(jnp.ones(4096)),
    ]
    for make in made:
        x = make()
        f(x)
        np.asarray(x)
        f(x)
        alive = weakref.ref(x)
        del x
        gc.collect()
        assert alive() is None


def test_numbers_and_arrays_of_numpy() -> None:
    f = jax.jit(lambda v, s: v * s, backend="xla_cpu")
    x = np.ones(4, np.float32)
    for k in (2.0, -0.0, 0.0, 2.0, float("nan")):
        out = f(x, k)
        x += 0  # may be written after the call
        np.testing.assert_array_equal(np.signbit(out), np.signbit(np.full(4, np.float32(k))))
        np.testing.assert_array_equal(out, np.full(4, k, np.float32))
    before = f(x, 1.0)
    x[:] = 7
    np.testing.assert_array_equal(before, np.ones(4))
    np.testing.assert_array_equal(f(x, 1.0), np.full(4, 7))


@pytest.mark.parametrize(
    "dtype", ["bfloat16", "int4", "uint4", "float8_e5m2", "bool", "uint8", "int8", "float16"]
)
def test_every_kind_of_element(dtype: str) -> None:
    x = np.array([[0, 1, 1], [1, 0, 1]]).astype(getattr(ml_dtypes, dtype, dtype))
    out = jax.jit(lambda v: (v.T, v[:0]), backend="xla_cpu")(x)
    np.testing.assert_array_equal(np.asarray(out[0]).astype("f4"), x.T.astype("f4"))
    assert out[1].shape == (0, 3) and out[1].size == 0 and np.asarray(out[1]).shape == (0, 3)
    again = jax.jit(lambda v: v.T, backend="xla_cpu")(out[0])
    np.testing.assert_array_equal(np.asarray(again).astype("f4"), x.astype("f4"))


def test_random_keys_and_their_derivatives() -> None:
    key = jax.random.key(3)
    split = jax.jit(jax.random.split, backend="xla_cpu")(key)
    np.testing.assert_array_equal(
        jax.random.key_data(split), jax.random.key_data(jax.random.split(key))
    )
    numbers = jax.jit(lambda k: jax.random.normal(k[1], (3,)), backend="xla_cpu")(split)
    np.testing.assert_allclose(numbers, jax.random.normal(split[1], (3,)), rtol=1e-6)
    zero = jax.jit(jax.grad(lambda n: 1.0 * n, allow_int=True), backend="xla_cpu")(jnp.arange(3)[1])
    assert zero.dtype == jax.dtypes.float0 and zero.shape == ()


def test_donated_arguments_give_their_memory() -> None:
    f = jax.jit(lambda v: v + 1, donate_argnums=0)
    x = f(there(np.arange(4096.0)))
    address = x._owner.unsafe_buffer_pointer()
    y = f(x)
    assert x.is_deleted() and y._owner.unsafe_buffer_pointer() == address
    with pytest.raises(RuntimeError, match="deleted"):
        f(x)
    with pytest.raises(RuntimeError, match="deleted"):
        np.asarray(x)
    seen = np.asarray(y)  # then it is copied
    np.testing.assert_array_equal(f(y), np.arange(4096.0) + 3)
    np.testing.assert_array_equal(seen, np.arange(4096.0) + 2)
    assert y.is_deleted()


def on_all(x: Any, *names: str) -> Any:
    mesh = jax.make_mesh((len(jax.devices("xla_cpu")),), ("i",), devices=jax.devices("xla_cpu"))
    return jax.device_put(x, jax.NamedSharding(mesh, jax.P(*names)))


def split(x: Any) -> Any:
    return on_all(x, *["i"] * min(np.ndim(x), 1))


def on_one_of_a_mesh(x: Any) -> Any:
    mesh = jax.make_mesh((1,), ("i",), devices=jax.devices("xla_cpu")[-1:])
    return jax.device_put(x, jax.NamedSharding(mesh, jax.P()))


@pytest.mark.parametrize("place", [there, on_all, split, on_one_of_a_mesh])
@pytest.mark.parametrize("shape", [(8, 2), (8, 0), (0,), ()])
def test_every_type_is_read_and_goes_with_its_array(place: Any, shape: tuple[int, ...]) -> None:
    """The memory is kept for who looks at it, and does not keep its buffer for ever."""
    for name in EVERY_TYPE:
        with jax.enable_x64(True):
            x = place(np.ones(shape, as_dtype(name)))
            results = [*jax.jit(lambda v: (jnp.copy(v), jnp.flip(v)))(x), jax.jit(jnp.copy)(x)]
        while results:
            x = results.pop()
            for _ in range(2):
                seen = np.asarray(x)
                assert seen.shape == shape and seen.dtype == x.dtype == as_dtype(name)
                assert (seen.astype(complex) == 1).all()
            buffer = weakref.ref(x._owner)
            assert type(x._owner) is jaxlib.buffer_class()
            del x, seen
            assert buffer() is None, name


def test_deleting() -> None:
    x = jax.jit(lambda v: v + 1)(there(np.arange(4096.0)))
    x.delete()
    assert x.is_deleted() and x._owner.is_deleted()
    with pytest.raises(RuntimeError, match="deleted"):
        x.block_until_ready()
    y = jax.jit(lambda v: v + 1)(there(np.arange(4.0)))
    z = jax.device_put(y, jax.devices("xla_cpu")[0])
    view = np.asarray(z)
    y.delete()
    np.testing.assert_array_equal(view, np.arange(4.0) + 1)


@pytest.mark.parametrize("place", [there, on_all, split, on_one_of_a_mesh])
def test_what_was_seen_stays_when_its_array_goes(place: Any) -> None:
    more = jax.jit(lambda v: v + 1)
    deleted, given = more(place(np.zeros(8))), more(place(np.zeros(8)))
    seen = [np.asarray(deleted), np.asarray(given)]
    deleted.delete()
    np.testing.assert_array_equal(jax.jit(lambda v: v + 1, donate_argnums=0)(given), np.full(8, 2))
    for x, view in zip((deleted, given), seen, strict=True):
        assert x.is_deleted() and view.tolist() == [1] * 8
        with pytest.raises(RuntimeError, match="deleted"):
            np.asarray(x)


def test_the_whole_array_interface() -> None:
    x = jax.jit(lambda v: v + 1)(there(np.arange(6.0).reshape(2, 3)))
    fresh = lambda: jax.jit(lambda v: v + 0)(x)  # noqa: E731
    assert fresh().tolist() == [[1, 2, 3], [4, 5, 6]] and float(fresh()[0, 1]) == 2.0
    assert str(fresh()).startswith("[[1.") and fresh().sum().item() == 21
    assert [row.tolist() for row in fresh()] == [[1, 2, 3], [4, 5, 6]]
    np.testing.assert_array_equal(fresh().at[0].set(9)[0], [9, 9, 9])
    np.testing.assert_array_equal(np.from_dlpack(fresh()), x)
    assert memoryview(fresh()).shape == (2, 3)
    for twin in (copy.copy(fresh()), copy.deepcopy(fresh()), pickle.loads(pickle.dumps(fresh()))):
        np.testing.assert_array_equal(twin, x)
    assert jax.block_until_ready({"a": fresh(), "b": 1})["b"] == 1
    assert fresh().addressable_shards[0].device == jax.devices("xla_cpu")[0]
    assert fresh().on_device_size_in_bytes() == 24 and fresh().unsafe_buffer_pointer() > 0
    g = jax.grad(lambda v: (v**2).sum())(fresh())
    np.testing.assert_array_equal(g, 2 * np.asarray(x))


def test_arrays_move_between_the_engines() -> None:
    x = jax.jit(lambda v: v + 1)(there(np.arange(3.0)))
    home = jax.device_put(x, jax.devices("cpu")[0])
    assert home.devices() == {jax.devices("cpu")[0]}
    np.testing.assert_array_equal(jax.jit(lambda v: v * 2)(home), [2, 4, 6])
    back = there(home)
    np.testing.assert_array_equal(jax.jit(lambda v: v * 2)(back), [2, 4, 6])


def test_nothing_of_xla_is_imported_by_natives() -> None:
    script = (
        "import sys, calque, calque.numpy as jnp; x = calque.jit(jnp.sin)(jnp.ones(3));"
        "x.block_until_ready(); x.delete();"
        "print([m for m in sys.modules if m.startswith(('jaxlib', 'calque.xla'))])"
    )
    environment = {k: v for k, v in os.environ.items() if k != "CALQUE_PLATFORMS"}
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, env=environment
    )
    assert done.stdout.decode().strip() == "[]"


@needs_jaxlib
def test_pointers_are_those_of_the_device() -> None:
    """What is given away is taken: each result is where its argument was."""
    step = jax.jit(lambda x: x * 2 + 1, donate_argnums=0)
    x = step(jax.device_put(np.ones(1000, np.float32), jax.devices("xla_cpu")[0]))
    place = x.unsafe_buffer_pointer()
    for _ in range(3):
        y = step(x)
        assert x.is_deleted() and y.unsafe_buffer_pointer() == place
        x = y
    assert x.tolist() == [31] * 1000 and x.unsafe_buffer_pointer() == place


def test_parts_of_several_devices_are_read_without_jax(tmp_path: pathlib.Path) -> None:
    (tmp_path / "jax").mkdir()
    (tmp_path / "jax" / "__init__.py").write_text("print('imported')\n")
    script = (
        "import calque, calque.numpy as jnp; from calque.sharding import *\n"
        "mesh = calque.make_mesh((2,), ('x',), devices=calque.devices('xla_cpu'))\n"
        "x = calque.device_put(jnp.arange(4), NamedSharding(mesh, PartitionSpec('x')))\n"
        "print(calque.jit(lambda v: v * 2)(x))\n"
    )
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "CALQUE_NUM_CPU_DEVICES": "2", "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, env=environment
    )
    assert done.stdout.decode().strip() == "[0 2 4 6]"


def test_arrays_of_numpy_may_be_written_after_the_call() -> None:
    """Small ones are copied into memory that the next call uses again."""
    double = jax.jit(lambda x: (x, x.T.T, 2 * x), backend="xla_cpu")
    turns = jax.jit(
        lambda x, m, n: lax.fori_loop(0, 40, lambda i, c: jnp.tanh(c @ m), x) + n,
        backend="xla_cpu",
    )
    small, large, m = np.zeros(5, np.float32), np.zeros((64, 128), np.float32), np.eye(128) * 2
    m = m.astype(np.float32)
    quick, slow = [], []
    for k in range(12):
        small[:], large[:] = k, k / 10
        quick.append(double(small))
        slow.append(turns(large, m, k))
    small[:], large[:] = -1, -1
    for k in range(12):
        assert [np.asarray(y).tolist() for y in quick[k]] == [[k] * 5, [k] * 5, [2 * k] * 5]
        expected = turns(jnp.full((64, 128), k / 10), m, k)
        assert np.asarray(slow[k]).tolist() == np.asarray(expected).tolist()


def test_arguments_that_are_written_anew_do_not_disturb_donation_and_threads() -> None:
    f = jax.jit(lambda x, n: x * n, backend="xla_cpu")
    take = jax.jit(lambda y: y + 1, backend="xla_cpu", donate_argnums=0)
    x = np.zeros(8, np.float32)
    for k in range(20):
        x[:] = k
        assert np.asarray(take(f(x, 2.0))).tolist() == [2.0 * k + 1] * 8

    def work(start: int) -> bool:
        mine = np.zeros(8, np.float32)
        found = []
        for k in range(start, start + 200):
            mine[:] = k
            found.append(f(mine, k))
        return all(np.asarray(y).tolist() == [float(k * k)] * 8 for k, y in enumerate(found, start))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(0, 800, 200)))


def test_parts_of_several_processes_have_the_dtype_that_their_array_says() -> None:
    """Programs read the elements as what the type says: with NumPy's own dtypes of 64 bits they
    read other numbers, or what is behind them."""
    in_both("""
        devices, at = jax.local_devices(), slice(2 * index, 2 * index + 2)
        every = {"f8": "f4", "i8": "i4", "u8": "u4", "c16": "c8", "f4": "f4", "i4": "i4", "?": "?"}
        for given, dtype in every.items():
            values = numbers.astype(given)
            placed = [jax.device_put(v, d) for v, d in zip(values[at].reshape(2, 1), devices)]
            made = [
                jax.make_array_from_process_local_data(rows, values[at]),
                jax.make_array_from_callback((4,), rows, lambda i: values[i]),
                jax.device_put(values, rows),
                jax.make_array_from_single_device_arrays((4,), rows, placed),
            ]
            for x in made:
                y = jax.jit(lambda v: v | v if v.dtype == bool else v + v)(x)
                assert x.dtype == y.dtype == np.dtype(dtype), (given, x.dtype)
                assert parts(y) == (values + values)[at].reshape(2, 1).tolist(), (given, parts(y))
        made = jax.make_array_from_callback((), whole, lambda i: np.array(3.0))
        for one in (jax.device_put(3.0, whole), made):
            assert parts(one) == [3.0, 3.0] and parts(jax.jit(lambda v: v + v)(one)) == [6.0, 6.0]
        x = jax.make_array_from_process_local_data(rows, np.full(2, 0.5))
        assert float(jax.jit(jnp.sum)(x)) == 2
    """)

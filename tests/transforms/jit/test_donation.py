"""Donated arguments: their memory becomes that of results, and they are gone afterwards."""

import logging
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.machine import memory
from tests.transforms.devices.four_devices import four_devices

N = 1 << 20
V = np.arange(12, dtype=np.float32)


def fresh(x: Any = V) -> Any:
    """An array whose memory nobody else sees."""
    return jnp.array(x) + 0


@pytest.mark.usefixtures("no_garbage")
def test_an_update_step_takes_no_memory() -> None:
    """A million parameters, their momentum and a gradient: hundreds of steps, not one allocation of
    that size."""

    def update(state: Any, g: Any) -> Any:
        m = 0.9 * state["m"] + g
        return {"p": state["p"] - 0.1 * m, "m": m}

    step = calque.jit(update, donate_argnums=0)
    state = {"p": jnp.zeros(N), "m": jnp.zeros(N)}
    g = jnp.ones(N)
    state = step(step(state, g), g)
    places = {k: x.unsafe_buffer_pointer() for k, x in state.items()}
    before = memory.stats()
    for _ in range(20):
        old = state
        state = step(state, g)
        assert all(x.is_deleted() for x in old.values())
    after = memory.stats()
    assert after.allocations == before.allocations and after.live_bytes == before.live_bytes
    assert {k: x.unsafe_buffer_pointer() for k, x in state.items()} == places
    m = sum(0.9**k for k in range(22))
    np.testing.assert_allclose(state["m"][0], m, rtol=1e-5)


PROGRAMS: dict[str, Callable[..., Any]] = {
    "elementwise": lambda x, y: jnp.sin(x) + y,
    "both": lambda x, y: (x + y, x - y),
    "crossed": lambda x, y: (y * 2, x * 3),
    "itself": lambda x, y: (x, x + 1),
    "itself, last": lambda x, y: (x + 1, x),
    "twice": lambda x, y: (x, x),
    "backwards": lambda x, y: x[::-1] + y,
    "shifted": lambda x, y: jnp.roll(x, 1) - x,
    "running": lambda x, y: jnp.cumsum(x),
    "normalised": lambda x, y: (x - x.mean()) / x.std(),
    "product": lambda x, y: jnp.outer(x, y) @ x,
    "one element": lambda x, y: x.at[3].set(7),
    "one element more": lambda x, y: (x.at[3].add(7), y),
    "several": lambda x, y: x.at[jnp.array([1, 1, 5])].add(y[:3]),
    "slice": lambda x, y: lax.dynamic_update_slice(x, y[:4], (2,)),
    "slice of itself": lambda x, y: lax.dynamic_update_slice(x, x[:4], (2,)),
    "even rounds": lambda x, y: lax.fori_loop(0, 4, lambda i, c: c[::-1] + y, x),
    "odd rounds": lambda x, y: lax.fori_loop(0, 5, lambda i, c: c[::-1] + y, x),
    "some rounds": lambda x, y: lax.while_loop(lambda c: c.sum() < 1000, lambda c: c[::-1] + 10, x),
    "rounds in place": lambda x, y: lax.fori_loop(0, 12, lambda i, c: c.at[i].set(c[i] * 2), x),
    "stacked": lambda x, y: lax.scan(lambda c, v: (c + v, c * v), x[0], y),
    "a branch": lambda x, y: lax.cond(x[0] > 0, lambda x: x + 1, lambda x: x[::-1], x),
    "reshaped": lambda x, y: x.reshape(3, 4) + 1,
    "transposed": lambda x, y: (x.reshape(3, 4).T + 1).reshape(-1) + x,
    "sorted": lambda x, y: jnp.sort(-x) + x,
    "other dtype": lambda x, y: (x.astype(jnp.int32), y),
    "a chain": lambda x, y: jnp.exp(-(x @ jnp.ones((12, 12)))) * y + x,
}  # fmt: skip


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_results_are_those_without(name: str, exact: bool) -> None:
    f = PROGRAMS[name]
    before = calque.config.exact
    calque.config.update("calque_exact", exact)
    try:
        want = calque.jit(f)(fresh(), fresh(V + 1))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            donating = calque.jit(f, donate_argnums=(0, 1))
            for _ in range(3):
                got = donating(fresh(), fresh(V + 1))
    finally:
        calque.config.update("calque_exact", before)
    for g, w in zip(
        calque.tree_util.tree_leaves(got), calque.tree_util.tree_leaves(want), strict=True
    ):
        np.testing.assert_array_equal(g, w)


IN_PLACE: dict[str, Callable[..., Any]] = {
    "map": lambda x: jnp.tanh(x) * 2,
    "rows": lambda x: (
        calque.nn.softmax(x.reshape(1, -1)).reshape(-1) if x.ndim == 2 else x - x.max()
    ),
    "running": jnp.cumsum,
    "update": lambda x: x.at[3].set(1),
    "update by index": lambda x: x.at[jnp.array([1, 4])].add(2),
    "rounds": lambda x: lax.fori_loop(0, 100, lambda i, c: c.at[i].add(1), x),
    "untouched": lambda x: x,
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place(name: str) -> None:
    f = calque.jit(IN_PLACE[name], donate_argnums=0)
    for _ in range(3):  # the first call comes from Python, the others by machine code
        x = fresh(np.ones(5000, np.float32))
        place = x.unsafe_buffer_pointer()
        y = f(x)
        assert y.unsafe_buffer_pointer() == place and x.is_deleted()


def test_softmax_of_rows_in_place() -> None:
    f = calque.jit(lambda x: calque.nn.softmax(x), donate_argnums=0)
    values = np.random.default_rng(0).standard_normal((40, 50)).astype(np.float32)
    x = fresh(values)
    place = x.unsafe_buffer_pointer()
    y = f(x)
    assert y.unsafe_buffer_pointer() == place
    np.testing.assert_array_equal(y, calque.jit(calque.nn.softmax)(values))


# ---------------------------------------------------------------- who else sees the memory


def add_one(x: Any) -> Any:
    return x + 1


@pytest.mark.parametrize("look", [np.asarray, lambda x: memoryview(np.asarray(x)),
lambda x: np.from_dlpack(x), lambda x: x.addressable_shards[0].data], ids=["numpy", "memoryview",
"dlpack", "shard"])  # fmt: skip
def test_what_others_see_stays(look: Callable[[Any], Any]) -> None:
    f = calque.jit(add_one, donate_argnums=0)
    for _ in range(3):
        x = fresh()
        seen = look(x)
        y = f(x)
        assert x.is_deleted()
        np.testing.assert_array_equal(np.asarray(seen), V)
        np.testing.assert_array_equal(y, V + 1)


def test_memory_that_nobody_looks_at_any_more_is_taken() -> None:
    f = calque.jit(add_one, donate_argnums=0)
    for _ in range(3):
        x = fresh()
        repr(x), np.asarray(x)
        place = x.unsafe_buffer_pointer()
        assert f(x).unsafe_buffer_pointer() == place


def test_numpy_arrays_and_numbers_are_left_alone() -> None:
    f = calque.jit(add_one, donate_argnums=0)
    source = V.copy()
    wrapped = jnp.asarray(source)
    for _ in range(3):
        np.testing.assert_array_equal(f(source), V + 1)
        assert float(f(2.0)) == 3.0 and float(f(np.float32(2))) == 3.0
    f(wrapped)
    np.testing.assert_array_equal(source, V)


def test_constants_of_other_programs_stay() -> None:
    x = fresh()
    uses = calque.jit(lambda y: y + x)
    np.testing.assert_array_equal(uses(V), V + V)
    calque.jit(add_one, donate_argnums=0)(x)
    np.testing.assert_array_equal(uses(V), V + V)
    eager = fresh()
    view = calque.device_put(eager, calque.devices()[0])
    calque.jit(add_one, donate_argnums=0)(eager)
    if view is not eager:
        np.testing.assert_array_equal(view, V)


def test_a_run_of_another_thread_keeps_its_argument() -> None:
    x = fresh(np.ones(1000, np.float32))
    began, go_on = threading.Event(), threading.Event()

    def wait(v: np.ndarray) -> np.ndarray:
        began.set()
        assert go_on.wait(60)
        return v

    def slow(x: Any) -> Any:
        first = calque.pure_callback(wait, calque.ShapeDtypeStruct((), np.float32), x[0])
        return first * 0 + x.sum()

    f, out = calque.jit(slow), []
    thread = threading.Thread(target=lambda: out.append(float(f(x))))
    thread.start()
    assert began.wait(60)
    y = calque.jit(lambda x: x * 5, donate_argnums=0)(x)
    z = fresh(np.full(1000, 9, np.float32))  # would lie where x lay, had it been given back
    go_on.set()
    thread.join(60)
    assert out == [1000.0] and float(y[0]) == 5 and float(z[0]) == 9 and x.is_deleted()


@pytest.mark.usefixtures("no_garbage")
def test_an_exception_in_the_program_leaves_no_mess(monkeypatch: pytest.MonkeyPatch) -> None:
    # records of what failed, which pytest keeps, keep its frames
    monkeypatch.setattr(logging.getLogger("calque.callback"), "disabled", True)

    def fail(x: Any) -> Any:
        raise KeyError("on purpose")

    f = calque.jit(
        lambda x: calque.pure_callback(fail, calque.ShapeDtypeStruct(x.shape, x.dtype), x) + x,
        donate_argnums=0,
    )
    before = memory.stats().live_bytes
    for _ in range(5):
        x = fresh(np.zeros(100000, np.float32))
        with pytest.raises(KeyError):
            f(x)
        del x
    assert memory.stats().live_bytes <= before


# ---------------------------------------------------------------- what may not be given


def test_twice_in_one_call() -> None:
    f = calque.jit(lambda x, y: (x + 1, y + 2), donate_argnums=(0, 1))
    g = calque.jit(lambda x, y: (x + 1, y + 2), donate_argnums=0)
    f(fresh(), fresh()), g(fresh(), fresh())
    x = fresh()
    with pytest.raises(RuntimeError, match="donate the same buffer twice"):
        f(x, x)
    with pytest.raises(RuntimeError, match="donated in the same call"):
        g(x, x)
    np.testing.assert_array_equal(x, V)  # nothing has happened to it
    assert not x.is_deleted()
    np.testing.assert_array_equal(f(x, fresh())[0], V + 1)


def test_what_fits_no_result_stays_and_is_told() -> None:
    f = calque.jit(lambda x, y: (x.sum(), y + 1), donate_argnums=(0, 1))
    x, y = fresh(np.ones(7, np.float32)), fresh()
    with pytest.warns(UserWarning, match=r"Some donated buffers were not usable: float32\[7\]"):
        f(x, y)
    assert not x.is_deleted() and y.is_deleted()
    f(x, fresh())  # said once
    unused = calque.jit(lambda x, y: y + 1, donate_argnums=0)
    unused(x, fresh())
    assert not x.is_deleted()


def test_deleted_arrays_are_refused_everywhere() -> None:
    f, g = calque.jit(add_one, donate_argnums=0), calque.jit(add_one)
    f(fresh()), g(fresh()), g(fresh())
    x = fresh()
    f(x)
    uses: list[Callable[[], Any]] = [
        lambda: f(x), lambda: g(x), lambda: x + 1, lambda: x[0], lambda: jnp.sum(x),
        lambda: np.asarray(x), lambda: repr(x), lambda: x.copy(),
        lambda: x.at[0].set(1), lambda: list(x), lambda: x.block_until_ready(),
        lambda: x.unsafe_buffer_pointer(), lambda: x.__dlpack__(),
        lambda: calque.grad(lambda x: jnp.sum(x * x))(x), lambda: calque.vmap(jnp.sin)(x),
        lambda: calque.make_jaxpr(jnp.sin)(x) and jnp.sin(x),
        lambda: calque.device_get(x), lambda: calque.jit(lambda: x + 1)(), lambda: jnp.array(x),
        lambda: jnp.stack([x, x]), lambda: x == x,
    ]  # fmt: skip
    for use in uses:
        for _ in range(2):
            with pytest.raises(
                RuntimeError, match=r"Array has been deleted with shape=float32\[12\]"
            ):
                use()
    assert (x.shape, x.dtype, x.nbytes, len(x), x.ndim) == ((12,), np.float32, 48, 12, 1)
    assert x.sharding is not None and x.is_deleted()


@pytest.mark.usefixtures("no_garbage")
def test_delete() -> None:
    x = fresh(np.zeros(N, np.float32))
    view, other = np.asarray(x)[:3], fresh()
    before = memory.stats().live_bytes
    x.delete()
    x.delete()
    assert x.is_deleted() and not other.is_deleted()
    assert view.tolist() == [0, 0, 0]  # who looks at it keeps it
    del view
    assert memory.stats().live_bytes <= before - 4 * N


# ---------------------------------------------------------------- ways to say and to call


def test_by_position_and_by_name() -> None:
    for options in ({"donate_argnums": 0}, {"donate_argnames": "x"}, {"donate_argnums": (-1,)}):
        f = calque.jit(add_one, **options)
        for call in (lambda x: f(x), lambda x: f(x=x)):
            for _ in range(2):
                x = fresh()
                call(x)
                assert x.is_deleted()
    named = calque.jit(lambda *, a, b: a + b, donate_argnames="b")
    a, b = fresh(), fresh()
    named(a=a, b=b)
    assert b.is_deleted() and not a.is_deleted()


def test_trees_and_statics() -> None:
    f = calque.jit(
        lambda n, tree, y: [v * n + y for v in tree["a"]], static_argnums=0, donate_argnums=1
    )
    for _ in range(2):
        tree, y = {"a": (fresh(), fresh())}, fresh()
        f(2, tree, y)
        assert all(v.is_deleted() for v in tree["a"]) and not y.is_deleted()
    with pytest.raises(ValueError, match="cannot intersect"):
        calque.jit(add_one, static_argnums=0, donate_argnames="x")


def test_inside_other_programs_nothing_is_donated() -> None:
    f = calque.jit(add_one, donate_argnums=0)
    x = fresh()
    np.testing.assert_array_equal(calque.jit(lambda x: f(x) * x)(x), (V + 1) * V)
    np.testing.assert_array_equal(calque.grad(lambda x: jnp.sum(f(x) * x))(x), 2 * V + 1)
    np.testing.assert_array_equal(calque.vmap(f)(x), V + 1)
    calque.config.update("calque_disable_jit", True)
    try:
        f(x)
    finally:
        calque.config.update("calque_disable_jit", False)
    assert not x.is_deleted()


def test_compiled_ahead() -> None:
    compiled = calque.jit(add_one, donate_argnums=0).lower(fresh()).compile()
    x = fresh()
    place = x.unsafe_buffer_pointer()
    y = compiled(x)
    assert x.is_deleted() and y.unsafe_buffer_pointer() == place
    assert compiled.memory_analysis().alias_size_in_bytes == x.nbytes


def test_pmap_and_placed_arrays() -> None:
    f = calque.pmap(add_one, donate_argnums=0)
    x = fresh(V[None])
    np.testing.assert_array_equal(f(x), V[None] + 1)
    assert x.is_deleted()
    mesh = calque.make_mesh((1,), ("i",))
    where = calque.sharding.NamedSharding(mesh, calque.sharding.PartitionSpec("i"))
    placed = calque.device_put(jnp.array(V), where)
    y = calque.jit(add_one, donate_argnums=0)(placed)
    assert placed.is_deleted() and y.sharding == where
    np.testing.assert_array_equal(y, V + 1)


def test_keys_and_other_dtypes() -> None:
    split = calque.jit(lambda k: calque.random.split(k, 2)[0], donate_argnums=0)
    key = calque.random.key(0)
    want = calque.random.key_data(calque.random.split(key, 2)[0])
    np.testing.assert_array_equal(calque.random.key_data(split(key)), want)
    assert key.is_deleted()
    for dtype in ("bool", "int8", "bfloat16", "complex64"):
        x = fresh(np.ones(5).astype(jnp.dtype(dtype)))
        calque.jit(lambda x: x * x, donate_argnums=0)(x)
        assert x.is_deleted()


def test_empty_and_scalar_arrays() -> None:
    f = calque.jit(add_one, donate_argnums=0)
    for shape in ((), (0,), (0, 3), (1, 1)):
        for _ in range(2):
            x = fresh(np.ones(shape, np.float32))
            np.testing.assert_array_equal(f(x), np.full(shape, 2))
            assert x.is_deleted()


@pytest.mark.peer
@pytest.mark.filterwarnings("ignore:Some donated buffers")
def test_deleted_as_in_jax() -> None:
    """Which arguments are gone after the call."""
    jax = pytest.importorskip("jax")

    def gone(library: Any, f: Callable[..., Any], options: dict[str, Any]) -> list[bool]:
        xs = [
            library.numpy.arange(12.0) * 1,
            library.numpy.arange(12.0) * 2,
            library.numpy.ones((3, 4)) * 1,
        ]
        library.jit(f, **options)(*xs)
        return [x.is_deleted() for x in xs]

    functions: list[Callable[..., Any]] = [
        lambda x, y, z: x + y,
        lambda x, y, z: (x + y, y + 1),
        lambda x, y, z: z.reshape(-1),
        lambda x, y, z: (z + 1, x.sum()),
        lambda x, y, z: (x.astype("int32"), z),
        lambda x, y, z: x.sum(),
    ]
    for f in functions:
        for options in (
            {"donate_argnums": (0, 1, 2)},
            {"donate_argnums": 1},
            {"donate_argnames": ("y", "z")},
        ):
            assert gone(calque, f, options) == gone(jax, f, options), (f, options)
    unread = {"donate_argnums": 0, "keep_unused": True}
    assert gone(calque, functions[2], unread) == gone(jax, functions[2], unread)


@four_devices
def test_functions_with_a_device_take_what_is_there() -> None:
    """Those that lie elsewhere are copied on the way: they stay."""
    first, second = calque.devices()[:2]
    step = calque.jit(lambda v: v + 1, donate_argnums=0, device=second)
    for _ in range(3):
        there, elsewhere = (calque.device_put(V, d) for d in (second, first))
        for v in (there, elsewhere):
            np.testing.assert_array_equal(step(v), V + 1)
        assert there.is_deleted() and not elsewhere.is_deleted()
        np.testing.assert_array_equal(elsewhere, V)

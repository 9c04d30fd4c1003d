"""Calls with sizes that are new: machine code finds the program, Python neither flattens nor looks
anything up."""

import gc
import weakref

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque.machine.call import functions as callpath
from calque.transforms.jit import dynamic
from calque.transforms.jit.function import function_of
from calque.transforms.jit.traced import stats

pytestmark = pytest.mark.skipif(
    not callpath.LEARNS, reason="without machine code every call asks Python"
)


@pytest.fixture
def asked(monkeypatch):
    """How often Python was asked for a program with free sizes."""
    log, call = [], dynamic.call

    def counted(function, given):
        log.append(given.sizes)
        return call(function, given)

    monkeypatch.setattr(dynamic, "call", counted)
    return log


def vector(n):
    return jnp.asarray(np.arange(n, dtype=np.float32))


def test_a_thousand_lengths_ask_python_three_times(asked):
    f, before = jax.jit(lambda x: x * x + x.shape[0]), stats.traces
    for n in range(2, 1002):
        out = f(vector(n))
        assert out.shape == (n,) and out[-1] == (n - 1) ** 2 + n
    assert stats.traces - before == 2 and len(asked) <= 3


def test_a_size_that_comes_back_often_gets_an_entry_of_its_own(asked):
    f = jax.jit(lambda x: x + 1)
    for n in (2, 3, 4, 5, 6):
        f(vector(n))
    entries, known = callpath.entry_count(f), len(asked)
    for _ in range(dynamic.HOT_AFTER):
        f(vector(7))
        assert (callpath.entry_count(f), len(asked)) == (entries, known)
    f(vector(7))
    assert (callpath.entry_count(f), len(asked)) == (entries + 1, known + 1)
    for _ in range(3):
        np.testing.assert_array_equal(f(vector(7)), np.arange(7) + 1)
    assert (callpath.entry_count(f), len(asked)) == (entries + 1, known + 1)


def test_arguments_of_all_sorts(asked):
    @jax.jit
    def f(tree, scale, *, by):
        return {"out": [tree["a"][0] * scale, tree["b"] + by.sum()]}

    for n in (3, 4, 5, 6, 7, 8):
        tree = {"b": np.ones((n, 2), np.float32), "a": (vector(n), None)}
        out = f(tree, 2.0 + n, by=vector(2 * n))["out"]
        np.testing.assert_array_equal(out[0], np.arange(n) * (2.0 + n))
        np.testing.assert_array_equal(out[1], np.full((n, 2), 1 + sum(range(2 * n))))
    assert len(asked) <= 3


def test_static_arguments_have_programs_of_their_own(asked):
    f = jax.jit(lambda x, how: -x if how == "minus" else x, static_argnames="how")
    for n in range(3, 9):
        np.testing.assert_array_equal(f(vector(n), how="minus"), -np.arange(n))
        np.testing.assert_array_equal(f(vector(n), how="plus"), np.arange(n))
    assert len(asked) <= 6


def test_a_function_made_anew_asks_once(asked):
    before = stats.traces
    for k in range(5):
        f = jax.jit(lambda x: x - 3)
        for n in range(10 * k + 10, 10 * k + 20):
            np.testing.assert_array_equal(f(vector(n)), np.arange(n) - 3)
    assert stats.traces - before == 2 and len(asked) <= 2 + 5


def test_sizes_that_do_not_fit_are_refused_as_ever():
    f = jax.jit(lambda x, y: x + y)
    for n in range(3, 8):
        f(vector(n), vector(n))
    with pytest.raises(TypeError, match="incompatible shapes"):
        f(vector(10), vector(11))
    np.testing.assert_array_equal(f(vector(10), vector(1)), np.arange(10))
    assert f(vector(0), vector(0)).shape == (0,)


def test_guards_choose_among_programs():
    f = jax.jit(lambda x: x.sum() if x.shape[0] > 10 else -x.sum())
    for n in (3, 20, 4, 21, 5, 30, 10, 11, 500, 1, 2, 0):
        assert f(vector(n)) == sum(range(n)) * (1 if n > 10 else -1)


def test_kinds_of_arguments_are_kept_apart():
    f = jax.jit(lambda x: x * 2)
    for n in range(3, 8):
        f(vector(n))
    weak = jax.lax.full((9,), 1.0)
    assert f(weak).weak_type and not f(vector(9)).weak_type
    assert f(jnp.ones(9, "int32")).dtype == np.int32 and f(jnp.ones((9, 2))).shape == (9, 2)
    with jax.enable_x64(True):
        assert f(jnp.ones(12, "float64")).dtype == np.float64


def test_inside_another_trace_and_under_transformations():
    f = jax.jit(lambda x: (x * x).sum())
    for n in range(3, 8):
        f(vector(n))
    np.testing.assert_array_equal(jax.grad(f)(vector(9)), 2 * np.arange(9))
    np.testing.assert_array_equal(jax.vmap(f)(jnp.ones((4, 9))), np.full(4, 9.0))
    assert jax.jit(lambda x: f(x) + f(x[1:]))(vector(3)) == 10
    assert str(jax.make_jaxpr(f)(vector(11))).count("jit") == 1


def test_placed_arrays_stay_placed():
    f = jax.jit(lambda x: x + 1)
    for n in range(3, 8):
        f(vector(n))
    device = jax.devices()[0]
    x = jax.device_put(vector(10), jax.sharding.SingleDeviceSharding(device))
    assert f(x).sharding == x.sharding


SCALE = 2.0


def test_captured_values_are_seen_by_new_sizes(monkeypatch):
    f = jax.jit(lambda x: x * SCALE, on_stale="retrace")
    for n in range(3, 8):
        f(vector(n))
    for value in (3.0, 2.0, 3.0):
        monkeypatch.setitem(globals(), "SCALE", value)
        for n in (9, 10, 9, int(value) + 20):
            np.testing.assert_array_equal(f(vector(n)), np.arange(n) * value)


def test_never_means_never(asked):
    f, before = jax.jit(lambda x: x * 5, dynamic="never"), stats.traces
    for n in range(3, 8):
        f(vector(n))
    assert stats.traces - before == 5 and not asked


def test_clearing_the_cache_clears_entries_for_all_sizes():
    f = jax.jit(lambda x: x * 7)
    for n in range(3, 8):
        f(vector(n))
    f.clear_cache()
    before = stats.traces
    f(vector(20))
    assert stats.traces == before + 1
    jax.clear_caches()
    f(vector(21))
    assert stats.traces == before + 2


def test_nothing_is_kept_alive():
    def made():
        big = np.ones(3)

        def g(x):
            return x + big.shape[0]

        f = jax.jit(g)
        for n in range(3, 8):
            f(vector(n))
        return function_of(f)

    gone = weakref.ref(made())
    gc.collect()
    assert gone() is None


@pytest.fixture
def own(monkeypatch):
    """The sizes that got a program of their own."""
    log, compiled_at = [], dynamic.compiled_at

    def counted(name, program, values):
        log.append(values)
        return compiled_at(name, program, values)

    monkeypatch.setattr(dynamic, "compiled_at", counted)
    return log


def calls_until_own(f, args, own, most):
    """How many calls it takes until the sizes have a program of their own, None if they get
    none."""
    before = len(own)
    results = set()
    for i in range(most):
        results.add(np.asarray(f(*args)).tobytes())
        assert len(results) == 1
        if len(own) > before:
            return i
    return None


@pytest.mark.parametrize(
    "form, expected",
    [
        (lambda x, y: x @ y, True),
        (lambda x, y: jax.lax.map(lambda r: r @ y, x), True),
        (lambda x, y: x + y.T, True),
        (lambda x, y: x + y[0], True),
        (lambda x, y: jnp.cumsum(x, 0) + y, True),
        (lambda x, y: jax.jit(jnp.sin)(x) * 2 + y, False),
    ],
    ids=["product", "product in a loop", "transposition", "row", "along an axis", "by elements"],
)
def test_sizes_that_take_long_get_a_program_of_their_own(monkeypatch, own, form, expected):
    """When their calls have taken longer than it takes to make one; every call counts as long. The
    function itself is not called again for that."""
    monkeypatch.setattr(dynamic, "LONG", -1.0)
    traces = []

    def f(x, y):
        traces.append(x.shape)
        return form(x, y)

    jitted = jax.jit(f)
    arrays = [(jnp.ones((n, n)), jnp.full((n, n), 0.1)) for n in (8, 9, 12, 13)]
    jitted(*arrays[0]), jitted(*arrays[1])
    (family,) = function_of(jitted).cache.families.values()
    (program,) = family.programs
    program.seconds = 1e9
    assert calls_until_own(jitted, arrays[2], own, 60) is None
    program.seconds = 0.0
    asked = calls_until_own(jitted, arrays[3], own, 60)
    assert asked == (dynamic.HOT_AFTER + 1 if expected else None)
    if expected:  # and it stays
        assert own == [(13,)] and calls_until_own(jitted, arrays[3], own, 60) is None
    assert len(traces) == 2


@pytest.mark.parametrize("calls", [1, 2, 5, 6, 7, 40])
def test_as_many_calls_are_served_as_take_as_long_as_a_program(monkeypatch, own, calls):
    monkeypatch.setattr(dynamic, "LONG", -1.0)
    monkeypatch.setattr(dynamic.time, "perf_counter", iter(range(10**6)).__next__)
    jitted = jax.jit(lambda x, y: x @ y)
    arrays = [(jnp.ones((n, n)), jnp.full((n, n), 0.1)) for n in (8, 9, 12)]
    jitted(*arrays[0]), jitted(*arrays[1])
    (family,) = function_of(jitted).cache.families.values()
    family.programs[0].seconds = float(calls)
    least = dynamic.HOT_AFTER + 1  # machine code serves the first ones
    assert calls_until_own(jitted, arrays[2], own, 60) == max(calls, least)


def test_sizes_that_were_said_to_be_free_stay_free(monkeypatch, own):
    monkeypatch.setattr(dynamic, "LONG", -1.0)
    jitted = jax.jit(lambda x, y: x @ y, dynamic={0: (0, 1), 1: (0, 1)})
    args = jnp.ones((8, 8)), jnp.ones((8, 8))
    jitted(*args)
    (family,) = function_of(jitted).cache.families.values()
    family.programs[0].seconds = 0.0
    assert calls_until_own(jitted, args, own, 60) is None


def test_a_program_for_one_size_is_no_retrace(monkeypatch, own):
    monkeypatch.setattr(dynamic, "LONG", -1.0)
    f = jax.jit(lambda x: jnp.cumsum(x, 0))
    for n in (5, 6):
        f(jnp.ones((n, n)))
    (family,) = function_of(f).cache.families.values()
    family.programs[0].seconds = 0.0
    with jax.no_retrace():
        assert calls_until_own(f, (jnp.ones((7, 7)),), own, 60) is not None

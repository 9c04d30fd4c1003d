"""No result of one configuration answers under another: flags that change between calls, caches
that are cleared between them, and threads that do either while others call."""

import random
import threading
import types
import warnings

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.transforms.jit.function import function_of

FLAGS = {
    "calque_enable_x64": (False, True),
    "calque_exact": (False, True),
    "calque_numpy_rank_promotion": ("allow", "raise"),
    "calque_numpy_dtype_promotion": ("standard", "strict"),
    "calque_debug_nans": (False, True),
    "calque_threefry_partitionable": (True, False),
    "calque_disable_jit": (False, True),
}


@pytest.fixture(autouse=True)
def settings():
    before = {name: calque.config.read(name) for name in FLAGS}
    yield
    for name, value in before.items():
        calque.config.update(name, value)


def scaled(x):
    return x * 1.1 + 2.3


def ranks(x):
    return jnp.ones((2, x.shape[0]), x.dtype) + x


def kinds(x):
    return jnp.arange(x.shape[0]) * x


def roots(x):
    return jnp.sqrt(x - 2.5)


def contracted(x):
    return x * x - 1.0000001


def drawn(x):
    return calque.random.uniform(calque.random.key(3), (5,)) + x[0]


def summed(x):
    return calque.grad(lambda v: jnp.sin(v).sum())(x)


FUNCTIONS = (scaled, ranks, kinds, roots, contracted, drawn, summed)


def outcome(f, *args):
    """What a call gives: dtype and bits of the result, or the error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out = np.asarray(f(*args))
        return str(out.dtype), out.shape, out.tobytes()
    except (ValueError, TypeError, FloatingPointError) as e:
        return type(e).__name__


def unseen(f, number):
    """A function like `f` that no cache has met."""
    code = f.__code__.replace(co_name=f"{f.__name__}_{number}", co_firstlineno=1000 + number)
    return calque.jit(types.FunctionType(code, f.__globals__))


@pytest.mark.parametrize("seed", range(3))
def test_random_changes_of_flags_and_clearing(seed):
    """Against the same function made anew, in the configuration of the moment."""
    choose, jitted = random.Random(seed), {f: calque.jit(f) for f in FUNCTIONS}
    inputs = {n: np.linspace(2.0, 3.0 + n, n, dtype=np.float32) for n in (2, 3, 4)}
    for step in range(60):
        for name in choose.sample(sorted(FLAGS), choose.choice((0, 1, 2))):
            calque.config.update(name, choose.choice(FLAGS[name]))
        if choose.random() < 0.15:
            calque.clear_caches()
        f, x = choose.choice(FUNCTIONS), inputs[choose.choice((2, 3, 4))]
        settings = {name: calque.config.read(name) for name in FLAGS}
        want = outcome(unseen(f, 100 * seed + step), x)
        for _ in range(2):
            assert outcome(jitted[f], x) == want, (f.__name__, settings)
        float_type = "float64" if settings["calque_enable_x64"] else "float32"
        if not settings["calque_disable_jit"]:
            assert outcome(jitted[scaled], 1.5)[0] == float_type
        assert jnp.zeros(2).dtype == float_type and (jnp.float32(1) + 1.5).dtype == "float32"
        assert (jnp.zeros(3) + 2).dtype == float_type


def test_a_flag_that_is_part_of_no_key_does_not_retrace():
    f = calque.jit(scaled)
    f(1.0)
    programs = len(function_of(f).cache.programs)
    with calque.config.override("calque_log_compiles", True):
        f(1.0)
    assert len(function_of(f).cache.programs) == programs


def in_threads(*workers):
    """Run these at the same time; the errors that they raise."""
    failures, start = [], threading.Barrier(len(workers))

    def run(work):
        start.wait()
        try:
            work()
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=run, args=(w,)) for w in workers]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return failures


def caller(seed, rounds, check):
    """Calls jitted, rebuilt, differentiated and single operations of changing sizes."""

    def work():
        choose = random.Random(seed)
        kept = calque.jit(lambda x: x * 2 + seed)
        ref = calque.ref.new_ref(jnp.zeros(2, "float32"))
        add = calque.jit(lambda r, x: r.addupdate(x))
        for k in range(rounds):
            n = choose.randint(1, 6)
            x = jnp.arange(n, dtype="float32")
            check(kept(x), np.arange(n) * 2.0 + seed)
            check(calque.jit(lambda x: x - 3)(x), np.arange(n) - 3.0)
            check(x + x, np.arange(n) * 2.0)
            check(jnp.cumsum(x), np.cumsum(np.arange(n)))
            check(x @ x, np.dot(np.arange(n), np.arange(n)))
            check(calque.grad(lambda v: (v * v).sum())(x), np.arange(n) * 2.0)
            add(ref, jnp.ones(2, "float32"))
            check(ref[...], np.full(2, k + 1.0))

    return work


def same(got, want):
    np.testing.assert_array_equal(np.asarray(got), np.asarray(want, np.asarray(got).dtype))
    assert got.dtype == np.float32


def test_clearing_while_others_call():
    done = threading.Event()

    def clear():
        for _ in range(150):
            calque.clear_caches()
            calque.stats()
            if done.wait(0.002):
                return

    failures = in_threads(clear, caller(1, 12, same), caller(2, 12, same))
    done.set()
    assert not failures, failures


def tried(f, x):
    """The result of a call; None where the flags changed between its steps and it was refused."""
    try:
        return f(x)
    except TypeError as e:
        assert "a program compiled for" in str(e)
        return None


def test_a_program_compiled_under_other_flags_is_not_kept():
    """`lower` and `compile` may stand under different ones."""
    x = np.linspace(2.0, 3.0, 37, dtype=np.float32)
    want = outcome(unseen(contracted, 5000), x)
    f = unseen(contracted, 5001)
    lowered = f.lower(x)
    with calque.config.override("calque_exact", True):
        exact = np.asarray(lowered.compile()(x))
    np.testing.assert_array_equal(exact, x * x - np.float32(1.0000001))
    assert outcome(f, x) == want


def test_what_is_traced_while_flags_change_elsewhere_is_not_kept():
    """A flag that another thread changes in the middle of a trace: afterwards each function gives
    what the flags say."""
    entered, changed = threading.Event(), threading.Event()
    first = [True]

    def f(x):
        if first[0]:
            first[0] = False
            entered.set()
            assert changed.wait(60)
        return x * jnp.ones(3)

    def flip():
        assert entered.wait(60)
        calque.config.update("calque_enable_x64", True)
        changed.set()

    g = calque.jit(f)
    in_threads(lambda: tried(g, 2.0), flip)
    for _ in range(3):
        for wide in (False, True):
            calque.config.update("calque_enable_x64", wide)
            assert g(2.0).dtype == ("float64" if wide else "float32")


def test_flags_that_change_while_others_call():
    names = ("calque_enable_x64", "calque_exact")
    stop = threading.Event()

    def flip():
        choose = random.Random(5)
        for _ in range(400):
            calque.config.update(choose.choice(names), choose.choice((True, False)))
            if stop.wait(0.001):
                return

    operations = {
        "jitted": calque.jit(lambda x: x * 2 + jnp.ones(3)),
        "added": lambda x: jnp.ones(3) + x,
        "summed": lambda x: jnp.cumsum(jnp.ones(3)) * x,
    }

    def call(seed):
        def work():
            for _ in range(15):
                for f in operations.values():
                    out = tried(f, 1.0)
                    assert out is None or out.dtype in ("float32", "float64")

        return work

    failures = in_threads(flip, call(1), call(2))
    stop.set()
    assert not failures, failures
    for wide in (False, True, False):
        calque.config.update("calque_enable_x64", wide)
        for name, f in operations.items():
            for _ in range(3):
                assert f(1.0).dtype == ("float64" if wide else "float32"), name


# ---------------------------------------------------------------- arrays made under another setting


def wide_sine(x):
    with calque.enable_x64():
        return jnp.sin(jnp.array(x, jnp.float64))


@pytest.mark.parametrize(
    ("transformed", "dtype"),
    [
        (calque.grad(wide_sine), np.float32),
        (calque.grad(calque.grad(wide_sine)), np.float32),
        (calque.jit(calque.grad(wide_sine)), np.float32),
        (calque.grad(calque.checkpoint(wide_sine)), np.float32),
        (lambda x: calque.jvp(wide_sine, (x,), (1.0,))[1], np.float64),
        (lambda x: calque.linearize(wide_sine, x)[1](1.0), np.float64),
    ],
)
def test_derivatives_of_what_is_wide_inside(transformed, dtype):
    """The backward pass runs outside of the block: constants are of the type of what they meet."""
    found = transformed(0.5)
    assert found.dtype == dtype
    assert np.isclose(found, np.cos(0.5)) or np.isclose(found, -np.sin(0.5))


def test_wide_arrays_keep_their_type_where_they_are_not_computed_with():
    with calque.enable_x64():
        x = jnp.arange(3.0)
    assert x.at[0].set(x[1]).dtype == np.float64
    assert calque.lax.dynamic_update_slice(x, x[:1], (0,)).dtype == np.float64
    assert calque.lax.full_like(x, 2.0).dtype == np.float64
    assert calque.lax.full_like(np.arange(3.0), 2.0).dtype == np.float32
    assert calque.grad(lambda v: jnp.sin(v).sum())(x).dtype == np.float64

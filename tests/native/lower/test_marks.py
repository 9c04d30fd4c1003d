"""Tests of whole arrays stand in the loops that make them: as marks of a cell, or as sums; nothing
is read a second time for them."""

import re

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import lax
from calque.core.config import config


def loops(f, *args):
    """The kernels, by name, and the calls of the driver before it asks whether a check has
    failed."""
    text, driver = jax.jit(f).lower(*args).compile().as_text("loops").split("driver:")
    kernels = {k.split(":")[0]: k for k in text.split("kernel ")[1:]}
    return kernels, re.findall(r"call (\w+)", driver.split("switch")[0])


def passes(f, *args):
    """The called kernels that have loops."""
    kernels, calls = loops(f, *args)
    return [kernels[c] for c in calls if "for " in kernels[c]]


def finite(x):
    jax.check(jnp.isfinite(x).all(), "not finite")
    return x


@pytest.fixture
def nans():
    with config.override("debug_nans", True):
        yield


SHAPES = [(16,), (17,), (1000,), (70, 33), (3, 5, 64), (4000, 3), (256, 256)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "complex64"])
def test_any_and_all(shape, dtype):
    if dtype != "float32" and shape != (70, 33):
        return
    with config.override("enable_x64", True):
        f = jax.jit(
            lambda x: (
                jnp.isnan(x + x).any(),
                jnp.isfinite(x + x).all(),
                jnp.isinf(x).any() | jnp.isnan(x).any(),
            )
        )
        x = np.zeros(shape, jnp.dtype(dtype))
        assert [bool(v) for v in f(x)] == [False, True, False]
        for place in (0, x.size // 2, x.size - 1):
            for bad in (np.nan, np.inf):
                y = x.copy()
                y.reshape(-1)[place] = bad
                assert [bool(v) for v in f(y)] == [bool(np.isnan(bad)), False, True]


def test_of_no_elements_and_of_few():
    f = jax.jit(lambda x: ((x > 1).any(), (x > 1).all()))
    for n in (0, 1, 5, 15, 40):
        assert [bool(v) for v in f(jnp.ones(n))] == [False, n == 0]
    assert [
        bool(v) for v in jax.jit(lambda x: ((x > 1).any(), (x > 1).all()))(jnp.ones((0, 20)))
    ] == [False, True]


def test_with_threads():
    x = np.ones((3000, 100), np.float32)
    f = jax.jit(lambda x: (jnp.sin(x), jnp.isnan(jnp.sin(x)).any()))
    assert not f(x)[1]
    x[2999, 99] = np.inf
    assert f(x)[1]
    (kernel,) = passes(lambda x: (jnp.sin(x), jnp.isnan(jnp.sin(x)).any()), x)
    assert "@parallel" in kernel and "= True if" in kernel


def test_a_cell_that_was_true_stays_true():
    f = jax.jit(lambda seen, x: seen | (x > 1).any())
    for seen in (False, True):
        for top in (0.0, 2.0):
            assert bool(f(seen, jnp.full((20, 20), top))) == (seen or top > 1)
    g = jax.jit(lambda x: ((x > 1).any() | (x < 0).any(), (x > 1).any()))
    assert [bool(v) for v in g(-jnp.ones((20, 20)))] == [True, False]


def test_results_are_looked_at_where_they_are_made(nans):
    def f(x, y):
        return (jnp.exp(x) * y, x - y)

    x, y = jnp.ones((64, 100)), jnp.ones((64, 100))
    (kernel,) = passes(f, x, y)
    assert kernel.count("= True if") == 2
    per_example = jax.vmap(jax.grad(lambda w, x: jnp.sum(jnp.tanh(x @ w) ** 2)), in_axes=(None, 0))
    w, xs = jnp.ones((64, 32)), jnp.ones((100, 64))
    with config.override("debug_nans", False):
        plain = passes(per_example, w, xs)
    assert len(passes(per_example, w, xs)) == len(plain)
    with pytest.raises(FloatingPointError, match=r"nan.*in mul"):
        jax.jit(f)(x, y.at[63, 99].set(jnp.inf) * 0)  # inf * 0, made by the operand
    with pytest.raises(FloatingPointError, match=r"nan"):
        jax.jit(per_example)(w, xs.at[99, 63].set(jnp.inf))


@pytest.mark.parametrize("place", [(0, 3), (39, 0), (39, 39), (7, 0), (7, 39), (20, 20), (38, 38)])
def test_an_array_written_piece_by_piece(place):
    def sweep(check):
        def f(u):
            def body(i, u):
                return check(
                    u.at[1:-1, 1:-1].set(
                        0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
                    )
                )

            return lax.fori_loop(0, 3, body, u)

        return f

    u = jnp.ones((40, 40))
    assert len(passes(sweep(finite), u)) == len(passes(sweep(lambda u: u), u))
    np.testing.assert_array_equal(jax.jit(sweep(finite))(u), jax.jit(sweep(lambda u: u))(u))
    with pytest.raises(ValueError, match="not finite"):
        jax.jit(sweep(finite))(u.at[place].set(np.inf))


def test_small_updates_stay_in_place():
    def f(x, at):
        return lax.scan(lambda x, i: (finite(x.at[i].add(1.0)), None), x, at)[0]

    x, at = jnp.ones(1000), jnp.arange(5)
    (kernel,) = passes(f, x, at)
    assert (
        re.findall(r"^ +\w+\[.*\] = (.*) if", kernel, re.MULTILINE)
        == ["True"]
        == re.findall(r"\] = (\w+)", kernel)
    )
    assert float(jax.jit(f)(x, at).sum()) == 1005
    with pytest.raises(ValueError, match="not finite"):
        jax.jit(f)(x.at[999].set(np.nan), at)


def test_elementwise_loops_keep_their_state_in_registers():
    def f(c):
        def body(i, s):
            z, n = s
            z = finite(jnp.where(jnp.abs(z) < 2, z * z + c, z))
            return z, n + (jnp.abs(z) < 2)

        return lax.fori_loop(0, 20, body, (jnp.zeros_like(c), jnp.zeros(c.shape, "int32")))[1]

    c = (np.linspace(-2, 1, 30)[None] + 1j * np.linspace(-1, 1, 20)[:, None]).astype("complex64")
    (kernel,) = passes(f, c)
    assert "loop t" in kernel and "< inf" not in kernel and kernel.count("= True if") == 1
    want, z = np.zeros(c.shape, int), np.zeros_like(c)
    for _ in range(20):
        z = np.where(np.abs(z) < 2, z * z + c, z)
        want += np.abs(z) < 2
    assert (np.asarray(jax.jit(f)(c)) != want).mean() < 0.01
    for bad in (np.nan, np.inf, complex(0, np.inf)):
        c[19, 29] = bad
        with pytest.raises(ValueError, match="not finite"):
            jax.jit(f)(c)


def test_other_tests_in_elementwise_loops():
    def f(x):
        def body(i, x):
            jax.check((x < 100).all(), "too large")
            jax.check((x > 0).all(), "not positive")
            return x * 2 - 1

        return lax.fori_loop(0, 4, body, x)

    x = jnp.full((5, 40), 2.0)
    np.testing.assert_array_equal(jax.jit(f)(x), np.full((5, 40), 17.0))
    (kernel,) = passes(f, x)
    assert "loop t" in kernel
    with pytest.raises(ValueError, match="too large"):
        jax.jit(f)(x.at[4, 39].set(60.0))
    with pytest.raises(ValueError, match="not positive"):
        jax.jit(f)(x.at[0, 0].set(0.5))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("shape", [(), (3,), (50,)])
def test_one_round_is_enough(bad, shape):
    """What was not finite once is reported, though it has been finite since."""

    def f(x, at):
        return lax.fori_loop(0, 9, lambda i, c: finite(jnp.where(i == at, bad, x * 3e38 + i)), x)

    x = jnp.zeros(shape)
    np.testing.assert_array_equal(jax.jit(f)(x, 100), np.full(shape, 8.0))
    for at in (0, 4, 8):
        with pytest.raises(ValueError, match="not finite"):
            jax.jit(f)(x, at)


@pytest.mark.parametrize("n", [3, 8, 9, 12, 16, 17, 33])
def test_few_elements(n):
    """Where the rounds of a loop are in registers so is the test of a few elements; where they are
    vectors it is one of them."""

    def rows(xs):
        return lax.scan(lambda c, x: (c + x[0] * (x > 0).all(), finite(x).sum()), 0.0, xs)

    xs = np.ones((5, n), np.float32)
    total, sums = jax.jit(rows)(xs)
    assert float(total) == 5 and sums.tolist() == [n] * 5
    if n <= 16:
        assert len(loops(rows, xs)[1]) == 2  # the loop, and the number that the driver asks for
    for place in (0, n - 1):
        ys = xs.copy()
        ys[3, place] = np.inf
        with pytest.raises(ValueError, match="not finite"):
            jax.jit(rows)(ys)

    def step(w, h):
        return lax.fori_loop(0, 5, lambda i, h: finite(finite(jnp.tanh(w @ h)) * 2), h)

    w, h = np.eye(n, dtype=np.float32), np.ones(n, np.float32)
    assert np.isfinite(np.asarray(jax.jit(step)(w, h))).all()
    w[n - 1, 0] = np.nan
    with pytest.raises(ValueError, match="not finite"):
        jax.jit(step)(w, h)


@pytest.mark.parametrize("donate", [(), (0,)])
def test_cells_that_are_given(donate):
    f = jax.jit(lambda seen, x: seen | (x * 2 > 1).any(), donate_argnums=donate)
    for seen in (False, True):
        for top in (0.0, 2.0):
            assert bool(f(jnp.asarray(seen), jnp.full(100, top))) == (seen or top > 1)


def test_conditions_of_loops_and_branches():
    f = jax.jit(lambda x: lax.while_loop(lambda x: (x < 100).any(), lambda x: x * 2, x))
    assert np.asarray(f(jnp.arange(1.0, 41.0))).min() >= 100
    g = jax.jit(
        lambda x: lax.cond((x > 3).any(), lambda x: (x > 5).all(), lambda x: (x < -5).any(), x)
    )
    assert [bool(g(jnp.full((6, 7), v))) for v in (9.0, 4.0, 0.0, -9.0)] == [
        True,
        False,
        False,
        True,
    ]
    h = jax.jit(lambda xs: lax.map(lambda x: (x > 3).any(), xs))
    assert h(jnp.eye(20) * 4).all() and not h(jnp.eye(20)).any()


def test_scalar_loops_add_instead_of_testing():
    def f(x, i):
        return lax.scan(lambda c, k: (finite(c * 0.5 + x[k]), c), 0.0, i)

    x, i = jnp.arange(10.0), jnp.array([1, 9, 3])
    kernels, calls = loops(f, x, i)
    text = "".join(kernels[c] for c in calls)
    assert "< inf" not in text and "!= " in text
    assert float(jax.jit(f)(x, i)[0]) == 7.75
    with pytest.raises(ValueError, match="not finite"):
        jax.jit(f)(x.at[9].set(np.inf), i)


def test_free_sizes(nans):
    f = jax.jit(lambda x: jnp.log(x) * 2)
    for n in (20, 21, 5, 300, 16, 1):
        assert f(jnp.ones((n, n))).shape == (n, n)
        with pytest.raises(FloatingPointError, match="in log"):
            f(jnp.ones((n, n)).at[n - 1, n - 1].set(-1))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "uint8"])
def test_indices_are_compared_once(dtype):
    with config.override("debug_index", True):
        x = jnp.arange(100)
        f = jax.jit(lambda x, i: x[i])
        for i in (0, 99, *((-1, -100) if dtype[0] == "i" else ())):
            assert int(f(x, np.asarray(i, dtype))) == i % 100
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        for i in (100, high, *((-101, low) if dtype[0] == "i" else ())):
            with pytest.raises(IndexError, match=f"index {i} is out of bounds"):
                f(x, np.asarray(i, dtype))

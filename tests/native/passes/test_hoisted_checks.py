"""Checks that leave loops: what is raised, and when, is what the loop as written raises."""

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import lax
from calque.transforms.jit.function import function_of


def host_calls_in_loops(f, *args):
    """Does the program call Python from inside a loop?"""
    driver = jax.jit(f).lower(*args).compile().as_text("loops").split("driver:")[1].splitlines()
    depth = [len(line) - len(line.lstrip()) for line in driver]
    inside, loops = False, []
    for line, d in zip(driver, depth):
        loops = [k for k in loops if k < d]
        inside = inside or (bool(loops) and "host" in line)
        if line.strip().startswith("loop"):
            loops.append(d)
    return inside


def scanned(xs):
    def body(c, x):
        jax.check(x < 3, "{x} after {c}", error=KeyError, x=x, c=c)
        return c + x, c

    return lax.scan(body, 0.0, xs)


def test_the_first_failure_is_raised():
    f = jax.jit(scanned)
    total, before = f(jnp.arange(3.0))
    assert float(total) == 3 and before.tolist() == [0, 0, 1]
    with pytest.raises(KeyError, match=r"3\.0 after 3\.0"):
        f(jnp.arange(9.0))
    with pytest.raises(KeyError, match=r"7\.0 after 0\.0"):
        f(jnp.array([7.0, 8.0]))
    assert not host_calls_in_loops(scanned, jnp.arange(3.0))


def test_a_while_loop_ends_at_the_failure():
    def f(x):
        def body(c):
            jax.check(c < 50, "at {c}", c=c)
            return c + 1

        return lax.while_loop(lambda c: c != 100.5, body, x)

    assert not host_calls_in_loops(f, 0.5)
    assert float(jax.jit(f)(100.5)) == 100.5
    with pytest.raises(ValueError, match=r"at 50\.0"):
        jax.jit(f)(0.0)  # would never end


def test_constants_of_loops_stay_in_their_places():
    def f(a, b, n):
        def body(s):
            i, c = s
            jax.check(c * a < b, "{c}", c=c)
            return i + 1, c + a

        return lax.while_loop(lambda s: s[0] < n, body, (0, a))

    i, c = jax.jit(f)(2.0, 100.0, 5)
    assert (int(i), float(c)) == (5, 12.0)
    with pytest.raises(ValueError, match=r"^50\.0"):
        jax.jit(f)(2.0, 100.0, 5000)


def test_several_checks_in_nested_loops():
    def f(xs, limit):
        def outer(c, row):
            jax.check(c < limit, "outer {c}", c=c)

            def inner(d, x):
                jax.check(x >= 0, "inner {x}", x=x)
                return d + x, None

            return lax.scan(inner, c, row)[0], c

        return lax.scan(outer, 0.0, xs)

    xs = np.arange(12.0).reshape(4, 3)
    total, _ = jax.jit(f)(xs, 1000.0)
    assert float(total) == xs.sum() and not host_calls_in_loops(f, xs, 1000.0)
    with pytest.raises(ValueError, match=r"outer 15\.0"):
        jax.jit(f)(xs, 10.0)
    xs[2, 1] = -4
    with pytest.raises(ValueError, match=r"inner -4\.0"):
        jax.jit(f)(xs, 1000.0)


@pytest.mark.parametrize("n", [5, 16, 64, 100, 200])
@pytest.mark.parametrize("bad", [None, 0, -1])
def test_checks_of_what_a_product_made(n, bad):
    """The conjunction over the elements shares the loop of the product, lanes of a vector
    included."""
    rng = np.random.default_rng(n)
    w, xs = (
        rng.normal(size=(n, n)).astype(np.float32) / n,
        rng.normal(size=(4, n)).astype(np.float32),
    )
    if bad is not None:
        xs[2, bad] = np.nan

    def f(w, xs):
        def step(h, x):
            h = jnp.tanh(w @ h + x)
            jax.check(jnp.isfinite(h).all(), "not finite")
            return h, h

        return lax.scan(step, jnp.ones(n), xs)

    if bad is not None:
        with pytest.raises(ValueError, match="not finite"):
            jax.jit(f)(w, xs)
        return
    h = np.ones(n, np.float32)
    for x in xs:
        h = np.tanh(w @ h + x)
    np.testing.assert_allclose(jax.jit(f)(w, xs)[0], h, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "transformed",
    [
        jax.grad(lambda xs: scanned(xs)[0]),
        jax.vmap(lambda xs: scanned(xs)[0], in_axes=None, axis_size=2),
        lambda xs: jax.vmap(lambda row: scanned(row)[0])(jnp.stack([xs * 0, xs])),
        jax.checkpoint(lambda xs: scanned(xs)[0]),
        lambda xs: lax.cond(xs.sum() > -1, lambda: scanned(xs)[0], lambda: 0.0),
        lambda xs: jax.grad(lambda ys: jax.jit(scanned)(ys)[0])(xs),
    ],
)
def test_under_transformations(transformed):
    jax.jit(transformed)(jnp.arange(3.0))
    with pytest.raises(KeyError, match=r"3\.0 after 3\.0"):
        jax.jit(transformed)(jnp.arange(5.0))


def test_other_effects_stay_where_they_are(capsys):
    def f(xs):
        def body(c, x):
            jax.debug.print("at {x}", x=x)
            jax.check(x < 1, "too large")
            return c, x

        return lax.scan(body, 0.0, xs)

    with pytest.raises(ValueError, match="too large"):
        jax.jit(f)(jnp.arange(4.0))
    assert capsys.readouterr().out.splitlines() == ["at 0.0", "at 1.0"]


def test_scans_around_loops_that_may_not_end_keep_their_checks():
    def f(xs):
        def body(c, x):
            jax.check(x > 0, "never ends")
            return lax.while_loop(lambda v: v < 10, lambda v: v + x, c), None

        return lax.scan(body, 0.0, xs)[0]

    assert float(jax.jit(f)(jnp.ones(2))) == 10
    with pytest.raises(ValueError, match="never ends"):
        jax.jit(f)(jnp.zeros(2))


def test_indices_in_loops():
    with jax.config.override("calque_debug_index", True):

        def f(x, at):
            return lax.scan(lambda c, i: (c + x[i], None), 0.0, at)[0]

        x = jnp.arange(5.0)
        assert float(jax.jit(f)(x, jnp.array([0, 4, -1]))) == 8
        assert not host_calls_in_loops(f, x, jnp.array([0, 4]))
        with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 with size 5"):
            jax.jit(f)(x, jnp.array([0, 7, 9]))


def test_free_sizes():
    f = jax.jit(scanned)
    for n in (3, 4):
        f(jnp.zeros(n))
    (family,) = function_of(f).cache.families.values()
    driver = family.programs[0].executable.as_text("loops").split("driver:")[1]
    assert (
        "switch" in driver and "loop" not in driver
    )  # the check is behind the loop, which is a kernel
    half = jax.jit(lambda xs: scanned(xs[: xs.shape[0] // 2])[0])
    for n in (4, 6, 9, 30):
        assert float(half(jnp.ones(n))) == n // 2
        with pytest.raises(KeyError, match=r"9\.0 after"):
            half(jnp.ones(n).at[n // 2 - 1].set(9.0))
    for n in (1, 2, 3, 4, 5):
        xs = jnp.ones(n)
        assert float(f(xs)[0]) == n
        with pytest.raises(KeyError):
            f(xs.at[n - 1].set(5.0))

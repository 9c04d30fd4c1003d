"""Loops over traced values, against the function as it is written."""

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp


def collatz(n):
    steps = 0
    while n > 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


def summed(n):
    total = 0.0
    for i in range(n):
        total = total + i
    return total


def two_bounds(n):
    total = 0
    for i in range(2, n):
        total = (3 * total + i) % 1000
    return total


def downwards(n):
    total = 0
    for i in range(n, -3, -2):
        total = (3 * total + i) % 1000
    return total


def upwards_by_three(n):
    total = 0
    for i in range(-n, 8, 3):
        total = total * 2 + i
    return total


def break_and_continue(n):
    total = 0
    for i in range(n):
        if i % 3 == 0:
            continue
        if i > 7:
            break
        total += i
    return total


def endless(n):
    k = 0
    while True:
        k = k + 3
        if k >= n:
            break
    return k


def returns_from_a_loop(n):
    for i in range(n):
        if i * i > 10:
            return i
    return -1


def returns_from_nested_loops(n):
    for i in range(n):
        for j in range(i):
            if i * j > 11:
                return 10 * i + j
    return -1


def for_else(n):
    found = 0
    for i in range(n):
        if i == 4:
            found = i
            break
    else:
        found = -1
    return found


def while_else(n):
    i = 0
    while i < n:
        i += 1
        if i == 5:
            break
    else:
        i = -i
    return i


def nested_loops(n):
    total = 0
    for i in range(n):
        j = 0
        while j < i:
            if (i + j) % 2:
                j += 1
                continue
            total += i * j
            j += 1
    return total


def break_out_of_a_list(n):
    total = 0
    for k in [3, 1, 4, 1, 5]:
        if total > n:
            break
        total += k
    return total


def break_out_of_a_fixed_range(n):
    total = 0
    for k in range(10):
        total += k
        if total > n:
            break
    return total + k


def walrus_in_the_test(n):
    total = 0
    while (half := n // 2) > 0:
        total += half
        n = half
    return total


def two_conditions(n):
    i = 0
    while (i < n and i * i < 50) or i == 8:
        i += 1
    return i


def greatest_common_divisor(n):
    a, b = n, 36
    while b:
        a, b = b, a % b
    return a


def a_list_in_a_loop(n):
    last = [0, 1]
    for _ in range(n):
        last[0], last[1] = last[1], last[0] + last[1]
    return last[0]


def a_temporary_in_a_loop(n):
    total = 0
    for i in range(n):
        square = i * i
        total += square
    return total


def loop_in_a_branch(n):
    if n > 3:
        total = 0
        for i in range(n):
            total += i
    else:
        total = -n
    return total


def counts_down_from_a_branch(n):
    while n > 0:
        n = n - 2 if n > 5 else n - 1
    return n


LOOPS = [
    collatz, summed, two_bounds, downwards, upwards_by_three, break_and_continue, endless,
    returns_from_a_loop,
    returns_from_nested_loops, for_else, while_else, nested_loops, break_out_of_a_list,
    break_out_of_a_fixed_range, walrus_in_the_test,
    two_conditions, greatest_common_divisor, a_list_in_a_loop, a_temporary_in_a_loop,
    loop_in_a_branch, counts_down_from_a_branch,
]  # fmt: skip
COUNTS = (0, 1, 2, 3, 4, 5, 6, 9, 27)


@pytest.mark.parametrize("f", LOOPS, ids=lambda f: f.__name__)
def test_loops(f):
    g = jax.jit(f, control_flow="convert")
    plain = jax.convert(f)
    for n in COUNTS:
        assert plain(n) == f(n) and type(plain(n)) is type(f(n))
        assert int(g(n)) == f(n), n
    assert [int(v) for v in jax.vmap(plain)(jnp.array(COUNTS))] == [f(n) for n in COUNTS]


def rows(xs):
    total = 0.0
    for i, row in zip(range(9), xs):
        total = total + i * row.sum()
    for row in xs:
        if row[0] > 0:
            total = total + row[0] * row[1]
    return total


def first_positive(xs):
    for row in xs:
        if row[0] > 0.5:
            return row[1]
    return 0.0


def last_row(xs):
    for row in xs:
        t = row * 2
    return (row + t).sum()


def skips_rows(xs):
    total = 0.0
    for row in xs:
        if row[0] < 0:
            continue
        total = total + row[1]
        if total > 1.5:
            break
    return total


@pytest.mark.parametrize(
    "f", [rows, first_positive, last_row, skips_rows], ids=lambda f: f.__name__
)
def test_loops_over_arrays(f):
    xs = np.random.default_rng(0).normal(size=(3, 6, 2)).astype(np.float32)
    g = jax.convert(f)
    jitted = jax.jit(g)
    for x in xs:
        np.testing.assert_allclose(jitted(x), f(x), rtol=1e-5)
    np.testing.assert_allclose(jax.vmap(g)(xs), [f(x) for x in xs], rtol=1e-5)
    want = np.zeros_like(xs[0])
    for place in np.ndindex(*want.shape):
        step = np.zeros_like(want)
        step[place] = 1e-2
        want[place] = (f(xs[0] + step) - f(xs[0] - step)) / 2e-2
    np.testing.assert_allclose(jax.jit(jax.grad(g))(xs[0]), want, atol=2e-3)


def test_an_empty_array_runs_no_round():
    def f(xs):
        total = 1.0
        for x in xs:
            total = total + x
        return total

    assert float(jax.jit(f, control_flow="convert")(jnp.zeros((0,)))) == 1.0


def power(x, n):
    y = 1.0
    while n > 0:
        if n % 2 == 1:
            y = y * x
        x = x * x
        n = n // 2
    return y


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32"])
def test_ranges_of_narrow_integers_end(dtype):
    def f(n):
        rounds = np.int32(0)
        for i in range(1, n, 3):
            rounds = rounds + (i > 0)
        for i in range(n, 5, -50):
            rounds = rounds + 100 * (i > 0)
        return rounds

    g = jax.jit(f, control_flow="convert")
    for n in (0, 1, 2, 120, 125, 126, 127, 200, 254, 255):
        if n <= np.iinfo(dtype).max:
            assert int(g(np.dtype(dtype).type(n))) == f(n)


def simulated(p, n):
    state = {"x": p["x"], "v": 0.0}
    for _ in range(n):
        force = -p["k"] * state["x"]
        if state["x"] < 0:
            force = force * 2
        state["v"] = state["v"] + 0.3 * force
        state = {"x": state["x"] + 0.3 * state["v"], "v": state["v"]}
    return state["x"]


def test_derivative_with_containers():
    p, e = {"x": 1.0, "k": 2.0}, 1e-5
    got = jax.jit(jax.grad(jax.convert(simulated)))(p, 9)
    for key in p:
        want = (simulated({**p, key: p[key] + e}, 9) - simulated({**p, key: p[key] - e}, 9)) / (
            2 * e
        )
        np.testing.assert_allclose(got[key], want, rtol=1e-3)


def test_derivative_of_a_loop():
    g = jax.jit(jax.grad(jax.convert(power)))
    for n in (0, 1, 2, 5, 8):
        np.testing.assert_allclose(g(1.5, n), n * 1.5 ** max(n - 1, 0), rtol=1e-5)


def test_the_program_has_a_branch_and_a_loop():
    text = str(jax.make_jaxpr(jax.convert(collatz))(3))
    assert "while" in text and "cond" in text
    assert "scan" in str(jax.make_jaxpr(jax.convert(last_row))(jnp.ones((3, 2))))


def test_types_join_as_in_an_operation():
    def f(x, y):
        if x > 0:
            return x
        return y

    g = jax.jit(f, control_flow="convert")
    assert g(jnp.int32(1), jnp.float32(2.5)).dtype == jnp.float32
    assert g(jnp.float16(1), 2.5).dtype == jnp.float16
    assert g(1, 2.5).aval.weak_type
    assert not g(jnp.float32(1), 2).aval.weak_type

    def grows(n):
        total = 0
        for _ in range(n):
            total = total + jnp.float16(1.5)
        return total

    total = jax.jit(grows, control_flow="convert")(3)
    assert total.dtype == jnp.float16 and float(total) == 4.5
